#include "scores.h"
#include "parallel.h"
#include "rng.h"
#include "training.h"

#include <math.h>

enum { N = LAB_SCORE_TOKENS, DRAWS_PER_TILE = 32, MOST_DRAWS = 10000, N_QUANTITIES = 3 };

const int lab_widths[LAB_N_WIDTHS] = {4, 16, 64, 256, 1024};

/* What is measured on one row: entropy, norm of the Jacobian, saturated or not. */
typedef struct row_numbers {
    double of[N_QUANTITIES];
} row_numbers;

/* Sums over draws, of a draw's mean over its rows and of the mean's square. */
typedef struct tile_sums {
    double sum[LAB_N_SCALINGS][N_QUANTITIES], square[LAB_N_SCALINGS][N_QUANTITIES];
} tile_sums;

typedef struct job {
    uint64_t seed;
    int d_k;
    ptrdiff_t n_draws;
    double scale[LAB_N_SCALINGS];
    tile_sums *sums; /* one per tile, added up in their order afterwards */
} job;

double lab_entropy(ptrdiff_t n, const mg_real *weights) {
    double entropy = 0;
    for (ptrdiff_t j = 0; j < n; j++)
        if (weights[j] > 0) entropy -= (double)weights[j] * log((double)weights[j]);
    return entropy;
}

double lab_jacobian(ptrdiff_t n, const mg_real *weights) {
    double squares = 0, cubes = 0;
    for (ptrdiff_t j = 0; j < n; j++) {
        double p = (double)weights[j];
        squares += p * p;
        cubes += p * p * p;
    }
    return sqrt(lab_larger(0, squares - 2 * cubes + squares * squares));
}

/* J = diag(p) − p pᵀ has p_i (1 − p_i) on its diagonal and −p_i p_j beside it. */
static double jacobian_norm(const double *p) {
    double sum = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            double entry = i == j ? p[i] * (1 - p[i]) : -p[i] * p[j];
            sum += entry * entry;
        }
    return sqrt(sum);
}

static row_numbers numbers_of_row(const double *products, double scale) {
    double p[N], max = -INFINITY, sum = 0, entropy = 0, largest = 0;
    for (int j = 0; j < N; j++) max = fmax(max, products[j] * scale);
    for (int j = 0; j < N; j++) sum += p[j] = exp(products[j] * scale - max);
    for (int j = 0; j < N; j++) {
        p[j] /= sum;
        largest = fmax(largest, p[j]);
        if (p[j] > 0) entropy -= p[j] * log(p[j]);
    }
    return (row_numbers){{entropy, jacobian_norm(p), largest > 0.99}};
}

static void one_draw(const job *j, ptrdiff_t draw, float *normals, tile_sums *sums) {
    ptrdiff_t n_normals = 2 * N * (ptrdiff_t)j->d_k;
    mg_rng rng = {j->seed, MG_STREAM_LAB, (uint32_t)j->d_k};
    for (ptrdiff_t i = 0; i < n_normals; i++) normals[i] = (float)mg_rng_normal(rng, (uint64_t)(draw * n_normals + i));
    const float *queries = normals, *keys = normals + N * (ptrdiff_t)j->d_k;
    double mean[LAB_N_SCALINGS][N_QUANTITIES] = {{0}};
    for (int row = 0; row < N; row++) {
        double products[N];
        for (int key = 0; key < N; key++) {
            products[key] = 0;
            for (int k = 0; k < j->d_k; k++)
                products[key] += (double)queries[row * j->d_k + k] * (double)keys[key * j->d_k + k];
        }
        for (int s = 0; s < LAB_N_SCALINGS; s++) {
            row_numbers r = numbers_of_row(products, j->scale[s]);
            for (int q = 0; q < N_QUANTITIES; q++) mean[s][q] += r.of[q] / N;
        }
    }
    for (int s = 0; s < LAB_N_SCALINGS; s++)
        for (int q = 0; q < N_QUANTITIES; q++) {
            sums->sum[s][q] += mean[s][q];
            sums->square[s][q] += mean[s][q] * mean[s][q];
        }
}

static void one_tile(void *context, ptrdiff_t tile, void *workspace) {
    const job *j = context;
    mg_range draws = mg_tile_range(j->n_draws, DRAWS_PER_TILE, tile);
    tile_sums sums = {0};
    for (ptrdiff_t draw = draws.begin; draw < draws.end; draw++) one_draw(j, draw, workspace, &sums);
    j->sums[tile] = sums;
}

static void put(lab_means *to, int width, double sum, double square, ptrdiff_t n) {
    double mean = sum / (double)n, variance = fmax(0, square / (double)n - mean * mean);
    to->mean[width] = mean;
    to->error[width] = sqrt(variance / (double)(n - 1));
}

void lab_measure_scores(mg_lab *lab, bool spoilt, lab_scores *scores) {
    /* Wide rows take longer and scatter less. */
    ptrdiff_t budget = lab_asked(lab)->quick ? 400000 : 2000000;
    for (int w = 0; w < LAB_N_WIDTHS; w++) {
        job j = {.seed = lab_asked(lab)->seed, .d_k = lab_widths[w]};
        j.n_draws = budget / j.d_k < MOST_DRAWS ? budget / j.d_k : MOST_DRAWS;
        j.scale[LAB_SCALED] = 1 / sqrt(j.d_k);
        j.scale[LAB_UNSCALED] = spoilt ? j.scale[LAB_SCALED] : 1;
        ptrdiff_t n_tiles = mg_tile_count(j.n_draws, DRAWS_PER_TILE);
        j.sums = lab_memory(lab, (size_t)n_tiles, sizeof *j.sums);
        mg_parallel(n_tiles, one_tile, &j, 2 * N * (size_t)j.d_k * sizeof(float));
        tile_sums all = {0};
        for (ptrdiff_t t = 0; t < n_tiles; t++)
            for (int s = 0; s < LAB_N_SCALINGS; s++)
                for (int q = 0; q < N_QUANTITIES; q++) {
                    all.sum[s][q] += j.sums[t].sum[s][q];
                    all.square[s][q] += j.sums[t].square[s][q];
                }
        scores->rows[w] = N * (long)j.n_draws;
        for (int s = 0; s < LAB_N_SCALINGS; s++) {
            put(&scores->entropy[s], w, all.sum[s][0], all.square[s][0], j.n_draws);
            put(&scores->jacobian[s], w, all.sum[s][1], all.square[s][1], j.n_draws);
            put(&scores->saturated[s], w, all.sum[s][2], all.square[s][2], j.n_draws);
        }
    }
}

void lab_scores_lines(lab_figure *figure, const lab_means what[LAB_N_SCALINGS]) {
    double x[LAB_N_WIDTHS];
    for (int w = 0; w < LAB_N_WIDTHS; w++) x[w] = lab_widths[w];
    lab_line(figure, LAB_GREEN, "divided by √d_k", LAB_N_WIDTHS, x, what[LAB_SCALED].mean);
    lab_line(figure, LAB_PURPLE, "not divided", LAB_N_WIDTHS, x, what[LAB_UNSCALED].mean);
}
