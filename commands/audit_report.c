#include "audit_report.h"
#include "color.h"
#include "columns.h"
#include "lab_private.h"
#include "language.h"
#include "printable.h"
#include "run_dir.h"
#include "training.h"
#include "wrap.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

static const char title[] = N_("Does this model read its labels?");

/* ---- In words ---- */

static const char *first_failure(const mg_audit *audit) {
    mg_audit_probe failed = 0;
    while (audit->finding[failed].verdict != MG_AUDIT_FAIL) failed++;
    return mg_audit_probe_name(failed);
}

/* What the first failure or doubt means for the rest. */
static const char *conclusion(const mg_audit *audit, char *text, size_t size) {
    mg_audit_verdict overall = mg_audit_overall(audit);
    const char *first = overall == MG_AUDIT_PASS ? "" : mg_audit_probe_name(mg_audit_first(audit));
    if (overall == MG_AUDIT_FAIL)
        mg_snprintf(text, size, "%s: begin with `%s`; what is below it may follow from it.",
                    audit->complete ? "The model fails" : "The audit was not finished, and what it saw fails",
                    first_failure(audit));
    else if (audit->calls == audit->refusals)
        mg_snprintf(text, size, "The model answered nothing, so that nothing is known of it.");
    else if (!audit->complete)
        mg_snprintf(text, size, "The audit was not finished: `%s` and what is below it are undecided.", first);
    else if (overall == MG_AUDIT_INCONCLUSIVE)
        mg_snprintf(text, size, "No probe fails, but `%s` is inconclusive: the model is not acquitted.", first);
    else
        mg_snprintf(text, size, "Every probe that could be asked passes.");
    return text;
}

/* ---- On the terminal ---- */

static const char *loud_name(mg_audit_verdict verdict) {
    return verdict == MG_AUDIT_FAIL ? "FAIL" : mg_audit_verdict_name(verdict);
}

static const char *color_of(mg_audit_verdict verdict) {
    if (verdict == MG_AUDIT_PASS) return MG_COLOR_PASS;
    if (verdict == MG_AUDIT_FAIL) return MG_COLOR_FAIL;
    return verdict == MG_AUDIT_INCONCLUSIVE ? MG_COLOR_UNDECIDED : "";
}

void audit_report_print(FILE *out, const audit_about *about, const mg_audit *audit) {
    static const char indent[] = "                          ";
    int columns = mg_columns(out);
    bool color = mg_terminal_color(out);
    char text[1400];
    mg_fprintf(out, "\nmaskgrad audit: %s\n%s\n\n", mg_shown(about->subject).text, title);
    mg_snprintf(text, sizeof text, "vocabulary %d, context %d, %s; %s of %s, %s of the model, %.1f s", about->vocab,
                about->context, mg_audit_dtype_name(about->dtype), mg_count(audit->sequences, "sequence").text,
                mg_count(audit->length, "token").text, mg_count(audit->calls, "call").text, about->seconds);
    mg_print_wrapped(out, columns, "  ", "  ", text);
    fputs("\n", out);
    for (mg_audit_probe p = 0; p < MG_AUDIT_N_PROBES; p++) {
        const mg_audit_finding *f = &audit->finding[p];
        char first[64];
        snprintf(first, sizeof first, "  %-10s%s%-14s%s", mg_audit_probe_name(p), color ? color_of(f->verdict) : "",
                 loud_name(f->verdict), color ? MG_COLOR_OFF : "");
        mg_print_wrapped(out, columns, first, indent, f->evidence);
        if (!f->look[0]) continue;
        mg_snprintf(text, sizeof text, "Look at: %s", f->look);
        mg_print_wrapped(out, columns, indent, indent, text);
    }
    fputs("\n", out);
    mg_print_wrapped(out, columns, "  ", "  ", conclusion(audit, text, sizeof text));
}

/* ---- JSON ---- */

/* json_real refuses what JSON has no word for. */
static json_t *real_or_null(double x) {
    json_t *real = json_real(x);
    return real ? real : json_null();
}

static json_t *finding_object(const mg_audit *audit, mg_audit_probe p) {
    const mg_audit_finding *f = &audit->finding[p];
    json_t *object = json_object();
    json_object_set_new(object, "probe", json_string(mg_audit_probe_name(p)));
    json_object_set_new(object, "question", json_string(mg_audit_probe_question(p)));
    json_object_set_new(object, "verdict", json_string(mg_audit_verdict_name(f->verdict)));
    json_object_set_new(object, "evidence", json_string(f->evidence));
    json_object_set_new(object, "look", json_string(f->look));
    json_object_set_new(object, "query", f->query < 0 ? json_null() : json_integer(f->query));
    json_object_set_new(object, "key", f->query < 0 ? json_null() : json_integer(f->key));
    json_object_set_new(object, "largest", real_or_null(f->largest));
    json_object_set_new(object, "calls", json_integer(f->calls));
    return object;
}

static json_t *map_array(const mg_audit *audit) {
    json_t *rows = json_array();
    for (int i = 0; i < audit->full; i++) {
        json_t *row = json_array();
        for (int j = 0; j < audit->full; j++)
            json_array_append_new(row, real_or_null(audit->map[(ptrdiff_t)i * audit->full + j]));
        json_array_append_new(rows, row);
    }
    return rows;
}

static void set_model(json_t *root, const audit_about *about, const mg_audit *audit) {
    json_object_set_new(root, "subject", json_string(mg_shown(about->subject).text));
    json_object_set_new(root, "vocab", json_integer(about->vocab));
    json_object_set_new(root, "context", json_integer(about->context));
    json_object_set_new(root, "dtype", json_string(mg_audit_dtype_name(about->dtype)));
    json_object_set_new(root, "seed", json_integer((json_int_t)about->seed));
    json_object_set_new(root, "seconds", real_or_null(about->seconds));
    json_object_set_new(root, "calls", json_integer(audit->calls));
    json_object_set_new(root, "planned", json_integer(audit->planned));
    json_object_set_new(root, "length", json_integer(audit->length));
    json_object_set_new(root, "sequences", json_integer(audit->sequences));
    json_object_set_new(root, "rows", json_integer(audit->rows));
}

char *audit_report_json(const audit_about *about, const mg_audit *audit) {
    json_t *root = json_object(), *findings = json_array();
    mg_audit_probe first = mg_audit_first(audit);
    json_object_set_new(root, "maskgrad-audit", json_integer(1));
    json_object_set_new(root, "verdict", json_string(mg_audit_verdict_name(mg_audit_overall(audit))));
    json_object_set_new(root, "first",
                        first < MG_AUDIT_N_PROBES ? json_string(mg_audit_probe_name(first)) : json_null());
    set_model(root, about, audit);
    json_object_set_new(root, "noise", real_or_null(audit->noise));
    json_object_set_new(root, "pairs", json_integer(audit->pairs));
    json_object_set_new(root, "pairs_looked_at", json_integer(audit->looked_at));
    json_object_set_new(root, "tokens", json_integer(audit->tokens));
    json_object_set_new(root, "values_tried", json_integer(audit->values_tried));
    json_object_set_new(root, "reach", json_integer(audit->influence.reach));
    json_object_set_new(root, "pattern", json_string(audit->influence.pattern));
    for (mg_audit_probe p = 0; p < MG_AUDIT_N_PROBES; p++) json_array_append_new(findings, finding_object(audit, p));
    json_object_set_new(root, "probes", findings);
    json_object_set_new(root, "map", map_array(audit));
    char *text = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(9));
    json_decref(root);
    return text;
}

/* ---- A page, by the labs' frame ---- */

static const lab_row page = {.name = "audit", .question = title};

static void tell(mg_lab *lab, const audit_about *about, const mg_audit *audit) {
    lab_did(lab, "The model was asked for the logits of random sequences and of the same with tokens replaced. Within "
                 "one shape of batch every bit counts; between shapes there is a tolerance.");
    lab_setting(lab, "model", "%s", mg_shown(about->subject).text);
    lab_setting(lab, "vocabulary, context", "%d, %d", about->vocab, about->context);
    lab_setting(lab, "computes in", "%s", mg_audit_dtype_name(about->dtype));
    lab_setting(lab, "sequences", "%d of %s", audit->sequences, mg_count(audit->length, "token").text);
    lab_setting(lab, "calls", "%ld of at most %ld, %.1f s", audit->calls, audit->planned, about->seconds);
    lab_setting(lab, "seed", "%llu", (unsigned long long)about->seed);
}

static void show_findings(mg_lab *lab, const mg_audit *audit) {
    char text[256];
    lab_table *table = lab_table_begin(lab, "probes", "What each probe saw", "probe\tverdict\tevidence\tlook at");
    for (mg_audit_probe p = 0; p < MG_AUDIT_N_PROBES; p++) {
        const mg_audit_finding *f = &audit->finding[p];
        const char *verdict = mg_audit_verdict_name(f->verdict);
        lab_table_row(table, "%s\t%s\t%s\t%s", mg_audit_probe_name(p), verdict, f->evidence, f->look);
        const char *name = lab_format(lab, "%s: %s", mg_audit_probe_name(p), mg_audit_probe_question(p));
        if (f->verdict == MG_AUDIT_INCONCLUSIVE)
            lab_undecided(lab, name, f->largest, "", "%s", f->evidence);
        else if (f->verdict != MG_AUDIT_NOT_OFFERED)
            lab_check_same_text(lab, name, verdict, mg_audit_verdict_name(MG_AUDIT_PASS));
    }
    lab_table_end(table, "%s", conclusion(audit, text, sizeof text));
}

static void show_map(mg_lab *lab, const mg_audit *audit) {
    int n = audit->full;
    lab_heatmap *map = lab_heatmap_begin(
        lab, "map", "Who moves whom",
        (lab_scale){.unit = "change", .log = true, .rows = "prediction", .columns = "token"});
    lab_heatmap_panel(
        map,
        (lab_panel){.title = "", .n_rows = n, .n_columns = n, .values = lab_heat(lab, (ptrdiff_t)n * n, audit->map)});
    lab_heatmap_end(map, "Each column replaces one token and looks at all predictions: the largest change of a logit. "
                         "Right of the diagonal a causal model has exactly 0.");
}

static mg_status write_page(mg_lab *lab, mg_error *error) {
    mg_status status = mg_make_folders(lab->settings.out_dir, NULL, error);
    if (!status) status = lab_write_numbers(lab, error);
    lab_translate(lab);
    if (!status) status = lab_draw_pictures(lab, error);
    return status ? status : lab_write_report(lab, error);
}

mg_status audit_report_html(const char *out_dir, const char *command, const audit_about *about, const mg_audit *audit,
                            mg_error *error) {
    mg_lab *lab = lab_new(&page, error);
    if (!lab) return MG_ERR_MEMORY;
    lab->settings.out_dir = out_dir;
    lab->command = command;
    tell(lab, about, audit);
    show_findings(lab, audit);
    if (audit->full > 1) show_map(lab, audit);
    mg_status status = write_page(lab, error);
    lab_free(lab);
    return status;
}
