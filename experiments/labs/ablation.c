/* Lab ablation: leave out one part of a trained model, and see what is missed.
 *
 * A block adds to the residual stream, x ← x + attention(x) and x ← x + mlp(x), so it can be left out: x ← x. A head
 * writes its slice of the concatenation that W^O projects, so it can be silenced: 0 in its place. Every removal is
 * measured on the same texts, and each text is its own control: the standard error is that of the differences. */
#include "lab_private.h"
#include "labs.h"
#include "run_dir.h"
#include "subject.h"

#include <math.h>
#include <string.h>

enum { MOST_T = 32, TEXTS = 64, MAP_TEXTS = 8 };
/* What "survives" means here. Conventions, stated in the report. */
#define LOSS_SURVIVES 0.05 /* nats */
#define MAPS_SURVIVE 0.1   /* of a row's weight moved */

/* What is left out of which layer: a head by its number, all of its heads (the MLP stays), or the block. */
enum { BLOCK = -1, ALL_HEADS = -2 };
typedef struct removal {
    int layer, head; /* layer -1: nothing is left out */
} removal;

typedef struct study {
    mg_gpt *gpt;
    const mg_gpt_config *config;
    const lab_text_set *texts;
    mg_tape *tape;
    int n_maps;            /* texts of which maps are compared */
    size_t map_size;       /* (n_layer, n_head, T, T) */
    mg_real *whole, *maps; /* (n_maps, map_size) of the whole model; map_size of one pass */
    mg_real *row_loss;     /* T */
    unsigned char *off, *skip;
} study;

/* ---- One measurement ---- */

/* weights: where the attention maps go, or NULL. */
static double text_loss(study *s, int text, const mg_gpt_ablation *ablation, mg_real *weights) {
    int T = s->texts->T;
    ptrdiff_t at = (ptrdiff_t)text * T;
    mg_gpt_capture capture = {.weights = weights};
    mg_gpt_pass pass = {.capture = &capture, .ablation = ablation};
    double loss =
        (double)mg_gpt_loss(s->gpt, s->tape, s->texts->ids + at, s->texts->targets + at, 1, T, &pass, NULL)->data[0];
    mg_tape_reset(s->tape);
    return loss;
}

static mg_gpt_ablation leave_out(study *s, removal r) {
    memset(s->off, 0, (size_t)(s->config->n_layer * s->config->n_head));
    memset(s->skip, 0, (size_t)s->config->n_layer);
    if (r.layer >= 0 && r.head == BLOCK) s->skip[r.layer] = 1;
    /* Spoilt: the head of the right number, in the wrong layer. */
    int layer = lab_broken("ablation.layer") ? 0 : r.layer;
    for (int h = 0; h < s->config->n_head && r.layer >= 0; h++)
        if (r.head == h || r.head == ALL_HEADS) s->off[layer * s->config->n_head + h] = 1;
    return (mg_gpt_ablation){.heads = s->off, .blocks = s->skip};
}

static void losses(study *s, removal r, double *loss) {
    mg_gpt_ablation ablation = leave_out(s, r);
    for (int text = 0; text < s->texts->n; text++) loss[text] = text_loss(s, text, &ablation, NULL);
}

/* ½ Σ_j |p_j − q_j|, the weight that moved, averaged over the rows of one head's map. */
static double moved(int T, const mg_real *p, const mg_real *q) {
    double sum = 0;
    for (ptrdiff_t i = 0; i < (ptrdiff_t)T * T; i++) sum += 0.5 * fabs((double)p[i] - (double)q[i]) / T;
    return sum;
}

/* change (n_layer, n_head): the weight that moved in each head's map, mean over the texts. Of a block that is not
 * there, -inf: its maps do not exist. */
static void map_changes(study *s, removal r, double *change) {
    mg_gpt_ablation ablation = leave_out(s, r);
    int T = s->texts->T, n = s->config->n_layer * s->config->n_head;
    for (int i = 0; i < n; i++) change[i] = 0;
    for (int text = 0; text < s->n_maps; text++) {
        text_loss(s, text, &ablation, s->maps);
        for (int i = 0; i < n; i++)
            change[i] += moved(T, s->maps + (ptrdiff_t)i * T * T,
                               s->whole + (ptrdiff_t)((size_t)text * s->map_size) + (ptrdiff_t)i * T * T) /
                         s->n_maps;
    }
    for (int i = 0; i < n; i++)
        if (r.layer >= 0 && r.head == BLOCK && i / s->config->n_head == r.layer) change[i] = -INFINITY;
}

static void set_up(mg_lab *lab, lab_subject *subject, const lab_text_set *texts, study *s) {
    const mg_gpt_config *c = mg_gpt_get_config(subject->gpt);
    *s = (study){.gpt = subject->gpt, .config = c, .texts = texts};
    s->n_maps = texts->n < MAP_TEXTS ? texts->n : MAP_TEXTS;
    size_t n = (size_t)(c->n_layer * c->n_head);
    s->map_size = n * (size_t)(texts->T * texts->T);
    s->whole = mg_arena_alloc(lab->arena, s->map_size * (size_t)s->n_maps, sizeof(mg_real), "maps");
    s->maps = mg_arena_alloc(lab->arena, s->map_size, sizeof(mg_real), "maps");
    s->off = mg_arena_alloc(lab->arena, n, 1, "switches");
    s->skip = mg_arena_alloc(lab->arena, (size_t)c->n_layer, 1, "switches");
    mg_tape_new(&s->tape, NULL);
    lab_need_memory(s->tape, "a tape");
    mg_tape_record(s->tape, false);
    mg_gpt_ablation nothing = leave_out(s, (removal){-1, -1});
    for (int text = 0; text < s->n_maps; text++) text_loss(s, text, &nothing, s->whole + (size_t)text * s->map_size);
    memset(s->maps, 0, s->map_size * sizeof(mg_real)); /* a skipped block writes none */
}

/* ---- The same removals by another road ---- */

/* Zero, in the weights themselves, what the removal leaves out, and put it back: rows of W^O for a head; for a block
 * both of its projections into the stream. */
typedef struct cut {
    mg_tensor *tensor;
    ptrdiff_t begin, end;
    mg_real *kept;
} cut;

static cut make_cut(mg_tensor *tensor, ptrdiff_t begin, ptrdiff_t end) {
    cut c = {tensor, begin, end, mg_alloc((size_t)(end - begin), sizeof(mg_real), "weights", NULL)};
    lab_need_memory(c.kept, "weights");
    memcpy(c.kept, tensor->data + begin, (size_t)(end - begin) * sizeof(mg_real));
    memset(tensor->data + begin, 0, (size_t)(end - begin) * sizeof(mg_real));
    return c;
}

static void undo(cut c) {
    memcpy(c.tensor->data + c.begin, c.kept, (size_t)(c.end - c.begin) * sizeof(mg_real));
    mg_free(c.kept);
}

static mg_tensor *parameter(mg_lab *lab, study *s, int layer, const char *name) {
    mg_param *p = mg_params_find(mg_gpt_params(s->gpt), lab_format(lab, "h.%d.%s", layer, name));
    return p ? &p->tensor : NULL;
}

static int cut_out(mg_lab *lab, study *s, removal r, cut cuts[4]) {
    if (r.head != BLOCK) {
        mg_tensor *w = parameter(lab, s, r.layer, "attn.c_proj.weight"); /* (C,C): row = place in the heads' outputs */
        if (!w) return 0;
        ptrdiff_t slice = s->config->n_embd / s->config->n_head * w->dim[1];
        ptrdiff_t begin = r.head == ALL_HEADS ? 0 : r.head * slice;
        cuts[0] = make_cut(w, begin, r.head == ALL_HEADS ? mg_size(w) : begin + slice);
        return 1;
    }
    static const char *const names[] = {"attn.c_proj.weight", "attn.c_proj.bias", "mlp.c_proj.weight",
                                        "mlp.c_proj.bias"};
    int n = 0;
    for (int i = 0; i < 4; i++) {
        mg_tensor *t = parameter(lab, s, r.layer, names[i]);
        if (!t) return 0;
        cuts[n++] = make_cut(t, 0, mg_size(t));
    }
    return n;
}

/* The largest difference between a text's loss with the switch and with the weights cut. */
static double other_road(mg_lab *lab, study *s, removal r, const double *loss) {
    cut cuts[4];
    int n = cut_out(lab, s, r, cuts);
    if (n == 0) return 0; /* without W^O there is no row to cut */
    mg_gpt_ablation nothing = leave_out(s, (removal){-1, -1});
    double largest = 0;
    for (int text = 0; text < s->n_maps; text++)
        largest = lab_larger(largest, fabs(text_loss(s, text, &nothing, NULL) - loss[text]));
    for (int i = 0; i < n; i++) undo(cuts[i]);
    return largest;
}

/* ---- All removals ---- */

typedef struct outcome {
    removal removal;
    const char *name;
    lab_mean change;    /* of the loss */
    double *maps;       /* (n_layer, n_head): the weight that moved in each head's map */
    double moved, most; /* mean and largest over the heads after the removal; NaN if there is none */
    double before;      /* largest over those that nothing may have reached */
    double other_road;
} outcome;

/* Whether the removal can reach the maps of this layer: not its own, which are made before a head's output is lost. */
static bool reaches(removal r, int layer) {
    return layer > r.layer;
}

static void sum_up_maps(const study *s, outcome *o) {
    int n = s->config->n_layer * s->config->n_head, behind = 0;
    double sum = 0;
    o->most = o->before = 0;
    for (int i = 0; i < n; i++) {
        if (o->maps[i] == -INFINITY) continue;
        if (reaches(o->removal, i / s->config->n_head)) {
            sum += o->maps[i];
            o->most = lab_larger(o->most, o->maps[i]);
            behind++;
        } else {
            o->before = lab_larger(o->before, o->maps[i]);
        }
    }
    o->moved = behind ? sum / behind : NAN;
    if (!behind) o->most = NAN;
}

static void measure(mg_lab *lab, study *s, const double *base, outcome *o) {
    int n = s->texts->n;
    double *loss = lab_numbers(lab, n), *change = lab_numbers(lab, n);
    losses(s, o->removal, loss);
    for (int i = 0; i < n; i++) change[i] = loss[i] - base[i];
    o->change = lab_mean_of(n, change);
    o->maps = lab_numbers(lab, s->config->n_layer * s->config->n_head);
    map_changes(s, o->removal, o->maps);
    sum_up_maps(s, o);
    o->other_road = other_road(lab, s, o->removal, loss);
}

static mg_status measure_all(mg_lab *lab, study *s, const double *base, outcome **outcomes, int *n_outcomes,
                             mg_error *error) {
    const mg_gpt_config *c = s->config;
    int n = c->n_layer * (2 + c->n_head), k = 0;
    outcome *all = mg_arena_alloc(lab->arena, (size_t)n, sizeof *all, "removals");
    for (int layer = 0; layer < c->n_layer; layer++)
        for (int head = ALL_HEADS; head < c->n_head; head++, k++) {
            all[k] = (outcome){.removal = {layer, head}};
            all[k].name = head == BLOCK       ? lab_format(lab, "layer %d", layer)
                          : head == ALL_HEADS ? lab_format(lab, "heads %d.*", layer)
                                              : lab_format(lab, "head %d.%d", layer, head);
            lab_progress(lab, "removing", k, n, "%s", all[k].name);
            mg_status status = lab_interrupted(lab, error);
            if (status) return status;
            measure(lab, s, base, &all[k]);
        }
    lab_progress(lab, "removing", n, n, "all");
    *outcomes = all;
    *n_outcomes = n;
    return MG_OK;
}

/* ---- Pictures ---- */

enum { MOST_BARS = 24 };

static void show_losses(mg_lab *lab, const outcome *all, int n) {
    const char *names[MOST_BARS];
    double y[MOST_BARS];
    int order[MOST_BARS], shown = 0;
    /* Where they are too many for one picture, the costliest. */
    for (int i = 0; i < n; i++) {
        int at = shown < MOST_BARS ? shown++ : all[i].change.mean > all[order[shown - 1]].change.mean ? shown - 1 : -1;
        for (; at > 0 && n > MOST_BARS && all[order[at - 1]].change.mean < all[i].change.mean; at--)
            order[at] = order[at - 1];
        if (at >= 0) order[at] = i;
    }
    for (int i = 0; i < shown; i++) names[i] = all[order[i]].name, y[i] = all[order[i]].change.mean;
    lab_figure *figure = lab_figure_begin(lab, "loss", "What each removal costs",
                                          (lab_axes){.x = "left out", .y = "change in loss (nats)"});
    lab_bars(figure, LAB_MASKED, "change in loss", shown, names, y);
    lab_figure_end(figure,
                   "%sA part whose bar is near 0 was not missed. Bars do not add up: parts that do the same work cost "
                   "little one by one and much together.",
                   shown < n ? "The costliest. " : "");
}

static void show_maps(mg_lab *lab, const study *s, const outcome *all, int n) {
    int heads = s->config->n_layer * s->config->n_head;
    if (s->config->n_layer < 2) {
        lab_note(lab, "With one layer no head comes after another, so no map can change.");
        return;
    }
    mg_real *values = mg_arena_alloc(lab->arena, (size_t)(n * heads), sizeof *values, "changes of maps");
    const char **rows = mg_arena_alloc(lab->arena, (size_t)n, sizeof *rows, "labels");
    const char **columns = mg_arena_alloc(lab->arena, (size_t)heads, sizeof *columns, "labels");
    for (int i = 0; i < heads; i++) columns[i] = lab_format(lab, "%d.%d", i / s->config->n_head, i % s->config->n_head);
    for (int r = 0; r < n; r++) {
        rows[r] = all[r].name;
        for (int i = 0; i < heads; i++) values[r * heads + i] = (mg_real)all[r].maps[i];
    }
    lab_heatmap *map = lab_heatmap_begin(
        lab, "maps", "How far each removal moves the maps of the rest",
        (lab_scale){.unit = "moved", .log = true, .rows = "left out", .columns = "map of layer.head"});
    lab_heatmap_panel(map, (lab_panel){.title = "",
                                       .n_rows = n,
                                       .n_columns = heads,
                                       .values = values,
                                       .row_labels = rows,
                                       .column_labels = columns,
                                       .masked = true,
                                       .mask = mg_lookahead(MG_LOOKAHEAD_ALL)});
    lab_heatmap_end(map,
                    "Half the sum of the absolute differences of a row, mean over rows and %d texts: 0 is the same "
                    "map, 1 a completely different one. What comes before the removal cannot know of it and must be "
                    "exactly 0; maps of a block that is not there do not exist.",
                    s->n_maps);
}

static void show_table(mg_lab *lab, const study *s, const outcome *all, int n, double whole) {
    lab_table *table = lab_table_begin(lab, "removals", "Every removal, and the change in loss",
                                       "left out\tchange\t± s.e.\tmaps moved\tat most\tloss\tmaps");
    int loss_survives = 0, maps_survive = 0, with_maps = 0;
    for (int i = 0; i < n; i++) {
        const outcome *o = &all[i];
        bool loss = o->change.mean < LOSS_SURVIVES, maps = o->moved < MAPS_SURVIVE, behind = !isnan(o->moved);
        loss_survives += loss;
        maps_survive += behind && maps;
        with_maps += behind;
        const char *verdict = !behind ? "none after it" : maps ? "survive" : "change";
        lab_table_row(table, "%s\t%+.4f\t%.4f\t%s\t%s\t%s\t%s", o->name, o->change.mean, o->change.error,
                      behind ? lab_format(lab, "%.3f", o->moved) : "–", behind ? lab_format(lab, "%.3f", o->most) : "–",
                      loss ? "survives" : "suffers", verdict);
    }
    lab_answer(lab, "survive", 100.0 * loss_survives / n);
    lab_table_end(
        table,
        "Means over %d texts of %d tokens (maps: %d texts). The whole model's loss is %.4f nats. The loss is "
        "said to survive if it rises by less than %g nats, the maps after it if less than %g of a row's weight "
        "moves on average: so %d of %d losses survive, and the maps of %d of the %d removals that have maps "
        "after them.",
        s->texts->n, s->texts->T, s->n_maps, whole, LOSS_SURVIVES, MAPS_SURVIVE, loss_survives, n, maps_survive,
        with_maps);
}

/* ---- Checks ---- */

#define COSTLY 0.1 /* nats that the costliest removal takes, if the model uses what it has */

/* What a model loses that knows only how often each token is a target of these texts, in nats. */
static double frequency_loss(mg_lab *lab, const study *s) {
    ptrdiff_t n = (ptrdiff_t)s->texts->n * s->texts->T, V = s->config->vocab_size;
    double *count = lab_numbers(lab, V), sum = 0;
    for (ptrdiff_t i = 0; i < n; i++) count[s->texts->targets[i]]++;
    for (ptrdiff_t v = 0; v < V; v++)
        if (count[v] > 0) sum -= count[v] * log(count[v] / (double)n);
    return sum / (double)n;
}

/* A model that uses no context has nothing that could be missed. */
static void check_costliest(mg_lab *lab, const study *s, const outcome *worst, double whole) {
    const char *cost = "costliest removal: change in loss",
               *errors = "costliest removal: change in loss, in standard errors";
    double by_errors = worst->change.mean / worst->change.error, frequencies = frequency_loss(lab, s);
    if (whole > frequencies - COSTLY) {
        const char *why = lab_format(lab,
                                     "the whole model's loss is %.3f nats, and that of knowing how often each token "
                                     "occurs %.3f: it makes next to no use of context that could be missed",
                                     whole, frequencies);
        lab_undecided(lab, cost, worst->change.mean, "nats", "%s", why);
        lab_undecided(lab, errors, by_errors, "s.e.", "%s", why);
        return;
    }
    lab_check_above(lab, cost, worst->change.mean, COSTLY, "nats");
    lab_check_above(lab, errors, by_errors, 3, "s.e.");
}

/* The costliest of n removals, and what all of them did. */
typedef struct effects {
    const outcome *worst;
    double before;  /* the most weight that moved in maps that nothing may have reached, */
    double reached; /* and in those that something may have */
    double road;    /* the largest difference between the two ways to remove a part */
    bool none;      /* no removal moved a loss or a map */
} effects;

static effects sum_up(int n, const outcome *all) {
    effects e = {.worst = &all[0], .none = true};
    for (int i = 0; i < n; i++) {
        e.before = lab_larger(e.before, all[i].before);
        e.road = lab_larger(e.road, all[i].other_road);
        if (!isnan(all[i].most)) e.reached = lab_larger(e.reached, all[i].most);
        if (all[i].change.mean > e.worst->change.mean) e.worst = &all[i];
        e.none &= all[i].change.mean == 0 && all[i].change.error == 0;
    }
    e.none &= e.reached == 0;
    return e;
}

/* Where no removal moves anything, a removal in the wrong place would not show either. */
static void check_removals(mg_lab *lab, const effects *e, bool several_layers) {
    const char *before = "weight moved in maps before what was left out";
    const char *behind = "weight moved in maps after what was left out, at most";
    const char *road = "the same removals by setting weights to 0: largest difference of a loss";
    if (e->none) {
        const char *why = "no removal moves a loss or a map: this model does nothing with its layers";
        lab_undecided(lab, before, e->before, "", "%s", why);
        if (several_layers) lab_undecided(lab, behind, e->reached, "", "%s", why);
        lab_undecided(lab, road, e->road, "nats", "%s", why);
        return;
    }
    lab_check_zero(lab, before, e->before, "");
    if (several_layers && e->reached == 0 && lab_asked(lab)->checkpoint)
        lab_undecided(lab, behind, e->reached, "", "nothing that this model leaves out reaches a later map");
    else if (several_layers)
        lab_check_above(lab, behind, e->reached, 0, "");
    lab_check_below(lab, road, e->road, 1e-4, "nats");
}

static void check_all(mg_lab *lab, study *s, const outcome *all, int n, const double *base) {
    double *again = lab_numbers(lab, s->texts->n), *nothing = lab_numbers(lab, s->config->n_layer * s->config->n_head);
    double different = 0, moved_most = 0;
    losses(s, (removal){-1, -1}, again);
    for (int i = 0; i < s->texts->n; i++) different += again[i] != base[i];
    map_changes(s, (removal){-1, -1}, nothing);
    for (int i = 0; i < s->config->n_layer * s->config->n_head; i++) moved_most = lab_larger(moved_most, nothing[i]);
    effects e = sum_up(n, all);
    lab_answer(lab, "costliest", e.worst->change.mean);
    lab_check_zero(lab, "nothing left out: texts whose loss differs", different, "");
    lab_check_zero(lab, "nothing left out: weight moved in the maps", moved_most, "");
    check_removals(lab, &e, s->config->n_layer > 1);
    if (lab_asked(lab)->checkpoint) return; /* a model that has learned nothing misses nothing */
    check_costliest(lab, s, e.worst, lab_mean_of(s->texts->n, base).mean);
}

/* ---- All of it ---- */

static void tell(mg_lab *lab) {
    lab_hypothesis(lab, "Leaving out a layer costs more than leaving out any one of its heads.");
    lab_hypothesis(lab,
                   "Leaving out most heads costs little: the loss survives, because others do the same work or because "
                   "there was little to do.");
    lab_hypothesis(lab, "A removal moves the maps after it and none before it.");
    lab_guess(lab, "costliest", "nats", "By how much will the loss rise at the costliest removal?");
    lab_guess(lab, "survive", "%", "What share of all removals will the loss survive, rising by less than %g nats?",
              LOSS_SURVIVES);
    lab_exercise(lab, "The changes of a layer's heads do not add up to the change of the layer. Give two reasons.");
    lab_exercise(lab, "Which head would you remove first to make the model smaller, and how would you check that the "
                      "second removal is still cheap?");
    lab_exercise(lab, "A head's map survives a removal, and yet its output changes. How can that be?");
    lab_source(lab, "Michel, Levy & Neubig 2019, Are sixteen heads really better than one?");
    lab_source(lab, "Voita et al. 2019, Analyzing multi-head self-attention: specialized heads do the heavy lifting.");
    lab_source(lab, "Veit, Wilber & Belongie 2016, Residual networks behave like ensembles of relatively shallow "
                    "networks.");
}

static mg_status measure_subject(mg_lab *lab, lab_subject *subject, mg_error *error) {
    lab_text_set texts;
    int usual = lab_asked(lab)->quick ? TEXTS / 2 : TEXTS;
    int removals = mg_gpt_get_config(subject->gpt)->n_layer * (2 + mg_gpt_get_config(subject->gpt)->n_head);
    /* Each removal reads every text again. */
    int n = lab_subject_affords(subject, usual, MOST_T * (1 + removals / 32));
    mg_status status = lab_subject_texts(lab, subject, n, MOST_T, &texts, error);
    if (status) return status;
    lab_setting(lab, "texts", "%d of %d tokens: %s", texts.n, texts.T, texts.source);
    lab_did(lab,
            "Each layer and each head was left out in turn, with nothing trained afterwards, and the loss of the "
            "same %d texts was taken again.",
            texts.n);
    study s;
    set_up(lab, subject, &texts, &s);
    double *base = lab_numbers(lab, texts.n);
    losses(&s, (removal){-1, -1}, base);
    outcome *all;
    int n_outcomes;
    status = measure_all(lab, &s, base, &all, &n_outcomes, error);
    if (!status) {
        check_all(lab, &s, all, n_outcomes, base);
        show_losses(lab, all, n_outcomes);
        show_maps(lab, &s, all, n_outcomes);
        show_table(lab, &s, all, n_outcomes, lab_mean_of(texts.n, base).mean);
    }
    mg_tape_free(s.tape);
    return status;
}

mg_status lab_ablation(mg_lab *lab, mg_error *error) {
    tell(lab);
    mg_train_options shape = mg_train_defaults();
    shape.model.n_layer = 3;
    shape.max_iters = lab_asked(lab)->quick ? 250 : 1000;
    lab_subject subject;
    mg_status status = lab_subject_open(lab, &shape, LAB_LEAST_TO_SEE, NULL, &subject, error);
    if (!status) status = measure_subject(lab, &subject, error);
    lab_subject_close(&subject);
    return status;
}
