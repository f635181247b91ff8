/* Lab mask on a checkpoint: the model's own scores, all of them, under each of the ways. The scores are read with the
 * mask off, so that the forbidden half is there to be masked; then the same model under the causal mask must have the
 * weights that −∞ gives to those of the first layer, whose scores no mask has touched yet. */
#include "attention.h"
#include "lab_private.h"
#include "mask_ways.h"

#include <math.h>

typedef struct maps {
    int layers, heads, T;
    mg_real *scores;  /* (layers, heads, T, T), without a mask */
    mg_real *weights; /* the same under the causal mask */
} maps;

static mg_real *capture(mg_lab *lab, const maps *m, mg_gpt *gpt, const int *ids, bool scores) {
    size_t n = (size_t)m->layers * (size_t)m->heads * (size_t)m->T * (size_t)m->T;
    mg_real *map = mg_arena_alloc(lab->arena, n, sizeof *map, "maps of a model");
    mg_tape *tape;
    mg_tape_new(&tape, NULL);
    lab_need_memory(tape, "a tape");
    mg_tape_record(tape, false);
    mg_gpt_capture capture = {0};
    *(scores ? &capture.scores : &capture.weights) = map;
    mg_gpt_set_mask(gpt, mg_lookahead(scores ? MG_LOOKAHEAD_ALL : 0));
    mg_gpt_forward(gpt, tape, ids, 1, m->T, &(mg_gpt_pass){.capture = &capture});
    mg_tape_free(tape);
    return map;
}

/* Mean weight on the future of one layer's rows but the last, which has none; and the largest difference from the
 * model's own weights. */
static void weigh_layer(const maps *m, int layer, lab_mask_way way, double *leaked, double *difference) {
    *leaked = *difference = 0;
    for (int row = 0; row < m->heads * m->T; row++) {
        float scores[LAB_MASK_MOST_KEYS], weights[LAB_MASK_MOST_KEYS];
        ptrdiff_t at = ((ptrdiff_t)layer * m->heads * m->T + row) * m->T;
        int visible = (int)mg_visible(mg_lookahead(0), row % m->T, m->T).end;
        for (int j = 0; j < m->T; j++) scores[j] = (float)m->scores[at + j];
        lab_mask_weigh(way, m->T, visible, scores, weights);
        for (int j = 0; j < m->T; j++) {
            if (j >= visible) *leaked += (double)weights[j];
            double apart = fabs((double)weights[j] - (double)m->weights[at + j]);
            *difference = apart <= *difference ? *difference : apart; /* a NaN stays */
        }
    }
    *leaked /= m->heads * (m->T - 1);
}

void lab_mask_model(mg_lab *lab, const lab_model *model) {
    const mg_gpt_config *config = mg_gpt_get_config(model->checkpoint.gpt);
    maps m = {.layers = config->n_layer, .heads = config->n_head, .T = model->T};
    m.scores = capture(lab, &m, model->checkpoint.gpt, model->ids, true);
    m.weights = capture(lab, &m, model->checkpoint.gpt, model->ids, false);
    lab_table *table = lab_table_begin(lab, "model", "This model's own scores: mean weight of a row on the future",
                                       "mask\tfirst layer\tlast layer");
    double difference, ignored, leaked[N_WAYS];
    for (int way = 0; way < N_WAYS; way++) {
        double last;
        weigh_layer(&m, 0, (lab_mask_way)way, &leaked[way], way == MINUS_INFINITY ? &difference : &ignored);
        weigh_layer(&m, m.layers - 1, (lab_mask_way)way, &last, &ignored);
        lab_table_row(table, "%s\t%.4f\t%.4f", lab_mask_names[way], leaked[way], last);
    }
    lab_table_end(table,
                  "%d tokens, %d heads per layer, all rows but the last. The scores are the model's, computed without "
                  "its mask.",
                  m.T, m.heads);
    lab_check_zero(lab, "the model's scores under −∞: weight on the future", leaked[MINUS_INFINITY], "");
    const char *zero = "the model's scores under 0 before: weight on the future";
    if (leaked[ZERO_BEFORE] == 0)
        lab_undecided(lab, zero, 0, "",
                      "this model's scores are all so large that exp(0) beside them is nothing in float32");
    else
        lab_check_above(lab, zero, leaked[ZERO_BEFORE], 0, "");
    lab_check_below(lab, "first layer: largest difference between −∞ by hand and the model's own mask", difference,
                    1e-5, "");
}
