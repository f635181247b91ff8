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

enum { MOST_T = 32, TEXTS = 16, MOST_LAYERS = 1000 };

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
    lab_head_maps m;
    lab_head_measure_all(lab, subject->gpt, &texts, &m);
    mg_real *map = mg_arena_alloc(lab->arena, (size_t)(m.T * m.T), sizeof *map, "a map");
    lab_head_uniform(m.T, config->mask, map);
    lab_head_numbers uniform = lab_head_measure(m.T, map, NULL);
    lab_answer(lab, "before", lab_head_most_before(&m));
    lab_head_check_maps(lab, &m, config);
    lab_head_check_effect(lab, subject->gpt, &texts);
    lab_head_show_portraits(lab, subject, &texts, asked_layer(lab));
    lab_head_show_layers(lab, &m, &uniform, mg_gpt_is_causal(config));
    lab_head_show_scatter(lab, &m, &uniform);
    lab_head_show_table(lab, &m, &uniform);
    if (unmasked) {
        int portrait_T = texts.T < LAB_HEAD_PORTRAIT_T ? texts.T : LAB_HEAD_PORTRAIT_T;
        lab_head_check_habits(lab, &m, &uniform, unmasked, &texts,
                              lab_subject_labels(lab, subject, texts.ids, portrait_T), portrait_T);
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
