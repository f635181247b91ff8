/* What a lab is written with. A lab's file reads as question, hypotheses, what is done, checks, pictures:
 *
 *     mg_status lab_mask(mg_lab *lab, mg_error *error) {
 *         lab_hypothesis(lab, "Only -inf removes a key; every finite value can be beaten.");
 *         lab_guess(lab, "zero", "%", "Masked with 0, how much of the weight do three future keys of six keep?");
 *         lab_setting(lab, "scores", "%d x %d, float32", n, n);
 *         mg_status status = lab_begin(lab, error);
 *         if (status) return status;
 *         ...
 *         lab_answer(lab, "zero", 100 * kept);
 *         lab_check_zero(lab, "mass on forbidden keys", leaked);
 *         lab_figure *f = lab_figure_begin(lab, "leak", "Mass on the future", (lab_axes){.x = "row", .y = "mass"});
 *         lab_line(f, LAB_MASKED, "masked", n, NULL, mass);
 *         lab_figure_end(f, "With -inf the line must lie on 0.");
 *         return MG_OK;
 *     }
 *
 * The frame turns it into the terminal's pages, summary.csv, one CSV, PNG and SVG per picture, and report.html. Texts
 * are printf formats in UTF-8, copied, and need no escaping; names of pictures, tables and texts become file names and
 * are made of a-z, 0-9 and '-'. Memory that runs out goes to the failure handler. */
#ifndef MASKGRAD_LAB_H
#define MASKGRAD_LAB_H

#include "evaluation.h"

#include <math.h>

typedef struct mg_lab mg_lab;

/* ---- What the user asked for ---- */

enum { LAB_COLUMNS = 80 }; /* where no terminal is, and the most that a text is wide */

/* What the terminal can show; the command knows. */
typedef struct lab_terminal {
    int columns;          /* of stdout: what every text, table and picture fits into */
    int progress_columns; /* of stderr */
    bool live;            /* stderr is a terminal: a line there can renew itself */
    bool color, utf8;     /* of stdout */
} lab_terminal;

typedef struct lab_settings {
    const char *out_dir;     /* exists while the lab runs: a lab may put checkpoints there */
    uint64_t seed;           /* 1337 unless told */
    bool quick;              /* a rougher answer in a few seconds */
    const char *data;        /* NULL, or a file: its name decides the source */
    const char *checkpoint;  /* NULL, or a file */
    const char *prompt;      /* NULL, or text */
    const char *data_folder; /* where the shipped grammars are */
    bool indexed;            /* one of all labs, in lab-NAME beside the others: its report links to theirs */
    const struct lab_row *around[2]; /* the lab before and after this one; NULL: none */
    lab_terminal terminal;
    /* The next line that the user types, without its line end; false at the end of input. NULL: nobody is asked. */
    bool (*read_line)(char *line, size_t room);
    mg_stop stop; /* .asked NULL: never */
    void *own;    /* the lab's own options, lab_options of lab_row.h */
} lab_settings;

const lab_settings *lab_asked(const mg_lab *lab);
/* What to hand to work that can stop early (evaluation.h); NULL: it never has to. */
const mg_stop *lab_stop(const mg_lab *lab);
/* MG_ERR_STOPPED once the user has asked to stop. Ask it between two pieces of work and return it: the frame writes
 * what the lab has collected until then, marked as incomplete. */
mg_status lab_interrupted(const mg_lab *lab, mg_error *error);

/* ---- Before the work ----
 *
 * Hypotheses first, then the work: a lab checks what it was given, declares its hypotheses and what the reader may
 * guess, and calls lab_begin. The frame prints all of it, and with --pause waits for the guesses. Only then may the lab
 * measure: a check, a picture, a table or progress before lab_begin is a bug, and so is a hypothesis after it. */

void lab_hypothesis(mg_lab *lab, const char *format, ...) MG_PRINTF(2, 3);
/* A question whose answer is a number that this lab measures: "What will the unmasked loss be?". `key` is the lab's own
 * name for it; `unit` may be "". Its answer never depends on the guess, and no verdict depends on either. */
void lab_guess(mg_lab *lab, const char *key, const char *unit, const char *format, ...) MG_PRINTF(4, 5);
/* Once; another call does nothing. MG_ERR_STOPPED if the user interrupts it. */
mg_status lab_begin(mg_lab *lab, mg_error *error);

/* ---- The story ---- */

/* What was measured: each guess gets its answer before the lab ends. */
void lab_answer(mg_lab *lab, const char *key, double measured);
/* A sentence of what was done, and a setting it was done with. */
void lab_did(mg_lab *lab, const char *format, ...) MG_PRINTF(2, 3);
void lab_setting(mg_lab *lab, const char *name, const char *format, ...) MG_PRINTF(3, 4);
/* A paragraph between the pictures, in the order of the calls. */
void lab_note(mg_lab *lab, const char *format, ...) MG_PRINTF(2, 3);
void lab_exercise(mg_lab *lab, const char *format, ...) MG_PRINTF(2, 3);
void lab_source(mg_lab *lab, const char *format, ...) MG_PRINTF(2, 3);
/* How far a part of the work is: a live line on a terminal, with the time that is left of it, a plain line every tenth
 * elsewhere, on stderr. `format` may be "". */
void lab_progress(mg_lab *lab, const char *what, long done, long total, const char *format, ...) MG_PRINTF(5, 6);

/* ---- Checks ----
 *
 * A verdict is computed here, from what was measured. A NaN never passes: pass NAN for what could not be measured. The
 * texts of expected and observed are made from the same numbers, with as many digits as it takes for the verdict to be
 * right about the text as well. Each returns whether it passed. `unit` may be "". A pass needs a control: where nothing
 * could have been seen, the check is undecided. */

/* The larger and the smaller of two numbers, NaN if one of them is: fmax and fmin would drop it. */
static inline double lab_larger(double a, double b) {
    return isnan(a) || a > b ? a : b;
}
static inline double lab_smaller(double a, double b) {
    return isnan(a) || a < b ? a : b;
}
/* Of n >= 1 numbers. */
static inline double lab_largest(int n, const double *x) {
    double most = x[0];
    for (int i = 1; i < n; i++) most = lab_larger(most, x[i]);
    return most;
}
static inline double lab_smallest(int n, const double *x) {
    double least = x[0];
    for (int i = 1; i < n; i++) least = lab_smaller(least, x[i]);
    return least;
}

bool lab_check_zero(mg_lab *lab, const char *name, double observed, const char *unit); /* exactly 0 */
bool lab_check_below(mg_lab *lab, const char *name, double observed, double limit, const char *unit);
bool lab_check_at_most(mg_lab *lab, const char *name, double observed, double limit, const char *unit);
bool lab_check_above(mg_lab *lab, const char *name, double observed, double limit, const char *unit);
bool lab_check_at_least(mg_lab *lab, const char *name, double observed, double limit, const char *unit);
bool lab_check_near(mg_lab *lab, const char *name, double observed, double expected, double tolerance,
                    const char *unit);
bool lab_check_between(mg_lab *lab, const char *name, double observed, double low, double high, const char *unit);
bool lab_check_count(mg_lab *lab, const char *name, long observed, long expected, const char *unit);
/* Texts are compared byte by byte; long ones are shown by their beginning. NULL is a text that was not produced. */
bool lab_check_same_text(mg_lab *lab, const char *name, const char *observed, const char *expected);
/* A check that this data or this model cannot decide, whatever was observed: the text says why. */
void lab_undecided(mg_lab *lab, const char *name, double observed, const char *unit, const char *format, ...)
    MG_PRINTF(5, 6);

/* ---- Pictures with axes ---- */

/* The colors mean the same in every picture (Okabe and Ito's, which survive color blindness). */
typedef enum lab_color {
    LAB_MASKED,   /* blue */
    LAB_UNMASKED, /* vermillion */
    LAB_FLOOR,    /* dark gray, and dashed */
    LAB_GREEN,
    LAB_PURPLE,
    LAB_SKY,
    LAB_AMBER,
    LAB_STEPS /* lab_step() starts here */
} lab_color;
/* Step i of n on one even scale from dark to light, for a family of curves. */
lab_color lab_step(int i, int n);

typedef struct lab_axes {
    const char *x, *y; /* what is on them, with the unit: "loss (nats)" */
    bool log_x, log_y;
    bool y_from_zero;
    double y_low, y_high; /* both 0: from the data */
} lab_axes;

typedef struct lab_figure lab_figure;
lab_figure *lab_figure_begin(mg_lab *lab, const char *name, const char *title, lab_axes axes);
/* n points; x NULL counts 0, 1, 2, …. Points that are not finite, or not positive on a log axis, leave a gap. */
void lab_line(lab_figure *figure, lab_color color, const char *label, int n, const double *x, const double *y);
/* The same with a band from y - spread to y + spread around it, or with bars of that height at its points. A spread
 * that is not finite is drawn as 0. */
void lab_band(lab_figure *figure, lab_color color, const char *label, int n, const double *x, const double *y,
              const double *spread);
void lab_errors(lab_figure *figure, lab_color color, const char *label, int n, const double *x, const double *y,
                const double *spread);
/* One of many, drawn under the series that follow: thin and pale, and not in the legend. */
void lab_thin_line(lab_figure *figure, lab_color color, int n, const double *x, const double *y);
void lab_points(lab_figure *figure, lab_color color, const char *label, int n, const double *x, const double *y);
/* Each point with its name beside it, where there is room. */
void lab_named_points(lab_figure *figure, lab_color color, const char *label, int n, const char *const *names,
                      const double *x, const double *y);
/* Bars over named places; several calls with the same names are drawn side by side. */
void lab_bars(lab_figure *figure, lab_color color, const char *label, int n, const char *const *names, const double *y);
/* The power law y = c·x^p that fits best on log-log axes, drawn and labeled with its exponent p, which is returned:
 * NaN when fewer than two points are positive and apart. */
double lab_fit_power(lab_figure *figure, lab_color color, const char *label, int n, const double *x, const double *y);
/* A labeled dashed line at a height that something must not cross, or at a place. The legend adds the height. */
void lab_floor(lab_figure *figure, const char *label, double y);
void lab_vertical(lab_figure *figure, const char *label, double x);
/* A floor that is another at each x; its mean is in the legend. */
void lab_floor_curve(lab_figure *figure, const char *label, int n, const double *x, const double *y);
/* What to look at: the sentence below the picture, which is also its text for those who cannot see it. It is printed
 * below any run's picture, on the terminal and in the report: it says what theory expects and where to look, not what
 * came out, which is a check's to say, and it names no color and no side of the page. */
void lab_figure_end(lab_figure *figure, const char *format, ...) MG_PRINTF(2, 3);

/* ---- Heat maps ---- */

typedef struct lab_scale {
    const char *unit;           /* beside the color bar: "weight", "nats" */
    double low, high;           /* both 0: from the values, and from 0 when none is negative */
    bool log;                   /* exact zeros keep a color of their own */
    bool numbers;               /* write the values into the cells, where they fit */
    const char *rows, *columns; /* what they are: "query", "key" */
} lab_scale;

typedef struct lab_panel {
    const char *title;
    int n_rows, n_columns;
    const mg_real *values;         /* (n_rows, n_columns) */
    const char *const *row_labels; /* tokens, or NULL for 0, 1, 2, … */
    const char *const *column_labels;
    /* Cells that this mask forbids do not exist and are drawn so, as is a value of -inf. A forbidden
     * cell whose value is neither 0 nor -inf, and any NaN, is drawn as an alarm. */
    bool masked;
    mg_mask mask;
} lab_panel;

typedef struct lab_heatmap lab_heatmap;
lab_heatmap *lab_heatmap_begin(mg_lab *lab, const char *name, const char *title, lab_scale scale);
void lab_heatmap_panel(lab_heatmap *map, lab_panel panel);
void lab_heatmap_end(lab_heatmap *map, const char *format, ...) MG_PRINTF(2, 3);

/* ---- Tables and texts ---- */

typedef struct lab_table lab_table;
/* `columns` and each row are cells separated by tabs; tabs inside a %s stay in their cell. Cells that are numbers align
 * right. Written to NAME.csv too. */
lab_table *lab_table_begin(mg_lab *lab, const char *name, const char *title, const char *columns);
void lab_table_row(lab_table *table, const char *format, ...) MG_PRINTF(2, 3);
void lab_table_end(lab_table *table, const char *format, ...) MG_PRINTF(2, 3);

/* n texts side by side, each under its heading, spaces and line ends kept: samples, or a triangle of 1 and 0. */
void lab_texts(mg_lab *lab, const char *title, int n, const char *const *headings, const char *const *texts);

/* ---- Memory ---- */

/* `block` is not NULL: a lab that runs out of memory ends as an operation that does, with a sentence and status 1. */
void lab_need_memory(const void *block, const char *what);

/* ---- For the frame's tests only ---- */

/* Whether the environment variable MASKGRAD_BREAK is `what`: a lab spoils its own work there, so that a test can see
 * the verdict turn to fail. */
bool lab_broken(const char *what);

#endif
