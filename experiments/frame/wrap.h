/* Paragraphs, broken between words. */
#ifndef MASKGRAD_WRAP_H
#define MASKGRAD_WRAP_H

#include <stdio.h>

/* The columns of a text, in which colors (an escape to the next m) take none. */
int mg_text_columns(const char *text);
/* How many bytes of text make one line of so many columns: up to a line end, or broken at a space if there is one. */
size_t mg_line_fitting(const char *text, int columns);
/* Print a paragraph in lines of at most so many columns; `first` is before its first line, `indent` before the others.
 * A line feed in the text begins a new line. Beside `first` and `indent` there are always at least 16 columns of text,
 * also where the line is wider for it. */
void mg_print_wrapped(FILE *out, int columns, const char *first, const char *indent, const char *text);

#endif
