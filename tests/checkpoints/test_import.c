/* GPT-2-like models in every form in which they are published: what is computed from them is what PyTorch computes, and
 * what does not fit is named. tests/reference/make_gpt2_like.py made them. */
#include "fixture.h"
#include "gpt2_import.h"

#include <hdf5.h>

#define LIKE_GPT2 MASKGRAD_SOURCE_DIR "/tests/data/gpt2-like/"

/* ---- What an import reports ---- */

typedef struct told {
    int matched, skipped, missing;
    char text[8192]; /* the notices, one per line */
} told;

static void listen(const mg_import_event *event, void *user) {
    told *t = user;
    t->matched += event->fate == MG_IMPORT_MATCHED;
    t->skipped += event->fate == MG_IMPORT_SKIPPED;
    t->missing += event->fate == MG_IMPORT_MISSING;
    if (event->fate != MG_IMPORT_NOTICE) return;
    size_t at = strlen(t->text);
    snprintf(t->text + at, sizeof t->text - at, "%s\n", event->text);
}

static told heard;
static bool transposed;
static mg_status import(const char *folder, bool allow_nan, mg_checkpoint *c, mg_error *error) {
    heard = (told){0};
    return mg_gpt2_import(c, folder, &(mg_import_options){allow_nan, transposed, listen, &heard}, error);
}

/* ---- Logits against PyTorch's ---- */

static mg_fingerprint fingerprint_of(const char *name) {
    char folder[256];
    snprintf(folder, sizeof folder, LIKE_GPT2 "%s", name);
    mg_checkpoint c;
    mg_fingerprint f;
    assert_ok(import(folder, false, &c, &fixture_error));
    assert_ok(mg_gpt_fingerprint(c.gpt, &f, &fixture_error));
    mg_checkpoint_free(&c);
    return f;
}

/* The largest difference from logits.csv, which holds a line of ids and a line of logits for each of them. */
static double difference(mg_gpt *gpt, const char *folder) {
    char path[512];
    snprintf(path, sizeof path, "%s/logits.csv", folder);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    int ids[64], n = 0;
    do assert_int_equal(fscanf(file, "%d", &ids[n++]), 1);
    while (fgetc(file) == ',');
    mg_tape *tape;
    mg_tape_new(&tape, &fixture_error);
    const mg_tensor *logits = mg_gpt_forward(gpt, tape, ids, 1, n, NULL);
    double most = 0;
    for (ptrdiff_t i = 0; i < mg_size(logits); i++) {
        double expected;
        assert_int_equal(fscanf(file, "%lf%*[,\n]", &expected), 1);
        most = fmax(most, fabs((double)logits->data[i] - expected));
    }
    fclose(file);
    mg_tape_free(tape);
    return most;
}

static double imported_difference(const char *name) {
    char folder[256];
    snprintf(folder, sizeof folder, LIKE_GPT2 "%s", name);
    mg_checkpoint c;
    assert_ok(import(folder, false, &c, &fixture_error));
    assert_int_equal(heard.matched, 28);
    assert_int_equal(heard.missing, 0);
    double most = difference(c.gpt, folder);
    mg_checkpoint_free(&c);
    return most;
}

static void every_form_computes_what_pytorch_does(void **state) {
    (void)state;
    static const char *const forms[] = {"plain", "prefixed",         "f16", "bf16", "unscaled",
                                        "keras", "keras-embeddings", "text"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) assert_less(imported_difference(forms[i]), 1e-4);
}

/* Rank, size and number of the file's tensors are right: only what is computed tells. */
static void a_transposed_square_matrix_shows_in_the_fingerprint(void **state) {
    (void)state;
    assert_less(0.1, imported_difference("transposed"));
    mg_fingerprint plain = fingerprint_of("plain"), wrong = fingerprint_of("transposed");
    assert_true(plain.hash != wrong.hash);
    assert_less(0.01, fabs(plain.logits[0] - wrong.logits[0]));
    assert_true(plain.hash == fingerprint_of("prefixed").hash);
    assert_true(plain.hash == fingerprint_of("keras").hash);
    assert_true(plain.hash == fingerprint_of("keras-embeddings").hash);
    assert_true(plain.hash != fingerprint_of("unscaled").hash);
}

static void what_was_imported_survives_saving(void **state) {
    (void)state;
    mg_checkpoint c, loaded;
    assert_ok(import(LIKE_GPT2 "text", false, &c, &fixture_error));
    assert_says(heard.text, "vocab_size is 264, but there are 259 tokens");
    assert_int_equal(mg_tokenizer_size(c.tokenizer), 259);
    assert_ok(mg_checkpoint_save(in_folder("text.h5").path, &c, &fixture_error));
    assert_ok(mg_checkpoint_load(&loaded, in_folder("text.h5").path, false, &fixture_error));
    assert_same_checkpoint(&c, &loaded);
    mg_checkpoint_free(&c);
    mg_checkpoint_free(&loaded);
}

static void without_merges_there_are_ids(void **state) {
    (void)state;
    mg_checkpoint c;
    assert_ok(import(LIKE_GPT2 "plain", false, &c, &fixture_error));
    assert_says(heard.text, "there is no merges.txt");
    assert_int_equal(mg_tokenizer_get_kind(c.tokenizer), MG_TOKENIZER_NONE);
    assert_int_equal(mg_tokenizer_size(c.tokenizer), 11);
    assert_true(isnan(c.train.best_loss));
    mg_checkpoint_free(&c);
}

static void buffers_and_a_repeated_head_are_skipped(void **state) {
    (void)state;
    mg_checkpoint c;
    assert_ok(import(LIKE_GPT2 "prefixed", false, &c, &fixture_error));
    assert_int_equal(heard.skipped, 5);
    mg_checkpoint_free(&c);
}

/* ---- Changed files ---- */

static char model[80];
static fixture_name in_model(const char *name) {
    fixture_name file;
    snprintf(file.path, sizeof file.path, "%.79s/%.32s", model, name);
    return file;
}

static void copy(const char *from, const char *to) {
    size_t n;
    unsigned char *bytes = read_file(from, &n);
    write_file(to, bytes, n);
    free(bytes);
}

/* A folder with the files of a form, to be changed. */
static void fresh(const char *form) {
    static const char *const files[] = {"config.json", "model.safetensors", "tf_model.h5", "merges.txt", "vocab.json"};
    static int count;
    snprintf(model, sizeof model, "%s/%d", fixture_folder, count++ % 1000);
    char command[256];
    snprintf(command, sizeof command, "mkdir '%s'", model);
    assert_int_equal(system(command), 0);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char from[256];
        snprintf(from, sizeof from, LIKE_GPT2 "%s/%s", form, files[i]);
        if (access(from, R_OK) == 0) copy(from, in_model(files[i]).path);
    }
}

/* Replace a text in a file. In a safetensors header, it must have the same length. */
static void change(const char *name, const char *from, const char *to) {
    size_t n, length = strlen(from);
    unsigned char *bytes = read_file(in_model(name).path, &n), *place = bytes;
    while (place + length <= bytes + n && memcmp(place, from, length) != 0) place++;
    assert_true(place + length <= bytes + n);
    unsigned char changed[1 << 16];
    size_t before = (size_t)(place - bytes);
    memcpy(changed, bytes, before);
    memcpy(changed + before, to, strlen(to));
    memcpy(changed + before + strlen(to), place + length, n - before - length);
    write_file(in_model(name).path, changed, n - length + strlen(to));
    free(bytes);
}

static void assert_refused(const char *says) {
    mg_checkpoint c;
    mg_error error = {0};
    mg_status status = import(model, false, &c, &error);
    assert_true(status == MG_ERR_FORMAT || status == MG_ERR_IO);
    assert_null(c.gpt);
    assert_says(error.message, fixture_folder);
    assert_says(error.message, says);
    assert_null(strchr(error.message, '\n'));
}

static void assert_change_refused(const char *name, const char *from, const char *to, const char *says) {
    fresh("text");
    change(name, from, to);
    assert_refused(says);
}

static void other_models_are_refused(void **state) {
    (void)state;
    const char *config = "config.json";
    assert_change_refused(config, "\"gpt2\"", "\"gpt_neo\"", "model_type is 'gpt_neo'");
    assert_change_refused(config, "model_type", "mode_type", "model_type is missing");
    assert_change_refused(config, "\"gpt2\"", "7", "model_type is not a string");
    assert_change_refused(config, "gelu_new", "relu", "activation_function is 'relu'");
    assert_change_refused(config, "gelu_new", "gelu", "activation_function is 'gelu', but this library only supports");
    assert_change_refused(config, "{", "{\"scale_attn_by_inverse_layer_idx\": true,",
                          "scale_attn_by_inverse_layer_idx");
    assert_change_refused(config, "{", "{\"add_cross_attention\": true,", "add_cross_attention is true");
    assert_change_refused(config, "{", "{\"add_cross_attention\": 1,", "is neither true nor false");
    assert_change_refused(config, "{", "{\"n_inner\": 8,", "n_inner is 8, but only 4 times n_embd, which is 16");
    assert_change_refused(config, "1e-05", "\"small\"", "layer_norm_epsilon is not a number");
    assert_change_refused(config, "1e-05", "-1", "eps is -1");
    assert_change_refused(config, "{", "{\"tie_word_embeddings\": false,", "lm_head.weight is missing");
    assert_change_refused(config, "{", "[", "line");
    assert_change_refused(config, "\"n_head\": 2", "\"n_head\": 3", "must be a multiple");
    assert_change_refused(config, "\"n_head\": 2", "\"n_head\": \"2\"", "n_head is not an integer");
    assert_change_refused(config, "\"n_head\": 2", "\"n_head\": 0", "n_head is 0");
    assert_change_refused(config, "n_layer", "layers", "n_layer is missing");
    assert_change_refused(config, "\"n_layer\": 2", "\"n_layer\": 2000000", "n_layer is 2000000");
}

static void sizes_that_disagree_are_refused(void **state) {
    (void)state;
    const char *config = "config.json", *tensors = "model.safetensors";
    assert_change_refused(config, "\"n_layer\": 2", "\"n_layer\": 3", "h.2.ln_1.weight and 11 more are missing");
    assert_change_refused(config, "\"n_layer\": 2", "\"n_layer\": 1", "but n_layer in config.json is 1");
    assert_change_refused(config, "264", "265",
                          "'wte.weight' has the shape (264, 4), but according to config.json it should be (265, 4)");
    assert_change_refused(config, "\"n_positions\": 6", "\"n_positions\": 7",
                          "(6, 4), but according to config.json it should be (7, 4)");
    assert_change_refused(config, "\"n_embd\": 4", "\"n_embd\": 8",
                          "(264, 4), but according to config.json it should be (264, 8)");
    assert_change_refused(tensors, "[4,12]", "[12,4]",
                          "(12, 4), and GPT-2's is (4, 12): this is the transposed layout");
    assert_change_refused(tensors, "h.1.ln_1.bias", "h.1.ln_9.bias",
                          "holds 'h.1.ln_9.bias', which GPT-2 does not have");
    assert_change_refused(tensors, "h.1.ln_1.bias", "x.1.ln_1.bias", "the tensor h.1.ln_1.bias is missing");
    assert_int_equal(heard.missing, 1);
    assert_int_equal(heard.skipped, 1);
    assert_change_refused(tensors, "\"F32\",\"shape\":[4,4]", "\"I32\",\"shape\":[4,4]",
                          "holds I32, but only F32, F16 and BF16");
}

/* The last F32 of the file belongs to the head. */
static void a_head_of_its_own_is_refused(void **state) {
    (void)state;
    fresh("prefixed");
    size_t n;
    unsigned char *bytes = read_file(in_model("model.safetensors").path, &n);
    bytes[n - 2] ^= 1;
    write_file(in_model("model.safetensors").path, bytes, n);
    free(bytes);
    assert_refused("lm_head.weight differs from wte.weight");
}

/* "transformer.wte.weight" and "wte.weight" are one: here under both names. */
static void the_same_tensor_twice_is_refused(void **state) {
    (void)state;
    fresh("prefixed");
    change("model.safetensors", "\"lm_head.weight\"", "\"wte.weight\"    ");
    assert_refused("holds wte twice: as 'transformer.wte.weight' and as 'wte.weight'");
}

static void other_files_are_named(void **state) {
    (void)state;
    static const char pointer[] = "version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 548105171\n";
    static const char *const files[] = {"model.safetensors", "config.json", "merges.txt"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        fresh("text");
        write_file(in_model(files[i]).path, pointer, sizeof pointer - 1);
        assert_refused("git-lfs pointer");
    }
    fresh("keras");
    write_file(in_model("tf_model.h5").path, pointer, sizeof pointer - 1);
    assert_refused("git-lfs pointer");
    write_file(in_model("tf_model.h5").path, "no HDF5", 7);
    assert_refused("is not an HDF5 file");
    remove(in_model("tf_model.h5").path);
    assert_refused("has neither model.safetensors nor tf_model.h5");
    write_file(in_model("pytorch_model.bin").path, "PK", 2);
    assert_refused("is a pickle");
    assert_refused("model.safetensors");
    write_file(in_model("model.safetensors.index.json").path, "{}", 2);
    assert_refused("holds a sharded model");
    remove(in_model("config.json").path);
    assert_refused("has no config.json");
    mg_checkpoint c;
    mg_error error = {0};
    assert_int_equal(import(LIKE_GPT2 "plain/config.json", false, &c, &error), MG_ERR_IO);
    assert_says(error.message, "is a file: give the folder");
    assert_int_equal(import("/nowhere", false, &c, &error), MG_ERR_IO);
    assert_says(error.message, "No such file");
}

static void another_vocabulary_is_refused(void **state) {
    (void)state;
    assert_change_refused("vocab.json", "\"the\": 257", "\"the\": 300", "'the' has id 300");
    fresh("text");
    change("merges.txt", "th e\n", "th e\nthe r\nthe n\nthe m\nthe y\ni n\n");
    assert_refused("has no token 'ther'"); /* there are 264 tokens: only vocab.json tells */
    change("merges.txt", "i n\n", "i n\na n\n");
    assert_refused("makes 265 tokens, but vocab_size in config.json is 264");
}

/* ---- NaN ---- */

static void put_nan(size_t from_end) {
    static const unsigned char nan_bytes[] = {0, 0, 0xc0, 0x7f};
    size_t n;
    unsigned char *bytes = read_file(in_model("model.safetensors").path, &n);
    memcpy(bytes + n - 4 * from_end, nan_bytes, 4);
    write_file(in_model("model.safetensors").path, bytes, n);
    free(bytes);
}

static void nan_is_named_and_counted(void **state) {
    (void)state;
    fresh("plain");
    put_nan(1); /* ln_f.bias comes last */
    assert_refused("ln_f.bias holds 1 number that is NaN or infinite: --allow-nan");
    put_nan(2);
    put_nan(5);
    assert_refused("ln_f.weight holds 1 number that is NaN or infinite, and 1 more tensors hold some");
    mg_checkpoint c;
    assert_ok(import(model, true, &c, &fixture_error));
    assert_says(heard.text, "ln_f.bias holds 2 numbers (of 4) that are NaN or infinite");
    mg_checkpoint_free(&c);
}

/* ---- HDF5 ---- */

#define KERAS_WTE "/transformer/tfgp_t2lm_head_model/transformer/wte/weight:0"

/* Put another dataset in the place of wte. */
static void replace_wte(hid_t type, int rank, const hsize_t *dim, bool written) {
    static const double zeros[64];
    fresh("keras");
    hid_t file = H5Fopen(in_model("tf_model.h5").path, H5F_ACC_RDWR, H5P_DEFAULT);
    hid_t space = H5Screate_simple(rank, dim, NULL), properties = H5Pcreate(H5P_DATASET_CREATE);
    if (rank > 0) H5Pset_chunk(properties, rank, dim);
    assert_true(H5Ldelete(file, KERAS_WTE, H5P_DEFAULT) >= 0);
    hid_t set = H5Dcreate2(file, KERAS_WTE, type, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    assert_true(set >= 0);
    if (written) assert_true(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, zeros) >= 0);
    H5Dclose(set);
    H5Pclose(properties);
    H5Sclose(space);
    H5Fclose(file);
}

static void keras_files_are_checked_before_they_are_believed(void **state) {
    (void)state;
    const hsize_t right[] = {11, 4}, wrong[] = {4, 11}, flat[] = {44}, deep[] = {1, 1, 1, 11, 4};
    mg_checkpoint c;
    replace_wte(H5T_IEEE_F32LE, 2, right, true);
    assert_ok(import(model, false, &c, &fixture_error));
    mg_checkpoint_free(&c);
    replace_wte(H5T_IEEE_F32BE, 2, right, true);
    assert_ok(import(model, false, &c, &fixture_error));
    mg_checkpoint_free(&c);
    replace_wte(H5T_STD_I32LE, 2, right, true);
    assert_refused("wte/weight:0' holds no floating-point numbers");
    replace_wte(H5T_IEEE_F32LE, 2, wrong, true);
    assert_refused("wte/weight:0' has the shape (4, 11), but according to config.json it should be (11, 4)");
    replace_wte(H5T_IEEE_F32LE, 1, flat, true);
    assert_refused("has the shape (44), but");
    replace_wte(H5T_IEEE_F32LE, 5, deep, true);
    assert_refused("has the shape of 5 dimensions, but");
    replace_wte(H5T_IEEE_F32LE, 2, right, false);
    assert_refused("is incomplete: not all of it was written");
}

static void links_that_lead_elsewhere_are_not_followed(void **state) {
    (void)state;
    fresh("keras");
    hid_t file = H5Fopen(in_model("tf_model.h5").path, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(H5Lmove(file, KERAS_WTE, file, "/elsewhere", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Lcreate_external("other.h5", "/wte", file, KERAS_WTE, H5P_DEFAULT, H5P_DEFAULT) >= 0);
    H5Fclose(file);
    assert_refused("the tensor wte is missing");
}

static void a_keras_file_cut_short_is_refused(void **state) {
    (void)state;
    fresh("keras");
    size_t n;
    unsigned char *bytes = read_file(in_model("tf_model.h5").path, &n);
    write_file(in_model("tf_model.h5").path, bytes, n - 100);
    free(bytes);
    assert_refused("is truncated");
}

/* ---- Memory ---- */

typedef struct stingy {
    int left, alive; /* requests until one is refused; blocks not yet freed */
} stingy;

static void *stingy_allocate(size_t bytes, void *user) {
    stingy *s = user;
    if (s->left-- == 0) return NULL;
    s->alive++;
    return aligned_alloc(MG_ALIGNMENT, (bytes / MG_ALIGNMENT + 1) * MG_ALIGNMENT);
}

static void stingy_release(void *block, void *user) {
    ((stingy *)user)->alive--;
    free(block);
}

static void importing_survives_any_refused_request(void **state) {
    (void)state;
    static const char *const forms[] = {"prefixed", "keras", "text"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        char folder[512];
        snprintf(folder, sizeof folder, LIKE_GPT2 "%s", forms[i]);
        for (int refused = 0;; refused++) {
            stingy s = {.left = refused};
            mg_set_allocator(&(mg_allocator){stingy_allocate, stingy_release, &s});
            mg_checkpoint c;
            mg_error error = {0};
            mg_status status = import(folder, false, &c, &error);
            mg_checkpoint_free(&c);
            mg_set_allocator(NULL);
            assert_int_equal(s.alive, 0);
            if (status == MG_OK) break;
            assert_int_equal(status, MG_ERR_MEMORY);
            assert_says(error.message, "out of memory");
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_computes_what_pytorch_does),
        cmocka_unit_test(a_transposed_square_matrix_shows_in_the_fingerprint),
        cmocka_unit_test(what_was_imported_survives_saving),
        cmocka_unit_test(without_merges_there_are_ids),
        cmocka_unit_test(buffers_and_a_repeated_head_are_skipped),
        cmocka_unit_test(other_models_are_refused),
        cmocka_unit_test(sizes_that_disagree_are_refused),
        cmocka_unit_test(a_head_of_its_own_is_refused),
        cmocka_unit_test(the_same_tensor_twice_is_refused),
        cmocka_unit_test(other_files_are_named),
        cmocka_unit_test(another_vocabulary_is_refused),
        cmocka_unit_test(nan_is_named_and_counted),
        cmocka_unit_test(keras_files_are_checked_before_they_are_believed),
        cmocka_unit_test(links_that_lead_elsewhere_are_not_followed),
        cmocka_unit_test(a_keras_file_cut_short_is_refused),
        cmocka_unit_test(importing_survives_any_refused_request),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
