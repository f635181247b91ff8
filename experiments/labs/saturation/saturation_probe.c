/* Lab saturation, inside a model: its rows, and the gradient on its way through the softmax. */
#include "attention.h"
#include "saturation.h"
#include "scores.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static double norm_of_columns(const mg_tensor *w, ptrdiff_t from, ptrdiff_t to) {
    double sum = 0;
    for (ptrdiff_t i = 0; i < w->dim[0]; i++)
        for (ptrdiff_t j = from; j < to; j++) {
            double g = (double)w->grad[i * w->dim[1] + j];
            sum += g * g;
        }
    return sqrt(sum);
}

/* Where the query, key and value of a head are in a row of 3C, and how long they are. */
typedef struct head_slice {
    ptrdiff_t C, d_k, begin;
} head_slice;

/* One row of one head: with p its weights and g = d loss / d output, dP_j = g · v_j and, through the Jacobian,
 * dS_j = p_j (dP_j − Σ_k p_k dP_k). qkv (T, 3C) is that of the window. */
static void score_gradient(const head_slice *h, const mg_real *p, const mg_real *g, const mg_real *qkv,
                           ptrdiff_t visible, double *ds) {
    double mean = 0;
    for (ptrdiff_t j = 0; j < visible; j++) {
        const mg_real *value = qkv + j * 3 * h->C + 2 * h->C + h->begin;
        ds[j] = 0;
        for (ptrdiff_t k = 0; k < h->d_k; k++) ds[j] += (double)g[k] * (double)value[k];
        mean += (double)p[j] * ds[j];
    }
    for (ptrdiff_t j = 0; j < visible; j++) ds[j] = (double)p[j] * (ds[j] - mean);
}

/* |scale · Σ_j dS_j k_j − the tape's gradient of q|², and |the tape's|² into *size. */
static double query_error(const head_slice *h, const double *ds, ptrdiff_t visible, double scale, const mg_real *qkv,
                          const mg_real *dq, double *size) {
    double error = 0;
    for (ptrdiff_t k = 0; k < h->d_k; k++) {
        double sum = 0;
        for (ptrdiff_t j = 0; j < visible; j++) sum += scale * ds[j] * (double)qkv[j * 3 * h->C + h->C + h->begin + k];
        error += (sum - (double)dq[k]) * (sum - (double)dq[k]);
        *size += (double)dq[k] * (double)dq[k];
    }
    return error;
}

static double largest_of(ptrdiff_t n, const mg_real *p) {
    double most = 0;
    for (ptrdiff_t j = 0; j < n; j++) most = lab_larger(most, (double)p[j]);
    return most;
}

/* Sums over the rows of one head of one window; the models are causal. */
typedef struct row_sums {
    double entropy, saturated, jacobian, scores, error, size;
} row_sums;

static void look_at_head(const saturation_probes *p, const mg_gpt_capture *capture, const mg_gpt_config *c, int layer,
                         int head, ptrdiff_t window, row_sums *to) {
    const mg_tensor *qkv = capture->qkv[layer], *heads = capture->heads[layer];
    ptrdiff_t T = p->T, C = c->n_embd, d_k = C / c->n_head;
    head_slice h = {C, d_k, head * d_k};
    double scale = c->no_scale ? 1 : 1 / sqrt((double)d_k);
    const mg_real *of_window = qkv->data + window * T * 3 * C;
    const mg_real *map = capture->weights + ((layer * SATURATION_PROBE + window) * c->n_head + head) * T * T;
    for (ptrdiff_t i = 0; i < T; i++) {
        ptrdiff_t token = window * T + i, visible = mg_visible(mg_lookahead(0), i, T).end;
        const mg_real *weights = map + i * T;
        if (visible > 1) {
            to->entropy += lab_entropy(visible, weights) / log((double)visible);
            to->saturated += largest_of(visible, weights) > 0.99;
            to->jacobian += lab_jacobian(visible, weights);
        }
        score_gradient(&h, weights, heads->grad + token * C + h.begin, of_window, visible, p->ds);
        for (ptrdiff_t j = 0; j < visible; j++) to->scores += p->ds[j] * p->ds[j];
        to->error += query_error(&h, p->ds, visible, scale, of_window, qkv->grad + token * 3 * C + h.begin, &to->size);
    }
}

static saturation_numbers look_at_layer(const saturation_probes *p, const mg_gpt_capture *capture, mg_gpt *gpt,
                                        int layer) {
    const mg_gpt_config *c = mg_gpt_get_config(gpt);
    ptrdiff_t C = c->n_embd;
    row_sums sums = {0};
    for (ptrdiff_t window = 0; window < SATURATION_PROBE; window++)
        for (int head = 0; head < c->n_head; head++) look_at_head(p, capture, c, layer, head, window, &sums);
    double rows = (double)(SATURATION_PROBE * c->n_head * (p->T - 1));
    char name[MG_PARAM_NAME];
    snprintf(name, sizeof name, "h.%d.attn.c_attn.weight", layer);
    const mg_tensor *w = &mg_params_find(mg_gpt_params(gpt), name)->tensor;
    return (saturation_numbers){.entropy = sums.entropy / rows,
                                .saturated = sums.saturated / rows,
                                .jacobian = sums.jacobian / rows,
                                .scores = sqrt(sums.scores),
                                .w_q = norm_of_columns(w, 0, C),
                                .w_k = norm_of_columns(w, C, 2 * C),
                                .w_v = norm_of_columns(w, 2 * C, 3 * C),
                                .tape_error = sqrt(sums.error / sums.size)};
}

static void probe(mg_lab *lab, const saturation_probes *p, mg_gpt *gpt, saturation_numbers *to) {
    const mg_gpt_config *c = mg_gpt_get_config(gpt);
    size_t places = (size_t)(c->n_layer * c->n_head * SATURATION_PROBE) * (size_t)(p->T * p->T);
    mg_real *weights = malloc(places * sizeof *weights);
    lab_need_memory(weights, "attention maps");
    mg_tape *tape;
    mg_tape_new(&tape, NULL);
    lab_need_memory(tape, "a tape");
    mg_tensor **qkv = lab_memory(lab, (size_t)c->n_layer, sizeof(mg_tensor *));
    mg_tensor **heads = lab_memory(lab, (size_t)c->n_layer, sizeof(mg_tensor *));
    mg_gpt_capture capture = {.weights = weights, .qkv = qkv, .heads = heads};
    mg_tensor *loss = mg_gpt_loss(gpt, tape, p->ids, p->targets, SATURATION_PROBE, p->T,
                                  &(mg_gpt_pass){.capture = &capture}, NULL);
    mg_backward(tape, loss);
    for (int layer = 0; layer < c->n_layer; layer++) to[layer] = look_at_layer(p, &capture, gpt, layer);
    mg_params_zero_grad(mg_gpt_params(gpt));
    mg_tape_free(tape);
    free(weights);
}

void saturation_watch(mg_lab *lab, const lab_training *t, void *probes) {
    saturation_probes *p = probes;
    for (int i = 0; i < t->n_variants; i++)
        probe(lab, p, mg_trainer_model(t->variant[i].trainer),
              p->of[i] + (ptrdiff_t)(t->n_evaluations - 1) * p->n_layer);
}

void saturation_probe_prepare(mg_lab *lab, saturation_probes *p, const mg_corpus *corpus, const mg_run_options *run,
                              int n_models) {
    *p = (saturation_probes){.T = run->train.model.block_size, .n_layer = run->train.model.n_layer};
    size_t most = (size_t)(run->train.max_iters / run->eval_interval) + 2;
    p->ids = lab_memory(lab, (size_t)(SATURATION_PROBE * p->T), sizeof(int));
    p->targets = lab_memory(lab, (size_t)(SATURATION_PROBE * p->T), sizeof(int));
    p->ds = lab_numbers(lab, p->T);
    mg_rng rng = {lab_asked(lab)->seed, MG_STREAM_LAB, 2};
    mg_corpus_batch(corpus, MG_VALIDATION, rng, SATURATION_PROBE, p->T, p->ids, p->targets);
    for (int i = 0; i < n_models; i++)
        p->of[i] = lab_memory(lab, most * (size_t)p->n_layer, sizeof(saturation_numbers));
}
