#include "bpe.h"
#include "fixture.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

static int entries(void) {
    int n = 0;
    DIR *folder = opendir(fixture_folder);
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) n += entry->d_name[0] != '.';
    closedir(folder);
    return n;
}

static void what_is_saved_is_loaded_bit_for_bit(void **state) {
    (void)state;
    mg_checkpoint saved, loaded;
    fixture_small(&saved);
    fixture_name file = in_folder("round.h5");
    assert_ok(mg_checkpoint_save(file.path, &saved, &fixture_error));
    assert_ok(mg_checkpoint_load(&loaded, file.path, true, &fixture_error));
    assert_same_checkpoint(&saved, &loaded);
    assert_non_null(mg_gpt_params(loaded.gpt)->grads);
    mg_checkpoint_free(&loaded);
    assert_null(loaded.gpt);
    mg_checkpoint_free(&saved);
}

/* A file that an early maskgrad wrote, what fixture_small() makes, loads in every later one. */
static void version_1_still_loads(void **state) {
    (void)state;
    mg_checkpoint expected, loaded;
    fixture_small(&expected);
    assert_ok(mg_checkpoint_load(&loaded, MASKGRAD_SOURCE_DIR "/tests/checkpoints/version-1.h5", true, &fixture_error));
    assert_same_checkpoint(&expected, &loaded);
    mg_checkpoint_free(&loaded);
    mg_checkpoint_free(&expected);
}

static int64_t version_of(const char *path) {
    mg_checkpoint_info info;
    assert_ok(mg_checkpoint_describe(path, &info, &fixture_error));
    return info.format_version;
}

/* A file says the lowest version that can hold it: older programs read what they know, and refuse the rest. */
static void only_what_is_new_needs_a_new_version(void **state) {
    (void)state;
    mg_checkpoint saved, loaded;
    fixture_name file = in_folder("version.h5");
    for (int new = 0; new <= 1; new ++) {
        mg_gpt_config config = fixture_config();
        config.no_positions = new;
        fixture_make(&saved, config);
        assert_ok(mg_checkpoint_save(file.path, &saved, &fixture_error));
        assert_int_equal(version_of(file.path), new ? 2 : 1);
        assert_ok(mg_checkpoint_load(&loaded, file.path, true, &fixture_error));
        assert_same_checkpoint(&saved, &loaded);
        const mg_param *wpe = mg_params_find(mg_gpt_params(loaded.gpt), "wpe");
        assert_true((wpe == NULL) == new);
        mg_checkpoint_free(&loaded);
        mg_checkpoint_free(&saved);
    }
}

static void without_gradients_there_is_no_optimizer(void **state) {
    (void)state;
    mg_checkpoint saved, loaded;
    fixture_small(&saved);
    fixture_name file = in_folder("frozen.h5");
    assert_ok(mg_checkpoint_save(file.path, &saved, &fixture_error));
    assert_ok(mg_checkpoint_load(&loaded, file.path, false, &fixture_error));
    assert_null(loaded.adamw);
    assert_null(mg_gpt_params(loaded.gpt)->grads);
    mg_params *params = mg_gpt_params(saved.gpt);
    assert_same_block(params, params->values, mg_gpt_params(loaded.gpt)->values);
    mg_checkpoint_free(&loaded);
    mg_checkpoint_free(&saved);
}

/* Only weights; and a NaN for the best loss, which means that none was measured. */
static void optimizer_and_tokenizer_may_be_absent(void **state) {
    (void)state;
    mg_checkpoint saved, loaded;
    fixture_small(&saved);
    mg_checkpoint bare = {.gpt = saved.gpt, .train = saved.train};
    bare.train.best_loss = NAN;
    fixture_name file = in_folder("bare.h5");
    assert_ok(mg_checkpoint_save(file.path, &bare, &fixture_error));
    assert_ok(mg_checkpoint_load(&loaded, file.path, true, &fixture_error));
    assert_same_checkpoint(&bare, &loaded);
    mg_checkpoint_free(&loaded);
    mg_checkpoint_free(&saved);
}

static void assert_tokenizer_returns(mg_checkpoint *saved, const mg_tokenizer *tokenizer) {
    mg_checkpoint loaded;
    fixture_name file = in_folder("tokens.h5");
    assert_ok(mg_checkpoint_save(file.path, saved, &fixture_error));
    assert_ok(mg_checkpoint_load(&loaded, file.path, false, &fixture_error));
    assert_same_tokenizer(tokenizer, loaded.tokenizer);
    mg_checkpoint_free(&loaded);
}

static void every_kind_of_tokenizer_returns(void **state) {
    (void)state;
    mg_checkpoint saved;
    fixture_small(&saved);
    const mg_token words[] = {{"o", 1}, {"\xc3\xa1gua", 5}, {"ontem", 5}, {".", 1}, {"cachorro", 8}};
    const mg_tokenizer_kind kinds[] = {MG_TOKENIZER_NONE, MG_TOKENIZER_GRAMMAR};
    for (int i = 0; i < 2; i++) {
        mg_tokenizer_free(saved.tokenizer);
        assert_ok(mg_tokenizer_new(&saved.tokenizer, kinds[i], 5, words, &fixture_error));
        assert_tokenizer_returns(&saved, saved.tokenizer);
    }
    mg_checkpoint_free(&saved);
}

/* Its tokens are any bytes, and its merges come back as they were given. */
static void merges_return(void **state) {
    (void)state;
    static const char merges[] = "#version: 0.2\na b\nab c\n";
    mg_checkpoint saved, loaded;
    fixture_small(&saved);
    mg_tokenizer *gpt2;
    assert_ok(mg_tokenizer_new_gpt2(&gpt2, merges, strlen(merges), &fixture_error));
    mg_gpt_config config = fixture_config();
    config.vocab_size = mg_tokenizer_size(gpt2);
    mg_checkpoint bare = {.tokenizer = gpt2, .train = saved.train};
    assert_ok(mg_gpt_new_zeros(&bare.gpt, &config, false, &fixture_error));
    assert_tokenizer_returns(&bare, gpt2);
    assert_ok(mg_checkpoint_load(&loaded, in_folder("tokens.h5").path, false, &fixture_error));
    size_t length;
    const char *returned = mg_tokenizer_merges(loaded.tokenizer, &length);
    assert_int_equal(length, strlen(merges));
    assert_memory_equal(returned, merges, length);
    mg_checkpoint_free(&loaded);
    mg_checkpoint_free(&bare);
    mg_checkpoint_free(&saved);
}

static void the_same_state_gives_the_same_bytes(void **state) {
    (void)state;
    mg_checkpoint saved;
    fixture_small(&saved);
    fixture_name first = in_folder("first.h5"), second = in_folder("second.h5");
    assert_ok(mg_checkpoint_save(first.path, &saved, &fixture_error));
    for (int i = 0; i < 3; i++) assert_ok(mg_checkpoint_save(second.path, &saved, &fixture_error));
    size_t n, m;
    unsigned char *a = read_file(first.path, &n), *b = read_file(second.path, &m);
    assert_int_equal(n, m);
    assert_memory_equal(a, b, n);
    free(a);
    free(b);
    mg_checkpoint_free(&saved);
}

static void a_large_matrix_has_several_chunks(void **state) {
    (void)state;
    mg_checkpoint saved, loaded;
    mg_gpt_config config = fixture_config();
    config.n_embd = 64;
    config.block_size = 10000; /* wpe: 2.56 MB, three chunks, the last of them not full */
    fixture_make(&saved, config);
    fixture_name file = in_folder("large.h5");
    assert_ok(mg_checkpoint_save(file.path, &saved, &fixture_error));
    assert_ok(mg_checkpoint_load(&loaded, file.path, true, &fixture_error));
    assert_same_checkpoint(&saved, &loaded);
    mg_checkpoint_free(&loaded);
    mg_checkpoint_free(&saved);
}

static void describe_tells_without_loading(void **state) {
    (void)state;
    mg_checkpoint saved;
    fixture_small(&saved);
    fixture_name file = in_folder("described.h5");
    assert_ok(mg_checkpoint_save(file.path, &saved, &fixture_error));
    mg_checkpoint_info info;
    assert_ok(mg_checkpoint_describe(file.path, &info, &fixture_error));
    struct stat on_disk;
    assert_int_equal(stat(file.path, &on_disk), 0);
    assert_true(info.bytes == on_disk.st_size);
    assert_int_equal(info.format_version, 1);
    assert_says(info.creator, "maskgrad ");
    assert_true(info.sealed && info.has_optimizer && info.has_tokenizer);
    assert_int_equal(info.tokenizer_kind, MG_TOKENIZER_CHAR);
    assert_same_config(&info.config, mg_gpt_get_config(saved.gpt));
    assert_same_train(&info.train, &saved.train);
    assert_true(info.optimizer.step == 41 && info.optimizer.beta1 == 0.875);
    mg_checkpoint_free(&saved);
}

/* A mask that version 1 does not know makes the file one of version 2, which older programs refuse. */
static void only_a_new_mask_makes_a_new_version(void **state) {
    (void)state;
    const mg_gpt_config plain = fixture_config();
    mg_gpt_config masked[7];
    for (int i = 0; i < 7; i++) masked[i] = plain;
    masked[1].mask = mg_lookahead(2);
    masked[2].mask = (mg_mask){MG_MASK_WINDOW, 2};
    masked[3].mask = (mg_mask){MG_MASK_PREFIX, 0};
    masked[4].mask = (mg_mask){MG_MASK_BLOCK, INT_MAX};
    masked[5].documents = true;
    masked[6].documents = true;
    masked[6].document_end = 1;
    masked[6].positions_run_on = true;
    masked[6].mask = (mg_mask){MG_MASK_WINDOW, 3};
    for (int i = 0; i < 7; i++) {
        mg_checkpoint saved, loaded;
        mg_checkpoint_info info;
        fixture_make(&saved, masked[i]);
        fixture_name file = in_folder("masked.h5");
        assert_ok(mg_checkpoint_save(file.path, &saved, &fixture_error));
        assert_ok(mg_checkpoint_describe(file.path, &info, &fixture_error));
        assert_int_equal(info.format_version, i < 2 ? 1 : 2);
        assert_ok(mg_checkpoint_load(&loaded, file.path, true, &fixture_error));
        assert_same_checkpoint(&saved, &loaded);
        mg_checkpoint_free(&loaded);
        mg_checkpoint_free(&saved);
    }
}

/* ---- Saving that fails: the old file stays, no other file is left. ---- */

static void assert_save_fails(const char *path, const mg_checkpoint *c, mg_status status, const char *why) {
    int before = entries();
    memset(&fixture_error, 0, sizeof fixture_error);
    assert_int_equal(mg_checkpoint_save(path, c, &fixture_error), status);
    assert_int_equal(fixture_error.status, status);
    assert_says(fixture_error.message, why);
    assert_says(fixture_error.message, path);
    assert_int_equal(entries(), before);
}

static void a_place_that_cannot_be_written_is_named(void **state) {
    (void)state;
    mg_checkpoint saved;
    fixture_small(&saved);
    assert_save_fails(in_folder("absent/x.h5").path, &saved, MG_ERR_IO, "No such file or directory");
    write_file(in_folder("file").path, "x", 1);
    assert_save_fails(in_folder("file/x.h5").path, &saved, MG_ERR_IO, "Not a directory");
    assert_save_fails(fixture_folder, &saved, MG_ERR_IO, "folder");
    assert_save_fails("/dev/null", &saved, MG_ERR_IO, "regular file");
    assert_save_fails("/proc/x.h5", &saved, MG_ERR_IO, "cannot be written");
    mg_checkpoint_free(&saved);
}

static void a_full_disk_leaves_the_old_file(void **state) {
    (void)state;
    mg_checkpoint saved, loaded;
    fixture_small(&saved);
    fixture_name file = in_folder("full.h5");
    assert_ok(mg_checkpoint_save(file.path, &saved, &fixture_error));
    size_t length;
    free(read_file(file.path, &length));

    struct rlimit unlimited, limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &unlimited), 0);
    limit = unlimited;
    signal(SIGXFSZ, SIG_IGN);
    saved.train.step++;
    const size_t rooms[] = {0, 1, 511, 512, 4096, length / 2, length - 1};
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) {
        limit.rlim_cur = rooms[i];
        setrlimit(RLIMIT_FSIZE, &limit);
        mg_status status = mg_checkpoint_save(file.path, &saved, &fixture_error);
        setrlimit(RLIMIT_FSIZE, &unlimited);
        assert_int_equal(status, MG_ERR_IO);
        assert_says(fixture_error.message, "File too large");
    }
    signal(SIGXFSZ, SIG_DFL);
    saved.train.step--;
    assert_ok(mg_checkpoint_load(&loaded, file.path, true, &fixture_error));
    assert_same_checkpoint(&saved, &loaded);
    mg_checkpoint_free(&loaded);
    mg_checkpoint_free(&saved);
}

/* A child saves one step after another and is killed without warning: what is at the path is whole, and its content is
 * one of the states that were saved. */
static void a_kill_leaves_a_whole_file(void **state) {
    (void)state;
    mg_checkpoint saved, loaded;
    fixture_small(&saved);
    fixture_name file = in_folder("killed.h5");
    assert_ok(mg_checkpoint_save(file.path, &saved, &fixture_error));
    for (int round = 0; round < 12; round++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            for (;;) {
                saved.train.step++;
                if (mg_checkpoint_save(file.path, &saved, NULL) != MG_OK) _exit(1);
            }
        nanosleep(&(struct timespec){.tv_nsec = 7000000 + 1300000 * round}, NULL);
        int how;
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, &how, 0), child);
        assert_true(WIFSIGNALED(how));
        assert_ok(mg_checkpoint_load(&loaded, file.path, true, &fixture_error));
        assert_true(loaded.train.step >= saved.train.step);
        loaded.train.step = saved.train.step;
        assert_same_checkpoint(&saved, &loaded);
        mg_checkpoint_free(&loaded);
    }
    mg_checkpoint_free(&saved);
}

static void a_tokenizer_of_another_size_is_refused(void **state) {
    (void)state;
    mg_checkpoint saved;
    fixture_small(&saved);
    mg_tokenizer_free(saved.tokenizer);
    assert_ok(mg_tokenizer_new(&saved.tokenizer, MG_TOKENIZER_NONE, 6, NULL, &fixture_error));
    assert_save_fails(in_folder("sizes.h5").path, &saved, MG_ERR_INPUT, "6 tokens, but the model's vocab_size is 5");
    mg_checkpoint_free(&saved);
}

/* ---- Memory that runs out at any request ---- */

typedef struct failing {
    int64_t left; /* requests until one is refused */
    int64_t alive;
} failing;

static void *failing_allocate(size_t bytes, void *user) {
    failing *f = user;
    if (f->left-- == 0) return NULL;
    f->alive++;
    return aligned_alloc(MG_ALIGNMENT, (bytes + MG_ALIGNMENT) / MG_ALIGNMENT * MG_ALIGNMENT);
}

static void failing_release(void *block, void *user) {
    ((failing *)user)->alive--;
    free(block);
}

static void loading_survives_any_refused_request(void **state) {
    (void)state;
    mg_checkpoint saved, loaded;
    fixture_small(&saved);
    fixture_name file = in_folder("memory.h5");
    assert_ok(mg_checkpoint_save(file.path, &saved, &fixture_error));
    mg_checkpoint_free(&saved);
    failing f = {0};
    mg_set_allocator(&(mg_allocator){failing_allocate, failing_release, &f});
    int refused = 0;
    for (;; refused++) {
        f.left = refused;
        mg_status status = mg_checkpoint_load(&loaded, file.path, true, &fixture_error);
        if (status == MG_OK) break;
        assert_int_equal(status, MG_ERR_MEMORY);
        assert_says(fixture_error.message, "out of memory");
        assert_null(loaded.gpt);
        assert_int_equal(f.alive, 0);
    }
    assert_true(refused > 8);
    mg_checkpoint_free(&loaded);
    assert_int_equal(f.alive, 0);
    mg_set_allocator(NULL);
}

static void saving_survives_any_refused_request(void **state) {
    (void)state;
    mg_checkpoint saved;
    failing f = {.left = INT64_MAX};
    mg_set_allocator(&(mg_allocator){failing_allocate, failing_release, &f});
    fixture_small(&saved);
    int64_t alive = f.alive;
    fixture_name file = in_folder("memory-save.h5");
    int refused = 0;
    for (;; refused++) {
        f.left = refused;
        mg_status status = mg_checkpoint_save(file.path, &saved, &fixture_error);
        assert_int_equal(f.alive, alive);
        if (status == MG_OK) break;
        assert_int_equal(status, MG_ERR_MEMORY);
        assert_int_not_equal(access(file.path, F_OK), 0);
    }
    assert_true(refused >= 3);
    mg_checkpoint_free(&saved);
    assert_int_equal(f.alive, 0);
    mg_set_allocator(NULL);
}

/* ---- Speed: a save between two training steps must not be felt. ---- */

/* Processor time, which neither a slow disk nor a busy machine changes much. 10 ms are usual. */
static void a_small_model_is_saved_at_once(void **state) {
    (void)state;
    mg_checkpoint saved;
    mg_gpt_config config = {0}; /* 2 layers, width 64: 100,000 parameters and two moments of each */
    fixture_make(&saved, config);
    fixture_name file = in_folder("quick.h5");
    double best = 1e9;
    for (int i = 0; i < 5; i++) {
        clock_t before = clock();
        assert_ok(mg_checkpoint_save(file.path, &saved, &fixture_error));
        double seconds = (double)(clock() - before) / CLOCKS_PER_SEC;
        if (seconds < best) best = seconds;
    }
    assert_less(best, 0.3);
    mg_checkpoint_free(&saved);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_saved_is_loaded_bit_for_bit),
        cmocka_unit_test(version_1_still_loads),
        cmocka_unit_test(only_what_is_new_needs_a_new_version),
        cmocka_unit_test(without_gradients_there_is_no_optimizer),
        cmocka_unit_test(optimizer_and_tokenizer_may_be_absent),
        cmocka_unit_test(every_kind_of_tokenizer_returns),
        cmocka_unit_test(merges_return),
        cmocka_unit_test(the_same_state_gives_the_same_bytes),
        cmocka_unit_test(a_large_matrix_has_several_chunks),
        cmocka_unit_test(describe_tells_without_loading),
        cmocka_unit_test(only_a_new_mask_makes_a_new_version),
        cmocka_unit_test(a_place_that_cannot_be_written_is_named),
        cmocka_unit_test(a_full_disk_leaves_the_old_file),
        cmocka_unit_test(a_kill_leaves_a_whole_file),
        cmocka_unit_test(a_tokenizer_of_another_size_is_refused),
        cmocka_unit_test(loading_survives_any_refused_request),
        cmocka_unit_test(saving_survives_any_refused_request),
        cmocka_unit_test(a_small_model_is_saved_at_once),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
