/* checkpoint_clean.c: see checkpoint_clean.h. */
#include "cli/checkpoint/checkpoint_clean.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/checkpoint/checkpoint_names.h"

/* model.ckpt, rank0012.ckpt */
static bool is_file_of_ours(const char *name) {
    if (strcmp(name, "model.ckpt") == 0) return true;
    if (strncmp(name, "rank", 4) != 0) return false;
    size_t number = strspn(name + 4, "0123456789");
    return number > 0 && strcmp(name + 4 + number, ".ckpt") == 0;
}

/* What a network file system has in the place of a file that is removed while somebody reads it; it goes by itself. */
static bool goes_by_itself(const char *name) {
    return strncmp(name, ".nfs", 4) == 0;
}

static bool is_dots(const char *name) {
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* A directory by itself, not through a link; NULL: it is none. */
static DIR *open_directory(const char *path) {
    int file = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = file >= 0 ? fdopendir(file) : NULL;
    if (file >= 0 && !d) close(file);
    return d;
}

static bool cannot_read(const char *path, int status, struct err *left) {
    return err_with(left, status, "%s is left as it is: it cannot be read: %s", path, strerror(errno));
}

/* Is all that is in it ours? Where a list breaks off, nobody knows. */
static bool is_all_ours(DIR *d, const char *path, struct err *left) {
    struct stat info;
    errno = 0;
    for (struct dirent *entry; (entry = readdir(d)); errno = 0) {
        const char *name = entry->d_name;
        if (is_dots(name) || goes_by_itself(name)) continue;
        const bool named = is_file_of_ours(name),
                   there = !named || fstatat(dirfd(d), name, &info, AT_SYMLINK_NOFOLLOW) == 0;
        if (!there && errno == ENOENT) continue;
        if (!there) return cannot_read(path, EXIT_SYSTEM, left);
        if (named && !S_ISDIR(info.st_mode)) continue;
        return err_set(left, "%s is left as it is: it holds %.255s, which is no file of a checkpoint", path, name);
    }
    if (errno != 0) return cannot_read(path, EXIT_SYSTEM, left);
    rewinddir(d);
    return true;
}

/* The directory, if it is one and all in it is ours. */
static DIR *open_ours(const char *path, struct err *left) {
    DIR *d = open_directory(path);
    if (!d && (errno == ELOOP || errno == ENOTDIR))
        err_set(left, "%s is left as it is: it is not a directory", path);
    else if (!d && errno != ENOENT)
        cannot_read(path, err_of_errno(errno), left);
    if (!d || is_all_ours(d, path, left)) return d;
    closedir(d);
    return NULL;
}

void checkpoint_remove(const char *path, struct err *left) {
    DIR *d = open_ours(path, left);
    if (!d) return;
    for (struct dirent *entry; (entry = readdir(d));)
        if (is_file_of_ours(entry->d_name)) unlinkat(dirfd(d), entry->d_name, 0);
    closedir(d);
    rmdir(path);
}

/* Of what has been set aside, up to this step; of what a kill has left, all. */
static void tidy(const char *dir, long long set_aside, struct err *left) {
    DIR *d = opendir(dir);
    if (!d) return;
    for (struct dirent *entry; (entry = readdir(d));) {
        char path[CHECKPOINT_PATH_MAX];
        const long long step = checkpoint_damaged_step(entry->d_name);
        if (!checkpoint_is_leftover(entry->d_name) && (step < 0 || step > set_aside)) continue;
        snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
        checkpoint_remove(path, left);
    }
    closedir(d);
}

void checkpoint_tidy(const char *dir, struct err *left) {
    tidy(dir, -1, left);
}

void checkpoint_tidy_damaged(const char *dir, long long step, struct err *left) {
    tidy(dir, step, left);
}

bool checkpoint_is_ours(const char *path, struct err *left) {
    struct err why = {0};
    DIR *d = open_ours(path, &why);
    if (d) closedir(d);
    return !why.text[0] || err_with(left, why.status, "%s", why.text);
}

static bool is_directory(const char *path) {
    struct stat info;
    return lstat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* The newest checkpoint in dir before this step that is a directory itself, or -1. */
static long long newest_own(const char *dir, long long before) {
    char path[CHECKPOINT_PATH_MAX];
    do {
        before = checkpoint_newest(dir, before);
        if (before >= 0) checkpoint_name(path, dir, before);
    } while (before >= 0 && !is_directory(path));
    return before;
}

/* Renamed first, so that a half-removed one is never mistaken for a checkpoint. */
static void remove_whole(const char *path, struct err *left) {
    char gone[CHECKPOINT_PATH_MAX + 8];
    DIR *d = open_ours(path, left);
    if (!d) return;
    closedir(d);
    snprintf(gone, sizeof gone, "%s.old", path);
    checkpoint_remove(gone, left); /* of a kill in the midst of this */
    if (rename(path, gone) == 0)
        checkpoint_remove(gone, left);
    else
        err_with(left, err_of_errno(errno), "%s is left as it is: it cannot be renamed: %s", path, strerror(errno));
}

void checkpoint_prune(const char *dir, long long before, int64_t keep, int64_t every, struct err *left) {
    char path[CHECKPOINT_PATH_MAX];
    long long step = before;
    for (int64_t i = 0; i < keep && step >= 0; i++) step = newest_own(dir, step);
    while (step >= 0 && (step = newest_own(dir, step)) >= 0) {
        if (every > 0 && step % every == 0) continue;
        checkpoint_name(path, dir, step);
        remove_whole(path, left);
    }
}

/* The newest of later steps than this one; -1: there is none. */
static bool next_later(const char *dir, long long after, long long before, long long *step, struct err *e) {
    *step = checkpoint_newest(dir, before);
    if (*step < 0 && errno) return err_system(e, "cannot read %s: %s", dir, strerror(errno));
    if (*step <= after) *step = -1;
    return true;
}

bool checkpoint_discard(const char *dir, long long after, struct err *e) {
    char path[CHECKPOINT_PATH_MAX];
    long long step = INT64_MAX;
    while (next_later(dir, after, step, &step, e) && step >= 0) {
        checkpoint_name(path, dir, step);
        if (!checkpoint_is_ours(path, e)) return false;
    }
    for (step = INT64_MAX; !e->text[0] && next_later(dir, after, step, &step, e) && step >= 0;) {
        checkpoint_name(path, dir, step);
        remove_whole(path, e);
    }
    return !e->text[0];
}

bool checkpoint_set_aside(const char *dir, long long after, struct err *e) {
    char path[CHECKPOINT_PATH_MAX], aside[CHECKPOINT_PATH_MAX + sizeof CHECKPOINT_DAMAGED];
    struct err left = {0};
    long long step;
    while (next_later(dir, after, INT64_MAX, &step, e) && step >= 0) {
        checkpoint_name(path, dir, step);
        snprintf(aside, sizeof aside, "%s" CHECKPOINT_DAMAGED, path);
        checkpoint_remove(aside, &left);
        if (rename(path, aside) != 0)
            return err_with(e, err_of_errno(errno), "cannot rename %s, which is damaged, to %s: %s; move it away", path,
                            aside, strerror(errno));
    }
    return !e->text[0];
}
