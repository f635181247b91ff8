/* The format: GNU gettext's manual, "The Format of GNU MO Files", and gmo.h for the strings that depend on the system
 * (those with PRId64), which come in segments. All numbers are 32 bits, in the order of the machine that wrote them. */
#include "catalog.h"
#include "heap.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { MAGIC, REVISION, N_STRINGS, ORIGINALS, TRANSLATIONS, HASH_SIZE, HASH, N_SEGMENTS, SEGMENTS, N_SYSTEM };
enum { SYSTEM_ORIGINALS = N_SYSTEM + 1, SYSTEM_TRANSLATIONS, HEADER };
#define OURS UINT32_C(0x950412DE) /* of a machine with this byte order; msgfmt makes no other here */
#define LAST_SEGMENT UINT32_MAX

typedef struct catalog {
    const unsigned char *bytes;
    size_t size;
} catalog;

/* The number at a place; one that no offset can be, where there is none. */
static uint32_t number_at(const catalog *c, uint64_t offset) {
    uint32_t number = UINT32_MAX;
    if (offset + sizeof number <= c->size) memcpy(&number, c->bytes + offset, sizeof number);
    return number;
}

static bool holds(const catalog *c, uint64_t offset, uint64_t length) {
    return offset + length <= c->size;
}

/* A table of lengths and offsets. A string's length does not count the 0 at its end, but a segment's name's does. */
static bool strings_are_whole(const catalog *c, uint32_t table, uint32_t n, bool counts_end) {
    for (uint64_t i = 0; i < n; i++) {
        uint64_t length = number_at(c, table + 8 * i), end = length + number_at(c, table + 8 * i + 4) - counts_end;
        if (!holds(c, end, 1) || c->bytes[end] != '\0') return false;
    }
    return true;
}

/* Each is the place of a list: where the text begins, then pairs of a segment's length and what follows it. */
static bool system_strings_are_whole(const catalog *c, uint32_t table, uint32_t n, uint32_t n_segments) {
    for (uint64_t i = 0; i < n; i++) {
        uint64_t list = number_at(c, table + 4 * i), text = number_at(c, list);
        for (uint32_t next = 0; next != LAST_SEGMENT; text += number_at(c, list), list += 4) {
            list += 4;
            next = number_at(c, list + 4);
            bool known = next < n_segments || next == LAST_SEGMENT;
            if (!known || !holds(c, list, 8) || !holds(c, text, number_at(c, list))) return false;
        }
    }
    return true;
}

static bool is_whole(const catalog *c) {
    uint32_t header[HEADER];
    if (c->size < sizeof header) return false;
    memcpy(header, c->bytes, sizeof header);
    if (header[MAGIC] != OURS || header[REVISION] > 1 || header[N_STRINGS] == 0) return false;
    if (!holds(c, header[HASH], 4 * (uint64_t)header[HASH_SIZE])) return false;
    if (!strings_are_whole(c, header[ORIGINALS], header[N_STRINGS], false) ||
        !strings_are_whole(c, header[TRANSLATIONS], header[N_STRINGS], false))
        return false;
    if (header[REVISION] == 0) return true;
    return strings_are_whole(c, header[SEGMENTS], header[N_SEGMENTS], true) &&
           system_strings_are_whole(c, header[SYSTEM_ORIGINALS], header[N_SYSTEM], header[N_SEGMENTS]) &&
           system_strings_are_whole(c, header[SYSTEM_TRANSLATIONS], header[N_SYSTEM], header[N_SEGMENTS]);
}

bool mg_catalog_is_whole(const char *path) {
    enum { LARGEST = 16 << 20 };
    FILE *file = fopen(path, "rb");
    if (!file) return false;
    long size = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : 0;
    rewind(file);
    unsigned char *bytes = size > 0 && size < LARGEST ? mg_alloc_zero(1, (size_t)size, "a catalog", NULL) : NULL;
    bool whole = bytes && fread(bytes, 1, (size_t)size, file) == (size_t)size &&
                 is_whole(&(catalog){bytes, (size_t)size});
    mg_free(bytes);
    fclose(file);
    return whole;
}
