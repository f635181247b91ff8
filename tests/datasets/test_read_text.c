#include "heap.h"
#include "read_text.h"

#include "check.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
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

/* A text in UTF-16 or UTF-32, with its mark or without; n: its ASCII or Latin-1 letters. */
static size_t widen(char *bytes, const char *text, int unit, bool big_endian, bool mark) {
    size_t n = 0;
    for (ptrdiff_t i = mark ? -1 : 0; i < 0 || text[i]; i++) {
        unsigned c = i < 0 ? 0xFEFF : (unsigned char)text[i];
        for (int k = 0; k < unit; k++) bytes[n++] = (char)(c >> 8 * (big_endian ? unit - 1 - k : k) & 0xFF);
    }
    return n;
}

static void wide_texts_are_named_with_their_remedy(void **state) {
    (void)state;
    static const char *const texts[] = {"ab\n", "S\xE3o Paulo, 2026\r\n\t(fim)"};
    char *text, bytes[256], said[64];
    size_t length;
    for (int form = 0; form < 8; form++)
        for (int i = 0; i < 2; i++) {
            bool wider = form & 4, big = form & 2, mark = form & 1;
            write_file(bytes, widen(bytes, texts[i], wider ? 4 : 2, big, mark));
            snprintf(said, sizeof said, "iconv -f UTF-%d%s -t UTF-8", wider ? 32 : 16, big ? "BE" : "LE");
            assert_not_read(mg_read_text(path, 1000, &text, &length, &error), &text, MG_ERR_FORMAT, said);
        }
    /* Token ids of 16 bits are not text, and neither is UTF-8 without a 0 byte. */
    write_file(bytes, widen(bytes, "\1\5\x14\x20\5\1", 2, false, false));
    assert_not_read(mg_read_text(path, 1000, &text, &length, &error), &text, MG_ERR_FORMAT,
                    "seems to be a binary file");
    write_file("PK, BZh and GIF8 are letters", 28);
    assert_read(mg_read_text(path, 1000, &text, &length, &error), &text, &length, 28);
    remove(path);
}

static void other_formats_are_named(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        const char *said;
    } files[] = {
        {"\x1F\x8B\x08\0\0", 5, "is compressed with gzip, not UTF-8 text: unpack it first, with gunzip"},
        {"PK\3\4\x14\0", 6, "docx"},
        {"%PDF-1.4\n1 0 obj\n", 17, "is a PDF"},
        {"\x89PNG\r\n\x1A\n\0", 9, "is a PNG picture"},
        {"\x89HDF\r\n\x1A\n\0", 9, "checkpoint"},
        {"ol\xE1 mundo", 9, "invalid UTF-8 at byte 2 (0xE1); the text must be UTF-8 (Latin-1, say,"},
    };
    char *text;
    size_t length;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        write_file(files[i].bytes, files[i].n);
        assert_not_read(mg_read_text(path, 1000, &text, &length, &error), &text, MG_ERR_FORMAT, files[i].said);
    }
    remove(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_limit_of_a_file_is_exact),           cmocka_unit_test(a_huge_file_is_not_read),
        cmocka_unit_test(files_without_a_size_are_read),          cmocka_unit_test(the_limit_of_a_stream_is_exact),
        cmocka_unit_test(other_kinds_are_named_at_once),          cmocka_unit_test(devices_end_or_are_refused),
        cmocka_unit_test(wide_texts_are_named_with_their_remedy), cmocka_unit_test(other_formats_are_named),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
