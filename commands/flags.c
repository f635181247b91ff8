#include "flags_private.h"
#include "heap.h"
#include "language.h"
#include "printable.h"
#include "say.h"
#include "suggest.h"

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
        if (flag && mg_flag_takes_value(flag) && value_follows) i++;
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
            mg_given_index(&p->given, p->flag[i]) >= 0)
            other = p->flag[i];
    if (other) mg_setting_format(other, values, before, sizeof before);
    int at = mg_given_index(&p->given, flag);
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
    if (key == HELP_KEY || (key == 'h' && !p->by_letter['h'])) mg_flags_print_help(p->line, p->tables);
    if (key == USAGE_KEY) mg_flags_print_usage(p->line);
    if (key > 0 && key < 128 && p->by_letter[key]) key = p->by_letter[key];
    if (key < FIRST_KEY || key >= FIRST_KEY + p->n_flags) return ARGP_ERR_UNKNOWN;
    const mg_setting *flag = p->flag[key - FIRST_KEY];
    set(p, key - FIRST_KEY, mg_flag_takes_value(flag) ? text : flag->kind == MG_SETTING_ON ? "true" : "false");
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
    add_option(p, (struct argp_option){
                      .name = flag->name, .key = key, .arg = mg_flag_takes_value(flag) ? flag->argument : NULL});
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
        mg_flags_print_table(line, tables);
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
