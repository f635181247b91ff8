#define _DEFAULT_SOURCE /* RLIMIT_NPROC */
#include "sandbox.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#ifdef __linux__
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

/* ---- Limits ---- */

/* Limits are only lowered. */
static void limit(int resource, rlim_t soft, rlim_t hard) {
    struct rlimit now;
    if (getrlimit(resource, &now) != 0) return;
    if (hard < now.rlim_max) now.rlim_max = hard;
    if (soft < now.rlim_cur) now.rlim_cur = soft;
    if (now.rlim_cur > now.rlim_max) now.rlim_cur = now.rlim_max;
    setrlimit(resource, &now);
}

/* Bytes of address space that this process has, threads' stacks and sanitizers' shadows included; 0: unknown. */
static size_t address_space(void) {
    char text[64] = "";
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    return n > 0 ? (size_t)strtoull(text, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE) : 0;
}

static void set_limits(unsigned seconds, size_t memory) {
    size_t now = address_space();
    if (now > 0) limit(RLIMIT_AS, now + memory, now + memory);
    limit(RLIMIT_CPU, seconds, seconds + 1);
    limit(RLIMIT_FSIZE, 0, 0);
    limit(RLIMIT_CORE, 0, 0);
    limit(RLIMIT_NOFILE, 0, 0);
#ifdef RLIMIT_NPROC
    limit(RLIMIT_NPROC, 0, 0);
#endif
}

/* What the parent had open: a lock or a pipe that another process waits for. */
static void close_others(int last) {
#ifdef SYS_close_range
    if (syscall(SYS_close_range, (unsigned)last + 1, ~0u, 0u) == 0) return;
#endif
    for (int fd = last + 1; fd < 1024; fd++) close(fd);
}

/* ---- System calls ---- */

#if defined __linux__ && (defined __x86_64__ || defined __aarch64__)
#ifdef __x86_64__
#define ARCHITECTURE AUDIT_ARCH_X86_64
#else
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

/* What malloc, pread and exiting need, and what sanitizers and valgrind need to report what they found. */
static const uint16_t allowed[] = {
    SYS_read,
    SYS_write,
    SYS_pread64,
    SYS_lseek,
    SYS_fstat,
    SYS_close,
    SYS_mmap,
    SYS_munmap,
    SYS_mremap,
    SYS_mprotect,
    SYS_madvise,
    SYS_brk,
    SYS_futex,
    SYS_getpid,
    SYS_gettid,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_tgkill,
    SYS_sched_yield,
    SYS_clock_gettime,
    SYS_gettimeofday,
    SYS_getrusage,
    SYS_restart_syscall,
    SYS_exit,
    SYS_exit_group,
};
enum { ALLOWED = sizeof allowed / sizeof *allowed };

#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define IF_NOT(value, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip)
#define RETURN(verdict) BPF_STMT(BPF_RET | BPF_K, verdict)

static void filter_calls(void) {
    struct sock_filter program[2 * ALLOWED + 4];
    unsigned short n = 0;
    program[n++] = (struct sock_filter)LOAD(arch);
    program[n++] = (struct sock_filter)IF_NOT(ARCHITECTURE, 2 * ALLOWED + 1); /* to the end */
    program[n++] = (struct sock_filter)LOAD(nr);
    for (size_t i = 0; i < ALLOWED; i++) {
        program[n++] = (struct sock_filter)IF_NOT(allowed[i], 1);
        program[n++] = (struct sock_filter)RETURN(SECCOMP_RET_ALLOW);
    }
    program[n++] = (struct sock_filter)RETURN(SECCOMP_RET_ERRNO | EPERM);
    const struct sock_fprog filter = {n, program};
    /* On a kernel without filters, only the limits apply. */
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}
#else
static void filter_calls(void) {
}
#endif

void mg_sandbox_enter(int last, unsigned seconds, size_t memory) {
    close_others(last);
    set_limits(seconds, memory);
    filter_calls();
}
