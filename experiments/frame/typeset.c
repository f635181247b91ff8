/* Prose for HTML: d_k, W^O, √d_k, 1e-5 and `code` as they are written by hand. What users bring (names of files,
 * tokens, texts of models) goes through lab_html instead, which changes nothing. */
#include "lab_private.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 128;
}

/* Writes what stands at text, if it is its kind, and returns how many bytes that was; else 0. `before` is the byte in
 * front of it, or 0. */
typedef size_t piece(FILE *out, const char *text, char before);

static void element(FILE *out, const char *tag, const char *text, size_t n) {
    fprintf(out, "<%s>", tag);
    lab_html_part(out, text, n);
    fprintf(out, "</%s>", tag);
}

static size_t code(FILE *out, const char *text, char before) {
    (void)before;
    const char *end = *text == '`' ? strchr(text + 1, '`') : NULL;
    if (!end || end == text + 1) return 0;
    element(out, "code", text + 1, (size_t)(end - text - 1));
    return (size_t)(end - text + 1);
}

/* One letter with one letter or digit below it: d_k, but not c_fc, and not a_b in the middle of a name. */
static size_t subscript(FILE *out, const char *text, char before) {
    bool is = !is_word(before) && before != '-' && before != '/' && before != '.' && isalpha((unsigned char)text[0]) &&
              text[1] == '_' && isalnum((unsigned char)text[2]) && !is_word(text[3]);
    if (!is) return 0;
    fputc(text[0], out);
    element(out, "sub", text + 2, 1);
    return 3;
}

/* A letter with a letter or a number above it: W^O, x^-0.98. */
static size_t superscript(FILE *out, const char *text, char before) {
    if (is_word(before) || !isalpha((unsigned char)text[0]) || text[1] != '^') return 0;
    const char *above = text + 2 + (text[2] == '-');
    size_t n = isalpha((unsigned char)text[2]) ? 1 : strspn(above, "0123456789");
    if (n > 0 && isdigit((unsigned char)above[0]) && above[n] == '.' && isdigit((unsigned char)above[n + 1]))
        n += 1 + strspn(above + n + 1, "0123456789");
    if (n == 0 || is_word(above[n])) return 0;
    fprintf(out, "%c<sup>%s", text[0], above > text + 2 ? "−" : "");
    lab_html_part(out, above, n);
    fputs("</sup>", out);
    return (size_t)(above - text) + n;
}

/* What printf writes of a number that is not finite. */
static size_t infinity(FILE *out, const char *text, char before) {
    const char *word = text + (*text == '-');
    if (is_word(before) || strncmp(word, "inf", 3) != 0 || is_word(word[3])) return 0;
    fputs(word > text ? "−∞" : "∞", out);
    return (size_t)(word - text) + 3;
}

/* What is in brackets, above any letter: α^(γ+1). */
static size_t power(FILE *out, const char *text, char before) {
    if (!is_word(before) || strncmp(text, "^(", 2) != 0) return 0;
    size_t n = strcspn(text + 2, "()");
    if (n == 0 || text[2 + n] != ')') return 0;
    element(out, "sup", text + 2, n);
    return 2 + n + 1;
}

static size_t root(FILE *out, const char *text, char before) {
    size_t sign = strlen("√");
    (void)before;
    if (strncmp(text, "√", sign) != 0 || !isalnum((unsigned char)text[sign])) return 0;
    fputs("√<span class=\"root\">", out);
    size_t n = subscript(out, text + sign, 0);
    if (n == 0) {
        n = isdigit((unsigned char)text[sign]) ? strspn(text + sign, "0123456789") : 1;
        lab_html_part(out, text + sign, n);
    }
    fputs("</span>", out);
    return sign + n;
}

/* 2.5e-05 as 2.5·10⁻⁵; a sign is a minus. */
static size_t number(FILE *out, const char *text, char before) {
    if (isalnum((unsigned char)before) || before == '_' || before == '.' || before == '-') return 0;
    const char *digits = text + (*text == '-');
    size_t n = strspn(digits, "0123456789.");
    if (n == 0 || !isdigit((unsigned char)digits[0])) return 0;
    if (*text == '-') fputs("−", out);
    const char *e = digits + n;
    char *end = (char *)e;
    long power = *e == 'e' && (isdigit((unsigned char)e[1]) || e[1] == '-' || e[1] == '+') ? strtol(e + 1, &end, 10)
                                                                                           : 0;
    if (end == e || isalnum((unsigned char)*end)) {
        lab_html_part(out, digits, n);
        return (size_t)(digits - text) + n;
    }
    if (n != 1 || *digits != '1') {
        lab_html_part(out, digits, n);
        fputs("·", out);
    }
    fprintf(out, "10<sup>%s%ld</sup>", power < 0 ? "−" : "", power < 0 ? -power : power);
    return (size_t)(end - text);
}

void lab_typeset(FILE *out, const char *text) {
    static piece *const pieces[] = {code, root, subscript, superscript, power, infinity, number};
    char before = 0;
    while (*text) {
        size_t n = 0;
        for (size_t i = 0; i < sizeof pieces / sizeof *pieces && n == 0; i++) n = pieces[i](out, text, before);
        if (n == 0) lab_html_part(out, text, n = 1);
        before = text[n - 1];
        text += n;
    }
}
