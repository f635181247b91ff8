/* Whatever single byte of a checkpoint changes, and wherever the file ends: loading says what is wrong or, where the
 * byte carries no meaning, loads the same model. */
#include "fixture.h"

#include <fcntl.h>
#include <sys/stat.h>

static mg_checkpoint saved;
static mg_adamw *optimizer; /* left out where each byte counts: the file is then a third as long */
static fixture_name file;
static size_t length;

static int make_one(void **state) {
    if (fixture_setup(state) != 0) return -1;
    fixture_small(&saved);
    optimizer = saved.adamw;
    file = in_folder("victim.h5");
    return 0;
}

static int free_one(void **state) {
    saved.adamw = optimizer;
    mg_checkpoint_free(&saved);
    return fixture_teardown(state);
}

/* The file's bytes; free with free(). */
static unsigned char *save(bool with_optimizer) {
    saved.adamw = with_optimizer ? optimizer : NULL;
    assert_ok(mg_checkpoint_save(file.path, &saved, &fixture_error));
    return read_file(file.path, &length);
}

/* Returns whether it loads; then it is the same model. */
static bool loads_the_same_or_says_why(void) {
    mg_checkpoint loaded;
    memset(&fixture_error, 0, sizeof fixture_error);
    mg_status status = mg_checkpoint_load(&loaded, file.path, true, &fixture_error);
    if (status == MG_OK) {
        assert_same_checkpoint(&saved, &loaded);
        mg_checkpoint_free(&loaded);
        return true;
    }
    assert_int_equal(status, MG_ERR_FORMAT);
    assert_says(fixture_error.message, file.path);
    assert_null(loaded.gpt);
    assert_null(loaded.adamw);
    assert_null(loaded.tokenizer);
    return false;
}

static void put(int fd, size_t at, unsigned char byte) {
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
}

/* Every stride-th byte after the seal and its surroundings, one after another; those are flipped in three ways each.
 */
static void flip_bytes(bool with_optimizer, size_t stride) {
    static const unsigned char flips[] = {0xff, 0x01, 0x80};
    unsigned char *bytes = save(with_optimizer);
    int fd = open(file.path, O_RDWR), harmless = 0;
    for (size_t at = 0; at < length; at += at < 1024 ? 1 : stride) {
        for (size_t i = 0; i < (at < 1024 ? 3 : 1); i++) {
            put(fd, at, bytes[at] ^ flips[(at + i) % 3]);
            harmless += loads_the_same_or_says_why();
        }
        put(fd, at, bytes[at]);
    }
    close(fd);
    free(bytes);
    assert_int_equal(harmless, 0); /* not even where a seal is no longer recognized as one */
    assert_true(loads_the_same_or_says_why());
}

static void every_flipped_byte(void **state) {
    (void)state;
    flip_bytes(false, 1);
}

static void flipped_bytes_with_an_optimizer(void **state) {
    (void)state;
    flip_bytes(true, 29);
}

static void every_length(void **state) {
    (void)state;
    unsigned char *bytes = save(false);
    /* Shorter and shorter, so that each cut is one call. */
    for (size_t n = length; n-- > 0;) {
        assert_int_equal(truncate(file.path, (off_t)n), 0);
        assert_false(loads_the_same_or_says_why());
        if (n == 0)
            assert_says(fixture_error.message, "is empty");
        else if (n >= strlen("maskgrad seal "))
            assert_says(fixture_error.message, "truncated");
    }
    free(bytes);
}

static void bytes_behind_the_end(void **state) {
    (void)state;
    free(save(true));
    int fd = open(file.path, O_RDWR);
    put(fd, length, 0);
    assert_false(loads_the_same_or_says_why());
    assert_says(fixture_error.message, "damaged");
    assert_int_equal(ftruncate(fd, (off_t)length), 0);
    close(fd);
    assert_true(loads_the_same_or_says_why());
}

/* Without a seal, as after a rewrite by another program: a flipped number is found by its dataset's checksum, which
 * names it. The place is where the parameter's bytes are in the file. */
static void without_a_seal_the_dataset_is_named(void **state) {
    (void)state;
    unsigned char *bytes = save(true), *damaged = malloc(length);
    memset(bytes, 0, 512);
    const mg_params *params = mg_gpt_params(saved.gpt);
    for (int i = 0; i < params->n; i++) {
        const mg_param *p = &params->param[i];
        float first = (float)p->tensor.data[0], second = (float)p->tensor.data[1];
        size_t at = 512;
        while (at + 8 < length && (memcmp(bytes + at, &first, 4) != 0 || memcmp(bytes + at + 4, &second, 4) != 0)) at++;
        assert_true(at + 8 < length);
        memcpy(damaged, bytes, length);
        damaged[at + 5] ^= 0x10;
        write_file(file.path, damaged, length);
        assert_false(loads_the_same_or_says_why());
        char name[128];
        snprintf(name, sizeof name, "/model/%s is damaged: its checksum", p->name);
        assert_says(fixture_error.message, name);
    }
    write_file(file.path, bytes, length);
    assert_true(loads_the_same_or_says_why());
    free(damaged);
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_flipped_byte),
        cmocka_unit_test(flipped_bytes_with_an_optimizer),
        cmocka_unit_test(every_length),
        cmocka_unit_test(bytes_behind_the_end),
        cmocka_unit_test(without_a_seal_the_dataset_is_named),
    };
    return cmocka_run_group_tests(tests, make_one, free_one);
}
