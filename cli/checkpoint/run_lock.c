/* run_lock.c: see run_lock.h. The file is removed by who holds the lock, so another process may have opened one that is
 * no longer there when it gets its lock: whoever has a lock looks whether the name still is that file. */
#include "cli/checkpoint/run_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char name[] = "lock", ours[] = "sparsetrain ";
enum { CONTENT_MAX = 400 };

/* -- the ways to lock -------------------------------------------------------------------------------------------- */

static struct flock whole_file(enum run_lock_use use) {
    return (struct flock){.l_type = use == RUN_LOCK_WRITE ? F_WRLCK : F_RDLCK, .l_whence = SEEK_SET};
}

static int lock_description(int file, enum run_lock_use use) {
    struct flock lock = whole_file(use);
    return fcntl(file, F_OFD_SETLK, &lock);
}

static int lock_file(int file, enum run_lock_use use) {
    return flock(file, (use == RUN_LOCK_WRITE ? LOCK_EX : LOCK_SH) | LOCK_NB);
}

static int lock_process(int file, enum run_lock_use use) {
    struct flock lock = whole_file(use);
    return fcntl(file, F_SETLK, &lock);
}

enum outcome { TAKEN, BUSY, NO_LOCKS };

/* What the file system has. *reason: of the last way that it has not. */
static enum outcome lock(int file, enum run_lock_use use, int *reason) {
    int (*const ways[])(int, enum run_lock_use) = {lock_description, lock_file, lock_process};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        int result;
        while ((result = ways[i](file, use)) != 0 && errno == EINTR) {
        }
        if (result == 0) return TAKEN;
        if (errno == EAGAIN || errno == EACCES) return BUSY;
        *reason = errno;
    }
    return NO_LOCKS;
}

/* -- who it is ----------------------------------------------------------------------------------------------------- */

static void write_holder(int file) {
    char host[256] = "", when[32], text[CONTENT_MAX];
    time_t now = time(NULL);
    struct tm utc;
    gethostname(host, sizeof host - 1);
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    int length = snprintf(text, sizeof text, "%s%s %ld %s\n", ours, host[0] ? host : "?", (long)getpid(), when);
    /* On a full disk the lock is held all the same. Another node sees the text when it is written back. */
    if (ftruncate(file, 0) == 0 && pwrite(file, text, (size_t)length, 0) == length) fsync(file);
}

/* The text of the file; waits a little for who has the lock since this moment and has not written yet. */
static void read_holder(int file, char text[CONTENT_MAX]) {
    const struct timespec moment = {.tv_nsec = 10 * 1000 * 1000};
    ssize_t bytes = 0;
    for (int i = 0; i < 100 && (bytes = pread(file, text, CONTENT_MAX - 1, 0)) == 0; i++) nanosleep(&moment, NULL);
    text[bytes > 0 ? bytes : 0] = '\0';
}

static bool read_by_others(int file) {
    struct flock asked = whole_file(RUN_LOCK_WRITE);
    return fcntl(file, F_OFD_GETLK, &asked) == 0 && asked.l_type == F_RDLCK;
}

static bool say_busy(int file, const char *dir, struct err *e) {
    char text[CONTENT_MAX], host[256], when[32];
    long process;
    if (read_by_others(file))
        return err_set(e, "%s is being read by another sparsetrain that resumes from it; try again when it has begun",
                       dir);
    read_holder(file, text);
    if (sscanf(text, "sparsetrain %255[A-Za-z0-9._?-] %ld %31[0-9TZ:-]", host, &process, when) == 3)
        return err_set(e, "%s is in use: process %ld on host %s has been running there since %s; wait for it or end it",
                       dir, process, host, when);
    return err_set(e, "%s is in use by another process, which holds its lock; wait for it or end it", dir);
}

/* -- the file ------------------------------------------------------------------------------------------------------ */

static bool cannot_read(const char *dir, struct err *e) {
    return err_system(e, "cannot read %s/%s: %s", dir, name, strerror(errno));
}

/* Nobody else's file may be written on: no link to one, no file of another program. */
static bool is_ours(int file, const char *dir, struct err *e) {
    struct stat info;
    char text[sizeof ours] = "";
    if (fstat(file, &info) != 0) return cannot_read(dir, e);
    if (!S_ISREG(info.st_mode) || info.st_nlink > 1)
        return err_set(e, "%s/%s is not a regular file of its own; remove it, or choose another --out", dir, name);
    ssize_t bytes = pread(file, text, sizeof ours - 1, 0);
    if (bytes < 0) return cannot_read(dir, e);
    return bytes == 0 || strcmp(text, ours) == 0 ||
           err_set(e, "%s/%s is not a lock of sparsetrain; move it away, or choose another --out", dir, name);
}

/* Is the name still this file? */
static bool is_there(const struct run_lock *l) {
    struct stat held, named;
    return fstat(l->file, &held) == 0 && fstatat(l->dir, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

/* -1 with errno */
static int open_file(int dir, enum run_lock_use use) {
    const int how = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    return use == RUN_LOCK_WRITE ? openat(dir, name, O_RDWR | O_CREAT | how, 0666) : openat(dir, name, O_RDONLY | how);
}

static bool cannot_open(const char *dir, struct err *e) {
    if (errno == ELOOP) return err_set(e, "%s/%s is a symbolic link; remove it, or choose another --out", dir, name);
    return err_with(e, err_of_errno(errno), "cannot write %s/%s: %s; choose another --out", dir, name, strerror(errno));
}

static bool take(struct run_lock *l, const char *dir, bool *again, struct err *note, struct err *e) {
    int reason = 0;
    if (!is_ours(l->file, dir, e)) return false;
    const enum outcome outcome = lock(l->file, l->use, &reason);
    if (outcome == BUSY) return say_busy(l->file, dir, e);
    if (!is_there(l)) {
        *again = true;
        return false;
    }
    if (outcome == NO_LOCKS)
        err_set(note, "%s is on a file system without locks (%s): see to it that no other run writes there", dir,
                strerror(reason));
    if (l->use == RUN_LOCK_WRITE) write_holder(l->file);
    return true;
}

/* A directory without a lock of ours has nobody who writes; nor may we be able to see one. */
static bool needs_none(const struct run_lock *l, const char *dir, int reason) {
    struct err ignored = {0};
    if (l->use == RUN_LOCK_WRITE) return false;
    return l->file < 0 ? reason == ENOENT || reason == EACCES : !is_ours(l->file, dir, &ignored);
}

bool run_lock_take(struct run_lock *l, const char *dir, enum run_lock_use use, struct err *note, struct err *e) {
    *l = (struct run_lock){.use = use, .dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (l->dir < 0) return err_with(e, err_of_errno(errno), "cannot open the directory %s: %s", dir, strerror(errno));
    bool again = true, none = false;
    while (again) {
        again = false;
        l->file = open_file(l->dir, use);
        none = needs_none(l, dir, errno);
        if (l->file < 0 && !none) cannot_open(dir, e);
        l->open = l->file >= 0 && !none && take(l, dir, &again, note, e);
        if (l->file >= 0 && !l->open) close(l->file);
    }
    if (!l->open) close(l->dir);
    return l->open || none;
}

void run_lock_release(struct run_lock *l) {
    if (!l->open) return;
    if (l->use == RUN_LOCK_WRITE && is_there(l)) unlinkat(l->dir, name, 0);
    close(l->file);
    close(l->dir);
    l->open = false;
}
