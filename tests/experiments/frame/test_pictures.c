/* Curves, heat maps and tables: what follows from their numbers, before anything is drawn. */
#include "attention.h"
#include "lab_for_test.h"

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
    panel.lookahead = MG_LOOKAHEAD_ALL;
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

static void colours_keep_their_order(void **state) {
    (void)state;
    unsigned before = 0;
    for (int i = 0; i <= 20; i++) { /* viridis grows lighter all the way: it survives grey print */
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
        cmocka_unit_test(names_become_files),
        cmocka_unit_test(colours_keep_their_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
