/* load_time CHECKPOINT [COUNT]: how long loading takes when this process reads and when a child does, in milliseconds.
 * Each load is in a process of its own, so that HDF5 starts from nothing, as in a command. */
#include "checkpoint.h"
#include "guard.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 1000 };

static double milliseconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    const double *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static void load(const char *path, bool guarded, int out) {
    mg_checkpoint c;
    mg_error error;
    mg_set_file_guard(guarded);
    double begin = milliseconds();
    if (mg_checkpoint_load(&c, path, false, &error) != MG_OK) {
        fprintf(stderr, "%s\n", error.message);
        _exit(1);
    }
    double took = milliseconds() - begin;
    _exit(write(out, &took, sizeof took) != sizeof took);
}

int main(int argc, char **argv) {
    int n = argc > 2 ? atoi(argv[2]) : 21;
    if (argc < 2 || n < 1 || n > MOST) {
        fprintf(stderr, "load_time CHECKPOINT [COUNT]\n");
        return 2;
    }
    static double times[2][MOST];
    for (int i = 0; i < 2 * n; i++) { /* by turns: the machine may be busy */
        int ends[2];
        if (pipe(ends) != 0) return 1;
        pid_t pid = fork();
        if (pid == 0) load(argv[1], i % 2, ends[1]);
        close(ends[1]);
        bool got = read(ends[0], &times[i % 2][i / 2], sizeof(double)) == sizeof(double);
        close(ends[0]);
        waitpid(pid, NULL, 0);
        if (!got) return 1;
    }
    for (int guarded = 0; guarded < 2; guarded++) {
        qsort(times[guarded], (size_t)n, sizeof(double), ascending);
        printf("%s  median %.1f, least %.1f\n", guarded ? "by a child  " : "this process", times[guarded][n / 2],
               times[guarded][0]);
    }
    return 0;
}
