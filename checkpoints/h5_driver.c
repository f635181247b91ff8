#include "h5_driver.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static mg_h5_driver *driver_of(H5FD_t *file) {
    return (mg_h5_driver *)file; /* its first member */
}

static const mg_h5_driver *driver_of_const(const H5FD_t *file) {
    return (const mg_h5_driver *)file;
}

static H5FD_t *open_file(const char *name, unsigned flags, hid_t access, haddr_t maximum) {
    (void)name;
    (void)flags;
    (void)maximum;
    mg_h5_driver *const *driver = H5Pget_driver_info(access);
    if (!driver || (*driver)->is_open) return NULL;
    (*driver)->is_open = true;
    return &(*driver)->base;
}

static herr_t close_file(H5FD_t *file) {
    driver_of(file)->is_open = false; /* the descriptor is the caller's */
    return 0;
}

/* As in HDF5's own memory driver. */
static herr_t query(const H5FD_t *file, unsigned long *flags) {
    (void)file;
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
             H5FD_FEAT_AGGREGATE_SMALLDATA;
    return 0;
}

static haddr_t get_allocated(const H5FD_t *file, H5FD_mem_t type) {
    (void)type;
    return driver_of_const(file)->allocated;
}

static herr_t set_allocated(H5FD_t *file, H5FD_mem_t type, haddr_t address) {
    (void)type;
    driver_of(file)->allocated = address;
    return 0;
}

static haddr_t get_end(const H5FD_t *file, H5FD_mem_t type) {
    (void)type;
    return driver_of_const(file)->end;
}

/* What is not there, or not yet, is zero, as in HDF5's own file driver. */
static herr_t read_at(H5FD_t *file, H5FD_mem_t type, hid_t transfer, haddr_t address, size_t size, void *buffer) {
    (void)type;
    (void)transfer;
    mg_h5_driver *driver = driver_of(file);
    unsigned char *to = buffer;
    while (size > 0) {
        ssize_t n = pread(driver->fd, to, size, (off_t)address);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && !driver->writes) return -1;
        if (n < 0 && !driver->failure) driver->failure = errno;
        if (n <= 0) break;
        to += n;
        address += (haddr_t)n;
        size -= (size_t)n;
    }
    memset(to, 0, size);
    return 0;
}

static herr_t write_at(H5FD_t *file, H5FD_mem_t type, hid_t transfer, haddr_t address, size_t size,
                       const void *buffer) {
    (void)type;
    (void)transfer;
    mg_h5_driver *driver = driver_of(file);
    const unsigned char *from = buffer;
    if (address + size > driver->end) driver->end = address + size;
    while (size > 0 && !driver->failure) {
        ssize_t n = pwrite(driver->fd, from, size, (off_t)address);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            driver->failure = n < 0 ? errno : ENOSPC;
            break;
        }
        from += n;
        address += (haddr_t)n;
        size -= (size_t)n;
    }
    return 0;
}

static herr_t truncate_file(H5FD_t *file, hid_t transfer, hbool_t closing) {
    (void)transfer;
    (void)closing;
    mg_h5_driver *driver = driver_of(file);
    if (!driver->writes) return 0;
    if (!driver->failure && ftruncate(driver->fd, (off_t)driver->allocated) != 0) driver->failure = errno;
    driver->end = driver->allocated;
    return 0;
}

static const H5FD_class_t driver_class = {
#if H5_VERSION_GE(1, 14, 0)
    .version = H5FD_CLASS_VERSION,
    .value = 600, /* the numbers from 512 on are for experiments */
#endif
    .name = "maskgrad",
    .maxaddr = INT64_MAX,
    .fc_degree = H5F_CLOSE_STRONG,
    .fapl_size = sizeof(mg_h5_driver *),
    .open = open_file,
    .close = close_file,
    .query = query,
    .get_eoa = get_allocated,
    .set_eoa = set_allocated,
    .get_eof = get_end,
    .read = read_at,
    .write = write_at,
    .truncate = truncate_file,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

herr_t mg_h5_driver_use(hid_t access, mg_h5_driver *driver) {
    /* Registered once, for the program's life: if a driver is unregistered before its last file closes, HDF5 1.10.8
     * reads it after it is freed. */
    static hid_t registered = H5I_INVALID_HID;
    if (registered < 0 || H5Iget_type(registered) != H5I_VFL) registered = H5FDregister(&driver_class);
    return H5Pset_driver(access, registered, &driver);
}
