/* checkpoint_files.c: see checkpoint_files.h. */
#include "cli/checkpoint_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/shell_quote.h"

static const char prefix[] = "checkpoint-";

#define NAME_ONE "name a checkpoint, or the directory of a run that has one"
const struct checkpoint_use checkpoint_resume = {"resume from", "--resume",
                                                 "start the run again without --resume, with another --out"};
const struct checkpoint_use checkpoint_init = {"start from", "--init-from", NAME_ONE};
const struct checkpoint_use checkpoint_evaluate = {"evaluate", "evaluate", NAME_ONE};
const struct checkpoint_use checkpoint_export = {"export", "export", NAME_ONE};

void checkpoint_remove(const char *path) {
    DIR *d = opendir(path);
    if (!d) return;
    for (struct dirent *entry; (entry = readdir(d));) {
        char file[CHECKPOINT_PATH_MAX + 300];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        unlink(file);
    }
    closedir(d);
    rmdir(path);
}

void checkpoint_sync(const char *dir) {
    int file = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0) return;
    fsync(file);
    close(file);
}

void checkpoint_name(char path[CHECKPOINT_PATH_MAX], const char *dir, long long step) {
    snprintf(path, CHECKPOINT_PATH_MAX, "%s/%s%08lld", dir, prefix, step);
}

/* The step in a name "checkpoint-<step>", or -1. */
static long long step_of(const char *name) {
    char *end;
    if (strncmp(name, prefix, sizeof prefix - 1) != 0) return -1;
    long long step = strtoll(name + sizeof prefix - 1, &end, 10);
    return *end || end == name + sizeof prefix - 1 ? -1 : step;
}

/* The newest checkpoint in dir that is older than `before`, or -1. */
static long long newest(const char *dir, long long before) {
    DIR *d = opendir(dir);
    if (!d) return -1;
    long long best = -1;
    for (struct dirent *entry; (entry = readdir(d));) {
        long long step = step_of(entry->d_name);
        if (step > best && step < before) best = step;
    }
    closedir(d);
    return best;
}

/* Renamed first, so that a half-removed one is never mistaken for a checkpoint. */
void checkpoint_prune(const char *dir, int64_t keep, int64_t every) {
    long long step = INT64_MAX;
    for (int64_t i = 0; i < keep && step >= 0; i++) step = newest(dir, step);
    while (step >= 0 && (step = newest(dir, step)) >= 0) {
        if (every > 0 && step % every == 0) continue;
        char path[CHECKPOINT_PATH_MAX], gone[CHECKPOINT_PATH_MAX + 8];
        checkpoint_name(path, dir, step);
        snprintf(gone, sizeof gone, "%s.old", path);
        if (rename(path, gone) != 0) return;
        checkpoint_remove(gone);
    }
}

void checkpoint_tidy(const char *dir) {
    DIR *d = opendir(dir);
    if (!d) return;
    for (struct dirent *entry; (entry = readdir(d));) {
        size_t length = strlen(entry->d_name);
        bool ours = strncmp(entry->d_name, prefix, sizeof prefix - 1) == 0 && length > 4;
        if (!ours ||
            (strcmp(entry->d_name + length - 4, ".tmp") != 0 && strcmp(entry->d_name + length - 4, ".old") != 0))
            continue;
        char path[CHECKPOINT_PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
        checkpoint_remove(path);
    }
    closedir(d);
}

static bool is_file(const char *dir, const char *name) {
    char path[CHECKPOINT_PATH_MAX];
    struct stat info;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

bool checkpoint_locate(const struct checkpoint_use *use, const char *dir, struct checkpoint *found, struct err *e) {
    struct stat info;
    found->use = use;
    if (strlen(dir) > 900) return err_set(e, "cannot %s it: the name of the directory is too long", use->verb);
    if (stat(dir, &info) != 0) return err_set(e, "cannot %s %s: %s", use->verb, dir, strerror(errno));
    if (is_file(dir, "model.ckpt")) {
        snprintf(found->path, sizeof found->path, "%s", dir);
        snprintf(found->run_dir, sizeof found->run_dir, "%s/..", dir);
        char *resolved = realpath(found->run_dir, NULL);
        if (resolved && strlen(resolved) < sizeof found->run_dir) strcpy(found->run_dir, resolved);
        free(resolved);
        return true;
    }
    long long step = newest(dir, INT64_MAX);
    if (step < 0) return err_set(e, "cannot %s %s: there is no checkpoint in it; %s", use->verb, dir, use->advice);
    snprintf(found->path, sizeof found->path, "%s/%s%08lld", dir, prefix, step);
    snprintf(found->run_dir, sizeof found->run_dir, "%s", dir);
    return true;
}

/* A damaged checkpoint: say which older one there is. */
static void suggest_older(const struct checkpoint *found, struct err *e) {
    const char *name = strrchr(found->path, '/');
    long long step = name ? step_of(name + 1) : -1, older = step > 0 ? newest(found->run_dir, step) : -1;
    size_t used = strlen(e->text);
    if (older < 0) return;
    char *path = mem_printf("%s/%s%08lld", found->run_dir, prefix, older), *quoted = shell_quote(path);
    snprintf(e->text + used, sizeof e->text - used, "; the one before it: %s %s", found->use->command, quoted);
    mem_free(path);
    mem_free(quoted);
}

static bool take(const struct checkpoint *from, const char *name, struct container *c, bool all, struct err *e) {
    char path[CHECKPOINT_PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", from->path, name);
    if (all ? container_read(path, c, e) : container_open(path, c, e)) return true;
    suggest_older(from, e);
    return false;
}

bool checkpoint_read(const struct checkpoint *from, const char *name, struct container *c, struct err *e) {
    return take(from, name, c, true, e);
}

bool checkpoint_open(const struct checkpoint *from, const char *name, struct container *c, struct err *e) {
    return take(from, name, c, false, e);
}

bool checkpoint_get(const struct checkpoint *from, const struct container *c, const char *section, void *data,
                    size_t bytes, struct err *e) {
    if (container_get(c, section, data, bytes, e)) return true;
    suggest_older(from, e);
    return false;
}
