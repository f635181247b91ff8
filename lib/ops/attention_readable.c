/* The formulas of attention.c, one line each: for each sequence b, head h and query i, a loop over the keys j that it
 * sees. The weights are kept, (B, n_head, T, T): nothing is computed twice, and memory grows with T². */
#include "attention_readable.h"
#include "simd.h"

#include <string.h>

typedef struct plan {
    ptrdiff_t B, T, C, H, D; /* D: of a head, d_k */
    mg_real scale;
    mg_mask *mask;         /* (H) */
    mg_interval *sequence; /* (B,T), or NULL */
    mg_real *p;            /* (B,H,T,T) */
} plan;

/* qkv (B,T,3C): head h of token t's query, key and value begin at … */
static ptrdiff_t q_at(const plan *a, ptrdiff_t b, ptrdiff_t h, ptrdiff_t t) {
    return (b * a->T + t) * 3 * a->C + h * a->D;
}
static ptrdiff_t k_at(const plan *a, ptrdiff_t b, ptrdiff_t h, ptrdiff_t t) {
    return q_at(a, b, h, t) + a->C;
}
static ptrdiff_t v_at(const plan *a, ptrdiff_t b, ptrdiff_t h, ptrdiff_t t) {
    return q_at(a, b, h, t) + 2 * a->C;
}
static ptrdiff_t out_at(const plan *a, ptrdiff_t b, ptrdiff_t h, ptrdiff_t t) { /* (B,T,C) */
    return (b * a->T + t) * a->C + h * a->D;
}
static mg_real *p_of(const plan *a, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i) {
    return a->p + ((b * a->H + h) * a->T + i) * a->T;
}

static mg_interval visible(const plan *a, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i) {
    mg_interval keys = mg_visible(a->mask[h], i, a->T);
    return a->sequence ? mg_intersection(keys, a->sequence[b * a->T + i]) : keys;
}

static mg_real dot(ptrdiff_t n, const mg_real *x, const mg_real *y) {
    mg_real sum = 0;
    for (ptrdiff_t d = 0; d < n; d++) sum += x[d] * y[d];
    return sum;
}

static void add(ptrdiff_t n, mg_real factor, const mg_real *x, mg_real *to) {
    for (ptrdiff_t d = 0; d < n; d++) to[d] += factor * x[d];
}

/* p = e^(p − max) / Σ e^(p − max) */
static void softmax(ptrdiff_t n, mg_real *p) {
    mg_real max = mg_greatest(n, p), sum = 0;
    for (ptrdiff_t j = 0; j < n; j++) sum += p[j] = mg_exp_real(p[j] - max);
    for (ptrdiff_t j = 0; j < n; j++) p[j] /= sum;
}

static void forward(const plan *a, const mg_real *qkv, mg_real *out) {
    for (ptrdiff_t b = 0; b < a->B; b++)
        for (ptrdiff_t h = 0; h < a->H; h++)
            for (ptrdiff_t i = 0; i < a->T; i++) {
                mg_interval keys = visible(a, b, h, i);
                const mg_real *q = qkv + q_at(a, b, h, i);
                mg_real *p = p_of(a, b, h, i), *o = out + out_at(a, b, h, i);
                for (ptrdiff_t j = keys.first; j < keys.end; j++)
                    p[j] = a->scale * dot(a->D, q, qkv + k_at(a, b, h, j)); /* s_ij */
                softmax(keys.end - keys.first, p + keys.first);
                memset(o, 0, (size_t)a->D * sizeof *o);
                for (ptrdiff_t j = keys.first; j < keys.end; j++)
                    add(a->D, p[j], qkv + v_at(a, b, h, j), o); /* o_i = Σ_j p_ij v_j */
            }
}

static void backward(const plan *a, const mg_real *qkv, const mg_real *out, const mg_real *dout, mg_real *dqkv) {
    for (ptrdiff_t b = 0; b < a->B; b++)
        for (ptrdiff_t h = 0; h < a->H; h++)
            for (ptrdiff_t i = 0; i < a->T; i++) {
                mg_interval keys = visible(a, b, h, i);
                ptrdiff_t q = q_at(a, b, h, i);
                const mg_real *p = p_of(a, b, h, i), *o = out + out_at(a, b, h, i), *dout_i = dout + out_at(a, b, h, i);
                mg_real D = dot(a->D, dout_i, o); /* D_i = do_i · o_i */
                for (ptrdiff_t j = keys.first; j < keys.end; j++) {
                    ptrdiff_t k = k_at(a, b, h, j), v = v_at(a, b, h, j);
                    mg_real dp = dot(a->D, dout_i, qkv + v);     /* dp_ij = do_i · v_j */
                    mg_real ds = p[j] * (dp - D);                /* ds_ij = p_ij (dp_ij − D_i) */
                    add(a->D, p[j], dout_i, dqkv + v);           /* dv_j += p_ij do_i */
                    add(a->D, a->scale * ds, qkv + k, dqkv + q); /* dq_i += scale ds_ij k_j */
                    add(a->D, a->scale * ds, qkv + q, dqkv + k); /* dk_j += scale ds_ij q_i */
                }
            }
}

static void readable_backward(mg_tape *tape, const mg_node *node) {
    mg_tensor *qkv = node->in[0];
    mg_real *dqkv = mg_grad(tape, qkv);
    if (dqkv) backward(node->saved, qkv->data, node->out->data, node->out->grad, dqkv);
}

static const mg_op op = {"attention_readable", readable_backward};

mg_tensor *mg_attention_readable(mg_tape *tape, mg_tensor *qkv, const mg_attention_options *options) {
    MG_OP_CHECK(
        tape, &op, options->n_head >= 1 && qkv->ndim == 3 && qkv->dim[2] % (3 * (ptrdiff_t)options->n_head) == 0,
        "qkv is %s; it must be (B, T, 3C) with C a multiple of the %d heads", mg_shape(qkv).text, options->n_head);
    MG_OP_CHECK(tape, &op, options->scale >= 0 && options->scale < (mg_real)INFINITY,
                "the scale is %g; it must be a positive number, or 0 for 1/sqrt(d_k)", (double)options->scale);
    for (int h = 0; options->mask && h < options->n_head; h++)
        MG_OP_CHECK(tape, &op, mg_mask_is_valid(options->mask[h]), "head %d has a mask with n = %d", h,
                    options->mask[h].n);
    plan *a = mg_tape_alloc(tape, 1, sizeof *a, "attention's state");
    *a = (plan){.B = qkv->dim[0], .T = qkv->dim[1], .C = qkv->dim[2] / 3, .H = options->n_head};
    a->D = a->C / a->H;
    a->scale = mg_attention_scale(options, a->D);
    a->mask = mg_tape_alloc(tape, (size_t)a->H, sizeof *a->mask, "attention's mask");
    for (ptrdiff_t h = 0; h < a->H; h++) a->mask[h] = options->mask ? options->mask[h] : mg_lookahead(0);
    if (options->sequence) {
        size_t n = (size_t)(a->B * a->T);
        a->sequence = mg_tape_alloc(tape, n, sizeof *a->sequence, "attention's mask");
        memcpy(a->sequence, options->sequence, n * sizeof *a->sequence);
    }
    a->p = mg_tape_alloc(tape, (size_t)(a->B * a->H * a->T * a->T), sizeof(mg_real), "attention's weights");
    mg_tensor *out = mg_tape_output(tape, 3, (ptrdiff_t[]){a->B, a->T, a->C});
    forward(a, qkv->data, out->data);
    mg_tape_append(tape, &op, out, 1, &qkv, a);
    return out;
}
