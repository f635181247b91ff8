#include "flags.h"
#include "columns.h"
#include "heap.h"
#include "language.h"
#include "printable.h"
#include "say.h"
#include "suggest.h"
#include "wrap.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HELP_KEY = '?',
    USAGE_KEY = 0xfff,
    FIRST_KEY = 0x1000,
    MAX_LISTS = 2,
    MAX_OPTIONS = 4 * MG_MAX_FLAGS,
    TEXT_SIZE = MG_SETTING_ROOM
};

static bool takes_value(const mg_setting *flag) {
    return flag->argument != NULL;
}

/* ---- Spellings ---- */

const mg_setting *mg_flag_find(const mg_flag_table *tables, const char *spelling, size_t length) {
    for (const mg_flag_table *table = tables; table->flags; table++)
        for (const mg_setting *flag = table->flags; !mg_setting_is_end(flag); flag++)
            if (mg_setting_is_spelled(flag, spelling, length)) return flag;
    return NULL;
}

static bool is_known(const mg_flag_table *tables, const char *spelling, size_t length) {
    return mg_flag_find(tables, spelling, length) != NULL;
}

/* --block_size becomes --block-size where that is a flag; nothing else on the line changes. */
static void spell_with_hyphens(const mg_flag_table *tables, int argc, char **argv) {
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        char word[64];
        size_t length = strncmp(argv[i], "--", 2) == 0 ? strcspn(argv[i] + 2, "=") : 0;
        if (length == 0 || length >= sizeof word) continue;
        for (size_t k = 0; k < length; k++) word[k] = argv[i][k + 2] == '_' ? '-' : argv[i][k + 2];
        if (is_known(tables, word, length)) memcpy(argv[i] + 2, word, length);
    }
}

/* ---- Did you mean …? ---- */

/* The flag that getopt takes a word for: its name, another spelling, or the beginning of one. */
static const mg_setting *find_flag(const mg_flag_table *tables, const char *word, size_t length, bool *is_help) {
    static const char *const always[] = {"help", "usage"};
    *is_help = false;
    const mg_setting *exact = mg_flag_find(tables, word, length);
    if (exact) return exact;
    for (int i = 0; i < 2; i++) *is_help = *is_help || strncmp(always[i], word, length) == 0;
    for (const mg_flag_table *table = tables; table->flags; table++)
        for (const mg_setting *flag = table->flags; !mg_setting_is_end(flag); flag++) {
            const char *list = flag->also ? flag->also : "", *other;
            if (flag->name && strncmp(flag->name, word, length) == 0) return flag;
            for (size_t n; (n = mg_next_word(&list, &other)) > 0;)
                if (n > 1 && n >= length && memcmp(other, word, length) == 0) return flag;
        }
    return NULL;
}

MG_NORETURN static void refuse_flag(const mg_command_line *line, const mg_flag_table *tables, const char *name) {
    const char *why_not = mg_suggest_why_not(name);
    if (why_not) mg_usage_error(line, "unrecognized option '--%s': %s", name, why_not);
    mg_suggestion near = {.word = name};
    for (const mg_flag_table *table = tables; table->flags; table++) mg_suggest_rows(&near, table->flags);
    mg_suggest(&near, "help");
    mg_suggest(&near, "language");
    if (near.best) mg_usage_error(line, "unrecognized option '--%s': did you mean --%s?", name, near.best);
    mg_usage_error(line, "unrecognized option '--%s'", name);
}

/* Before getopt, which knows no other names. */
static void refuse_unknown_flags(const mg_command_line *line, const mg_flag_table *tables, int argc, char **argv) {
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const char *word = argv[i];
        if (word[0] != '-' || !word[1]) continue;
        bool is_long = word[1] == '-', is_help = false;
        size_t length = is_long ? strcspn(word + 2, "=") : 1;
        const mg_setting *flag = is_long ? find_flag(tables, word + 2, length, &is_help)
                                         : mg_flag_find(tables, word + 1, 1);
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)(length < 60 ? length : 60), word + 2);
        if (is_long && !flag && !is_help) refuse_flag(line, tables, name);
        bool value_follows = is_long ? word[2 + length] == '\0' : word[2] == '\0';
        if (flag && takes_value(flag) && value_follows) i++;
    }
}

/* getopt repeats an option that it does not know as it is. */
static void refuse_unprintable_options(const mg_command_line *line, const mg_flag_table *tables, int argc,
                                       char **argv) {
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        size_t length = strncmp(argv[i], "--", 2) == 0 ? strcspn(argv[i] + 2, "=") : 0;
        if (argv[i][0] != '-' || (length > 0 && is_known(tables, argv[i] + 2, length))) continue;
        mg_shown_text shown = mg_shown(argv[i]);
        if (strcmp(shown.text, argv[i]) != 0)
            mg_usage_error(line, "'%s' is not an option; a value that begins with - is given as --NAME=VALUE",
                           shown.text);
    }
}

/* ---- argp ---- */

typedef struct parser {
    const mg_command_line *line;
    const mg_flag_table *tables;
    const char **arguments;
    int n_arguments;
    mg_given given;

    const mg_setting *flag[MG_MAX_FLAGS]; /* by key - FIRST_KEY, with the struct that its offset is about */
    void *values[MG_MAX_FLAGS];
    int n_flags;
    int by_letter[128]; /* the key of a short option; 0: none */

    struct argp_option option[MAX_OPTIONS + 1]; /* ends with an empty one */
    int n_options;
    char *owned[MAX_OPTIONS]; /* texts that the options point to */
    int n_owned;
} parser;

static int find_given(const mg_given *given, const mg_setting *flag) {
    for (int i = 0; i < given->n; i++)
        if (given->flag[i].flag == flag) return i;
    return -1;
}

/* The text of a list to which another item was added; the settings point to it until the program ends. */
static const char *add_item(const parser *p, const mg_setting *flag, const char *before, const char *item) {
    static char texts[MAX_LISTS][MG_SETTING_ROOM];
    static int n_texts;
    int i = 0;
    while (i < n_texts && texts[i] != before) i++;
    MG_CHECK(i < MAX_LISTS, "a command has more than %d lists", MAX_LISTS);
    if (i == n_texts) snprintf(texts[n_texts++], sizeof texts[i], "%s", before);
    size_t used = strlen(texts[i]);
    if (used + strlen(item) + 2 > sizeof texts[i])
        mg_usage_error(p->line, "--%s is given too often: put the files into one folder, and give that", flag->name);
    snprintf(texts[i] + used, sizeof texts[i] - used, "\n%s", item);
    return texts[i];
}

/* Two flags may set one value, as --mask and --lookahead do, but not to two different ones. */
static void set(parser *p, int index, const char *text) {
    const mg_setting *flag = p->flag[index];
    void *values = p->values[index];
    char before[TEXT_SIZE], after[TEXT_SIZE];
    const mg_setting *other = NULL;
    for (int i = 0; i < p->n_flags && !other; i++)
        if (i != index && p->values[i] == values && p->flag[i]->offset == flag->offset &&
            find_given(&p->given, p->flag[i]) >= 0)
            other = p->flag[i];
    if (other) mg_setting_format(other, values, before, sizeof before);
    int at = find_given(&p->given, flag);
    if (flag->once && at >= 0) mg_usage_error(p->line, "--%s is given twice: give it once", flag->name);
    if (flag->kind == MG_SETTING_LIST) {
        if (!text[0]) mg_usage_error(p->line, "--%s needs a path", flag->name);
        if (strchr(text, '\n'))
            mg_usage_error(p->line, "--%s does not take a path with a line break in it: rename the file", flag->name);
        if (at >= 0) text = add_item(p, flag, p->given.flag[at].text, text);
    }
    mg_error error;
    if (mg_setting_set(flag, values, text, &error) != MG_OK) mg_usage_error(p->line, "%s", error.message);
    if (other) mg_setting_format(other, values, after, sizeof after);
    if (other && strcmp(before, after) != 0)
        mg_usage_error(p->line, "--%s and --%s contradict each other: give one", other->name, flag->name);
    p->given.flag[at < 0 ? p->given.n++ : at] = (struct mg_given_flag){flag, text};
}

/* ---- Help ---- */

/* The default as --help shows it; "" for none. A number out of its range means "derived", and .help explains it. */
static void shown_default(const mg_setting *flag, const void *values, char *text, size_t size) {
    mg_setting_format(flag, values, text, size);
    bool is_number = flag->kind == MG_SETTING_INT || flag->kind == MG_SETTING_INT64 || flag->kind == MG_SETTING_REAL;
    if (!takes_value(flag) || (is_number && !mg_setting_in_range(flag, strtod(text, NULL)))) text[0] = '\0';
}

/* A text beside what it is about, or, on a narrow terminal, below. */
static void print_beside(const char *left, const char *text) {
    enum { WIDE = 29, NARROW = 10 };
    int columns = mg_columns(stdout), at = columns < LAB_COLUMNS ? NARROW : WIDE;
    char first[128], indent[WIDE + 1];
    snprintf(indent, sizeof indent, "%*s", at, "");
    snprintf(first, sizeof first, "%-*s", at, left);
    if (mg_text_columns(left) >= at) {
        puts(left);
        snprintf(first, sizeof first, "%s", indent);
    }
    mg_print_wrapped(stdout, columns, first, indent, text);
}

/* The letter, the name, what it is, its default, and its other spellings. */
static void print_flag(const mg_setting *flag, const void *values) {
    char left[128], value[TEXT_SIZE], text[2 * TEXT_SIZE], letter[8] = "   ";
    const char *list = flag->also ? flag->also : "", *word, *before = N_("; also --");
    shown_default(flag, values, value, sizeof value);
    int at = mg_snprintf(text, sizeof text, "%s%s%s%s", flag->help, value[0] ? " [" : "", value, value[0] ? "]" : "");
    for (size_t n; (n = mg_next_word(&list, &word)) > 0 && at < TEXT_SIZE;) {
        if (n == 1) snprintf(letter, sizeof letter, "-%c,", *word);
        if (n == 1) continue;
        at += mg_snprintf(text + at, sizeof text - (size_t)at, "%s%.*s", before, (int)n, word);
        before = ", --";
    }
    snprintf(left, sizeof left, "  %s --%s%s%s", letter, flag->name, takes_value(flag) ? "=" : "",
             takes_value(flag) ? flag->argument : "");
    print_beside(left, text);
}

static void print_usage_line(const mg_command_line *line) {
    char text[TEXT_SIZE];
    mg_snprintf(text, sizeof text, "Usage: maskgrad %s [OPTION...]%s%s", mg_shown(line->name).text,
                line->arguments ? " " : "", line->arguments ? line->arguments : "");
    mg_print_wrapped(stdout, mg_columns(stdout), "", "    ", text);
}

MG_NORETURN static void print_usage(const parser *p) {
    print_usage_line(p->line);
    exit(0);
}

MG_NORETURN static void print_help(const parser *p) {
    char words[8192];
    const char *doc = mg_terminal_words(p->line->doc, words, sizeof words);
    const char *after = strchr(doc, '\v'); /* what follows the options */
    size_t length = after ? (size_t)(after - doc) : strlen(doc);
    char *before = mg_strndup(doc, length, NULL);
    print_usage_line(p->line);
    if (before) mg_print_wrapped(stdout, mg_columns(stdout), "", "", before);
    mg_free(before);
    bool headed = false;
    for (const mg_flag_table *table = p->tables; table->flags; table++)
        for (const mg_setting *flag = table->flags; !mg_setting_is_end(flag); flag++) {
            bool is_heading = flag->kind == MG_SETTING_HEADING;
            if (is_heading || !headed) putchar('\n');
            headed = true;
            if (is_heading)
                mg_print_wrapped(stdout, mg_columns(stdout), " ", " ", flag->help);
            else
                print_flag(flag, table->values);
        }
    putchar('\n');
    print_beside("  -?, --help", "Print this help");
    print_beside("      --usage", "Print a usage line");
    print_beside("      --language=LANGUAGE", "Language of texts, help and messages: en or pt-BR [LANGUAGE, LANG]");
    if (after) {
        putchar('\n');
        mg_print_wrapped(stdout, mg_columns(stdout), "", "", after + 1);
    }
    exit(0);
}

/* Not in --help: what scripts/completion.sh makes shell completion of. A line per flag: its name, its letter, the name
 * of its value, its purpose; before them, a line without a name for the arguments. */
static void print_table(const mg_command_line *line, const mg_flag_table *tables) {
    printf("\t\t%s\t%s\n", line->arguments ? line->arguments : "", line->name);
    for (const mg_flag_table *table = tables; table->flags; table++)
        for (const mg_setting *flag = table->flags; !mg_setting_is_end(flag); flag++) {
            if (flag->kind == MG_SETTING_HEADING) continue;
            const char *list = flag->also ? flag->also : "", *word, *letter = "";
            for (size_t n; (n = mg_next_word(&list, &word)) > 0;)
                if (n == 1) letter = word;
            printf("%s\t%.1s\t%s\t%s\n", flag->name, letter, takes_value(flag) ? flag->argument : "", flag->help);
        }
    puts("language\t\tLANGUAGE\tLanguage of texts, help and messages");
}

/* ---- Parsing ---- */

MG_NORETURN static void refuse_stray(const mg_command_line *line, const char *text) {
    if (line->stray && !line->where) mg_usage_error(line, "unexpected argument: %s (%s)", text, line->stray);
    mg_usage_error(line, "unexpected argument: %s", text);
}

/* What argp would print itself goes to no stream: where a word ends its buffer, it reads past the end. */
static error_t take(int key, char *text, struct argp_state *state) {
    parser *p = state->input;
    if (key == ARGP_KEY_INIT) state->err_stream = NULL;
    if (key == ARGP_KEY_ARG) {
        if (p->n_arguments == p->line->max_arguments) refuse_stray(p->line, text);
        p->arguments[p->n_arguments++] = text;
        return 0;
    }
    if (key == ARGP_KEY_END && p->n_arguments < p->line->min_arguments)
        mg_usage_error(p->line, "missing argument: %s", p->line->arguments);
    if (key == HELP_KEY || (key == 'h' && !p->by_letter['h'])) print_help(p);
    if (key == USAGE_KEY) print_usage(p);
    if (key > 0 && key < 128 && p->by_letter[key]) key = p->by_letter[key];
    if (key < FIRST_KEY || key >= FIRST_KEY + p->n_flags) return ARGP_ERR_UNKNOWN;
    const mg_setting *flag = p->flag[key - FIRST_KEY];
    set(p, key - FIRST_KEY, takes_value(flag) ? text : flag->kind == MG_SETTING_ON ? "true" : "false");
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

static void add_flag(parser *p, const mg_setting *flag, void *values) {
    MG_CHECK(p->n_flags < MG_MAX_FLAGS, "%s has more than %d flags", p->line->name, MG_MAX_FLAGS);
    int key = FIRST_KEY + p->n_flags;
    p->flag[p->n_flags] = flag;
    p->values[p->n_flags++] = values;
    add_option(p,
               (struct argp_option){.name = flag->name, .key = key, .arg = takes_value(flag) ? flag->argument : NULL});
    const char *list = flag->also ? flag->also : "", *word;
    for (size_t n; (n = mg_next_word(&list, &word)) > 0;) {
        struct argp_option alias = {.flags = OPTION_ALIAS};
        if (n == 1) {
            alias.key = (unsigned char)word[0];
            p->by_letter[alias.key] = key;
        } else {
            alias.name = own(p, mg_strndup(word, n, NULL));
        }
        add_option(p, alias);
    }
}

static void add_tables(parser *p, const mg_flag_table *tables) {
    add_option(p, (struct argp_option){.name = "help", .key = HELP_KEY});
    add_option(p, (struct argp_option){.key = 'h'});
    add_option(p, (struct argp_option){.name = "usage", .key = USAGE_KEY});
    for (const mg_flag_table *table = tables; table->flags; table++)
        for (const mg_setting *flag = table->flags; !mg_setting_is_end(flag); flag++)
            if (flag->kind != MG_SETTING_HEADING) add_flag(p, flag, table->values);
}

int mg_flags_parse(const mg_command_line *line, const mg_flag_table *tables, int argc, char **argv,
                   const char **arguments, mg_given *given) {
    if (argc == 2 && strcmp(argv[1], "--flag-table") == 0) {
        print_table(line, tables);
        exit(0);
    }
    parser *p = mg_alloc_zero(1, sizeof *p, "the command line", NULL);
    if (!p) mg_fail(MG_FAILURE_MEMORY, __FILE__, __LINE__, "out of memory for the command line");
    p->line = line;
    p->tables = tables;
    p->arguments = arguments;
    if (line->continues) p->given = *given;
    add_tables(p, tables);
    spell_with_hyphens(tables, argc, argv);
    refuse_unprintable_options(line, tables, argc, argv);
    refuse_unknown_flags(line, tables, argc, argv);

    char name[64];
    snprintf(name, sizeof name, "maskgrad %s", line->name);
    char *own_name = argv[0];
    argv[0] = name; /* argp's messages begin with it */
    struct argp argp = {.options = p->option, .parser = take};
    if (argp_parse(&argp, argc, argv, ARGP_NO_HELP, NULL, p) != 0) { /* getopt has said why */
        mg_fprintf(stderr, "Try `maskgrad %s --help'.\n", mg_shown(line->name).text);
        exit(mg_exit_status(MG_ERR_INPUT));
    }
    argv[0] = own_name;

    int n = p->n_arguments;
    if (given) *given = p->given;
    for (int i = 0; i < p->n_owned; i++) mg_free(p->owned[i]);
    mg_free(p);
    return n;
}

int mg_flags_cut(int *argc, char **argv, char ***words) {
    int at = 1, all = *argc;
    while (at < all && strcmp(argv[at], "--") != 0) at++;
    *argc = at;
    *words = at < all ? argv + at + 1 : NULL;
    return at < all ? all - at - 1 : 0;
}

void mg_flag_tables_add(mg_flag_table *list, const mg_settings *tables, void *values) {
    int n = 0;
    while (list[n].flags) n++;
    for (; tables->rows; tables++, n++) {
        MG_CHECK(n + 1 < MG_MAX_FLAG_TABLES, "a command has more than %d tables of flags", MG_MAX_FLAG_TABLES - 1);
        list[n] = (mg_flag_table){tables->rows, (char *)values + tables->base};
    }
    list[n] = (mg_flag_table){NULL, NULL};
}

void mg_given_add_before(mg_given *given, const mg_given *before) {
    mg_given all = {0};
    for (int i = 0; i < before->n; i++)
        if (find_given(given, before->flag[i].flag) < 0) all.flag[all.n++] = before->flag[i];
    for (int i = 0; i < given->n; i++) all.flag[all.n++] = given->flag[i];
    *given = all;
}

static bool holds(const mg_setting *rows, const mg_setting *row) {
    while (rows != row && !mg_setting_is_end(rows)) rows++;
    return rows == row;
}

void mg_given_apply(const mg_given *given, const mg_flag_table *tables) {
    for (int i = 0; i < given->n; i++)
        for (const mg_flag_table *table = tables; table->flags; table++) {
            mg_error error;
            if (!holds(table->flags, given->flag[i].flag)) continue;
            MG_CHECK(mg_setting_set(given->flag[i].flag, table->values, given->flag[i].text, &error) == MG_OK,
                     "a flag that was legal before is not: %s", error.message);
        }
}

const mg_setting *mg_given_find(const mg_given *given, const mg_setting *rows, const mg_setting *row) {
    for (int i = 0; i < given->n; i++)
        if (given->flag[i].flag->offset == row->offset && holds(rows, given->flag[i].flag)) return given->flag[i].flag;
    return NULL;
}

const char *mg_given_any(const mg_given *given, const char *names) {
    const char *word;
    for (size_t n; (n = mg_next_word(&names, &word)) > 0;)
        for (int i = 0; i < given->n; i++) {
            const char *name = given->flag[i].flag->name;
            if (strlen(name) == n && memcmp(name, word, n) == 0) return name;
        }
    return NULL;
}

void mg_warn_idle(const mg_command_line *line, const mg_given *given, const char *names, const char *why) {
    const char *name = mg_given_any(given, names);
    if (name) mg_say(line->name, "--%s changes nothing: %s", name, why);
}

void mg_usage_error(const mg_command_line *line, const char *format, ...) {
    mg_error error;
    va_list arguments;
    va_start(arguments, format);
    mg_error_vset(&error, MG_ERR_INPUT, format, arguments);
    va_end(arguments);
    mg_say(line->name, "%s%s%s", line->where ? line->where : "", line->where ? ": " : "", error.message);
    mg_fprintf(stderr, "Try `maskgrad %s --help'.\n", mg_shown(line->name).text);
    exit(mg_exit_status(MG_ERR_INPUT));
}

void mg_refuse_empty(const mg_command_line *line, const char *flag, const char *what, const char *name) {
    if (name && !*name) mg_usage_error(line, "--%s is empty: name a %s", flag, what);
}

int mg_exit_status(mg_status status) {
    return status == MG_OK ? 0 : status == MG_ERR_INPUT ? 2 : 1;
}

int mg_command_end(const mg_command_line *line, mg_status status, const mg_error *error) {
    if (status == MG_OK) return 0;
    fflush(stdout);
    mg_say(line->name, "%s", error->message);
    return mg_exit_status(status);
}
