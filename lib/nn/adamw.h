/* AdamW (Loshchilov & Hutter 2019, algorithm 2) and the schedule of its learning rate. */
#ifndef MASKGRAD_ADAMW_H
#define MASKGRAD_ADAMW_H

#include "params.h"

typedef struct mg_adamw {
    mg_real *m, *v; /* first and second moments, laid out as the parameters' block */
    ptrdiff_t size;
    int64_t step; /* updates done */
    double beta1, beta2, eps, weight_decay;
} mg_adamw;

/* For these parameters, or others with the same shapes; eps is 1e-8. MG_ERR_INPUT for a beta outside [0, 1) or a
 * negative weight decay, MG_ERR_MEMORY; *adamw is NULL then. */
MG_API mg_status mg_adamw_new(mg_adamw **adamw, const mg_params *params, double beta1, double beta2,
                              double weight_decay, mg_error *error);
MG_API void mg_adamw_free(mg_adamw *adamw);
/* One update from params->grads times grad_scale (used for clipping), with decoupled weight decay on the parameters
 * that decay. Clears the gradients in the same pass. */
MG_API void mg_adamw_step(mg_adamw *adamw, mg_params *params, double lr, double grad_scale);
/* min(1, max_norm / norm); max_norm 0 is off. */
MG_API double mg_clip_scale(double norm, double max_norm);

/* Linear warm-up, then half a cosine from lr to min_lr, then min_lr (Loshchilov & Hutter 2017, eq. 5). */
typedef struct mg_lr_schedule {
    double lr, min_lr;
    int64_t warmup_iters, decay_iters;
} mg_lr_schedule;

/* ---- Not installed: between maskgrad's own files ---- */
double mg_lr_at(const mg_lr_schedule *schedule, int64_t step);

#ifndef MG_LIBRARY /* whose line a failure names: error.h */
MG_CALLED(mg_status, mg_adamw_new, (adamw, params), (adamw, params, beta1, beta2, weight_decay, error),
          mg_adamw **adamw, const mg_params *params, double beta1, double beta2, double weight_decay, mg_error *error)
MG_CALLED_VOID(mg_adamw_step, (adamw, params), (adamw, params, lr, grad_scale), mg_adamw *adamw, mg_params *params,
               double lr, double grad_scale)
#define mg_adamw_new(...) MG_AT(mg_adamw_new, __VA_ARGS__)
#define mg_adamw_step(...) MG_AT(mg_adamw_step, __VA_ARGS__)
#endif

#endif
