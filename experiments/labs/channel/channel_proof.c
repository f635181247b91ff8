/* A label that is not shown cannot be seen by other ways, in any depth. Position i that does not leak reads positions
 * up to i, and of these only i − 1 and earlier may have seen one place ahead: x_i at most, its own input. Its label is
 * x_{i+1}. What a position that does leak reads of its neighbor may have seen further; that tells it nothing about its
 * label, which it sees. */
#include "channel.h"
#include "lab_private.h"

#include <math.h>

enum { T = 14, MOST_LAYERS = 4, PATTERNS = 5, VOCABULARY = 32, PROOF = 12 /* stream of leaks */ };

/* What was found among all pairs of a prediction and a later token. */
typedef struct findings {
    long hidden, moved_by_hidden; /* labels that are not shown; predictions that they move */
    long shown, moved_by_shown;   /* the same of labels that are */
    double influence[T * T];      /* of one pattern, with most layers: the largest change of a logit */
} findings;

static const mg_real *logits_of(mg_gpt *gpt, mg_tape *tape, const int *ids, const mg_interval *sequence) {
    return mg_gpt_forward(gpt, tape, ids, 1, T,
                          &(mg_gpt_pass){.sequence = lab_broken("channel.hidden") ? NULL : sequence})
        ->data;
}

static void change_every_token(const mg_lab *lab, mg_gpt *gpt, mg_tape *tape, int pattern, findings *f) {
    int ids[T];
    mg_interval sequence[T];
    mg_rng rng = {lab_asked(lab)->seed, MG_STREAM_LAB, PROOF + 1};
    for (int t = 0; t < T; t++) ids[t] = (int)mg_rng_below(rng, (uint64_t)(pattern * T + t), VOCABULARY);
    channel_fill(lab, PROOF, (uint64_t)pattern, 1, T, 0.5, sequence);
    const mg_real *before = logits_of(gpt, tape, ids, sequence);
    for (int j = 0; j < T; j++) {
        int kept = ids[j];
        ids[j] = (kept + 1) % VOCABULARY;
        const mg_real *after = logits_of(gpt, tape, ids, sequence);
        ids[j] = kept;
        for (int i = 0; i < T; i++) {
            double change = 0;
            for (int k = 0; k < VOCABULARY; k++)
                change = lab_larger(change,
                                    fabs((double)after[i * VOCABULARY + k] - (double)before[i * VOCABULARY + k]));
            f->influence[i * T + j] = change;
            if (j != i + 1) continue;
            bool shown = sequence[i].end > j;
            *(shown ? &f->shown : &f->hidden) += 1;
            *(shown ? &f->moved_by_shown : &f->moved_by_hidden) += change != 0;
        }
    }
    mg_tape_reset(tape);
}

static mg_status try_all(const mg_lab *lab, mg_tape *tape, findings *f, mg_error *error) {
    mg_status status = MG_OK;
    for (int layers = 1; layers <= MOST_LAYERS && !status; layers++) {
        mg_gpt_config config = {
            .n_layer = layers,
            .n_embd = 32,
            .block_size = T,
            .vocab_size = VOCABULARY,
            .mask = mg_lookahead(1),
            .init_std = 0.2, /* ten times GPT-2's, so that what flows is far above rounding */
        };
        mg_gpt *gpt;
        status = mg_gpt_new(&gpt, &config, lab_asked(lab)->seed, error);
        for (int pattern = 0; pattern < PATTERNS && !status; pattern++) change_every_token(lab, gpt, tape, pattern, f);
        if (!status) mg_gpt_free(gpt);
    }
    return status;
}

mg_status channel_prove(mg_lab *lab, mg_error *error) {
    findings f = {0};
    mg_tape *tape;
    mg_tape_new(&tape, NULL);
    lab_need_memory(tape, "a tape");
    mg_tape_record(tape, false);
    mg_status status = try_all(lab, tape, &f, error);
    mg_tape_free(tape);
    if (status) return status;
    lab_heatmap *map = lab_heatmap_begin(
        lab, "influence", "Which labels are visible: one window, four layers",
        (lab_scale){.unit = "change", .log = true, .rows = "prediction", .columns = "input"});
    lab_heatmap_panel(map, (lab_panel){.title = "ε = 1/2",
                                       .n_rows = T,
                                       .n_columns = T,
                                       .values = lab_heat(lab, (ptrdiff_t)T * T, f.influence)});
    lab_heatmap_end(map, "Each column changes one token of a model with random weights: the largest change of a logit. "
                         "The label of row i is column i + 1. About half of these cells must be exactly 0. A row whose "
                         "label is visible may see further ahead, through what its neighbor saw.");
    lab_check_count(
        lab, lab_format(lab, "predictions moved by one of %ld hidden labels, 1 to %d layers", f.hidden, MOST_LAYERS),
        f.moved_by_hidden, 0, "");
    lab_check_count(lab, lab_format(lab, "the control: predictions moved by one of %ld visible labels", f.shown),
                    f.moved_by_shown, f.shown, "");
    return MG_OK;
}
