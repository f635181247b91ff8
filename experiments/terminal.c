/* A lab on the terminal: 80 columns, and beyond ASCII only where the locale's character set is UTF-8. */
#include "lab_private.h"
#include "utf8.h"

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool lab_terminal_utf8(void) {
    /* Asked of a locale of our own, since changing the program's would change how it reads and writes numbers. */
    locale_t ours = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    if (!ours) return false;
    bool utf8 = strcmp(nl_langinfo_l(CODESET, ours), "UTF-8") == 0;
    freelocale(ours);
    return utf8;
}

bool lab_terminal_colour(void) {
    const char *none = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(STDOUT_FILENO) && !(none && *none) && term && strcmp(term, "dumb") != 0;
}

int lab_text_width(const char *text) {
    int width = 0;
    for (const char *c = text; *c; c++) {
        if (*c == '\033') /* a colour of ours: texts have no such character left */
            while (*c && *c != 'm') c++;
        else
            width += ((unsigned char)*c & 0xC0) != 0x80;
        if (!*c) break;
    }
    return width;
}

static const struct {
    const char *utf8, *ascii;
} signs[] = {{"−", "-"},  {"–", "-"},  {"—", "-"},  {"∞", "inf"}, {"√", "sqrt"}, {"·", "*"},  {"×", "x"},
             {"±", "+-"}, {"≤", "<="}, {"≥", ">="}, {"≠", "!="},  {"…", "..."},  {"“", "\""}, {"”", "\""},
             {"‘", "'"},  {"’", "'"},  {"→", "->"}, {"␣", "_"},   {"²", "^2"},   {"³", "^3"}, {"₀", "0"},
             {"₁", "1"},  {"≈", "~"},  {"ᵀ", "^T"}, {"∂", "d"},   {"Σ", "sum"}};

/* Letters and digits behind a root: in ASCII nothing else would tell where it ends. */
static size_t letters_under_root(const char *text) {
    size_t sign = strlen("√");
    if (strncmp(text, "√", sign) != 0) return 0;
    return strspn(text + sign, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
}

const char *lab_shown(mg_lab *lab, const char *text) {
    bool utf8 = lab_terminal_utf8();
    /* The longest replacement is not longer than twice what it replaces. */
    char *shown = mg_arena_alloc(lab->arena, 2 * strlen(text) + 1, 1, "a text for the terminal"), *to = shown;
    while (*text) {
        /* A control character of a text is not an order to the terminal. */
        if (((unsigned char)*text < 32 && *text != '\n') || *text == 127) {
            *to++ = *text++ == '\t' ? ' ' : '?';
            continue;
        }
        if (utf8 || (unsigned char)*text < 128) {
            *to++ = *text++;
            continue;
        }
        size_t rooted = letters_under_root(text);
        if (rooted > 0) {
            to += sprintf(to, "sqrt(%.*s)", (int)rooted, text + strlen("√"));
            text += strlen("√") + rooted;
            continue;
        }
        const char *ascii = "?";
        for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
            if (strncmp(text, signs[i].utf8, strlen(signs[i].utf8)) == 0) ascii = signs[i].ascii;
        while (*ascii) *to++ = *ascii++;
        do text++;
        while (((unsigned char)*text & 0xC0) == 0x80);
    }
    *to = '\0';
    return shown;
}

const char *lab_shown_line(mg_lab *lab, const char *text) {
    char *line = lab_format(lab, "%s", lab_shown(lab, text));
    for (char *c = line; *c; c++)
        if (*c == '\n') *c = ' ';
    return line;
}

/* How many bytes of text fit into `columns`, broken at a space if one is there. */
static size_t line_that_fits(const char *text, int columns) {
    size_t end = 0, space = 0;
    for (int used = 0; text[end] && text[end] != '\n'; used++) {
        if (used == columns) return space ? space : end;
        if (text[end] == ' ') space = end;
        do end++;
        while (((unsigned char)text[end] & 0xC0) == 0x80);
    }
    return end;
}

void lab_print_wrapped(mg_lab *lab, const char *first_indent, const char *indent, const char *text) {
    text = lab_shown(lab, text);
    const char *before = first_indent;
    do {
        size_t n = line_that_fits(text, LAB_TERMINAL_COLUMNS - lab_text_width(before));
        printf("%s%.*s\n", before, (int)n, text);
        text += n;
        if (*text == ' ' || *text == '\n') text++;
        before = indent;
    } while (*text);
}

static void heading(const char *text) {
    if (lab_terminal_colour())
        printf("\n\033[1m%s\033[0m\n", text);
    else
        printf("\n%s\n", text);
}

const char *lab_padded(mg_lab *lab, const char *text, int width, bool right) {
    if (strlen(text) > line_that_fits(text, width)) /* cut at the letter, not at the word */
        return lab_format(lab, "%.*s~", (int)mg_utf8_fitting(text, width - 1), text);
    int room = width - lab_text_width(text);
    return lab_format(lab, "%*s%s%*s", right ? room : 0, "", text, right ? 0 : room, "");
}

void lab_print_line(const char *text) {
    size_t length = strlen(text);
    while (length > 0 && text[length - 1] == ' ') length--;
    printf("%.*s\n", (int)length, text);
}

/* A row of n cells, two blanks before each. */
static void print_row(mg_lab *lab, int n, const char *const *cells, const int *width, const bool *right) {
    const char *row = "";
    for (int i = 0; i < n; i++) row = lab_format(lab, "%s  %s", row, lab_padded(lab, cells[i], width[i], right[i]));
    lab_print_line(row);
}

void lab_print_head(mg_lab *lab) {
    if (lab->begun) return;
    lab->begun = true;
    printf("lab %s\n", lab->row->name);
    heading("Question");
    lab_print_wrapped(lab, "  ", "  ", lab->row->question);
    fflush(stdout);
}

static void print_checks(mg_lab *lab) {
    heading("Checks");
    for (int i = 0; i < lab->checks.n; i++) {
        const lab_check *c = lab->checks.item[i];
        const char *colour = "", *end = "";
        if (lab_terminal_colour()) {
            colour = c->passed ? "\033[32m" : "\033[1;31m";
            end = "\033[0m";
        }
        const char *verdict = lab_format(lab, "  %s%s%s  ", colour, c->passed ? "pass" : "FAIL", end);
        lab_print_wrapped(lab, verdict, "        ", c->name);
        lab_print_wrapped(lab, "          expected ", "                   ", c->expected);
        lab_print_wrapped(lab, "          observed ", "                   ", c->observed);
    }
    int failed = lab_n_failed(lab);
    printf("\n  %d of %d checks pass.\n", lab->checks.n - failed, lab->checks.n);
}

static void print_table(mg_lab *lab, const lab_table *table) {
    heading(lab_shown_line(lab, table->title));
    enum { MOST = 32 };
    int n = table->n_columns < MOST ? table->n_columns : MOST, width[MOST] = {0}, total = 2;
    bool numbers[MOST];
    for (int c = 0; c < n; c++) {
        numbers[c] = lab_column_is_numbers(table, c);
        for (int r = 0; r < table->rows.n; r++) {
            const char *cell = lab_shown_line(lab, ((const char **)table->rows.item[r])[c]);
            if (lab_text_width(cell) > width[c]) width[c] = lab_text_width(cell);
        }
        total += width[c] + 2;
    }
    /* The widest column gives way until the rows fit. */
    while (total > LAB_TERMINAL_COLUMNS) {
        int widest = 0;
        for (int c = 1; c < n; c++)
            if (width[c] > width[widest]) widest = c;
        if (width[widest] <= 4) break;
        width[widest]--;
        total--;
    }
    for (int r = 0; r < table->rows.n; r++) {
        const char *cells[MOST];
        for (int c = 0; c < n; c++) cells[c] = lab_shown_line(lab, ((const char **)table->rows.item[r])[c]);
        print_row(lab, n, cells, width, numbers);
    }
    lab_print_wrapped(lab, "  ", "  ", table->caption);
}

static void print_texts(mg_lab *lab, const lab_text_row *row) {
    heading(lab_shown_line(lab, row->title));
    enum { MOST_ACROSS = 3 };
    int across = row->n < MOST_ACROSS ? row->n : MOST_ACROSS;
    for (int begin = 0; begin < row->n; begin += across) {
        int n = row->n - begin < across ? row->n - begin : across, each = (LAB_TERMINAL_COLUMNS - 2 * n) / n;
        const int width[MOST_ACROSS] = {each, each, each};
        const bool left[MOST_ACROSS] = {false};
        const char *rest[MOST_ACROSS], *cells[MOST_ACROSS];
        for (int i = 0; i < n; i++) {
            cells[i] = lab_shown_line(lab, row->headings[begin + i]);
            rest[i] = lab_shown(lab, row->texts[begin + i]);
        }
        print_row(lab, n, cells, width, left);
        for (bool more = true; more;) {
            more = false;
            for (int i = 0; i < n; i++) {
                size_t length = line_that_fits(rest[i], each);
                cells[i] = lab_format(lab, "%.*s", (int)length, rest[i]);
                rest[i] += length;
                if (*rest[i] == ' ' || *rest[i] == '\n') rest[i]++;
                more = more || *rest[i];
            }
            print_row(lab, n, cells, width, left);
        }
    }
}

static void print_block(mg_lab *lab, const lab_block *block) {
    switch (block->kind) {
    case LAB_BLOCK_NOTE:
        fputs("\n", stdout);
        lab_print_wrapped(lab, "  ", "  ", block->note);
        break;
    case LAB_BLOCK_FIGURE:
        heading(lab_shown_line(lab, block->figure->title));
        lab_print_figure(lab, block->figure);
        lab_print_wrapped(lab, "  ", "  ", block->figure->caption);
        break;
    case LAB_BLOCK_HEATMAP:
        heading(lab_shown_line(lab, block->heatmap->title));
        lab_print_heatmap(lab, block->heatmap);
        lab_print_wrapped(lab, "  ", "  ", block->heatmap->caption);
        break;
    case LAB_BLOCK_TABLE: print_table(lab, block->table); break;
    case LAB_BLOCK_TEXTS: print_texts(lab, block->texts); break;
    }
}

void lab_print_results(mg_lab *lab) {
    heading("Hypotheses");
    for (int i = 0; i < lab->hypotheses.n; i++)
        lab_print_wrapped(lab, lab_format(lab, "  %d. ", i + 1), "     ", lab->hypotheses.item[i]);
    for (int i = 0; i < lab->blocks.n; i++) print_block(lab, lab->blocks.item[i]);
    print_checks(lab);
}
