/* report.html: one file that needs no other and no network. */
#include "lab_private.h"
#include "language.h"
#include "regular_file.h"

#include <string.h>
#include <unistd.h>

void lab_html(FILE *out, const char *text) {
    lab_html_part(out, text, strlen(text));
}

void lab_html_part(FILE *out, const char *text, size_t n) {
    for (const char *c = text; c < text + n; c++) switch (*c) {
        case '&': fputs("&amp;", out); break;
        case '<': fputs("&lt;", out); break;
        case '>': fputs("&gt;", out); break;
        case '"': fputs("&quot;", out); break;
        case '\'': fputs("&#39;", out); break;
        default:
            /* The control characters that HTML does not allow are shown as what they are: something else. */
            if ((unsigned char)*c < 32 && *c != '\n' && *c != '\t' && *c != '\r')
                fputs("&#xFFFD;", out);
            else
                fputc(*c, out);
        }
}

static void element(FILE *out, const char *tag, const char *text) {
    fprintf(out, "<%s>", tag);
    lab_html(out, mg_words(text));
    fprintf(out, "</%.*s>\n", (int)strcspn(tag, " "), tag);
}

/* The same of a text that the lab wrote. */
static void prose(FILE *out, const char *tag, const char *text) {
    fprintf(out, "<%s>", tag);
    lab_typeset(out, mg_words(text));
    fprintf(out, "</%.*s>\n", (int)strcspn(tag, " "), tag);
}

/* A cell of a table; a narrow screen shows `label` beside it (NULL: nothing). */
static void table_cell(FILE *out, const char *tag, const char *text, const char *label) {
    fprintf(out, "<%s", tag);
    if (label) {
        fputs(" data-label=\"", out);
        lab_html(out, mg_words(label));
        fputs("\"", out);
    }
    fputs(">", out);
    lab_typeset(out, mg_words(text));
    fprintf(out, "</%.*s>\n", (int)strcspn(tag, " "), tag);
}

static void write_base64(FILE *out, const char *bytes, size_t n) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        unsigned b[3] = {0};
        for (size_t j = 0; j < 3 && i + j < n; j++) b[j] = (unsigned char)bytes[i + j];
        unsigned group = b[0] << 16 | b[1] << 8 | b[2];
        for (size_t j = 0; j < 4; j++) fputc(i + j > n ? '=' : digits[(group >> (18 - 6 * j)) & 63], out);
    }
}

static void begin_page(FILE *out, const char *title) {
    fprintf(out, "<!DOCTYPE html>\n<html lang=\"%s\">\n", mg_language());
    fputs("<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n",
          out);
    element(out, "title", title);
    fprintf(out, "<style>\n%s</style>\n</head>\n<body>\n<main>\n", (const char *)maskgrad_report_css);
}

static void end_page(FILE *out) {
    fputs("</main>\n</body>\n</html>\n", out);
}

static void write_list(FILE *out, const char *heading, const char *class, const char *tag, const lab_list *texts) {
    if (texts->n == 0) return;
    fprintf(out, "<section class=\"%s\">\n", class);
    prose(out, "h2", heading);
    fprintf(out, "<%s>\n", tag);
    for (int i = 0; i < texts->n; i++) prose(out, "li", texts->item[i]);
    fprintf(out, "</%s>\n</section>\n", tag);
}

/* What the lab asked before it worked. */
static void write_answers(FILE *out, mg_lab *lab) {
    if (lab->questions.n == 0) return;
    bool guessed = lab_was_guessed(lab);
    fputs("<section>\n", out);
    element(out, "h2", guessed ? "Guessed and measured" : "Guess before you look");
    fputs("<div class=\"scroll\"><table class=\"answers\">\n<thead><tr>", out);
    table_cell(out, "th", "Question", NULL);
    if (guessed) table_cell(out, "th", "Your guess", NULL);
    table_cell(out, "th class=\"measured\"", "Measured", NULL);
    fputs("</tr></thead>\n<tbody>\n", out);
    for (int i = 0; i < lab->questions.n; i++) {
        const lab_question *question = lab->questions.item[i];
        fputs("<tr>", out);
        table_cell(out, "td", question->text, NULL);
        if (guessed) table_cell(out, "td", lab_guess_text(lab, question), "your guess");
        table_cell(out, "td class=\"measured\"", lab_answer_text(lab, question), "measured");
        fputs("</tr>\n", out);
    }
    fputs("</tbody>\n</table></div>\n</section>\n", out);
}

static void write_done(FILE *out, const mg_lab *lab) {
    if (!lab->command) return;
    fputs("<section class=\"done\">\n", out);
    element(out, "h2", "What was done");
    for (int i = 0; i < lab->did.n; i++) prose(out, "p", lab->did.item[i]);
    fputs("<dl>\n", out);
    for (int i = 0; i < lab->settings_used.n; i++) {
        const lab_pair *pair = lab->settings_used.item[i];
        fputs("<div>", out);
        element(out, "dt", pair->name);
        element(out, "dd", pair->text);
        fputs("</div>", out);
    }
    fputs("</dl>\n", out);
    element(out, "p", "To do it again, in the same folder:");
    element(out, "pre class=\"command\"", lab->command);
    fputs("</section>\n", out);
}

static const char *const verdict_signs[LAB_N_VERDICTS] = {[LAB_FAIL] = "✗", [LAB_PASS] = "✓", [LAB_UNDECIDED] = "?"};

static void verdict_span(FILE *out, lab_verdict verdict, const char *words) {
    fprintf(out, "<span class=\"%s\">%s ", lab_verdict_names[verdict], verdict_signs[verdict]);
    lab_html(out, mg_words(words));
    fputs("</span>", out);
}

static void write_checks(FILE *out, mg_lab *lab) {
    static const char *const heads[] = {N_("Check"), N_("Expected"), N_("Observed"), N_("Verdict")};
    if (lab->checks.n == 0) return;
    fputs("<section class=\"verdicts\">\n<details open>\n<summary>", out);
    element(out, "h2", "Expected and observed");
    fputs("</summary>\n", out);
    element(out, "p", lab_words(lab, lab_verdicts_in_words(lab)));
    fputs("<div class=\"scroll\"><table class=\"checks\">\n<thead><tr>", out);
    for (int i = 0; i < 4; i++) table_cell(out, "th", heads[i], NULL);
    fputs("</tr></thead>\n<tbody>\n", out);
    for (int i = 0; i < lab->checks.n; i++) {
        const lab_check *c = lab->checks.item[i];
        fputs("<tr>", out);
        table_cell(out, "td", c->name, NULL);
        table_cell(out, "td", c->expected, c->verdict == LAB_UNDECIDED ? "undecided" : "expected");
        table_cell(out, "td", c->observed, "observed");
        fputs("<td>", out);
        verdict_span(out, c->verdict, lab_verdict_names[c->verdict]);
        fputs("</td></tr>\n", out);
    }
    fputs("</tbody>\n</table></div>\n</details>\n</section>\n", out);
}

static void write_picture(FILE *out, mg_lab *lab, const lab_block *block, const char *name, const char *title,
                          const char *caption, const char *in_words, int width) {
    fprintf(out, "<section id=\"%s\">\n", name);
    prose(out, "h2", title);
    fputs("<figure>\n", out);
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.svg", lab->settings.out_dir, name);
    size_t size = 0;
    /* As an image of its own its identifiers cannot meet those of another picture. */
    const char *svg = lab->pictures ? lab_read_file(lab, path, &size) : NULL;
    if (svg && size > 0) {
        /* On a phone a picture rather scrolls than shrinks until its text cannot be read. */
        fprintf(out, "<div class=\"paper\"><img style=\"min-width: %dpx; max-width: %dpx\" alt=\"",
                width > 700 ? width * 7 / 10 : width * 11 / 20, width * 2);
        lab_html(out, in_words);
        fputs("\" src=\"data:image/svg+xml;base64,", out);
        write_base64(out, svg, size);
        fputs("\"></div>\n", out);
    } else {
        element(out, "p class=\"missing\"",
                lab_words(lab, lab_format(lab,
                                          "This picture is drawn by gnuplot, which was not there or failed. Its "
                                          "numbers are in %s.csv.",
                                          name)));
    }
    lab_write_block_numbers(out, block);
    prose(out, "figcaption", caption);
    fputs("</figure>\n</section>\n", out);
}

/* The caption, and what the cells mean that are not on the color bar. */
static const char *heat_caption(mg_lab *lab, const lab_heatmap *map) {
    const char *text = lab_format(
        lab, "%s%s%s%s", map->caption, lab_heat_has(map, LAB_CELL_ZERO) ? " White: exactly 0." : "",
        lab_heat_has(map, LAB_CELL_ABSENT) ? " Gray dot: does not exist." : "",
        lab_heat_has(map, LAB_CELL_ALARM) ? " Red: should not be there, or is not a number." : "");
    return lab_words(lab, text);
}

static void write_table(FILE *out, const lab_table *table) {
    fputs("<section>\n", out);
    prose(out, "h2", table->title);
    fputs("<figure>\n<div class=\"scroll\"><table>\n", out);
    for (int r = 0; r < table->rows.n; r++) {
        const char *const *cells = table->rows.item[r];
        fputs(r == 0 ? "<thead><tr>" : "<tr>", out);
        for (int c = 0; c < table->n_columns; c++) {
            bool number = lab_column_is_numbers(table, c);
            const char *head = number ? "th class=\"number\"" : "th", *cell = number ? "td class=\"number\"" : "td";
            prose(out, r == 0 ? head : cell, cells[c]);
        }
        fputs(r == 0 ? "</tr></thead>\n<tbody>\n" : "</tr>\n", out);
    }
    fputs("</tbody>\n</table></div>\n", out);
    prose(out, "figcaption", table->caption);
    fputs("</figure>\n</section>\n", out);
}

static void write_texts(FILE *out, const lab_text_group *group) {
    fputs("<section>\n", out);
    prose(out, "h2", group->title);
    fputs("<div class=\"texts\">\n", out);
    for (int i = 0; i < group->n; i++) {
        fputs("<div>\n", out);
        prose(out, "h3", group->headings[i]);
        element(out, "pre", group->texts[i]);
        fputs("</div>\n", out);
    }
    fputs("</div>\n</section>\n", out);
}

static void write_block(FILE *out, mg_lab *lab, const lab_block *b) {
    switch (b->kind) {
    case LAB_BLOCK_NOTE: prose(out, "p class=\"note\"", b->note); break;
    case LAB_BLOCK_FIGURE:
        write_picture(out, lab, b, b->figure->name, b->figure->title, b->figure->caption,
                      lab_figure_in_words(b->figure), lab_figure_canvas(b->figure).width);
        break;
    case LAB_BLOCK_HEATMAP:
        write_picture(out, lab, b, b->heatmap->name, b->heatmap->title, heat_caption(lab, b->heatmap),
                      lab_heat_in_words(b->heatmap), lab_heat_canvas(b->heatmap).width);
        break;
    case LAB_BLOCK_TABLE: write_table(out, b->table); break;
    case LAB_BLOCK_TEXTS: write_texts(out, b->texts); break;
    }
}

/* Where this report is one of several: the index, and the reports around it. */
static void write_neighbors(FILE *out, const mg_lab *lab) {
    const lab_row *const *around = lab->settings.around;
    static const char *const relations[] = {"prev", "next"}, *const signs[] = {"← ", "→ "};
    if (!lab->settings.indexed) return;
    fputs("<nav class=\"around\">\n<a rel=\"up\" href=\"../index.html\">all labs</a>\n", out);
    for (int i = 0; i < 2; i++)
        if (around[i])
            fprintf(out, "<a rel=\"%s\" href=\"../lab-%s/report.html\">%s%s</a>\n", relations[i], around[i]->name,
                    signs[i], around[i]->name);
    fputs("</nav>\n", out);
}

mg_status lab_write_report(mg_lab *lab, mg_error *error) {
    mg_atomic_text file;
    mg_status status = lab_create(lab, "report", "html", &file, error);
    if (status != MG_OK) return status;
    FILE *out = file.out;
    lab_verdict verdict = lab_verdict_of(lab);
    /* A page of another command has no lab to run. */
    const char *name = lab_format(lab, "maskgrad %s%s", lab->row->run ? "lab " : "", lab->row->name);
    begin_page(out, name);
    fputs("<header>\n", out);
    write_neighbors(out, lab);
    element(out, "p class=\"over\"", name);
    prose(out, "h1", lab->row->question);
    if (lab->checks.n > 0) {
        fputs("<p class=\"sum\">", out);
        verdict_span(out, verdict, lab_words(lab, lab_verdicts_in_words(lab)));
        fputs("</p>\n", out);
    }
    fputs("</header>\n", out);
    if (lab->stopped)
        element(out, "p class=\"note\"", "This lab was interrupted: what it had measured until then is below.");
    write_list(out, "Hypotheses", "hypotheses", "ol", &lab->hypotheses);
    write_answers(out, lab);
    for (int i = 0; i < lab->blocks.n; i++) write_block(out, lab, lab->blocks.item[i]);
    write_checks(out, lab);
    write_list(out, lab->exercises.n == 1 ? "Exercise" : "Exercises", "exercises", "ol", &lab->exercises);
    write_done(out, lab);
    write_list(out, "Sources", "sources", "ul", &lab->sources);
    lab_write_words(out);
    fprintf(out, "<script>\n%s</script>\n", (const char *)maskgrad_report_js);
    end_page(out);
    return mg_atomic_text_end(&file, error);
}

#define TITLE_BEGINS "maskgrad: " /* in every language */
#define INDEX_TITLE N_("maskgrad: the labs")

mg_status lab_check_index(const char *out_dir, mg_error *error) {
    char path[4096], text[1024] = "";
    snprintf(path, sizeof path, "%s/index.html", out_dir);
    if (access(path, F_OK) != 0) return MG_OK;
    int file;
    size_t bytes;
    mg_status status = mg_open_regular(path, &file, &bytes, error);
    if (status != MG_OK) return status;
    ssize_t n = read(file, text, sizeof text - 1);
    close(file);
    if (n > 0 && strstr(text, "<title>" TITLE_BEGINS)) return MG_OK;
    return mg_error_set(error, MG_ERR_INPUT, "%s is there and is not the index of labs: choose another --out-dir",
                        path);
}

mg_status lab_write_index(const char *out_dir, bool quick, const lab_outcome *outcomes, int n, mg_error *error) {
    mg_lab folder = {.settings.out_dir = out_dir};
    mg_atomic_text file;
    mg_status status = lab_create(&folder, "index", "html", &file, error);
    if (status != MG_OK) return status;
    FILE *out = file.out;
    begin_page(out, INDEX_TITLE);
    fputs("<p class=\"over\">maskgrad</p>\n", out);
    element(out, "h1", "The labs");
    prose(out, "p", quick ? "In the order of the course. They ran with `--quick`: the answers are rougher."
                          : "In the order of the course.");
    fputs("<ul class=\"labs\">\n", out);
    for (int i = 0; i < n; i++) {
        fputs("<li>", out);
        const lab_outcome *o = &outcomes[i];
        if (o->reported) fprintf(out, "<a href=\"lab-%s/report.html\">", o->row->name);
        element(out, "strong", o->row->name);
        prose(out, "span class=\"question\"", o->row->question);
        if (o->reported) fputs("</a>", out);
        verdict_span(out, o->verdict,
                     o->stopped                    ? "interrupted"
                     : !o->reported                ? "did not finish"
                     : o->verdict == LAB_PASS      ? "every check passes"
                     : o->verdict == LAB_UNDECIDED ? "a check is undecided"
                                                   : "a check fails");
        fputs("</li>\n", out);
    }
    fputs("</ul>\n", out);
    end_page(out);
    return mg_atomic_text_end(&file, error);
}
