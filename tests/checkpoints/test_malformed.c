/* Malformed files: each kind of fault has its own sentence, which names the file and the culprit. */
#include "damaged.h"
#include "guard.h"

#include <fcntl.h>
#include <sys/file.h>

static void assert_load_fails_with(const char *path, mg_status expected, const char *why) {
    mg_checkpoint loaded;
    memset(&fixture_error, 0, sizeof fixture_error);
    mg_status status = mg_checkpoint_load(&loaded, path, true, &fixture_error);
    if (status != expected) print_error("loads with status %s\n", mg_status_name(status));
    assert_says(fixture_error.message, why);
    assert_says(fixture_error.message, path);
    assert_int_equal(status, expected);
    assert_null(loaded.gpt);
}

static void assert_refused(hid_t h5, const char *why) {
    assert_true(H5Fclose(h5) >= 0);
    assert_load_fails_with(bad.path, MG_ERR_FORMAT, why);
    mg_checkpoint_info info;
    assert_int_equal(mg_checkpoint_describe(good.path, &info, NULL), MG_OK);
}

static void set_attribute(hid_t h5, const char *object, const char *name, hid_t type, const void *value) {
    if (H5Aexists_by_name(h5, object, name, H5P_DEFAULT) > 0)
        assert_true(H5Adelete_by_name(h5, object, name, H5P_DEFAULT) >= 0);
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t attribute = H5Acreate_by_name(h5, object, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Awrite(attribute, type, value) >= 0);
    H5Aclose(attribute);
    H5Sclose(space);
}

static void set_int(hid_t h5, const char *object, const char *name, int64_t value) {
    set_attribute(h5, object, name, H5T_NATIVE_INT64, &value);
}

static void set_text(hid_t h5, const char *object, const char *name, const char *text) {
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, strlen(text) + 1);
    set_attribute(h5, object, name, type, text);
    H5Tclose(type);
}

static void remove_object(hid_t h5, const char *name) {
    assert_true(H5Ldelete(h5, name, H5P_DEFAULT) >= 0);
}

/* Instead of what was there, a dataset of zeros; with `chunk` rows a chunk it is chunked, and stays unwritten. */
static void set_data(hid_t h5, const char *name, hid_t type, int rank, const hsize_t *dim, hsize_t chunk) {
    remove_object(h5, name);
    hid_t space = H5Screate_simple(rank, dim, NULL), properties = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t chunks[4] = {chunk, dim[1], dim[2], dim[3]};
    if (chunk) assert_true(H5Pset_chunk(properties, rank, chunks) >= 0);
    hid_t set = H5Dcreate2(h5, name, type, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    assert_true(set >= 0);
    static const double zeros[1024];
    if (!chunk) assert_true(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, zeros) >= 0);
    H5Dclose(set);
    H5Pclose(properties);
    H5Sclose(space);
}

static void set_int64s(hid_t h5, const char *name, const int64_t *values) {
    hid_t set = H5Dopen2(h5, name, H5P_DEFAULT);
    assert_true(H5Dwrite(set, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    H5Dclose(set);
}

/* ---- Not a checkpoint at all ---- */

static void what_is_no_file(void **state) {
    (void)state;
    assert_load_fails_with(in_folder("absent.h5").path, MG_ERR_IO, "No such file");
    assert_load_fails_with(fixture_folder, MG_ERR_IO, "is a folder");
    assert_load_fails_with("/dev/null", MG_ERR_IO, "not a regular file");
}

static void what_is_no_hdf5(void **state) {
    (void)state;
    write_file(bad.path, "", 0);
    assert_load_fails_with(bad.path, MG_ERR_FORMAT, "is empty");
    write_file(bad.path, "a text, not a checkpoint\n", 25);
    assert_load_fails_with(bad.path, MG_ERR_FORMAT, "is not an HDF5 file");
    write_file(bad.path, "\x89HDF\r\n\x1a\n", 8);
    assert_load_fails_with(bad.path, MG_ERR_FORMAT, "is damaged");
    size_t length;
    unsigned char *bytes = read_file(good.path, &length);
    memset(bytes, 0, 512);
    write_file(bad.path, bytes, length - 1000);
    assert_load_fails_with(bad.path, MG_ERR_FORMAT, "is truncated");
    free(bytes);
}

static void foreign_hdf5(void **state) {
    (void)state;
    hid_t h5 = H5Fcreate(bad.path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    assert_refused(h5, "not a maskgrad checkpoint");
    h5 = open_copy();
    set_text(h5, "/", "format", "keras");
    assert_refused(h5, "its format is 'keras'");
    h5 = open_copy();
    set_int(h5, "/", "format", 1);
    assert_refused(h5, "'format' of / must be one string");
}

static void versions_and_completeness(void **state) {
    (void)state;
    hid_t h5 = open_copy();
    set_int(h5, "/", "format_version", MG_CHECKPOINT_VERSION + 1);
    assert_refused(h5, "has format version 3");
    h5 = open_copy(); /* a version 2 says what its mask is */
    set_int(h5, "/", "format_version", 2);
    assert_refused(h5, "/config has no attribute '");
    h5 = open_copy();
    set_int(h5, "/", "format_version", 0);
    assert_refused(h5, "which does not exist");
    h5 = open_copy();
    H5Adelete(h5, "complete");
    assert_refused(h5, "half-written");
    h5 = open_copy();
    set_int(h5, "/", "complete", 0);
    assert_refused(h5, "half-written");
}

/* ---- Configuration ---- */

static void configuration(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int64_t value;
        const char *why;
    } cases[] = {
        {"n_layer", 0, "n_layer"},
        {"n_layer", -1, "n_layer"},
        {"n_layer", 1000, "n_layer is 1000, but /model holds only 16 parameters"},
        {"n_layer", (int64_t)1 << 40, "which is not between"},
        {"n_head", 3, "n_embd must be a multiple of n_head"},
        {"n_embd", 8, "the dataset /model/wte has the shape (5, 4), but the configuration needs (5, 8)"},
        {"n_embd", INT_MAX, "n_embd"},
        {"block_size", 4, "the dataset /model/wpe has the shape (3, 4), but the configuration needs (4, 4)"},
        {"vocab_size", 6, "the dataset /model/wte has the shape (5, 4)"},
        {"vocab_size", INT64_MAX, "which is not between"},
        {"lookahead", -2, "which is not between"},
        {"leak_layer", 1, "leak"},
        {"scale", 2, "which is not between 0 and 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hid_t h5 = open_copy();
        set_int(h5, "/config", cases[i].name, cases[i].value);
        assert_refused(h5, cases[i].why);
    }
    hid_t h5 = open_copy();
    H5Adelete_by_name(h5, "/config", "n_head", H5P_DEFAULT);
    assert_refused(h5, "/config has no attribute 'n_head'");
    h5 = open_copy();
    set_attribute(h5, "/config", "n_head", H5T_NATIVE_DOUBLE, &(double){2.5});
    assert_refused(h5, "'n_head' of /config must be one integer");
    h5 = open_copy();
    set_attribute(h5, "/config", "eps", H5T_NATIVE_DOUBLE, &(double){NAN});
    assert_refused(h5, "eps");
    h5 = open_copy();
    remove_object(h5, "/config");
    assert_refused(h5, "/config");
    h5 = open_copy();
    set_int(h5, "/train", "step", -1);
    assert_refused(h5, "must not be negative");
}

/* ---- Datasets ---- */

static void missing_datasets(void **state) {
    (void)state;
    static const char *const names[] = {"/model/h.0.attn.c_attn.weight",
                                        "/model/ln_f.bias",
                                        "/optimizer/m/wte",
                                        "/optimizer/v/wpe",
                                        "/tokenizer/tokens",
                                        "/tokenizer/offsets"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        hid_t h5 = open_copy();
        remove_object(h5, names[i]);
        char why[128];
        snprintf(why, sizeof why, "the dataset %s is missing", names[i]);
        assert_refused(h5, why);
    }
    hid_t h5 = open_copy();
    remove_object(h5, "/optimizer/m");
    assert_refused(h5, "/optimizer/m/wte is missing");
    h5 = open_copy();
    remove_object(h5, "/model");
    assert_refused(h5, "the group /model is missing");
}

static void wrong_datasets(void **state) {
    (void)state;
    const hsize_t right[4] = {5, 4}, transposed[4] = {4, 5}, flat[4] = {20}, deep[4] = {5, 4, 1, 1};
    hid_t h5 = open_copy();
    set_data(h5, "/model/wte", H5T_IEEE_F32LE, 2, transposed, 0);
    assert_refused(h5, "/model/wte has the shape (4, 5), but the configuration needs (5, 4)");
    h5 = open_copy();
    set_data(h5, "/model/wte", H5T_IEEE_F32LE, 1, flat, 0);
    assert_refused(h5, "/model/wte has the shape (20)");
    h5 = open_copy();
    set_data(h5, "/model/wte", H5T_IEEE_F32LE, 4, deep, 0);
    assert_refused(h5, "/model/wte has the shape (5, 4, 1, 1)");
    h5 = open_copy();
    set_data(h5, "/model/wte", H5T_IEEE_F64LE, 2, right, 0);
    assert_refused(h5, "/model/wte does not hold little-endian float32");
    h5 = open_copy();
    set_data(h5, "/optimizer/v/wte", H5T_STD_I32LE, 2, right, 0);
    assert_refused(h5, "/optimizer/v/wte does not hold little-endian float32");
    h5 = open_copy();
    set_data(h5, "/model/wte", H5T_IEEE_F32LE, 2, right, 2);
    assert_refused(h5, "/model/wte is incomplete");
    h5 = open_copy();
    remove_object(h5, "/model/wte");
    H5Gclose(H5Gcreate2(h5, "/model/wte", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    assert_refused(h5, "/model/wte must be a dataset");
    h5 = open_copy();
    remove_object(h5, "/model/wte");
    H5Lcreate_external("/etc/passwd", "/x", h5, "/model/wte", H5P_DEFAULT, H5P_DEFAULT);
    assert_refused(h5, "/model/wte is missing");
    h5 = open_copy();
    H5Gclose(H5Gcreate2(h5, "/model/extra", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    assert_refused(h5, "/model holds more than the 16 parameters");
}

/* A file of a few kilobytes that claims 17 million rows must not make us ask for the memory. */
static size_t largest_request;

static void *allocate_and_measure(size_t bytes, void *user) {
    (void)user;
    void *block = NULL;
    if (bytes > largest_request) largest_request = bytes;
    return posix_memalign(&block, MG_ALIGNMENT, bytes) == 0 ? block : NULL;
}

static void release(void *block, void *user) {
    (void)user;
    free(block);
}

static void absurd_sizes_cost_nothing(void **state) {
    (void)state;
    mg_set_allocator(&(mg_allocator){allocate_and_measure, release, NULL});
    const hsize_t rows[4] = {1 << 24, 4};
    hid_t h5 = open_copy();
    set_int(h5, "/config", "vocab_size", 1 << 24);
    set_data(h5, "/model/wte", H5T_IEEE_F32LE, 2, rows, 1 << 20);
    assert_refused(h5, "its configuration needs 201327");
    const hsize_t tokens[4] = {(hsize_t)1 << 40};
    h5 = open_copy();
    set_data(h5, "/tokenizer/tokens", H5T_STD_U8LE, 1, tokens, 1 << 20);
    assert_refused(h5, "/tokenizer/tokens is incomplete");
    assert_less(largest_request, 10000);
    mg_set_allocator(NULL);
}

/* ---- Tokenizer ---- */

static void tokenizers(void **state) {
    (void)state;
    hid_t h5 = open_copy();
    set_text(h5, "/tokenizer", "kind", "sentencepiece");
    assert_refused(h5, "unknown kind 'sentencepiece'");
    h5 = open_copy();
    set_int(h5, "/tokenizer", "size", 6);
    assert_refused(h5, "the tokenizer has 6 tokens, but the model's vocab_size is 5");
    static const int64_t falls[] = {0, 2, 1, 3, 5, 9}, beyond[] = {0, 1, 2, 3, 5, 10}, negative[] = {-1, 1, 2, 3, 5, 9},
                         late[] = {1, 1, 2, 3, 5, 9}, empty[] = {0, 0, 2, 3, 5, 9}, huge[] = {0, 1, 2, 3, INT64_MAX, 9};
    static const int64_t *const wrong[] = {falls, beyond, negative, late, huge};
    for (int i = 0; i < 5; i++) {
        h5 = open_copy();
        set_int64s(h5, "/tokenizer/offsets", wrong[i]);
        assert_refused(h5, "/tokenizer/offsets");
    }
    h5 = open_copy();
    set_int64s(h5, "/tokenizer/offsets", empty);
    assert_refused(h5, "the tokenizer is not valid: token 0 is empty");
    h5 = open_copy();
    set_data(h5, "/tokenizer/offsets", H5T_STD_I64LE, 1, (hsize_t[4]){7}, 0);
    assert_refused(h5, "/tokenizer/offsets has the shape (7), but the configuration needs (6)");
    h5 = open_copy();
    set_text(h5, "/tokenizer", "kind", "gpt2");
    assert_refused(h5, "the dataset /tokenizer/merges is missing");
}

/* ---- What is unusual but right ---- */

/* h5py writes plain strings, booleans as enumerations and small integers; another order of things changes nothing. */
static void a_file_by_other_hands_loads(void **state) {
    (void)state;
    hid_t h5 = open_copy();
    set_text(h5, "/", "format", MG_CHECKPOINT_FORMAT);
    set_text(h5, "/tokenizer", "kind", "char");
    set_attribute(h5, "/config", "n_head", H5T_NATIVE_UCHAR, &(unsigned char){2});
    set_attribute(h5, "/config", "dropout", H5T_NATIVE_FLOAT, &(float){0.125f});
    hid_t boolean = H5Tenum_create(H5T_NATIVE_INT8);
    H5Tenum_insert(boolean, "FALSE", &(int8_t){0});
    H5Tenum_insert(boolean, "TRUE", &(int8_t){1});
    set_attribute(h5, "/config", "scale", boolean, &(int8_t){0});
    H5Tclose(boolean);
    assert_true(H5Fclose(h5) >= 0);
    mg_checkpoint a, b;
    assert_ok(mg_checkpoint_load(&a, good.path, true, &fixture_error));
    assert_ok(mg_checkpoint_load(&b, bad.path, true, &fixture_error));
    assert_same_checkpoint(&a, &b);
    mg_checkpoint_free(&a);
    mg_checkpoint_free(&b);
    mg_checkpoint_info info;
    assert_ok(mg_checkpoint_describe(bad.path, &info, &fixture_error));
    assert_false(info.sealed);
}

static void a_file_that_is_being_written_is_said_to_be(void **state) {
    (void)state;
    int fd = open(good.path, O_RDONLY);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    assert_load_fails_with(good.path, MG_ERR_IO, "is being written by another program");
    close(fd);
    mg_checkpoint c;
    assert_ok(mg_checkpoint_load(&c, good.path, true, &fixture_error));
    mg_checkpoint_free(&c);
}

/* The caller's way of hearing from HDF5 is his own: we are quiet, and leave it as it was. */
static void diagnostics_of_the_caller_survive(void **state) {
    (void)state;
    H5E_auto2_t before, after;
    void *data;
    H5Eget_auto2(H5E_DEFAULT, &before, &data);
    assert_load_fails_with(in_folder("absent.h5").path, MG_ERR_IO, "No such file");
    mg_checkpoint c;
    assert_ok(mg_checkpoint_load(&c, good.path, false, &fixture_error));
    mg_checkpoint_free(&c);
    H5Eget_auto2(H5E_DEFAULT, &after, &data);
    assert_true(before == after);
    assert_int_equal(H5Fget_obj_count((hid_t)H5F_OBJ_ALL, H5F_OBJ_ALL), 0);
}

/* Identifiers of HDF5's that a failure left open would pile up in a program that looks at many files. They are given
 * out in ascending order: whichever lies between two of ours must be closed. */
static void failures_leave_nothing_open(void **state) {
    (void)state;
    enum { KINDS = 3 };
    hid_t first[KINDS] = {H5Screate(H5S_SCALAR), H5Tcopy(H5T_NATIVE_INT), H5Pcreate(H5P_DATASET_CREATE)};
    configuration(state);
    missing_datasets(state);
    wrong_datasets(state);
    tokenizers(state);
    foreign_hdf5(state);
    hid_t last[KINDS] = {H5Screate(H5S_SCALAR), H5Tcopy(H5T_NATIVE_INT), H5Pcreate(H5P_DATASET_CREATE)};
    for (int i = 0; i < KINDS; i++) {
        assert_true(last[i] > first[i] + 100);
        for (hid_t id = first[i] + 1; id < last[i]; id++) assert_false(H5Iis_valid(id) > 0);
        H5Idec_ref(first[i]);
        H5Idec_ref(last[i]);
    }
}

/* What only this process can leave open. */
#define IN_THIS_PROCESS                                                                                                \
    cmocka_unit_test(failures_leave_nothing_open), cmocka_unit_test(diagnostics_of_the_caller_survive)
#define ANYWHERE                                                                                                       \
    cmocka_unit_test(what_is_no_file), cmocka_unit_test(what_is_no_hdf5), cmocka_unit_test(foreign_hdf5),              \
        cmocka_unit_test(versions_and_completeness), cmocka_unit_test(configuration),                                  \
        cmocka_unit_test(missing_datasets), cmocka_unit_test(wrong_datasets),                                          \
        cmocka_unit_test(absurd_sizes_cost_nothing), cmocka_unit_test(tokenizers),                                     \
        cmocka_unit_test(a_file_by_other_hands_loads), cmocka_unit_test(a_file_that_is_being_written_is_said_to_be)

int main(void) {
    const struct CMUnitTest here[] = {ANYWHERE, IN_THIS_PROCESS}, by_a_child[] = {ANYWHERE};
    int failed = cmocka_run_group_tests(here, make_good, fixture_teardown);
    mg_set_file_guard(true);
    return failed + cmocka_run_group_tests(by_a_child, make_good, fixture_teardown);
}
