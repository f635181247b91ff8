/* Reading safetensors: numbers come out as they went in, and every malformed file is refused in its own words. */
#include "fixture.h"
#include "weights.h"

static fixture_name path;

/* A file whose first 8 bytes say `length`, then a header, then data. */
static void write_parts(uint64_t length, const char *header, const void *data, size_t data_bytes) {
    unsigned char bytes[4096];
    size_t n = strlen(header);
    assert_true(8 + n + data_bytes <= sizeof bytes);
    for (int i = 0; i < 8; i++) bytes[i] = (unsigned char)(length >> 8 * i);
    memcpy(bytes + 8, header, n);
    if (data_bytes) memcpy(bytes + 8 + n, data, data_bytes);
    path = in_folder("model.safetensors");
    write_file(path.path, bytes, 8 + n + data_bytes);
}

static void assert_refused(const char *says) {
    mg_weights weights;
    mg_error error = {0};
    assert_int_equal(mg_safetensors_open(&weights, path.path, &error), MG_ERR_FORMAT);
    mg_weights_close(&weights);
    assert_says(error.message, path.path);
    assert_says(error.message, says);
}

/* Whether a header over so many bytes of zeros is refused with these words; NULL: it is accepted. */
static void assert_header(const char *header, size_t data_bytes, const char *says) {
    static const char zeros[64];
    write_parts(strlen(header), header, zeros, data_bytes);
    if (says) {
        assert_refused(says);
        return;
    }
    mg_weights weights;
    assert_ok(mg_safetensors_open(&weights, path.path, &fixture_error));
    mg_weights_close(&weights);
}

#define F32(name, shape, begin, end)                                                                                   \
    "\"" name "\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":[" #begin "," #end "]}"

static void numbers_are_read(void **state) {
    (void)state;
    const char *header = "{\"__metadata__\":{\"format\":\"pt\"}," F32(
        "late", "[2,2]", 12, 28) ","
                                 "\"half\":{\"dtype\":\"F16\",\"shape\":[3],\"data_offsets\":[0,6]},"
                                 "\"brain\":{\"dtype\":\"BF16\",\"shape\":[3],\"data_offsets\":[6,12]}}  ";
    unsigned char data[28];
    const uint16_t halves[] = {0x3c00, 0x8001, 0xfbff}, brains[] = {0x3f80, 0xc040, 0x0001};
    const float floats[] = {1.5f, -0.0f, 3e-42f, -1e30f};
    memcpy(data, halves, 6);
    memcpy(data + 6, brains, 6);
    memcpy(data + 12, floats, 16);
    write_parts(strlen(header), header, data, sizeof data);
    mg_weights w;
    assert_ok(mg_safetensors_open(&w, path.path, &fixture_error));
    assert_int_equal(w.n, 3); /* in the order of the data */
    assert_string_equal(w.weight[0].name, "half");
    assert_string_equal(w.weight[2].name, "late");
    assert_int_equal(w.weight[2].ndim, 2);
    mg_real got[4];
    assert_ok(mg_weights_read(&w, &w.weight[0], 0, 3, got));
    assert_true(got[0] == 1 && got[1] == (mg_real)-0x1p-24 && got[2] == -65504);
    assert_ok(mg_weights_read(&w, &w.weight[1], 0, 3, got));
    assert_true(got[0] == 1 && got[1] == -3 && got[2] == (mg_real)0x1p-133);
    assert_ok(mg_weights_read(&w, &w.weight[2], 0, 2, got));
    /* signbit is any nonzero number for a negative one, and not the same for a float and a double. */
    for (int i = 0; i < 4; i++) assert_true(got[i] == (mg_real)floats[i] && !signbit(got[i]) == !signbit(floats[i]));
    assert_ok(mg_weights_read(&w, &w.weight[2], 1, 2, got));
    assert_true(got[0] == (mg_real)3e-42f && got[1] == (mg_real)-1e30f);
    mg_weights_close(&w);
}

/* All 65,536 halves against the formula. */
static void every_half_is_right(void **state) {
    (void)state;
    const char *header = "{\"all\":{\"dtype\":\"F16\",\"shape\":[256,256],\"data_offsets\":[0,131072]}}";
    static unsigned char bytes[8 + 128 + 131072];
    size_t n = strlen(header);
    bytes[0] = (unsigned char)n;
    memcpy(bytes + 8, header, n);
    for (unsigned i = 0; i < 65536; i++) {
        bytes[8 + n + 2 * i] = (unsigned char)i;
        bytes[8 + n + 2 * i + 1] = (unsigned char)(i >> 8);
    }
    path = in_folder("halves.safetensors");
    write_file(path.path, bytes, 8 + n + 131072);
    mg_weights w;
    static mg_real got[65536];
    assert_ok(mg_safetensors_open(&w, path.path, &fixture_error));
    assert_ok(mg_weights_read(&w, &w.weight[0], 0, 256, got));
    mg_weights_close(&w);
    for (int i = 0; i < 65536; i++) {
        int exponent = i >> 10 & 31, mantissa = i & 1023;
        double size = exponent == 0 ? ldexp(mantissa, -24) : ldexp(1024 + mantissa, exponent - 25);
        if (exponent == 31) size = mantissa ? NAN : INFINITY;
        double expected = i & 0x8000 ? -size : size;
        assert_true(isnan(expected) ? isnan(got[i]) : (double)got[i] == expected);
    }
}

static void short_files_are_refused(void **state) {
    (void)state;
    path = in_folder("model.safetensors");
    write_file(path.path, "", 0);
    assert_refused("it has 0 bytes, but needs at least 8");
    write_file(path.path, "1234567", 7);
    assert_refused("it has 7 bytes, but needs at least 8");
    write_parts(0, "", NULL, 0);
    assert_refused("its header is empty");
    write_parts(100000001, "{}", NULL, 0);
    assert_refused("its header is 100000001 bytes long; the limit is 4194304");
    write_parts(UINT64_MAX, "{}", NULL, 0);
    assert_refused("its header is 18446744073709551615 bytes long");
    write_parts(3, "{}", NULL, 0);
    assert_refused("is truncated: its header should have 3 bytes, but 2 are there");
    static const char pointer[] = "version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 548105171\n";
    write_file(path.path, pointer, sizeof pointer - 1);
    assert_refused("is a git-lfs pointer");
}

static void headers_that_are_no_json_are_refused(void **state) {
    (void)state;
    assert_header("{}", 0, NULL);
    assert_header("{}  \n", 0, NULL);
    assert_header(" {}", 0, "does not start with '{'");
    assert_header("[]", 0, "does not start with '{'");
    assert_header("{", 0, "is not valid JSON");
    assert_header("{} {}", 0, "is not valid JSON");
    assert_header("{\"\xff\":1}", 0, "is not valid JSON");
    assert_header("{" F32("a", "[1]", 0, 4) "," F32("a", "[1]", 4, 8) "}", 8, "is not valid JSON: duplicate");
}

static void entries_that_make_no_sense_are_refused(void **state) {
    (void)state;
    assert_header("{" F32("a", "[1]", 0, 4) "}", 4, NULL);
    assert_header("{" F32("a", "[]", 0, 4) "}", 4, NULL);
    assert_header("{" F32("a", "[0,7]", 0, 0) "}", 0, NULL);
    assert_header("{\"a\":1}", 0, "the tensor 'a' has no dtype");
    assert_header("{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "the shape of the tensor 'a' is not a list");
    assert_header("{" F32("a", "[-1]", 0, 4) "}", 4, "does not consist of sizes");
    assert_header("{" F32("a", "[1.0]", 0, 4) "}", 4, "does not consist of sizes");
    assert_header("{" F32("a", "[1e3]", 0, 4) "}", 4, "does not consist of sizes");
    assert_header("{" F32("a", "[99999999999999999999]", 0, 4) "}", 4, "is not valid JSON");
    assert_header("{" F32("a", "[4294967296,4294967296]", 0, 0) "}", 0, "overflows");
    assert_header("{" F32("a", "[9223372036854775807]", 0, 4) "}", 4, "overflows");
    assert_header("{" F32("a", "[1]", 0, 4.0) "}", 4, "is not [begin, end]");
    assert_header("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4, "is not [begin, end]");
    assert_header("{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "is not [begin, end]");
    assert_header("{" F32("a", "[1]", -4, 0) "}", 4, "is not [begin, end]");
    assert_header("{" F32("a", "[1]", 4, 0) "}", 4, "ends at 0 before it begins at 4");
    assert_header("{" F32("a", "[2,3]", 0, 20) "}", 20, "is 24 bytes, but its data_offsets span 20");
}

static void data_must_be_whole(void **state) {
    (void)state;
    assert_header("{" F32("b", "[1]", 4, 8) "," F32("a", "[1]", 0, 4) "}", 8, NULL);
    assert_header("{" F32("a", "[1]", 0, 4) "," F32("b", "[1]", 8, 12) "}", 12,
                  "a gap of 4 bytes before the tensor 'b'");
    assert_header("{" F32("a", "[1]", 4, 8) "}", 8, "a gap of 4 bytes before the tensor 'a'");
    assert_header("{" F32("a", "[2]", 0, 8) "," F32("b", "[1]", 4, 8) "}", 8, "'a' and 'b' overlap");
    assert_header("{" F32("a", "[1]", 0, 4) "," F32("b", "[1]", 0, 4) "}", 8, "overlap");
    assert_header("{" F32("a", "[2]", 0, 8) "}", 7, "is truncated: its tensors need 8 bytes, but 7 are there");
    assert_header("{" F32("a", "[1]", 0, 4) "}", 6, "has 2 trailing bytes");
    assert_header("{}", 1, "has 1 trailing bytes");
}

static void what_cannot_be_read_is_an_io_error(void **state) {
    (void)state;
    mg_weights weights;
    mg_error error = {0};
    assert_int_equal(mg_safetensors_open(&weights, in_folder("absent").path, &error), MG_ERR_IO);
    mg_weights_close(&weights);
    assert_says(error.message, "No such file");
    assert_int_equal(mg_safetensors_open(&weights, fixture_folder, &error), MG_ERR_IO);
    mg_weights_close(&weights);
    assert_says(error.message, "not a regular file");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_read),
        cmocka_unit_test(every_half_is_right),
        cmocka_unit_test(short_files_are_refused),
        cmocka_unit_test(headers_that_are_no_json_are_refused),
        cmocka_unit_test(entries_that_make_no_sense_are_refused),
        cmocka_unit_test(data_must_be_whole),
        cmocka_unit_test(what_cannot_be_read_is_an_io_error),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
