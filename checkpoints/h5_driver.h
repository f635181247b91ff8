/* How HDF5 accesses our files: through an open descriptor, never by name. */
#ifndef MASKGRAD_H5_DRIVER_H
#define MASKGRAD_H5_DRIVER_H

#include <hdf5.h>
#include <stdbool.h>

/* HDF5 1.10 crashes when the disk fills up under a file it writes: when writing, this driver accepts everything and
 * remembers the first failure. It opens once, so that no link or layout in a file leads into another one. */
typedef struct mg_h5_driver {
    H5FD_t base; /* first: HDF5 knows only this */
    int fd;
    bool writes, is_open;
    int failure; /* errno of the first write that failed; nothing is written after it */
    haddr_t allocated, end;
} mg_h5_driver;

/* Make HDF5 open files through *driver, whose fd, writes and (when reading) end are filled in. */
herr_t mg_h5_driver_use(hid_t access, mg_h5_driver *driver);

#endif
