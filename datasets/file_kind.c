#include "file_kind.h"

#include <stdbool.h>
#include <string.h>

/* ---- Formats with a signature (their specifications; file(1) knows the same) ---- */

#define UNPACK(command) "unpack it first, with " command, NULL
#define EXTRACT "extract its text first", NULL
#define NO_TEXT "a text is needed", NULL

typedef struct signature {
    size_t at;
    const char *bytes;
    size_t n;
    mg_file_kind kind;
} signature;
#define SIGNATURE(at, bytes) at, bytes, sizeof(bytes) - 1

/* clang-format off */
static const signature signatures[] = {
    {SIGNATURE(0, "\x1F\x8B"), {"compressed with gzip", UNPACK("gunzip")}},
    {SIGNATURE(0, "BZh"), {"compressed with bzip2", UNPACK("bunzip2")}},
    {SIGNATURE(0, "\xFD" "7zXZ"), {"compressed with xz", UNPACK("unxz")}},
    {SIGNATURE(0, "\x28\xB5\x2F\xFD"), {"compressed with zstd", UNPACK("unzstd")}},
    {SIGNATURE(0, "7z\xBC\xAF"), {"a 7z archive", UNPACK("7z x")}},
    {SIGNATURE(0, "PK\x03\x04"), {"a zip archive, or a document that is one (docx, xlsx, odt, epub)", EXTRACT}},
    {SIGNATURE(257, "ustar"), {"a tar archive", UNPACK("tar xf")}},
    {SIGNATURE(0, "%PDF-"), {"a PDF", "extract its text first, with pdftotext", NULL}},
    {SIGNATURE(0, "\xD0\xCF\x11\xE0"), {"an old Office document (doc, xls, ppt)", EXTRACT}},
    {SIGNATURE(0, "\x89PNG"), {"a PNG picture", NO_TEXT}},
    {SIGNATURE(0, "\xFF\xD8\xFF"), {"a JPEG picture", NO_TEXT}},
    {SIGNATURE(0, "GIF8"), {"a GIF picture", NO_TEXT}},
    {SIGNATURE(0, "\x89HDF\r\n\x1A\n"), {"an HDF5 file, as a checkpoint is", NO_TEXT}},
    {SIGNATURE(0, "\x93NUMPY"), {"a NumPy array", NO_TEXT}},
    {SIGNATURE(0, "PAR1"), {"a Parquet file", EXTRACT}},
    {SIGNATURE(0, "SQLite format 3"), {"an SQLite database", EXTRACT}},
    {SIGNATURE(0, "\x7F" "ELF"), {"a program (ELF)", NO_TEXT}},
};
/* clang-format on */

/* ---- Wide characters ---- */

#define CONVERT(from) "convert it with iconv -f " from " -t UTF-8", from
typedef struct wide {
    int unit; /* bytes */
    bool big_endian;
    const char *mark;
    mg_file_kind kind;
} wide;

/* UTF-32 first: its little-endian mark begins with that of UTF-16. */
static const wide encodings[] = {
    {4, false, "\xFF\xFE\0\0", {"UTF-32 text (little-endian)", CONVERT("UTF-32LE")}},
    {4, true, "\0\0\xFE\xFF", {"UTF-32 text (big-endian)", CONVERT("UTF-32BE")}},
    {2, false, "\xFF\xFE", {"UTF-16 text (little-endian)", CONVERT("UTF-16LE")}},
    {2, true, "\xFE\xFF", {"UTF-16 text (big-endian)", CONVERT("UTF-16BE")}},
};
enum { N_ENCODINGS = sizeof encodings / sizeof *encodings };

static unsigned long unit_at(const unsigned char *bytes, const wide *w) {
    unsigned long unit = 0;
    for (int i = 0; i < w->unit; i++) unit = unit << 8 | bytes[w->big_endian ? i : w->unit - 1 - i];
    return unit;
}

/* Without a mark: every unit a character of a text, and most of them Latin (below U+0100).
 * Token ids in 16 bits, as nanoGPT writes them, have control characters among them. */
static bool looks_like(const unsigned char *bytes, size_t n, const wide *w) {
    enum { LOOK_AT = 4096 };
    size_t unit = (size_t)w->unit, n_units = (n < LOOK_AT ? n : LOOK_AT) / unit, latin = 0;
    for (size_t i = 0; i < n_units; i++) {
        unsigned long c = unit_at(bytes + i * unit, w);
        if (c > 0x10FFFF || (c < ' ' && c != '\n' && c != '\r' && c != '\t')) return false;
        latin += c < 0x100;
    }
    return n_units >= 2 && 2 * latin > n_units;
}

static const mg_file_kind *wide_kind(const char *bytes, size_t n) {
    for (int i = 0; i < N_ENCODINGS; i++) {
        size_t mark = (size_t)encodings[i].unit;
        if (n >= mark && memcmp(bytes, encodings[i].mark, mark) == 0) return &encodings[i].kind;
    }
    for (int i = 0; i < N_ENCODINGS; i++)
        if (looks_like((const unsigned char *)bytes, n, &encodings[i])) return &encodings[i].kind;
    return NULL;
}

const mg_file_kind *mg_file_kind_of(const char *bytes, size_t n) {
    for (size_t i = 0; i < sizeof signatures / sizeof *signatures; i++) {
        const signature *s = &signatures[i];
        if (n >= s->at + s->n && memcmp(bytes + s->at, s->bytes, s->n) == 0) return &s->kind;
    }
    return wide_kind(bytes, n);
}
