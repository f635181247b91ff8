#include "h5_internal.h"
#include "refuse.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* ---- Messages ---- */

static herr_t take_reason(unsigned n, const H5E_error2_t *entry, void *user) {
    mg_h5_reason *reason = user;
    if (n == 0 && entry->desc) snprintf(reason->text, sizeof reason->text, "%s", entry->desc);
    if (entry->min_num == H5E_NOSPACE || entry->min_num == H5E_CANTALLOC) reason->no_memory = true;
    return 0;
}

mg_h5_reason mg_h5_why(void) {
    mg_h5_reason reason = {.text = ""};
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_reason, &reason);
    for (char *c = reason.text; *c; c++)
        if (*c == '\n') *c = ' ';
    if (!reason.text[0]) mg_snprintf(reason.text, sizeof reason.text, "HDF5 gives no reason");
    return reason;
}

mg_status mg_h5_error(const mg_h5 *h5, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    mg_status status = mg_refuse_file(h5->error, h5->path, format, arguments);
    va_end(arguments);
    return status;
}

mg_status mg_h5_failed(const mg_h5 *h5, const char *format, ...) {
    mg_h5_reason why = mg_h5_why();
    char what[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    if (why.no_memory) return mg_error_set(h5->error, MG_ERR_MEMORY, "'%s': %s: not enough memory", h5->path, what);
    return mg_h5_error(h5, "%s (%s)", what, why.text);
}

hid_t mg_h5_disk_type(mg_h5_type type) {
    return type == MG_H5_FLOAT32 ? H5T_IEEE_F32LE : type == MG_H5_UINT8 ? H5T_STD_U8LE : H5T_STD_I64LE;
}

hid_t mg_h5_memory_type(mg_h5_type type) {
    hid_t real = sizeof(mg_real) == sizeof(double) ? H5T_NATIVE_DOUBLE : H5T_NATIVE_FLOAT;
    return type == MG_H5_FLOAT32 ? real : type == MG_H5_UINT8 ? H5T_NATIVE_UINT8 : H5T_NATIVE_INT64;
}

/* ---- Files ---- */

/* While a file is open, HDF5 prints nothing and loads no plugin: a filter that it does not know would make it load
 * every library in HDF5_PLUGIN_PATH. */
static void quiet(mg_h5 *h5) {
    h5->is_quiet = true;
    H5Eget_auto2(H5E_DEFAULT, &h5->report, &h5->report_to);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    H5PLget_loading_state(&h5->plugins);
    H5PLset_loading_state(0);
}

/* CLOSE_STRONG: closing closes everything. */
static hid_t access_properties(mg_h5 *h5, H5F_libver_t newest) {
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (access >= 0 && H5Pset_libver_bounds(access, H5F_LIBVER_V18, newest) >= 0 &&
        H5Pset_fclose_degree(access, H5F_CLOSE_STRONG) >= 0 && mg_h5_driver_use(access, &h5->driver) >= 0)
        return access;
    H5Pclose(access);
    return H5I_INVALID_HID;
}

/* Links keep their order of creation, so h5py lists the parameters in the model's order. */
static herr_t keep_order(hid_t group) {
    return H5Pset_link_creation_order(group, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
}

/* The name given to HDF5: only the driver knows the file. */
static const char no_name[] = "/";

mg_status mg_h5_create(mg_h5 *h5, const char *path, int fd, size_t user_block, mg_error *error) {
    *h5 = (mg_h5){.path = path, .error = error, .file = H5I_INVALID_HID, .driver = {.fd = fd, .writes = true}};
    quiet(h5);
    /* Version bounds 1.8: a superblock that every HDF5 since 2008 reads. */
    hid_t access = access_properties(h5, H5F_LIBVER_V18), creation = H5Pcreate(H5P_FILE_CREATE);
    if (H5Pset_userblock(creation, user_block) >= 0 && H5Pset_obj_track_times(creation, false) >= 0 &&
        keep_order(creation) >= 0)
        h5->file = H5Fcreate(no_name, H5F_ACC_TRUNC, creation, access);
    mg_status status = h5->file >= 0 ? mg_h5_check_written(h5) : mg_h5_failed(h5, "HDF5 cannot make a file");
    H5Pclose(access);
    H5Pclose(creation);
    return status;
}

mg_status mg_h5_check_written(const mg_h5 *h5) {
    if (!h5->driver.failure) return MG_OK;
    return mg_error_set(h5->error, MG_ERR_IO, "'%s' cannot be written: %s", h5->path, strerror(h5->driver.failure));
}

mg_status mg_h5_finish(mg_h5 *h5) {
    herr_t flushed = H5Fflush(h5->file, H5F_SCOPE_GLOBAL), closed = H5Fclose(h5->file);
    h5->file = H5I_INVALID_HID;
    mg_status status = mg_h5_check_written(h5);
    if (status == MG_OK && (flushed < 0 || closed < 0)) status = mg_h5_failed(h5, "HDF5 cannot finish the file");
    return status;
}

mg_status mg_h5_open_here(mg_h5 *h5) {
    quiet(h5);
    hid_t access = access_properties(h5, H5F_LIBVER_LATEST);
    h5->file = access < 0 ? H5I_INVALID_HID : H5Fopen(no_name, H5F_ACC_RDONLY, access);
    mg_status status = MG_OK;
    if (h5->file < 0) {
        mg_h5_reason why = mg_h5_why();
        status = strstr(why.text, "signature not found") ? mg_h5_error(h5, "is not an HDF5 file")
                 : strstr(why.text, "truncated file")    ? mg_h5_error(h5, "is truncated: its end is missing")
                                                         : mg_h5_failed(h5, "is damaged: HDF5 cannot open it");
    }
    if (access >= 0) H5Pclose(access);
    return status;
}

/* Other programs that use HDF5 lock what they write. A file system without locks is not a reason to refuse. */
static mg_status check_unlocked(const mg_h5 *h5) {
    if (flock(h5->driver.fd, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK) return MG_OK;
    return mg_error_set(h5->error, MG_ERR_IO, "'%s' is being written by another program: try again when it is done",
                        h5->path);
}

mg_status mg_h5_open(mg_h5 *h5, const char *path, int fd, size_t bytes, mg_error *error) {
    *h5 = (mg_h5){.path = path, .error = error, .file = H5I_INVALID_HID, .driver = {.fd = fd, .end = bytes}};
    mg_status status = check_unlocked(h5);
    if (status != MG_OK) return status;
    return mg_file_guard() ? mg_h5_child_start(h5) : mg_h5_open_here(h5);
}

void mg_h5_close(mg_h5 *h5) {
    if (h5->child) mg_h5_child_end(h5);
    if (h5->file >= 0) H5Fclose(h5->file);
    h5->file = H5I_INVALID_HID;
    if (!h5->is_quiet) return;
    H5garbage_collect(); /* its free lists: several megabytes after a large checkpoint */
    H5Eset_auto2(H5E_DEFAULT, h5->report, h5->report_to);
    H5PLset_loading_state(h5->plugins);
    h5->is_quiet = false;
}
