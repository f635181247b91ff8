#include "h5.h"

#include <stdio.h>
#include <string.h>

/* H5Lexists fails when a group on the way is missing: each level is asked. Only hard links count, since a soft or an
 * external one could lead anywhere. */
bool mg_h5_has(const mg_h5 *h5, const char *object) {
    char prefix[256];
    if (strlen(object) >= sizeof prefix) return false;
    for (const char *slash = object; slash; slash = strchr(slash + 1, '/')) {
        const char *end = strchr(slash + 1, '/');
        size_t length = end ? (size_t)(end - object) : strlen(object);
        memcpy(prefix, object, length);
        prefix[length] = '\0';
        if (strcmp(prefix, "/") == 0) continue;
        H5L_info_t link;
        if (H5Lexists(h5->file, prefix, H5P_DEFAULT) <= 0) return false;
        if (H5Lget_info(h5->file, prefix, &link, H5P_DEFAULT) < 0 || link.type != H5L_TYPE_HARD) return false;
    }
    return true;
}

bool mg_h5_has_attribute(const mg_h5 *h5, const char *object, const char *name) {
    return mg_h5_has(h5, object) && H5Aexists_by_name(h5->file, object, name, H5P_DEFAULT) > 0;
}

int64_t mg_h5_count(const mg_h5 *h5, const char *group) {
    H5G_info_t info;
    if (!mg_h5_has(h5, group) || H5Gget_info_by_name(h5->file, group, &info, H5P_DEFAULT) < 0) return -1;
    return info.nlinks < INT64_MAX ? (int64_t)info.nlinks : INT64_MAX;
}

/* ---- Attributes ---- */

/* An attribute that holds one element of the class, or an error. */
static hid_t open_attribute(const mg_h5 *h5, const char *object, const char *name, H5T_class_t class,
                            const char *class_name, hid_t *type) {
    *type = H5I_INVALID_HID;
    if (!mg_h5_has_attribute(h5, object, name)) {
        mg_h5_error(h5, "%s has no attribute '%s'", object, name);
        return H5I_INVALID_HID;
    }
    hid_t attribute = H5Aopen_by_name(h5->file, object, name, H5P_DEFAULT, H5P_DEFAULT);
    if (attribute < 0) {
        mg_h5_error(h5, "the attribute '%s' of %s is damaged (%s)", name, object, mg_h5_why().text);
        return H5I_INVALID_HID;
    }
    hid_t space = H5Aget_space(attribute);
    *type = H5Aget_type(attribute);
    H5T_class_t found = H5Tget_class(*type);
    bool fits = H5Sget_simple_extent_npoints(space) == 1 &&
                (found == class || (class == H5T_FLOAT && found == H5T_INTEGER) ||
                 (class == H5T_INTEGER && found == H5T_ENUM)); /* h5py writes a bool as an enumeration */
    H5Sclose(space);
    if (fits) return attribute;
    mg_h5_error(h5, "the attribute '%s' of %s must be one %s", name, object, class_name);
    H5Tclose(*type);
    H5Aclose(attribute);
    return H5I_INVALID_HID;
}

static mg_status read_number(const mg_h5 *h5, const char *object, const char *name, H5T_class_t class, hid_t memory,
                             void *value) {
    hid_t type, attribute = open_attribute(h5, object, name, class, class == H5T_FLOAT ? "number" : "integer", &type);
    if (attribute < 0) return MG_ERR_FORMAT;
    mg_status status = MG_OK;
    if (H5Aread(attribute, memory, value) < 0)
        status = mg_h5_error(h5, "the attribute '%s' of %s cannot be read (%s)", name, object, mg_h5_why().text);
    H5Tclose(type);
    H5Aclose(attribute);
    return status;
}

mg_status mg_h5_read_int(const mg_h5 *h5, const char *object, const char *name, int64_t *value) {
    return read_number(h5, object, name, H5T_INTEGER, H5T_NATIVE_INT64, value);
}

mg_status mg_h5_read_uint(const mg_h5 *h5, const char *object, const char *name, uint64_t *value) {
    return read_number(h5, object, name, H5T_INTEGER, H5T_NATIVE_UINT64, value);
}

mg_status mg_h5_read_double(const mg_h5 *h5, const char *object, const char *name, double *value) {
    return read_number(h5, object, name, H5T_FLOAT, H5T_NATIVE_DOUBLE, value);
}

static herr_t read_variable_text(hid_t attribute, hid_t type, char *text, size_t size) {
    char *read = NULL;
    hid_t memory = H5Tcopy(H5T_C_S1);
    H5Tset_size(memory, H5T_VARIABLE);
    H5Tset_cset(memory, H5Tget_cset(type));
    herr_t result = H5Aread(attribute, memory, &read);
    H5Tclose(memory);
    if (result < 0) return result;
    snprintf(text, size, "%s", read ? read : "");
    H5free_memory(read);
    return 0;
}

static herr_t read_fixed_text(hid_t attribute, hid_t type, char *text, size_t size) {
    hid_t memory = H5Tcopy(H5T_C_S1);
    H5Tset_size(memory, size);
    H5Tset_strpad(memory, H5T_STR_NULLTERM);
    H5Tset_cset(memory, H5Tget_cset(type));
    herr_t result = H5Aread(attribute, memory, text);
    H5Tclose(memory);
    text[size - 1] = '\0';
    return result;
}

mg_status mg_h5_read_text(const mg_h5 *h5, const char *object, const char *name, char *text, size_t size) {
    memset(text, 0, size);
    hid_t type, attribute = open_attribute(h5, object, name, H5T_STRING, "string", &type);
    if (attribute < 0) return MG_ERR_FORMAT;
    herr_t result = H5Tis_variable_str(type) > 0 ? read_variable_text(attribute, type, text, size)
                                                 : read_fixed_text(attribute, type, text, size);
    mg_status status = MG_OK;
    if (result < 0)
        status = mg_h5_error(h5, "the attribute '%s' of %s cannot be read (%s)", name, object, mg_h5_why().text);
    H5Tclose(type);
    H5Aclose(attribute);
    return status;
}

/* ---- Datasets ---- */

static hid_t open_data(const mg_h5 *h5, const char *object) {
    H5O_info_t info;
    if (!mg_h5_has(h5, object)) {
        mg_h5_error(h5, "the dataset %s is missing", object);
        return H5I_INVALID_HID;
    }
    if (H5Oget_info_by_name2(h5->file, object, &info, H5O_INFO_BASIC, H5P_DEFAULT) >= 0 &&
        info.type != H5O_TYPE_DATASET) {
        mg_h5_error(h5, "%s must be a dataset", object);
        return H5I_INVALID_HID;
    }
    hid_t set = H5Dopen2(h5->file, object, H5P_DEFAULT);
    if (set < 0) mg_h5_error(h5, "the dataset %s is damaged (%s)", object, mg_h5_why().text);
    return set;
}

static mg_status check_type(const mg_h5 *h5, const char *object, hid_t set, mg_h5_type type) {
    static const char *const names[] = {"little-endian float32", "uint8", "little-endian int64"};
    hid_t found = H5Dget_type(set);
    bool same = found >= 0 && H5Tequal(found, mg_h5_disk_type(type)) > 0;
    if (found >= 0) H5Tclose(found);
    return same ? MG_OK : mg_h5_error(h5, "the dataset %s does not hold %s numbers", object, names[type]);
}

/* Whether all chunks are there. HDF5 1.10's own answer compares bytes, and checksums are bytes too. */
static bool all_chunks_stored(hid_t set, hid_t properties) {
    hsize_t size[H5S_MAX_RANK], chunk[H5S_MAX_RANK], stored = 0, expected = 1;
    hid_t space = H5Dget_space(set);
    int rank = H5Sget_simple_extent_dims(space, size, NULL);
    bool known = rank >= 0 && H5Pget_chunk(properties, H5S_MAX_RANK, chunk) == rank &&
                 H5Dget_num_chunks(set, space, &stored) >= 0;
    H5Sclose(space);
    for (int i = 0; known && i < rank; i++) expected *= (size[i] + chunk[i] - 1) / chunk[i];
    return known && stored == expected;
}

static bool all_stored(hid_t set, hid_t properties) {
    H5D_space_status_t stored;
    if (H5Pget_layout(properties) == H5D_CHUNKED) return all_chunks_stored(set, properties);
    return H5Dget_space_status(set, &stored) >= 0 && stored == H5D_SPACE_STATUS_ALLOCATED;
}

/* A chunk that was never written would read as zeros, and a shape alone can claim more than any machine holds. Data
 * that lies in other files is not read. */
static mg_status check_storage(const mg_h5 *h5, const char *object, hid_t set) {
    hid_t properties = H5Dget_create_plist(set);
    bool elsewhere = H5Pget_layout(properties) == H5D_VIRTUAL || H5Pget_external_count(properties) > 0;
    bool complete = !elsewhere && all_stored(set, properties);
    H5Pclose(properties);
    if (elsewhere) return mg_h5_error(h5, "the dataset %s lies outside the file", object);
    if (!complete) return mg_h5_error(h5, "the dataset %s is incomplete: not all of it was written", object);
    return MG_OK;
}

/* The shape of an open dataset; rank −1 when it has none, or more dimensions than a tensor. */
static int read_shape(hid_t set, ptrdiff_t *dim) {
    hsize_t size[H5S_MAX_RANK];
    hid_t space = H5Dget_space(set);
    int rank = space < 0 ? -1 : H5Sget_simple_extent_dims(space, size, NULL);
    if (space >= 0) H5Sclose(space);
    if (rank > MG_MAX_DIM) return -1;
    for (int i = 0; i < rank; i++) dim[i] = size[i] < PTRDIFF_MAX ? (ptrdiff_t)size[i] : PTRDIFF_MAX;
    return rank;
}

static mg_status check_shape(const mg_h5 *h5, const char *object, hid_t set, int ndim, const ptrdiff_t *dim) {
    ptrdiff_t found[MG_MAX_DIM];
    int rank = read_shape(set, found);
    if (rank == ndim && memcmp(found, dim, (size_t)ndim * sizeof *dim) == 0) return MG_OK;
    return mg_h5_error(h5, "the dataset %s has the shape %s, but the configuration needs %s", object,
                       rank < 0 ? "of something else" : mg_dims(rank, found).text, mg_dims(ndim, dim).text);
}

static mg_status check_open(const mg_h5 *h5, const char *object, hid_t set, mg_h5_type type, int ndim,
                            const ptrdiff_t *dim) {
    mg_status status = check_type(h5, object, set, type);
    if (status == MG_OK) status = check_shape(h5, object, set, ndim, dim);
    if (status == MG_OK) status = check_storage(h5, object, set);
    return status;
}

mg_status mg_h5_read_length(const mg_h5 *h5, const char *object, mg_h5_type type, ptrdiff_t *length) {
    hid_t set = open_data(h5, object);
    if (set < 0) return MG_ERR_FORMAT;
    ptrdiff_t dim[MG_MAX_DIM];
    mg_status status = check_type(h5, object, set, type);
    if (status == MG_OK && read_shape(set, dim) != 1)
        status = mg_h5_error(h5, "the dataset %s must have one dimension", object);
    if (status == MG_OK) status = check_storage(h5, object, set);
    if (status == MG_OK) *length = dim[0];
    H5Dclose(set);
    return status;
}

mg_status mg_h5_check_data(const mg_h5 *h5, const char *object, mg_h5_type type, int ndim, const ptrdiff_t *dim) {
    hid_t set = open_data(h5, object);
    if (set < 0) return MG_ERR_FORMAT;
    mg_status status = check_open(h5, object, set, type, ndim, dim);
    H5Dclose(set);
    return status;
}

static mg_status read_failed(const mg_h5 *h5, const char *object) {
    mg_h5_reason why = mg_h5_why();
    if (strstr(why.text, "hecksum"))
        return mg_h5_error(h5, "the dataset %s is damaged: its checksum does not match its content", object);
    return mg_h5_error(h5, "the dataset %s cannot be read (%s)", object, why.text);
}

mg_status mg_h5_read_data(const mg_h5 *h5, const char *object, mg_h5_type type, int ndim, const ptrdiff_t *dim,
                          void *data) {
    hid_t set = open_data(h5, object);
    if (set < 0) return MG_ERR_FORMAT;
    mg_status status = check_open(h5, object, set, type, ndim, dim);
    if (status == MG_OK && H5Dread(set, mg_h5_memory_type(type), H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0)
        status = read_failed(h5, object);
    H5Dclose(set);
    return status;
}

/* ---- Datasets of other programs ---- */

static const char *float_type(hid_t set) {
    hid_t type = H5Dget_type(set);
    if (type < 0) return "an unknown type";
    size_t bytes = H5Tget_size(type);
    const char *name = H5Tget_class(type) != H5T_FLOAT ? "no floating-point numbers"
                       : bytes == 4                    ? "F32"
                       : bytes == 2                    ? "F16"
                       : bytes == 8                    ? "F64"
                                                       : "unusual floating-point numbers";
    H5Tclose(type);
    return name;
}

mg_status mg_h5_describe_data(const mg_h5 *h5, const char *object, const char **type, int *ndim, ptrdiff_t *dim) {
    hid_t set = open_data(h5, object);
    if (set < 0) return MG_ERR_FORMAT;
    hsize_t size[H5S_MAX_RANK];
    hid_t space = H5Dget_space(set);
    *ndim = space < 0 ? -1 : H5Sget_simple_extent_dims(space, size, NULL);
    for (int i = 0; i < *ndim && i < MG_MAX_DIM; i++) dim[i] = size[i] < PTRDIFF_MAX ? (ptrdiff_t)size[i] : PTRDIFF_MAX;
    *type = float_type(set);
    if (space >= 0) H5Sclose(space);
    H5Dclose(set);
    return *ndim >= 0 ? MG_OK : mg_h5_error(h5, "the dataset %s is damaged: it has no shape", object);
}

static mg_status read_rows(const mg_h5 *h5, const char *object, hid_t set, ptrdiff_t begin, ptrdiff_t end,
                           mg_real *to) {
    hsize_t start[H5S_MAX_RANK] = {(hsize_t)begin}, count[H5S_MAX_RANK];
    hid_t from = H5Dget_space(set);
    int rank = H5Sget_simple_extent_dims(from, count, NULL);
    if (rank < 1 || begin < 0 || end <= begin || (hsize_t)end > count[0]) {
        H5Sclose(from);
        return mg_h5_error(h5, "the dataset %s has no rows %td to %td", object, begin, end);
    }
    count[0] = (hsize_t)(end - begin);
    hid_t memory = H5Screate_simple(rank, count, NULL);
    herr_t read = H5Sselect_hyperslab(from, H5S_SELECT_SET, start, NULL, count, NULL);
    if (read >= 0) read = H5Dread(set, mg_h5_memory_type(MG_H5_FLOAT32), memory, from, H5P_DEFAULT, to);
    mg_status status = read >= 0 ? MG_OK : read_failed(h5, object);
    H5Sclose(memory);
    H5Sclose(from);
    return status;
}

mg_status mg_h5_read_rows(const mg_h5 *h5, const char *object, ptrdiff_t begin, ptrdiff_t end, mg_real *to) {
    hid_t set = open_data(h5, object);
    if (set < 0) return MG_ERR_FORMAT;
    mg_status status = check_storage(h5, object, set);
    if (status == MG_OK) status = read_rows(h5, object, set, begin, end, to);
    H5Dclose(set);
    return status;
}
