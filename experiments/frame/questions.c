/* Guess, then look: hypotheses and questions before the work, guesses beside what was measured after it. */
#include "lab_private.h"

#include <stdlib.h>
#include <string.h>

void lab_guess(mg_lab *lab, const char *key, const char *unit, const char *format, ...) {
    MG_CHECK(!lab->begun, "lab %s: the guess '%s' comes after lab_begin", lab->row->name, key);
    lab_question *question = mg_arena_alloc(lab->arena, 1, sizeof *question, "a lab's question");
    va_list arguments;
    va_start(arguments, format);
    *question = (lab_question){.key = lab_format(lab, "%s", key),
                               .unit = lab_format(lab, "%s", unit),
                               .text = lab_vformat(lab, format, arguments),
                               .guess = NAN,
                               .answer = NAN};
    va_end(arguments);
    lab_list_add(lab, &lab->questions, question);
}

void lab_answer(mg_lab *lab, const char *key, double measured) {
    lab_must_have_begun(lab, "an answer");
    for (int i = 0; i < lab->questions.n; i++) {
        lab_question *question = lab->questions.item[i];
        if (strcmp(question->key, key) != 0) continue;
        question->answer = measured;
        question->answered = true;
        return;
    }
    MG_CHECK(false, "lab %s answers '%s', which it did not ask", lab->row->name, key);
}

void lab_must_have_begun(const mg_lab *lab, const char *what) {
    bool is_lab = lab->row && lab->row->run;
    MG_CHECK(lab->begun || !is_lab, "lab %s: %s comes before lab_begin", lab->row->name, what);
}

void lab_must_have_answered(const mg_lab *lab) {
    for (int i = 0; i < lab->questions.n; i++) {
        const lab_question *question = lab->questions.item[i];
        MG_CHECK(question->answered, "lab %s asks '%s' and does not answer it", lab->row->name, question->key);
    }
}

/* ---- Guessing ---- */

/* A number with a point or a comma, and perhaps its unit, in English or as it was shown; blanks do not matter. */
static bool read_number(char *text, const char *unit, const char *words, double *number) {
    char *comma = strchr(text, ','), *end;
    if (comma && !strchr(text, '.')) *comma = '.';
    *number = strtod(text, &end);
    if (end == text || !isfinite(*number)) return false;
    end += strspn(end, " \t");
    const char *const units[] = {unit, words};
    for (int i = 0; i < 2; i++) {
        size_t length = strlen(units[i]);
        if (strncmp(end, units[i], length) == 0 && end[length + strspn(end + length, " \t\r")] == '\0') return true;
    }
    return end[strspn(end, " \t\r")] == '\0';
}

/* Whether there is more input. A line of blanks is no guess. */
static bool ask(mg_lab *lab, lab_question *question) {
    char line[256];
    for (;;) {
        const char *unit = *question->unit ? lab_format(lab, " (%s)", lab_words(lab, question->unit)) : "";
        fputs(lab_shown_line(lab, lab_format(lab, "     Your guess%s: ", unit)), stdout);
        fflush(stdout);
        if (!lab->settings.read_line(line, sizeof line)) return false;
        if (line[strspn(line, " \t\r")] == '\0') return true;
        const char *typed = lab_format(lab, "%s", line);
        if (read_number(line, question->unit, lab_words(lab, question->unit), &question->guess)) return true;
        question->guess = NAN;
        lab_print_wrapped(lab, "     ", "     ",
                          lab_format(lab, "'%s' is not a number: type one, or only Enter for no guess.", typed));
    }
}

mg_status lab_begin(mg_lab *lab, mg_error *error) {
    if (lab->begun) return MG_OK;
    MG_CHECK(lab->hypotheses.n > 0, "lab %s has no hypothesis", lab->row->name);
    lab->begun = true;
    lab_print_head(lab);
    bool more = lab->settings.read_line != NULL;
    if (lab->questions.n > 0) lab_print_heading(lab, "Guess before you look");
    for (int i = 0; i < lab->questions.n; i++) {
        lab_question *question = lab->questions.item[i];
        lab_print_wrapped(lab, lab_format(lab, "  %d. ", i + 1), "     ", question->text);
        if (!more) continue;
        more = ask(lab, question);
        if (!more) fputs("\n", stdout);
    }
    fflush(stdout);
    return lab_interrupted(lab, error);
}

/* ---- Guessed and measured ---- */

bool lab_was_guessed(const mg_lab *lab) {
    for (int i = 0; i < lab->questions.n; i++)
        if (!isnan(((const lab_question *)lab->questions.item[i])->guess)) return true;
    return false;
}

static const char *with_unit(mg_lab *lab, const lab_question *question, double value, const char *none) {
    if (isnan(value)) return none;
    return lab_format(lab, "%.4g%s%s", value, *question->unit ? " " : "", question->unit);
}

const char *lab_answer_text(mg_lab *lab, const lab_question *question) {
    return with_unit(lab, question, question->answer, N_("not measured"));
}

const char *lab_guess_text(mg_lab *lab, const lab_question *question) {
    return with_unit(lab, question, question->guess, "–");
}
