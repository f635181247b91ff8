/* Ranks are MPI's. Only messages between two ranks are used, and no collective: what is added up, and in which order,
 * is ours (trainers/ranks.c). */
#define _DEFAULT_SOURCE /* on_exit */
#include "clock.h"
#include "launch.h"

#include <errno.h>
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 64, NAME = 64 };

/* Where a rank runs, to see whether it is still there. */
typedef struct place {
    char host[NAME];
    int process;
} place;

static struct launched {
    mg_ranks ranks;
    place place[MG_MOST_RANKS];
    int neighbors;
    MPI_Datatype line; /* of LINE bytes: a count of bytes is an int, and 2 GiB are not enough */
    MPI_Request request[2 * MG_MOST_RANKS];
    bool joined;
} launched;

/* ---- Waiting ---- */

/* The lowest rank on this machine whose process is gone; -1: none. A rank elsewhere is MPI's to miss. */
static int find_missing(void) {
    const place *here = &launched.place[launched.ranks.rank];
    for (int rank = 0; rank < launched.ranks.count; rank++) {
        const place *p = &launched.place[rank];
        if (strcmp(p->host, here->host) == 0 && kill(p->process, 0) != 0 && errno == ESRCH) return rank;
    }
    return -1;
}

static mg_status mpi_error(int code, mg_error *error) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    MPI_Error_string(code, text, &length);
    return mg_error_set(error, MG_ERR_IO, "the connection to another rank broke: %s", text);
}

/* Spin for a while, then let others have the processor, then sleep: a rank that waits for an evaluation should not take
 * a processor from the one that evaluates. All in seconds; the launcher ends what is left within one. */
static mg_status wait_all(int n, mg_error *error) {
    static const double spin = 1e-4, yield = 5e-3, look = 0.05;
    double begin = mg_seconds(), looked = begin;
    for (;;) {
        int done, code = MPI_Testall(n, launched.request, &done, MPI_STATUSES_IGNORE);
        if (code != MPI_SUCCESS) return mpi_error(code, error);
        if (done) return MG_OK;
        double now = mg_seconds();
        if (now - begin < spin) continue;
        if (now - begin < yield)
            sched_yield();
        else
            nanosleep(&(struct timespec){0, 200000}, NULL);
        if (now - looked < look) continue;
        looked = now;
        int missing = launched.ranks.missing = find_missing();
        if (missing >= 0)
            return mg_error_set(error, MG_ERR_IO, "rank %d (process %d on %s) is gone, so the run ends here", missing,
                                launched.place[missing].process, launched.place[missing].host);
    }
}

static int start(const mg_message *m, bool sends, MPI_Request *request) {
    bool lines = m->size % LINE == 0;
    int count = (int)(lines ? m->size / LINE : m->size);
    MPI_Datatype type = lines ? launched.line : MPI_BYTE;
    return sends ? MPI_Isend(m->bytes, count, type, m->rank, 0, MPI_COMM_WORLD, request)
                 : MPI_Irecv(m->bytes, count, type, m->rank, 0, MPI_COMM_WORLD, request);
}

static mg_status exchange(mg_ranks *ranks, const mg_message *sent, int n_sent, const mg_message *received,
                          int n_received, mg_error *error) {
    (void)ranks;
    int n = 0, code = MPI_SUCCESS;
    for (int i = 0; i < n_received && code == MPI_SUCCESS; i++)
        code = start(&received[i], false, &launched.request[n++]);
    for (int i = 0; i < n_sent && code == MPI_SUCCESS; i++) code = start(&sent[i], true, &launched.request[n++]);
    return code == MPI_SUCCESS ? wait_all(n, error) : mpi_error(code, error);
}

/* ---- Beginning and ending ---- */

/* Without a launcher, MPI would start one of its own. */
static bool was_launched(void) {
    static const char *const marks[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (getenv(marks[i])) return true;
    return false;
}

static void end_all(int status, void *user) {
    (void)user;
    if (!launched.joined) return;
    fflush(NULL);
    if (launched.ranks.broken) _exit(1); /* the launcher is ending all ranks already, and has said so */
    if (status == 2)
        MPI_Finalize();
    else
        MPI_Abort(MPI_COMM_WORLD, status ? status : 1);
}

static void find_places(void) {
    place mine = {.process = (int)getpid()};
    gethostname(mine.host, sizeof mine.host - 1);
    MPI_Allgather(&mine, sizeof mine, MPI_BYTE, launched.place, sizeof mine, MPI_BYTE, MPI_COMM_WORLD);
    for (int rank = 0; rank < launched.ranks.count; rank++)
        launched.neighbors += strcmp(launched.place[rank].host, mine.host) == 0;
}

mg_status mg_launch_join(mg_ranks **ranks, mg_error *error) {
    int level;
    *ranks = NULL;
    if (!was_launched()) return MG_OK;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS)
        return mg_error_set(error, MG_ERR_STATE, "MPI does not start");
    launched = (struct launched){.ranks = {.exchange = exchange, .missing = -1}, .joined = true};
    on_exit(end_all, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &launched.ranks.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &launched.ranks.count);
    if (launched.ranks.count > MG_MOST_RANKS)
        return mg_error_set(error, MG_ERR_INPUT, "%d ranks are too many: at most %d", launched.ranks.count,
                            MG_MOST_RANKS);
    MPI_Type_contiguous(LINE, MPI_BYTE, &launched.line);
    MPI_Type_commit(&launched.line);
    find_places();
    *ranks = &launched.ranks;
    return MG_OK;
}

void mg_launch_leave(mg_ranks *ranks) {
    if (!ranks) return;
    launched.joined = false;
    MPI_Finalize();
}

int mg_launch_neighbors(const mg_ranks *ranks) {
    return ranks ? launched.neighbors : 1;
}

int mg_launch_strangers(void) {
    return 1;
}
