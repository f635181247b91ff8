#include "flags.h"
#include "columns.h"
#include "heap.h"

#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_KEY = 0x1000, MAX_ROWS = 128, MAX_OPTIONS = 4 * MAX_ROWS, TEXT_SIZE = 4096 };

static void *place(const mg_flag *flag, void *values) {
    return (char *)values + flag->offset;
}

static const void *const_place(const mg_flag *flag, const void *values) {
    return (const char *)values + flag->offset;
}

static bool takes_value(const mg_flag *flag) {
    return flag->argument != NULL;
}

/* ---- Values ---- */

static bool in_range(const mg_flag *flag, double value) {
    if (!isfinite(value)) return false;
    if (value < flag->min || value > flag->max) return false;
    if ((flag->open & MG_FLAG_OPEN_MIN) && value == flag->min) return false;
    return !((flag->open & MG_FLAG_OPEN_MAX) && value == flag->max);
}

static mg_status refuse_number(const mg_flag *flag, const char *text, mg_error *error) {
    const char *kind = flag->kind != MG_FLAG_REAL  ? "a whole number"
                       : isinf(strtod(text, NULL)) ? "a finite number"
                                                   : "a number";
    const char *above = flag->open & MG_FLAG_OPEN_MIN ? "above" : "from";
    const char *format = flag->kind == MG_FLAG_REAL ? "%.15g" : "%.0f";
    char least[64], most[64];
    snprintf(least, sizeof least, format, flag->min);
    if (flag->max >= 1e30)
        return mg_error_set(error, MG_ERR_INPUT, "--%s takes %s %s %s%s, not '%s'", flag->name, kind, above, least,
                            flag->open & MG_FLAG_OPEN_MIN ? "" : " up", text);
    snprintf(most, sizeof most, format, flag->max);
    return mg_error_set(error, MG_ERR_INPUT, "--%s takes %s %s %s %s %s, not '%s'", flag->name, kind, above, least,
                        flag->open & MG_FLAG_OPEN_MAX ? "to below" : "to", most, text);
}

/* strtod and strtoll skip white space before a number; here the text is the number and nothing else. */
static bool starts_as_number(const char *text) {
    return (text[0] >= '0' && text[0] <= '9') || (text[0] && strchr("+-.", text[0]));
}

static mg_status set_number(const mg_flag *flag, void *value, const char *text, mg_error *error) {
    char *end = NULL;
    errno = 0;
    if (flag->kind == MG_FLAG_REAL) {
        double number = starts_as_number(text) ? strtod(text, &end) : NAN;
        bool overflow = errno == ERANGE && fabs(number) > 1;
        if (!end || end == text || *end || overflow || !in_range(flag, number)) return refuse_number(flag, text, error);
        *(double *)value = number;
        return MG_OK;
    }
    long long number = starts_as_number(text) ? strtoll(text, &end, 10) : 0;
    if (!end || end == text || *end || errno == ERANGE || !in_range(flag, (double)number))
        return refuse_number(flag, text, error);
    if (flag->kind == MG_FLAG_INT)
        *(int *)value = (int)number;
    else
        *(int64_t *)value = number;
    return MG_OK;
}

/* As text, a switch is the value it holds, so that --no-scale is written as "scale": false. */
static mg_status set_switch(const mg_flag *flag, bool *value, const char *text, mg_error *error) {
    bool is_true = strcmp(text, "true") == 0;
    if (!is_true && strcmp(text, "false") != 0)
        return mg_error_set(error, MG_ERR_INPUT, "%s is true or false, not '%s'", flag->name, text);
    *value = is_true;
    return MG_OK;
}

mg_status mg_flag_set(const mg_flag *flag, void *values, const char *text, mg_error *error) {
    void *value = place(flag, values);
    switch (flag->kind) {
    case MG_FLAG_INT:
    case MG_FLAG_INT64:
    case MG_FLAG_REAL: return set_number(flag, value, text, error);
    case MG_FLAG_ON:
    case MG_FLAG_OFF: return set_switch(flag, value, text, error);
    case MG_FLAG_TEXT: *(const char **)value = text; return MG_OK;
    case MG_FLAG_CUSTOM: return flag->parse(text, value, error);
    case MG_FLAG_HEADING: break;
    }
    return MG_OK;
}

/* The shortest of %.15g, %.16g and %.17g that reads back as the same number. */
static void format_real(double value, char *text, size_t size) {
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, size, "%.*g", digits, value);
        if (strtod(text, NULL) == value) return;
    }
}

void mg_flag_format(const mg_flag *flag, const void *values, char *text, size_t size) {
    const void *value = const_place(flag, values);
    text[0] = '\0';
    switch (flag->kind) {
    case MG_FLAG_INT: snprintf(text, size, "%d", *(const int *)value); break;
    case MG_FLAG_INT64: snprintf(text, size, "%lld", (long long)*(const int64_t *)value); break;
    case MG_FLAG_REAL: format_real(*(const double *)value, text, size); break;
    case MG_FLAG_ON:
    case MG_FLAG_OFF: snprintf(text, size, "%s", *(const bool *)value ? "true" : "false"); break;
    case MG_FLAG_TEXT:
        if (*(const char *const *)value) snprintf(text, size, "%s", *(const char *const *)value);
        break;
    case MG_FLAG_CUSTOM: flag->format(value, text, size); break;
    case MG_FLAG_HEADING: break;
    }
}

bool mg_flag_equal(const mg_flag *flag, const void *a, const void *b) {
    char text_a[TEXT_SIZE], text_b[TEXT_SIZE];
    mg_flag_format(flag, a, text_a, sizeof text_a);
    mg_flag_format(flag, b, text_b, sizeof text_b);
    return strcmp(text_a, text_b) == 0;
}

/* ---- Spellings ---- */

/* The next word of a list separated by spaces; moves *list behind it. */
static size_t next_word(const char **list, const char **word) {
    *word = *list + strspn(*list, " ");
    size_t length = strcspn(*word, " ");
    *list = *word + length;
    return length;
}

static bool is_spelling(const mg_flag *flag, const char *spelling, size_t length) {
    if (flag->name && strlen(flag->name) == length && memcmp(flag->name, spelling, length) == 0) return true;
    const char *list = flag->also ? flag->also : "", *word;
    for (size_t n; (n = next_word(&list, &word)) > 0;)
        if (n == length && memcmp(word, spelling, n) == 0) return true;
    return false;
}

static bool is_known(const mg_flag_table *tables, const char *spelling, size_t length) {
    for (const mg_flag_table *table = tables; table->flags; table++)
        for (const mg_flag *flag = table->flags; !mg_flag_is_end(flag); flag++)
            if (is_spelling(flag, spelling, length)) return true;
    return false;
}

/* --block_size becomes --block-size where that is a flag; everything else on the line is left alone. */
static void spell_with_hyphens(const mg_flag_table *tables, int argc, char **argv) {
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        char word[64];
        size_t length = strncmp(argv[i], "--", 2) == 0 ? strcspn(argv[i] + 2, "=") : 0;
        if (length == 0 || length >= sizeof word) continue;
        for (size_t k = 0; k < length; k++) word[k] = argv[i][k + 2] == '_' ? '-' : argv[i][k + 2];
        if (is_known(tables, word, length)) memcpy(argv[i] + 2, word, length);
    }
}

/* ---- argp ---- */

typedef struct parser {
    const mg_command_line *line;
    const char **arguments;
    int n_arguments;

    const mg_flag *flag[MAX_ROWS]; /* by key - FIRST_KEY, with the struct that its offset is about */
    void *values[MAX_ROWS];
    bool given[MAX_ROWS];
    int n_flags;
    int by_letter[128]; /* the key of a short option; 0: none */

    struct argp_option option[MAX_OPTIONS + 1]; /* ends with an empty one */
    int n_options;
    char *owned[MAX_OPTIONS]; /* texts that the options point to */
    int n_owned;
} parser;

/* Two flags may set one value, as --mask and --lookahead do: not to two different ones. */
static void set(parser *p, int index, const char *text, struct argp_state *state) {
    const mg_flag *flag = p->flag[index];
    void *values = p->values[index];
    char before[TEXT_SIZE], after[TEXT_SIZE];
    const mg_flag *other = NULL;
    for (int i = 0; i < p->n_flags && !other; i++)
        if (i != index && p->given[i] && p->values[i] == values && p->flag[i]->offset == flag->offset)
            other = p->flag[i];
    if (other) mg_flag_format(other, values, before, sizeof before);
    mg_error error;
    if (mg_flag_set(flag, values, text, &error) != MG_OK) argp_error(state, "%s", error.message);
    if (other) mg_flag_format(other, values, after, sizeof after);
    if (other && strcmp(before, after) != 0)
        argp_error(state, "--%s and --%s contradict each other: give one", other->name, flag->name);
    p->given[index] = true;
}

static error_t take(int key, char *text, struct argp_state *state) {
    parser *p = state->input;
    if (key == ARGP_KEY_ARG) {
        if (p->n_arguments == p->line->max_arguments) argp_error(state, "'%s' is one argument too many", text);
        p->arguments[p->n_arguments++] = text;
        return 0;
    }
    if (key == ARGP_KEY_END && p->n_arguments < p->line->min_arguments)
        argp_error(state, "too few arguments are given: it takes %s", p->line->arguments);
    if (key == 'h' && !p->by_letter['h']) argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
    if (key > 0 && key < 128 && p->by_letter[key]) key = p->by_letter[key];
    if (key < FIRST_KEY || key >= FIRST_KEY + p->n_flags) return ARGP_ERR_UNKNOWN;
    const mg_flag *flag = p->flag[key - FIRST_KEY];
    set(p, key - FIRST_KEY, takes_value(flag) ? text : flag->kind == MG_FLAG_ON ? "true" : "false", state);
    return 0;
}

static const char *own(parser *p, char *text) {
    if (text) p->owned[p->n_owned++] = text;
    return text;
}

static void add_option(parser *p, struct argp_option option) {
    MG_CHECK(p->n_options < MAX_OPTIONS, "%s has more than %d options", p->line->name, MAX_OPTIONS);
    p->option[p->n_options++] = option;
}

/* The default as --help shows it; "" for none. A number out of its range stands for "derived", which .help explains. */
static void shown_default(const mg_flag *flag, const void *values, char *text, size_t size) {
    mg_flag_format(flag, values, text, size);
    bool is_number = flag->kind == MG_FLAG_INT || flag->kind == MG_FLAG_INT64 || flag->kind == MG_FLAG_REAL;
    if (!takes_value(flag) || (is_number && !in_range(flag, strtod(text, NULL)))) text[0] = '\0';
}

/* The help text, with the default and the other spellings behind it: in front of it they would push it out of its
 * column. */
static const char *help_text(parser *p, const mg_flag *flag, const void *values) {
    char value[TEXT_SIZE];
    shown_default(flag, values, value, sizeof value);
    const char *list = flag->also ? flag->also : "", *word, *before = "; also --";
    size_t size = strlen(flag->help) + strlen(value) + 8 * strlen(list) + 32;
    char *text = mg_alloc(size, 1, "a line of help", NULL);
    if (!text) return flag->help;
    int at = snprintf(text, size, "%s%s%s%s", flag->help, value[0] ? " [" : "", value, value[0] ? "]" : "");
    for (size_t n; (n = next_word(&list, &word)) > 0;) {
        if (n == 1) continue; /* a letter stands in front */
        at += snprintf(text + at, size - (size_t)at, "%s%.*s", before, (int)n, word);
        before = ", --";
    }
    return own(p, text);
}

static void add_flag(parser *p, const mg_flag *flag, void *values, int group) {
    MG_CHECK(p->n_flags < MAX_ROWS, "%s has more than %d flags", p->line->name, MAX_ROWS);
    int key = FIRST_KEY + p->n_flags;
    p->flag[p->n_flags] = flag;
    p->values[p->n_flags++] = values;
    add_option(p, (struct argp_option){.name = flag->name,
                                       .key = key,
                                       .arg = takes_value(flag) ? flag->argument : NULL,
                                       .doc = help_text(p, flag, values),
                                       .group = group});
    const char *list = flag->also ? flag->also : "", *word;
    for (size_t n; (n = next_word(&list, &word)) > 0;) {
        struct argp_option alias = {.flags = OPTION_ALIAS, .group = group};
        if (n == 1) {
            alias.key = (unsigned char)word[0];
            p->by_letter[alias.key] = key;
        } else {
            alias.name = own(p, mg_strndup(word, n, NULL));
            alias.flags |= OPTION_HIDDEN;
        }
        add_option(p, alias);
    }
}

static void add_tables(parser *p, const mg_flag_table *tables) {
    int group = 1;
    add_option(p, (struct argp_option){.key = 'h', .doc = "As --help", .flags = OPTION_HIDDEN});
    for (const mg_flag_table *table = tables; table->flags; table++)
        for (const mg_flag *flag = table->flags; !mg_flag_is_end(flag); flag++) {
            if (flag->kind != MG_FLAG_HEADING)
                add_flag(p, flag, table->values, group);
            else
                add_option(p, (struct argp_option){.doc = flag->help, .group = ++group});
        }
}

/* argp breaks lines at its own right margin, which is told by the environment alone; what the user says there stays. */
static void set_help_width(void) {
    int columns = mg_columns(stdout);
    char format[64];
    snprintf(format, sizeof format, "rmargin=%d,opt-doc-col=10,usage-indent=4", columns - 1);
    if (columns < MG_COLUMNS) setenv("ARGP_HELP_FMT", format, 0);
}

int mg_flags_parse(const mg_command_line *line, const mg_flag_table *tables, int argc, char **argv,
                   const char **arguments) {
    parser *p = mg_alloc_zero(1, sizeof *p, "the command line", NULL);
    if (!p) mg_fail(MG_FAILURE_MEMORY, __FILE__, __LINE__, "out of memory for the command line");
    p->line = line;
    p->arguments = arguments;
    add_tables(p, tables);
    spell_with_hyphens(tables, argc, argv);

    char name[64];
    snprintf(name, sizeof name, "maskgrad %s", line->name);
    char *own_name = argv[0];
    argv[0] = name; /* argp's messages begin with it */
    struct argp argp = {.options = p->option, .parser = take, .args_doc = line->arguments, .doc = line->doc};
    set_help_width();
    argp_err_exit_status = mg_exit_status(MG_ERR_INPUT);
    argp_parse(&argp, argc, argv, 0, NULL, p);
    argv[0] = own_name;

    int n = p->n_arguments;
    for (int i = 0; i < p->n_owned; i++) mg_free(p->owned[i]);
    mg_free(p);
    return n;
}

void mg_usage_error(const mg_command_line *line, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "maskgrad %s: ", line->name);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\nTry `maskgrad %s --help'.\n", line->name);
    exit(mg_exit_status(MG_ERR_INPUT));
}

int mg_exit_status(mg_status status) {
    return status == MG_OK ? 0 : status == MG_ERR_INPUT ? 2 : 1;
}

int mg_command_end(const mg_command_line *line, mg_status status, const mg_error *error) {
    if (status == MG_OK) return 0;
    fflush(stdout);
    fprintf(stderr, "maskgrad %s: %s\n", line->name, error->message);
    return mg_exit_status(status);
}
