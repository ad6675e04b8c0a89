/* fail_calls.c: loaded before a program (LD_PRELOAD): chosen calls fail, or the program is killed in them.
 *
 *     FAIL_CALLS="CALL PART FROM TO HOW[; ...]"
 *
 * The calls of CALL (open, write, fsync, rename; fflush, getline of the standard library's files) on a path that holds
 * PART (PART$: that ends with it), from the FROMth to the TOth (0: all after it), by HOW: the name of an error, short
 * (half is written, then ENOSPC), or kill (SIGKILL). FAIL_RANK=R: in rank R alone. Counted in every process by itself.
 *
 * SLOW_THREADS=1: threads of the program other than the first sleep before each piece of their work, and the first one
 * stays for a while when MPI has ended: a thread that still works then works with what is gone. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The function of this name that ours stands before. */
#define FIND(real, name)                                                                                               \
    if (!(real)) *(void **)&(real) = dlsym(RTLD_NEXT, name)

enum { RULES = 8, HOW_KILL = -1, HOW_SHORT = -2 };

static struct rule {
    char call[16], part[256];
    long from, to;
    int how;
    atomic_long seen;
} rules[RULES];
static size_t rule_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int how_of(const char *name) {
    static const struct {
        const char *name;
        int how;
    } known[] = {{"kill", HOW_KILL}, {"short", HOW_SHORT}, {"ENOSPC", ENOSPC}, {"EIO", EIO},
                 {"EMFILE", EMFILE}, {"EDQUOT", EDQUOT},   {"EINVAL", EINVAL}, {"EACCES", EACCES},
                 {"ENOENT", ENOENT}, {"ENOTSUP", ENOTSUP}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, name) == 0) return known[i].how;
    fprintf(stderr, "fail_calls: there is no %s\n", name);
    _exit(99);
}

static int is_other_rank(void) {
    const char *only = getenv("FAIL_RANK"), *rank = getenv("OMPI_COMM_WORLD_RANK");
    if (!rank) rank = getenv("PMI_RANK");
    return only && strcmp(only, rank ? rank : "0") != 0;
}

static void read_rules(void) {
    const char *text = getenv("FAIL_CALLS");
    if (!text || is_other_rank()) return;
    for (int used = 0; *text && rule_count < RULES; text += used) {
        struct rule *r = &rules[rule_count];
        char how[16];
        used = 0;
        if (sscanf(text, " %15s %255s %ld %ld %15[A-Za-z] %n", r->call, r->part, &r->from, &r->to, how, &used) != 5)
            break;
        r->how = how_of(how);
        rule_count++;
        text += strspn(text + used, "; ");
    }
}

static int is_of(const char *path, const char *part) {
    size_t length = strlen(part), whole = path ? strlen(path) : 0;
    if (!path || length == 0 || part[length - 1] != '$') return path && strstr(path, part);
    length--;
    return whole >= length && strncmp(path + whole - length, part, length) == 0;
}

/* 0, or how this call is to fail. */
static int verdict(const char *call, const char *path) {
    int kept = errno, how = 0;
    pthread_once(&once, read_rules);
    for (size_t i = 0; i < rule_count && !how; i++) {
        struct rule *r = &rules[i];
        if (strcmp(r->call, call) != 0 || !is_of(path, r->part)) continue;
        long nth = atomic_fetch_add(&r->seen, 1) + 1;
        if (nth >= r->from && (r->to == 0 || nth <= r->to)) how = r->how;
    }
    if (how == HOW_KILL) raise(SIGKILL);
    errno = kept;
    return how;
}

static int verdict_of(const char *call, int file) {
    char link[64], target[PATH_MAX];
    int kept = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t n = readlink(link, target, sizeof target - 1);
    errno = kept;
    if (n < 0) return 0;
    target[n] = '\0';
    return verdict(call, target);
}

int open(const char *path, int flags, ...) {
    static int (*real)(const char *, int, ...);
    FIND(real, "open");
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, mode_t) : 0;
    va_end(args);
    int how = verdict("open", path);
    if (how > 0) errno = how;
    return how > 0 ? -1 : real(path, flags, mode);
}

ssize_t write(int file, const void *data, size_t bytes) {
    static ssize_t (*real)(int, const void *, size_t);
    FIND(real, "write");
    int how = verdict_of("write", file);
    if (how == HOW_SHORT) {
        real(file, data, bytes / 2);
        how = ENOSPC;
    }
    if (how > 0) errno = how;
    return how > 0 ? -1 : real(file, data, bytes);
}

int fsync(int file) {
    static int (*real)(int);
    FIND(real, "fsync");
    int how = verdict_of("fsync", file);
    if (how > 0) errno = how;
    return how > 0 ? -1 : real(file);
}

int rename(const char *from, const char *to) {
    static int (*real)(const char *, const char *);
    FIND(real, "rename");
    int how = verdict("rename", from);
    if (how > 0) errno = how;
    return how > 0 ? -1 : real(from, to);
}

/* Files of the standard library, which writes and reads by calls of its own. */
int fflush(FILE *file) {
    static int (*real)(FILE *);
    FIND(real, "fflush");
    int how = file ? verdict_of("fflush", fileno(file)) : 0;
    if (how > 0) errno = how;
    return how > 0 ? EOF : real(file);
}

/* What getline is to the compiler. */
ssize_t __getdelim(char **line, size_t *size, int end, FILE *file);
ssize_t __getdelim(char **line, size_t *size, int end, FILE *file) {
    static ssize_t (*real)(char **, size_t *, int, FILE *);
    FIND(real, "__getdelim");
    int how = verdict_of("getline", fileno(file));
    if (how > 0) errno = how;
    return how > 0 ? -1 : real(line, size, end, file);
}

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
    FIND(real, "pthread_mutex_unlock");
    int code = real(lock);
    if (is_own_thread(__builtin_return_address(0))) nap(300);
    return code;
}

int MPI_Finalize(void);
int MPI_Finalize(void) {
    static int (*real)(void);
    FIND(real, "MPI_Finalize");
    int code = real();
    if (getenv("SLOW_THREADS")) nap(1500);
    return code;
}
