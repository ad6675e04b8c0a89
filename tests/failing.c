/* failing.c: loaded before a program (LD_PRELOAD): counts its file-system calls, and has one of them fail. Library
 * calls are not replaced, since what the C library calls within itself (fwrite, opendir, readdir) would pass by: a
 * seccomp filter has the kernel raise SIGSYS at every such system call, and the handler makes the call in its place, or
 * not. Linux on x86-64.
 *
 *   FAIL_PATH=TEXT     calls count whose file has this in its full name
 *   FAIL_CALLS=A,B     ... and which are of these (as the kernel names them: write, openat, ...); else all
 *   FAIL_AT=N          the N-th of them, from 1, ...
 *   FAIL_HOW=KIND      ... EIO, ENOSPC, EMFILE: fails so; SHORT: reads or writes half; KILL: the process is killed, in
 *                      the middle of a write; 8 and the like: so many of write's bytes are written, and the disk is
 * full FAIL_ON=yes        ... and so do all that come after it FAIL_RANK=R        in this rank of a job only
 *   FAIL_LOG=FILE      each call that counts adds a line to FILE.<rank>: number, call, file; `!` before one that failed
 *   FAIL_PROGRAM=NAME  only in a program of this name (sparsetrain), not in the mpirun that starts it
 *
 * Exit 99 with a line: the kernel has no such filters, or does not allow them here. */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__x86_64__)

/* The one place whose system calls pass the filter, by the address behind its instruction. */
long failing_call(long number, long a, long b, long c, long d, long e, long f) __attribute__((visibility("hidden")));
extern const char failing_call_passed[] __attribute__((visibility("hidden")));
__asm__(".text\n.type failing_call,@function\nfailing_call:\n"
        "mov %rdi,%rax\nmov %rsi,%rdi\nmov %rdx,%rsi\nmov %rcx,%rdx\nmov %r8,%r10\nmov %r9,%r8\nmov 8(%rsp),%r9\n"
        "syscall\nfailing_call_passed:\nret\n.size failing_call,.-failing_call\n");

/* Where a call names its file. */
enum where { BY_FD, BY_PATH, BY_FD_AND_PATH, SECOND_PATH };
static const struct call {
    const char *name;
    int number;
    enum where where;
} calls[] = {
    {"open", SYS_open, BY_PATH},
    {"creat", SYS_creat, BY_PATH},
    {"openat", SYS_openat, BY_FD_AND_PATH},
    {"read", SYS_read, BY_FD},
    {"write", SYS_write, BY_FD},
    {"pread64", SYS_pread64, BY_FD},
    {"pwrite64", SYS_pwrite64, BY_FD},
    {"readv", SYS_readv, BY_FD},
    {"writev", SYS_writev, BY_FD},
    {"fsync", SYS_fsync, BY_FD},
    {"fdatasync", SYS_fdatasync, BY_FD},
    {"close", SYS_close, BY_FD},
    {"rename", SYS_rename, BY_PATH},
    {"renameat", SYS_renameat, BY_FD_AND_PATH},
    {"renameat2", SYS_renameat2, BY_FD_AND_PATH},
    {"link", SYS_link, BY_PATH},
    {"linkat", SYS_linkat, BY_FD_AND_PATH},
    {"symlink", SYS_symlink, SECOND_PATH},
    {"mkdir", SYS_mkdir, BY_PATH},
    {"mkdirat", SYS_mkdirat, BY_FD_AND_PATH},
    {"rmdir", SYS_rmdir, BY_PATH},
    {"unlink", SYS_unlink, BY_PATH},
    {"unlinkat", SYS_unlinkat, BY_FD_AND_PATH},
    {"stat", SYS_stat, BY_PATH},
    {"lstat", SYS_lstat, BY_PATH},
    {"fstat", SYS_fstat, BY_FD},
    {"newfstatat", SYS_newfstatat, BY_FD_AND_PATH},
    {"statx", SYS_statx, BY_FD_AND_PATH},
    {"fstatfs", SYS_fstatfs, BY_FD},
    {"statfs", SYS_statfs, BY_PATH},
    {"access", SYS_access, BY_PATH},
    {"faccessat", SYS_faccessat, BY_FD_AND_PATH},
    {"faccessat2", 439, BY_FD_AND_PATH},
    {"readlink", SYS_readlink, BY_PATH},
    {"readlinkat", SYS_readlinkat, BY_FD_AND_PATH},
    {"getdents64", SYS_getdents64, BY_FD},
    {"lseek", SYS_lseek, BY_FD},
    {"ftruncate", SYS_ftruncate, BY_FD},
    {"truncate", SYS_truncate, BY_PATH},
    {"fallocate", SYS_fallocate, BY_FD},
    {"flock", SYS_flock, BY_FD},
    {"fcntl", SYS_fcntl, BY_FD},
    {"mmap", SYS_mmap, BY_FD}, /* the descriptor is its fifth argument */
};
enum { CALLS = sizeof calls / sizeof *calls, NAME_MAX_ = 8192, LOG_DESCRIPTOR = 1000 };

static char wanted_path[4096], wanted_calls[512], how[32];
static long fail_at;
static bool fail_on, this_rank_fails = true;
static long counted;
static int log_file = -1;

/* -- the handler: nothing but memory of its own and failing_call -------------------------------------------------- */

static size_t copy(char *to, size_t at, size_t room, const char *text) {
    while (*text && at + 1 < room) to[at++] = *text++;
    to[at] = '\0';
    return at;
}

static size_t copy_number(char *to, size_t at, size_t room, long number) {
    char digits[24];
    size_t i = sizeof digits;
    digits[--i] = '\0';
    do digits[--i] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    return copy(to, at, room, digits + i);
}

/* The file's full name, as far as it can be known. */
static size_t name_of_descriptor(long file, char *name, size_t room) {
    char link[64];
    copy_number(link, copy(link, 0, sizeof link, "/proc/self/fd/"), sizeof link, file);
    long length = failing_call(SYS_readlink, (long)link, (long)name, (long)room - 1, 0, 0, 0);
    if (length < 0) length = 0;
    name[length] = '\0';
    return (size_t)length;
}

static void name_of_path(long folder, const char *path, char *name, size_t room) {
    size_t at = 0;
    if (path && path[0] != '/') {
        if (folder == AT_FDCWD) {
            at = (size_t)failing_call(SYS_readlink, (long)"/proc/self/cwd", (long)name, (long)room - 1, 0, 0, 0);
            if (at > room) at = 0;
        } else {
            at = name_of_descriptor(folder, name, room);
        }
        at = copy(name, at, room, path[0] ? "/" : "");
    }
    copy(name, at, room, path ? path : "");
}

static void name_of(const struct call *call, const long a[6], char *name, size_t room) {
    if (call->number == SYS_mmap)
        name_of_descriptor((int)a[4], name, room);
    else if (call->where == BY_FD)
        name_of_descriptor((int)a[0], name, room);
    else if (call->where == BY_FD_AND_PATH)
        name_of_path((int)a[0], (const char *)a[1], name, room);
    else
        name_of_path(AT_FDCWD, (const char *)a[call->where == SECOND_PATH], name, room);
}

/* Is the name one of those between commas? */
static bool is_wanted_call(const char *name) {
    if (!wanted_calls[0]) return true;
    size_t length = strlen(name);
    for (const char *at = wanted_calls; (at = strstr(at, name)); at += length)
        if ((at == wanted_calls || at[-1] == ',') && (at[length] == ',' || !at[length])) return true;
    return false;
}

static void note(long number, bool failed, const char *call, const char *name) {
    char line[NAME_MAX_ + 128];
    size_t at = copy(line, 0, sizeof line, failed ? "!" : "");
    at = copy_number(line, at, sizeof line, number);
    at = copy(line, at, sizeof line, " ");
    at = copy(line, at, sizeof line, call);
    at = copy(line, at, sizeof line, " ");
    at = copy(line, at, sizeof line, name);
    at = copy(line, at, sizeof line, "\n");
    if (log_file >= 0) failing_call(SYS_write, log_file, (long)line, (long)at, 0, 0, 0);
}

static long pass(const struct call *call, const long a[6]) {
    return failing_call(call->number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static bool moves_bytes(const struct call *call) {
    return call->number == SYS_read || call->number == SYS_write || call->number == SYS_pread64 ||
           call->number == SYS_pwrite64;
}

static void half(long a[6]) {
    if (a[2] > 1) a[2] /= 2;
}

static long fail(const struct call *call, const long given[6]) {
    long a[6] = {given[0], given[1], given[2], given[3], given[4], given[5]};
    bool writes = call->number == SYS_write || call->number == SYS_pwrite64;
    if (strcmp(how, "KILL") == 0) {
        half(a);
        if (writes) pass(call, a);
        failing_call(SYS_kill, failing_call(SYS_getpid, 0, 0, 0, 0, 0, 0), SIGKILL, 0, 0, 0, 0);
    }
    if (strcmp(how, "SHORT") == 0) {
        if (moves_bytes(call)) half(a);
        return pass(call, a);
    }
    if (call->number == SYS_close) pass(call, a); /* it is closed, whatever it says */
    if (writes && how[0] >= '0' && how[0] <= '9') {
        a[2] = how[0] - '0' < a[2] ? how[0] - '0' : a[2];
        pass(call, a);
    }
    return strcmp(how, "EIO") == 0 ? -EIO : strcmp(how, "EMFILE") == 0 ? -EMFILE : -ENOSPC;
}

static long answer(const struct call *call, const long a[6]) {
    char name[NAME_MAX_];
    name_of(call, a, name, sizeof name);
    if (!strstr(name, wanted_path) || !is_wanted_call(call->name)) return pass(call, a);
    long number = __atomic_add_fetch(&counted, 1, __ATOMIC_RELAXED);
    bool now = this_rank_fails && fail_at > 0 && (number == fail_at || (fail_on && number > fail_at));
    note(number, now, call->name, name);
    return now ? fail(call, a) : pass(call, a);
}

static void on_call(int signal, siginfo_t *info, void *context) {
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    const long a[6] = {r[REG_RDI], r[REG_RSI], r[REG_RDX], r[REG_R10], r[REG_R8], r[REG_R9]};
    (void)signal;
    for (size_t i = 0; i < CALLS; i++)
        if (calls[i].number == info->si_syscall) r[REG_RAX] = answer(&calls[i], a);
}

/* -- at the start ------------------------------------------------------------------------------------------------- */

/* A thread that had SIGSYS blocked would be ended by its next call. */
int pthread_sigmask(int what, const sigset_t *set, sigset_t *old) {
    sigset_t most;
    if (set) most = *set;
    if (set && what != SIG_UNBLOCK) sigdelset(&most, SIGSYS);
    return syscall(SYS_rt_sigprocmask, what, set ? &most : NULL, old, 8) < 0 ? errno : 0;
}

int sigprocmask(int what, const sigset_t *set, sigset_t *old) {
    int failed = pthread_sigmask(what, set, old);
    errno = failed ? failed : errno;
    return failed ? -1 : 0;
}

#define DATA(field) offsetof(struct seccomp_data, field)
static bool install(void) {
    uint64_t passed = (uint64_t)(uintptr_t)failing_call_passed;
    struct sock_filter f[2 * CALLS + 16];
    unsigned short n = 0;
    f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, DATA(arch));
    f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, DATA(instruction_pointer));
    f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)passed, 0, 3);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, DATA(instruction_pointer) + 4);
    f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(passed >> 32), 0, 1);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, DATA(nr));
    for (size_t i = 0; i < CALLS; i++) {
        f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i].number, 0, 1);
        f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
    }
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog program = {n, f};
    struct sigaction action = {.sa_sigaction = on_call, .sa_flags = SA_SIGINFO | SA_NODEFER};
    return sigaction(SIGSYS, &action, NULL) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static const char *text_of(const char *name) {
    const char *value = getenv(name);
    return value ? value : "";
}

static const char *this_rank(void) {
    static const char *const by[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"};
    for (size_t i = 0; i < sizeof by / sizeof *by; i++)
        if (text_of(by[i])[0]) return text_of(by[i]);
    return "0";
}

static void open_log(void) {
    char path[4096 + 16];
    snprintf(path, sizeof path, "%s.%s", text_of("FAIL_LOG"), this_rank());
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file < 0) return;
    log_file = fcntl(file, F_DUPFD_CLOEXEC, LOG_DESCRIPTOR); /* out of the way of those that the program counts on */
    if (log_file < 0)
        log_file = file;
    else
        close(file);
}

__attribute__((constructor)) static void start(void) {
    const char *only = text_of("FAIL_PROGRAM")[0] ? text_of("FAIL_PROGRAM") : "sparsetrain";
    if (!text_of("FAIL_PATH")[0] || strcmp(program_invocation_short_name, only) != 0) return;
    snprintf(wanted_path, sizeof wanted_path, "%s", text_of("FAIL_PATH"));
    snprintf(wanted_calls, sizeof wanted_calls, "%s", text_of("FAIL_CALLS"));
    snprintf(how, sizeof how, "%s", text_of("FAIL_HOW"));
    fail_at = atol(text_of("FAIL_AT"));
    fail_on = strcmp(text_of("FAIL_ON"), "yes") == 0;
    this_rank_fails = !text_of("FAIL_RANK")[0] || strcmp(text_of("FAIL_RANK"), this_rank()) == 0;
    if (text_of("FAIL_LOG")[0]) open_log();
    if (install()) return;
    fprintf(stderr, "failing: no seccomp filter here: %s\n", strerror(errno));
    _exit(99);
}

#else
__attribute__((constructor)) static void start(void) {
    if (!getenv("FAIL_PATH")) return;
    fprintf(stderr, "failing: not written for this machine\n");
    _exit(99);
}
#endif
