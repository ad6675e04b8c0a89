/* failing_here.h: a call of the system that fails in the process of a C test, whose own functions of these names stand
 * before the C library's; what the C library calls within itself passes by. For whole programs: failing.c.
 *
 *        fails_here("fsync", 2, EIO);          // the second from now on, once
 *        then_here("lseek", 1, change_it);     // or this is done before it
 *        ...
 *        assert_false(fails_left());           // it has happened
 *
 * EOF as the reason: a read finds the end of its file. */
#ifndef ST_TESTS_FAILING_HERE_H
#define ST_TESTS_FAILING_HERE_H

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FAILING_HERE_MAX = 4 };

static struct failing_here {
    const char *call; /* NULL: none */
    int at, reason;
    void (*then)(void);
} failing_here[FAILING_HERE_MAX];

static inline void add_here(struct failing_here one) {
    size_t i = 0;
    while (i < FAILING_HERE_MAX && failing_here[i].call) i++;
    if (i < FAILING_HERE_MAX) failing_here[i] = one;
}

static inline void fails_here(const char *call, int at, int reason) {
    add_here((struct failing_here){.call = call, .at = at, .reason = reason});
}

static inline void then_here(const char *call, int at, void (*then)(void)) {
    add_here((struct failing_here){.call = call, .at = at, .then = then});
}

static inline bool fails_left(void) {
    bool left = false;
    for (size_t i = 0; i < FAILING_HERE_MAX; i++) {
        left |= failing_here[i].call != NULL;
        failing_here[i].call = NULL;
    }
    return left;
}

/* 0, or why this call is to fail. */
static inline int why_it_fails(const char *call) {
    int why = 0;
    for (size_t i = 0; i < FAILING_HERE_MAX; i++) {
        struct failing_here *f = &failing_here[i];
        if (!f->call || strcmp(f->call, call) != 0 || --f->at > 0) continue;
        f->call = NULL;
        if (f->then) f->then();
        why = f->then ? why : f->reason;
    }
    if (why > 0) errno = why;
    return why;
}

/* The calls are made by their numbers: what a sanitizer starts with would find no function behind ours yet. */
ssize_t read(int file, void *data, size_t bytes) {
    const int why = why_it_fails("read");
    return why == EOF ? 0 : why ? -1 : syscall(SYS_read, file, data, bytes);
}

off_t lseek(int file, off_t to, int from) {
    return why_it_fails("lseek") ? -1 : syscall(SYS_lseek, file, to, from);
}

int fsync(int file) {
    return why_it_fails("fsync") ? -1 : (int)syscall(SYS_fsync, file);
}

int close(int file) {
    return why_it_fails("close") ? -1 : (int)syscall(SYS_close, file);
}

int rename(const char *from, const char *to) {
    return why_it_fails("rename") ? -1 : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned how) {
    return why_it_fails("renameat2") ? -1 : (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, how);
}

DIR *fdopendir(int file) {
    static DIR *(*real)(int);
    if (why_it_fails("fdopendir")) return NULL;
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "fdopendir");
    return real(file);
}
struct dirent *readdir(DIR *d) {
    static struct dirent *(*real)(DIR * d);
    if (why_it_fails("readdir")) return NULL;
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "readdir");
    return real(d);
}

#endif
