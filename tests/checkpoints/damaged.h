/* A good checkpoint, and a copy of it that a test damages. */
#ifndef MASKGRAD_TESTS_DAMAGED_H
#define MASKGRAD_TESTS_DAMAGED_H

#include "fixture.h"

#include <hdf5.h>

static fixture_name good, bad;

/* The group's setup. */
static int make_good(void **state) {
    if (fixture_setup(state) != 0) return -1;
    good = in_folder("good.h5");
    bad = in_folder("bad.h5");
    mg_checkpoint c;
    fixture_small(&c);
    assert_ok(mg_checkpoint_save(good.path, &c, &fixture_error));
    mg_checkpoint_free(&c);
    return 0;
}

/* A copy of the good file, without its seal, open for changes. */
static hid_t open_copy(void) {
    size_t length;
    unsigned char *bytes = read_file(good.path, &length);
    memset(bytes, 0, 512);
    write_file(bad.path, bytes, length);
    free(bytes);
    hid_t h5 = H5Fopen(bad.path, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(h5 >= 0);
    return h5;
}

#endif
