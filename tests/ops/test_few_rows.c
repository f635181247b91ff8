/* Products of few rows: right, in every build, and the same to the last bit however many rows there are. */
#include "check.h"
#include "few_rows.h"
#include "rng.h"
#include "simd.h"

#include <string.h>

enum { MOST_ROWS = MG_FEW_ROWS, MOST_N = 150, MOST_K = 140, ROOM = MOST_ROWS * (MOST_N + 3) };

static mg_real x[MOST_ROWS * MOST_K], w[MOST_K * (MOST_N + 5)], workspace[MOST_K * 128];
static mg_real before[ROOM], y[ROOM], alone[ROOM];

static void fill(mg_real *to, size_t n, uint32_t stream) {
    for (size_t i = 0; i < n; i++) to[i] = (mg_real)mg_rng_normal((mg_rng){7, stream, 0}, i);
}

static const mg_few_rows *const *builds(void) {
    static const mg_few_rows *all[] = {&mg_few_rows_baseline, NULL, NULL, NULL};
#ifdef MG_CLONES
    int n = 1;
    if (__builtin_cpu_supports("x86-64-v3")) all[n++] = &mg_few_rows_v3;
    if (__builtin_cpu_supports("x86-64-v4")) all[n++] = &mg_few_rows_v4;
#endif
    return all;
}

static const double tolerance = sizeof(mg_real) == 8 ? 1e-13 : 1e-4;

/* All rows at once, and each by itself: both against sums in double. Strides are wider than the rows. */
static void plain_is_right(const mg_few_rows *f, int m, int n, int k) {
    int y_stride = n + 3, w_stride = n + 5;
    assert_true(f->plain_bytes(m, k) <= sizeof workspace);
    memcpy(y, before, sizeof y);
    memcpy(alone, before, sizeof alone);
    f->plain(m, n, k, x, w, w_stride, y, y_stride, workspace);
    for (int r = 0; r < m; r++) f->plain(1, n, k, x + r * k, w, w_stride, alone + r * y_stride, y_stride, workspace);
    assert_memory_equal(y, alone, sizeof y); /* what lies between the rows, too */
    for (int r = 0; r < m; r++)
        for (int c = 0; c < n; c++) {
            double sum = (double)before[r * y_stride + c];
            for (int i = 0; i < k; i++) sum += (double)x[r * k + i] * (double)w[i * w_stride + c];
            assert_close(y[r * y_stride + c], sum, tolerance);
        }
}

static void tied_is_right(const mg_few_rows *f, int m, int n, int k) {
    int y_stride = n + 3;
    memcpy(y, before, sizeof y);
    memcpy(alone, before, sizeof alone);
    f->tied(m, n, k, x, w, y, y_stride);
    for (int r = 0; r < m; r++) f->tied(1, n, k, x + r * k, w, alone + r * y_stride, y_stride);
    assert_memory_equal(y, alone, sizeof y);
    for (int r = 0; r < m; r++)
        for (int c = 0; c < n; c++) {
            double sum = 0;
            for (int i = 0; i < k; i++) sum += (double)x[r * k + i] * (double)w[c * k + i];
            assert_close(y[r * y_stride + c], sum, tolerance);
        }
}

static void every_size_is_right(void **state) {
    (void)state;
    static const int rows[] = {1, 2, 3, 4, 5, 7, 11, 12, 13, 63, 64}, n[] = {1, 3, 15, 16, 17, 31, 64, 65, 127, 150},
                     k[] = {1, 2, 7, 8, 9, 16, 33, 140};
    fill(x, sizeof x / sizeof *x, 1);
    fill(w, sizeof w / sizeof *w, 2);
    fill(before, ROOM, 3);
    for (const mg_few_rows *const *f = builds(); *f; f++)
        for (size_t a = 0; a < sizeof rows / sizeof *rows; a++)
            for (size_t b = 0; b < sizeof n / sizeof *n; b++)
                for (size_t c = 0; c < sizeof k / sizeof *k; c++) {
                    plain_is_right(*f, rows[a], n[b], k[c]);
                    tied_is_right(*f, rows[a], n[b], k[c]);
                }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_size_is_right)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
