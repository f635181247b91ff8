/* The task of lab hidden: windows of which some tokens are hidden, and only those asked for. */
#include "hidden.h"

#include <string.h>

lab_hidden_batch lab_hidden_new_batch(mg_lab *lab, const lab_hidden_task *t, int B) {
    size_t n = (size_t)B * (size_t)t->T;
    return (lab_hidden_batch){B, lab_memory(lab, n, sizeof(int)), lab_memory(lab, n, sizeof(int)),
                              lab_memory(lab, n, sizeof(int)), lab_memory(lab, (size_t)B, sizeof(int))};
}

void lab_hidden_fill(const lab_hidden_task *t, mg_split split, mg_rng windows, ptrdiff_t first, int most,
                     lab_hidden_batch *b) {
    mg_rng positions = {windows.seed, MG_STREAM_LAB, windows.step};
    mg_corpus_windows(t->corpus, split, windows, first, b->B, t->T, b->shown, b->targets); /* targets: overwritten */
    memcpy(b->hidden, b->shown, (size_t)b->B * (size_t)t->T * sizeof(int));
    for (int i = 0; i < b->B * t->T; i++) b->targets[i] = -1;
    for (int i = 0; i < b->B; i++) {
        uint64_t index = (uint64_t)(first + i) * (LAB_MOST_HIDDEN + 1);
        int n = 1 + (int)mg_rng_below(positions, index, (uint64_t)most);
        for (int k = 1; k <= n; k++) {
            int at = b->at[i] = (int)mg_rng_below(positions, index + (uint64_t)k, (uint64_t)t->T);
            b->targets[i * t->T + at] = b->shown[i * t->T + at];
            b->hidden[i * t->T + at] = t->hidden_id;
        }
    }
}
