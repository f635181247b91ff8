/* GPT-2's first cut: a text into pieces (words with the space before them, numbers, runs of punctuation, white space),
 * across whose borders no tokens are merged. Internal to datasets.
 *
 * GPT-2 knows only valid UTF-8. Here every byte string is split: each longest run of valid UTF-8 as a text of its own,
 * and each longest run of bytes that belong to no character is one piece. */
#ifndef MASKGRAD_GPT2_SPLIT_H
#define MASKGRAD_GPT2_SPLIT_H

#include "error.h"

#include <stddef.h>

typedef struct mg_splitter mg_splitter; /* the compiled pattern; may be shared by threads */
mg_status mg_splitter_new(mg_splitter **splitter, mg_error *error);
void mg_splitter_free(mg_splitter *splitter);

typedef struct mg_split {
    const mg_splitter *splitter;
    const char *text;
    size_t length, at; /* the next piece begins here */
    size_t run_end;    /* of the valid UTF-8 that `at` is in */
    void *match;
} mg_split;

mg_status mg_split_begin(mg_split *split, const mg_splitter *splitter, const char *text, size_t length,
                         mg_error *error);
/* The next piece, never empty; *piece is NULL when the text has ended. */
mg_status mg_split_next(mg_split *split, const char **piece, size_t *length, mg_error *error);
void mg_split_end(mg_split *split);

#endif
