/* checkpoint_files.c: see checkpoint_files.h. */
#include "cli/checkpoint/checkpoint_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/options/shell_quote.h"

#define NAME_ONE "name a checkpoint, or the directory of a run that has one"
const struct checkpoint_use checkpoint_resume = {"resume from", "--resume",
                                                 "start the run again without --resume, with another --out"};
const struct checkpoint_use checkpoint_init = {"start from", "--init-from", NAME_ONE};
const struct checkpoint_use checkpoint_evaluate = {"evaluate", "evaluate", NAME_ONE};
const struct checkpoint_use checkpoint_export = {"export", "export", NAME_ONE};

/* Whatever it is: who reads it says what is wrong with it. */
static bool is_there(const char *dir, const char *name) {
    char path[CHECKPOINT_PATH_MAX];
    struct stat info;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return lstat(path, &info) == 0;
}

bool checkpoint_locate(const struct checkpoint_use *use, const char *dir, struct checkpoint *found, struct err *e) {
    struct stat info;
    char path[CHECKPOINT_PATH_MAX];
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
    checkpoint_name(path, dir, step);
    strcpy(found->path, path); /* dir has at most 900 characters */
    snprintf(found->run_dir, sizeof found->run_dir, "%s", dir);
    return true;
}

void checkpoint_suggest(const struct checkpoint *found, struct err *e) {
    static const char says[] = "; the one before it: ";
    long long step = checkpoint_step_in(found->path), older = step > 0 ? checkpoint_newest(found->run_dir, step) : -1;
    size_t used = strlen(e->text);
    if (older < 0 || (found->use == &checkpoint_resume && !found->named) || strstr(e->text, says)) return;
    char path[CHECKPOINT_PATH_MAX];
    checkpoint_name(path, found->run_dir, older);
    char *quoted = shell_quote(path);
    snprintf(e->text + used, sizeof e->text - used, "%s%s %s", says, found->use->command, quoted);
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
