/* A lab on the terminal: 80 columns or fewer, and beyond ASCII only where the locale's character set is UTF-8. */
#include "color.h"
#include "lab_private.h"
#include "language.h"
#include "printable.h"
#include "utf8.h"
#include "wrap.h"

#include <string.h>

/* Letters and digits under a root: in ASCII nothing else would show where it ends. */
static size_t letters_under_root(const char *text) {
    size_t sign = strlen("√");
    if (strncmp(text, "√", sign) != 0) return 0;
    return strspn(text + sign, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
}

/* In the characters that the terminal has. */
static const char *reduced(mg_lab *lab, const char *text) {
    if (lab->settings.terminal.utf8) return text;
    /* The longest replacement is not longer than three times what it replaces. */
    char *shown = mg_arena_alloc(lab->arena, 3 * strlen(text) + 1, 1, "a text for the terminal"), *to = shown;
    while (*text) {
        if ((unsigned char)*text < 128) {
            *to++ = *text++;
            continue;
        }
        size_t rooted = letters_under_root(text);
        if (rooted > 0) {
            to += sprintf(to, "sqrt(%.*s)", (int)rooted, text + strlen("√"));
            text += strlen("√") + rooted;
            continue;
        }
        size_t n;
        for (const char *ascii = mg_ascii_of(text, &n); *ascii;) *to++ = *ascii++;
        text += n;
    }
    *to = '\0';
    return shown;
}

const char *lab_shown(mg_lab *lab, const char *text) {
    text = lab_words(lab, text);
    size_t length = strlen(text), room = MG_PRINTABLE_ROOM(length);
    char *printable = mg_arena_alloc(lab->arena, room, 1, "a text for the terminal");
    mg_printable(printable, room, text, length, "\n");
    return reduced(lab, printable);
}

const char *lab_shown_line(mg_lab *lab, const char *text) {
    char *line = lab_format(lab, "%s", lab_shown(lab, text));
    for (char *c = line; *c; c++)
        if (*c == '\n') *c = ' ';
    return line;
}

void lab_print_wrapped(mg_lab *lab, const char *first_indent, const char *indent, const char *text) {
    const char *first = reduced(lab, lab_words(lab, first_indent));
    mg_print_wrapped(stdout, lab_columns(lab), first, indent, lab_shown(lab, text));
}

void lab_print_heading(mg_lab *lab, const char *text) {
    bool color = lab->settings.terminal.color;
    printf("\n%s", color ? MG_COLOR_BOLD : "");
    lab_print_wrapped(lab, "", "", lab_shown_line(lab, text));
    if (color) fputs(MG_COLOR_OFF, stdout);
}

const char *lab_padded(mg_lab *lab, const char *text, int width, bool right) {
    if (mg_utf8_columns(text) > width) { /* cut at the letter, not at the word */
        const char *cut = lab->settings.terminal.utf8 ? "…" : width > 6 ? "..." : "~";
        text = lab_format(lab, "%.*s%s", (int)mg_utf8_fitting(text, width - mg_utf8_columns(cut)), text, cut);
    }
    int room = width - mg_utf8_columns(text);
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
    printf("lab %s\n", lab->row->name);
    lab_print_heading(lab, "Question");
    lab_print_wrapped(lab, "  ", "  ", lab->row->question);
    lab_print_heading(lab, "Hypotheses");
    for (int i = 0; i < lab->hypotheses.n; i++)
        lab_print_wrapped(lab, lab_format(lab, "  %d. ", i + 1), "     ", lab->hypotheses.item[i]);
}

static void print_answers(mg_lab *lab) {
    if (lab->questions.n == 0) return;
    lab_print_heading(lab, lab_was_guessed(lab) ? "Guessed and measured" : "Measured");
    for (int i = 0; i < lab->questions.n; i++) {
        const lab_question *question = lab->questions.item[i];
        lab_print_wrapped(lab, lab_format(lab, "  %d. ", i + 1), "     ", question->text);
        if (lab_was_guessed(lab)) lab_print_wrapped(lab, "     guessed  ", "       ", lab_guess_text(lab, question));
        lab_print_wrapped(lab, "     measured ", "       ", lab_answer_text(lab, question));
    }
}

static void print_checks(mg_lab *lab) {
    static const struct {
        const char *word, *color, *expected;
    } marks[LAB_N_VERDICTS] = {[LAB_PASS] = {N_("pass"), MG_COLOR_PASS, N_("          expected ")},
                               [LAB_FAIL] = {N_("FAIL"), MG_COLOR_FAIL, N_("          expected ")},
                               [LAB_UNDECIDED] = {"?   ", MG_COLOR_UNDECIDED, N_("          undecided: ")}};
    lab_print_heading(lab, "Checks");
    for (int i = 0; i < lab->checks.n; i++) {
        const lab_check *c = lab->checks.item[i];
        bool color = lab->settings.terminal.color;
        const char *verdict = lab_format(lab, "  %s%s%s  ", color ? marks[c->verdict].color : "",
                                         marks[c->verdict].word, color ? MG_COLOR_OFF : "");
        lab_print_wrapped(lab, verdict, "        ", c->name);
        lab_print_wrapped(lab, marks[c->verdict].expected, "                   ", c->expected);
        lab_print_wrapped(lab, "          observed ", "                   ", c->observed);
    }
    fputs("\n", stdout);
    lab_print_wrapped(lab, "  ", "  ", lab_format(lab, "%s.", lab_verdicts_in_words(lab)));
}

enum { MOST_CELLS_OF_A_ROW = 32, LEAST_TEXT = 8 };

static const char *cell_of(mg_lab *lab, const lab_table *table, int row, int column) {
    const char *cell = ((const char **)table->rows.item[row])[column];
    return lab_shown_line(lab, strcmp(cell, "-inf") == 0 ? "−∞" : cell);
}

/* The widths of the first n columns, so that rows fit. On the usual terminal the widest give way, but no
 * number is cut; on a narrower one nothing is. Whether they fit. */
static bool fit_columns(mg_lab *lab, const lab_table *table, int n, int *width, bool *numbers) {
    int least[MOST_CELLS_OF_A_ROW], total = 0;
    for (int c = 0; c < n; c++) {
        numbers[c] = lab_column_is_numbers(table, c);
        width[c] = least[c] = 0;
        for (int r = 0; r < table->rows.n; r++) {
            int needs = mg_text_columns(cell_of(lab, table, r, c));
            if (needs > width[c]) width[c] = needs;
            if (r > 0 && !numbers[c] && needs > LEAST_TEXT) needs = LEAST_TEXT;
            if (r > 0 && needs > least[c]) least[c] = needs;
        }
        if (least[c] < 4) least[c] = width[c] < 4 ? width[c] : 4; /* of a header */
        if (lab_columns(lab) < LAB_COLUMNS) least[c] = width[c];
        total += width[c] + 2;
    }
    for (; total > lab_columns(lab); total--) {
        int widest = -1;
        for (int c = 0; c < n; c++)
            if (width[c] > least[c] && (widest < 0 || width[c] > width[widest])) widest = c;
        if (widest < 0) return false;
        width[widest]--;
    }
    return true;
}

/* Where rows do not fit, each cell has a line after its column's name. */
static void print_records(mg_lab *lab, const lab_table *table) {
    for (int r = 1; r < table->rows.n; r++) {
        lab_print_wrapped(lab, "  ", "    ", cell_of(lab, table, r, 0));
        for (int c = 1; c < table->n_columns; c++)
            lab_print_wrapped(lab, lab_format(lab, "    %s  ", cell_of(lab, table, 0, c)), "      ",
                              cell_of(lab, table, r, c));
    }
}

static void print_table(mg_lab *lab, const lab_table *table) {
    lab_print_heading(lab, table->title);
    int n = table->n_columns < MOST_CELLS_OF_A_ROW ? table->n_columns : MOST_CELLS_OF_A_ROW;
    int width[MOST_CELLS_OF_A_ROW];
    bool numbers[MOST_CELLS_OF_A_ROW];
    bool fits = fit_columns(lab, table, n, width, numbers);
    if (!fits) print_records(lab, table);
    for (int r = 0; fits && r < table->rows.n; r++) {
        const char *cells[MOST_CELLS_OF_A_ROW];
        for (int c = 0; c < n; c++) cells[c] = cell_of(lab, table, r, c);
        print_row(lab, n, cells, width, numbers);
    }
    lab_print_wrapped(lab, "  ", "  ", table->caption);
}

/* The next line of a text that has `width` columns; a line that goes on is indented. */
static const char *next_line(mg_lab *lab, const char **text, bool *goes_on, int width) {
    const char *indent = *goes_on ? "    " : "";
    int n = (int)mg_line_fitting(*text, width - (int)strlen(indent));
    const char *line = lab_format(lab, "%s%.*s", indent, n, *text);
    *text += n;
    *goes_on = **text && **text != '\n';
    if (**text == ' ' || **text == '\n') ++*text;
    return line;
}

static void print_texts(mg_lab *lab, const lab_text_group *group) {
    lab_print_heading(lab, group->title);
    enum { MOST_ACROSS = 3, LEAST_WIDTH = 24 };
    int columns = lab_columns(lab), across = columns / LEAST_WIDTH;
    across = across < 1 ? 1 : across > MOST_ACROSS ? MOST_ACROSS : across;
    if (group->n < across) across = group->n;
    for (int begin = 0; begin < group->n; begin += across) {
        int n = group->n - begin < across ? group->n - begin : across, each = (columns - 2 * n) / n;
        const int width[MOST_ACROSS] = {each, each, each};
        const bool left[MOST_ACROSS] = {false};
        bool goes_on[MOST_ACROSS] = {false};
        const char *rest[MOST_ACROSS], *cells[MOST_ACROSS];
        for (int i = 0; i < n; i++) {
            cells[i] = lab_shown_line(lab, group->headings[begin + i]);
            rest[i] = lab_shown(lab, group->texts[begin + i]);
        }
        print_row(lab, n, cells, width, left);
        for (bool more = true; more;) {
            more = false;
            for (int i = 0; i < n; i++) {
                cells[i] = next_line(lab, &rest[i], &goes_on[i], each);
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
        lab_print_heading(lab, block->figure->title);
        lab_print_figure(lab, block->figure);
        lab_print_wrapped(lab, "  ", "  ", block->figure->caption);
        break;
    case LAB_BLOCK_HEATMAP:
        lab_print_heading(lab, block->heatmap->title);
        lab_print_heatmap(lab, block->heatmap);
        lab_print_wrapped(lab, "  ", "  ", block->heatmap->caption);
        break;
    case LAB_BLOCK_TABLE: print_table(lab, block->table); break;
    case LAB_BLOCK_TEXTS: print_texts(lab, block->texts); break;
    }
}

void lab_print_results(mg_lab *lab) {
    print_answers(lab);
    for (int i = 0; i < lab->blocks.n; i++) print_block(lab, lab->blocks.item[i]);
    print_checks(lab);
}
