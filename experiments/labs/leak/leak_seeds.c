/* Lab leak over seeds: what is kept of each, and its tables. */
#include "contexts.h"
#include "lab_private.h"
#include "leak.h"

#include <string.h>

static lab_training again(mg_lab *lab, const lab_training *like, int s) {
    lab_training t = *like;
    t.variant = lab_memory(lab, N_MODELS, sizeof *t.variant);
    for (int i = 0; i < N_MODELS; i++) {
        t.variant[i] = like->variant[i];
        t.variant[i].options.seed += (uint64_t)s;
    }
    return t;
}

leak_seeds leak_seeds_new(mg_lab *lab, int n, const lab_training *like) {
    leak_seeds seeds = {.n = n, .training = lab_memory(lab, (size_t)n, sizeof *seeds.training)};
    for (int s = 0; s < n; s++) seeds.training[s] = again(lab, like, s);
    for (int i = 0; i < N_MODELS; i++) {
        double **of_model[] = {&seeds.loss[i], &seeds.last[i], &seeds.labeled[i], &seeds.future[i], &seeds.writing[i]};
        for (size_t k = 0; k < sizeof of_model / sizeof *of_model; k++) *of_model[k] = lab_numbers(lab, n);
        seeds.position[i] = lab_memory(lab, (size_t)n, sizeof *seeds.position[i]);
    }
    double **of_pair[] = {&seeds.floor,          &seeds.gap,        &seeds.gap_error, &seeds.last_gap,
                          &seeds.last_gap_error, &seeds.last_apart, &seeds.evidence,  &seeds.to_read};
    for (size_t k = 0; k < sizeof of_pair / sizeof *of_pair; k++) *of_pair[k] = lab_numbers(lab, n);
    return seeds;
}

void leak_seeds_keep(mg_lab *lab, leak_seeds *seeds, int s, const mg_evaluation e[N_MODELS]) {
    ptrdiff_t T = e[MASKED].n_positions, last = T - 1;
    for (int i = 0; i < N_MODELS; i++) {
        seeds->loss[i][s] = e[i].loss;
        seeds->last[i][s] = e[i].position_loss[last];
        seeds->labeled[i][s] = lab_labeled_loss(&e[i]);
        seeds->position[i][s] = lab_numbers(lab, T);
        memcpy(seeds->position[i][s], e[i].position_loss, (size_t)T * sizeof(double));
    }
    bool known = e[UNMASKED].position_floor != NULL;
    seeds->floor[s] = e[MASKED].floor;
    seeds->gap[s] = e[MASKED].loss - e[MASKED].floor;
    seeds->gap_error[s] = e[MASKED].gap_error;
    seeds->last_gap[s] = known ? e[UNMASKED].position_loss[last] - e[UNMASKED].position_floor[last] : NAN;
    seeds->last_gap_error[s] = known ? e[UNMASKED].position_gap_error[last] : NAN;
    seeds->last_apart[s] = e[UNMASKED].position_loss[last] - e[MASKED].position_loss[last];
    seeds->evidence[s] = e[MASKED].evidence;
    seeds->different_tokens += seeds->training[s].different_tokens;
}

static void mean_row(mg_lab *lab, lab_table *table, const char *name, int n, double *const of_model[N_MODELS]) {
    lab_table_row(table, "%s\t%s\t%s", name, lab_mean_text(lab, n, of_model[MASKED]),
                  lab_mean_text(lab, n, of_model[UNMASKED]));
}

void leak_seeds_show(mg_lab *lab, const leak_seeds *seeds, bool grammar) {
    int n = seeds->n;
    if (n == 1) return;
    lab_table *table = lab_table_begin(lab, "seeds", "Over seeds: mean ± its standard error", "\tmasked\tunmasked");
    mean_row(lab, table, "loss", n, seeds->loss);
    mean_row(lab, table, "last position", n, seeds->last);
    mean_row(lab, table, grammar ? "grammatical (%)" : "its text's loss", n, seeds->writing);
    lab_table_end(table,
                  "Each seed has its own initial weights, windows and samples, of the same data. A mean's verdict "
                  "is on its 95 %% interval; what must hold in every run is judged by the seed that comes nearest "
                  "to breaking it. The map, the texts and the tables that name no seed are of the first one.");
    table = lab_table_begin(lab, "by-seed", "Seed by seed",
                            grammar ? "seed\tmodel\tloss\tlast position\tgrammatical (%)"
                                    : "seed\tmodel\tloss\tlast position\tits text's loss");
    for (int s = 0; s < n; s++)
        for (int i = 0; i < N_MODELS; i++) {
            const lab_variant *v = &seeds->training[s].variant[i];
            lab_table_row(table, "%llu\t%s\t%.6f\t%.6f\t%.4f", (unsigned long long)v->options.seed, v->name,
                          seeds->loss[i][s], seeds->last[i][s], seeds->writing[i][s]);
        }
    lab_table_end(
        table, grammar ? "Losses in nats per token, on each seed's validation windows; sentences in the first window."
                       : "Losses in nats per token, on each seed's validation windows; of the text in the first "
                         "window it is the masked model's.");
}
