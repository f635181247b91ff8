#include "heap.h"
#include "read_text.h"

#include "check.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static mg_error error;
static char folder[64], path[128];

static int make_folder(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/maskgrad-read-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/file", folder);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    return rmdir(folder);
}

static void write_file(const char *bytes, size_t n) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    fclose(file);
}

/* A pipe into which a child writes `n` bytes, or as many as are read. */
static pid_t write_pipe(size_t n) {
    assert_int_equal(mkfifo(path, 0600), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child > 0) return child;
    signal(SIGPIPE, SIG_DFL);
    int fd = open(path, O_WRONLY);
    for (size_t i = 0; i < n; i++)
        if (write(fd, "x", 1) != 1) break;
    _exit(0);
}

static void end_pipe(pid_t child) {
    waitpid(child, NULL, 0);
    remove(path);
}

/* By address: the order in which arguments are evaluated is open. */
static void assert_read(mg_status status, char *const *text, const size_t *length, size_t expected) {
    if (status != MG_OK) print_error("%s\n", error.message);
    assert_int_equal(status, MG_OK);
    assert_int_equal(*length, expected);
    assert_int_equal(strlen(*text), expected);
    mg_free(*text);
}

static void assert_not_read(mg_status status, char *const *text, mg_status expected, const char *part) {
    assert_int_equal(status, expected);
    assert_says(error.message, part);
    assert_null(*text);
}

static void the_limit_of_a_file_is_exact(void **state) {
    (void)state;
    char *text, bytes[100];
    size_t length;
    memset(bytes, 'x', sizeof bytes);
    for (size_t n = 99; n <= 100; n++) {
        write_file(bytes, n);
        assert_read(mg_read_text(path, 100, &text, &length, &error), &text, &length, n);
    }
    assert_not_read(mg_read_text(path, 99, &text, &length, &error), &text, MG_ERR_FORMAT, "/file is larger than ");
    remove(path);
}

/* A sparse file of 100 GB is refused by its size, and none of it is read. */
static void a_huge_file_is_not_read(void **state) {
    (void)state;
    char *text;
    size_t length;
    write_file("x", 1);
    assert_int_equal(truncate(path, 100000000000), 0);
    assert_not_read(mg_read_text(path, (size_t)32 << 20, &text, &length, &error), &text, MG_ERR_FORMAT,
                    "larger than 32 MiB");
    assert_not_read(mg_read_text_or_stream(path, (size_t)2 << 30, 100, &text, &length, &error), &text, MG_ERR_FORMAT,
                    "larger than 2 GiB");
    remove(path);
}

/* The system says of these that they have no bytes. */
static void files_without_a_size_are_read(void **state) {
    (void)state;
    char *text;
    size_t length;
    if (access("/proc/self/status", R_OK) != 0) skip();
    assert_int_equal(mg_read_text("/proc/self/status", 1 << 20, &text, &length, &error), MG_OK);
    assert_true(length > 100);
    mg_free(text);
}

static void the_limit_of_a_stream_is_exact(void **state) {
    (void)state;
    char *text;
    size_t length;
    enum { MOST = 200000 }; /* beyond the first room */
    pid_t child = write_pipe(MOST);
    assert_read(mg_read_text_or_stream(path, 1, MOST, &text, &length, &error), &text, &length, MOST);
    end_pipe(child);
    child = write_pipe(MOST + 1);
    assert_not_read(mg_read_text_or_stream(path, 1, MOST, &text, &length, &error), &text, MG_ERR_FORMAT, "larger than");
    end_pipe(child);
    child = write_pipe(SIZE_MAX); /* `yes` does not run for ever */
    assert_not_read(mg_read_text_or_stream(path, 1, MOST, &text, &length, &error), &text, MG_ERR_FORMAT, "larger than");
    end_pipe(child);
}

/* What is not a regular file is named without waiting for it, where a stream makes no sense. */
static void other_kinds_are_named_at_once(void **state) {
    (void)state;
    char *text;
    size_t length;
    const size_t most = 100;
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_not_read(mg_read_text(path, most, &text, &length, &error), &text, MG_ERR_IO, "/file' is a pipe");
    remove(path);
    assert_not_read(mg_read_text(folder, most, &text, &length, &error), &text, MG_ERR_IO, "is a folder");
    assert_not_read(mg_read_text_or_stream(folder, most, most, &text, &length, &error), &text, MG_ERR_IO,
                    "is a folder");
    assert_not_read(mg_read_text("/dev/zero", most, &text, &length, &error), &text, MG_ERR_IO, "is a device");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%.100s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    assert_not_read(mg_read_text(path, most, &text, &length, &error), &text, MG_ERR_IO, "is a socket");
    assert_not_read(mg_read_text_or_stream(path, most, most, &text, &length, &error), &text, MG_ERR_IO, "cannot open");
    close(fd);
    remove(path);
    assert_not_read(mg_read_text(path, most, &text, &length, &error), &text, MG_ERR_IO, "No such file");
    assert_int_equal(symlink(path, path), 0);
    assert_not_read(mg_read_text_or_stream(path, most, most, &text, &length, &error), &text, MG_ERR_IO,
                    "symbolic links");
    remove(path);
}

static void devices_end_or_are_refused(void **state) {
    (void)state;
    char *text;
    size_t length;
    const size_t most = (size_t)1 << 30;
    assert_not_read(mg_read_text_or_stream("/dev/zero", most, most, &text, &length, &error), &text, MG_ERR_FORMAT,
                    "/dev/zero has a 0 byte at offset 0");
    assert_not_read(mg_read_text_or_stream("/dev/urandom", most, most, &text, &length, &error), &text, MG_ERR_FORMAT,
                    "binary file");
    assert_not_read(mg_read_text_or_stream("/dev/null", most, most, &text, &length, &error), &text, MG_ERR_FORMAT,
                    "is empty");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_limit_of_a_file_is_exact),  cmocka_unit_test(a_huge_file_is_not_read),
        cmocka_unit_test(files_without_a_size_are_read), cmocka_unit_test(the_limit_of_a_stream_is_exact),
        cmocka_unit_test(other_kinds_are_named_at_once), cmocka_unit_test(devices_end_or_are_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
