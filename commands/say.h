/* Sentences for people, in lines that fit the terminal.
 *
 * What stdout is for decides: sentences, tables and pictures fit in 80 columns or the terminal's width
 * (mg_print_wrapped); lines that programs read (CSV, JSON, train's `step` and `iter` lines, text that a model writes)
 * are never broken. A message on stderr is one line, however long, unless stderr is a terminal, where it is broken
 * between words. */
#ifndef MASKGRAD_SAY_H
#define MASKGRAD_SAY_H

#include "error.h"

#include <stdarg.h>
#include <stdio.h>

/* One line on a file or pipe, a wrapped paragraph on a terminal. `out` is stdout or stderr; `first` begins the first
 * line, `indent` the others. */
void mg_print_record(FILE *out, const char *first, const char *indent, const char *text);
/* "maskgrad COMMAND: sentence" on stderr, in that way. Escapes what a terminal would obey. */
void mg_say(const char *command, const char *format, ...) MG_PRINTF(2, 3);
void mg_vsay(const char *command, const char *format, va_list arguments) MG_PRINTF(2, 0);
/* A sentence on stdout, broken at the width of the terminal, 80 columns elsewhere. */
void mg_tell(const char *indent, const char *format, ...) MG_PRINTF(2, 3);

#endif
