/* Lab heads: what each attention head of a model looks at, in three numbers and a name.
 *
 * A map P (T,T) has one row per query. Over its rows, with equal weight:
 *
 *     mean distance   Σ_j P_ij (i − j)        how far back the head looks; negative: ahead
 *     entropy         −Σ_j P_ij ln P_ij       how widely, with 0 · ln 0 = 0
 *     mass on token 0 P_i0
 *
 * The measure to compare with is the head that looks at everything alike: P_ij = 1/(i+1) has distance (T−1)/4 and
 * entropy ln(T!)/T. */
#include "heads.h"
#include "labs.h"
#include "subject.h"

#include <math.h>
#include <string.h>

enum { MOST_T = 32, PORTRAIT_T = 14, TEXTS = 16, MOST_PORTRAITS = 16, MOST_LAYERS = 1000 };

/* ---- Its own option ---- */

typedef struct heads_options {
    mg_run_options run; /* first: lab_subject reads it there */
    int layer;
} heads_options;

#define ROWS_OF heads_options
#include "setting_rows.h"
static const mg_setting heads_flags[] = {
    {.kind = MG_SETTING_HEADING, .help = "Portraits:"},
    {.name = "layer", COUNT(layer, 0, MOST_LAYERS), .help = "The layer whose heads are drawn; all are measured"},
    {0},
};

static void set_defaults(void *own) {
    *(heads_options *)own = (heads_options){.run = mg_run_defaults()};
}

static const mg_settings tables[] = {{mg_data_settings, 0}, {heads_flags, 0}, {NULL, 0}};
const lab_options lab_heads_options = {tables, sizeof(heads_options), set_defaults, NULL};

/* ---- All heads, on several texts ---- */

typedef struct maps {
    int n_layer, n_head, T, n_texts;
    mg_real *weights, *scores; /* (n_layer, B, n_head, T, T) of one text at a time: B is 1 */
    lab_mean *distance, *entropy, *first;
    lab_head_numbers *numbers; /* (n_layer, n_head): means over the texts */
    double sum_error, forbidden, softmax_error, different_logits;
} maps;

static ptrdiff_t n_heads(const maps *m) {
    return (ptrdiff_t)m->n_layer * m->n_head;
}

static void allocate(mg_lab *lab, const mg_gpt *gpt, const lab_text_set *texts, maps *m) {
    const mg_gpt_config *config = mg_gpt_get_config(gpt);
    *m = (maps){.n_layer = config->n_layer, .n_head = config->n_head, .T = texts->T, .n_texts = texts->n};
    size_t n = (size_t)n_heads(m), size = n * (size_t)(m->T * m->T);
    m->weights = mg_arena_alloc(lab->arena, size, sizeof(mg_real), "maps");
    m->scores = mg_arena_alloc(lab->arena, size, sizeof(mg_real), "maps");
    m->distance = mg_arena_alloc(lab->arena, n, sizeof(lab_mean), "a head's numbers");
    m->entropy = mg_arena_alloc(lab->arena, n, sizeof(lab_mean), "a head's numbers");
    m->first = mg_arena_alloc(lab->arena, n, sizeof(lab_mean), "a head's numbers");
    m->numbers = mg_arena_alloc(lab->arena, n, sizeof(lab_head_numbers), "a head's numbers");
    memset(m->numbers, 0, n * sizeof(lab_head_numbers));
}

/* Sum, forbidden weights, and whether the weights are the softmax of the scores that were captured beside them. */
static void check_row(maps *m, int row, mg_mask mask, const mg_real *weights, const mg_real *scores) {
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

static void check_maps(maps *m, const mg_gpt_config *config) {
    ptrdiff_t area = (ptrdiff_t)m->T * m->T;
    for (ptrdiff_t h = 0; h < n_heads(m); h++) {
        mg_mask mask = mg_gpt_mask(config, (int)(h / m->n_head), (int)(h % m->n_head));
        /* A map read at its neighbor's place is no softmax of the head's scores. */
        ptrdiff_t at = lab_broken("heads.slice") ? (h + 1) % n_heads(m) : h;
        for (int i = 0; i < m->T; i++)
            check_row(m, i, mask, m->weights + at * area + (ptrdiff_t)i * m->T,
                      m->scores + h * area + (ptrdiff_t)i * m->T);
    }
}

/* One pass that looks and one that does not: they must agree to the bit. */
static void capture(maps *m, mg_gpt *gpt, mg_tape *tape, const int *ids) {
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

static void measure_all(mg_lab *lab, mg_gpt *gpt, const lab_text_set *texts, maps *m) {
    allocate(lab, gpt, texts, m);
    ptrdiff_t n = n_heads(m), area = (ptrdiff_t)m->T * m->T;
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

/* ---- Pictures ---- */

/* The heads of one layer, on the beginning of the first text, short enough for its tokens to be read. */
static void show_portraits(mg_lab *lab, const lab_subject *subject, const lab_text_set *texts, int layer) {
    int T = texts->T < PORTRAIT_T ? texts->T : PORTRAIT_T;
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
static void show_layers(mg_lab *lab, const maps *m, const lab_head_numbers *uniform, bool causal) {
    static const char *const titles[N_QUANTITIES] = {
        "distance",  "entropy",        "on token 0",        "on token before",
        "on itself", "on token after", "on earlier copies", "on what followed copies"};
    lab_heatmap *map = lab_heatmap_begin(
        lab, "layers", "Every head at a glance",
        (lab_scale){.unit = "fraction", .low = 0, .high = 1, .rows = "layer", .columns = "head"});
    mg_real *values = mg_arena_alloc(lab->arena, (size_t)n_heads(m), sizeof *values, "an overview");
    for (int q = causal ? DISTANCE : ENTROPY; q < N_QUANTITIES; q++) {
        if (causal && q == AFTER) continue;
        for (ptrdiff_t h = 0; h < n_heads(m); h++)
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

static const char *texts_in_words(mg_lab *lab, const maps *m) {
    return m->n_texts == 1 ? "one text" : lab_format(lab, "the mean over %d texts", m->n_texts);
}

static void show_scatter(mg_lab *lab, const maps *m, const lab_head_numbers *uniform) {
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
static const char *error_text(mg_lab *lab, const maps *m, double error) {
    return m->n_texts > 1 ? lab_format(lab, "%.3f", error) : "–";
}

static const char *names_in_words(mg_lab *lab, const int counts[LAB_HEAD_NAMES]) {
    const char *text = "";
    for (int i = 0; i < LAB_HEAD_NAMES; i++)
        if (counts[i]) text = lab_format(lab, "%s%s%d %s", text, *text ? ", " : "", counts[i], lab_head_names[i]);
    return text;
}

static void show_table(mg_lab *lab, const maps *m, const lab_head_numbers *uniform) {
    lab_table *table = lab_table_begin(lab, "heads", "Every head",
                                       "layer\thead\tdistance\ts.e.\tentropy\ts.e.\ttoken 0\ts.e.\tname");
    int counts[LAB_HEAD_NAMES] = {0};
    for (ptrdiff_t h = 0; h < n_heads(m); h++) {
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
        uniform->entropy, uniform->first, n_heads(m), names_in_words(lab, counts));
}

/* The most by which a head's entropy is above that of the head that looks at all of its keys alike. */
static double excess_entropy(mg_lab *lab, const maps *m, const mg_gpt_config *config) {
    mg_real *map = lab_reals(lab, (ptrdiff_t)m->T * m->T);
    double excess = -INFINITY;
    for (ptrdiff_t h = 0; h < n_heads(m); h++) {
        lab_head_uniform(m->T, mg_gpt_mask(config, (int)(h / m->n_head), (int)(h % m->n_head)), map);
        excess = lab_larger(excess, m->entropy[h].mean - lab_head_measure(m->T, map, NULL).entropy);
    }
    return excess;
}

static void check_all(mg_lab *lab, const maps *m, const mg_gpt_config *config) {
    lab_check_below(lab, "how far a row's weights are from a sum of 1", m->sum_error, 1e-5, "");
    lab_check_zero(lab, "largest weight where the mask allows none", m->forbidden, "");
    lab_check_below(lab, "captured weights, against the softmax of the captured scores", m->softmax_error, 1e-5, "");
    lab_check_zero(lab, "logits that capturing changed", m->different_logits, "");
    lab_check_at_most(lab, "entropy of a head minus that of a uniform one under the same mask, at most",
                      excess_entropy(lab, m, config), 1e-5, "nats");
}

/* ---- Habits, on the text that asks for them ---- */

static ptrdiff_t head_with_most(const maps *m, double (*what)(const lab_head_numbers *)) {
    ptrdiff_t best = 0;
    for (ptrdiff_t h = 1; h < n_heads(m); h++)
        if (what(&m->numbers[h]) > what(&m->numbers[best])) best = h;
    return best;
}

static double on_token_before(const lab_head_numbers *n) {
    return n->offset[1];
}
static double on_token_after(const lab_head_numbers *n) {
    return n->next;
}

static const char *head_words(mg_lab *lab, const maps *m, ptrdiff_t h) {
    return lab_format(lab, "head %td of layer %td", h % m->n_head, h / m->n_head);
}

/* Two models of the same text, one mask apart: the masked one must look back, the unmasked one can look at its label.
 */
static void check_habits(mg_lab *lab, const maps *m, const lab_head_numbers *uniform, mg_gpt *unmasked,
                         const lab_text_set *texts, const char **labels, int portrait_T) {
    ptrdiff_t back = head_with_most(m, on_token_before);
    lab_check_at_least(lab, "masked: mean weight on the token before, of the head that looks there most",
                       m->numbers[back].offset[1], 0.5, "");
    lab_check_same_text(lab, "masked: that head is called",
                        lab_head_names[lab_head_name_of(&m->numbers[back], uniform->entropy)], "previous-token");
    maps u;
    measure_all(lab, unmasked, texts, &u);
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

/* ---- All of it ---- */

static bool on_own_text(const mg_lab *lab) {
    return !lab_asked(lab)->checkpoint && !lab_asked(lab)->data;
}

static void tell(mg_lab *lab) {
    if (on_own_text(lab)) {
        lab_hypothesis(lab, "Heads get the habits that the text asks for. Where each letter tends to repeat the one "
                            "before the last, some head of a masked model looks at the token before its query.");
        lab_hypothesis(lab, "Without the mask some head looks at the token after its query instead: the label.");
    } else {
        lab_hypothesis(lab, "Heads of trained models often have habits: of position (the token before), of content "
                            "(earlier copies, and what followed them), or a place for weight that is not needed (the "
                            "sink on token 0). The table shows whether this model's heads have any.");
    }
    lab_guess(lab, "before", "",
              "Which share of its weight does the head that looks at the token before most put there?");
    if (on_own_text(lab))
        lab_guess(lab, "label", "",
                  "Without a mask: which share does the head that looks at the token after most put there?");
    lab_exercise(lab, "Prove that the uniform causal head has mean distance (T − 1)/4 and entropy ln(T!)/T.");
    lab_exercise(lab,
                 "Run the lab with --data on a text of your own. Which habits does that text ask for, and which do "
                 "you find?");
    lab_exercise(lab, "Which heads could be removed? Decide from the table, then run `maskgrad lab ablation`.");
    lab_source(lab,
               "Clark et al. 2019, What does BERT look at? An analysis of BERT's attention: heads and their names.");
    lab_source(lab, "Olsson et al. 2022, In-context learning and induction heads.");
    lab_source(lab, "Xiao et al. 2024, Efficient streaming language models with attention sinks.");
    lab_source(lab, "Vig & Belinkov 2019, Analyzing the structure of attention in a transformer language model.");
}

static mg_status choose_texts(mg_lab *lab, lab_subject *subject, lab_text_set *texts, mg_error *error) {
    if (lab_asked(lab)->prompt && lab_asked(lab)->checkpoint) {
        *texts = (lab_text_set){.n = 1, .T = subject->loaded.T, .ids = subject->loaded.ids, .source = "the prompt"};
        return MG_OK;
    }
    int T = MOST_T, n = lab_subject_affords(subject, TEXTS, T);
    return lab_subject_texts(lab, subject, n, T, texts, error);
}

static int asked_layer(const mg_lab *lab) {
    return ((const heads_options *)lab_asked(lab)->own)->layer;
}

static mg_status check_layer(const mg_lab *lab, const mg_gpt_config *config, mg_error *error) {
    int layer = asked_layer(lab);
    if (layer < config->n_layer) return MG_OK;
    return mg_error_set(error, MG_ERR_INPUT, "--layer %d is not there: the model has %s, counted from 0", layer,
                        mg_count(config->n_layer, "layer").text);
}

static mg_status measure(mg_lab *lab, lab_subject *subject, mg_gpt *unmasked, mg_error *error) {
    lab_text_set texts;
    const mg_gpt_config *config = mg_gpt_get_config(subject->gpt);
    mg_status status = choose_texts(lab, subject, &texts, error);
    if (status) return status;
    lab_setting(lab, "texts", "%d of %d tokens: %s", texts.n, texts.T, texts.source);
    lab_did(lab, "Every head's map was captured on %s and measured row by row.", mg_count(texts.n, "text").text);
    maps m;
    measure_all(lab, subject->gpt, &texts, &m);
    mg_real *map = mg_arena_alloc(lab->arena, (size_t)(m.T * m.T), sizeof *map, "a map");
    lab_head_uniform(m.T, config->mask, map);
    lab_head_numbers uniform = lab_head_measure(m.T, map, NULL);
    lab_answer(lab, "before", m.numbers[head_with_most(&m, on_token_before)].offset[1]);
    check_all(lab, &m, config);
    show_portraits(lab, subject, &texts, asked_layer(lab));
    show_layers(lab, &m, &uniform, mg_gpt_is_causal(config));
    show_scatter(lab, &m, &uniform);
    show_table(lab, &m, &uniform);
    if (unmasked) {
        int portrait_T = texts.T < PORTRAIT_T ? texts.T : PORTRAIT_T;
        check_habits(lab, &m, &uniform, unmasked, &texts, lab_subject_labels(lab, subject, texts.ids, portrait_T),
                     portrait_T);
    }
    if (lab_asked(lab)->checkpoint) lab_model_note_limits(lab, "These maps are");
    lab_head_tell_rules(lab);
    return MG_OK;
}

static mg_status write_own_text(mg_lab *lab, mg_error *error) {
    const char *path = lab_format(lab, "%s/echoes.txt", lab_asked(lab)->out_dir);
    ((heads_options *)lab_asked(lab)->own)->run.data.path = path;
    lab_did(lab, "Two models, one mask apart, were trained on 200,000 letters written to echoes.txt: 6 times in 10 a "
                 "letter is the one before the last again, else it is drawn at random.");
    return lab_head_write_echoes(lab, path, error);
}

mg_status lab_heads(mg_lab *lab, mg_error *error) {
    tell(lab);
    mg_train_options shape = mg_train_defaults();
    shape.model.n_head = 2;
    shape.schedule.lr = 3e-3;
    shape.max_iters = lab_asked(lab)->quick ? 300 : 500;
    lab_subject subject = {0}, unmasked = {0};
    mg_status status = on_own_text(lab) ? write_own_text(lab, error) : MG_OK;
    if (!status) status = lab_subject_open(lab, &shape, LAB_LEAST_TO_SEE, check_layer, &subject, error);
    if (!status) lab_head_check_ruler(lab);
    if (!status && on_own_text(lab)) {
        shape.model.mask = mg_lookahead(lab_broken("heads.mask") ? 0 : MG_LOOKAHEAD_ALL);
        status = lab_subject_open(lab, &shape, LAB_LEAST_TO_SEE, NULL, &unmasked, error);
    }
    if (!status) status = measure(lab, &subject, unmasked.gpt, error);
    lab_subject_close(&subject);
    lab_subject_close(&unmasked);
    return status;
}
