/* Lab mask: six ways to hide the future from a row of attention, and what each of them lets through.
 *
 * Everything is plain float32, one row at a time, as attention does it: score, mask, softmax. Which keys a row may see
 * is decided by mg_visible, as everywhere. */
#include "attention.h"
#include "lab_private.h"
#include "labs.h"
#include "mask_ways.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { N = 6 }; /* tokens */

const char *const lab_mask_names[N_WAYS] = {
    [MINUS_INFINITY] = "−∞ before the softmax",
    [ADD_1E9] = "−1e9 added",
    [ADD_1E4] = "−1e4 added",
    [FILL_1E4] = "−1e4 in its place",
    [ZERO_BEFORE] = "0 before the softmax",
    [ZERO_AFTER] = "0 after the softmax",
};

static float masked_score(lab_mask_way w, float score) {
    switch (w) {
    case MINUS_INFINITY: return -INFINITY;
    case ADD_1E9: return score + -1e9f;
    case ADD_1E4: return score + -1e4f;
    case FILL_1E4: return -1e4f;
    case ZERO_BEFORE: return 0;
    case ZERO_AFTER: return score;
    case N_WAYS: break;
    }
    return NAN;
}

/* softmax(x)_i = exp(x_i − max) / Σ exp(x_j − max), the stable form. A row of nothing but −inf has no key: all 0. */
static void softmax(int n, const float *x, float *y) {
    float max = -INFINITY, sum = 0;
    for (int i = 0; i < n; i++) max = fmaxf(max, x[i]);
    for (int i = 0; i < n; i++) sum += y[i] = max == -INFINITY ? 0 : expf(x[i] - max);
    for (int i = 0; i < n && sum > 0; i++) y[i] /= sum;
}

/* The weights of one row of n keys, the first `visible` of them allowed. */
void lab_mask_weigh(lab_mask_way w, int n, int visible, const float *scores, float *weights) {
    float masked[LAB_MASK_MOST_KEYS];
    for (int j = 0; j < n; j++) masked[j] = j < visible ? scores[j] : masked_score(w, scores[j]);
    softmax(n, masked, weights);
    if (w == ZERO_AFTER)
        for (int j = visible; j < n; j++) weights[j] = 0;
}

static float sum_of(int from, int to, const float *x) {
    float sum = 0;
    for (int j = from; j < to; j++) sum += x[j];
    return sum;
}

static float largest_difference(int n, const float *a, const float *b) {
    float largest = 0;
    for (int j = 0; j < n; j++) {
        if (isnan(a[j]) || isnan(b[j])) return NAN;
        largest = fmaxf(largest, fabsf(a[j] - b[j]));
    }
    return largest;
}

/* ---- The rule ---- */

static void write_triangle(char text[2 * N * N + 1]) {
    const char *seen = "1", *forbidden = "0";
    if (lab_broken("mask.polarity")) seen = "0", forbidden = "1";
    char *to = text;
    for (int query = 0; query < N; query++)
        for (int key = 0; key < N; key++)
            to += sprintf(to, "%s%c", key < mg_visible(mg_lookahead(0), query, N).end ? seen : forbidden,
                          key == N - 1 ? '\n' : ' ');
}

static void show_triangle(mg_lab *lab) {
    static const char expected[] = "1 0 0 0 0 0\n1 1 0 0 0 0\n1 1 1 0 0 0\n1 1 1 1 0 0\n1 1 1 1 1 0\n1 1 1 1 1 1\n";
    char triangle[2 * N * N + 1], added[N * N * 12 + 1], *to = added;
    const char *forbidden = lab->settings.terminal.utf8 ? "  −∞" : "-inf";
    write_triangle(triangle);
    for (int query = 0; query < N; query++)
        for (int key = 0; key < N; key++)
            to += sprintf(to, "%s%s", key < mg_visible(mg_lookahead(0), query, N).end ? "   0" : forbidden,
                          key == N - 1 ? "\n" : " ");
    lab_texts(lab, "The mask, row = query, column = key", 2,
              (const char *const[]){"permission: 1 seen, 0 forbidden", "added to scores: 0 keeps, −∞ removes"},
              (const char *const[]){triangle, added});
    lab_check_same_text(lab, "the printed triangle: 1 on and below the diagonal, 0 above", triangle, expected);
}

/* ---- A published row ---- */

/* Scores and weights as a reader of a tutorial reported them (good-features, issue 1): three allowed keys, three
 * forbidden, so the row of query 2. */
enum { KNOWN_QUERY = 2 };
static const float known_scores[N] = {.43F, -.21F, .99F, .32F, -.35F, .04F};
static const float known_zero[N] = {.1912F, .1008F, .3348F, .1244F, .1244F, .1244F};
static const float known_infinity[N] = {.3051F, .1609F, .5341F, 0, 0, 0};

static void known_row(mg_lab *lab) {
    int visible = (int)mg_visible(mg_lookahead(0), KNOWN_QUERY, N).end;
    static const struct {
        lab_mask_way way;
        lab_color color;
    } shown[] = {{MINUS_INFINITY, LAB_MASKED}, {ZERO_BEFORE, LAB_UNMASKED}, {ZERO_AFTER, LAB_AMBER}};
    float weights[N_WAYS][N];
    for (int w = 0; w < N_WAYS; w++) lab_mask_weigh((lab_mask_way)w, N, visible, known_scores, weights[w]);

    const char *keys[N];
    for (int j = 0; j < N; j++) keys[j] = lab_format(lab, j < visible ? "key %d" : "key %d (future)", j);
    lab_figure *figure = lab_figure_begin(lab, "row", "One row of attention: that of query 2",
                                          (lab_axes){.x = "key", .y = "weight", .y_from_zero = true});
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        double y[N];
        for (int j = 0; j < N; j++) y[j] = (double)weights[shown[i].way][j];
        lab_bars(figure, shown[i].color, lab_mask_names[shown[i].way], N, keys, y);
    }
    lab_figure_end(figure, "The scores are those of row 2 above. Keys 3 to 5 are the future. A mask of 0 leaves each "
                           "of them exp(0) = 1 in the sum, which "
                           "is not 0: of this row they keep more than a third, all three the same.");

    lab_check_below(lab, "−∞: distance from the published row .3051 .1609 .5341 0 0 0",
                    (double)largest_difference(N, weights[MINUS_INFINITY], known_infinity), 1e-4, "");
    lab_check_below(lab, "0 before: distance from the published row .1912 .1008 .3348 .1244 .1244 .1244",
                    (double)largest_difference(N, weights[ZERO_BEFORE], known_zero), 1e-4, "");
    lab_answer(lab, "future", 100 * (double)sum_of(visible, N, weights[ZERO_BEFORE]));
    lab_check_near(lab, "0 before: weight on the future in that row", (double)sum_of(visible, N, weights[ZERO_BEFORE]),
                   .3732, 1e-4, "");
}

/* ---- Six rows: the published one, and five of random scores ---- */

typedef struct rows {
    float scores[N][N], weights[N_WAYS][N][N];
    double leaked[N_WAYS][N], sums[N_WAYS][N];
} rows;

static void fill_rows(const mg_lab *lab, rows *r) {
    mg_rng rng = {lab_asked(lab)->seed, MG_STREAM_LAB, 0};
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            r->scores[i][j] = i == KNOWN_QUERY ? known_scores[j] : (float)mg_rng_normal(rng, (uint64_t)(i * N + j));
    for (int w = 0; w < N_WAYS; w++)
        for (int i = 0; i < N; i++) {
            int visible = (int)mg_visible(mg_lookahead(0), i, N).end;
            float *weights = r->weights[w][i];
            lab_mask_weigh((lab_mask_way)w, N, visible, r->scores[i], weights);
            r->leaked[w][i] = (double)sum_of(visible, N, weights);
            r->sums[w][i] = (double)sum_of(0, N, weights);
        }
}

static double farthest_from_1(int n, const double *x) {
    double far = 0;
    for (int i = 0; i < n; i++) far = lab_larger(far, fabs(x[i] - 1));
    return far;
}

static void show_scores(mg_lab *lab, const rows *r) {
    mg_real values[N * N];
    for (int i = 0; i < N * N; i++) values[i] = (mg_real)r->scores[i / N][i % N];
    lab_heatmap *map = lab_heatmap_begin(
        lab, "scores", "The scores, before any mask",
        (lab_scale){.unit = "score", .numbers = true, .rows = "query", .columns = "key"});
    lab_heatmap_panel(map, (lab_panel){.title = "", .n_rows = N, .n_columns = N, .values = values});
    lab_heatmap_end(map,
                    "All pictures of this lab are made of these scores. Row 2 is published, the others are standard "
                    "normal. Above the diagonal is the future: how it is masked is all that differs.");
}

static void show_maps(mg_lab *lab, const rows *r) {
    static const lab_mask_way shown[] = {MINUS_INFINITY, ZERO_BEFORE, ZERO_AFTER};
    lab_heatmap *map = lab_heatmap_begin(
        lab, "weights", "The same scores under three masks",
        (lab_scale){.unit = "weight", .low = 0, .high = 1, .numbers = true, .rows = "query", .columns = "key"});
    for (size_t p = 0; p < sizeof shown / sizeof *shown; p++) {
        mg_real values[N * N];
        for (int i = 0; i < N * N; i++) values[i] = (mg_real)r->weights[shown[p]][i / N][i % N];
        lab_heatmap_panel(map, (lab_panel){.title = lab_mask_names[shown[p]],
                                           .n_rows = N,
                                           .n_columns = N,
                                           .values = values,
                                           .masked = true,
                                           .mask = mg_lookahead(0)});
    }
    lab_heatmap_end(
        map, "Under −∞ a forbidden key does not exist for its query. Under 0 before the softmax it is there: look how "
             "much of query 0's weight goes to tokens it must not know. Under 0 after the softmax the "
             "forbidden keys are gone again, and the weight they took with them: see what is left of each row.");
}

static void show_leaks(mg_lab *lab, const rows *r) {
    double query[N];
    for (int i = 0; i < N; i++) query[i] = i;
    lab_figure *figure = lab_figure_begin(
        lab, "leak", "Weight on the future, row by row",
        (lab_axes){.x = "query", .y = "weight on forbidden keys", .y_from_zero = true});
    lab_line(figure, LAB_MASKED, lab_mask_names[MINUS_INFINITY], N, query, r->leaked[MINUS_INFINITY]);
    lab_line(figure, LAB_UNMASKED, lab_mask_names[ZERO_BEFORE], N, query, r->leaked[ZERO_BEFORE]);
    lab_figure_end(
        figure,
        "The earlier the query, the more of its keys are future. A mask of 0 lets through what their weights add up "
        "to, whatever that is; query 5 sees everything by right. With −∞ the line has to lie on 0.");

    figure = lab_figure_begin(lab, "sums", "Do the weights of a row sum to 1?",
                              (lab_axes){.x = "query", .y = "sum of the weights", .y_from_zero = true});
    lab_line(figure, LAB_MASKED, lab_mask_names[MINUS_INFINITY], N, query, r->sums[MINUS_INFINITY]);
    lab_line(figure, LAB_AMBER, lab_mask_names[ZERO_AFTER], N, query, r->sums[ZERO_AFTER]);
    lab_figure_end(figure, "Zeroing after the softmax hides the future and keeps its share: an early query's output is "
                           "scaled down by how strongly the future would have been heard, and so still depends on it.");

    lab_check_zero(lab, "−∞: largest weight on the future, over all rows", lab_largest(N, r->leaked[MINUS_INFINITY]),
                   "");
    lab_check_below(lab, "−∞: how far a row's sum is from 1", farthest_from_1(N, r->sums[MINUS_INFINITY]), 1e-6, "");
    lab_check_above(lab, "0 before: smallest weight on the future, over all rows but the last",
                    lab_smallest(N - 1, r->leaked[ZERO_BEFORE]), 0.01, "");
    lab_check_below(lab, "0 after: smallest sum of a row", lab_smallest(N, r->sums[ZERO_AFTER]), 0.9, "");
}

/* ---- Scores of a million ---- */

/* The largest change in the weights of what the row may see when the future's scores become `extreme`. */
static float change_of_the_past(lab_mask_way w, const rows *r, float extreme) {
    float most = 0;
    for (int i = 0; i < N; i++) {
        int visible = (int)mg_visible(mg_lookahead(0), i, N).end;
        float scores[N], weights[N];
        for (int j = 0; j < N; j++) scores[j] = j < visible ? r->scores[i][j] : extreme;
        lab_mask_weigh(w, N, visible, scores, weights);
        most = (float)lab_larger((double)most, (double)largest_difference(visible, weights, r->weights[w][i]));
    }
    return most;
}

/* The weight on the future in row 0 when everything it may see has a score of −1e6. */
static float leak_under_low_scores(lab_mask_way w, const rows *r) {
    float scores[N], weights[N];
    int visible = (int)mg_visible(mg_lookahead(0), 0, N).end;
    for (int j = 0; j < N; j++) scores[j] = j < visible ? -1e6F : r->scores[0][j];
    lab_mask_weigh(w, N, visible, scores, weights);
    return sum_of(visible, N, weights);
}

/* The weight in a row that may see nothing at all. */
static float leak_of_an_empty_row(lab_mask_way w, const rows *r) {
    float weights[N];
    lab_mask_weigh(w, N, 0, r->scores[0], weights);
    return sum_of(0, N, weights);
}

static void extreme_scores(mg_lab *lab, const rows *r) {
    lab_table *table = lab_table_begin(lab, "extremes", "Which masks hold when scores are extreme?",
                                       "mask\tfuture +1e6\tfuture −1e6\tpast −1e6\tempty row");
    float changed[N_WAYS], low[N_WAYS], empty[N_WAYS];
    for (int w = 0; w < N_WAYS; w++) {
        float up = change_of_the_past((lab_mask_way)w, r, 1e6F), down = change_of_the_past((lab_mask_way)w, r, -1e6F);
        changed[w] = (float)lab_larger((double)up, (double)down);
        low[w] = leak_under_low_scores((lab_mask_way)w, r);
        empty[w] = leak_of_an_empty_row((lab_mask_way)w, r);
        lab_table_row(table, "%s\t%.3g\t%.3g\t%.3g\t%.3g", lab_mask_names[w], (double)up, (double)down, (double)low[w],
                      (double)empty[w]);
    }
    lab_table_end(table,
                  "The first two columns: by how much the weights of the past change when every future score is a "
                  "million up or down. The third: the weight on the future when every score of the past is a million "
                  "down. The last: the weight in a row that may see nothing. A mask that holds is 0 throughout.");

    lab_check_zero(lab, "−∞: change in the past when a future score is ±1e6", (double)changed[MINUS_INFINITY], "");
    lab_check_zero(lab, "−∞: weight on the future when the past's scores are −1e6", (double)low[MINUS_INFINITY], "");
    lab_check_zero(lab, "−∞: weight of a row that sees nothing", (double)empty[MINUS_INFINITY], "");
    lab_check_at_least(lab, "−1e4 added: change in the past when a future score is ±1e6", (double)changed[ADD_1E4], 0.5,
                       "");
    lab_check_near(lab, "−1e4 in its place: weight on the future when the past's scores are −1e6",
                   (double)low[FILL_1E4], 1, 1e-6, "");
    lab_check_at_least(lab, "0 after: change in the past when a future score is ±1e6", (double)changed[ZERO_AFTER], 0.1,
                       "");
    lab_check_near(lab, "−1e9 added: weight of a row that sees nothing", (double)empty[ADD_1E9], 1, 1e-6, "");
}

/* ---- What float32 makes of −1e9 ---- */

static void absorbed_scores(mg_lab *lab) {
    long different = 1;
    volatile float sums[3]; /* rounded to float32, whatever registers hold */
    for (int i = 0; i < 3; i++) sums[i] = -1e9F + (float)(i + 1);
    for (int i = 1; i < 3; i++) different += sums[i] != sums[0];
    lab_check_count(lab, "different values among −1e9 + 1, −1e9 + 2, −1e9 + 3 in float32", different, 1, "");
    lab_note(lab, "Near −1e9 neighboring float32 numbers are 64 apart, so −1e9 + 1, −1e9 + 2 and −1e9 + 3 are all the "
                  "same number: adding −1e9 erases the score it is added to. A row in which everything is masked so "
                  "becomes a uniform average over everything forbidden.");
}

static void measure(mg_lab *lab, const lab_model *model) {
    static rows r;
    fill_rows(lab, &r);
    show_triangle(lab);
    show_scores(lab, &r);
    known_row(lab);
    show_maps(lab, &r);
    show_leaks(lab, &r);
    extreme_scores(lab, &r);
    absorbed_scores(lab);
    if (model) lab_mask_model(lab, model);
}

mg_status lab_mask(mg_lab *lab, mg_error *error) {
    lab_hypothesis(lab, "−∞ removes a key: exp(−∞) is exactly 0, whatever the scores are, and the row's weights sum to "
                        "1 over the keys that remain.");
    lab_hypothesis(lab, "0 is a score like any other: exp(0) is 1, so a key masked with 0 keeps a share of the "
                        "weight.");
    lab_hypothesis(lab, "Zeroing after the softmax comes too late: the future has already taken its share of the sum.");
    lab_hypothesis(lab, "A finite number, −1e4 or −1e9, works until a score is large enough to beat it.");
    lab_guess(lab, "future", "%",
              "Six keys, the last three of them future and masked with 0 before the softmax, and the "
              "scores .43, −.21, .99 for the others: what share of the weight goes to the future?");
    lab_did(lab,
            "Six rows of scores over six keys were masked in six ways and put through the softmax, in float32: one row "
            "whose weights are published, five of standard normal scores. Then scores of a million were tried.");
    lab_setting(lab, "scores", "%d × %d: row %d published, the others standard normal", N, N, KNOWN_QUERY);
    lab_setting(lab, "arithmetic", "float32");

    lab_model model = {0};
    bool own = lab_asked(lab)->checkpoint != NULL;
    mg_status status = own ? lab_model_load(lab, LAB_LEAST_TO_SEE, LAB_MASK_MOST_KEYS, &model, error) : MG_OK;
    if (!status) status = lab_begin(lab, error);
    if (!status) measure(lab, own ? &model : NULL);
    lab_model_free(&model);

    lab_exercise(lab, "A colleague masks by multiplying the scores by the triangle of 1 and 0. Which line of the table "
                      "is that? What does query 0 see?");
    lab_exercise(lab, "Find a finite mask value and two scores for which the mask fails in half precision, where the "
                      "largest number is 65504.");
    lab_source(lab, "Vaswani et al. 2017, “Attention Is All You Need”, section 3.2.3: illegal connections are set to "
                    "−∞ in the input of the softmax.");
    lab_source(lab, "The published row: a reader's report to the repository good-features, issue 1.");
    return status;
}
