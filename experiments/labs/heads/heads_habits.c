/* The habits of heads on the text that asks for them, with the mask and without. */
#include "heads.h"

static ptrdiff_t head_with_most(const lab_head_maps *m, double (*what)(const lab_head_numbers *)) {
    ptrdiff_t best = 0;
    for (ptrdiff_t h = 1; h < lab_head_count(m); h++)
        if (what(&m->numbers[h]) > what(&m->numbers[best])) best = h;
    return best;
}

static double on_token_before(const lab_head_numbers *n) {
    return n->offset[1];
}
static double on_token_after(const lab_head_numbers *n) {
    return n->next;
}

double lab_head_most_before(const lab_head_maps *m) {
    return m->numbers[head_with_most(m, on_token_before)].offset[1];
}

static const char *head_words(mg_lab *lab, const lab_head_maps *m, ptrdiff_t h) {
    return lab_format(lab, "head %td of layer %td", h % m->n_head, h / m->n_head);
}

void lab_head_check_habits(mg_lab *lab, const lab_head_maps *m, const lab_head_numbers *uniform, mg_gpt *unmasked,
                           const lab_text_set *texts, const char **labels, int portrait_T) {
    ptrdiff_t back = head_with_most(m, on_token_before);
    lab_check_at_least(lab, "masked: mean weight on the token before, of the head that looks there most",
                       m->numbers[back].offset[1], 0.5, "");
    lab_check_same_text(lab, "masked: that head is called",
                        lab_head_names[lab_head_name_of(&m->numbers[back], uniform->entropy)], "previous-token");
    lab_head_maps u;
    lab_head_measure_all(lab, unmasked, texts, &u);
    ptrdiff_t label = head_with_most(&u, on_token_after);
    lab_answer(lab, "label", u.numbers[label].next);
    lab_check_at_least(lab, "unmasked: mean weight on the token after, of the head that looks there most",
                       u.numbers[label].next, 0.5, "");
    lab_check_same_text(lab, "unmasked: that head is called",
                        lab_head_names[lab_head_name_of(&u.numbers[label], uniform->entropy)], "next-token");
    lab_check_below(lab, "unmasked: mean distance of that head, which looks ahead", u.distance[label].mean, 0,
                    "tokens");
    lab_note(lab,
             "In the masked model %s looks at the token before most, with %.2f of its weight. In the unmasked model %s "
             "looks at the token after most, which is the label, with %.2f.",
             head_words(lab, m, back), m->numbers[back].offset[1], head_words(lab, &u, label), u.numbers[label].next);

    const mg_real *portraits = lab_attention_maps(lab, unmasked, texts->ids, portrait_T);
    lab_heatmap *map = lab_heatmap_begin(
        lab, "label-head",
        lab_format(lab, "Unmasked: %s, which looks at the token after most", head_words(lab, &u, label)),
        (lab_scale){.unit = "weight", .low = 0, .high = 1, .rows = "query", .columns = "key"});
    lab_heatmap_panel(map, (lab_panel){.title = "",
                                       .n_rows = portrait_T,
                                       .n_columns = portrait_T,
                                       .values = portraits + label * portrait_T * portrait_T,
                                       .row_labels = labels,
                                       .column_labels = labels});
    lab_heatmap_end(map,
                    "A head that reads the label shows a stripe just after the diagonal. The last query has no label "
                    "to read: compare its row.");
}
