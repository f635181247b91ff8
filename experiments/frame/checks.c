#include "lab_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What a check asks of the observed value and up to two numbers of the expectation. Written so that a NaN fails all of
 * them; an observed infinity does too, since no lab measures one that is right. */
typedef bool rule(double observed, double a, double b);

static bool is_zero(double observed, double a, double b) {
    (void)a;
    (void)b;
    return observed == 0;
}

static bool is_below(double observed, double limit, double b) {
    (void)b;
    return isfinite(observed) && observed < limit;
}

static bool is_at_most(double observed, double limit, double b) {
    (void)b;
    return isfinite(observed) && observed <= limit;
}

static bool is_above(double observed, double limit, double b) {
    (void)b;
    return isfinite(observed) && observed > limit;
}

static bool is_at_least(double observed, double limit, double b) {
    (void)b;
    return isfinite(observed) && observed >= limit;
}

static bool is_near(double observed, double expected, double tolerance) {
    return isfinite(observed) && fabs(observed - expected) <= tolerance;
}

static bool is_between(double observed, double low, double high) {
    return isfinite(observed) && low <= observed && observed <= high;
}

#define NOT_MEASURED N_("not measured")

typedef struct number_text {
    char text[40];
} number_text;

static number_text with_digits(double value, int digits) {
    number_text t;
    if (isnan(value)) return (number_text){NOT_MEASURED};
    snprintf(t.text, sizeof t.text, "%.*g", digits, value == 0 ? 0.0 : value);
    return t;
}

/* A number the lab's author wrote, 0.03 or 1.325575, is shown as written; a computed one with `digits`. */
static number_text as_written(double value, int digits) {
    /* At least the digits before the point, so that 20 is not 2e+01. */
    int first = fabs(value) >= 10 && fabs(value) < 1e7 ? 1 + (int)log10(fabs(value)) : 1;
    for (int d = first; d <= 7; d++) {
        number_text t = with_digits(value, d);
        if (strtod(t.text, NULL) == value) return t;
    }
    return with_digits(value, digits);
}

static const char *with_unit(mg_lab *lab, number_text number, const char *unit) {
    if (strcmp(number.text, NOT_MEASURED) == 0) return NOT_MEASURED;
    return lab_format(lab, "%s%s%s", number.text, *unit ? " " : "", unit);
}

static bool keep(mg_lab *lab, const char *name, const char *expected, const char *observed, lab_verdict verdict) {
    lab_must_have_begun(lab, "a check");
    lab_check *check = mg_arena_alloc(lab->arena, 1, sizeof *check, "a check");
    *check = (lab_check){lab_format(lab, "%s", name), expected, observed, verdict};
    lab_list_add(lab, &lab->checks, check);
    return verdict == LAB_PASS;
}

/* The expectation reads: before, a, and if `between` is not NULL, between and b. */
static bool judge(mg_lab *lab, const char *name, double observed, double a, double b, rule *holds, const char *before,
                  const char *between, const char *unit) {
    bool passed = holds(observed, a, b);
    number_text o, ta, tb;
    for (int digits = 4; digits <= 17; digits++) {
        o = with_digits(observed, digits);
        ta = as_written(a, digits);
        tb = as_written(b, digits);
        if (isnan(observed) || isnan(a) || isnan(b)) break;
        if (holds(strtod(o.text, NULL), strtod(ta.text, NULL), strtod(tb.text, NULL)) == passed) break;
    }
    const char *space = *unit ? " " : "";
    const char *expected = lab_format(lab, "%s%s%s%s%s%s", before, ta.text, between ? between : "",
                                      between ? tb.text : "", space, unit);
    return keep(lab, name, expected, with_unit(lab, o, unit), passed ? LAB_PASS : LAB_FAIL);
}

bool lab_check_zero(mg_lab *lab, const char *name, double observed, const char *unit) {
    return judge(lab, name, observed, 0, 0, is_zero, "exactly ", NULL, unit);
}

bool lab_check_below(mg_lab *lab, const char *name, double observed, double limit, const char *unit) {
    return judge(lab, name, observed, limit, 0, is_below, "below ", NULL, unit);
}

bool lab_check_at_most(mg_lab *lab, const char *name, double observed, double limit, const char *unit) {
    return judge(lab, name, observed, limit, 0, is_at_most, "at most ", NULL, unit);
}

bool lab_check_above(mg_lab *lab, const char *name, double observed, double limit, const char *unit) {
    return judge(lab, name, observed, limit, 0, is_above, "above ", NULL, unit);
}

bool lab_check_at_least(mg_lab *lab, const char *name, double observed, double limit, const char *unit) {
    return judge(lab, name, observed, limit, 0, is_at_least, "at least ", NULL, unit);
}

bool lab_check_near(mg_lab *lab, const char *name, double observed, double expected, double tolerance,
                    const char *unit) {
    if (tolerance == 0) return judge(lab, name, observed, expected, 0, is_near, "exactly ", NULL, unit);
    return judge(lab, name, observed, expected, tolerance, is_near, "", " ± ", unit);
}

bool lab_check_between(mg_lab *lab, const char *name, double observed, double low, double high, const char *unit) {
    return judge(lab, name, observed, low, high, is_between, "", " to ", unit);
}

bool lab_check_count(mg_lab *lab, const char *name, long observed, long expected, const char *unit) {
    return judge(lab, name, (double)observed, (double)expected, 0, is_near, "", NULL, unit);
}

/* ---- Texts ---- */

/* On one line, from where the two begin to differ if they do, and not too long for a table. */
static const char *excerpt(mg_lab *lab, const char *text, size_t from) {
    enum { LONGEST = 48 };
    if (!text) return N_("not produced");
    size_t length = strlen(text);
    size_t start = from < length ? from : length;
    start = start > 12 ? start - 12 : 0;
    while (start > 0 && ((unsigned char)text[start] & 0xC0) == 0x80) start--;
    size_t end = start + LONGEST < length ? start + LONGEST : length;
    while (end > start && end < length && ((unsigned char)text[end] & 0xC0) == 0x80) end--;
    char *line = lab_format(lab, "%s“%.*s”%s", start ? "…" : "", (int)(end - start), text + start,
                            end < length ? "…" : "");
    for (char *c = line; *c; c++)
        if (*c == '\n' || *c == '\t' || *c == '\r') *c = ' ';
    return line;
}

static size_t common_length(const char *a, const char *b) {
    size_t n = 0;
    if (a && b)
        while (a[n] && a[n] == b[n]) n++;
    return n;
}

bool lab_check_same_text(mg_lab *lab, const char *name, const char *observed, const char *expected) {
    bool passed = observed && expected && strcmp(observed, expected) == 0;
    size_t from = passed ? 0 : common_length(observed, expected);
    return keep(lab, name, excerpt(lab, expected, from), excerpt(lab, observed, from), passed ? LAB_PASS : LAB_FAIL);
}

/* ---- Undecided, and all together ---- */

void lab_undecided(mg_lab *lab, const char *name, double observed, const char *unit, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const char *why = lab_vformat(lab, format, arguments);
    va_end(arguments);
    keep(lab, name, why, with_unit(lab, with_digits(observed, 4), unit), LAB_UNDECIDED);
}

const char *const lab_verdict_names[LAB_N_VERDICTS] = {
    [LAB_FAIL] = N_("fail"), [LAB_PASS] = N_("pass"), [LAB_UNDECIDED] = N_("undecided")};

int lab_count_of(const mg_lab *lab, lab_verdict verdict) {
    int count = 0;
    for (int i = 0; i < lab->checks.n; i++) count += ((const lab_check *)lab->checks.item[i])->verdict == verdict;
    return count;
}

lab_verdict lab_verdict_of(const mg_lab *lab) {
    return lab_count_of(lab, LAB_FAIL) ? LAB_FAIL : lab_count_of(lab, LAB_UNDECIDED) ? LAB_UNDECIDED : LAB_PASS;
}

const char *lab_verdicts_in_words(mg_lab *lab) {
    int failed = lab_count_of(lab, LAB_FAIL), undecided = lab_count_of(lab, LAB_UNDECIDED);
    const char *words = lab_format(lab, "%d of %d checks pass", lab_count_of(lab, LAB_PASS), lab->checks.n);
    if (failed == 1) words = lab_format(lab, "%s, 1 fails", words);
    if (failed > 1) words = lab_format(lab, "%s, %d fail", words, failed);
    if (undecided == 1) words = lab_format(lab, "%s, 1 is undecided", words);
    if (undecided > 1) words = lab_format(lab, "%s, %d are undecided", words, undecided);
    return words;
}
