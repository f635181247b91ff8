/* The maps of all heads of a model, captured on several texts, checked and measured. */
#include "heads.h"

#include <math.h>
#include <string.h>

static void allocate(mg_lab *lab, const mg_gpt *gpt, const lab_text_set *texts, lab_head_maps *m) {
    const mg_gpt_config *config = mg_gpt_get_config(gpt);
    *m = (lab_head_maps){.n_layer = config->n_layer, .n_head = config->n_head, .T = texts->T, .n_texts = texts->n};
    size_t n = (size_t)lab_head_count(m), size = n * (size_t)(m->T * m->T);
    m->weights = mg_arena_alloc(lab->arena, size, sizeof(mg_real), "maps");
    m->scores = mg_arena_alloc(lab->arena, size, sizeof(mg_real), "maps");
    m->distance = mg_arena_alloc(lab->arena, n, sizeof(lab_mean), "a head's numbers");
    m->entropy = mg_arena_alloc(lab->arena, n, sizeof(lab_mean), "a head's numbers");
    m->first = mg_arena_alloc(lab->arena, n, sizeof(lab_mean), "a head's numbers");
    m->numbers = mg_arena_alloc(lab->arena, n, sizeof(lab_head_numbers), "a head's numbers");
    memset(m->numbers, 0, n * sizeof(lab_head_numbers));
}

/* Sum, forbidden weights, and whether the weights are the softmax of the scores that were captured beside them. */
static void check_row(lab_head_maps *m, int row, mg_mask mask, const mg_real *weights, const mg_real *scores) {
    mg_interval keys = mg_visible(mask, row, m->T);
    double sum = 0, largest = -INFINITY, normalizer = 0;
    for (ptrdiff_t j = keys.first; j < keys.end; j++) largest = fmax(largest, (double)scores[j]);
    for (ptrdiff_t j = keys.first; j < keys.end; j++) normalizer += exp((double)scores[j] - largest);
    for (ptrdiff_t j = 0; j < m->T; j++) {
        double p = (double)weights[j];
        bool visible = j >= keys.first && j < keys.end;
        sum += p;
        if (!visible && !(p == 0)) m->forbidden = lab_larger(m->forbidden, fabs(p));
        double expected = visible ? exp((double)scores[j] - largest) / normalizer : 0;
        m->softmax_error = lab_larger(m->softmax_error, fabs(p - expected));
    }
    m->sum_error = lab_larger(m->sum_error, fabs(sum - 1));
}

static void check_maps(lab_head_maps *m, const mg_gpt_config *config) {
    ptrdiff_t area = (ptrdiff_t)m->T * m->T;
    for (ptrdiff_t h = 0; h < lab_head_count(m); h++) {
        mg_mask mask = mg_gpt_mask(config, (int)(h / m->n_head), (int)(h % m->n_head));
        /* A map read at its neighbor's place is no softmax of the head's scores. */
        ptrdiff_t at = lab_broken("heads.slice") ? (h + 1) % lab_head_count(m) : h;
        for (int i = 0; i < m->T; i++)
            check_row(m, i, mask, m->weights + at * area + (ptrdiff_t)i * m->T,
                      m->scores + h * area + (ptrdiff_t)i * m->T);
    }
}

/* One pass that looks and one that does not: they must agree to the bit. */
static void capture(lab_head_maps *m, mg_gpt *gpt, mg_tape *tape, const int *ids) {
    mg_gpt_capture look = {.weights = m->weights, .scores = m->scores};
    const mg_tensor *seen = mg_gpt_forward(gpt, tape, ids, 1, m->T, &(mg_gpt_pass){.capture = &look});
    const mg_tensor *unseen = mg_gpt_forward(gpt, tape, ids, 1, m->T, NULL);
    for (ptrdiff_t i = 0; i < mg_size(seen); i++) m->different_logits += seen->data[i] != unseen->data[i];
    mg_tape_reset(tape);
}

static void add_up(lab_head_numbers *sum, const lab_head_numbers *one, int n) {
    sum->distance += one->distance / n;
    sum->entropy += one->entropy / n;
    sum->first += one->first / n;
    sum->offset[0] += one->offset[0] / n;
    sum->offset[1] += one->offset[1] / n;
    sum->next += one->next / n;
    /* Texts differ in how many rows have a copy: rows count alike, so the weighted sum is divided at the end. */
    sum->duplicate += one->duplicate * one->n_duplicates;
    sum->induction += one->induction * one->n_duplicates;
    sum->n_duplicates += one->n_duplicates;
    sum->n_others += one->n_others;
}

void lab_head_measure_all(mg_lab *lab, mg_gpt *gpt, const lab_text_set *texts, lab_head_maps *m) {
    allocate(lab, gpt, texts, m);
    ptrdiff_t n = lab_head_count(m), area = (ptrdiff_t)m->T * m->T;
    double *distance = lab_numbers(lab, n * texts->n), *entropy = lab_numbers(lab, n * texts->n);
    double *first = lab_numbers(lab, n * texts->n);
    mg_tape *tape;
    mg_tape_new(&tape, NULL);
    lab_need_memory(tape, "a tape");
    mg_tape_record(tape, false);
    for (int text = 0; text < texts->n; text++) {
        const int *ids = texts->ids + (ptrdiff_t)text * texts->T;
        capture(m, gpt, tape, ids);
        check_maps(m, mg_gpt_get_config(gpt));
        for (ptrdiff_t h = 0; h < n; h++) {
            lab_head_numbers one = lab_head_measure(m->T, m->weights + h * area, ids);
            distance[h * texts->n + text] = one.distance;
            entropy[h * texts->n + text] = one.entropy;
            first[h * texts->n + text] = one.first;
            add_up(&m->numbers[h], &one, texts->n);
        }
    }
    mg_tape_free(tape);
    for (ptrdiff_t h = 0; h < n; h++) {
        if (m->numbers[h].n_duplicates > 0) {
            m->numbers[h].duplicate /= m->numbers[h].n_duplicates;
            m->numbers[h].induction /= m->numbers[h].n_duplicates;
        }
        m->distance[h] = lab_mean_of(texts->n, distance + h * texts->n);
        m->entropy[h] = lab_mean_of(texts->n, entropy + h * texts->n);
        m->first[h] = lab_mean_of(texts->n, first + h * texts->n);
    }
}

/* The most by which a head's entropy is above that of the head that looks at all of its keys alike. */
static double excess_entropy(mg_lab *lab, const lab_head_maps *m, const mg_gpt_config *config) {
    mg_real *map = lab_reals(lab, (ptrdiff_t)m->T * m->T);
    double excess = -INFINITY;
    for (ptrdiff_t h = 0; h < lab_head_count(m); h++) {
        lab_head_uniform(m->T, mg_gpt_mask(config, (int)(h / m->n_head), (int)(h % m->n_head)), map);
        excess = lab_larger(excess, m->entropy[h].mean - lab_head_measure(m->T, map, NULL).entropy);
    }
    return excess;
}

/* Whether a logit of these ids moves when the heads of one layer write nothing. */
static bool layer_counts(mg_gpt *gpt, mg_tape *tape, const int *ids, int T, int layer, unsigned char *off) {
    const mg_gpt_config *config = mg_gpt_get_config(gpt);
    int n_head = config->n_head;
    memset(off, 0, (size_t)config->n_layer * (size_t)n_head);
    memset(off + (ptrdiff_t)layer * n_head, 1, (size_t)n_head);
    const mg_gpt_ablation silenced = {.heads = off};
    const mg_tensor *whole = mg_gpt_forward(gpt, tape, ids, 1, T, NULL);
    const mg_tensor *without = mg_gpt_forward(gpt, tape, ids, 1, T, &(mg_gpt_pass){.ablation = &silenced});
    bool counts = memcmp(whole->data, without->data, (size_t)mg_size(whole) * sizeof *whole->data) != 0;
    mg_tape_reset(tape);
    return counts;
}

void lab_head_check_effect(mg_lab *lab, mg_gpt *gpt, const lab_text_set *texts) {
    int n_layer = mg_gpt_get_config(gpt)->n_layer, silent = 0;
    unsigned char *off = lab_memory(lab, (size_t)(n_layer * mg_gpt_get_config(gpt)->n_head), 1);
    mg_tape *tape = lab_inference_tape();
    for (int layer = 0; layer < n_layer; layer++) silent += !layer_counts(gpt, tape, texts->ids, texts->T, layer, off);
    mg_tape_free(tape);
    const char *name = "layers whose heads move no logit";
    if (silent > 0)
        lab_undecided(lab, name, silent, "",
                      "what the heads of %d of %s write moves no logit: their maps have no effect", silent,
                      mg_count(n_layer, "layer").text);
    else
        lab_check_count(lab, name, silent, 0, "");
}

void lab_head_check_maps(mg_lab *lab, const lab_head_maps *m, const mg_gpt_config *config) {
    lab_check_below(lab, "how far a row's weights are from a sum of 1", m->sum_error, 1e-5, "");
    lab_check_zero(lab, "largest weight where the mask allows none", m->forbidden, "");
    lab_check_below(lab, "captured weights, against the softmax of the captured scores", m->softmax_error, 1e-5, "");
    lab_check_zero(lab, "logits that capturing changed", m->different_logits, "");
    lab_check_at_most(lab, "entropy of a head minus that of a uniform one under the same mask, at most",
                      excess_entropy(lab, m, config), 1e-5, "nats");
}
