/* Files made to crash, hang or flood their reader. Read by a child process, each is a sentence, soon. */
#include "damaged.h"
#include "file_limits.h"
#include "gpt2_import.h"
#include "guard.h"
#include "h5.h"
#include "regular_file.h"
#include "vocab_json.h"

#include <sys/resource.h>
#include <sys/stat.h>

static fixture_name keras;

static int setup(void **state) {
    if (make_good(state) != 0) return -1;
    mg_set_file_guard(true);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    keras = in_folder("tf_model.h5");
    static const char config[] = "{\"model_type\":\"gpt2\",\"n_layer\":1,\"n_head\":2,\"n_embd\":4,\"n_positions\":3,"
                                 "\"vocab_size\":5}";
    write_file(in_folder("config.json").path, config, strlen(config));
    return 0;
}

/* Seconds of processor time that this process and its children have taken: a busy machine does not count. */
static double taken(void) {
    double seconds = 0;
    for (int i = 0; i < 2; i++) {
        struct rusage usage;
        getrusage(i ? RUSAGE_CHILDREN : RUSAGE_SELF, &usage);
        seconds += (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                   1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    }
    return seconds;
}

/* bad.h5 is refused within seconds. */
static void assert_refused(const char *why) {
    mg_checkpoint loaded;
    memset(&fixture_error, 0, sizeof fixture_error);
    double begin = taken();
    assert_int_equal(mg_checkpoint_load(&loaded, bad.path, true, &fixture_error), MG_ERR_FORMAT);
    assert_less(taken() - begin, 20);
    assert_says(fixture_error.message, why);
    assert_says(fixture_error.message, bad.path);
    assert_null(loaded.gpt);
}

static void assert_import_refused(mg_status expected, const char *why) {
    mg_checkpoint loaded;
    memset(&fixture_error, 0, sizeof fixture_error);
    double begin = taken();
    assert_int_equal(mg_gpt2_import(&loaded, fixture_folder, &(mg_import_options){0}, &fixture_error), expected);
    assert_less(taken() - begin, 20);
    assert_says(fixture_error.message, why);
    assert_null(loaded.gpt);
}

static void finish(hid_t h5, const char *why) {
    assert_true(H5Fclose(h5) >= 0);
    assert_refused(why);
}

static hid_t new_file(const char *path) {
    hid_t h5 = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(h5 >= 0);
    return h5;
}

/* ---- What crashes HDF5 1.10.8, or keeps it busy ---- */

static void a_compound_with_an_array_of_nothing(void **state) {
    (void)state;
    hid_t h5 = new_file(bad.path);
    hid_t array = H5Tarray_create2(H5T_NATIVE_INT, 1, &(hsize_t){7}), compound = H5Tcreate(H5T_COMPOUND, 32);
    H5Tinsert(compound, "m", 0, array);
    H5Tinsert(compound, "z", 28, H5T_NATIVE_INT);
    hid_t space = H5Screate(H5S_SCALAR);
    H5Aclose(H5Acreate2(h5, "format", compound, space, H5P_DEFAULT, H5P_DEFAULT));
    H5Sclose(space);
    H5Tclose(compound);
    H5Tclose(array);
    H5Fclose(h5);
    /* The array's size, its rank and its extent, as they are stored: a size of 0 divides by zero. */
    static const unsigned char stored[] = {28, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0};
    size_t length, at = 0;
    unsigned char *bytes = read_file(bad.path, &length);
    while (at + sizeof stored < length && memcmp(bytes + at, stored, sizeof stored) != 0) at++;
    assert_true(at + sizeof stored < length);
    bytes[at] = 0;
    write_file(bad.path, bytes, length);
    free(bytes);
    assert_refused(bad.path); /* a crash in one version of HDF5, its own error in another */
}

static void nest(hid_t h5, int depth) {
    hid_t group = H5Gopen2(h5, "/", H5P_DEFAULT);
    for (int i = 0; i < depth; i++) {
        hid_t inner = H5Gcreate2(group, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        H5Gclose(group);
        group = inner;
    }
    H5Gclose(group);
}

static void groups_in_groups(void **state) {
    (void)state;
    hid_t h5 = new_file(keras.path);
    nest(h5, 5000);
    H5Fclose(h5);
    assert_import_refused(MG_ERR_FORMAT, "has groups nested more than 16 deep");
    h5 = new_file(keras.path);
    nest(h5, 16);
    H5Fclose(h5);
    assert_import_refused(MG_ERR_FORMAT, "wte and 15 more are missing");
}

static void more_names_than_a_model_has(void **state) {
    (void)state;
    hid_t h5 = new_file(keras.path), space = H5Screate(H5S_SCALAR);
    char name[400];
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "%0*d", 240, i);
        H5Dclose(H5Dcreate2(h5, name, H5T_NATIVE_INT8, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    }
    H5Fclose(h5);
    assert_import_refused(MG_ERR_FORMAT, "holds too many datasets");
    h5 = new_file(keras.path);
    snprintf(name, sizeof name, "%0*d", 300, 1);
    H5Dclose(H5Dcreate2(h5, name, H5T_NATIVE_INT8, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Sclose(space);
    H5Fclose(h5);
    assert_import_refused(MG_ERR_FORMAT, "a dataset whose path is longer than 255 bytes");
}

/* ---- Links ---- */

static void links_that_lead_in_circles_or_out(void **state) {
    (void)state;
    hid_t h5 = new_file(keras.path);
    nest(h5, 3);
    H5Lcreate_hard(h5, "/", h5, "/g/g/root", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/soft", h5, "/soft", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_external("/dev/zero", "/x", h5, "/out", H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(h5);
    assert_import_refused(MG_ERR_FORMAT, "wte and 15 more are missing");

    static const char *const targets[] = {"/model/wte", "/model/wpe", "/absent"};
    for (int i = 0; i < 3; i++) {
        h5 = open_copy();
        H5Ldelete(h5, "/model/wte", H5P_DEFAULT);
        H5Lcreate_soft(targets[i], h5, "/model/wte", H5P_DEFAULT, H5P_DEFAULT);
        finish(h5, "/model/wte is missing");
    }
    h5 = open_copy();
    H5Ldelete(h5, "/model/wte", H5P_DEFAULT);
    H5Lcreate_external(good.path, "/model/wte", h5, "/model/wte", H5P_DEFAULT, H5P_DEFAULT);
    finish(h5, "/model/wte is missing");
    h5 = open_copy();
    H5Lcreate_hard(h5, "/", h5, "/model/root", H5P_DEFAULT, H5P_DEFAULT);
    finish(h5, "/model holds more than");
}

/* ---- Where numbers lie ---- */

/* /model/wte, five rows of four, written again: with this type, shape and storage; *data, if any, is written. */
static hid_t replace(hid_t type, int rank, const hsize_t *dim, hid_t properties, const void *data) {
    hid_t h5 = open_copy();
    H5Ldelete(h5, "/model/wte", H5P_DEFAULT);
    bool is_chunked = properties != H5P_DEFAULT && H5Pget_layout(properties) == H5D_CHUNKED;
    const hsize_t unlimited[] = {H5S_UNLIMITED, H5S_UNLIMITED}; /* or a chunk may not be larger than the whole */
    hid_t space = H5Screate_simple(rank, dim, is_chunked ? unlimited : NULL);
    hid_t set = H5Dcreate2(h5, "/model/wte", type, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    assert_true(set >= 0);
    if (data) assert_true(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
    H5Dclose(set);
    H5Sclose(space);
    if (properties != H5P_DEFAULT) H5Pclose(properties);
    return h5;
}

static const hsize_t five_by_four[] = {5, 4};
static const float zeros[20];

static hid_t chunked(hsize_t rows, hsize_t columns) {
    hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    assert_true(H5Pset_chunk(properties, 2, (hsize_t[]){rows, columns}) >= 0);
    return properties;
}

static void data_outside_the_file(void **state) {
    (void)state;
    hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_external(properties, "/dev/zero", 0, sizeof zeros);
    finish(replace(H5T_IEEE_F32LE, 2, five_by_four, properties, NULL), "/model/wte lies outside the file");
    hid_t space = H5Screate_simple(2, five_by_four, NULL);
    properties = H5Pcreate(H5P_DATASET_CREATE);
    assert_true(H5Pset_virtual(properties, space, good.path, "/model/wte", space) >= 0);
    H5Sclose(space);
    finish(replace(H5T_IEEE_F32LE, 2, five_by_four, properties, NULL), "/model/wte lies outside the file");
}

static void filters(void **state) {
    (void)state;
    hid_t properties = chunked(5, 4);
    H5Pset_scaleoffset(properties, H5Z_SO_FLOAT_DSCALE, 3);
    finish(replace(H5T_IEEE_F32LE, 2, five_by_four, properties, zeros),
           "/model/wte is stored with filter 6 (scale-offset): only deflate, shuffle and Fletcher32 are read");
    properties = chunked(5, 4);
    H5Pset_nbit(properties);
    finish(replace(H5T_IEEE_F32LE, 2, five_by_four, properties, zeros), "filter 5 (n-bit)");
    properties = chunked(5, 4);
    H5Pset_filter(properties, 32015, H5Z_FLAG_OPTIONAL, 0, NULL);
    finish(replace(H5T_IEEE_F32LE, 2, five_by_four, properties, zeros), "filter 32015 (unknown here)");
    properties = chunked(5, 4);
    H5Pset_deflate(properties, 1);
    H5Pset_deflate(properties, 1);
    finish(replace(H5T_IEEE_F32LE, 2, five_by_four, properties, zeros), "filter 1 twice");

    /* Those that are read, with a chunk that hangs over the edge. */
    properties = chunked(3, 3);
    H5Pset_shuffle(properties);
    H5Pset_deflate(properties, 9);
    H5Pset_fletcher32(properties);
    H5Fclose(replace(H5T_IEEE_F32LE, 2, five_by_four, properties, zeros));
    mg_checkpoint c;
    assert_ok(mg_checkpoint_load(&c, bad.path, true, &fixture_error));
    for (int i = 0; i < 20; i++) assert_true(mg_params_find(mg_gpt_params(c.gpt), "wte")->tensor.data[i] == 0);
    mg_checkpoint_free(&c);
}

static void types(void **state) {
    (void)state;
    hid_t lists = H5Tvlen_create(H5T_IEEE_F32LE), texts = H5Tcopy(H5T_C_S1);
    H5Tset_size(texts, H5T_VARIABLE);
    finish(replace(lists, 2, five_by_four, H5P_DEFAULT, NULL), "does not hold little-endian float32");
    finish(replace(texts, 2, five_by_four, H5P_DEFAULT, NULL), "does not hold little-endian float32");
    finish(replace(H5T_STD_REF_OBJ, 2, five_by_four, H5P_DEFAULT, NULL), "does not hold little-endian float32");
    H5Tclose(texts);
    H5Tclose(lists);
}

/* A chunk of `bytes`, stored as `stored` bytes that need not be what they claim. */
static hid_t replace_by_chunk(hsize_t rows, int deflate, uint32_t mask, size_t stored) {
    static char nothing[1000];
    hid_t properties = chunked(rows, 4);
    if (deflate) H5Pset_deflate(properties, 9);
    H5Pset_fletcher32(properties);
    hid_t h5 = replace(H5T_IEEE_F32LE, 2, five_by_four, properties, NULL);
    hid_t set = H5Dopen2(h5, "/model/wte", H5P_DEFAULT);
    assert_true(H5Dwrite_chunk(set, H5P_DEFAULT, mask, (hsize_t[]){0, 0}, stored, nothing) >= 0);
    H5Dclose(set);
    return h5;
}

static void claims(void **state) {
    (void)state;
    const hsize_t enormous[] = {(hsize_t)1 << 40, 4};
    finish(replace(H5T_IEEE_F32LE, 2, enormous, H5P_DEFAULT, NULL), "has the shape");
    finish(replace(H5T_IEEE_F32LE, 2, five_by_four, H5P_DEFAULT, NULL), "/model/wte is incomplete");
    finish(replace(H5T_IEEE_F32LE, 2, five_by_four, chunked(1 << 27, 4), NULL), "chunks of more than 268435456 bytes");
    finish(replace_by_chunk(1 << 24, true, 0, 1000), "the index of its chunks is wrong"); /* 256 MiB of 1000 bytes */
    finish(replace_by_chunk(5, false, 0, 83), "the index of its chunks is wrong");        /* one byte too short */
    finish(replace_by_chunk(5, false, 1, 84), "the index of its chunks is wrong");        /* no checksum */
}

/* Kilobytes that become megabytes. */
static void set_text(const char *name, hsize_t length) {
    hid_t h5 = open_copy(), type = H5Tcopy(H5T_C_S1), scalar = H5Screate(H5S_SCALAR);
    H5Tset_size(type, 4);
    H5Adelete_by_name(h5, "/tokenizer", "kind", H5P_DEFAULT);
    hid_t kind = H5Acreate_by_name(h5, "/tokenizer", "kind", type, scalar, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(kind, type, strcmp(name, "/tokenizer/merges") == 0 ? "gpt2" : "char");
    H5Aclose(kind);
    H5Sclose(scalar);
    H5Tclose(type);
    if (H5Lexists(h5, name, H5P_DEFAULT) > 0) H5Ldelete(h5, name, H5P_DEFAULT);
    char *text = calloc(length, 1);
    hid_t properties = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, &length, NULL);
    H5Pset_chunk(properties, 1, (hsize_t[]){1 << 20});
    H5Pset_deflate(properties, 1);
    hid_t set = H5Dcreate2(h5, name, H5T_STD_U8LE, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    assert_true(H5Dwrite(set, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, text) >= 0);
    free(text);
    H5Dclose(set);
    H5Sclose(space);
    H5Pclose(properties);
    assert_true(H5Fclose(h5) >= 0);
}

static void texts_that_swell(void **state) {
    (void)state;
    set_text("/tokenizer/merges", MG_MOST_MERGES + 1);
    assert_refused("/tokenizer/merges has 33554433 bytes; the limit is 33554432");
    set_text("/tokenizer/tokens", (hsize_t)1 << 25);
    assert_refused("/tokenizer/offsets must start at 0 and end at 33554432");
}

static void a_huge_attribute(void **state) {
    (void)state;
    hid_t h5 = open_copy(), space = H5Screate_simple(1, (hsize_t[]){8000}, NULL);
    H5Adelete(h5, "complete");
    H5Aclose(H5Acreate2(h5, "complete", H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT));
    H5Sclose(space);
    finish(h5, "'complete' of / must be one integer");
    h5 = open_copy();
    hid_t type = H5Tcopy(H5T_C_S1), scalar = H5Screate(H5S_SCALAR);
    H5Tset_size(type, 60000);
    H5Adelete(h5, "format");
    hid_t format = H5Acreate2(h5, "format", type, scalar, H5P_DEFAULT, H5P_DEFAULT);
    char *text = malloc(60000);
    memset(text, 'x', 60000);
    H5Awrite(format, type, text);
    free(text);
    H5Aclose(format);
    H5Sclose(scalar);
    H5Tclose(type);
    finish(h5, "its format is 'xxx");
}

/* ---- A chunk's place ---- */

enum { ROWS = 40, ROWS_A_CHUNK = 5 };

/* Without a seal, nothing but Fletcher32 guards a chunk, and nothing at all its entry in the index: one flipped bit
 * moved it out of sight, and zeros were read in its place. */
static void flipped_bits_in_the_index_of_chunks(void **state) {
    (void)state;
    static float written[ROWS][4];
    static mg_real read[ROWS][4];
    for (int i = 0; i < ROWS * 4; i++) written[i / 4][i % 4] = (float)(i + 1);
    hid_t h5 = new_file(bad.path), properties = chunked(ROWS_A_CHUNK, 4);
    H5Pset_fletcher32(properties);
    hid_t space = H5Screate_simple(2, (hsize_t[]){ROWS, 4}, NULL);
    hid_t set = H5Dcreate2(h5, "/x", H5T_IEEE_F32LE, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, written);
    H5Dclose(set);
    H5Sclose(space);
    H5Pclose(properties);
    H5Fclose(h5);

    size_t length, tree = 0;
    unsigned char *bytes = read_file(bad.path, &length);
    while (tree + 5 < length && memcmp(bytes + tree, "TREE\1", 5) != 0) tree++; /* 1: of chunks, not of names */
    assert_true(tree + 5 < length);
    /* A header, and for each chunk its size and mask, its place, and its address. */
    size_t used = 24 + (ROWS / ROWS_A_CHUNK) * (8 + 3 * 8 + 8);
    int fd, refused = 0;
    size_t size;
    const ptrdiff_t dim[] = {ROWS, 4};
    for (size_t at = 0; at < used; at += 3) { /* at any place of an entry, over the entries */
        bytes[tree + at] ^= (unsigned char)(1 << at * 5 % 8);
        write_file(bad.path, bytes, length);
        bytes[tree + at] ^= (unsigned char)(1 << at * 5 % 8);
        assert_ok(mg_open_regular(bad.path, &fd, &size, &fixture_error));
        mg_h5 file;
        memset(read, 0, sizeof read);
        mg_status status = mg_h5_open(&file, bad.path, fd, size, &fixture_error);
        if (status == MG_OK) status = mg_h5_read_data(&file, 1, &(mg_h5_data){"/x", MG_H5_FLOAT32, 2, dim, read});
        mg_h5_close(&file);
        close(fd);
        refused += status != MG_OK;
        for (int i = 0; i < ROWS * 4 && status == MG_OK; i++) assert_true(read[i / 4][i % 4] == (mg_real)(i + 1));
    }
    assert_true(refused > (int)used / 6);
    free(bytes);
}

/* ---- Plugins ---- */

/* A filter that HDF5 does not know would have it load every library of HDF5_PLUGIN_PATH. */
static void plugins_are_off_while_a_file_is_open(void **state) {
    (void)state;
    unsigned before, during, after;
    int fd;
    size_t size;
    mg_h5 file;
    mg_set_file_guard(false);
    H5PLget_loading_state(&before);
    assert_int_not_equal(before, 0);
    assert_ok(mg_open_regular(good.path, &fd, &size, &fixture_error));
    assert_ok(mg_h5_open(&file, good.path, fd, size, &fixture_error));
    H5PLget_loading_state(&during);
    mg_h5_close(&file);
    close(fd);
    H5PLget_loading_state(&after);
    mg_set_file_guard(true);
    assert_int_equal(during, 0);
    assert_int_equal(after, before);
}

/* ---- What is no regular file ---- */

static mg_status import_it(const char *path) {
    (void)path; /* one of the folder's */
    mg_checkpoint c;
    return mg_gpt2_import(&c, fixture_folder, &(mg_import_options){0}, &fixture_error);
}

static mg_status load_it(const char *path) {
    mg_checkpoint c;
    return mg_checkpoint_load(&c, path, true, &fixture_error);
}

static mg_status check_it(const char *path) {
    return mg_vocab_json_check(path, NULL, &fixture_error);
}

static void pipes_and_folders(void **state) {
    (void)state;
    static const struct {
        const char *name;
        mg_status (*read)(const char *path);
    } files[] = {{"tf_model.h5", import_it},
                 {"model.safetensors", import_it},
                 {"config.json", import_it},
                 {"vocab.json", check_it},
                 {"a.h5", load_it}};
    unlink(keras.path);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        fixture_name path = in_folder(files[i].name);
        unlink(path.path);
        for (int kind = 0; kind < 2; kind++) {
            assert_int_equal(kind ? mkdir(path.path, 0777) : mkfifo(path.path, 0600), 0);
            assert_int_equal(files[i].read(path.path), MG_ERR_IO);
            assert_says(fixture_error.message, path.path);
            assert_says(fixture_error.message,
                        kind ? "is a folder, not a regular file" : "is a pipe, not a regular file");
            remove(path.path);
        }
        write_file(path.path, "", 0); /* for what is read after it */
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_compound_with_an_array_of_nothing),
        cmocka_unit_test(groups_in_groups),
        cmocka_unit_test(more_names_than_a_model_has),
        cmocka_unit_test(links_that_lead_in_circles_or_out),
        cmocka_unit_test(data_outside_the_file),
        cmocka_unit_test(filters),
        cmocka_unit_test(types),
        cmocka_unit_test(claims),
        cmocka_unit_test(texts_that_swell),
        cmocka_unit_test(a_huge_attribute),
        cmocka_unit_test(flipped_bits_in_the_index_of_chunks),
        cmocka_unit_test(plugins_are_off_while_a_file_is_open),
        cmocka_unit_test(pipes_and_folders),
    };
    return cmocka_run_group_tests(tests, setup, fixture_teardown);
}
