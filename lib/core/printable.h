/* Text from a file or a user, made fit for a terminal, a log or an error message: it stays on its line, cannot control
 * the terminal, and hides nothing. */
#ifndef MASKGRAD_PRINTABLE_H
#define MASKGRAD_PRINTABLE_H

#include "error.h"

#include <stddef.h>

/* Copies n bytes to `out`, which has `room` bytes (at least 4), and returns the length of what it wrote; a 0 follows.
 * Escaped as \n, \r, \t, \xHH or \uHHHH are
 *   control characters: C0, DEL, C1;
 *   line and paragraph separators, and marks that change the writing direction (Unicode Standard Annex 9);
 *   U+200B and U+FEFF, which cannot be seen at all;
 *   bytes that are not UTF-8.
 * ASCII characters in `kept` ("\n\t", or "" for none) stay as they are. Text that does not fit is cut between
 * characters and ends in "…". Printable text is copied unchanged, so doing it twice changes nothing. */
size_t mg_printable(char *out, size_t room, const char *bytes, size_t n, const char *kept);
/* How much room n bytes need at most, without being cut. */
#define MG_PRINTABLE_ROOM(n) (4 * (size_t)(n) + 1)

/* The same for a 0-terminated string, on one line: printf("%s", mg_shown(name).text). The text lives to the end of the
 * full expression. */
typedef struct mg_shown_text {
    char text[1024];
} mg_shown_text;
mg_shown_text mg_shown(const char *text);

#endif
