/* log_file.c: opening OUT/run.jsonl, see log.h: a new one, or that of a run that resumes, of which the rows up to the
 * checkpoint stay. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/mem.h"
#include "cli/checkpoint/file_sync.h"
#include "cli/log/log_rows.h"
#include "cli/options/shell_quote.h"
#include "cli/train/run.h"

/* Rows after the checkpoint go, since they are made again, and so does the summary; what is no row goes, too. */
static bool kept(const struct run *r, const char *line) {
    return log_row_whole(line) && !log_row_is(line, "summary") && log_row_step(line) <= (long long)r->first_step;
}

/* False: reading or writing failed, with errno set. A read error must not be taken for the end of the old file, or
 * the rows after it would be lost. */
static bool copy_rows(struct run *r, FILE *old, FILE *copy) {
    struct run_log *l = &r->log;
    char *line = NULL;
    size_t size = 0;
    bool good = true;
    errno = 0;
    while (good && log_row_next(old, &line, &size)) {
        if (!kept(r, line)) continue;
        good = fputs(line, copy) >= 0;
        if (r->first_step == r->stop)
            log_recall(l, line);
        else
            log_recall_since(&l->totals.since_evaluation, line);
        log_recall_start(&l->start, line);
        l->evaluated |= log_row_is(line, "eval") && log_row_step(line) == (long long)r->first_step;
    }
    mem_free(line);
    return good && !ferror(old) && feof(old) && fflush(copy) == 0 && fsync(fileno(copy)) == 0;
}

/* Where the rows wait that are kept. */
static void name_kept(const struct run_log *l, char path[1040]) {
    snprintf(path, 1040, "%s.tmp", l->path);
}

void log_drop_kept(struct run_log *l) {
    char path[1040];
    name_kept(l, path);
    if (l->kept) unlink(path);
    l->kept = false;
}

static bool cannot_rewrite(const struct run_log *l, int reason, struct err *e) {
    return err_with(e, err_of_errno(reason), "cannot rewrite %s: %s", l->path, strerror(reason));
}

/* Copies what a resumed run keeps of its log to a new file. */
static bool keep_rows(struct run *r, struct err *e) {
    struct run_log *l = &r->log;
    char temporary[1040];
    name_kept(l, temporary);
    const char *why = NULL;
    FILE *old = file_read(l->path, &why);
    if (!old) return err_with(e, err_of_errno(errno), "cannot read %s: %s; choose another --out", l->path, why);
    FILE *copy = file_create(temporary, &why);
    bool good = copy && copy_rows(r, old, copy);
    int reason = good ? 0 : errno;
    fclose(old);
    if (copy && fclose(copy) != 0 && good) good = false, reason = errno;
    l->kept = copy != NULL;
    if (good) return true;
    log_drop_kept(l);
    return cannot_rewrite(l, reason ? reason : EIO, e);
}

/* Which then takes the old one's place. */
static bool take_kept(struct run *r, struct err *e) {
    struct run_log *l = &r->log;
    char temporary[1040];
    name_kept(l, temporary);
    if (rename(temporary, l->path) != 0) return cannot_rewrite(l, errno, e);
    l->kept = false;
    return directory_sync(r->options.out, e);
}

/* Is there a log? False: that could not be found out. To go on as if there were none would write the old rows twice. */
static bool ask_log(const struct run_log *l, bool *there, struct err *e) {
    *there = access(l->path, F_OK) == 0;
    /* ENOTDIR: who makes the directory says why it cannot be made */
    return *there || errno == ENOENT || errno == ENOTDIR ||
           err_with(e, err_of_errno(errno), "cannot read %s: %s; choose another --out", l->path, strerror(errno));
}

bool log_check(struct run *r, struct err *e) {
    struct run_log *l = &r->log;
    const char *out = r->options.out;
    if (snprintf(l->path, sizeof l->path, "%s/run.jsonl", out) >= (int)sizeof l->path)
        return err_set(e, "--out: the name of the directory is too long");
    bool there;
    if (!ask_log(l, &there, e)) return false;
    return !there || access(l->path, W_OK) == 0 ||
           err_with(e, err_of_errno(errno), "cannot write %s: %s; choose another --out", l->path, strerror(errno));
}

static bool open_file(struct run_log *l, const char *path, struct err *e) {
    const char *why;
    struct stat info;
    l->file = file_append(path, &why);
    if (!l->file) return err_with(e, err_of_errno(errno), "cannot write %s: %s; choose another --out", l->path, why);
    if (fstat(fileno(l->file), &info) != 0) return err_system(e, "cannot read %s: %s", l->path, strerror(errno));
    l->bytes = (int64_t)info.st_size; /* rows that cannot be written are cut off from here on */
    return true;
}

bool log_prepare_file(struct run *r, struct err *e) {
    struct run_log *l = &r->log;
    struct stat info;
    bool there;
    if (!log_check(r, e) || !ask_log(l, &there, e)) return false;
    l->made = !there || (stat(l->path, &info) == 0 && info.st_size == 0); /* by a start that was killed */
    if (l->made) return open_file(l, l->path, e);
    if (!r->options.resume[0]) return err_set(e, "%s is there already, of another run; choose another --out", l->path);
    char temporary[1040];
    name_kept(l, temporary);
    return keep_rows(r, e) && open_file(l, temporary, e);
}

bool log_open_file(struct run *r, struct err *e) {
    return !r->log.kept || take_kept(r, e);
}
