/* What a file seems to be that is no UTF-8 text, by its first bytes. */
#ifndef MASKGRAD_FILE_KIND_H
#define MASKGRAD_FILE_KIND_H

#include <stddef.h>

typedef struct mg_file_kind {
    const char *name;     /* "UTF-16 text (little-endian)" */
    const char *remedy;   /* how it becomes a text: "convert it with iconv -f UTF-16LE -t UTF-8" */
    const char *encoding; /* of a text: "UTF-16LE"; else NULL */
} mg_file_kind;

/* NULL: unknown. Meant for bytes that are not a text: a text may begin with the same letters. */
const mg_file_kind *mg_file_kind_of(const char *bytes, size_t n);

#endif
