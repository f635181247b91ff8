#include "ids.h"
#include "heap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

mg_status mg_ids_parse(const char *text, int vocab_size, int **ids, size_t *n, mg_error *error) {
    size_t places = 1;
    for (const char *c = text; *c; c++) places += *c == ',';
    *n = 0;
    *ids = mg_alloc(places, sizeof **ids, "token ids", error);
    if (!*ids) return MG_ERR_MEMORY;
    for (const char *piece = text;; piece++) {
        size_t length = strcspn(piece, ",");
        char *end = NULL;
        errno = 0;
        long id = piece[0] >= '0' && piece[0] <= '9' ? strtol(piece, &end, 10) : -1;
        if (end != piece + length || errno || id < 0 || id >= vocab_size) {
            mg_free(*ids);
            *ids = NULL;
            return mg_error_set(error, MG_ERR_INPUT,
                                "'%.*s' is not a token id: ids are numbers from 0 to %d, separated by commas",
                                (int)(length < 100 ? length : 100), piece, vocab_size - 1);
        }
        (*ids)[(*n)++] = (int)id;
        piece += length;
        if (!*piece) return MG_OK;
    }
}
