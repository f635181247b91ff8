/* Lab speculative: what a text is expected to take, by the lab's recursion, by all outcomes listed, and by the formula
 * for tokens that stay independently. */
#include "check.h"
#include "speculative/speculative.h"

#include <math.h>

/* The same by listing: token t is the k-th that its pass drafts; gamma: the one after them. */
static void list(int gamma, int length, const double *stays, int t, int k, double p, double *accepted, double *passes) {
    if (k == 0 && t >= length) return;
    *passes += k == 0 ? p : 0;
    if (k == gamma) {
        list(gamma, length, stays, t + 1, 0, p, accepted, passes);
        return;
    }
    *accepted += p * stays[t];
    list(gamma, length, stays, t + 1, k + 1, p * stays[t], accepted, passes);
    list(gamma, length, stays, t + 1, 0, p * (1 - stays[t]), accepted, passes);
}

static void agrees_with_all_outcomes(void **state) {
    (void)state;
    const double stays[] = {0.9, 0.3, 1, 0, 0.55, 0.7, 0.2, 0.85, 1, 0.6, 0.4, 0.95};
    for (int gamma = 1; gamma <= SPECULATIVE_MOST; gamma++)
        for (int length = 1; length <= 6; length++) {
            double accepted, passes, a = 0, n = 0;
            speculative_expect(gamma, length, stays, &accepted, &passes);
            list(gamma, length, stays, 0, 0, 1, &a, &n);
            assert_close(accepted, a, 1e-12);
            assert_close(passes, n, 1e-12);
            assert_true(passes + accepted >= length && passes + accepted <= length + gamma);
        }
}

static void equal_shares_give_the_formula(void **state) {
    (void)state;
    double stays[20 + SPECULATIVE_MOST];
    for (int step = 0; step <= 10; step++) {
        double alpha = step / 10.0, accepted, passes;
        for (int t = 0; t < 20 + SPECULATIVE_MOST; t++) stays[t] = alpha;
        for (int gamma = 1; gamma <= SPECULATIVE_MOST; gamma++) {
            speculative_expect(gamma, 20, stays, &accepted, &passes);
            assert_close(1 + accepted / passes, speculative_tokens(alpha, gamma), 1e-12);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_all_outcomes),
        cmocka_unit_test(equal_shares_give_the_formula),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
