/* Did you mean …? The nearest of the words that are known. */
#ifndef MASKGRAD_SUGGEST_H
#define MASKGRAD_SUGGEST_H

#include <stddef.h>

/* The best of the words that were offered so far; begin with {word}. */
typedef struct mg_suggestion {
    const char *word; /* as it was typed */
    const char *best; /* NULL: none is near */
    size_t distance;
} mg_suggestion;

/* A word that is known: near is what some typing slips (a letter too many, missing, wrong, or two swapped) turn into
 * it, one for each three letters. Case counts as nothing, and _ as -. */
void mg_suggest(mg_suggestion *suggestion, const char *known);
/* What other programs call what a flag is for: "block-size" for context_length and n_ctx; NULL: unknown. A name with a
 * space is a sentence, for what there is no flag for. */
const char *mg_suggest_flag(const char *name);

#endif
