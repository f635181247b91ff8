#include "h5_internal.h"

#include <string.h>

mg_status mg_h5_write_group(const mg_h5 *h5, const char *object) {
    hid_t properties = H5Pcreate(H5P_GROUP_CREATE);
    /* Attributes are in the object's header, without timestamps: the same state gives the same bytes. */
    herr_t set = H5Pset_link_creation_order(properties, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
    if (set >= 0) set = H5Pset_attr_phase_change(properties, 64, 32);
    if (set >= 0) set = H5Pset_obj_track_times(properties, false);
    hid_t group = set < 0 ? H5I_INVALID_HID : H5Gcreate2(h5->file, object, H5P_DEFAULT, properties, H5P_DEFAULT);
    mg_status status = group >= 0 ? MG_OK : mg_h5_failed(h5, "cannot make the group %s", object);
    if (group >= 0) H5Gclose(group);
    H5Pclose(properties);
    return status;
}

static mg_status write_attribute(const mg_h5 *h5, const char *object, const char *name, hid_t disk, hid_t memory,
                                 const void *value) {
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t attribute = H5Acreate_by_name(h5->file, object, name, disk, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    herr_t written = attribute < 0 ? -1 : H5Awrite(attribute, memory, value);
    mg_status status = written >= 0 ? MG_OK : mg_h5_failed(h5, "cannot write the attribute %s of %s", name, object);
    if (attribute >= 0 && H5Aclose(attribute) < 0 && status == MG_OK)
        status = mg_h5_failed(h5, "cannot close the attribute %s of %s", name, object);
    H5Sclose(space);
    return status;
}

mg_status mg_h5_write_int(const mg_h5 *h5, const char *object, const char *name, int64_t value) {
    return write_attribute(h5, object, name, H5T_STD_I64LE, H5T_NATIVE_INT64, &value);
}

mg_status mg_h5_write_uint(const mg_h5 *h5, const char *object, const char *name, uint64_t value) {
    return write_attribute(h5, object, name, H5T_STD_U64LE, H5T_NATIVE_UINT64, &value);
}

mg_status mg_h5_write_double(const mg_h5 *h5, const char *object, const char *name, double value) {
    return write_attribute(h5, object, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, &value);
}

mg_status mg_h5_write_text(const mg_h5 *h5, const char *object, const char *name, const char *text) {
    hid_t type = H5Tcopy(H5T_C_S1);
    mg_status status = MG_OK;
    /* Variable length: h5py then reads it as a str, not as bytes. */
    if (H5Tset_size(type, H5T_VARIABLE) < 0 || H5Tset_cset(type, H5T_CSET_UTF8) < 0)
        status = mg_h5_failed(h5, "HDF5 has no type for text");
    else
        status = write_attribute(h5, object, name, type, type, &text);
    H5Tclose(type);
    return status;
}

static hid_t data_properties(int ndim, const hsize_t *dim, size_t element_bytes) {
    enum { CHUNK_BYTES = 1 << 20 };
    hsize_t row_bytes = element_bytes, chunk[MG_MAX_DIM];
    for (int i = 1; i < ndim; i++) row_bytes *= dim[i];
    hsize_t rows = row_bytes < CHUNK_BYTES ? CHUNK_BYTES / row_bytes : 1;
    memcpy(chunk, dim, (size_t)ndim * sizeof *chunk);
    /* As few chunks as that allows, all of one size: a nearly empty last one would still take its full room. */
    hsize_t chunks = (dim[0] + rows - 1) / rows;
    chunk[0] = (dim[0] + chunks - 1) / chunks;
    hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    if (H5Pset_chunk(properties, ndim, chunk) >= 0 && H5Pset_fletcher32(properties) >= 0 &&
        H5Pset_obj_track_times(properties, false) >= 0)
        return properties;
    H5Pclose(properties);
    return H5I_INVALID_HID;
}

mg_status mg_h5_write_data(const mg_h5 *h5, const char *object, mg_h5_type type, int ndim, const ptrdiff_t *dim,
                           const void *data) {
    MG_CHECK(ndim >= 1 && ndim <= MG_MAX_DIM && mg_shape_size(ndim, dim) > 0, "a dataset of %d dimensions", ndim);
    hsize_t size[MG_MAX_DIM];
    for (int i = 0; i < ndim; i++) size[i] = (hsize_t)dim[i];
    hid_t disk = mg_h5_disk_type(type);
    hid_t space = H5Screate_simple(ndim, size, NULL);
    hid_t properties = data_properties(ndim, size, H5Tget_size(disk));
    hid_t set = H5I_INVALID_HID;
    if (space >= 0 && properties >= 0)
        set = H5Dcreate2(h5->file, object, disk, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    herr_t written = set < 0 ? -1 : H5Dwrite(set, mg_h5_memory_type(type), H5S_ALL, H5S_ALL, H5P_DEFAULT, data);
    mg_status status = written >= 0 ? MG_OK : mg_h5_failed(h5, "cannot write the dataset %s", object);
    if (set >= 0 && H5Dclose(set) < 0 && status == MG_OK)
        status = mg_h5_failed(h5, "cannot close the dataset %s", object);
    if (properties >= 0) H5Pclose(properties);
    if (space >= 0) H5Sclose(space);
    mg_status disk_status = mg_h5_check_written(h5); /* a full disk ends it here, not after the whole model */
    return disk_status == MG_OK ? status : disk_status;
}
