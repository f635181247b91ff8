/* Token ids as text: "1,2,3". */
#ifndef MASKGRAD_IDS_H
#define MASKGRAD_IDS_H

#include "error.h"

#include <stddef.h>

/* ids is allocated (free with mg_free). MG_ERR_INPUT names the piece that is not an id of the vocabulary. */
mg_status mg_ids_parse(const char *text, int vocab_size, int **ids, size_t *n, mg_error *error);

#endif
