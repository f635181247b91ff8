/* Curves, heat maps and tables: what follows from their numbers, before anything is drawn. */
#include "attention.h"
#include "lab_for_test.h"
#include "plot.h"

static void an_axis_shows_what_can_be_shown(void **state) {
    (void)state;
    char folder[64];
    mg_lab *lab = lab_for_test(folder);
    lab_figure *f = lab_figure_begin(lab, "curves", "", (lab_axes){.x = "step", .y = "loss", .log_y = true});
    lab_line(f, LAB_MASKED, "loss", 5, (double[]){0, 10, 20, 30, 40}, (double[]){0, NAN, 1, 100, INFINITY});
    lab_span x = lab_span_x(f), y = lab_span_y(f);
    assert_close(x.low, 20, 0);
    assert_close(x.high, 30, 0);
    assert_true(0 < y.low && y.low < 1 && y.high > 100 && y.high < 200);
    lab_figure_end(f, "%s", "");

    f = lab_figure_begin(lab, "nothing", "", (lab_axes){.log_x = true, .log_y = true});
    lab_line(f, LAB_MASKED, "loss", 1, NULL, (double[]){NAN});
    x = lab_span_x(f), y = lab_span_y(f);
    assert_less(0, x.low);
    assert_less(x.low, x.high);
    assert_less(0, y.low);
    assert_less(y.low, y.high);
    lab_figure_end(f, "%s", "");

    f = lab_figure_begin(lab, "flat", "", (lab_axes){.y_from_zero = true});
    lab_line(f, LAB_MASKED, "zero", 3, NULL, (double[]){0, 0, 0});
    y = lab_span_y(f);
    assert_less(y.low, y.high);
    lab_figure_end(f, "%s", "");
    remove_lab(lab);
}

static void a_fit_finds_the_exponent(void **state) {
    (void)state;
    char folder[64];
    mg_lab *lab = lab_for_test(folder);
    lab_figure *f = lab_figure_begin(lab, "fit", "", (lab_axes){.log_x = true, .log_y = true});
    double x[6], y[6];
    for (int i = 0; i < 6; i++) {
        x[i] = 4 << i;
        y[i] = 3 * pow(x[i], 1.75);
    }
    assert_close(lab_fit_power(f, LAB_MASKED, "cost", 6, x, y), 1.75, 1e-12);
    y[2] = NAN; /* left out */
    y[3] = 0;
    assert_close(lab_fit_power(f, LAB_MASKED, "cost", 6, x, y), 1.75, 1e-12);
    assert_true(isnan(lab_fit_power(f, LAB_MASKED, "one point", 1, x, y)));
    assert_true(isnan(lab_fit_power(f, LAB_MASKED, "one place", 2, (double[]){2, 2}, (double[]){1, 3})));
    remove_lab(lab);
}

static void a_cell_is_what_the_mask_says(void **state) {
    (void)state;
    char folder[64];
    mg_lab *lab = lab_for_test(folder);
    const mg_real values[] = {1,
                              0,
                              (mg_real)1e-9, /* the last is forbidden, and is there */
                              0,
                              1,
                              0, /* */
                              (mg_real)NAN,
                              2,
                              (mg_real)-INFINITY};
    lab_heatmap *map = lab_heatmap_begin(lab, "cells", "", (lab_scale){.unit = "weight"});
    lab_panel panel = {.title = "causal", .n_rows = 3, .n_columns = 3, .values = values, .masked = true};
    lab_heatmap_panel(map, panel);
    const lab_panel *p = map->panels.item[0];
    assert_int_equal(lab_cell_kind(map, p, 0, 0), LAB_CELL_VALUE);
    assert_int_equal(lab_cell_kind(map, p, 0, 1), LAB_CELL_ABSENT);
    assert_int_equal(lab_cell_kind(map, p, 0, 2), LAB_CELL_ALARM);
    assert_int_equal(lab_cell_kind(map, p, 1, 0), LAB_CELL_VALUE);
    assert_int_equal(lab_cell_kind(map, p, 2, 0), LAB_CELL_ALARM);
    assert_int_equal(lab_cell_kind(map, p, 2, 2), LAB_CELL_ABSENT);
    lab_span span = lab_heat_span(map); /* alarms and absent cells do not stretch it */
    assert_close(span.low, 0, 0);
    assert_close(span.high, 2, 0);

    map->scale.log = true;
    assert_int_equal(lab_cell_kind(map, p, 1, 0), LAB_CELL_ZERO);
    panel.mask = mg_lookahead(MG_LOOKAHEAD_ALL);
    assert_int_equal(lab_cell_kind(map, &panel, 0, 2), LAB_CELL_VALUE);
    remove_lab(lab);
}

static void tabs_of_the_format_divide_cells(void **state) {
    (void)state;
    char folder[64];
    mg_lab *lab = lab_for_test(folder);
    lab_table *t = lab_table_begin(lab, "table", "", "token\tshare, in %");
    lab_table_row(t, "%s\t%d", "a\tb", 50);
    const char *const *cells = t->rows.item[1];
    assert_string_equal(cells[0], "a\tb");
    assert_string_equal(cells[1], "50");
    assert_string_equal(((const char *const *)t->rows.item[0])[1], "share, in %");
    assert_false(lab_column_is_numbers(t, 0));
    assert_true(lab_column_is_numbers(t, 1));
    assert_fails(lab_table_row(t, "%d", 1), "has 1 cells, its header 2");
    remove_lab(lab);
}

static void a_column_of_numbers_may_have_gaps(void **state) {
    (void)state;
    char folder[64];
    mg_lab *lab = lab_for_test(folder);
    lab_table *u = lab_table_begin(lab, "rows", "", "a\tb\tc\td");
    lab_table_row(u, "%s\t%s\t%s\t%s", "–", "1.5", "never", "1");
    lab_table_row(u, "%s\t%s\t%s\t%s", "–", "–", "3", "one");
    assert_false(lab_column_is_numbers(u, 0));
    assert_true(lab_column_is_numbers(u, 1));
    assert_true(lab_column_is_numbers(u, 2));
    assert_false(lab_column_is_numbers(u, 3));
    remove_lab(lab);
}

/* Ticks lie within the span, rise, and no two of them read alike. */
static void ticks_differ_in_what_they_say(void **state) {
    (void)state;
    static const struct {
        lab_span span;
        bool log;
    } cases[] = {{{0, 1}, false},    {{0, 0.0373}, false},  {{-2.44, 1.59}, false}, {{3, 3.0001}, false},
                 {{1.7, 2.4}, true}, {{2.2e-8, 2.2}, true}, {{1e-3, 1}, true},      {{0.9, 11}, true},
                 {{4, 1024}, true},  {{1e-20, 1e20}, true}, {{5e-6, 6e-6}, true},   {{0, 123456}, false}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        char folder[64];
        mg_lab *lab = lab_for_test(folder);
        double at[6];
        int n = lab_ticks(cases[c].span, cases[c].log, 6, at);
        assert_in_range(n, 2, 6);
        for (int i = 0; i < n; i++) {
            assert_true(at[i] >= cases[c].span.low - 1e-9 * fabs(cases[c].span.low));
            assert_true(at[i] <= cases[c].span.high + 1e-9 * fabs(cases[c].span.high));
            for (int j = 0; j < i; j++) {
                assert_true(at[i] != at[j]);
                if (c != 3) assert_string_not_equal(lab_tick_number(lab, at[i]), lab_tick_number(lab, at[j]));
            }
        }
        remove_lab(lab);
    }
    char folder[64];
    mg_lab *lab = lab_for_test(folder);
    assert_string_equal(lab_tick_number(lab, 1e-5), "10⁻⁵");
    assert_string_equal(lab_tick_number(lab, 2e12), "2·10¹²");
    assert_string_equal(lab_tick_number(lab, -0.25), "-0.25");
    remove_lab(lab);
}

static void a_log_axis_is_marked_at_its_own_places(void **state) {
    (void)state;
    char folder[64];
    mg_lab *lab = lab_for_test(folder);
    lab_figure *f = lab_figure_begin(lab, "own", "", (lab_axes){.log_x = true});
    double at[8];
    lab_line(f, LAB_MASKED, "a", 4, (double[]){4, 16, 64, 1024}, (double[]){1, 2, 3, NAN});
    lab_points(f, LAB_MASKED, "b", 2, (double[]){16, 256}, (double[]){1, 2});
    assert_int_equal(lab_own_places(f, 8, at), 4); /* what is not shown is no place */
    assert_int_equal(lab_own_places(f, 3, at), 0);
    remove_lab(lab);
}

/* Of lines in one place each shows; those apart are whole; two floors differ, and say their value. */
static void what_lies_together_is_told_apart(void **state) {
    (void)state;
    char folder[64];
    mg_lab *lab = lab_for_test(folder);
    lab_figure *f = lab_figure_begin(lab, "together", "", (lab_axes){.y_from_zero = true});
    const double x[] = {0, 1, 2, 3};
    lab_line(f, LAB_MASKED, "apart", 4, x, (double[]){2, 2, 2, 2});
    lab_line(f, LAB_GREEN, "low", 4, x, (double[]){1, 0, 0, 0});
    lab_line(f, LAB_AMBER, "as low", 4, x, (double[]){0.5, 0.001, 0, 0});
    lab_line(f, LAB_SKY, "too", 4, x, (double[]){0.8, 0, 0, 0});
    lab_floor(f, "honest", 1.38456);
    lab_floor(f, "cheating", 0.043);
    assert_string_equal(lab_dash(f, 0), "dt 1");
    assert_string_equal(lab_dash(f, 1), "dt 1");
    assert_string_equal(lab_dash(f, 2), "dt (10,5)");
    assert_string_equal(lab_dash(f, 3), "dt (5,10)");
    assert_string_not_equal(lab_dash(f, 4), lab_dash(f, 5));
    assert_string_equal(lab_legend(f, 4), "honest: 1.385");
    assert_string_equal(lab_legend(f, 1), "low");
    remove_lab(lab);
}

/* What gnuplot is told: powers of ten and exponents are raised, and what cannot be shown is not drawn but said. */
static void a_script_is_typeset(void **state) {
    (void)state;
    char folder[64], *script = NULL;
    size_t size;
    mg_lab *lab = lab_for_test(folder);
    lab_figure *f = lab_figure_begin(lab, "script", "",
                                     (lab_axes){.x = "√d_k", .y = "W^O", .log_x = true, .log_y = true});
    double x[12], y[12], none[12] = {0};
    for (int i = 0; i < 12; i++) {
        x[i] = i + 1;
        y[i] = 1e-2 * pow(x[i], -1.75);
    }
    lab_line(f, LAB_MASKED, "α^(γ+1), x^2 and x^y", 12, x, y);
    lab_line(f, LAB_UNMASKED, "nothing", 12, x, none);
    lab_fit_power(f, LAB_MASKED, "fit", 12, x, y);
    lab_floor_curve(f, "floor", 2, (double[]){1, 12}, (double[]){1e-5, 3e-5});
    FILE *out = open_memstream(&script, &size);
    lab_figure_plot(out, f);
    fclose(out);
    static const char *const said[] = {"'10⁻⁵' 1e-05",         "'√dₖ'",         "'Wᴼ'",
                                       "'αᵞ⁺¹, x² and x^y'",   "'fit: x⁻¹·⁷⁵'", "'nothing: 0'",
                                       "'floor, mean: 2e-05'", "$s0 with"};
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        if (!strstr(script, said[i])) fail_msg("%s is not in %s", said[i], script);
    assert_null(strstr(script, "$s1 with"));
    free(script);
    remove_lab(lab);
}

static void names_become_files(void **state) {
    (void)state;
    char folder[64];
    mg_lab *lab = lab_for_test(folder);
    lab_figure_end(lab_figure_begin(lab, "loss", "", (lab_axes){0}), "%s", "");
    assert_fails(lab_figure_begin(lab, "loss", "", (lab_axes){0}), "two pictures or tables are called 'loss'");
    assert_fails(lab_figure_begin(lab, "../loss", "", (lab_axes){0}), "no name for a file");
    assert_fails(lab_figure_begin(lab, "summary", "", (lab_axes){0}), "the frame's own file");
    remove_lab(lab);
}

static void colors_keep_their_order(void **state) {
    (void)state;
    unsigned before = 0;
    for (int i = 0; i <= 20; i++) { /* viridis grows lighter all the way: it survives gray print */
        unsigned rgb = lab_heat_rgb(i / 20.0);
        unsigned light = 299 * (rgb >> 16) + 587 * ((rgb >> 8) & 255) + 114 * (rgb & 255);
        assert_true(light > before);
        before = light;
    }
    assert_int_equal(lab_heat_rgb(NAN), lab_heat_rgb(0));
    assert_int_not_equal(lab_rgb(LAB_MASKED), lab_rgb(LAB_UNMASKED));
    assert_int_not_equal(lab_rgb(lab_step(0, 5)), lab_rgb(lab_step(4, 5)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_axis_shows_what_can_be_shown),
        cmocka_unit_test(a_fit_finds_the_exponent),
        cmocka_unit_test(a_cell_is_what_the_mask_says),
        cmocka_unit_test(tabs_of_the_format_divide_cells),
        cmocka_unit_test(a_column_of_numbers_may_have_gaps),
        cmocka_unit_test(ticks_differ_in_what_they_say),
        cmocka_unit_test(a_log_axis_is_marked_at_its_own_places),
        cmocka_unit_test(what_lies_together_is_told_apart),
        cmocka_unit_test(a_script_is_typeset),
        cmocka_unit_test(names_become_files),
        cmocka_unit_test(colors_keep_their_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
