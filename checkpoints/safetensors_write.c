#include "safetensors_write.h"

#include <inttypes.h>
#include <string.h>

enum { BYTES = sizeof(float), ALIGNMENT = 8 };

static void to_little_endian(uint64_t value, int n, unsigned char *bytes) {
    for (int i = 0; i < n; i++) bytes[i] = (unsigned char)(value >> 8 * i);
}

static uint64_t count(const mg_param_spec *spec) {
    uint64_t n = 1;
    for (int i = 0; i < spec->ndim; i++) n *= (uint64_t)spec->dim[i];
    return n;
}

/* Print the header; returns its bytes. NULL only counts them. */
static int print_header(FILE *out, int n, const mg_safetensor *tensors) {
    static const char start[] = "{\"__metadata__\":{\"format\":\"pt\"}"; /* without it, transformers refuses the file */
    char scratch[256];
    uint64_t offset = 0;
    int bytes = out ? fprintf(out, "%s", start) : (int)strlen(start);
    for (int i = 0; i < n; i++) {
        const mg_param_spec *spec = &tensors[i].spec;
        uint64_t end = offset + count(spec) * BYTES;
        int at = snprintf(scratch, sizeof scratch, ",\"%s\":{\"dtype\":\"F32\",\"shape\":[", spec->name);
        for (int d = 0; d < spec->ndim; d++)
            at += snprintf(scratch + at, sizeof scratch - (size_t)at, "%s%td", d ? "," : "", spec->dim[d]);
        at += snprintf(scratch + at, sizeof scratch - (size_t)at, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}",
                       offset, end);
        if (out) fputs(scratch, out);
        bytes += at;
        offset = end;
    }
    if (out) putc('}', out);
    return bytes + 1;
}

static void write_numbers(FILE *out, const mg_safetensor *tensor) {
    enum { PIECE = 4096 };
    unsigned char bytes[PIECE * BYTES];
    uint64_t n = count(&tensor->spec);
    for (uint64_t at = 0, some; at < n; at += some) {
        some = n - at < PIECE ? n - at : PIECE;
        for (uint64_t i = 0; i < some; i++) {
            float value = (float)tensor->data[at + i];
            uint32_t bits;
            memcpy(&bits, &value, sizeof bits);
            to_little_endian(bits, BYTES, bytes + i * BYTES);
        }
        fwrite(bytes, BYTES, (size_t)some, out);
    }
}

void mg_safetensors_write(FILE *out, int n, const mg_safetensor *tensors) {
    int length = print_header(NULL, n, tensors), padding = (ALIGNMENT - length % ALIGNMENT) % ALIGNMENT;
    unsigned char prefix[8];
    to_little_endian((uint64_t)(length + padding), sizeof prefix, prefix);
    fwrite(prefix, 1, sizeof prefix, out);
    print_header(out, n, tensors);
    fprintf(out, "%*s", padding, "");
    for (int i = 0; i < n; i++) write_numbers(out, &tensors[i]);
}
