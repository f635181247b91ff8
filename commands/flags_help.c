/* --help, --usage, and the table of flags that shell completion is made of. */
#include "columns.h"
#include "flags_private.h"
#include "heap.h"
#include "language.h"
#include "printable.h"
#include "wrap.h"

#include <stdio.h>
#include <string.h>

/* The default as --help shows it; "" for none. A number out of its range means "derived", and .help explains it. */
static void shown_default(const mg_setting *flag, const void *values, char *text, size_t size) {
    mg_setting_format(flag, values, text, size);
    bool is_number = flag->kind == MG_SETTING_INT || flag->kind == MG_SETTING_INT64 || flag->kind == MG_SETTING_REAL;
    if (!mg_flag_takes_value(flag) || (is_number && !mg_setting_in_range(flag, strtod(text, NULL)))) text[0] = '\0';
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
    char left[128], value[MG_SETTING_ROOM], text[2 * MG_SETTING_ROOM], letter[8] = "   ";
    const char *list = flag->also ? flag->also : "", *word, *before = N_("; also --");
    shown_default(flag, values, value, sizeof value);
    int at = mg_snprintf(text, sizeof text, "%s%s%s%s", flag->help, value[0] ? " [" : "", value, value[0] ? "]" : "");
    for (size_t n; (n = mg_next_word(&list, &word)) > 0 && at < MG_SETTING_ROOM;) {
        if (n == 1) snprintf(letter, sizeof letter, "-%c,", *word);
        if (n == 1) continue;
        at += mg_snprintf(text + at, sizeof text - (size_t)at, "%s%.*s", before, (int)n, word);
        before = ", --";
    }
    snprintf(left, sizeof left, "  %s --%s%s%s", letter, flag->name, mg_flag_takes_value(flag) ? "=" : "",
             mg_flag_takes_value(flag) ? flag->argument : "");
    print_beside(left, text);
}

static void print_usage_line(const mg_command_line *line) {
    char text[MG_SETTING_ROOM];
    mg_snprintf(text, sizeof text, "Usage: maskgrad %s [OPTION...]%s%s", mg_shown(line->name).text,
                line->arguments ? " " : "", line->arguments ? line->arguments : "");
    mg_print_wrapped(stdout, mg_columns(stdout), "", "    ", text);
}

void mg_flags_print_usage(const mg_command_line *line) {
    print_usage_line(line);
    exit(0);
}

void mg_flags_print_help(const mg_command_line *line, const mg_flag_table *tables) {
    char words[8192];
    const char *doc = mg_terminal_words(line->doc, words, sizeof words);
    const char *after = strchr(doc, '\v'); /* what follows the options */
    size_t length = after ? (size_t)(after - doc) : strlen(doc);
    char *before = mg_strndup(doc, length, NULL);
    print_usage_line(line);
    if (before) mg_print_wrapped(stdout, mg_columns(stdout), "", "", before);
    mg_free(before);
    bool headed = false;
    for (const mg_flag_table *table = tables; table->flags; table++)
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

/* Not in --help. */
void mg_flags_print_table(const mg_command_line *line, const mg_flag_table *tables) {
    printf("\t\t%s\t%s\n", line->arguments ? line->arguments : "", line->name);
    for (const mg_flag_table *table = tables; table->flags; table++)
        for (const mg_setting *flag = table->flags; !mg_setting_is_end(flag); flag++) {
            if (flag->kind == MG_SETTING_HEADING) continue;
            const char *list = flag->also ? flag->also : "", *word, *letter = "";
            for (size_t n; (n = mg_next_word(&list, &word)) > 0;)
                if (n == 1) letter = word;
            printf("%s\t%.1s\t%s\t%s\n", flag->name, letter, mg_flag_takes_value(flag) ? flag->argument : "", flag->help);
        }
    puts("language\t\tLANGUAGE\tLanguage of texts, help and messages");
}
