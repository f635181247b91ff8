/* The most that is read of each kind of file: enough for every honest one, and a bound on the time and memory that a
 * wrong or hostile one can take. What is larger is refused in a sentence that names the limit. docs/limits.md is this
 * table for users. */
#ifndef MASKGRAD_FILE_LIMITS_H
#define MASKGRAD_FILE_LIMITS_H

#include <stddef.h>

#define MG_MIB ((size_t)1 << 20)
#define MG_GIB ((size_t)1 << 30)

#define MG_MOST_TEXT (2 * MG_GIB) /* bytes of a text, CSV or grammar file; its ids take four times as much */
#define MG_MOST_STREAM MG_GIB     /* bytes from a pipe, whose length nobody knows beforehand */
#define MG_MOST_MERGES                                                                                                 \
    (32 * MG_MIB)             /* bytes; GPT-2's merges.txt has 0.4 MiB, and those of 250,000 tokens some 4 MiB         \
                               */
#define MG_MOST_CONFIG MG_MIB /* bytes of a config.json */

enum {
    MG_CSV_MOST_COLUMNS = 16384,     /* the widest sheet of a spreadsheet */
    MG_CSV_LONGEST_FIELD = 16 << 20, /* bytes */
    MG_GRAMMAR_MAX_STATES = 1024,    /* a belief is on the stack; a dense transition matrix is 8 MB */
    MG_GRAMMAR_MOST_ARCS = 1 << 20,
    MG_GRAMMAR_LONGEST_CORPUS = 1 << 30 /* words to draw */
};

#endif
