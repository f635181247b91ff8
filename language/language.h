/* What people read, in their language.
 *
 * The sentences of the source are English, and are the keys of GNU gettext's catalogs (po/). They are looked up where
 * they are shown: by mg_say, mg_printf, mg_print_wrapped, mg_error_set, lab_note and the rest, which xgettext knows as
 * keywords. A sentence that no such call holds (in a table, in an array) is marked with N_.
 *
 * What is a word of ours, and what is somebody's data, is decided by where it lies: a string constant is in the
 * program's image, and is looked up; the name of a file, a token or a text that was formatted before is not, whatever
 * it says. So a column named "loss" keeps its name, and a "%s" that is given "loss" by us is translated.
 *
 * Files for programs (CSV, JSON, HDF5, run.json) hold English in every language, byte for byte, and numbers keep their
 * point: only the messages have a locale. Without a catalog all of this is vsnprintf. */
#ifndef MASKGRAD_LANGUAGE_H
#define MASKGRAD_LANGUAGE_H

#include "error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Once, before anything is shown. `asked` is a language like "pt-BR" or "en"; NULL: what LANGUAGE, LC_ALL, LC_MESSAGES
 * and LANG say. The catalog is FOLDER/pt_BR/LC_MESSAGES/maskgrad.mo in the first of n folders that has it. Whether the
 * language could be had: without a catalog all is English. */
bool mg_language_begin(const char *asked, int n, const char *const *folders);
/* As HTML names it: "en", "pt-BR". */
const char *mg_language(void);
bool mg_language_is_english(void);

/* A string constant of the program in the user's language; any other text is returned as it is. UTF-8. */
const char *mg_words(const char *text);
/* The same for the terminal: where it is not UTF-8, "é" becomes "e", in `room`. */
const char *mg_terminal_words(const char *text, char *room, size_t size);

/* vsnprintf with the format translated, and those of its strings that `words` translates. Columns, not bytes, count
 * for the width of a string. */
typedef struct mg_wording {
    const char *(*words)(const char *text, const void *user);
    const void *user;
    bool ascii; /* what is translated is reduced to ASCII */
} mg_wording;
int mg_vwords(char *text, size_t size, const mg_wording *wording, const char *format, va_list arguments)
    MG_PRINTF(4, 0);

/* printf for sentences and tables that people read; for others, printf. (mg_snprintf is in error.h.) */
void mg_fprintf(FILE *out, const char *format, ...) MG_PRINTF(2, 3);
void mg_printf(const char *format, ...) MG_PRINTF(1, 2);

bool mg_terminal_utf8(void); /* the locale's characters are UTF-8 */
/* The first character of a text without UTF-8, for example "e" for "é" and "<=" for "≤"; *n is its bytes. */
const char *mg_ascii_of(const char *text, size_t *n);

#endif
