/* Did you mean …? The nearest of the words that are known. */
#ifndef MASKGRAD_SUGGEST_H
#define MASKGRAD_SUGGEST_H

#include "setting.h"

/* The best of the words that were offered so far; begin with {word}. */
typedef struct mg_suggestion {
    const char *word; /* as it was typed */
    const char *best; /* NULL: none is near */
    size_t distance;
} mg_suggestion;

/* A word that is known: near is what some typing slips (a letter too many, missing, wrong, or two swapped) turn into
 * it, one for each three letters. Case counts as nothing, and _ as -. */
void mg_suggest(mg_suggestion *suggestion, const char *known);
/* The names of a table's rows. What other programs call a row is that row: context_length is block-size. */
void mg_suggest_rows(mg_suggestion *suggestion, const mg_setting *rows);
/* A sentence about what other programs have a flag for and there is none of, such as device; NULL: unknown. */
const char *mg_suggest_why_not(const char *name);

#endif
