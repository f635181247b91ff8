#include "sampler.h"
#include "arithmetic.h"

#include <math.h>
#include <stdbool.h>

mg_status mg_sampler_check(const mg_sampler *s, mg_error *error) {
    if (!(s->temperature >= 0 && s->temperature < INFINITY))
        return mg_error_set(error, MG_ERR_INPUT, "temperature is %g; it must be 0 (greedy) or a positive number",
                            s->temperature);
    if (s->top_k < 0)
        return mg_error_set(error, MG_ERR_INPUT, "top-k is %d; it must be at least 1, or 0 for off", s->top_k);
    if (!(s->top_p >= 0 && s->top_p <= 1))
        return mg_error_set(error, MG_ERR_INPUT, "top-p is %g; it must be between 0 (off) and 1", s->top_p);
    return MG_OK;
}

static int largest(const mg_real *logits, int n) {
    int best = 0;
    for (int i = 1; i < n; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

/* Move the k most likely tokens to the front of order, most likely first, the lower id first among equals: a heap sort
 * that stops after k, so that top-k of a large vocabulary does not sort all of it. */
static bool before(const double *p, int a, int b) {
    return p[a] > p[b] || (p[a] == p[b] && a < b);
}

static void sift_down(const double *p, int *heap, int n, int i) {
    for (int child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && before(p, heap[child + 1], heap[child])) child++;
        if (!before(p, heap[child], heap[i])) return;
        int swapped = heap[i];
        heap[i] = heap[child];
        heap[child] = swapped;
    }
}

/* Take the first of the heap's n tokens; the rest stays a heap. */
static int pop(const double *p, int *heap, int n) {
    int first = heap[0];
    heap[0] = heap[n - 1];
    sift_down(p, heap, n - 1, 0);
    return first;
}

void mg_sampler_probabilities(const mg_sampler *s, const mg_real *logits, int n, double *p, int *order) {
    mg_error error;
    MG_CHECK(mg_sampler_check(s, &error) == MG_OK, "sampler: %s", error.message);
    MG_CHECK(n >= 1, "sampler: there are %d logits; it needs at least 1", n);
    for (int i = 0; i < n; i++) MG_CHECK(!isnan(logits[i]), "sampler: the logit of token %d is not a number", i);
    int best = largest(logits, n);
    if (s->temperature == 0) {
        for (int i = 0; i < n; i++) p[i] = i == best;
        return;
    }
    double sum = 0;
    for (int i = 0; i < n; i++) {
        order[i] = i;
        /* Equal logits first, so that an infinite one is certain and not infinity minus infinity. */
        p[i] = logits[i] == logits[best] ? 1
                                         : mg_exp_double(((double)logits[i] - (double)logits[best]) / s->temperature);
        sum += p[i];
    }
    int k = s->top_k > 0 && s->top_k < n ? s->top_k : n;
    double top_p = s->top_p > 0 ? s->top_p : 1;
    if (k < n || top_p < 1) {
        for (int i = n / 2 - 1; i >= 0; i--) sift_down(p, order, n, i);
        double mass = 0, kept_of_k = 0;
        int kept = 0;
        /* top-p counts mass among the k: first the k best, then the fewest of them that reach top_p of their mass. The
         * popped ones collect after the shrinking heap. */
        for (; kept < k; kept++) {
            int token = pop(p, order, n - kept);
            order[n - 1 - kept] = token;
            kept_of_k += p[token];
        }
        for (int i = 0; i < kept; i++) {
            mass += p[order[n - 1 - i]];
            if (mass >= top_p * kept_of_k) kept = i + 1;
        }
        for (int i = 0; i < n - kept; i++) p[order[i]] = 0;
        sum = mass;
    }
    for (int i = 0; i < n; i++) p[i] /= sum;
}

int mg_sampler_draw(const double *p, int n, mg_rng rng, uint64_t index) {
    MG_CHECK(n >= 1, "sampler: there are %d probabilities; it needs at least 1", n);
    double u = mg_rng_uniform(rng, index), sum = 0;
    int last = 0; /* the sum of all may round to just under 1: then the last token that is possible */
    for (int i = 0; i < n; i++) {
        if (p[i] <= 0) continue;
        sum += p[i];
        last = i;
        if (u < sum) return i;
    }
    return last;
}
