/*     m ← β1 m + (1 − β1) g        v ← β2 v + (1 − β2) g²
 *     θ ← θ − lr · λ θ             on parameters that decay
 *     θ ← θ − lr · (m / (1 − β1ᵗ)) / (√(v / (1 − β2ᵗ)) + eps)
 *
 * Loshchilov & Hutter 2019, algorithm 2, as PyTorch's AdamW orders it: decay first, eps outside the square root.
 * Whatever is the same for all elements is computed in double and rounded once: 1 − β from β rounded to float would be
 * far off for a β close to 1. */
#include "adamw.h"
#include "parallel.h"
#include "simd.h"

static mg_status check(double beta1, double beta2, double weight_decay, mg_error *error) {
    if (!(beta1 >= 0 && beta1 < 1) || !(beta2 >= 0 && beta2 < 1))
        return mg_error_set(error, MG_ERR_INPUT, "beta1 is %g and beta2 %g; both must be at least 0 and below 1", beta1,
                            beta2);
    if (!(weight_decay >= 0 && weight_decay < INFINITY))
        return mg_error_set(error, MG_ERR_INPUT, "weight_decay is %g; it must be 0 or a positive number", weight_decay);
    return MG_OK;
}

mg_status mg_adamw_new(mg_adamw **adamw, const mg_params *params, double beta1, double beta2, double weight_decay,
                       mg_error *error) {
    *adamw = NULL;
    mg_status status = check(beta1, beta2, weight_decay, error);
    if (status != MG_OK) return status;
    mg_adamw *made = mg_alloc_zero(1, sizeof *made, "AdamW", error);
    if (!made) return MG_ERR_MEMORY;
    *made = (mg_adamw){.size = params->size, .beta1 = beta1, .beta2 = beta2, .eps = 1e-8, .weight_decay = weight_decay};
    made->m = mg_alloc_zero((size_t)params->size, sizeof(mg_real), "AdamW's first moments", error);
    made->v = mg_alloc_zero((size_t)params->size, sizeof(mg_real), "AdamW's second moments", error);
    if (made->m && made->v)
        *adamw = made;
    else
        mg_adamw_free(made);
    return *adamw ? MG_OK : MG_ERR_MEMORY;
}

void mg_adamw_free(mg_adamw *adamw) {
    if (!adamw) return;
    mg_free(adamw->m);
    mg_free(adamw->v);
    mg_free(adamw);
}

/* A moment's β as the sum of two mg_reals, and 1 − β. */
typedef struct decay {
    mg_real high, low, rest;
} decay;

static decay decay_of(double beta) {
    mg_real high = (mg_real)beta;
    return (decay){high, (mg_real)(beta - (double)high), (mg_real)(1 - beta)};
}

/* β moment + (1 − β) x */
MG_INLINE mg_real decayed(decay d, mg_real moment, mg_real x) {
    return d.high * moment + (d.low * moment + d.rest * x);
}

/* 1 − βᵗ */
static double correction(double beta, int64_t step) {
    return -mg_expm1_double((double)step * mg_log_double(beta));
}

typedef struct job {
    mg_adamw *adamw;
    mg_params *params;
    decay first, second;                                         /* of m, of v */
    mg_real grad_scale, step_size, root_correction, eps, shrink; /* shrink: lr · λ */
} job;

MG_KERNEL static void update(const job *j, ptrdiff_t n, mg_real shrink, mg_real *restrict value, mg_real *restrict grad,
                             mg_real *restrict m, mg_real *restrict v) {
    decay first = j->first, second = j->second;
    mg_real grad_scale = j->grad_scale, eps = j->eps, step_size = j->step_size, root_correction = j->root_correction;
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++) {
        mg_real g = grad[i] * grad_scale;
        grad[i] = 0;
        m[i] = decayed(first, m[i], g);
        v[i] = decayed(second, v[i], g * g);
        value[i] -= shrink * value[i] + step_size * m[i] / (mg_sqrt_real(v[i]) * root_correction + eps);
    }
}

enum { TILE = 16384 };

/* A tile may hold several parameters, of which some decay and some do not. */
static void update_tile(void *context, ptrdiff_t tile, void *workspace) {
    (void)workspace;
    const job *j = context;
    mg_params *params = j->params;
    mg_range r = mg_tile_range(params->size, TILE, tile);
    int low = 0, high = params->n; /* the last parameter that starts at or before r.begin */
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (params->param[middle].offset <= r.begin)
            low = middle;
        else
            high = middle;
    }
    for (int i = low; i < params->n && params->param[i].offset < r.end; i++) {
        ptrdiff_t begin = params->param[i].offset, end = i + 1 < params->n ? params->param[i + 1].offset : params->size;
        if (begin < r.begin) begin = r.begin;
        if (end > r.end) end = r.end;
        update(j, end - begin, params->param[i].decay ? j->shrink : 0, params->values + begin, params->grads + begin,
               j->adamw->m + begin, j->adamw->v + begin);
    }
}

void mg_adamw_step(mg_adamw *adamw, mg_params *params, double lr, double grad_scale) {
    MG_CHECK(adamw->size == params->size, "adamw: it was made for a block of %td parameters, not of %td", adamw->size,
             params->size);
    MG_CHECK(params->grads, "adamw: these parameters were made without gradients");
    adamw->step++;
    job j = {.adamw = adamw, .params = params, .grad_scale = (mg_real)grad_scale, .eps = (mg_real)adamw->eps};
    j.first = decay_of(adamw->beta1);
    j.second = decay_of(adamw->beta2);
    j.step_size = (mg_real)(lr / correction(adamw->beta1, adamw->step));
    j.root_correction = (mg_real)(1 / sqrt(correction(adamw->beta2, adamw->step)));
    j.shrink = (mg_real)(lr * adamw->weight_decay);
    mg_parallel(mg_tile_count(params->size, TILE), update_tile, &j, 0);
}

double mg_clip_scale(double norm, double max_norm) {
    return max_norm > 0 && norm > max_norm ? max_norm / norm : 1;
}

double mg_lr_at(const mg_lr_schedule *s, int64_t step) {
    if (step < s->warmup_iters) return s->lr * (double)(step + 1) / (double)(s->warmup_iters + 1);
    if (step >= s->decay_iters) return s->min_lr;
    double progress = (double)(step - s->warmup_iters) / (double)(s->decay_iters - s->warmup_iters);
    return s->min_lr + 0.5 * (1 + mg_cos_double(3.14159265358979323846 * progress)) * (s->lr - s->min_lr);
}
