#include "h5.h"
#include "refuse.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- Messages ---- */

static herr_t take_innermost(unsigned n, const H5E_error2_t *entry, void *text) {
    if (n == 0 && entry->desc) snprintf(text, sizeof(mg_h5_reason), "%s", entry->desc);
    return 0;
}

mg_h5_reason mg_h5_why(void) {
    mg_h5_reason reason = {""};
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_innermost, reason.text);
    for (char *c = reason.text; *c; c++)
        if (*c == '\n') *c = ' ';
    if (!reason.text[0]) snprintf(reason.text, sizeof reason.text, "HDF5 gives no reason");
    return reason;
}

mg_status mg_h5_error(const mg_h5 *h5, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    mg_status status = mg_refuse_file(h5->error, h5->path, format, arguments);
    va_end(arguments);
    return status;
}

hid_t mg_h5_disk_type(mg_h5_type type) {
    return type == MG_H5_FLOAT32 ? H5T_IEEE_F32LE : type == MG_H5_UINT8 ? H5T_STD_U8LE : H5T_STD_I64LE;
}

hid_t mg_h5_memory_type(mg_h5_type type) {
    hid_t real = sizeof(mg_real) == sizeof(double) ? H5T_NATIVE_DOUBLE : H5T_NATIVE_FLOAT;
    return type == MG_H5_FLOAT32 ? real : type == MG_H5_UINT8 ? H5T_NATIVE_UINT8 : H5T_NATIVE_INT64;
}

/* ---- Writing: HDF5 1.10 crashes when a write fails, so it is never told; we remember, and look when it is done. ----
 */

static mg_h5_sink *sink_of(H5FD_t *file) {
    return (mg_h5_sink *)file; /* its first member */
}

static const mg_h5_sink *sink_of_const(const H5FD_t *file) {
    return (const mg_h5_sink *)file;
}

static H5FD_t *sink_open(const char *name, unsigned flags, hid_t access, haddr_t maximum) {
    (void)name;
    (void)flags;
    (void)maximum;
    mg_h5_sink *const *sink = H5Pget_driver_info(access);
    return sink ? &(*sink)->driver : NULL;
}

static herr_t sink_close(H5FD_t *file) {
    (void)file; /* the descriptor is the caller's */
    return 0;
}

/* As of HDF5's own driver for memory. */
static herr_t sink_query(const H5FD_t *file, unsigned long *flags) {
    (void)file;
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
             H5FD_FEAT_AGGREGATE_SMALLDATA;
    return 0;
}

static haddr_t sink_get_allocated(const H5FD_t *file, H5FD_mem_t type) {
    (void)type;
    return sink_of_const(file)->allocated;
}

static herr_t sink_set_allocated(H5FD_t *file, H5FD_mem_t type, haddr_t address) {
    (void)type;
    sink_of(file)->allocated = address;
    return 0;
}

static haddr_t sink_end(const H5FD_t *file, H5FD_mem_t type) {
    (void)type;
    return sink_of_const(file)->end;
}

/* What was never written is zero. */
static herr_t sink_read(H5FD_t *file, H5FD_mem_t type, hid_t transfer, haddr_t address, size_t size, void *buffer) {
    (void)type;
    (void)transfer;
    mg_h5_sink *sink = sink_of(file);
    unsigned char *to = buffer;
    while (size > 0) {
        ssize_t n = pread(sink->fd, to, size, (off_t)address);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && !sink->failure) sink->failure = errno;
        if (n <= 0) break;
        to += n;
        address += (haddr_t)n;
        size -= (size_t)n;
    }
    memset(to, 0, size);
    return 0;
}

static herr_t sink_write(H5FD_t *file, H5FD_mem_t type, hid_t transfer, haddr_t address, size_t size,
                         const void *buffer) {
    (void)type;
    (void)transfer;
    mg_h5_sink *sink = sink_of(file);
    const unsigned char *from = buffer;
    if (address + size > sink->end) sink->end = address + size;
    while (size > 0 && !sink->failure) {
        ssize_t n = pwrite(sink->fd, from, size, (off_t)address);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            sink->failure = n < 0 ? errno : ENOSPC;
            break;
        }
        from += n;
        address += (haddr_t)n;
        size -= (size_t)n;
    }
    return 0;
}

static herr_t sink_truncate(H5FD_t *file, hid_t transfer, hbool_t closing) {
    (void)transfer;
    (void)closing;
    mg_h5_sink *sink = sink_of(file);
    if (!sink->failure && ftruncate(sink->fd, (off_t)sink->allocated) != 0) sink->failure = errno;
    sink->end = sink->allocated;
    return 0;
}

static const H5FD_class_t sink_class = {
#if H5_VERSION_GE(1, 14, 0)
    .version = H5FD_CLASS_VERSION,
    .value = 600, /* the numbers from 512 on are for experiments */
#endif
    .name = "maskgrad",
    .maxaddr = INT64_MAX,
    .fc_degree = H5F_CLOSE_STRONG,
    .fapl_size = sizeof(mg_h5_sink *),
    .open = sink_open,
    .close = sink_close,
    .query = sink_query,
    .get_eoa = sink_get_allocated,
    .set_eoa = sink_set_allocated,
    .get_eof = sink_end,
    .read = sink_read,
    .write = sink_write,
    .truncate = sink_truncate,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

mg_status mg_h5_sink_check(const mg_h5 *h5) {
    if (!h5->sink || !h5->sink->failure) return MG_OK;
    return mg_error_set(h5->error, MG_ERR_IO, "'%s' cannot be written: %s", h5->path, strerror(h5->sink->failure));
}

/* ---- Files ---- */

static void begin(mg_h5 *h5, const char *path, mg_error *error) {
    *h5 = (mg_h5){.file = H5I_INVALID_HID, .path = path, .error = error};
    H5Eget_auto2(H5E_DEFAULT, &h5->report, &h5->report_to);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

/* CLOSE_STRONG: closing closes everything. */
static hid_t access_properties(H5F_libver_t newest) {
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (access >= 0 && H5Pset_libver_bounds(access, H5F_LIBVER_V18, newest) >= 0 &&
        H5Pset_fclose_degree(access, H5F_CLOSE_STRONG) >= 0)
        return access;
    H5Pclose(access);
    return H5I_INVALID_HID;
}

/* Order of creation is kept, so that h5py lists the parameters as the model has them. */
static herr_t keep_order(hid_t group) {
    return H5Pset_link_creation_order(group, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
}

/* Registered once, for the program's life: a driver whose last file closes after it was unregistered is read by HDF5
 * 1.10.8 when it is already freed. */
static hid_t sink_driver(void) {
    static hid_t driver = H5I_INVALID_HID;
    if (driver < 0 || H5Iget_type(driver) != H5I_VFL) driver = H5FDregister(&sink_class);
    return driver;
}

mg_status mg_h5_create(mg_h5 *h5, const char *path, mg_h5_sink *sink, int fd, size_t user_block, mg_error *error) {
    begin(h5, path, error);
    *sink = (mg_h5_sink){.fd = fd};
    h5->sink = sink;
    /* Version bounds 1.8: a superblock that every HDF5 since 2008 reads. */
    hid_t access = access_properties(H5F_LIBVER_V18), creation = H5Pcreate(H5P_FILE_CREATE);
    if (H5Pset_driver(access, sink_driver(), &sink) >= 0 && H5Pset_userblock(creation, user_block) >= 0 &&
        H5Pset_obj_track_times(creation, false) >= 0 && keep_order(creation) >= 0)
        h5->file = H5Fcreate(path, H5F_ACC_TRUNC, creation, access);
    mg_status status = h5->file >= 0 ? mg_h5_sink_check(h5)
                                     : mg_h5_error(h5, "HDF5 cannot make a file: %s", mg_h5_why().text);
    H5Pclose(access);
    H5Pclose(creation);
    return status;
}

mg_status mg_h5_finish(mg_h5 *h5) {
    herr_t flushed = H5Fflush(h5->file, H5F_SCOPE_GLOBAL), closed = H5Fclose(h5->file);
    h5->file = H5I_INVALID_HID;
    mg_status status = mg_h5_sink_check(h5);
    if (status == MG_OK && (flushed < 0 || closed < 0))
        status = mg_h5_error(h5, "HDF5 cannot finish the file: %s", mg_h5_why().text);
    return status;
}

mg_status mg_h5_open(mg_h5 *h5, const char *path, mg_error *error) {
    begin(h5, path, error);
    hid_t access = access_properties(H5F_LIBVER_LATEST);
    H5Pset_file_locking(access, true, true); /* a file system without locks is no reason to refuse */
    h5->file = H5Fopen(path, H5F_ACC_RDONLY, access);
    mg_h5_reason why = h5->file < 0 ? mg_h5_why() : (mg_h5_reason){""};
    H5Pclose(access);
    if (h5->file >= 0) return MG_OK;
    if (strstr(why.text, "lock file"))
        return mg_error_set(error, MG_ERR_IO, "'%s' is being written by another program: try again when it is done",
                            path);
    if (strstr(why.text, "signature not found")) return mg_h5_error(h5, "is not an HDF5 file");
    if (strstr(why.text, "truncated file")) return mg_h5_error(h5, "is truncated: its end is missing");
    return mg_h5_error(h5, "is damaged: HDF5 cannot open it (%s)", why.text);
}

void mg_h5_close(mg_h5 *h5) {
    if (h5->file >= 0) H5Fclose(h5->file);
    H5garbage_collect(); /* its free lists: some megabytes behind a large checkpoint */
    h5->file = H5I_INVALID_HID;
    H5Eset_auto2(H5E_DEFAULT, h5->report, h5->report_to);
}
