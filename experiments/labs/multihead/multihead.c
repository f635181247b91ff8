/* Lab multihead: what several heads can do that one cannot, at the same width and cost.
 *
 * Heads share nothing but their input: head h reads its slice of q, k and v, and writes its slice of the output. The
 * first part looks at that wiring through gradients. What joins the heads is the projection after them,
 *
 *     MultiHead(x) = [head_1, …, head_H] W^O        (Vaswani et al. 2017, section 3.2.2)
 *
 * in which every output is a sum over all heads. */
#include "multihead.h"
#include "lab_private.h"
#include "labs.h"
#include "ops.h"

#include <math.h>

enum { H = 4, T = 12, C = 32, WIDTH = C / H };

static mg_tensor *normal(const mg_lab *lab, mg_tape *tape, uint32_t step, double std, int ndim, const ptrdiff_t *dim) {
    mg_tensor *x = mg_leaf(tape, ndim, dim);
    mg_rng rng = {lab_asked(lab)->seed, MG_STREAM_LAB, step};
    for (ptrdiff_t i = 0; i < mg_size(x); i++) x->data[i] = (mg_real)(std * mg_rng_normal(rng, (uint64_t)i));
    return x;
}

static mg_attention_options causal(int n_head) {
    return (mg_attention_options){.n_head = n_head, .scale = (mg_real)(1 / sqrt((double)C / H))};
}

/* ---- Several heads are several attentions ---- */

/* q, k and v of one head, side by side: (1,T,3·WIDTH). */
static mg_tensor *head_alone(mg_tape *tape, mg_tensor *qkv, int h) {
    mg_tensor *parts[3];
    for (int i = 0; i < 3; i++) parts[i] = mg_slice(tape, qkv, 2, i * C + h * WIDTH, i * C + (h + 1) * WIDTH);
    return mg_concat(tape, 3, parts, 2);
}

static void check_concatenation(mg_lab *lab, mg_tape *tape, mg_tensor *qkv) {
    mg_attention_options together = causal(H), alone = causal(1);
    const mg_tensor *all = mg_attention(tape, qkv, &together);
    mg_tensor *one[H];
    for (int h = 0; h < H; h++) one[h] = mg_attention(tape, head_alone(tape, qkv, h), &alone);
    const mg_tensor *joined = mg_concat(tape, H, one, 2);
    double largest = 0;
    for (ptrdiff_t i = 0; i < mg_size(all); i++)
        largest = lab_larger(largest, fabs((double)all->data[i] - (double)joined->data[i]));
    lab_check_below(lab, "attention of 4 heads, against 4 attentions of one head side by side", largest, 1e-5, "");
}

/* ---- Who hears whom ---- */

static double largest_gradient(const mg_tensor *qkv, int head) {
    double largest = 0;
    for (ptrdiff_t t = 0; t < T; t++)
        for (int part = 0; part < 3; part++)
            for (int i = 0; i < WIDTH; i++) {
                double g = (double)qkv->grad[t * 3 * C + part * C + head * WIDTH + i];
                largest = lab_larger(largest, fabs(g));
            }
    return largest;
}

/* matrix[a][b]: the largest |d (slice a of y) / d (slice b of q, k, v)|, y weighted at random and summed. */
static void gradients_by_slice(mg_lab *lab, mg_tape *tape, mg_tensor *qkv, mg_tensor *y, mg_real matrix[H * H]) {
    mg_tensor *weights = normal(lab, tape, 11, 1, 3, (ptrdiff_t[]){1, T, WIDTH});
    for (int a = 0; a < H; a++) {
        /* Spoilt: a slice that begins half a head too late or, for the last one, too early. */
        ptrdiff_t begin = a * WIDTH + (lab_broken("multihead.slice") ? (a < H - 1 ? WIDTH : -WIDTH) / 2 : 0);
        mg_tensor *slice = mg_slice(tape, y, 2, begin, begin + WIDTH);
        for (ptrdiff_t i = 0; i < mg_size(qkv); i++)
            if (qkv->grad) qkv->grad[i] = 0; /* a leaf's gradient adds up from call to call */
        mg_backward(tape, mg_sum(tape, mg_mul(tape, slice, weights), MG_ALL_AXES));
        for (int b = 0; b < H; b++) matrix[a * H + b] = (mg_real)largest_gradient(qkv, b);
    }
}

static void check_wiring(mg_lab *lab, const mg_real *before, const mg_real *after) {
    double crossed = 0, own = INFINITY, joined = INFINITY;
    for (int a = 0; a < H; a++)
        for (int b = 0; b < H; b++) {
            joined = lab_smaller(joined, (double)after[a * H + b]);
            if (a == b)
                own = lab_smaller(own, (double)before[a * H + b]);
            else
                crossed = lab_larger(crossed, (double)before[a * H + b]);
        }
    lab_check_zero(lab, "before W^O: largest gradient of a head's output in another head's slice", crossed, "");
    lab_check_above(lab, "before W^O: smallest of the largest gradients in its own slice", own, 1e-3, "");
    lab_check_above(lab, "after W^O: smallest of the largest gradients, any slice in any head's", joined, 1e-4, "");
}

static void wiring(mg_lab *lab) {
    mg_tape *tape;
    mg_tape_new(&tape, NULL);
    lab_need_memory(tape, "a tape");
    mg_tensor *qkv = normal(lab, tape, 10, 1, 3, (ptrdiff_t[]){1, T, 3 * C});
    mg_tensor *w_o = normal(lab, tape, 12, 1 / sqrt(C), 2, (ptrdiff_t[]){C, C});
    mg_attention_options options = causal(H);
    mg_tensor *heads = mg_attention(tape, qkv, &options);
    mg_real before[H * H], after[H * H];
    gradients_by_slice(lab, tape, qkv, heads, before);
    gradients_by_slice(lab, tape, qkv, mg_linear(tape, heads, w_o, NULL), after);
    check_concatenation(lab, tape, qkv);
    mg_tape_free(tape);
    check_wiring(lab, before, after);

    lab_heatmap *map = lab_heatmap_begin(
        lab, "wiring", "Which slice of q, k, v reaches which slice of the output",
        (lab_scale){
            .unit = "gradient", .log = true, .numbers = true, .rows = "output slice", .columns = "slice of q, k, v"});
    lab_heatmap_panel(map, (lab_panel){.title = "before W^O", .n_rows = H, .n_columns = H, .values = before});
    lab_heatmap_panel(map, (lab_panel){.title = "after W^O", .n_rows = H, .n_columns = H, .values = after});
    lab_heatmap_end(map,
                    "Each cell is the largest gradient. Before W^O heads cannot see each other: off the diagonal it "
                    "must be exactly 0. After it every output is made of all heads, and no cell should be 0.");
}

/* ---- All of it ---- */

mg_status lab_multihead(mg_lab *lab, mg_error *error) {
    lab_hypothesis(lab,
                   "Before W^O, a head's output depends on its own slice of q, k and v and on nothing else; after it, "
                   "on all.");
    lab_hypothesis(lab, "One head has one set of weights per query. Where two different places must be told apart by a "
                        "linear reader, two heads can do it and one cannot, at the same number of parameters.");
    lab_hypothesis(lab,
                   "Where a linear reader follows at once, W^O adds nothing that can be said: two matrices in a row "
                   "are one. How fast it is learned may differ.");
    lab_guess(lab, "one", "%", "Two symbols are asked for at once. What share of its answers does one head get right?");
    lab_guess(lab, "two", "%", "And two heads, of the same total width?");
    lab_exercise(lab,
                 "One head may weigh its two places 2/3 and 1/3. Why does that not help a linear reader to name both, "
                 "and why does it help an MLP?");
    lab_exercise(lab, "Ask for three distances instead of two. How many heads does it take?");
    lab_exercise(lab,
                 "In a GPT the residual stream follows the heads. What does a model without W^O lose there? Train one "
                 "with --no-output-projection.");
    lab_source(lab, "Vaswani et al. 2017, Attention is all you need, section 3.2.2: multi-head attention.");
    lab_source(lab, "Michel, Levy & Neubig 2019, Are sixteen heads really better than one?");
    lab_source(lab,
               "Elhage et al. 2021, A mathematical framework for transformer circuits: heads are independent and add "
               "up.");
    mg_status status = lab_begin(lab, error);
    if (status) return status;
    wiring(lab);
    return lab_multihead_task(lab, error);
}
