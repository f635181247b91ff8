#include "seal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

static const char magic[] = "maskgrad seal ";

/* These two numbers are written in exactly one way, padded with zeros, so that a flipped byte anywhere in the seal is
 * noticed. */
static void render(char seal[MG_SEAL_BYTES], uint64_t length, uint32_t crc) {
    memset(seal, 0, MG_SEAL_BYTES);
    snprintf(seal, MG_SEAL_BYTES, "%s1\nbytes %020" PRIu64 "\ncrc32 %08" PRIx32 "\n", magic, length, crc);
}

/* Read until `size` bytes are there or the file ends; -1: errno says why. */
static ssize_t read_fully(int fd, void *buffer, size_t size) {
    size_t got = 0;
    while (got < size) {
        ssize_t n = read(fd, (char *)buffer + got, size - got);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return -1;
        if (n == 0) break;
        got += (size_t)n;
    }
    return (ssize_t)got;
}

static mg_status io_error(const char *path, mg_error *error) {
    return mg_error_set(error, MG_ERR_IO, "'%s' cannot be read: %s", path, strerror(errno));
}

/* From the position of `fd` to the end. */
static mg_status sum(int fd, const char *path, uint64_t *length, uint32_t *value, mg_error *error) {
    unsigned char buffer[1 << 14];
    uLong crc = crc32(0, NULL, 0);
    *length = 0;
    for (;;) {
        ssize_t n = read_fully(fd, buffer, sizeof buffer);
        if (n < 0) return io_error(path, error);
        if (n == 0) break;
        crc = crc32(crc, buffer, (uInt)n);
        *length += (uint64_t)n;
    }
    *value = (uint32_t)crc;
    return MG_OK;
}

mg_status mg_seal_write(int fd, const char *path, mg_error *error) {
    if (lseek(fd, MG_SEAL_BYTES, SEEK_SET) < 0) return io_error(path, error);
    uint64_t length;
    uint32_t crc;
    mg_status status = sum(fd, path, &length, &crc, error);
    if (status != MG_OK) return status;
    char seal[MG_SEAL_BYTES];
    render(seal, length + MG_SEAL_BYTES, crc);
    errno = ENOSPC; /* of a write cut short */
    if (pwrite(fd, seal, sizeof seal, 0) == MG_SEAL_BYTES) return MG_OK;
    return mg_error_set(error, MG_ERR_IO, "'%s' cannot be written: %s", path, strerror(errno));
}

static mg_status compare(int fd, const char *path, const char seal[MG_SEAL_BYTES], uint64_t length, mg_error *error) {
    uint64_t rest;
    uint32_t crc;
    mg_status status = sum(fd, path, &rest, &crc, error);
    if (status != MG_OK) return status;
    char expected[MG_SEAL_BYTES];
    render(expected, length, crc);
    if (memcmp(seal, expected, MG_SEAL_BYTES) == 0) return MG_OK;
    return mg_error_set(error, MG_ERR_FORMAT,
                        "'%s' is damaged, or another program changed it: its bytes are not those that were written "
                        "(the checksum in its first %d bytes differs)",
                        path, MG_SEAL_BYTES);
}

/* Without a seal: a file from another program, or one whose seal was blanked. Anything else in place of a seal is a
 * damaged seal. */
static mg_status check_unsealed(int fd, const char *path, const char seal[MG_SEAL_BYTES], mg_error *error) {
    static const char hdf5[] = "\211HDF\r\n\032\n", blank[MG_SEAL_BYTES];
    char next[sizeof hdf5 - 1];
    if (memcmp(seal, blank, MG_SEAL_BYTES) == 0) return MG_OK;
    ssize_t n = read_fully(fd, next, sizeof next);
    if (n < 0) return io_error(path, error);
    if ((size_t)n < sizeof next || memcmp(next, hdf5, sizeof next) != 0) return MG_OK;
    return mg_error_set(error, MG_ERR_FORMAT,
                        "'%s' is damaged: its first %d bytes are neither maskgrad's seal nor zeros", path,
                        MG_SEAL_BYTES);
}

mg_status mg_seal_check(int fd, size_t bytes, const char *path, mg_seal_report *report, mg_error *error) {
    *report = (mg_seal_report){.length = (int64_t)bytes};
    if (bytes == 0) return mg_error_set(error, MG_ERR_FORMAT, "'%s' is empty", path);
    char seal[MG_SEAL_BYTES + 1] = {0};
    if (lseek(fd, 0, SEEK_SET) < 0) return io_error(path, error);
    ssize_t n = read_fully(fd, seal, MG_SEAL_BYTES);
    if (n < 0) return io_error(path, error);
    report->sealed = memcmp(seal, magic, strlen(magic)) == 0;
    if (!report->sealed) return n < MG_SEAL_BYTES ? MG_OK : check_unsealed(fd, path, seal, error);
    uint64_t length = 0, present = bytes;
    sscanf(seal + strlen(magic), "%*d bytes %20" SCNu64, &length);
    if (n < MG_SEAL_BYTES || present < length)
        return mg_error_set(error, MG_ERR_FORMAT, "'%s' is truncated: it has %" PRIu64 " of its %" PRIu64 " bytes",
                            path, present, length > present ? length : (uint64_t)MG_SEAL_BYTES);
    return compare(fd, path, seal, present, error);
}
