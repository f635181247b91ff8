/* The child process that reads for us: whatever becomes of it is one sentence, and there is little that it can do. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "fixture.h"
#include "guard.h"
#include "h5_internal.h"
#include "regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

static fixture_name file;
static mg_h5 h5;
static int fd;

static int make_file(void **state) {
    if (fixture_setup(state) != 0) return -1;
    mg_set_file_guard(true);
    file = in_folder("good.h5");
    mg_checkpoint c;
    fixture_small(&c);
    assert_ok(mg_checkpoint_save(file.path, &c, &fixture_error));
    mg_checkpoint_free(&c);
    return 0;
}

static int open_it(void **state) {
    (void)state;
    size_t bytes;
    assert_ok(mg_open_regular(file.path, &fd, &bytes, &fixture_error));
    assert_ok(mg_h5_open(&h5, file.path, fd, bytes, &fixture_error));
    return 0;
}

static int close_it(void **state) {
    (void)state;
    mg_h5_close(&h5);
    close(fd);
    assert_true(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD); /* no child is left behind */
    return 0;
}

typedef mg_status reply(const mg_h5 *, const mg_h5_question *, mg_h5_answer *);

/* One question about /model/wte, whose answer is a number. */
static mg_status ask(reply *r, int *answer) {
    memset(&fixture_error, 0, sizeof fixture_error);
    mg_h5_call call = {.question = {.reply = r, .object = "/model/wte"}, .to = answer, .size = sizeof *answer};
    return mg_h5_child_ask(&h5, 1, &call);
}

static mg_status give(mg_h5_answer *answer, int value) {
    return answer->take(answer, &value, sizeof value);
}

/* ---- How it ends ---- */

static void assert_ends(reply *r, mg_status expected, const char *why) {
    int answer;
    for (int again = 0; again < 2; again++) { /* the second time, it is known to be gone */
        assert_int_equal(ask(again ? NULL : r, &answer), expected);
        assert_says(fixture_error.message, file.path);
        assert_says(fixture_error.message, why);
    }
    int64_t version;
    assert_int_equal(mg_h5_read_int(&h5, "/", "format_version", &version), expected);
}

#define ENDS_BY(name, ...)                                                                                             \
    static mg_status name(const mg_h5 *child, const mg_h5_question *q, mg_h5_answer *answer) {                         \
        (void)child;                                                                                                   \
        (void)q;                                                                                                       \
        (void)answer;                                                                                                  \
        __VA_ARGS__;                                                                                                   \
        return MG_OK;                                                                                                  \
    }
static volatile int zero;
ENDS_BY(divide, raise(SIGFPE))
ENDS_BY(jump, ((void (*)(void))(uintptr_t)8)())
ENDS_BY(abandon, abort())
ENDS_BY(spin, for (volatile unsigned i = 0;; i++) continue)
ENDS_BY(leave, _exit(0))
ENDS_BY(fail_a_check, MG_CHECK(zero == 1, "not so"))
ENDS_BY(stop_answering, close(1); for (;;) pause())
ENDS_BY(say_too_much, static char many[1 << 20]; return answer->take(answer, many, sizeof many))
ENDS_BY(say_nonsense, static const char bad[64] = {99, 99, 99, 99, 99}; if (write(1, bad, sizeof bad) < 0) abort())

static void faults(void **state) {
    (void)state;
    assert_ends(divide, MG_ERR_FORMAT, "HDF5 crashes at /model/wte (Floating point exception)");
}

static void wild_jumps(void **state) {
    (void)state;
    assert_ends(jump, MG_ERR_FORMAT, "HDF5 crashes at /model/wte (Segmentation fault)");
}

static void aborts(void **state) {
    (void)state;
    assert_ends(abandon, MG_ERR_FORMAT, "HDF5 crashes at /model/wte (Aborted)");
}

static void endless_loops(void **state) {
    (void)state;
    assert_ends(spin, MG_ERR_FORMAT, "HDF5 did not finish reading /model/wte within 5 seconds");
}

static void exits(void **state) {
    (void)state;
    assert_ends(leave, MG_ERR_FORMAT, "HDF5 gives up at /model/wte");
}

static void failed_checks(void **state) {
    (void)state;
    assert_ends(fail_a_check, MG_ERR_FORMAT, "HDF5 gives up at /model/wte");
}

static void silence(void **state) {
    (void)state;
    assert_ends(stop_answering, MG_ERR_MEMORY, "the system ended the process that read it");
}

static void too_long_an_answer(void **state) {
    (void)state;
    assert_ends(say_too_much, MG_ERR_FORMAT, "sent an invalid answer");
}

static void nonsense(void **state) {
    (void)state;
    assert_ends(say_nonsense, MG_ERR_FORMAT, "sent an invalid answer");
}

static void being_killed(void **state) {
    (void)state;
    int answer;
    pid_t child = 0;
    FILE *children = popen("ps -o pid= --ppid $PPID | head -n 1", "r");
    if (!children || fscanf(children, "%d", &child) != 1) skip();
    pclose(children);
    kill(child, SIGKILL);
    if (ask(divide, &answer) == MG_ERR_FORMAT) skip(); /* it was another one */
    assert_says(fixture_error.message, "the system ended the process that read it");
}

/* ---- What it can do ---- */

#define TRIES(name, call)                                                                                              \
    static mg_status name(const mg_h5 *child, const mg_h5_question *q, mg_h5_answer *answer) {                         \
        (void)child;                                                                                                   \
        (void)q;                                                                                                       \
        errno = 0;                                                                                                     \
        return give(answer, (call) ? errno : 0);                                                                       \
    }
TRIES(open_a_file, open("/etc/passwd", O_RDONLY) < 0)
TRIES(write_a_file, open("/tmp/maskgrad-escaped", O_WRONLY | O_CREAT, 0600) < 0)
TRIES(write_to_the_file, pwrite(3, "x", 1, 0) != 1)
TRIES(make_a_socket, socket(AF_INET, SOCK_STREAM, 0) < 0)
TRIES(fork_again, fork() < 0)
TRIES(run_a_program, execl("/bin/true", "true", (char *)NULL) < 0)
TRIES(kill_its_parent, kill(getppid(), SIGTERM) < 0)
TRIES(read_what_else_is_open, fcntl(4, F_GETFD) < 0)
TRIES(take_two_gigabytes, mmap(NULL, (size_t)2 << 30, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
TRIES(take_a_megabyte, mmap(NULL, (size_t)1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
TRIES(say_hello, fprintf(stderr, "a child of the test should not be heard\n") < 0)

static void it_can_hardly_do_anything(void **state) {
    (void)state;
    static reply *const refused[] = {open_a_file, write_a_file,  write_to_the_file, make_a_socket,
                                     fork_again,  run_a_program, kill_its_parent,   read_what_else_is_open};
    int reason;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        assert_ok(ask(refused[i], &reason));
        if (reason == 0) print_error("attempt %zu succeeds\n", i);
        assert_int_not_equal(reason, 0);
    }
    assert_int_not_equal(access("/tmp/maskgrad-escaped", F_OK), 0);
    assert_ok(ask(take_two_gigabytes, &reason));
    assert_int_equal(reason, ENOMEM);
    assert_ok(ask(take_a_megabyte, &reason));
    assert_int_equal(reason, 0);
    assert_ok(ask(say_hello, &reason));
}

/* ---- Several questions at once ---- */

static mg_status number(const mg_h5 *child, const mg_h5_question *q, mg_h5_answer *answer) {
    if (q->begin == 3) return mg_h5_error(child, "does not like the number %d", (int)q->begin);
    return give(answer, (int)(10 * q->begin));
}

static void the_first_error_counts_and_nothing_is_out_of_step(void **state) {
    (void)state;
    int answers[MG_H5_AT_ONCE] = {0};
    mg_h5_call calls[MG_H5_AT_ONCE] = {0};
    for (int i = 0; i < MG_H5_AT_ONCE; i++)
        calls[i] = (mg_h5_call){.question = {.reply = number, .begin = i}, .to = &answers[i], .size = sizeof(int)};
    assert_int_equal(mg_h5_child_ask(&h5, MG_H5_AT_ONCE, calls), MG_ERR_FORMAT);
    assert_says(fixture_error.message, "does not like the number 3");
    assert_int_equal(mg_h5_child_ask(&h5, 3, calls), MG_OK);
    for (int i = 0; i < 3; i++) assert_int_equal(answers[i], 10 * i);
    int64_t version = 0;
    assert_ok(mg_h5_read_int(&h5, "/", "format_version", &version));
    assert_int_equal(version, 1);
}

/* ---- The whole ---- */

static void both_ways_read_the_same(void **state) {
    (void)state;
    mg_checkpoint here, there;
    mg_set_file_guard(false);
    assert_ok(mg_checkpoint_load(&here, file.path, true, &fixture_error));
    mg_set_file_guard(true);
    assert_ok(mg_checkpoint_load(&there, file.path, true, &fixture_error));
    assert_same_checkpoint(&here, &there);
    mg_checkpoint_free(&here);
    mg_checkpoint_free(&there);
}

int main(void) {
#define OPENED(test) cmocka_unit_test_setup_teardown(test, open_it, close_it)
    const struct CMUnitTest tests[] = {
        OPENED(faults),
        OPENED(wild_jumps),
        OPENED(aborts),
        OPENED(endless_loops),
        OPENED(exits),
        OPENED(failed_checks),
        OPENED(silence),
        OPENED(too_long_an_answer),
        OPENED(nonsense),
        OPENED(being_killed),
        OPENED(it_can_hardly_do_anything),
        OPENED(the_first_error_counts_and_nothing_is_out_of_step),
        cmocka_unit_test(both_ways_read_the_same),
    };
    return cmocka_run_group_tests(tests, make_file, fixture_teardown);
}
