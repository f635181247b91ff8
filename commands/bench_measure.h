/* What `maskgrad bench` measures: time against work, compared with this machine's best, in the same run. */
#ifndef MASKGRAD_BENCH_H
#define MASKGRAD_BENCH_H

#include "adamw.h"
#include "gpt.h"
#include "operation.h"

/* One way to spend time, measured. */
typedef struct bench_phase {
    const char *name; /* "train", "generate_cached", … */
    double seconds;   /* of one step, or of one token: the median */
    double tokens_per_second;
    double flops; /* useful ones, per step or token: what masked attention does not compute is not counted */
    double bound; /* tokens/s that this machine's best product would reach; NaN: not measured */
} bench_phase;

typedef struct bench_result {
    /* cached and samples (64 at once) have no name if the model looks ahead: a cache would be wrong */
    bench_phase train, cached, samples, uncached;
    /* Of 1024³ products, one per thread at the same time: the best before, among and after the steps. */
    double peak_gflops;
    double gemv_gb_per_second; /* how fast a matrix-vector product reads a matrix as large as the model */
    size_t parameter_bytes, optimizer_bytes, activation_bytes;
    mg_profile profile; /* of profile_steps steps */
    int profile_steps;
    double optimizer_seconds; /* per step: norm, clipping and AdamW */
} bench_result;

/* Useful floating-point operations of one token in a window of T, forward: 2 per matrix parameter, and 2C(T+1) per
 * layer for the causal half of q·k and of the weighted sum. Training costs three times that. */
double bench_flops(const mg_gpt_config *config, ptrdiff_t T);

/* steps 0: as many as fill about three seconds. */
mg_status bench_run(const mg_gpt_config *config, ptrdiff_t batch, int steps, bench_result *result, mg_error *error);
/* Only peak_gflops, or what it was if that is larger. */
mg_status bench_peak(bench_result *result, mg_error *error);
/* Only the two generating phases, on an existing model. */
mg_status bench_generation(mg_gpt *gpt, bench_result *result, mg_error *error);

#endif
