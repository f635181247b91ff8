/* The pictures of lab heads, and its table. */
#include "heads.h"

#include <math.h>

enum { MOST_PORTRAITS = 16 };

void lab_head_show_portraits(mg_lab *lab, const lab_subject *subject, const lab_text_set *texts, int layer) {
    int T = texts->T < LAB_HEAD_PORTRAIT_T ? texts->T : LAB_HEAD_PORTRAIT_T;
    const mg_gpt_config *config = mg_gpt_get_config(subject->gpt);
    int shown = config->n_head < MOST_PORTRAITS ? config->n_head : MOST_PORTRAITS;
    const mg_real *portraits = lab_attention_maps(lab, subject->gpt, texts->ids, T);
    const char **labels = lab_subject_labels(lab, subject, texts->ids, T);
    lab_heatmap *map = lab_heatmap_begin(
        lab, "portraits", lab_format(lab, "The heads of layer %d", layer),
        (lab_scale){.unit = "weight", .low = 0, .high = 1, .rows = "query", .columns = "key"});
    for (int head = 0; head < shown; head++)
        lab_heatmap_panel(map, (lab_panel){.title = lab_format(lab, "layer %d, head %d", layer, head),
                                           .n_rows = T,
                                           .n_columns = T,
                                           .values = portraits + ((ptrdiff_t)layer * config->n_head + head) * T * T,
                                           .row_labels = labels,
                                           .column_labels = labels,
                                           .masked = true,
                                           .mask = mg_gpt_mask(config, layer, head)});
    lab_heatmap_end(
        map,
        "Each row is a query and sums to 1. A stripe beside the diagonal is a head that goes by position, a "
        "strong first column is a sink, even rows are a broad head.%s%s",
        shown < config->n_head ? " The table below has the heads that are not drawn." : "",
        config->n_layer > 1 ? " Another layer: --layer N." : "");
}

/* Which of a head's numbers a panel of the overview shows, as a part of the most that it can be. */
typedef enum quantity { DISTANCE, ENTROPY, FIRST, BEFORE, ITSELF, AFTER, COPIES, FOLLOWED, N_QUANTITIES } quantity;

static double quantity_of(const lab_head_numbers *n, quantity q, const lab_head_numbers *uniform) {
    switch (q) {
    case DISTANCE: return n->distance / (2 * uniform->distance); /* a sink is twice as far as the uniform head */
    case ENTROPY: return n->entropy / uniform->entropy;
    case FIRST: return n->first;
    case BEFORE: return n->offset[1];
    case ITSELF: return n->offset[0];
    case AFTER: return n->next;
    case FOLLOWED: return n->n_duplicates > 0 ? n->induction : -INFINITY;
    case COPIES: return n->n_duplicates > 0 ? n->duplicate : -INFINITY; /* does not exist */
    case N_QUANTITIES: break;
    }
    return 0;
}

/* All heads of all layers at a glance: one row per layer, one column per head. */
void lab_head_show_layers(mg_lab *lab, const lab_head_maps *m, const lab_head_numbers *uniform, bool causal) {
    static const char *const titles[N_QUANTITIES] = {
        "distance",  "entropy",        "on token 0",        "on token before",
        "on itself", "on token after", "on earlier copies", "on what followed copies"};
    lab_heatmap *map = lab_heatmap_begin(
        lab, "layers", "Every head at a glance",
        (lab_scale){.unit = "fraction", .low = 0, .high = 1, .rows = "layer", .columns = "head"});
    mg_real *values = mg_arena_alloc(lab->arena, (size_t)lab_head_count(m), sizeof *values, "an overview");
    for (int q = causal ? DISTANCE : ENTROPY; q < N_QUANTITIES; q++) {
        if (causal && q == AFTER) continue;
        for (ptrdiff_t h = 0; h < lab_head_count(m); h++)
            values[h] = (mg_real)quantity_of(&m->numbers[h], (quantity)q, uniform);
        lab_heatmap_panel(
            map, (lab_panel){.title = titles[q], .n_rows = m->n_layer, .n_columns = m->n_head, .values = values});
    }
    lab_heatmap_end(
        map,
        "%sEntropy as a fraction of the uniform head's; the others are fractions of the weight. Copies are those of "
        "the query's own token, over the rows that have one; without such a row there is nothing to show.",
        causal ? "Distance as a fraction of a sink's, which is twice the uniform head's. " : "");
}

static const char *texts_in_words(mg_lab *lab, const lab_head_maps *m) {
    return m->n_texts == 1 ? "one text" : lab_format(lab, "the mean over %d texts", m->n_texts);
}

void lab_head_show_scatter(mg_lab *lab, const lab_head_maps *m, const lab_head_numbers *uniform) {
    lab_figure *figure = lab_figure_begin(
        lab, "character", "Where and how widely each head looks",
        (lab_axes){.x = "mean distance back (tokens)", .y = "entropy (nats)", .y_from_zero = true});
    double *x = lab_numbers(lab, m->n_head), *y = lab_numbers(lab, m->n_head);
    const char **names = lab_memory(lab, (size_t)m->n_head, sizeof *names);
    for (int layer = 0; layer < m->n_layer; layer++) {
        for (int h = 0; h < m->n_head; h++) {
            x[h] = m->distance[layer * m->n_head + h].mean;
            y[h] = m->entropy[layer * m->n_head + h].mean;
            names[h] = lab_format(lab, "%d.%d", layer, h);
        }
        lab_named_points(figure, lab_step(layer, m->n_layer), lab_format(lab, "layer %d", layer), m->n_head, names, x,
                         y);
    }
    lab_points(figure, LAB_FLOOR, "the uniform head", 1, &uniform->distance, &uniform->entropy);
    lab_figure_end(figure,
                   "Each point is a head, named LAYER.HEAD, %s. The uniform head looks at everything alike. A low "
                   "point is a sharp head; "
                   "one near 0 on the distance axis looks at its neighbors.",
                   texts_in_words(lab, m));
}

/* One text has no standard error. */
static const char *error_text(mg_lab *lab, const lab_head_maps *m, double error) {
    return m->n_texts > 1 ? lab_format(lab, "%.3f", error) : "–";
}

static const char *names_in_words(mg_lab *lab, const int counts[LAB_HEAD_NAMES]) {
    const char *text = "";
    for (int i = 0; i < LAB_HEAD_NAMES; i++)
        if (counts[i]) text = lab_format(lab, "%s%s%d %s", text, *text ? ", " : "", counts[i], lab_head_names[i]);
    return text;
}

void lab_head_show_table(mg_lab *lab, const lab_head_maps *m, const lab_head_numbers *uniform) {
    lab_table *table = lab_table_begin(lab, "heads", "Every head",
                                       "layer\thead\tdistance\ts.e.\tentropy\ts.e.\ttoken 0\ts.e.\tname");
    int counts[LAB_HEAD_NAMES] = {0};
    for (ptrdiff_t h = 0; h < lab_head_count(m); h++) {
        lab_head_name its = lab_head_name_of(&m->numbers[h], uniform->entropy);
        counts[its]++;
        lab_table_row(table, "%td\t%td\t%.3f\t%s\t%.3f\t%s\t%.3f\t%s\t%s", h / m->n_head, h % m->n_head,
                      m->distance[h].mean, error_text(lab, m, m->distance[h].error), m->entropy[h].mean,
                      error_text(lab, m, m->entropy[h].error), m->first[h].mean, error_text(lab, m, m->first[h].error),
                      lab_head_names[its]);
    }
    lab_table_end(
        table,
        "Mean distance in tokens, entropy in nats, weight on token 0: %s of %d tokens%s. The uniform head has "
        "distance %.3f, entropy %.3f and %.3f of its weight on token 0. The %td heads by name: %s.",
        texts_in_words(lab, m), m->T, m->n_texts > 1 ? ", with its standard error" : "", uniform->distance,
        uniform->entropy, uniform->first, lab_head_count(m), names_in_words(lab, counts));
}
