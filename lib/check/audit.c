/* An audit from outside: its options, the order of the probes, and their verdicts. */
#include "audit_private.h"

#include <stdio.h>
#include <string.h>

/* ---- The probes ---- */

static const struct probe {
    const char *name, *question;
    void (*run)(audit *a);
    long (*calls)(const audit *a);
} probes[MG_AUDIT_N_PROBES] = {
    [MG_AUDIT_REPEAT] = {"repeat", "Is the model a function?", mg_audit_repeat, mg_audit_repeat_calls},
    [MG_AUDIT_BATCH] = {"batch", "Do the rows of a batch see each other?", mg_audit_rows, mg_audit_rows_calls},
    [MG_AUDIT_MASK] = {"mask", "Does a later token move an earlier prediction?", mg_audit_mask, mg_audit_mask_calls},
    [MG_AUDIT_CONTROL] = {"control", "Does anything flow at all?", mg_audit_control, NULL},
    [MG_AUDIT_PREFIX] = {"prefix", "Is a prefix the beginning of the whole?", mg_audit_prefix, mg_audit_prefix_calls},
    [MG_AUDIT_PADDING] = {"padding", "Do pads change real positions?", mg_audit_padding, mg_audit_padding_calls},
    [MG_AUDIT_CACHE] = {"cache", "Is feeding in pieces the same?", mg_audit_cache, mg_audit_cache_calls},
    [MG_AUDIT_SHIFT] = {"shift", "Which token is a position scored against?", mg_audit_shift, mg_audit_shift_calls},
    [MG_AUDIT_SEGMENTS] = {"segments", "Do packed documents see each other?", mg_audit_segments,
                           mg_audit_segments_calls},
};

const char *mg_audit_probe_name(mg_audit_probe probe) {
    return probes[probe].name;
}

const char *mg_audit_probe_question(mg_audit_probe probe) {
    return probes[probe].question;
}

const char *mg_audit_verdict_name(mg_audit_verdict verdict) {
    static const char *const names[] = {"not offered", "pass", "fail", "inconclusive"};
    return names[verdict];
}

const char *mg_audit_dtype_name(mg_audit_dtype dtype) {
    static const char *const names[] = {"f32", "f64", "f16", "bf16"};
    return names[dtype];
}

double mg_audit_tolerance(mg_audit_dtype dtype, double scale) {
    static const double relative[] = {1e-4, 1e-9, 1e-2, 5e-2};
    return relative[dtype] * scale;
}

/* Whether the model has what a probe asks for. A probe that asks for more tokens than it can have says so itself. */
static bool is_offered(const audit *a, mg_audit_probe probe) {
    const mg_audit_model *model = a->model;
    if (a->options.skip & 1u << probe) return false;
    switch (probe) {
    case MG_AUDIT_BATCH: return model->most_rows != 1;
    case MG_AUDIT_PADDING: return model->can_pad;
    case MG_AUDIT_CACHE: return model->step != NULL;
    case MG_AUDIT_SHIFT: return model->loss != NULL;
    case MG_AUDIT_SEGMENTS: return model->can_segment;
    default: return true;
    }
}

/* ---- Setting up ---- */

enum { MOST_VALUES = 4096 };

static int smaller(int a, int b) {
    return a < b ? a : b;
}

static void fill_defaults(audit *a, const mg_audit_options *options) {
    mg_audit_options *o = &a->options;
    if (options) *o = *options;
    if (!o->length) o->length = a->model->context;
    if (!o->full) o->full = 64;
    if (!o->cuts) o->cuts = 40;
    if (!o->sequences) o->sequences = 2;
    a->T = o->length;
    a->full = smaller(a->T, o->full);
    a->sequences = o->sequences + (o->n_ids > 0);
    /* Many rows per call cost less than many calls; a few thousand tokens fit on any machine. */
    a->rows = a->full <= 128 ? 16 : a->full <= 1024 ? 2048 / a->full : 2;
    if (a->model->most_rows > 0) a->rows = smaller(a->rows, a->model->most_rows);
}

static mg_status check_sizes(const mg_audit_model *m, const mg_audit_options *o, mg_error *error) {
    if (m->vocab < 1 || m->vocab > 1 << 24)
        return mg_error_set(error, MG_ERR_INPUT, "the vocabulary has %d tokens; it must have 1 to %d", m->vocab,
                            1 << 24);
    if (m->context < 1 || m->context > 1 << 20)
        return mg_error_set(error, MG_ERR_INPUT, "the context is %d tokens; it must be 1 to %d", m->context, 1 << 20);
    if (o->length < 1 || o->length > m->context)
        return mg_error_set(error, MG_ERR_INPUT, "sequences of %d tokens were asked for; the context is %d", o->length,
                            m->context);
    if (o->full < 1 || o->full > 4096)
        return mg_error_set(error, MG_ERR_INPUT, "every pair was asked for up to %d tokens; 1 to 4096 are possible",
                            o->full);
    if (o->values < 0 || o->values > MOST_VALUES)
        return mg_error_set(error, MG_ERR_INPUT, "%d values of each token were asked for; 1 to %d are possible",
                            o->values, MOST_VALUES);
    if (o->cuts < 1 || o->sequences < 1 || o->sequences > 1000)
        return mg_error_set(error, MG_ERR_INPUT, "%d cuts and %d sequences; at least 1 of each, at most 1000 sequences",
                            o->cuts, o->sequences);
    return MG_OK;
}

static mg_status check_ids(const mg_audit_model *m, const mg_audit_options *o, mg_error *error) {
    if (o->n_ids == 0) return MG_OK;
    if (!o->ids) return mg_error_set(error, MG_ERR_INPUT, "a sequence of %d ids is NULL", o->n_ids);
    if (o->n_ids < 2 || o->n_ids > o->length)
        return mg_error_set(error, MG_ERR_INPUT, "a sequence of %d ids; it must have 2 to %d", o->n_ids, o->length);
    for (int t = 0; t < o->n_ids; t++)
        if (o->ids[t] < 0 || o->ids[t] >= m->vocab)
            return mg_error_set(error, MG_ERR_INPUT, "id %d at position %d; the vocabulary has 0 to %d", o->ids[t], t,
                                m->vocab - 1);
    return MG_OK;
}

static bool contains(const int *sorted, int n, int value) {
    int low = 0, high = n;
    while (low < high) {
        int middle = (low + high) / 2;
        if (sorted[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && sorted[low] == value;
}

static int insert(int *sorted, int n, int value) {
    if (contains(sorted, n, value)) return n;
    int at = n;
    for (; at > 0 && sorted[at - 1] > value; at--) sorted[at] = sorted[at - 1];
    sorted[at] = value;
    return n + 1;
}

/* Of a large vocabulary 64 tokens: sequences are made of them and only their logits are looked at, so that a model
 * which copies its label into that label's logit is seen. */
static void choose_columns(audit *a) {
    int V = a->model->vocab, n = 0, most = V <= AUDIT_SMALL && a->T <= 4096 ? V : smaller(V, AUDIT_COLUMNS);
    int *letters = mg_audit_ints(a, most), *columns = mg_audit_ints(a, most + a->options.n_ids);
    if (most == V)
        for (; n < V; n++) letters[n] = n;
    n = insert(letters, n, 0); /* both ends of the vocabulary, where special tokens are */
    n = insert(letters, n, V - 1);
    mg_rng rng = {a->options.seed, MG_STREAM_LAB, 0};
    for (uint64_t draw = 0; n < most; draw++) n = insert(letters, n, (int)mg_rng_below(rng, draw, (uint64_t)V));
    a->letters = letters;
    a->n_letters = a->n_columns = n;
    if (n == V) return;
    memcpy(columns, letters, (size_t)n * sizeof *columns);
    for (int t = 0; t < a->options.n_ids; t++) n = insert(columns, n, a->options.ids[t]);
    a->columns = columns;
    a->n_columns = n;
}

/* ---- Counting calls ---- */

static long calls_with(audit a, bool one_row, bool leaks) {
    if (one_row) a.rows = a.sequences = 1;
    a.one_value = one_row;
    a.leaks = leaks;
    long calls = 0;
    for (mg_audit_probe p = 0; p < MG_AUDIT_N_PROBES; p++) {
        bool measures = p == MG_AUDIT_CONTROL && !is_offered(&a, MG_AUDIT_MASK);
        if (!is_offered(&a, p)) continue;
        calls += measures ? mg_audit_mask_calls(&a) : probes[p].calls ? probes[p].calls(&a) : 0;
    }
    return calls;
}

/* The most: rows that see each other are only known after the batch probe, and then there is one row per call. */
static long planned_calls(const audit *a) {
    long many = calls_with(*a, false, true), one = calls_with(*a, true, true);
    return many > one ? many : one;
}

/* What a call takes depends on how many tokens it has. An honest model is asked for no more than this. */
static int64_t planned_tokens(const audit *a) {
    int64_t most = a->T > AUDIT_FAR_TOKENS / 2 ? 2 * (int64_t)a->T : AUDIT_FAR_TOKENS;
    if (a->T == a->full || most < (int64_t)a->rows * a->full) most = (int64_t)a->rows * a->full;
    long calls = calls_with(*a, false, false);
    if (!is_offered(a, MG_AUDIT_MASK)) return calls * most;
    return (calls - mg_audit_training_calls(a)) * most + mg_audit_training_tokens(a);
}

/* ---- Running ---- */

static mg_status set_up(audit *a, const mg_audit_options *options) {
    MG_CHECK(a->model->logits, "audit: the model has no logits");
    fill_defaults(a, options);
    mg_status status = check_sizes(a->model, &a->options, a->error);
    if (!status) status = check_ids(a->model, &a->options, a->error);
    if (status) return status;
    size_t n = (size_t)a->full;
    a->result->map = mg_alloc_zero(n * n, sizeof(double), "the map of who moves whom", a->error);
    mg_arena_new(&a->arena, a->error);
    if (!a->result->map || !a->arena) return MG_ERR_MEMORY;
    choose_columns(a);
    mg_audit *r = a->result;
    r->length = a->T;
    r->full = a->full;
    r->planned = planned_calls(a);
    r->planned_tokens = planned_tokens(a);
    for (mg_audit_probe p = 0; p < MG_AUDIT_N_PROBES; p++) {
        r->finding[p] = (mg_audit_finding){.query = -1, .key = -1};
        if (!is_offered(a, p)) continue;
        r->finding[p].verdict = MG_AUDIT_INCONCLUSIVE;
        snprintf(r->finding[p].evidence, sizeof r->finding[p].evidence, "the audit ended before this probe");
    }
    return MG_OK;
}

static void run_probe(audit *a, mg_audit_probe probe) {
    a->at = probe;
    long before = a->result->calls;
    mg_arena_mark mark = mg_arena_here(a->arena);
    probes[probe].run(a);
    mg_arena_rewind(a->arena, mark);
    a->result->finding[probe].calls = a->result->calls - before;
}

/* A model that refuses all is not one with doubts: something is wrong with the question or its code. */
static mg_status say_no_answer(const audit *a) {
    const mg_error last = *a->error;
    return mg_error_set(a->error, MG_ERR_STATE, "the model answered none of %ld calls; it refused: %s",
                        a->result->calls, last.message);
}

mg_status mg_audit_run(mg_audit *result, const mg_audit_model *model, const mg_audit_options *options,
                       mg_error *error) {
    mg_error own;
    *result = (mg_audit){0};
    audit a = {.model = model, .result = result, .error = error ? error : &own, .leak_query = -1, .leak_key = -1};
    mg_status status = set_up(&a, options);
    for (mg_audit_probe p = 0; p < MG_AUDIT_N_PROBES && !status; p++) {
        if (is_offered(&a, p)) run_probe(&a, p);
        status = a.broken;
    }
    if (!status && result->calls > 0 && result->refusals == result->calls) status = say_no_answer(&a);
    result->complete = status == MG_OK;
    result->rows = a.rows;
    result->sequences = a.sequences;
    mg_arena_free(a.arena);
    return status;
}

void mg_audit_free(mg_audit *result) {
    mg_free(result->map);
    *result = (mg_audit){0};
}

/* ---- Verdicts ---- */

mg_audit_probe mg_audit_first(const mg_audit *result) {
    for (mg_audit_probe p = 0; p < MG_AUDIT_N_PROBES; p++) {
        mg_audit_verdict verdict = result->finding[p].verdict;
        if (verdict == MG_AUDIT_FAIL || verdict == MG_AUDIT_INCONCLUSIVE) return p;
    }
    return MG_AUDIT_N_PROBES;
}

mg_audit_verdict mg_audit_overall(const mg_audit *result) {
    for (mg_audit_probe p = 0; p < MG_AUDIT_N_PROBES; p++)
        if (result->finding[p].verdict == MG_AUDIT_FAIL) return MG_AUDIT_FAIL;
    return mg_audit_first(result) < MG_AUDIT_N_PROBES ? MG_AUDIT_INCONCLUSIVE : MG_AUDIT_PASS;
}

mg_audit_finding *mg_audit_probe_finding(audit *a) {
    return &a->result->finding[a->at];
}

static void append(mg_audit_finding *finding, const char *format, va_list arguments) {
    size_t used = strlen(finding->evidence);
    vsnprintf(finding->evidence + used, sizeof finding->evidence - used, format, arguments);
}

void mg_audit_say(audit *a, mg_audit_verdict verdict, const char *format, ...) {
    mg_audit_finding *finding = mg_audit_probe_finding(a);
    finding->verdict = verdict;
    finding->evidence[0] = 0;
    va_list arguments;
    va_start(arguments, format);
    append(finding, format, arguments);
    va_end(arguments);
}

void mg_audit_add(audit *a, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    append(mg_audit_probe_finding(a), format, arguments);
    va_end(arguments);
}

void mg_audit_look(audit *a, const char *text) {
    snprintf(mg_audit_probe_finding(a)->look, sizeof mg_audit_probe_finding(a)->look, "%s", text);
}

void mg_audit_doubt_rounding(audit *a, double change) {
    if (!mg_audit_is_rounding(a, change)) return;
    bool f64 = a->model->dtype == MG_AUDIT_F64;
    mg_audit_probe_finding(a)->verdict = MG_AUDIT_INCONCLUSIVE;
    mg_audit_add(a, ". It is no larger than rounding, which tells nothing: it may be that, or a leak as small");
    mg_audit_look(a,
                  f64 ? "what mixes positions in its rounding: an FFT over time, a scan, a largest score of the whole "
                        "row, products whose shape the routing decides. Run it in float32 too: rounding grows to "
                        "1e-7 of the logits, a leak stays as it is. A plain sum in its place moves no bit"
                      : "what mixes positions in its rounding: an FFT over time, a scan, a largest score of the whole "
                        "row, products whose shape the routing decides. Run it in float64: rounding shrinks to 1e-16 "
                        "of the logits, and a leak is as large as before, and fails");
}

void mg_audit_pair(audit *a, int query, int key, double largest) {
    mg_audit_finding *finding = mg_audit_probe_finding(a);
    finding->query = query;
    finding->key = key;
    finding->largest = largest;
}
