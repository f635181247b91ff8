/* Letters with their marks, and signs, in ASCII. */
#include "language.h"

#include <string.h>

static const struct {
    const char *utf8, *ascii;
} signs[] = {{"−", "-"},     {"–", "-"},   {"—", "-"},  {"∞", "inf"}, {"√", "sqrt"}, {"·", "*"},  {"×", "x"},
             {"±", "+-"},    {"≤", "<="},  {"≥", ">="}, {"≠", "!="},  {"…", "..."},  {"“", "\""}, {"”", "\""},
             {"‘", "'"},     {"’", "'"},   {"→", "->"}, {"␣", "_"},   {"²", "^2"},   {"³", "^3"}, {"₀", "0"},
             {"₁", "1"},     {"≈", "~"},   {"ᵀ", "^T"}, {"∂", "d"},   {"Σ", "sum"},  {"µ", "u"},  {"α", "alpha"},
             {"γ", "gamma"}, {"ε", "eps"}, {"º", "o"},  {"ª", "a"}};

/* Latin-1's letters, U+00C0 to U+00FF, without their marks. */
static const char letters[] =
    "A\0A\0A\0A\0A\0A\0A\0C\0E\0E\0E\0E\0I\0I\0I\0I\0D\0N\0O\0O\0O\0O\0O\0x\0O\0U\0U\0U\0U\0Y\0T\0s\0"
    "a\0a\0a\0a\0a\0a\0a\0c\0e\0e\0e\0e\0i\0i\0i\0i\0d\0n\0o\0o\0o\0o\0o\0/\0o\0u\0u\0u\0u\0y\0t\0y\0";

const char *mg_ascii_of(const char *text, size_t *n) {
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        *n = strlen(signs[i].utf8);
        if (strncmp(text, signs[i].utf8, *n) == 0) return signs[i].ascii;
    }
    *n = 1;
    while (((unsigned char)text[*n] & 0xC0) == 0x80) ++*n;
    return (unsigned char)text[0] == 0xC3 && *n == 2 ? letters + 2 * ((unsigned char)text[1] & 63) : "?";
}
