/* The size limit of each kind of file: large enough for every honest one, and a bound on the time and memory that a
 * wrong or hostile one can take. A larger file is refused in a sentence that names the limit. docs/limits.md is this
 * table for users. */
#ifndef MASKGRAD_FILE_LIMITS_H
#define MASKGRAD_FILE_LIMITS_H

#include <stddef.h>

#define MG_MIB ((size_t)1 << 20)
#define MG_GIB ((size_t)1 << 30)

/* In bytes. */
#define MG_MOST_TEXT (2 * MG_GIB)        /* a text, CSV or grammar file; its ids take four times as much */
#define MG_MOST_STREAM MG_GIB            /* from a pipe, whose length is not known in advance */
#define MG_MOST_MERGES (32 * MG_MIB)     /* GPT-2's merges.txt has 0.4 MiB, those of 250,000 tokens some 4 MiB */
#define MG_MOST_CONFIG MG_MIB            /* config.json */
#define MG_MOST_VOCAB_JSON (16 * MG_MIB) /* GPT-2's has 1 MiB; a parser takes some 15 times that */
#define MG_MOST_TOKENS MG_GIB            /* a checkpoint's vocabulary */
/* GPT-2's largest has 60 KiB; a parser takes some 40 times that. */
#define MG_MOST_SAFETENSORS_HEADER (4 * MG_MIB)

enum {
    MG_MOST_FILES = 1 << 20, /* of one corpus */
    MG_DEEPEST_FOLDER = 32,
    MG_CSV_MOST_COLUMNS = 16384,     /* the widest sheet of a spreadsheet */
    MG_CSV_LONGEST_FIELD = 16 << 20, /* bytes */
    MG_GRAMMAR_MAX_STATES = 1024,    /* a belief is on the stack; a dense transition matrix is 8 MB */
    MG_GRAMMAR_MOST_ARCS = 1 << 20,
    MG_GRAMMAR_LONGEST_CORPUS = 1 << 30 /* words to draw */
};

#endif
