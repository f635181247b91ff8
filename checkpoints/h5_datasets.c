/* Replies about datasets. */
#include "h5_internal.h"

#include "heap.h"

#include <string.h>

static mg_status open_data(const mg_h5 *h5, const char *object, hid_t *set) {
    H5O_info_t info;
    if (!mg_h5_is_there(h5, object)) return mg_h5_error(h5, "the dataset %s is missing", object);
    if (H5Oget_info_by_name2(h5->file, object, &info, H5O_INFO_BASIC, H5P_DEFAULT) >= 0 &&
        info.type != H5O_TYPE_DATASET)
        return mg_h5_error(h5, "%s must be a dataset", object);
    *set = H5Dopen2(h5->file, object, H5P_DEFAULT);
    return *set >= 0 ? MG_OK : mg_h5_failed(h5, "the dataset %s is damaged", object);
}

static mg_status check_type(const mg_h5 *h5, const char *object, hid_t set, mg_h5_type type) {
    static const char *const names[] = {"little-endian float32", "uint8", "little-endian int64"};
    hid_t found = H5Dget_type(set);
    bool same = found >= 0 && H5Tequal(found, mg_h5_disk_type(type)) > 0;
    if (found >= 0) H5Tclose(found);
    return same ? MG_OK : mg_h5_error(h5, "the dataset %s does not hold %s numbers", object, names[type]);
}

/* The shape of an open dataset: the rank, -1 when there is none, and the first MG_MAX_DIM sizes. */
static int read_shape(hid_t set, ptrdiff_t *dim) {
    hsize_t size[H5S_MAX_RANK];
    hid_t space = H5Dget_space(set);
    int rank = space < 0 ? -1 : H5Sget_simple_extent_dims(space, size, NULL);
    if (space >= 0) H5Sclose(space);
    for (int i = 0; i < rank && i < MG_MAX_DIM; i++) dim[i] = size[i] < PTRDIFF_MAX ? (ptrdiff_t)size[i] : PTRDIFF_MAX;
    return rank;
}

static mg_status check_shape(const mg_h5 *h5, const mg_h5_question *q, hid_t set) {
    ptrdiff_t found[MG_MAX_DIM];
    int rank = read_shape(set, found);
    if (rank == q->ndim && memcmp(found, q->dim, (size_t)q->ndim * sizeof *found) == 0) return MG_OK;
    return mg_h5_error(h5, "the dataset %s has the shape %s, but the configuration needs %s", q->object,
                       rank < 0 || rank > MG_MAX_DIM ? "of something else" : mg_dims(rank, found).text,
                       mg_dims(q->ndim, q->dim).text);
}

static mg_status check_open(const mg_h5 *h5, const mg_h5_question *q, hid_t set) {
    mg_status status = check_type(h5, q->object, set, q->type);
    if (status == MG_OK) status = check_shape(h5, q, set);
    if (status == MG_OK) status = mg_h5_check_storage(h5, q->object, set);
    return status;
}

mg_status mg_h5_reply_check(const mg_h5 *h5, const mg_h5_question *q, mg_h5_answer *answer) {
    (void)answer; /* there is nothing to say but the status */
    hid_t set;
    mg_status status = open_data(h5, q->object, &set);
    if (status != MG_OK) return status;
    status = check_open(h5, q, set);
    H5Dclose(set);
    return status;
}

mg_status mg_h5_reply_length(const mg_h5 *h5, const mg_h5_question *q, mg_h5_answer *answer) {
    hid_t set;
    mg_status status = open_data(h5, q->object, &set);
    if (status != MG_OK) return status;
    ptrdiff_t dim[MG_MAX_DIM];
    status = check_type(h5, q->object, set, q->type);
    if (status == MG_OK && read_shape(set, dim) != 1)
        status = mg_h5_error(h5, "the dataset %s must have one dimension", q->object);
    if (status == MG_OK && dim[0] < 1) status = mg_h5_error(h5, "the dataset %s is empty", q->object);
    if (status == MG_OK) status = mg_h5_check_storage(h5, q->object, set);
    H5Dclose(set);
    return status == MG_OK ? answer->take(answer, &dim[0], sizeof dim[0]) : status;
}

/* ---- Content ---- */

/* How many rows are read at once: a few MB of whole chunks, so that none is read twice. 0: one row is too long. */
static hsize_t rows_at_once(hid_t set, hsize_t row_bytes) {
    enum { USUAL = 1 << 20, MOST = 1 << 28 };
    hsize_t chunk[H5S_MAX_RANK] = {1};
    hid_t properties = H5Dget_create_plist(set);
    if (H5Pget_layout(properties) == H5D_CHUNKED) H5Pget_chunk(properties, H5S_MAX_RANK, chunk);
    H5Pclose(properties);
    if (row_bytes > MOST) return 0;
    if (chunk[0] > MOST / row_bytes) return MOST / row_bytes;
    hsize_t chunks = USUAL / (chunk[0] * row_bytes);
    return chunks > 1 ? chunks * chunk[0] : chunk[0];
}

static mg_status read_failed(const mg_h5 *h5, const char *object) {
    if (strstr(mg_h5_why().text, "hecksum"))
        return mg_h5_error(h5, "the dataset %s is damaged: its checksum does not match its content", object);
    return mg_h5_failed(h5, "the dataset %s cannot be read", object);
}

/* Rows begin to end - 1 to `to`. */
static mg_status read_block(const mg_h5 *h5, const mg_h5_question *q, hid_t set, hsize_t begin, hsize_t end, void *to) {
    hsize_t start[MG_MAX_DIM] = {begin}, count[MG_MAX_DIM] = {end - begin};
    for (int i = 1; i < q->ndim; i++) count[i] = (hsize_t)q->dim[i];
    hid_t from = H5Dget_space(set), memory = H5Screate_simple(q->ndim, count, NULL);
    herr_t read = H5Sselect_hyperslab(from, H5S_SELECT_SET, start, NULL, count, NULL);
    if (read >= 0) read = H5Dread(set, mg_h5_memory_type(q->type), memory, from, H5P_DEFAULT, to);
    mg_status status = read >= 0 ? MG_OK : read_failed(h5, q->object);
    H5Sclose(memory);
    H5Sclose(from);
    return status;
}

/* The requested rows, some at a time. */
static mg_status give_rows(const mg_h5 *h5, const mg_h5_question *q, hid_t set, mg_h5_answer *answer) {
    if (q->ndim < 1 || q->begin < 0 || q->end <= q->begin || q->end > q->dim[0])
        return mg_h5_error(h5, "the dataset %s has no rows %td to %td", q->object, q->begin, q->end);
    hsize_t begin = (hsize_t)q->begin, end = (hsize_t)q->end, row_bytes = H5Tget_size(mg_h5_memory_type(q->type));
    for (int i = 1; i < q->ndim; i++) row_bytes *= (hsize_t)q->dim[i]; /* stored, so it does not overflow */
    hsize_t step = rows_at_once(set, row_bytes);
    if (step == 0) return mg_h5_error(h5, "the dataset %s has rows that are too long to read", q->object);
    if (step > end - begin) step = end - begin;
    void *block = mg_alloc((size_t)step, (size_t)row_bytes, "a part of a dataset", h5->error);
    mg_status status = block ? MG_OK : MG_ERR_MEMORY;
    for (hsize_t next; begin < end && status == MG_OK; begin = next) {
        next = end - begin < step ? end : begin + step;
        status = read_block(h5, q, set, begin, next, block);
        if (status == MG_OK) status = answer->take(answer, block, (size_t)((next - begin) * row_bytes));
    }
    mg_free(block);
    return status;
}

mg_status mg_h5_reply_rows(const mg_h5 *h5, const mg_h5_question *q, mg_h5_answer *answer) {
    hid_t set;
    mg_status status = open_data(h5, q->object, &set);
    if (status != MG_OK) return status;
    status = check_open(h5, q, set);
    if (status == MG_OK) status = give_rows(h5, q, set, answer);
    H5Dclose(set);
    return status;
}

/* ---- Datasets of other programs ---- */

enum { TYPE_F16, TYPE_F32, TYPE_F64, TYPE_UNUSUAL, TYPE_NO_FLOATS, TYPE_UNKNOWN };
const char *const mg_h5_type_names[MG_H5_TYPE_NAMES] = {
    "F16", "F32", "F64", "unusual floating-point numbers", "no floating-point numbers", "an unknown type"};

static int float_type(hid_t set) {
    hid_t type = H5Dget_type(set);
    if (type < 0) return TYPE_UNKNOWN;
    size_t bytes = H5Tget_size(type);
    int found = H5Tget_class(type) != H5T_FLOAT ? TYPE_NO_FLOATS
                : bytes == 2                    ? TYPE_F16
                : bytes == 4                    ? TYPE_F32
                : bytes == 8                    ? TYPE_F64
                                                : TYPE_UNUSUAL;
    H5Tclose(type);
    return found;
}

mg_status mg_h5_reply_describe(const mg_h5 *h5, const mg_h5_question *q, mg_h5_answer *answer) {
    hid_t set;
    mg_status status = open_data(h5, q->object, &set);
    if (status != MG_OK) return status;
    mg_h5_description found = {0};
    found.type = float_type(set);
    found.ndim = read_shape(set, found.dim);
    H5Dclose(set);
    if (found.ndim < 0) return mg_h5_error(h5, "the dataset %s is damaged: it has no shape", q->object);
    return answer->take(answer, &found, sizeof found);
}

mg_status mg_h5_reply_float_rows(const mg_h5 *h5, const mg_h5_question *q, mg_h5_answer *answer) {
    hid_t set;
    mg_status status = open_data(h5, q->object, &set);
    if (status != MG_OK) return status;
    if (float_type(set) > TYPE_F64)
        status = mg_h5_error(h5, "the dataset %s does not hold floating-point numbers", q->object);
    if (status == MG_OK) status = check_shape(h5, q, set);
    if (status == MG_OK) status = mg_h5_check_storage(h5, q->object, set);
    if (status == MG_OK) status = give_rows(h5, q, set, answer);
    H5Dclose(set);
    return status;
}

/* ---- All of them ---- */

typedef struct walk {
    const mg_h5 *h5;
    mg_h5_answer *answer;
    size_t room;
    mg_status status;
} walk;

/* Called once per object that hard links reach. HDF5 takes cubic time for nested groups. */
static herr_t visit(hid_t file, const char *name, const H5O_info_t *info, void *user) {
    enum { DEEPEST = 16 };
    (void)file;
    walk *w = user;
    int depth = 1;
    size_t length = strlen(name) + 2; /* a slash before it, a 0 after it */
    for (const char *c = name; *c; c++) depth += *c == '/';
    if (depth > DEEPEST)
        w->status = mg_h5_error(w->h5, "has groups nested more than %d deep: it is not a model", DEEPEST);
    else if (info->type == H5O_TYPE_DATASET && length > sizeof((mg_h5_question *)0)->object)
        w->status = mg_h5_error(w->h5, "holds a dataset whose path is longer than %zu bytes",
                                sizeof((mg_h5_question *)0)->object - 1);
    else if (info->type == H5O_TYPE_DATASET && length > w->room)
        w->status = mg_h5_error(w->h5, "holds too many datasets: it is not a model");
    else if (info->type == H5O_TYPE_DATASET) {
        w->room -= length;
        w->status = w->answer->take(w->answer, "/", 1);
        if (w->status == MG_OK) w->status = w->answer->take(w->answer, name, length - 1);
    }
    return w->status != MG_OK;
}

mg_status mg_h5_reply_list(const mg_h5 *h5, const mg_h5_question *q, mg_h5_answer *answer) {
    walk w = {h5, answer, (size_t)q->end, MG_OK};
    if (H5Ovisit2(h5->file, H5_INDEX_NAME, H5_ITER_INC, visit, &w, H5O_INFO_BASIC) < 0 && w.status == MG_OK)
        return mg_h5_failed(h5, "is damaged: its objects cannot be listed");
    return w.status;
}
