/* What is not a regular file is named at once; nothing waits. */
#include "regular_file.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "check.h"

static char folder[] = "/tmp/maskgrad-regular-XXXXXX";

typedef struct name {
    char path[64];
} name;

static name in_folder(const char *file) {
    name n;
    snprintf(n.path, sizeof n.path, "%s/%s", folder, file);
    return n;
}

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static void assert_refused(const char *path, const char *why) {
    mg_error error = {0};
    int fd = 7;
    size_t bytes = 7;
    assert_int_equal(mg_open_regular(path, &fd, &bytes, &error), MG_ERR_IO);
    assert_says(error.message, path);
    assert_says(error.message, why);
    assert_int_equal(fd, -1);
    assert_int_equal(bytes, 0);
}

static void regular_files_open(void **state) {
    (void)state;
    name file = in_folder("file"), link = in_folder("link");
    FILE *out = fopen(file.path, "w");
    fputs("12345", out);
    fclose(out);
    assert_int_equal(symlink(file.path, link.path), 0);
    const char *const paths[] = {file.path, link.path};
    for (int i = 0; i < 2; i++) {
        int fd;
        size_t bytes;
        char text[8] = "";
        assert_int_equal(mg_open_regular(paths[i], &fd, &bytes, NULL), MG_OK);
        assert_int_equal(bytes, 5);
        assert_int_equal(read(fd, text, sizeof text), 5);
        assert_string_equal(text, "12345");
        close(fd);
    }
}

static void others_are_named(void **state) {
    (void)state;
    name pipe = in_folder("pipe"), to_pipe = in_folder("to_pipe"), socket_name = in_folder("socket");
    assert_int_equal(mkfifo(pipe.path, 0600), 0);
    assert_int_equal(symlink(pipe.path, to_pipe.path), 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, socket_name.path);
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_refused(pipe.path, "is a pipe, not a regular file");
    assert_refused(to_pipe.path, "is a pipe, not a regular file");
    assert_refused(socket_name.path, "is a socket, not a regular file");
    assert_refused(folder, "is a folder, not a regular file");
    assert_refused("/dev/null", "is a device, not a regular file");
    assert_refused("/dev/zero", "is a device, not a regular file");
    close(listener);
}

static void the_system_s_reasons_are_told(void **state) {
    (void)state;
    name loop = in_folder("loop");
    assert_int_equal(symlink(loop.path, loop.path), 0);
    assert_refused(in_folder("absent").path, "cannot be read: No such file");
    assert_refused(loop.path, "cannot be read: Too many levels of symbolic links");
    assert_refused("", "cannot be read: No such file");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regular_files_open),
        cmocka_unit_test(others_are_named),
        cmocka_unit_test(the_system_s_reasons_are_told),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
