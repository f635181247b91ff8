/* Where a dataset's numbers are stored. A chunk that is missing, or that a damaged index no longer finds, would read as
 * zeros; a shape can claim more than any machine holds; a filter decides how much memory a few bytes become. */
#include "h5_internal.h"

#include "heap.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_CHUNKS = 1 << 14,
    LARGEST_CHUNK = 1 << 28, /* bytes, inflated */
    LARGEST_RATIO = 1032,    /* of inflated to deflated size: the format allows no more */
    CHECKSUM_BYTES = 4
};

typedef struct chunked {
    int rank;
    hsize_t size[H5S_MAX_RANK], chunk[H5S_MAX_RANK], across[H5S_MAX_RANK]; /* chunks along each dimension */
    hsize_t chunk_bytes, n;
    int filters, deflate, checksum; /* how many, and at which place of the pipeline, or -1 */
} chunked;

static const char *filter_name(H5Z_filter_t filter) {
    return filter == H5Z_FILTER_SZIP          ? "szip"
           : filter == H5Z_FILTER_NBIT        ? "n-bit"
           : filter == H5Z_FILTER_SCALEOFFSET ? "scale-offset"
                                              : "unknown here";
}

static mg_status read_filters(const mg_h5 *h5, const char *object, hid_t properties, chunked *c) {
    int shuffle = -1;
    c->deflate = c->checksum = -1;
    c->filters = H5Pget_nfilters(properties);
    for (int i = 0; i < c->filters; i++) {
        size_t n = 0;
        H5Z_filter_t filter = H5Pget_filter2(properties, (unsigned)i, NULL, &n, NULL, 0, NULL, NULL);
        int *place = filter == H5Z_FILTER_DEFLATE      ? &c->deflate
                     : filter == H5Z_FILTER_FLETCHER32 ? &c->checksum
                     : filter == H5Z_FILTER_SHUFFLE    ? &shuffle
                                                       : NULL;
        if (!place)
            return mg_h5_error(h5,
                               "the dataset %s is stored with filter %d (%s): only deflate, shuffle and Fletcher32 "
                               "are read",
                               object, (int)filter, filter_name(filter));
        if (*place >= 0) return mg_h5_error(h5, "the dataset %s is stored with filter %d twice", object, (int)filter);
        *place = i;
    }
    return MG_OK;
}

static mg_status read_chunking(const mg_h5 *h5, const char *object, hid_t set, hid_t properties, chunked *c) {
    hid_t space = H5Dget_space(set), type = H5Dget_type(set);
    hsize_t stored = 0;
    c->rank = H5Sget_simple_extent_dims(space, c->size, NULL);
    c->chunk_bytes = H5Tget_size(type);
    bool known = c->rank > 0 && H5Pget_chunk(properties, H5S_MAX_RANK, c->chunk) == c->rank &&
                 H5Dget_num_chunks(set, space, &stored) >= 0 && c->chunk_bytes > 0;
    H5Tclose(type);
    H5Sclose(space);
    if (!known) return mg_h5_failed(h5, "the dataset %s is damaged", object);
    c->n = 1;
    for (int i = 0; i < c->rank; i++) {
        if (c->chunk[i] == 0 || c->chunk[i] > LARGEST_CHUNK / c->chunk_bytes)
            return mg_h5_error(h5, "the dataset %s has chunks of more than %d bytes", object, LARGEST_CHUNK);
        c->chunk_bytes *= c->chunk[i];
        c->across[i] = c->size[i] / c->chunk[i] + (c->size[i] % c->chunk[i] != 0);
        if (c->across[i] > 0 && c->n > PTRDIFF_MAX / c->across[i])
            return mg_h5_error(h5, "the dataset %s is incomplete: not all of it was written", object);
        c->n *= c->across[i];
    }
    if (stored != c->n) return mg_h5_error(h5, "the dataset %s is incomplete: not all of it was written", object);
    if (c->n > MOST_CHUNKS)
        return mg_h5_error(h5, "the dataset %s has %" PRIu64 " chunks; the limit is %d", object, (uint64_t)c->n,
                           MOST_CHUNKS);
    return MG_OK;
}

typedef struct extent {
    haddr_t begin, end; /* in the file */
} extent;

static int by_address(const void *a, const void *b) {
    const extent *s = a, *t = b;
    return s->begin < t->begin ? -1 : s->begin > t->begin;
}

/* Without deflate, the number of bytes is known; with it, the most that they can become. HDF5 reads past the end of a
 * shorter chunk. */
static bool has_right_size(const chunked *c, unsigned mask, hsize_t stored) {
    hsize_t checksum = c->checksum >= 0 ? CHECKSUM_BYTES : 0;
    if (c->checksum >= 0 && (mask >> c->checksum & 1)) return false; /* the filter was left out */
    if (c->deflate < 0 || (mask >> c->deflate & 1)) return stored == c->chunk_bytes + checksum;
    return stored > 0 && c->chunk_bytes / LARGEST_RATIO <= stored;
}

/* The chunk's place, counted in the order of the rows; n if it has none. */
static hsize_t place_of(const chunked *c, const hsize_t *offset) {
    hsize_t place = 0;
    for (int i = 0; i < c->rank; i++) {
        if (offset[i] % c->chunk[i] != 0 || offset[i] >= c->size[i]) return c->n;
        place = place * c->across[i] + offset[i] / c->chunk[i];
    }
    return place;
}

/* Chunk number i of the index: has the right size, is in the file, has its own place, and is found there. */
static bool is_chunk_right(const mg_h5 *h5, hid_t set, hid_t space, const chunked *c, hsize_t i, bool *taken,
                           extent *where) {
    hsize_t offset[H5S_MAX_RANK], stored = 0, found = 0;
    unsigned mask = 0;
    haddr_t address = HADDR_UNDEF;
    if (H5Dget_chunk_info(set, space, i, offset, &mask, &address, &stored) < 0) return false;
    hsize_t place = place_of(c, offset);
    if (place >= c->n || taken[place] || !has_right_size(c, mask, stored)) return false;
    taken[place] = true;
    if (address > h5->driver.end || stored > h5->driver.end - address) return false;
    where->begin = address;
    where->end = address + stored;
    return H5Dget_chunk_storage_size(set, offset, &found) >= 0 && found == stored;
}

static bool are_chunks_right(const mg_h5 *h5, hid_t set, const chunked *c, bool *taken, extent *extents) {
    hid_t space = H5Dget_space(set);
    bool right = true;
    for (hsize_t i = 0; i < c->n && right; i++) right = is_chunk_right(h5, set, space, c, i, taken, &extents[i]);
    H5Sclose(space);
    qsort(extents, right ? (size_t)c->n : 0, sizeof *extents, by_address);
    for (hsize_t i = 1; i < c->n && right; i++) right = extents[i].begin >= extents[i - 1].end;
    return right;
}

static mg_status check_chunks(const mg_h5 *h5, const char *object, hid_t set, hid_t properties) {
    chunked c = {0};
    mg_status status = read_filters(h5, object, properties, &c);
    if (status == MG_OK) status = read_chunking(h5, object, set, properties, &c);
    if (status != MG_OK) return status;
    bool *taken = mg_alloc_zero((size_t)c.n, sizeof *taken, "the places of chunks", h5->error);
    extent *extents = mg_alloc((size_t)c.n, sizeof *extents, "the places of chunks", h5->error);
    if (!taken || !extents)
        status = MG_ERR_MEMORY;
    else if (!are_chunks_right(h5, set, &c, taken, extents))
        status = mg_h5_error(h5, "the dataset %s is damaged: the index of its chunks is wrong", object);
    mg_free(extents);
    mg_free(taken);
    return status;
}

/* All in one place, in the file or in the dataset's header. */
static mg_status check_contiguous(const mg_h5 *h5, const char *object, hid_t set) {
    hid_t space = H5Dget_space(set), type = H5Dget_type(set);
    hssize_t n = H5Sget_simple_extent_npoints(space);
    size_t size = H5Tget_size(type);
    hsize_t stored = H5Dget_storage_size(set);
    H5D_space_status_t how;
    bool allocated = H5Dget_space_status(set, &how) >= 0 && how == H5D_SPACE_STATUS_ALLOCATED;
    H5Tclose(type);
    H5Sclose(space);
    if (allocated && n > 0 && size > 0 && stored / size == (hsize_t)n && stored % size == 0 && stored <= h5->driver.end)
        return MG_OK;
    return mg_h5_error(h5, "the dataset %s is incomplete: not all of it was written", object);
}

mg_status mg_h5_check_storage(const mg_h5 *h5, const char *object, hid_t set) {
    hid_t properties = H5Dget_create_plist(set);
    if (properties < 0) return mg_h5_failed(h5, "the dataset %s is damaged", object);
    H5D_layout_t layout = H5Pget_layout(properties);
    mg_status status = MG_OK;
    if (layout == H5D_VIRTUAL || H5Pget_external_count(properties) != 0)
        status = mg_h5_error(h5, "the dataset %s lies outside the file", object);
    else if (layout == H5D_CHUNKED)
        status = check_chunks(h5, object, set, properties);
    else
        status = check_contiguous(h5, object, set);
    H5Pclose(properties);
    return status;
}
