#define _GNU_SOURCE
#include "bench_measure.h"
#include "gemm.h"
#include "generator.h"
#include "kv_cache.h"
#include "parallel.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *x, int n) {
    qsort(x, (size_t)n, sizeof *x, compare);
    return n % 2 ? x[n / 2] : 0.5 * (x[n / 2 - 1] + x[n / 2]);
}

/* The numbers that a token multiplies: matrices, and the head (which is the token embedding again). */
static double matrix_numbers(const mg_gpt_config *c) {
    double C = c->n_embd, projection = c->no_output_projection ? 0 : 1;
    return c->n_layer * (11 + projection) * C * C + (double)c->vocab_size * C;
}

double bench_flops(const mg_gpt_config *c, ptrdiff_t T) {
    return 2 * matrix_numbers(c) + 2.0 * c->n_layer * c->n_embd * (double)(T + 1);
}

/* ---- What the machine can do ---- */

enum { PEAK = 1024 };

typedef struct peak_job {
    mg_real *memory; /* three matrices per thread */
} peak_job;

static void peak_tile(void *context, ptrdiff_t tile, void *workspace) {
    (void)workspace;
    mg_real *a = ((peak_job *)context)->memory + tile * 3 * PEAK * PEAK, *b = a + PEAK * PEAK, *c = b + PEAK * PEAK;
    mg_gemm(PEAK, PEAK, PEAK, 1, (mg_matrix){a, PEAK, false}, (mg_matrix){b, PEAK, false}, 0, c, PEAK);
}

mg_status bench_peak(bench_result *r, mg_error *error) {
    int threads = mg_threads();
    size_t n = (size_t)threads * 3 * PEAK * PEAK;
    peak_job job = {mg_alloc(n, sizeof(mg_real), "the matrices of the peak", error)};
    if (!job.memory) return MG_ERR_MEMORY;
    for (size_t i = 0; i < n; i++) job.memory[i] = (mg_real)(i % 7);
    for (int repeat = 0; repeat < 6; repeat++) {
        double begin = now();
        mg_parallel(threads, peak_tile, &job, 0);
        double rate = threads * 2.0 * PEAK * PEAK * PEAK / (now() - begin) * 1e-9;
        if (repeat > 0 && rate > r->peak_gflops) r->peak_gflops = rate;
    }
    mg_free(job.memory);
    return MG_OK;
}

typedef struct gemv_job {
    const mg_real *matrix, *x;
    mg_real *y;
    ptrdiff_t rows, columns, tile;
} gemv_job;

static void gemv_tile(void *context, ptrdiff_t tile, void *workspace) {
    (void)workspace;
    const gemv_job *j = context;
    mg_range r = mg_tile_range(j->rows, j->tile, tile);
    mg_matrix a = {j->matrix + r.begin * j->columns, j->columns, true};
    mg_gemm(1, r.end - r.begin, j->columns, 1, (mg_matrix){j->x, j->columns, false}, a, 0, j->y + r.begin,
            r.end - r.begin);
}

/* Seconds to read a matrix of `numbers` numbers once, one matrix-vector product per thread: the best of several. */
static mg_status measure_gemv(const mg_gpt_config *c, double *seconds, mg_error *error) {
    gemv_job j = {.columns = c->n_embd, .rows = (ptrdiff_t)(matrix_numbers(c) / c->n_embd)};
    j.tile = mg_tile_count(j.rows, mg_threads());
    mg_real *memory = mg_alloc((size_t)(j.rows * j.columns + j.columns + j.rows), sizeof(mg_real),
                               "a matrix as large as the model", error);
    if (!memory) return MG_ERR_MEMORY;
    memset(memory, 0, (size_t)(j.rows * j.columns + j.columns + j.rows) * sizeof(mg_real));
    j.matrix = memory;
    j.x = memory + j.rows * j.columns;
    j.y = memory + j.rows * j.columns + j.columns;
    *seconds = INFINITY;
    double begin = now();
    for (int repeat = 0; repeat < 1000 && (repeat < 8 || now() - begin < 0.3); repeat++) {
        double start = now();
        mg_parallel(mg_tile_count(j.rows, j.tile), gemv_tile, &j, 0);
        *seconds = fmin(*seconds, now() - start);
    }
    mg_free(memory);
    return MG_OK;
}

/* ---- Training ---- */

typedef struct training {
    mg_gpt *gpt;
    mg_adamw *adamw;
    mg_tape *tape;
    int *ids, *targets;
    ptrdiff_t B, T;
    double optimizer_seconds;
} training;

static void one_step(training *t) {
    mg_params *params = mg_gpt_params(t->gpt);
    mg_tensor *loss = mg_gpt_loss(t->gpt, t->tape, t->ids, t->targets, t->B, t->T, NULL, NULL);
    mg_backward(t->tape, loss);
    mg_tape_reset(t->tape);
    double begin = now();
    mg_adamw_step(t->adamw, params, 1e-4, mg_clip_scale(mg_params_grad_norm(params), 1));
    t->optimizer_seconds += now() - begin;
}

static mg_status training_init(training *t, const mg_gpt_config *config, ptrdiff_t batch, mg_error *error) {
    *t = (training){.B = batch, .T = config->block_size};
    mg_status status = mg_gpt_new(&t->gpt, config, 1337, error);
    if (status) return status;
    status = mg_adamw_new(&t->adamw, mg_gpt_params(t->gpt), 0.9, 0.95, 0.1, error);
    if (status) return status;
    size_t n = (size_t)(t->B * t->T);
    mg_tape_new(&t->tape, error);
    t->ids = mg_alloc(n, sizeof(int), "a batch", error);
    t->targets = mg_alloc(n, sizeof(int), "a batch", error);
    if (!t->tape || !t->ids || !t->targets) return MG_ERR_MEMORY;
    mg_tape_recycle_gradients(t->tape, true);
    mg_rng rng = {1337, MG_STREAM_BATCH, 0};
    for (size_t i = 0; i < n; i++) {
        t->ids[i] = (int)mg_rng_below(rng, 2 * i, (uint64_t)config->vocab_size);
        t->targets[i] = (int)mg_rng_below(rng, 2 * i + 1, (uint64_t)config->vocab_size);
    }
    return MG_OK;
}

static void training_free(training *t) {
    mg_gpt_free(t->gpt);
    mg_adamw_free(t->adamw);
    mg_tape_free(t->tape);
    mg_free(t->ids);
    mg_free(t->targets);
}

enum { MOST_STEPS = 2000 };

static mg_status measure_training(training *t, int steps, bench_result *r, mg_error *error) {
    double seconds[MOST_STEPS], warm = now();
    for (int i = 0; i < 3; i++) one_step(t);
    warm = (now() - warm) / 3;
    if (steps <= 0) steps = (int)fmin(MOST_STEPS, fmax(5, 3 / warm));
    if (steps > MOST_STEPS) steps = MOST_STEPS;
    mg_status status = MG_OK;
    for (int i = 0; i < steps; i++) {
        /* Other programs come and go: the best that the machine can do is looked for among the steps, too. */
        if (i == 0 || i == steps / 2) status = bench_peak(r, error);
        if (status) return status;
        double begin = now();
        one_step(t);
        seconds[i] = now() - begin;
    }
    double per_step = median(seconds, steps);
    const mg_gpt_config *config = mg_gpt_get_config(t->gpt);
    double tokens = (double)(t->B * t->T);
    r->train = (bench_phase){"train", per_step, tokens / per_step, 3 * tokens * bench_flops(config, t->T), NAN};
    r->profile_steps = steps < 50 ? steps : 50;
    t->optimizer_seconds = 0;
    for (int i = 0; i < r->profile_steps; i++) {
        mg_tape_profile(t->tape, &r->profile);
        one_step(t);
        mg_tape_profile(t->tape, NULL);
    }
    r->optimizer_seconds = t->optimizer_seconds / r->profile_steps;
    r->parameter_bytes = (size_t)mg_gpt_params(t->gpt)->size * sizeof(mg_real);
    r->optimizer_bytes = 3 * r->parameter_bytes; /* gradients and two moments */
    r->activation_bytes = mg_tape_bytes(t->tape);
    return MG_OK;
}

/* ---- Generating ---- */

static int largest(const mg_real *logits, int n) {
    int best = 0;
    for (int i = 1; i < n; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

/* n greedy tokens from token 0, with the cache or, without one, by reading the whole text again for each. */
static void generate(mg_gpt *gpt, mg_tape *tape, mg_kv_cache *cache, int *ids, ptrdiff_t n) {
    int V = mg_gpt_get_config(gpt)->vocab_size;
    ids[0] = 0;
    if (cache) mg_kv_cache_clear(cache);
    for (ptrdiff_t i = 0; i < n; i++) {
        mg_gpt_pass pass = {.cache = cache ? &cache : NULL, .last_only = true};
        mg_tensor *logits = mg_gpt_forward(gpt, tape, cache ? ids + i : ids, 1, cache ? 1 : i + 1, &pass);
        ids[i + 1] = largest(logits->data, V);
        mg_tape_reset(tape);
    }
}

static bench_phase measure_generation(mg_gpt *gpt, mg_tape *tape, mg_kv_cache *cache, int *ids, ptrdiff_t n,
                                      double bound) {
    enum { MOST = 64 };
    double seconds[MOST], begin = now();
    int runs = 0;
    generate(gpt, tape, cache, ids, n);
    do {
        double start = now();
        generate(gpt, tape, cache, ids, n);
        seconds[runs++] = (now() - start) / (double)n;
    } while (runs < MOST && now() - begin < 1.5);
    double per_token = median(seconds, runs), flops = 0;
    for (ptrdiff_t i = 0; i < n; i++) /* a token at position i reads i + 1 keys: twice the mean of a window that long */
        flops += bench_flops(mg_gpt_get_config(gpt), 2 * i + 1) / (double)n;
    return (bench_phase){cache ? "generate_cached" : "generate_uncached", per_token, 1 / per_token, flops, bound};
}

/* 64 samples of n greedy tokens each, one pass per token for all. */
enum { N_SAMPLES = 64 };

static bool ignore(uint32_t sample, int id, void *user) {
    (void)sample, (void)id, (void)user;
    return true;
}

static mg_status measure_samples(mg_gpt *gpt, ptrdiff_t n, bench_phase *phase, mg_error *error) {
    enum { MOST = 64 };
    static const mg_sampler greedy;
    double seconds[MOST], begin = now(), tokens = (double)(N_SAMPLES * n), flops = 0;
    int runs = 0;
    mg_generator *generator;
    mg_status status = mg_generator_new(&generator, gpt, INT_MAX, true, error);
    if (status) return status;
    mg_generator_prompt(generator, (int[]){0}, 1);
    do {
        double start = now();
        status = mg_generate_samples(generator, &greedy, 0, 0, N_SAMPLES, n, ignore, NULL, error);
        seconds[runs++] = (now() - start) / tokens;
    } while (!status && runs < MOST && now() - begin < 1.5);
    mg_generator_free(generator);
    double per_token = median(seconds, runs);
    for (ptrdiff_t i = 0; i < n; i++) flops += bench_flops(mg_gpt_get_config(gpt), 2 * i + 1) / (double)n;
    *phase = (bench_phase){"generate_64", per_token, 1 / per_token, flops, NAN};
    return status;
}

mg_status bench_generation(mg_gpt *gpt, bench_result *r, mg_error *error) {
    const mg_gpt_config *config = mg_gpt_get_config(gpt);
    ptrdiff_t n = matrix_numbers(config) < 1e8 ? 255 : 63; /* without a cache, a large model takes long */
    if (n > config->block_size - 1) n = config->block_size > 1 ? config->block_size - 1 : 1;
    double gemv;
    mg_status status = measure_gemv(config, &gemv, error);
    if (status) return status;
    r->gemv_gb_per_second = matrix_numbers(config) * sizeof(mg_real) / gemv * 1e-9;
    mg_tape *tape;
    mg_tape_new(&tape, error);
    int *ids = mg_alloc((size_t)n + 1, sizeof(int), "a text", error);
    mg_kv_cache *cache = NULL;
    status = tape && ids ? MG_OK : MG_ERR_MEMORY;
    if (!status && mg_gpt_is_causal(config)) status = mg_kv_cache_new(&cache, mg_gpt_get_config(gpt), error);
    if (!status) {
        mg_tape_record(tape, false);
        if (cache) r->cached = measure_generation(gpt, tape, cache, ids, n, 1 / gemv);
        if (cache) status = measure_samples(gpt, n, &r->samples, error);
        r->uncached = measure_generation(gpt, tape, NULL, ids, n, NAN);
    }
    mg_kv_cache_free(cache);
    mg_free(ids);
    mg_tape_free(tape);
    return status;
}

mg_status bench_run(const mg_gpt_config *config, ptrdiff_t batch, int steps, bench_result *r, mg_error *error) {
    *r = (bench_result){0};
    training t = {0};
    mg_status status = training_init(&t, config, batch, error);
    if (!status) status = bench_peak(r, error);
    if (!status) status = measure_training(&t, steps, r, error);
    if (!status) status = bench_peak(r, error);
    if (!status) status = bench_generation(t.gpt, r, error);
    training_free(&t);
    return status;
}
