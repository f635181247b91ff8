#include "h5.h"

#include <stdio.h>
#include <string.h>

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
    char text[768];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return mg_error_set(h5->error, MG_ERR_FORMAT, "'%s': %s", h5->path, text);
}

mg_shape_text mg_h5_shape(int ndim, const ptrdiff_t *dim) {
    mg_tensor x = {.ndim = ndim};
    for (int i = 0; i < ndim && i < MG_MAX_DIM; i++) x.dim[i] = dim[i];
    return mg_shape(&x);
}

hid_t mg_h5_disk_type(mg_h5_type type) {
    return type == MG_H5_FLOAT32 ? H5T_IEEE_F32LE : type == MG_H5_UINT8 ? H5T_STD_U8LE : H5T_STD_I64LE;
}

hid_t mg_h5_memory_type(mg_h5_type type) {
    hid_t real = sizeof(mg_real) == sizeof(double) ? H5T_NATIVE_DOUBLE : H5T_NATIVE_FLOAT;
    return type == MG_H5_FLOAT32 ? real : type == MG_H5_UINT8 ? H5T_NATIVE_UINT8 : H5T_NATIVE_INT64;
}

/* ---- A file in memory: the core driver keeps it in a buffer of ours ---- */

static void *image_allocate(size_t size, H5FD_file_image_op_t operation, void *user) {
    (void)operation;
    mg_h5_image *image = user;
    if (size <= image->capacity) return image->bytes;
    unsigned char *grown = mg_alloc_grow(image->bytes, image->capacity, size, 1, "the checkpoint's file", NULL);
    if (!grown) return NULL;
    image->bytes = grown;
    image->capacity = size;
    return grown;
}

static void *image_grow(void *block, size_t size, H5FD_file_image_op_t operation, void *user) {
    (void)block;
    return image_allocate(size, operation, user);
}

static void *image_copy(void *to, const void *from, size_t size, H5FD_file_image_op_t operation, void *user) {
    (void)operation;
    (void)user;
    return memcpy(to, from, size);
}

static herr_t image_keep(void *block, H5FD_file_image_op_t operation, void *user) {
    (void)block; /* the bytes are what we want when HDF5 is done with them */
    (void)operation;
    (void)user;
    return 0;
}

static void *user_copy(void *user) {
    return user;
}

static herr_t user_free(void *user) {
    (void)user;
    return 0;
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

mg_status mg_h5_create(mg_h5 *h5, const char *path, mg_h5_image *image, size_t user_block, size_t data_bytes,
                       int n_datasets, mg_error *error) {
    enum { STEP = 1 << 16, PER_DATASET = 8192 };
    begin(h5, path, error);
    /* One generous request now: a refusal later, in the middle of HDF5's work, would find it unprepared. */
    size_t expected = data_bytes + data_bytes / 32 + ((size_t)n_datasets + 64) * PER_DATASET + user_block;
    *image = (mg_h5_image){.capacity = (expected / STEP + 2) * STEP};
    image->bytes = mg_alloc(image->capacity, 1, "the checkpoint's file", error);
    if (!image->bytes) return MG_ERR_MEMORY;
    memset(image->bytes, 0, user_block);

    H5FD_file_image_callbacks_t callbacks = {image_allocate, image_copy, image_grow, image_keep,
                                             user_copy,      user_free,  image};
    /* Version bounds 1.8: a superblock that every HDF5 since 2008 reads. */
    hid_t access = access_properties(H5F_LIBVER_V18), creation = H5Pcreate(H5P_FILE_CREATE);
    if (H5Pset_fapl_core(access, STEP, false) >= 0 && H5Pset_file_image_callbacks(access, &callbacks) >= 0 &&
        H5Pset_userblock(creation, user_block) >= 0 && H5Pset_obj_track_times(creation, false) >= 0 &&
        keep_order(creation) >= 0)
        h5->file = H5Fcreate(path, H5F_ACC_TRUNC, creation, access);
    mg_status status = h5->file >= 0 ? MG_OK
                                     : mg_h5_error(h5, "HDF5 cannot make a file in memory: %s", mg_h5_why().text);
    H5Pclose(access);
    H5Pclose(creation);
    return status;
}

mg_status mg_h5_finish(mg_h5 *h5, mg_h5_image *image) {
    if (H5Fflush(h5->file, H5F_SCOPE_GLOBAL) < 0)
        return mg_h5_error(h5, "HDF5 cannot finish the file: %s", mg_h5_why().text);
    hsize_t user_block = 0;
    hid_t creation = H5Fget_create_plist(h5->file);
    herr_t asked = H5Pget_userblock(creation, &user_block);
    H5Pclose(creation);
    ssize_t length = H5Fget_file_image(h5->file, NULL, 0); /* does not count the user block */
    if (asked < 0 || length < 0) return mg_h5_error(h5, "HDF5 does not tell the file's length: %s", mg_h5_why().text);
    image->length = (size_t)length + (size_t)user_block;
    herr_t closed = H5Fclose(h5->file);
    h5->file = H5I_INVALID_HID;
    if (closed < 0) return mg_h5_error(h5, "HDF5 cannot close the file: %s", mg_h5_why().text);
    return MG_OK;
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
    h5->file = H5I_INVALID_HID;
    H5Eset_auto2(H5E_DEFAULT, h5->report, h5->report_to);
}
