/* failing.c: loaded before a program (LD_PRELOAD): chosen calls of the file system fail, or the program is killed in
 * them. Library calls are not replaced, since what the C library calls within itself (fwrite, opendir, readdir) would
 * pass by: a seccomp filter has the kernel raise SIGSYS at every such system call, and the handler makes the call in
 * its place, or not. Linux on x86-64.
 *
 *     FAIL_CALLS="CALLS PART FROM TO HOW[; ...]"
 *
 * CALLS: as the kernel names them, with commas (write,openat); all; exchange: a rename that exchanges names; lock: one
 * that locks a file. Of those whose file has PART in its full name (PART$: at its end) the FROM-th to the TO-th fail
 * (TO 0: all from there on; FROM 0: none, they are counted). Each rule counts by itself, in every process; the first
 * that says so decides. HOW: the name of an error; SHORT: half is read or written; KILL: the process is killed, in a
 * write when half is written; STOP: the process is stopped, and makes the call when it goes on.
 *
 *     FAIL_RANK=R        calls fail in this rank of a job only
 *     FAIL_LOG=FILE      each call that counts adds a line to FILE.<rank>: its number by the first rule that counts it,
 *                        call, file; `!` before one that failed
 *     FAIL_PROGRAM=NAME  only in a program of this name (sparsetrain), not in the mpirun that starts it
 *
 * Exit 99 with a line: the kernel has no such filters, or does not allow them here. Exit 98: a rule is none. What the
 * program starts inherits the filter and not the handler, and is killed: without mpirun MPI must start no helper.
 *
 *     SLOW_THREADS=1     threads of the program other than the first sleep before each piece of their work, and the
 *                        first one stays for a while when MPI has ended: a thread that still works then works with what
 *                        is gone. This is no matter of files: two calls of libraries are replaced.
 *     SLOW_EVENTS=1      threads that wait for events, which are MPI's, see them a tenth of a second late: Open MPI 4.1
 *                        then dies in MPI_Finalize of a short program. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
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
#include <time.h>
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

enum { RULES = 8, HOW_KILL = -1, HOW_SHORT = -2, HOW_STOP = -3 };
static struct rule {
    char calls[256], part[512];
    long from, to;
    int how; /* an errno, or one of the above */
    long seen;
} rules[RULES];
static size_t rule_count;
static bool this_rank_fails = true;
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
static bool has_name(const char *names, const char *name) {
    size_t length = strlen(name);
    for (const char *at = names; (at = strstr(at, name)); at += length)
        if ((at == names || at[-1] == ',') && (at[length] == ',' || !at[length])) return true;
    return false;
}

static bool locks(const struct call *call, const long a[6]) {
    return call->number == SYS_flock || (call->number == SYS_fcntl && (a[1] == F_SETLK || a[1] == F_OFD_SETLK));
}

static bool is_of_call(const struct rule *r, const struct call *call, const long a[6]) {
    if (has_name(r->calls, "all") || has_name(r->calls, call->name)) return true;
    if (has_name(r->calls, "lock") && locks(call, a)) return true;
    return has_name(r->calls, "exchange") && call->number == SYS_renameat2 && a[4] != 0;
}

static bool is_of_file(const struct rule *r, const char *name) {
    size_t length = strlen(r->part), whole = strlen(name);
    if (length == 0 || r->part[length - 1] != '$') return strstr(name, r->part) != NULL;
    length--;
    return whole >= length && strncmp(name + whole - length, r->part, length) == 0;
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

static long fail(const struct call *call, const long given[6], int how) {
    long a[6] = {given[0], given[1], given[2], given[3], given[4], given[5]};
    if (how == HOW_KILL) {
        half(a);
        if (call->number == SYS_write || call->number == SYS_pwrite64) pass(call, a);
        failing_call(SYS_kill, failing_call(SYS_getpid, 0, 0, 0, 0, 0, 0), SIGKILL, 0, 0, 0, 0);
    }
    if (how == HOW_STOP) {
        failing_call(SYS_kill, failing_call(SYS_getpid, 0, 0, 0, 0, 0, 0), SIGSTOP, 0, 0, 0, 0);
        return pass(call, a);
    }
    if (how == HOW_SHORT) {
        if (moves_bytes(call)) half(a);
        return pass(call, a);
    }
    if (call->number == SYS_close) pass(call, a); /* it is closed, whatever it says */
    return -how;
}

static long answer(const struct call *call, const long a[6]) {
    char name[NAME_MAX_];
    long number = 0;
    int how = 0;
    name_of(call, a, name, sizeof name);
    for (size_t i = 0; i < rule_count; i++) {
        struct rule *r = &rules[i];
        if (!is_of_call(r, call, a) || !is_of_file(r, name)) continue;
        long nth = __atomic_add_fetch(&r->seen, 1, __ATOMIC_RELAXED);
        if (number == 0) number = nth;
        if (how == 0 && r->from > 0 && nth >= r->from && (r->to == 0 || nth <= r->to)) how = r->how;
    }
    if (!this_rank_fails) how = 0;
    if (number > 0) note(number, how != 0, call->name, name);
    return how ? fail(call, a, how) : pass(call, a);
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

static _Noreturn void refuse(int status, const char *what, const char *why) {
    fprintf(stderr, "failing: %s: %s\n", what, why);
    _exit(status);
}

static int how_of(const char *name) {
    static const struct {
        const char *name;
        int how;
    } known[] = {{"KILL", HOW_KILL},   {"SHORT", HOW_SHORT}, {"STOP", HOW_STOP}, {"EIO", EIO},
                 {"ENOSPC", ENOSPC},   {"EMFILE", EMFILE},   {"EDQUOT", EDQUOT}, {"EINVAL", EINVAL},
                 {"ENOTSUP", ENOTSUP}, {"ENOLCK", ENOLCK},   {"EACCES", EACCES}, {"ESTALE", ESTALE}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, name) == 0) return known[i].how;
    refuse(98, "there is no such way to fail", name);
}

static bool is_call(const char *name) {
    for (size_t i = 0; i < CALLS; i++)
        if (strcmp(calls[i].name, name) == 0) return true;
    return strcmp(name, "all") == 0 || strcmp(name, "lock") == 0 || strcmp(name, "exchange") == 0;
}

static void check_calls(const char *names) {
    char copied[sizeof rules->calls], *rest = copied;
    snprintf(copied, sizeof copied, "%s", names);
    for (char *name; (name = strsep(&rest, ","));)
        if (!is_call(name)) refuse(98, "there is no such call", name);
}

static void read_rules(const char *text) {
    for (int used = 0; *text; text += used) {
        struct rule *r = &rules[rule_count];
        char how[16];
        used = 0;
        if (rule_count == RULES) refuse(98, "too many rules", text);
        if (sscanf(text, "%255s %511s %ld %ld %15[A-Z]%n", r->calls, r->part, &r->from, &r->to, how, &used) != 5)
            refuse(98, "no rule", text);
        check_calls(r->calls);
        r->how = how_of(how);
        rule_count++;
        used += (int)strspn(text + used, "; ");
    }
}

__attribute__((constructor)) static void start(void) {
    const char *only = text_of("FAIL_PROGRAM")[0] ? text_of("FAIL_PROGRAM") : "sparsetrain";
    if (!text_of("FAIL_CALLS")[0] || strcmp(program_invocation_short_name, only) != 0) return;
    read_rules(text_of("FAIL_CALLS"));
    this_rank_fails = !text_of("FAIL_RANK")[0] || strcmp(text_of("FAIL_RANK"), this_rank()) == 0;
    if (text_of("FAIL_LOG")[0]) open_log();
    if (!install()) refuse(99, "no seccomp filter here", strerror(errno));
}

#else
__attribute__((constructor)) static void start(void) {
    if (!getenv("FAIL_CALLS")) return;
    fprintf(stderr, "failing: not written for this machine\n");
    _exit(99);
}
#endif

/* -- threads ------------------------------------------------------------------------------------------------------- */

static void nap(long milliseconds) {
    struct timespec pause = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

/* In a thread of the program's own: MPI has some, too. */
static int is_own_thread(const void *caller) {
    Dl_info here, program;
    if (syscall(SYS_gettid) == getpid() || !getenv("SLOW_THREADS")) return 0;
    return dladdr(caller, &here) && dladdr(dlsym(RTLD_DEFAULT, "main"), &program) &&
           here.dli_fbase == program.dli_fbase;
}

/* Before it works, a thread gives the lock back by which it learned of work. */
int pthread_mutex_unlock(pthread_mutex_t *lock) {
    static int (*real)(pthread_mutex_t *);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "pthread_mutex_unlock");
    int code = real(lock);
    if (is_own_thread(__builtin_return_address(0))) nap(300);
    return code;
}

int poll(struct pollfd *fds, nfds_t count, int timeout) {
    static int (*real)(struct pollfd *, nfds_t, int);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "poll");
    int ready = real(fds, count, timeout);
    if (syscall(SYS_gettid) != getpid() && getenv("SLOW_EVENTS")) nap(100);
    return ready;
}

int MPI_Finalize(void);
int MPI_Finalize(void) {
    int (*real)(void);
    *(void **)&real = dlsym(RTLD_NEXT, "MPI_Finalize");
    int code = real();
    if (getenv("SLOW_THREADS")) nap(1500);
    return code;
}
