/* What a lab writes: hostile texts stay texts, in CSV, in HTML and in gnuplot's scripts. */
#include "csv_table.h"
#include "lab_for_test.h"
#include "wrap.h"

#include <sys/stat.h>
#include <unistd.h>

static const char hostile[] = "<script>alert('1')</script> & \"x\", $(touch /tmp/x) `y` %d\n'; set output '/tmp/z";

/* Everything that a lab can show, each with the hostile text wherever a text goes. */
static void fill(mg_lab *lab) {
    double x[40], loss[40], other[40];
    for (int i = 0; i < 40; i++) {
        x[i] = 25 * i;
        loss[i] = 1.2 + 2.2 * exp(-i / 6.0);
        other[i] = 3.4 * exp(-i / 4.0) + 0.04;
    }
    lab_hypothesis(lab, "%s", hostile);
    lab_did(lab, "%s", hostile);
    lab_setting(lab, hostile, "%s", hostile);
    lab_check_same_text(lab, hostile, hostile, hostile);
    lab_check_below(lab, "loss", NAN, 1, "nats");

    lab_figure *f = lab_figure_begin(lab, "loss", hostile, (lab_axes){.x = hostile, .y = "loss (nats)"});
    lab_line(f, LAB_MASKED, hostile, 40, x, loss);
    lab_line(f, LAB_UNMASKED, "no mask", 40, x, other);
    lab_floor(f, "entropy of the source, 1.18 nats", 1.18);
    lab_vertical(f, "warm-up ends", 200);
    lab_figure_end(f, "%s", hostile);

    f = lab_figure_begin(lab, "cost", "Cost",
                         (lab_axes){.x = "position", .y = "seconds", .log_x = true, .log_y = true});
    for (int k = 0; k < 2; k++) {
        double n[7], seconds[7];
        for (int i = 0; i < 7; i++) {
            n[i] = 8 << i;
            seconds[i] = 1e-6 * pow(n[i], 1 + k) * (1 + 0.1 * (i % 2));
        }
        lab_points(f, k ? LAB_UNMASKED : LAB_MASKED, k ? "without cache" : "with cache", 7, n, seconds);
        lab_fit_power(f, k ? LAB_UNMASKED : LAB_MASKED, "fit", 7, n, seconds);
    }
    lab_figure_end(f, "%s", "Two slopes.");

    enum { T = 16 };
    mg_real weights[T * T] = {0};
    const char *tokens[T];
    for (int i = 0; i < T; i++) {
        tokens[i] = i == 3 ? hostile : i == 4 ? " " : i == 5 ? "\n" : i % 2 ? " dog" : "cachorro";
        for (int j = 0; j <= i; j++) weights[i * T + j] = (mg_real)((i + j) % 5 ? exp(-(i - j)) : 0);
    }
    weights[T - 1] = (mg_real)1e-4; /* a leak */
    lab_heatmap *map = lab_heatmap_begin(lab, "influence", "Influence",
                                         (lab_scale){.unit = "|∂|", .log = true, .rows = "token", .columns = hostile});
    lab_heatmap_panel(map, (lab_panel){.title = hostile,
                                       .n_rows = T,
                                       .n_columns = T,
                                       .values = weights,
                                       .row_labels = tokens,
                                       .column_labels = tokens,
                                       .masked = true});
    lab_heatmap_end(map, "%s", hostile);

    lab_table *t = lab_table_begin(lab, "table", hostile, "a,b\tc");
    lab_table_row(t, "%s\t%g", hostile, 0.5);
    lab_table_end(t, "%s", hostile);
    lab_texts(lab, hostile, 2, (const char *const[]){hostile, "b"}, (const char *const[]){hostile, "two\nlines"});
    lab_note(lab, "%s", hostile);
    lab_exercise(lab, "%s", hostile);
    lab_source(lab, "%s", hostile);
}

static void hostile_texts_stay_texts(void **state) {
    (void)state;
    char folder[64];
    mg_lab *lab = lab_for_test(folder);
    mg_error error;
    fill(lab);
    assert_int_equal(lab_write_numbers(lab, &error), MG_OK);
    assert_int_equal(lab_draw_pictures(lab, &error), MG_OK);
    assert_int_equal(lab_write_report(lab, &error), MG_OK);
    lab_print_results(lab);

    const char *report = file_of(lab, "report.html");
    /* The numbers of three pictures, the words, and what reads them; the hostile text is JSON or text. */
    assert_int_equal(count_of(report, "<script"), 5);
    assert_int_equal(count_of(report, "</script"), 5);
    assert_int_equal(count_of(report, "<script type=\"application/json\" class=\"numbers\">"), 3);
    assert_says(report, "\\u003cscript>alert('1')\\u003c/script>");
    assert_says(report, "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt; &amp; &quot;x&quot;");
    assert_null(strstr(report, "http:"));
    assert_null(strstr(report, "https:"));
    assert_int_equal(count_of(report, "<img "), 3);
    assert_int_equal(count_of(report, "src=\"data:image/svg+xml;base64,"), 3);
    assert_says(report, "1 of 2 checks pass");
    assert_says(report, "not measured");
    assert_says(file_of(lab, "summary.csv"), "check,expected,observed,verdict\n");
    assert_says(file_of(lab, "summary.csv"), "loss,below 1 nats,not measured,fail\n");
    assert_says(file_of(lab, "table.csv"), "\"a,b\",c\n\"<script>alert('1')</script> & \"\"x\"\", ");
    assert_says(file_of(lab, "loss.csv"), "series,x,y\n");
    assert_says(file_of(lab, "influence.csv"), "panel,row,column,row_label,column_label,exists,value\n");
    /* 1e-4 as nine digits show the float that is nearest to it. */
    assert_says(file_of(lab, "influence.csv"), sizeof(mg_real) == sizeof(float) ? ",alarm,9.99999" : ",alarm,0.0001\n");
    static const char *const pictures[] = {"loss", "cost", "influence"};
    for (size_t i = 0; i < 3; i++) {
        assert_says(file_of(lab, lab_format(lab, "%s.svg", pictures[i])), "</svg>");
        assert_memory_equal(file_of(lab, lab_format(lab, "%s.png", pictures[i])), "\x89PNG", 4);
    }
    if (getenv("MASKGRAD_KEEP")) { /* to look at the pictures */
        print_message("kept in %s\n", folder);
        lab_free(lab);
        return;
    }
    remove_lab(lab);
}

static void without_gnuplot_the_numbers_remain(void **state) {
    (void)state;
    char folder[64], *path = strdup(getenv("PATH"));
    mg_lab *lab = lab_for_test(folder);
    mg_error error;
    fill(lab);
    assert_int_equal(lab_write_numbers(lab, &error), MG_OK);
    setenv("PATH", "/nonexistent", 1);
    assert_int_equal(lab_draw_pictures(lab, &error), MG_OK);
    setenv("PATH", path, 1);
    free(path);
    assert_int_equal(lab_write_report(lab, &error), MG_OK);
    const char *report = file_of(lab, "report.html");
    assert_int_equal(count_of(report, "<img "), 0);
    assert_int_equal(count_of(report, "Its numbers are in "), 3);
    assert_says(file_of(lab, "loss.csv"), "no mask,");
    remove_lab(lab);
}

/* Folders whose names would be commands to a shell or to gnuplot, and names of bars that would be formats. */
static void hostile_folders_stay_folders(void **state) {
    (void)state;
    static const char *const names[] = {"|touch PWN;#", "a'b\nset output 'PWN", "$(touch PWN)", "`touch PWN`", "-",
                                        "a\\"};
    static const char *const places[] = {"%s%n", "100%", "%d", "'%5.1f'", "a\nb"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char folder[64], path[128], here[4096];
        mg_lab *lab = lab_for_test(folder);
        mg_error error;
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        assert_int_equal(mkdir(path, 0777), 0);
        assert_non_null(getcwd(here, sizeof here));
        assert_int_equal(chdir(folder), 0);
        lab->settings.out_dir = names[i];
        lab_figure *f = lab_figure_begin(lab, "bars", "Bars", (lab_axes){.x = "", .y = "y"});
        lab_bars(f, LAB_MASKED, "bars", 5, places, (double[]){1, 2, 3, 4, 5});
        lab_figure_end(f, "%s", "Bars.");
        assert_int_equal(lab_draw_pictures(lab, &error), MG_OK);
        const char *svg = file_of(lab, "bars.svg");
        assert_says(svg, ">%s%n<");
        assert_says(svg, ">100%<");
        assert_says(svg, ">a\\nb<");
        assert_int_equal(system("test -z \"$(find . -name 'PWN*')\" -a \"$(find . -type f -printf x)\" = xx"), 0);
        assert_int_equal(chdir(here), 0);
        lab->settings.out_dir = folder;
        remove_lab(lab);
    }
}

/* A gnuplot that fails without a word, as on a full disk: half a picture is none. */
static void half_a_picture_is_none(void **state) {
    (void)state;
    char folder[64], *path = strdup(getenv("PATH"));
    mg_lab *lab = lab_for_test(folder);
    fill(lab);
    const char *liar = lab_format(lab, "%s/gnuplot", folder);
    FILE *script = fopen(liar, "w");
    fputs(
        "#!/bin/sh\nsed -n \"s/^set output '\\(.*\\)'/\\1/p\" | while read -r f; do printf '%s' '<svg' >\"$f\"; done\n",
        script);
    fclose(script);
    assert_int_equal(chmod(liar, 0755), 0);
    setenv("PATH", lab_format(lab, "%s:%s", folder, path), 1);
    mg_error error;
    assert_int_equal(lab_draw_pictures(lab, &error), MG_ERR_IO);
    assert_says(error.message, "gnuplot failed");
    setenv("PATH", path, 1);
    free(path);
    assert_false(lab->pictures);
    char command[128];
    snprintf(command, sizeof command, "test \"$(ls %s)\" = gnuplot", folder);
    assert_int_equal(system(command), 0);
    remove_lab(lab);
}

static void csv_quotes_what_needs_it(void **state) {
    (void)state;
    static const char *const cases[][2] = {{"plain", "plain"},   {"", ""},
                                           {"a,b", "\"a,b\""},   {"say \"a\"", "\"say \"\"a\"\"\""},
                                           {"a\nb", "\"a\nb\""}, {" dog", "\" dog\""},
                                           {"a\r", "\"a\r\""},   {"−∞ ± ã", "−∞ ± ã"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);
        mg_csv_write_cell(out, cases[i][0]);
        fclose(out);
        assert_string_equal(text, cases[i][1]);
        free(text);
    }
}

static void terminal_text_without_utf8(void **state) {
    (void)state;
    char folder[64];
    mg_lab *lab = lab_for_test(folder);
    lab->settings.terminal.utf8 = false;
    assert_string_equal(lab_shown(lab, "−∞ ± √2 ã 漢"), "-inf +- sqrt(2) a ?");
    assert_string_equal(lab_shown(lab, "1/√d_k, √(2)√"), "1/sqrt(d_k), sqrt(2)sqrt");
    assert_string_equal(lab_shown(lab, "\033[31mred\ta\nb"), "\\x1B[31mred\\ta\nb");
    lab->settings.terminal.utf8 = true;
    assert_string_equal(lab_shown(lab, "−∞\033[0m"), "−∞\\x1B[0m");
    assert_string_equal(lab_shown_line(lab, "a\nb"), "a b");
    assert_int_equal(mg_text_columns("−∞ ã"), 4);
    remove_lab(lab);
}

/* What a lab writes by hand is typeset; what only looks like it is not, and all of it is escaped. */
static void prose_is_typeset(void **state) {
    (void)state;
    static const struct {
        const char *text, *html;
    } cases[] = {
        {"divided by √d_k, at d_k = 64",
         "divided by √<span class=\"root\">d<sub>k</sub></span>, at d<sub>k</sub> = 64"},
        {"W^O, W_q and x^0.98", "W<sup>O</sup>, W<sub>q</sub> and x<sup>0.98</sup>"},
        {"x^-1.96, x^-, d W_k", "x<sup>−1.96</sup>, x^-, d W<sub>k</sub>"},
        {"-inf, inf; info, -info", "−∞, ∞; info, -info"},
        {"(1 − α^(γ+1)) / x^(n)", "(1 − α<sup>γ+1</sup>) / x<sup>n</sup>"},
        {"^(1), a^(, a^() and (^(1))", "^(1), a^(, a^() and (^(1))"},
        {"1/√C and √64", "1/√<span class=\"root\">C</span> and √<span class=\"root\">64</span>"},
        {"below 1e-05, 2.5e+06", "below 10<sup>−5</sup>, 2.5·10<sup>6</sup>"},
        {"−1e9 and ±1e6", "−10<sup>9</sup> and ±10<sup>6</sup>"},
        {"-0.5 to -3", "−0.5 to −3"},
        {"run `lab a_b <x>` now", "run <code>lab a_b &lt;x&gt;</code> now"},
        {"c_attn, h.0.c_fc, a_bc, runs/a_b, x2_k", "c_attn, h.0.c_fc, a_bc, runs/a_b, x2_k"},
        {"GPT-2, 3-4, --top-k 5, 1.0:1, 0x1e5, 1e, e5", "GPT-2, 3-4, --top-k 5, 1.0:1, 0x1e5, 1e, e5"},
        {"a lone ` stays", "a lone ` stays"},
        {"<b> & \"c\"", "&lt;b&gt; &amp; &quot;c&quot;"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char html[512] = "";
        FILE *out = fmemopen(html, sizeof html, "w");
        lab_typeset(out, cases[i].text);
        fclose(out);
        assert_string_equal(html, cases[i].html);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prose_is_typeset),
        cmocka_unit_test(hostile_texts_stay_texts),
        cmocka_unit_test(without_gnuplot_the_numbers_remain),
        cmocka_unit_test(hostile_folders_stay_folders),
        cmocka_unit_test(half_a_picture_is_none),
        cmocka_unit_test(csv_quotes_what_needs_it),
        cmocka_unit_test(terminal_text_without_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
