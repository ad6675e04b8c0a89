/* crashing.c: loaded before a program (LD_PRELOAD). CRASH_AT=n kills it with SIGKILL at the nth call of write, fsync or
 * rename that concerns a checkpoint; a write is done by half first. FULL_AT=n: from the nth such write on the disk is
 * full. So a test can stop a run at every point of writing a checkpoint. NO_EXCHANGE=1, NO_LOCKS=1: a file system that
 * cannot exchange names, or lock files. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static int calls;

static int concerns_checkpoint(int file) {
    char link[64], target[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t n = readlink(link, target, sizeof target - 1);
    if (n < 0) return 0;
    target[n] = '\0';
    return strstr(target, "checkpoint-") != NULL;
}

static int is_time(void) {
    const char *at = getenv("CRASH_AT");
    return at && ++calls == atoi(at);
}

static int is_full(void) {
    static int writes;
    const char *at = getenv("FULL_AT");
    return at && ++writes >= atoi(at);
}

ssize_t write(int file, const void *data, size_t bytes) {
    ssize_t (*real)(int, const void *, size_t);
    *(void **)&real = dlsym(RTLD_NEXT, "write");
    if (concerns_checkpoint(file) && is_time()) {
        real(file, data, bytes / 2);
        raise(SIGKILL);
    }
    if (concerns_checkpoint(file) && is_full()) {
        errno = ENOSPC;
        return -1;
    }
    return real(file, data, bytes);
}

int fsync(int file) {
    int (*real)(int);
    *(void **)&real = dlsym(RTLD_NEXT, "fsync");
    if (concerns_checkpoint(file) && is_time()) raise(SIGKILL);
    return real(file);
}

int rename(const char *from, const char *to) {
    int (*real)(const char *, const char *);
    *(void **)&real = dlsym(RTLD_NEXT, "rename");
    if (strstr(from, "checkpoint-") && is_time()) raise(SIGKILL);
    return real(from, to);
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned how) {
    int (*real)(int, const char *, int, const char *, unsigned);
    *(void **)&real = dlsym(RTLD_NEXT, "renameat2");
    if (strstr(from, "checkpoint-") && is_time()) raise(SIGKILL);
    if (how != 0 && getenv("NO_EXCHANGE")) {
        errno = EINVAL;
        return -1;
    }
    return real(from_dir, from, to_dir, to, how);
}

static int no_locks(void) {
    if (!getenv("NO_LOCKS")) return 0;
    errno = ENOLCK;
    return 1;
}

int fcntl(int file, int command, ...) {
    int (*real)(int, int, ...);
    va_list args;
    va_start(args, command);
    void *argument = va_arg(args, void *);
    va_end(args);
    *(void **)&real = dlsym(RTLD_NEXT, "fcntl");
    if ((command == F_OFD_SETLK || command == F_SETLK) && no_locks()) return -1;
    return real(file, command, argument);
}

int flock(int file, int how) {
    int (*real)(int, int);
    *(void **)&real = dlsym(RTLD_NEXT, "flock");
    return no_locks() ? -1 : real(file, how);
}
