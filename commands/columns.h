/* What the terminal can show. */
#ifndef MASKGRAD_COLUMNS_H
#define MASKGRAD_COLUMNS_H

#include "lab.h"

#include <stdio.h>

/* How many columns to write in: COLUMNS of the environment if it is a number, else the width of the terminal on `file`
 * (stdout or stderr); at least 20, at most LAB_COLUMNS. */
int mg_columns(FILE *file);
/* `file`, stdout or stderr, is a terminal that knows colors, and NO_COLOR is not set. */
bool mg_terminal_color(FILE *file);

#endif
