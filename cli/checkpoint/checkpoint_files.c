/* checkpoint_files.c: see checkpoint_files.h. */
#include "cli/checkpoint/checkpoint_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/checkpoint/checkpoint_clean.h"
#include "cli/options/shell_quote.h"

static const char prefix[] = "checkpoint-";

#define NAME_ONE "name a checkpoint, or the directory of a run that has one"
const struct checkpoint_use checkpoint_resume = {"resume from", "--resume",
                                                 "start the run again without --resume, with another --out"};
const struct checkpoint_use checkpoint_init = {"start from", "--init-from", NAME_ONE};
const struct checkpoint_use checkpoint_evaluate = {"evaluate", "evaluate", NAME_ONE};
const struct checkpoint_use checkpoint_export = {"export", "export", NAME_ONE};

void checkpoint_name(char path[CHECKPOINT_PATH_MAX], const char *dir, long long step) {
    snprintf(path, CHECKPOINT_PATH_MAX, "%s/%s%08lld", dir, prefix, step);
}

/* As checkpoint_name writes it, and no other way: what is found must be there under that name. */
long long checkpoint_step_of(const char *name) {
    char whole[32];
    if (strncmp(name, prefix, sizeof prefix - 1) != 0) return -1;
    long long step = strtoll(name + sizeof prefix - 1, NULL, 10);
    snprintf(whole, sizeof whole, "%s%08lld", prefix, step);
    return step >= 0 && strcmp(name, whole) == 0 ? step : -1;
}

void checkpoint_last_name(const char *path, char name[CHECKPOINT_NAME_MAX]) {
    size_t end = strlen(path), from;
    while (end > 0 && path[end - 1] == '/') end--;
    for (from = end; from > 0 && path[from - 1] != '/';) from--;
    const bool fits = end - from < CHECKPOINT_NAME_MAX;
    snprintf(name, CHECKPOINT_NAME_MAX, "%.*s", fits ? (int)(end - from) : 0, path + from);
}

long long checkpoint_step_in(const char *path) {
    char name[CHECKPOINT_NAME_MAX];
    checkpoint_last_name(path, name);
    if (strncmp(name, prefix, sizeof prefix - 1) != 0) return -1;
    const char *digits = name + sizeof prefix - 1;
    const size_t length = strlen(digits);
    return length >= 1 && length < 19 && strspn(digits, "0123456789") == length ? strtoll(digits, NULL, 10) : -1;
}

/* A list that breaks off is none: what would have come may be newer than what came. */
long long checkpoint_newest(const char *dir, long long before) {
    DIR *d = opendir(dir);
    if (!d) return -1;
    long long best = -1;
    errno = 0;
    for (struct dirent *entry; (entry = readdir(d));) {
        long long step = checkpoint_step_of(entry->d_name);
        if (step > best && step < before) best = step;
    }
    int reason = errno;
    closedir(d);
    errno = reason;
    return reason ? -1 : best;
}

/* Whatever it is: who reads it says what is wrong with it. */
static bool is_there(const char *dir, const char *name) {
    char path[CHECKPOINT_PATH_MAX];
    struct stat info;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return lstat(path, &info) == 0;
}

bool checkpoint_locate(const struct checkpoint_use *use, const char *dir, struct checkpoint *found, struct err *e) {
    struct stat info;
    found->use = use;
    if (strlen(dir) > 900) return err_set(e, "cannot %s it: the name of the directory is too long", use->verb);
    if (stat(dir, &info) != 0)
        return err_with(e, err_of_errno(errno), "cannot %s %s: %s", use->verb, dir, strerror(errno));
    found->named =
        is_there(dir, "model.ckpt") || (checkpoint_step_in(dir) >= 0 && checkpoint_newest(dir, INT64_MAX) < 0);
    if (found->named && use == &checkpoint_resume && checkpoint_is_aside(dir))
        return err_set(
            e, "cannot resume from %s: a run removes what has such a name; rename it to checkpoint-<step> first", dir);
    if (found->named) {
        snprintf(found->path, sizeof found->path, "%s", dir);
        snprintf(found->run_dir, sizeof found->run_dir, "%s/..", dir);
        char *resolved = realpath(found->run_dir, NULL);
        if (resolved && strlen(resolved) < sizeof found->run_dir) strcpy(found->run_dir, resolved);
        free(resolved);
        return true;
    }
    long long step = checkpoint_newest(dir, INT64_MAX);
    if (step < 0 && errno) return err_with(e, err_of_errno(errno), "cannot %s %s: %s", use->verb, dir, strerror(errno));
    if (step < 0) return err_set(e, "cannot %s %s: there is no checkpoint in it; %s", use->verb, dir, use->advice);
    snprintf(found->path, sizeof found->path, "%s/%s%08lld", dir, prefix, step);
    snprintf(found->run_dir, sizeof found->run_dir, "%s", dir);
    return true;
}

void checkpoint_suggest(const struct checkpoint *found, struct err *e) {
    static const char says[] = "; the one before it: ";
    long long step = checkpoint_step_in(found->path), older = step > 0 ? checkpoint_newest(found->run_dir, step) : -1;
    size_t used = strlen(e->text);
    if (older < 0 || (found->use == &checkpoint_resume && !found->named) || strstr(e->text, says)) return;
    char *path = mem_printf("%s/%s%08lld", found->run_dir, prefix, older), *quoted = shell_quote(path);
    snprintf(e->text + used, sizeof e->text - used, "%s%s %s", says, found->use->command, quoted);
    mem_free(path);
    mem_free(quoted);
}

static bool take(const struct checkpoint *from, const char *name, struct container *c, bool all, struct err *e) {
    char path[CHECKPOINT_PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", from->path, name);
    if (all ? container_read(path, c, e) : container_open(path, c, e)) return true;
    checkpoint_suggest(from, e);
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
    checkpoint_suggest(from, e);
    return false;
}
