/* The width of the terminal, and text broken between words to fit it. */
#ifndef MASKGRAD_COLUMNS_H
#define MASKGRAD_COLUMNS_H

#include "error.h"

#include <stddef.h>
#include <stdio.h>

enum { MG_COLUMNS = 80 }; /* where no terminal is, and the most that a text is wide */

/* The columns to write in: the environment's COLUMNS if it is a number, or else those of the terminal that `file`,
 * stdout or stderr, is; at least 20, at most MG_COLUMNS. */
int mg_columns(FILE *file);
/* How many bytes of text make one line of so many columns: up to a line end, or broken at a space if there is one. */
size_t mg_line_fitting(const char *text, int columns);
/* The whole text, with what stands before its first line and what before the others. */
void mg_print_wrapped(FILE *out, const char *first, const char *indent, const char *text);

#endif
