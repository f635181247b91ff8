/* Attention, line by line from primitives, and the same in one operation:
 *
 *     weights = softmax(mask(Q Kᵀ / √d))        output = weights V */
#include <maskgrad/maskgrad.h>

#include <math.h>
#include <stdio.h>

enum { T = 6, D = 8 };

static mg_tensor *normal(mg_tape *tape, ptrdiff_t columns) {
    mg_tensor *x = mg_leaf(tape, 2, (ptrdiff_t[]){T, columns});
    for (ptrdiff_t i = 0; i < mg_size(x); i++)
        x->data[i] = (mg_real)mg_rng_normal((mg_rng){7, MG_STREAM_LAB, 0}, (uint64_t)i);
    return x;
}

/* 1 where a key must not be seen. */
static mg_tensor *causal_mask(mg_tape *tape) {
    mg_tensor *hidden = mg_constant(tape, 2, (ptrdiff_t[]){T, T});
    for (ptrdiff_t query = 0; query < T; query++)
        for (ptrdiff_t key = mg_visible(mg_lookahead(0), query, T).end; key < T; key++)
            hidden->data[query * T + key] = 1;
    return hidden;
}

static void print_map(const mg_tensor *weights, const mg_tensor *hidden) {
    for (ptrdiff_t query = 0; query < T; query++) {
        printf("query %td ", query);
        for (ptrdiff_t key = 0; key < T; key++) {
            ptrdiff_t at = query * T + key;
            if (hidden->data[at] != 0)
                printf("    .");
            else
                printf(" %.2f", (double)weights->data[at]);
        }
        printf("\n");
    }
}

int main(void) {
    mg_error error;
    mg_tape *tape;
    if (mg_tape_new(&tape, &error)) return fprintf(stderr, "%s\n", error.message), 1;
    mg_tensor *qkv = normal(tape, 3 * D); /* queries, keys and values side by side */
    mg_tensor *q = mg_slice(tape, qkv, 1, 0, D);
    mg_tensor *k = mg_slice(tape, qkv, 1, D, 2 * D);
    mg_tensor *v = mg_slice(tape, qkv, 1, 2 * D, 3 * D);

    mg_real scale = (mg_real)(1 / sqrt((double)D));
    mg_tensor *scores = mg_scale(tape, mg_matmul(tape, q, k, false, true), scale); /* (T,T) */
    mg_tensor *hidden = causal_mask(tape);
    mg_tensor *weights = mg_softmax(tape, mg_masked_fill(tape, scores, hidden, -INFINITY));
    mg_tensor *output = mg_matmul(tape, weights, v, false, false); /* (T,D) */
    print_map(weights, hidden);

    mg_tensor *batch = mg_reshape(tape, qkv, 3, (ptrdiff_t[]){1, T, 3 * D});
    mg_tensor *fused = mg_attention(tape, batch, &(mg_attention_options){.n_head = 1});
    double apart = 0;
    for (ptrdiff_t i = 0; i < T * D; i++) apart = fmax(apart, fabs((double)output->data[i] - (double)fused->data[i]));
    printf("mg_attention agrees: %s\n", apart < 1e-5 ? "yes" : "no");

    mg_backward(tape, mg_sum(tape, mg_slice(tape, output, 0, 2, 3), MG_ALL_AXES)); /* of row 2 alone */
    printf("d output 2 / d value of token");
    for (ptrdiff_t t = 0; t < T; t++) printf(" %.2f", (double)qkv->grad[t * 3 * D + 2 * D]);
    printf("\n");
    mg_tape_free(tape);
    return 0;
}
