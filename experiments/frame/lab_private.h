/* What the frame's own files share: a lab as it is collected, before it is shown. A lab needs it only for lab_format
 * and the arena. */
#ifndef MASKGRAD_LAB_PRIVATE_H
#define MASKGRAD_LAB_PRIVATE_H

#include "arena.h"
#include "atomic_file.h"
#include "lab_row.h"

#include <stdio.h>

/* ---- What was collected (lab.c, checks.c, figures.c) ---- */

typedef struct lab_list {
    void **item;
    int n, capacity;
} lab_list;

typedef struct lab_pair {
    const char *name, *text;
} lab_pair;

typedef struct lab_question {
    const char *key, *unit, *text;
    double guess, answer; /* NaN: none */
    bool answered;
} lab_question;

typedef enum lab_verdict { LAB_FAIL, LAB_PASS, LAB_UNDECIDED, LAB_N_VERDICTS } lab_verdict;

typedef struct lab_check {
    const char *name, *expected, *observed; /* expected: of an undecided check, why it is */
    lab_verdict verdict;
} lab_check;

typedef enum lab_shape {
    LAB_SHAPE_LINE,
    LAB_SHAPE_THIN,   /* has no label, and no entry in the legend */
    LAB_SHAPE_BAND,   /* a line, and what is around it by its spread */
    LAB_SHAPE_ERRORS, /* points joined by a line, with a bar of their spread each */
    LAB_SHAPE_POINTS,
    LAB_SHAPE_BARS,
    LAB_SHAPE_FIT,
    LAB_SHAPE_LEVEL
} lab_shape;

typedef struct lab_series {
    lab_shape shape;
    lab_color color;
    const char *label;
    int n;
    const double *x, *y;
    const char *const *names; /* of points, or NULL */
    const double *spread;     /* of a band or errors: y - spread to y + spread; or NULL */
} lab_series;

struct lab_figure {
    mg_lab *lab;
    const char *name, *title, *caption;
    lab_axes axes;
    lab_list series;
    lab_list verticals; /* lab_series with one x */
    int n_places;       /* bars: the names under them */
    const char *const *places;
};

struct lab_heatmap {
    mg_lab *lab;
    const char *name, *title, *caption;
    lab_scale scale;
    lab_list panels; /* lab_panel */
};

struct lab_table {
    mg_lab *lab;
    const char *name, *title, *caption;
    int n_columns;
    lab_list rows; /* const char ** of n_columns cells; the first is the header */
};

typedef struct lab_text_group {
    const char *title;
    int n;
    const char *const *headings, *const *texts;
} lab_text_group;

/* What is in the report below the checks, in the order of the calls. */
typedef struct lab_block {
    enum { LAB_BLOCK_NOTE, LAB_BLOCK_FIGURE, LAB_BLOCK_HEATMAP, LAB_BLOCK_TABLE, LAB_BLOCK_TEXTS } kind;
    union {
        const char *note;
        lab_figure *figure;
        lab_heatmap *heatmap;
        lab_table *table;
        lab_text_group *texts;
    };
} lab_block;

/* The texts that lab_format made, by their place, where they read otherwise in the user's language. */
typedef struct lab_translations {
    struct lab_translation {
        const char *text, *words;
    } * at; /* a hash table, at most half full */
    size_t n, capacity;
} lab_translations;

struct mg_lab {
    mg_arena *arena;
    const lab_row *row;
    lab_settings settings;
    const char *command; /* what to type to repeat it */
    lab_list hypotheses, questions, did, settings_used, exercises, sources, checks, blocks;
    bool begun;       /* its hypotheses were printed, and guesses asked for */
    bool stopped;     /* the user interrupted it: what follows was not measured */
    bool pictures;    /* gnuplot drew them */
    struct lab_part { /* of the work, whose progress is shown */
        const char *what;
        long first, tenth; /* done when it was first told; the tenth that was told last */
        double begun;      /* when that was: mg_seconds */
    } part;
    lab_translations translations;
};

mg_lab *lab_new(const lab_row *row, mg_error *error);
void lab_free(mg_lab *lab);
int lab_count_of(const mg_lab *lab, lab_verdict verdict);
/* Of all checks: fail if one fails, else undecided if one is. */
lab_verdict lab_verdict_of(const mg_lab *lab);
extern const char *const lab_verdict_names[LAB_N_VERDICTS]; /* "fail", "pass", "undecided" */
/* "12 of 14 checks pass, 1 fails, 1 is undecided". */
const char *lab_verdicts_in_words(mg_lab *lab);
void lab_list_add(mg_lab *lab, lab_list *list, void *item);
void lab_add_block(mg_lab *lab, lab_block block);
char *lab_format(mg_lab *lab, const char *format, ...) MG_PRINTF(2, 3);
char *lab_vformat(mg_lab *lab, const char *format, va_list arguments) MG_PRINTF(2, 0);

/* translate.c: what lab_format made, and the program's own constants, in the user's language. */
const char *lab_words(const mg_lab *lab, const char *text);
/* The text that lab_vformat makes, in the user's language. */
char *lab_vwords(mg_lab *lab, const char *format, va_list arguments) MG_PRINTF(2, 0);
/* `text` reads `words` there. */
void lab_remember(mg_lab *lab, const char *text, const char *words);
/* All that was collected, once the numbers are written. */
void lab_translate(mg_lab *lab);
/* A name that may be a file's: anything but a-z, 0-9 and '-' is the lab's bug. */
const char *lab_file_name(mg_lab *lab, const char *name);

/* questions.c */
/* Fails if a lab measures before lab_begin. What is no lab, as a page of `compare`, has nothing to begin. */
void lab_must_have_begun(const mg_lab *lab, const char *what);
void lab_must_have_answered(const mg_lab *lab);
bool lab_was_guessed(const mg_lab *lab); /* at least one question */
/* "0.0431 nats"; "not measured", or "–" where there is no guess. */
const char *lab_answer_text(mg_lab *lab, const lab_question *question);
const char *lab_guess_text(mg_lab *lab, const lab_question *question);

/* ---- What follows from it (figures.c, heat.c) ---- */

typedef struct lab_span {
    double low, high;
} lab_span;
/* The values an axis must show: never empty, positive if `log`. */
lab_span lab_span_x(const lab_figure *figure);
lab_span lab_span_y(const lab_figure *figure);
/* A part more on both sides, so that no curve runs along the frame. */
lab_span lab_with_room(lab_span span, bool log, double part);
bool lab_can_show(const lab_figure *figure, double x, double y);
/* 0 … 1 along a span, by its logarithm if `log`. */
double lab_along(lab_span span, bool log, double value);

/* A series in the legend: a floor with its value. */
const char *lab_legend(const lab_figure *figure, int k);
bool lab_is_shown(const lab_figure *figure, int k); /* any of its points */

/* ticks.c: up to `most` values to mark along a span, at least its two ends. */
int lab_ticks(lab_span span, bool log, int most, double *at);
const char *lab_tick_number(mg_lab *lab, double value);
int lab_own_places(const lab_figure *figure, int most, double *at); /* 0: there are more */

/* dashes.c: gnuplot's dash type of a series; which floor of the picture it is, from 0. */
const char *lab_dash(const lab_figure *figure, int k);
int lab_floor_index(const lab_figure *figure, int k);

typedef enum lab_cell {
    LAB_CELL_VALUE,
    LAB_CELL_ZERO,   /* exactly 0 on a logarithmic scale */
    LAB_CELL_ABSENT, /* forbidden: it does not exist */
    LAB_CELL_ALARM   /* NaN, or forbidden and yet there */
} lab_cell;
lab_cell lab_cell_kind(const lab_heatmap *map, const lab_panel *panel, int row, int column);
lab_span lab_heat_span(const lab_heatmap *map);
bool lab_heat_has(const lab_heatmap *map, lab_cell kind);
/* Whether every cell of it below the header is a number: it aligns right. */
bool lab_column_is_numbers(const lab_table *table, int column);
/* A row's or column's token made visible: a space is an open box, a line end \n, an empty one a dash. */
const char *lab_tick(mg_lab *lab, const char *const *labels, int i);

/* ---- Colors (palette.c) ---- */

unsigned lab_rgb(lab_color color);   /* 0xRRGGBB */
unsigned lab_heat_rgb(double along); /* viridis, 0 … 1 */
bool lab_is_dark(unsigned rgb);      /* white text is readable on it */

/* ---- Where it goes ---- */

/* files.c */
/* NAME.ENDING in the lab's folder. */
mg_status lab_create(const mg_lab *lab, const char *name, const char *ending, mg_atomic_text *file, mg_error *error);
mg_status lab_write_numbers(const mg_lab *lab, mg_error *error);  /* summary.csv and a CSV for each picture and table */
char *lab_read_file(mg_lab *lab, const char *path, size_t *size); /* NULL if it cannot be read */

/* plot.c: the pictures, by gnuplot. Sets lab->pictures; without gnuplot, one warning and MG_OK. */
mg_status lab_draw_pictures(mg_lab *lab, mg_error *error);
/* plot_text.c, plot_layout.c, plot_heat.c */
void lab_plot_quoted(FILE *pipe, const char *text);
typedef struct lab_canvas {
    int width, height; /* logical pixels: of the SVG; the PNG has twice as many */
} lab_canvas;
lab_canvas lab_figure_canvas(const lab_figure *figure);
lab_canvas lab_heat_canvas(const lab_heatmap *map);
void lab_heat_data(FILE *pipe, const lab_heatmap *map);
void lab_heat_plot(FILE *pipe, const lab_heatmap *map, bool png);

/* report.c */
mg_status lab_write_report(mg_lab *lab, mg_error *error);
void lab_html(FILE *out, const char *text); /* escaped */
void lab_html_part(FILE *out, const char *text, size_t n);
/* typeset.c */
void lab_typeset(FILE *out, const char *text); /* escaped, and prose: d_k gets a subscript, `x` is code */
/* How one lab of several ended. */
typedef struct lab_outcome {
    const lab_row *row;
    lab_verdict verdict;
    bool stopped, reported; /* interrupted; wrote its report */
    int exit_status;
} lab_outcome;
mg_status lab_check_index(const char *out_dir, mg_error *error); /* refuses one of somebody else */
mg_status lab_write_index(const char *out_dir, bool quick, const lab_outcome *outcomes, int n, mg_error *error);
/* report.css and report.js, as strings */
extern const unsigned char maskgrad_report_css[], maskgrad_report_js[];
/* report_numbers.c: a figure's or a heat map's numbers, in a script element that report.js reads; nothing if it has too
 * many. */
void lab_write_block_numbers(FILE *out, const lab_block *block);
/* report_words.c */
void lab_write_words(FILE *out);                                     /* what report.js says */
const char *lab_figure_in_words(const lab_figure *figure);           /* what the picture shows */
const char *lab_heat_in_words(const lab_heatmap *map);

/* terminal.c, terminal_pictures.c: as wide as settings.terminal says */
static inline int lab_columns(const mg_lab *lab) {
    return lab->settings.terminal.columns;
}
void lab_print_head(mg_lab *lab); /* what is known before the work: question, hypotheses, what to guess */
void lab_print_heading(mg_lab *lab, const char *text);
void lab_print_results(mg_lab *lab);
/* Text as the terminal can show it: control characters become '?'; without UTF-8, mathematical signs become ASCII and
 * the rest '?'. The second puts it on one line. */
const char *lab_shown(mg_lab *lab, const char *text);
const char *lab_shown_line(mg_lab *lab, const char *text);
void lab_print_wrapped(mg_lab *lab, const char *first_indent, const char *indent, const char *text);
/* `width` columns, cut if it is longer. */
const char *lab_padded(mg_lab *lab, const char *text, int width, bool right);
void lab_print_line(const char *text); /* without the blanks at its end */
void lab_print_figure(mg_lab *lab, const lab_figure *figure);
void lab_print_heatmap(mg_lab *lab, const lab_heatmap *map);

#endif
