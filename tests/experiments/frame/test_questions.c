/* Guess, then look: what a lab may do before lab_begin, and what becomes of a guess. */
#include "lab_for_test.h"

static mg_status no_run(mg_lab *lab, mg_error *error) {
    (void)lab;
    (void)error;
    return MG_OK;
}

static const lab_row real_row = {"real", "Is it so?", no_run, 0, NULL};

static const char *const *typed; /* lines, ended by NULL */

static bool type_line(char *line, size_t room) {
    if (!*typed) return false;
    snprintf(line, room, "%s", *typed++);
    return true;
}

static mg_lab *real_lab(char folder[64]) {
    mg_lab *lab = lab_for_test(folder);
    lab->row = &real_row;
    return lab;
}

static lab_question *question_of(mg_lab *lab, int i) {
    return lab->questions.item[i];
}

static void a_lab_measures_after_its_hypotheses(void **state) {
    (void)state;
    char folder[64];
    mg_lab *lab = real_lab(folder);
    assert_fails(lab_begin(lab, NULL), "lab real has no hypothesis");
    lab_hypothesis(lab, "It is.");
    lab_guess(lab, "much", "nats", "How much?");
    assert_fails(lab_check_zero(lab, "early", 0, ""), "lab real: a check comes before lab_begin");
    assert_fails(lab_progress(lab, "training", 0, 1, "%s", ""), "progress comes before lab_begin");
    assert_fails(lab_table_end(lab_table_begin(lab, "t", "t", "a"), "%s", ""), "a table comes before lab_begin");
    assert_fails(lab_answer(lab, "much", 1), "an answer comes before lab_begin");

    assert_int_equal(lab_begin(lab, NULL), MG_OK);
    assert_int_equal(lab_begin(lab, NULL), MG_OK);
    assert_fails(lab_hypothesis(lab, "Now I know."), "a hypothesis comes after lab_begin");
    assert_fails(lab_guess(lab, "late", "", "And now?"), "the guess 'late' comes after lab_begin");
    assert_fails(lab_answer(lab, "other", 1), "answers 'other', which it did not ask");
    assert_fails(lab_must_have_answered(lab), "asks 'much' and does not answer it");
    lab_answer(lab, "much", NAN); /* an answer too: it could not be measured */
    lab_must_have_answered(lab);
    assert_string_equal(lab_answer_text(lab, question_of(lab, 0)), "not measured");
    remove_lab(lab);
}

static void a_guess_is_a_number(void **state) {
    (void)state;
    static const struct {
        const char *line;
        double number; /* NaN: no guess */
    } cases[] = {{"1.5", 1.5},     {" 1.5 nats ", 1.5}, {"1,5nats", 1.5},  {"-2e-3", -2e-3}, {"0", 0},
                 {"1.5\r", 1.5},   {"1,000.5", NAN},    {"1.5 bits", NAN}, {"nan", NAN},     {"inf", NAN},
                 {"about 1", NAN}, {"", NAN},           {" \t", NAN},      {"1e999", NAN}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char folder[64];
        mg_lab *lab = real_lab(folder);
        typed = (const char *const[]){cases[i].line, NULL};
        lab->settings.read_line = type_line;
        lab_hypothesis(lab, "It is.");
        lab_guess(lab, "much", "nats", "How much?");
        lab_guess(lab, "more", "", "How much more?"); /* at the end of input */
        assert_int_equal(lab_begin(lab, NULL), MG_OK);
        if (isnan(cases[i].number))
            assert_true(isnan(question_of(lab, 0)->guess));
        else
            assert_close(question_of(lab, 0)->guess, cases[i].number, 0);
        assert_true(isnan(question_of(lab, 1)->guess));
        assert_int_equal(lab_was_guessed(lab), !isnan(cases[i].number));
        remove_lab(lab);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lab_measures_after_its_hypotheses),
        cmocka_unit_test(a_guess_is_a_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
