/* Which token moves which prediction, in both models of lab leak. */
#include "lab_private.h"
#include "leak.h"

enum { MOST_SHOWN = 16, MOST_TESTED = 64 };

/* Of the first tokens that were held out. The caller frees what was found. */
mg_status leak_find_influence(leak_seeds *seeds, int s, const mg_corpus *corpus, mg_causality found[N_MODELS],
                              mg_error *error) {
    const int *ids = corpus->ids + (corpus->n_train < corpus->n ? corpus->n_train : 0);
    const lab_variant *variant = seeds->training[s].variant;
    int T = variant->options.model.block_size < MOST_TESTED ? variant->options.model.block_size : MOST_TESTED;
    mg_status status = MG_OK;
    for (int i = 0; i < N_MODELS && !status; i++) {
        status = mg_causality_of_gpt(&found[i], mg_trainer_model(variant[i].trainer), ids, T, error);
        for (int row = 0; row < T && !status; row++)
            for (int column = row + 1; column < T; column++)
                seeds->future[i][s] = lab_larger(seeds->future[i][s], found[i].perturbation[row * T + column]);
    }
    return status;
}

static void draw_influence(mg_lab *lab, const lab_training *training, const mg_corpus *corpus, int T,
                           const mg_causality found[N_MODELS]) {
    int shown = T < MOST_SHOWN ? T : MOST_SHOWN;
    const int *ids = corpus->ids + (corpus->n_train < corpus->n ? corpus->n_train : 0);
    const char **labels = lab_token_labels(lab, corpus->tokenizer, ids, shown);
    lab_heatmap *map = lab_heatmap_begin(
        lab, "influence", "How much each token moves each prediction (largest change of a logit)",
        (lab_scale){.unit = "change", .rows = "prediction at", .columns = "changed token"});
    for (int i = 0; i < N_MODELS; i++) {
        mg_real *influence = lab_reals(lab, (ptrdiff_t)shown * shown);
        for (int row = 0; row < shown; row++)
            for (int column = 0; column < shown; column++)
                influence[row * shown + column] = (mg_real)found[i].perturbation[row * T + column];
        lab_heatmap_panel(map, (lab_panel){.title = training->variant[i].name,
                                           .n_rows = shown,
                                           .n_columns = shown,
                                           .values = influence,
                                           .row_labels = labels,
                                           .column_labels = labels,
                                           .masked = i == MASKED,
                                           .mask = mg_lookahead(0)});
    }
    lab_heatmap_end(
        map,
        "Each column changes one token of a real text and looks at all predictions: of %d tested positions "
        "the first %d are drawn. With the mask nothing above the diagonal may move, not by one bit. Without "
        "it, the cell just after the diagonal in each row but the last is the label.",
        T, shown);
}

static void check_influence(mg_lab *lab, const leak_seeds *seeds, int T) {
    const char *pairs = lab_format(
        lab, "influence of later tokens on earlier predictions, all %d pairs of %d positions", T * (T - 1) / 2, T);
    lab_check_zero(lab, lab_name_over_seeds(lab, lab_format(lab, "masked: %s", pairs), seeds->n, "largest"),
                   lab_largest(seeds->n, seeds->future[MASKED]), "");
    const char *unmasked = lab_name_over_seeds(lab, lab_format(lab, "unmasked: largest %s", pairs), seeds->n,
                                               "smallest");
    double least = lab_smallest(seeds->n, seeds->future[UNMASKED]);
    if (seeds->why && least <= 0.1)
        lab_undecided(lab, unmasked, least, "", "%s", seeds->why);
    else
        lab_check_above(lab, unmasked, least, 0.1, "");
}

mg_status leak_show_influence(mg_lab *lab, leak_seeds *seeds, const mg_corpus *corpus, mg_error *error) {
    mg_causality found[N_MODELS] = {{0}};
    mg_status status = leak_find_influence(seeds, 0, corpus, found, error);
    if (!status) {
        int T = (int)found[MASKED].T;
        draw_influence(lab, seeds->training, corpus, T, found);
        check_influence(lab, seeds, T);
    }
    for (int i = 0; i < N_MODELS; i++) mg_causality_free(&found[i]);
    return status;
}
