/* Whether a compiled catalog can be used. */
#ifndef MASKGRAD_CATALOG_H
#define MASKGRAD_CATALOG_H

#include <stdbool.h>

/* Whether FILE is a catalog as msgfmt writes it, with all its strings: libintl reads what a file says without a look at
 * where the file ends. */
bool mg_catalog_is_whole(const char *path);

#endif
