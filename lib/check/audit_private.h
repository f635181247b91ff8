/* What the probes share: the state of an audit. */
#ifndef MASKGRAD_AUDIT_PRIVATE_H
#define MASKGRAD_AUDIT_PRIVATE_H

#include "arena.h"
#include "audit.h"
#include "rng.h"

enum {
    AUDIT_COLUMNS = 64,        /* logits per position that are looked at, and tokens that sequences are made of, */
    AUDIT_SMALL = 256,         /* unless the vocabulary is this small: then all of it */
    AUDIT_NOISE_MULTIPLE = 10, /* what is less than this many times the noise does not count */
    AUDIT_CONTROLS = 4,        /* rows of the control beyond `full` */
    AUDIT_FAR_TOKENS = 2048    /* in one call beyond `full`, or two rows */
};

typedef struct audit {
    const mg_audit_model *model;
    mg_audit_options options; /* with the defaults filled in */
    mg_audit *result;
    mg_arena *arena;
    mg_error *error;
    mg_status broken;                  /* the status that ended the audit */
    mg_audit_probe at;                 /* the current probe */
    int T, full, rows, sequences;      /* as in the result; rows and sequences become 1 when rows see each other */
    int n_columns, n_letters;          /* columns and letters are the same ids, but for those of the user's sequence */
    const int *columns, *letters;      /* columns is NULL where all of the vocabulary is asked for */
    double scale;                      /* the largest logit of the first answer */
    double noise;                      /* of the path that is being looked at */
    double ignored;                    /* changes up to this are, while something larger is searched for */
    bool leaks;                        /* while calls are counted: with the search for what leaks */
    bool one_value;                    /* per token is tried, since rows see each other */
    bool tried, measured, confirmed;   /* the map was asked for; it is there; its leak was seen twice */
    int leak_query, leak_key;          /* the first leak; -1: none */
    bool leak_is_large;                /* more than rounding */
    bool leak_is_far;                  /* it is beyond `full`, and not in the map */
    int *moved_by;                     /* (full, full): how many values of token j move prediction i; one sequence */
    int silent, n_silent, n_listening; /* positions that no earlier token moves: the first, how many, of how many */
} audit;

/* ---- Asking (audit_ask.c) ----
 *
 * Each returns false when the probe has to end: its verdict is then set. */

bool mg_audit_logits(audit *a, const mg_audit_batch *batch, double *logits);
bool mg_audit_step(audit *a, const int *ids, int n, bool reset, double *logits);
bool mg_audit_loss(audit *a, const int *ids, int length, double *loss);
/* May the model refuse? Then a refusal sets *refused and is no verdict. */
bool mg_audit_step_or_refusal(audit *a, const int *ids, int n, double *logits, bool *refused);
/* A batch of this audit's columns. */
mg_audit_batch mg_audit_probe_batch(const audit *a, int rows, int length, const int *ids);

/* ---- Sequences ---- */

/* The n-th sequence: random letters, or the user's ids for `AUDIT_USERS` cut to the length. */
enum { AUDIT_USERS = -1 };
int *mg_audit_sequence(audit *a, int which, int length);
/* Another letter at every position. */
int *mg_audit_others(audit *a, const int *ids, int length);
int *mg_audit_ints(audit *a, int64_t n);
double *mg_audit_doubles(audit *a, int64_t n);

/* ---- Comparing ---- */

/* The largest difference of two arrays; infinity where one of two values is infinite. */
double mg_audit_difference(int64_t n, const double *x, const double *y);
/* The same, if it counts within one shape: any at all, or with noise what exceeds its multiple. Else 0. */
double mg_audit_change(const audit *a, int64_t n, const double *x, const double *y);
double mg_audit_scale(int64_t n, const double *logits); /* the largest finite one */
double mg_audit_rounding(const audit *a);               /* of one logit, in the dtype */
double mg_audit_largest_rounding(const audit *a);
/* Whether a change is no larger than what adding in another order leaves. */
bool mg_audit_is_rounding(const audit *a, double change);
/* The most that two shapes may differ: the dtype's tolerance of the largest finite logit, or the noise's multiple. */
double mg_audit_limit(const audit *a, int64_t n, const double *logits);
/* The first of `length` positions whose logits differ by more than `limit`; -1: none. *largest is raised to what is
 * seen anywhere. */
int mg_audit_first_apart(const audit *a, int length, const double *x, const double *y, double limit, double *largest);

/* ---- Who moves whom (audit_moves.c) ---- */

/* What replacing tokens from `cut` on showed: the earliest prediction before it that moved, with the smallest cut. Of
 * changes larger than rounding, if there are any: an FFT moves everything by less. */
typedef struct audit_leak {
    int query, cut; /* −1: none */
    int *ids, *row; /* the sequence, and the one that moved it */
    double largest; /* change of any prediction before its cut */
    double rounding;
    bool is_large;
} audit_leak;

audit_leak mg_audit_no_leak(audit *a, int length);
/* moved (length): what replacing `ids` by `row`, which differs from `cut` on, does to each position. */
void mg_audit_see_cut(audit_leak *seen, int length, int cut, const int *ids, const int *row, const double *moved);

/* Whether one is to be reported and not the other: the earlier prediction of those that move by more than rounding. */
bool mg_audit_leaks_before(const audit_leak *one, const audit_leak *other);

/* moved (n, length): what replacing `ids` by row r of `rows` (n, length) does to each position. `like` says the path.
 */
bool mg_audit_moves(audit *a, const mg_audit_batch *like, const int *ids, int n, const int *rows, double *moved);
long mg_audit_moves_calls(int n, int rows);
/* `ids`, with `others` on [from, to). */
void mg_audit_splice(int length, const int *ids, const int *others, int from, int to, int *row);
/* Of the tokens whose replacement together is the leak: the one that does it. */
bool mg_audit_find_key(audit *a, const mg_audit_batch *like, const audit_leak *leak, int *key);
long mg_audit_find_key_calls(int length, int rows);

/* (AUDIT_CONTROLS, length): row r keeps every AUDIT_CONTROLS-th token, from r on, and replaces the others: what is kept
 * and moves anyway is moved by another position. */
void mg_audit_control_rows(int length, const int *ids, const int *others, int *rows);
/* A leak that is not there when it is looked for again, is there when nothing changes, or whose token `key` comes no
 * later than its query, is no leak but noise. */
bool mg_audit_confirm(audit *a, const mg_audit_batch *like, const audit_leak *leak, int key, bool *confirmed);

/* ---- Every single token (audit_mask.c), and other values of it (audit_values.c) ---- */

/* `row` differs in token j only: into the map and, if `counts`, into moved_by. */
void mg_audit_see_token(audit *a, int j, const int *ids, const int *row, const double *moved, bool counts,
                        audit_leak *seen);
/* Each token by other values than `others` has: all, or as many as the plan allows. */
bool mg_audit_see_values(audit *a, const mg_audit_batch *like, const int *ids, const int *others, audit_leak *seen);
long mg_audit_values_calls(const audit *a);
/* How many of the other values of a token are tried, with that of `others`. */
int mg_audit_values_tried(const audit *a);

/* ---- Beyond `full` (audit_far.c) ---- */

typedef struct audit_far {
    int query, key; /* the first leak; −1: none */
    bool confirmed;
    double largest;                      /* change of a prediction by what comes later */
    mg_influence influence;              /* its reach and pattern, as far as was looked */
    int first_silent, silent, listening; /* positions that no earlier token moves: the first, how many, of how many */
    int64_t looked_at;                   /* pairs */
} audit_far;

/* A sample of cuts of `ids`, of a->T tokens, by the way of `path`; if they leak and it is wanted, also where, how far
 * and how regularly. */
bool mg_audit_far(audit *a, const mg_audit_batch *path, int *ids, bool wants_leak, audit_far *seen);
/* With and without the search for what leaks. */
long mg_audit_far_calls(const audit *a, int rows_at_most, bool leaks);

/* ---- Verdicts ---- */

mg_audit_finding *mg_audit_probe_finding(audit *a);
void mg_audit_say(audit *a, mg_audit_verdict verdict, const char *format, ...) MG_PRINTF(3, 4);
void mg_audit_add(audit *a, const char *format, ...) MG_PRINTF(2, 3); /* to the evidence */
void mg_audit_look(audit *a, const char *text);
void mg_audit_pair(audit *a, int query, int key, double largest);
/* If a change is no larger than rounding, what convicted the model leaves it undecided, with what to do. */
void mg_audit_doubt_rounding(audit *a, double change);

/* ---- The probes ----
 *
 * Each sets the verdict of a->at. Its …_calls is the most calls that it makes with this many rows per call. */

void mg_audit_repeat(audit *a);
long mg_audit_repeat_calls(const audit *a);
void mg_audit_rows(audit *a);
long mg_audit_rows_calls(const audit *a);
void mg_audit_mask(audit *a);
/* The mask in training mode, after it passed in evaluation mode: adds to its verdict. One row per call. */
void mg_audit_training(audit *a);
long mg_audit_training_calls(const audit *a); /* 0 if the model offers no training mode */
int64_t mg_audit_training_tokens(const audit *a);
void mg_audit_control(audit *a);
long mg_audit_mask_calls(const audit *a); /* and of the control: whichever is first measures for both */
void mg_audit_prefix(audit *a);
long mg_audit_prefix_calls(const audit *a);
void mg_audit_padding(audit *a);
long mg_audit_padding_calls(const audit *a);
void mg_audit_cache(audit *a);
long mg_audit_cache_calls(const audit *a);
void mg_audit_shift(audit *a);
long mg_audit_shift_calls(const audit *a);
void mg_audit_segments(audit *a);
long mg_audit_segments_calls(const audit *a);

#endif
