/* A run folder: whose files are in it, and what may be removed. */
#include "atomic_file.h"
#include "heap.h"
#include "run_dir.h"

#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64];
static mg_run_dir dir;
static mg_error error;

static void put(const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static bool is_there(const char *name) {
    char path[256];
    struct stat found;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return lstat(path, &found) == 0;
}

/* A process id that is not in use. */
static long gone(void) {
    pid_t child = fork();
    if (child == 0) _exit(0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    return child;
}

/* Names that look like temporary files, and are someone else's: all stay. What a killed process of ours left goes. */
static void test_leftovers(void **state) {
    (void)state;
    static const char *const foreign[] = {
        "notes.tmp.2024",      "checkpoint.h5.tmp.1", "log.csv.tmp.4000000", ".tmp.5",
        ".maskgrad-tmp-",      ".maskgrad-tmp-x-a",   ".maskgrad-tmp--5-a",  ".maskgrad-tmp-12",
        "x.maskgrad-tmp-12-a", ".maskgrad-tmp-0-a",   ".maskgrad-tmp- 12-a", ".maskgrad-tmp-99999999999999999999-a",
    };
    char ours[64], alive[64], of_root[64] = ".maskgrad-tmp-1-run.json";
    snprintf(ours, sizeof ours, ".maskgrad-tmp-%ld-checkpoint.h5", gone());
    snprintf(alive, sizeof alive, ".maskgrad-tmp-%ld-checkpoint.h5", (long)getpid());
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) put(foreign[i], "precious");
    put(ours, "");
    put(alive, "");
    put(of_root, "");
    assert_int_equal(mg_run_dir_lock(&dir, &error), MG_OK);
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) assert_true(is_there(foreign[i]));
    assert_false(is_there(ours));
    assert_true(is_there(alive) && is_there(of_root));
    char *path = mg_temporary_path(dir.checkpoint, &error);
    assert_string_equal(strrchr(path, '/') + 1, alive);
    mg_free(path);
}

/* Between the log's first byte and run.json a kill leaves nothing to lose; a row, or a log without our lock, is. */
static void test_just_begun(void **state) {
    static const char header[] = "step,split,loss,lr,grad_norm,tokens,seconds\n";
    (void)state;
    put("log.csv", header);
    assert_false(mg_run_dir_was_just_begun(&dir));
    assert_says(mg_run_dir_foreign_file(&dir), "log.csv");
    put(".lock", "");
    for (size_t n = 0; n < sizeof header; n++) {
        char part[sizeof header];
        snprintf(part, n + 1, "%s", header);
        put("log.csv", part);
        assert_true(mg_run_dir_was_just_begun(&dir));
        assert_null(mg_run_dir_foreign_file(&dir));
    }
    static const char *const others[] = {"notes", "step,split\n", "step,split,loss,lr,grad_norm,tokens,seconds\n0"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        put("log.csv", others[i]);
        assert_false(mg_run_dir_was_just_begun(&dir));
        assert_non_null(mg_run_dir_foreign_file(&dir));
    }
    put("log.csv", header);
    put("run.json", "");
    assert_false(mg_run_dir_was_just_begun(&dir));
}

static void test_foreign_files(void **state) {
    (void)state;
    static const char *const names[] = {"run.json",   "log.csv",       "position.csv", "samples.txt",
                                        "alarms.csv", "attention.csv", "checkpoint.h5"};
    assert_null(mg_run_dir_foreign_file(&dir));
    put("notes.txt", "");
    assert_null(mg_run_dir_foreign_file(&dir));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        put(names[i], i % 2 ? "" : "{\"creator\": \"somebody else\"}");
        assert_non_null(mg_run_dir_foreign_file(&dir));
        assert_says(mg_run_dir_foreign_file(&dir), names[i]);
        char path[256];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
        assert_int_equal(symlink("nowhere", path), 0);
        assert_non_null(mg_run_dir_foreign_file(&dir));
        unlink(path);
    }
    put("samples.txt", "");
    put("run.json", "{\n  \"creator\": \"maskgrad 0.1.0\",\n");
    assert_null(mg_run_dir_foreign_file(&dir));
    mg_run_dir_clear(&dir);
    assert_false(is_there("run.json") || is_there("samples.txt"));
    assert_true(is_there("notes.txt"));
}

/* What cannot be a file of the run is named before anything waits for it. */
static void test_not_files(void **state) {
    (void)state;
    assert_int_equal(mg_run_dir_check_files(&dir, &error), MG_OK);
    assert_int_equal(mkfifo(dir.log, 0600), 0);
    assert_int_equal(mg_run_dir_check_files(&dir, &error), MG_ERR_IO);
    assert_says(error.message, "log.csv");
    unlink(dir.log);
    assert_int_equal(mkdir(dir.samples, 0700), 0);
    assert_int_equal(mg_run_dir_check_files(&dir, &error), MG_ERR_IO);
    assert_says(error.message, "samples.txt");
    assert_says(error.message, "a folder");
    rmdir(dir.samples);
    assert_int_equal(symlink("/dev/full", dir.run_json), 0);
    assert_int_equal(mg_run_dir_check_files(&dir, &error), MG_ERR_IO);
    assert_says(error.message, "run.json");
}

static void test_claims(void **state) {
    (void)state;
    assert_int_equal(mg_run_dir_lock(&dir, &error), MG_OK);
    assert_int_equal(mg_run_dir_claim(&dir, "maskgrad lab a", &error), MG_OK);
    put("report.html", "");
    assert_int_equal(mg_run_dir_claim(&dir, "maskgrad lab a", &error), MG_OK);
    assert_int_equal(mg_run_dir_claim(&dir, "maskgrad lab ab", &error), MG_ERR_INPUT);
    assert_says(error.message, "maskgrad lab a'");
    mg_run_dir_unmake(&dir);
    assert_true(is_there("report.html") && is_there(".lock"));
}

static void test_claims_of_foreign_folders(void **state) {
    (void)state;
    put("report.html", "");
    assert_int_equal(mg_run_dir_lock(&dir, &error), MG_OK);
    assert_int_equal(mg_run_dir_claim(&dir, "maskgrad lab a", &error), MG_ERR_INPUT);
    assert_says(error.message, "report.html");
    mg_run_dir_unmake(&dir);
    assert_true(is_there("report.html") && !is_there(".lock"));
}

/* A lock file that was there, perhaps someone else's, stays. */
static void test_foreign_lock(void **state) {
    (void)state;
    put(".lock", "");
    assert_int_equal(mg_run_dir_lock(&dir, &error), MG_OK);
    mg_run_dir_unmake(&dir);
    assert_true(is_there(".lock"));
}

static int setup(void **state) {
    (void)state;
    strcpy(folder, "/tmp/maskgrad-run-XXXXXX");
    return mkdtemp(folder) && mg_run_dir_name(&dir, folder, &error) == MG_OK ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    char command[128];
    mg_run_dir_close(&dir);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_leftovers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_just_begun, setup, teardown),
        cmocka_unit_test_setup_teardown(test_foreign_files, setup, teardown),
        cmocka_unit_test_setup_teardown(test_not_files, setup, teardown),
        cmocka_unit_test_setup_teardown(test_claims, setup, teardown),
        cmocka_unit_test_setup_teardown(test_claims_of_foreign_folders, setup, teardown),
        cmocka_unit_test_setup_teardown(test_foreign_lock, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
