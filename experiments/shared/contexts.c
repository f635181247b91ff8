#include "contexts.h"
#include "lab_private.h"
#include "training.h"

#include <stdlib.h>

enum { MOST_COUNTED = 1000000, MOST_PREDICTED = 20000 };
#define SMOOTHING 2.0 /* a: how many tokens the shorter context is worth */

/* A token and its LAB_CONTEXTS − 1 successors. Sorted, they answer how often any sequence as short occurs. */
typedef struct sequence {
    int id[LAB_CONTEXTS];
} sequence;

static int compare(const int *a, const int *b, int n) {
    for (int i = 0; i < n; i++)
        if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
    return 0;
}

static int compare_sequences(const void *a, const void *b) {
    return compare(((const sequence *)a)->id, ((const sequence *)b)->id, LAB_CONTEXTS);
}

/* The first place whose sequence does not come before these n ids; with `after`, the first that comes after them. */
static ptrdiff_t place(const sequence *sorted, ptrdiff_t count, const int *ids, int n, bool after) {
    ptrdiff_t low = 0, high = count;
    while (low < high) {
        ptrdiff_t middle = low + (high - low) / 2;
        int order = compare(sorted[middle].id, ids, n);
        if (order < 0 || (after && order == 0))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static double count_of(const sequence *sorted, ptrdiff_t count, const int *ids, int n) {
    if (n == 0) return (double)count;
    return (double)(place(sorted, count, ids, n, true) - place(sorted, count, ids, n, false));
}

static sequence *sorted_sequences(mg_lab *lab, const int *ids, ptrdiff_t count) {
    sequence *sorted = lab_memory(lab, (size_t)count + 1, sizeof *sorted);
    for (ptrdiff_t i = 0; i < count; i++)
        for (int k = 0; k < LAB_CONTEXTS; k++) sorted[i].id[k] = ids[i + k];
    qsort(sorted, (size_t)count, sizeof *sorted, compare_sequences);
    return sorted;
}

lab_contexts lab_contexts_of(mg_lab *lab, const mg_corpus *corpus) {
    enum { LONGEST = LAB_CONTEXTS - 1 };
    ptrdiff_t n_train = corpus->n_train < MOST_COUNTED ? corpus->n_train : MOST_COUNTED;
    ptrdiff_t count = n_train - LONGEST > 0 ? n_train - LONGEST : 0;
    const sequence *sorted = sorted_sequences(lab, corpus->ids, count);
    lab_contexts c = {{0}, 0};
    bool apart = corpus->n_train < corpus->n; /* else validation reads the training tokens */
    const int *ids = corpus->ids + (apart ? corpus->n_train : 0);
    ptrdiff_t n = (apart ? corpus->n : corpus->n_train) - corpus->n_train * apart - LONGEST;
    n = n > 0 ? n : 0;
    ptrdiff_t step = n > MOST_PREDICTED ? n / MOST_PREDICTED : 1;
    ptrdiff_t predicted = 0;
    for (ptrdiff_t t = LONGEST; t < n + LONGEST; t += step, predicted++) {
        double p = 1.0 / mg_tokenizer_size(corpus->tokenizer);
        for (int k = 0; k < LAB_CONTEXTS; k++) {
            double with = count_of(sorted, count, ids + t - k, k + 1), of = count_of(sorted, count, ids + t - k, k);
            p = (with + SMOOTHING * p) / (of + SMOOTHING);
            c.loss[k] -= log(p);
        }
    }
    for (int k = 0; k < LAB_CONTEXTS; k++) {
        c.loss[k] = predicted ? c.loss[k] / (double)predicted : NAN;
        c.memory = fmax(c.memory, c.loss[0] - c.loss[k]);
    }
    return c;
}

double lab_labeled_loss(const mg_evaluation *e) {
    double T = (double)e->n_positions;
    return (e->loss * T - e->position_loss[e->n_positions - 1]) / (T - 1);
}

const char *lab_too_easy(mg_lab *lab, const mg_evaluation *honest) {
    ptrdiff_t T = honest->n_positions;
    double reached = lab_labeled_loss(honest);
    if (reached > 2 * lab_collapsed(honest->position_loss[T - 1], T)) return NULL;
    return lab_format(lab, "this data is too easy: the honest model comes down to %.3f nats", reached);
}
