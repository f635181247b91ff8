/* The files of --data as one text: decoded, without byte order marks and stray carriage returns, and with the ends of
 * documents marked. */
#ifndef MASKGRAD_DOCUMENTS_H
#define MASKGRAD_DOCUMENTS_H

#include "corpus.h"
#include "data_files.h"

typedef struct mg_documents {
    mg_data_files files;
    char *text; /* 0-terminated; a 0 byte inside is the end of a document */
    size_t length;
    size_t *end;                             /* of each file's part of the text, with the separator after it */
    uint64_t hash;                           /* FNV-1a of the files' bytes as UTF-8; between two files, a 0 byte */
    ptrdiff_t rows;                          /* of a column */
    ptrdiff_t line_ends;                     /* inside the texts of a column */
    ptrdiff_t n_ends;                        /* 0 bytes inside */
    ptrdiff_t n_marks, n_literal, n_returns; /* byte order marks; <|endoftext|> as text; carriage returns */
    int n_old_mac;                           /* files whose lines end in a carriage return: newlines now */
    int n_doubtful;                          /* files that are UTF-8, though another encoding was asked for */
} mg_documents;

typedef struct mg_documents_options {
    const char *column; /* of CSV files; NULL: texts */
    char delimiter;
    const char *encoding;
    bool mark;         /* documents end with 0 bytes, not with newlines */
    bool special;      /* <|endoftext|> in a text is the end of a document, too */
    bool keep_returns; /* carriage returns are tokens */
} mg_documents_options;

/* The first file's text as it is, to see what it is. */
mg_status mg_documents_begin(mg_documents *documents, const mg_data_options *data, mg_error *error);
/* The same file, worked up, and all others. */
mg_status mg_documents_join(mg_documents *documents, const mg_documents_options *options, mg_error *error);
/* The documents must be freed after a failure too. */
void mg_documents_free(mg_documents *documents);

#endif
