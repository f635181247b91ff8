#include "causality.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Two runs: as it is, and with one change. */
typedef struct runs {
    const mg_causality_model *model;
    mg_real **plain, **changed; /* n_stages each, into memory */
    mg_real *memory;
} runs;

static void free_runs(runs *r) {
    mg_free(r->plain);
    mg_free(r->memory);
}

static mg_status new_runs(runs *r, const mg_causality_model *model, mg_error *error) {
    ptrdiff_t size = 0, n = model->n_stages;
    for (ptrdiff_t s = 0; s < n; s++) size += model->T * model->width[s];
    *r = (runs){.model = model};
    r->plain = mg_alloc((size_t)(2 * n), sizeof *r->plain, "the causality check", error);
    r->memory = mg_alloc((size_t)(2 * size), sizeof *r->memory, "the causality check", error);
    if (!r->plain || !r->memory) {
        free_runs(r);
        return MG_ERR_MEMORY;
    }
    r->changed = r->plain + n;
    mg_real *at = r->memory;
    for (ptrdiff_t s = 0; s < n; at += model->T * model->width[s++]) {
        r->plain[s] = at;
        r->changed[s] = at + size;
    }
    return MG_OK;
}

/* The largest change of a row. Any changed bit counts, so that a difference of 0 is no difference at all. */
static double row_change(const runs *r, int stage, ptrdiff_t row) {
    ptrdiff_t width = r->model->width[stage];
    const mg_real *a = r->plain[stage] + row * width, *b = r->changed[stage] + row * width;
    if (memcmp(a, b, (size_t)width * sizeof *a) == 0) return 0;
    double largest = DBL_TRUE_MIN;
    for (ptrdiff_t k = 0; k < width; k++) {
        double difference = fabs((double)a[k] - (double)b[k]);
        largest = isnan(difference) ? INFINITY : fmax(largest, difference);
    }
    return largest;
}

/* ---- Measuring ---- */

static void perturb(mg_causality *c, const runs *r) {
    const mg_causality_model *m = r->model;
    ptrdiff_t T = c->T;
    int logits = m->n_stages - 1;
    for (ptrdiff_t j = 0; j < T; j++) {
        m->forward(m->user, j, MG_CHANGE_TOKEN, r->changed);
        for (ptrdiff_t i = 0; i < T; i++) c->perturbation[i * T + j] = row_change(r, logits, i);
        m->forward(m->user, j, MG_CHANGE_EMBEDDING, r->changed);
        for (ptrdiff_t i = 0; i < T; i++)
            c->perturbation[i * T + j] = fmax(c->perturbation[i * T + j], row_change(r, logits, i));
        if (!c->poison) continue;
        m->forward(m->user, j, MG_CHANGE_POISON, r->changed);
        for (ptrdiff_t i = 0; i < T; i++) c->poison[i * T + j] = row_change(r, logits, i) > 0;
    }
}

static void differentiate(mg_causality *c, const mg_causality_model *m) {
    for (ptrdiff_t i = 0; c->gradient && i < c->T; i++) m->gradient(m->user, i, c->gradient + i * c->T);
}

/* The first row that is not as it was when nothing is changed; -1: none. */
static ptrdiff_t unsteady_row(const runs *r) {
    const mg_causality_model *m = r->model;
    m->forward(m->user, 0, MG_CHANGE_NOTHING, r->changed);
    for (ptrdiff_t i = 0; i < m->T; i++)
        for (int s = 0; s < m->n_stages; s++)
            if (row_change(r, s, i) > 0) return i;
    return -1;
}

/* Before, and after all the other calls. */
static ptrdiff_t measure(mg_causality *c, const runs *r) {
    const mg_causality_model *m = r->model;
    m->forward(m->user, 0, MG_CHANGE_NOTHING, r->plain);
    ptrdiff_t unsteady = unsteady_row(r);
    if (unsteady >= 0) return unsteady;
    perturb(c, r);
    unsteady = unsteady_row(r);
    if (unsteady < 0) differentiate(c, m);
    return unsteady;
}

/* ---- Judging ---- */

static bool influences(const mg_causality *c, ptrdiff_t i, ptrdiff_t j) {
    ptrdiff_t at = i * c->T + j;
    return c->perturbation[at] > 0 && (!c->gradient || c->gradient[at] > 0);
}

/* The larger of the two influences. NaN is not 0: an unknown gradient counts as an influence. */
static void larger_of_both(const mg_causality *c, double *flow) {
    for (ptrdiff_t at = 0; at < c->T * c->T; at++) {
        double gradient = c->gradient ? c->gradient[at] : 0;
        flow[at] = isnan(gradient) ? INFINITY : fmax(c->perturbation[at], gradient);
    }
}

/* The first stage in which row `query` changes by any of these changes at `key`. */
static int layer_of_leak(const mg_causality *c, const runs *r, mg_change first, mg_change last) {
    const mg_causality_model *m = r->model;
    int layer = m->n_stages - 1;
    for (mg_change change = first; change <= last; change++) {
        m->forward(m->user, c->key, change, r->changed);
        for (int s = 0; s < layer; s++)
            if (row_change(r, s, c->query) > 0) layer = s;
    }
    return layer;
}

static bool past_influences(const mg_causality *c, ptrdiff_t i) {
    for (ptrdiff_t j = 0; j < i; j++)
        if (influences(c, i, j)) return true;
    return false;
}

/* The first row that neither itself nor any of its past seems to influence; -1 if all is well. A row that begins a
 * document may be silent, but not all of them: then nothing was seen to flow. */
static ptrdiff_t silent_row(const mg_causality *c, const bool *begins, bool *itself) {
    bool flows = c->T == 1;
    for (ptrdiff_t i = 0; i < c->T; i++) {
        *itself = !influences(c, i, i);
        if (*itself) return i;
        bool past = past_influences(c, i);
        if (!past && i > 0 && !(begins && begins[i])) return i;
        flows |= past;
    }
    return flows ? -1 : 1;
}

static void judge_leak(mg_causality *c, const runs *r) {
    c->verdict = MG_LEAKS;
    c->layer = layer_of_leak(c, r, MG_CHANGE_TOKEN, MG_CHANGE_EMBEDDING);
    char where[48] = "first seen in the logits";
    if (c->layer < r->model->n_stages - 1) snprintf(where, sizeof where, "first seen after layer %d", c->layer);
    snprintf(c->reason, sizeof c->reason, "position %td depends on position %td, which is in its future: %s", c->query,
             c->key, where);
}

static void judge_silence(mg_causality *c, ptrdiff_t silent, bool itself) {
    c->verdict = MG_INCONCLUSIVE;
    snprintf(c->reason, sizeof c->reason,
             "position %td is not influenced by %s: where nothing flows, nothing can be seen to leak", silent,
             itself ? "its own token" : "any position before it");
}

/* Whether any NaN of the future arrives; then query, key and layer are the first one's. */
static bool poison_leaks(mg_causality *c, const runs *r) {
    for (ptrdiff_t i = 0; c->poison && i < c->T; i++)
        for (ptrdiff_t j = i + 1; j < c->T; j++) {
            if (!c->poison[i * c->T + j]) continue;
            c->query = i;
            c->key = j;
            c->layer = layer_of_leak(c, r, MG_CHANGE_POISON, MG_CHANGE_POISON);
            return true;
        }
    return false;
}

static void judge(mg_causality *c, const runs *r, const mg_influence *found) {
    bool itself;
    ptrdiff_t silent = silent_row(c, r->model->begins, &itself);
    c->query = found->query;
    c->key = found->key;
    c->largest = found->largest;
    if (c->query >= 0) {
        judge_leak(c, r);
        return;
    }
    if (silent >= 0) {
        judge_silence(c, silent, itself);
        return;
    }
    bool poisoned = poison_leaks(c, r);
    c->verdict = poisoned ? MG_ONLY_POISON_LEAKS : MG_CAUSAL;
    int length = snprintf(c->reason, sizeof c->reason, "of %td pairs (query, later key), none has any influence",
                          c->T * (c->T - 1) / 2);
    if (poisoned)
        snprintf(c->reason + length, sizeof c->reason - (size_t)length,
                 "; only a NaN passes, first from position %td to %td: what is masked is multiplied by 0", c->key,
                 c->query);
}

static void judge_unsteady(mg_causality *c, ptrdiff_t row) {
    c->verdict = MG_NOT_REPEATABLE;
    snprintf(c->reason, sizeof c->reason,
             "the same input gave position %td other bits: a model that is not repeatable cannot be judged", row);
}

static void check(mg_causality *c, const runs *r, double *flow) {
    ptrdiff_t unsteady = measure(c, r);
    if (unsteady >= 0) {
        judge_unsteady(c, unsteady);
        return;
    }
    larger_of_both(c, flow);
    mg_influence found = mg_influence_read(c->T, flow);
    judge(c, r, &found);
}

mg_status mg_causality_check(mg_causality *c, const mg_causality_model *model, mg_error *error) {
    MG_CHECK(model->T >= 1 && model->n_stages >= 1, "causality: %td positions and %d stages; at least 1 of each",
             model->T, model->n_stages);
    static const char what[] = "the influence matrix";
    size_t n = (size_t)model->T * (size_t)model->T;
    runs r;
    *c = (mg_causality){.T = model->T, .query = -1, .key = -1, .layer = -1};
    if (new_runs(&r, model, error) != MG_OK) return MG_ERR_MEMORY;
    double *flow = mg_alloc(n, sizeof *flow, what, error);
    c->perturbation = mg_alloc_zero(n, sizeof *c->perturbation, what, error);
    if (model->has_poison) c->poison = mg_alloc_zero(n, sizeof *c->poison, what, error);
    if (model->gradient) c->gradient = mg_alloc_zero(n, sizeof *c->gradient, what, error);
    bool enough = flow && c->perturbation && (c->poison || !model->has_poison) && (c->gradient || !model->gradient);
    if (enough)
        check(c, &r, flow);
    else
        mg_causality_free(c);
    mg_free(flow);
    free_runs(&r);
    return enough ? MG_OK : MG_ERR_MEMORY;
}

void mg_causality_free(mg_causality *c) {
    mg_free(c->perturbation);
    mg_free(c->gradient);
    mg_free(c->poison);
    *c = (mg_causality){0};
}
