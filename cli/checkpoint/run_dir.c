/* run_dir.c: see run_dir.h. */
#include "cli/checkpoint/run_dir.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/mem.h"
#include "cli/checkpoint/checkpoint_clean.h"
#include "cli/checkpoint/file_sync.h"
#include "cli/log/log_rows.h"
#include "cli/options/shell_quote.h"
#include "cli/train/run.h"

enum { DIR_MAX = 1000 };

/* -- what is there ------------------------------------------------------------------------------------------------- */

/* What a directory says of the run in it. */
struct found {
    bool log, checkpoint, more; /* run.jsonl; a checkpoint; anything but these and what follows */
    bool lock;                  /* of a process that runs, or was killed; without a log before its first row */
    struct err unread;          /* a later checkpoint that may be whole and cannot be read now */
    bool other;                 /* a log or a checkpoint of another run than this one */
    bool same;                  /* one of this */
    uint64_t run_id;            /* of the other one */
};

static void note_run(struct found *f, uint64_t run_id, uint64_t mine) {
    if (run_id == mine) f->same = true;
    if (run_id == mine || f->other) return;
    f->other = true;
    f->run_id = run_id;
}

static bool checkpoint_run(const char *path, uint64_t *run_id, struct err *why) {
    struct container c;
    struct position p;
    char *file = mem_printf("%s/model.ckpt", path);
    bool good = container_open(file, &c, why);
    if (good) {
        good = container_get(&c, "position", &p, sizeof p, why);
        container_close(&c);
    }
    if (good) *run_id = p.run_id;
    mem_free(file);
    return good;
}

static void look_at_log(const char *path, uint64_t mine, struct found *f) {
    uint64_t run_id;
    struct stat info;
    /* A link that leads nowhere is refused when the log is made; what cannot be asked may be one. */
    const bool there = access(path, F_OK) == 0 || errno != ENOENT;
    const bool empty = lstat(path, &info) == 0 && S_ISREG(info.st_mode) && info.st_size == 0;
    f->log |= there && !empty;
    f->more |= empty;
    if (log_rows_run(path, &run_id)) note_run(f, run_id, mine);
}

static void look_at_checkpoint(const char *path, const struct checkpoint *from, long long step, struct found *f) {
    uint64_t run_id;
    struct err why = {0};
    f->checkpoint = true;
    if (checkpoint_run(path, &run_id, &why))
        note_run(f, run_id, from ? from->run_id : 0);
    else if (why.intact && from && step > (long long)from->step && !f->unread.text[0])
        f->unread = why;
}

static void look_at(const char *dir, const char *name, const struct checkpoint *from, struct found *f) {
    const long long step = checkpoint_step_of(name);
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) return;
    char *path = mem_printf("%s/%s", dir, name);
    if (strcmp(name, "run.jsonl") == 0)
        look_at_log(path, from ? from->run_id : 0, f);
    else if (step >= 0)
        look_at_checkpoint(path, from, step, f);
    else if (strcmp(name, "lock") == 0)
        f->lock = true;
    else
        f->more = true;
    mem_free(path);
}

/* from: of the run that is looked for; NULL: a new one. */
static bool look(const char *dir, const struct checkpoint *from, struct found *f, struct err *e) {
    *f = (struct found){0};
    if (strlen(dir) > 900) return err_set(e, "--out: the name of the directory is too long");
    DIR *d = opendir(dir);
    if (!d && (errno == ENOENT || errno == ENOTDIR)) return true; /* who makes it says why it cannot be made */
    if (!d)
        return err_with(e, err_of_errno(errno), "cannot read --out %s: %s; choose another one", dir, strerror(errno));
    errno = 0;
    for (struct dirent *entry; (entry = readdir(d)); errno = 0) look_at(dir, entry->d_name, from, f);
    const int reason = errno;
    closedir(d);
    return !reason || err_system(e, "cannot read --out %s: %s; choose another one", dir, strerror(reason));
}

static bool same_directory(const char *a, const char *b) {
    struct stat one, two;
    return stat(a, &one) == 0 && stat(b, &two) == 0 && one.st_dev == two.st_dev && one.st_ino == two.st_ino;
}

/* -- may this run write there? ------------------------------------------------------------------------------------- */

bool run_dir_is_free(const char *out, struct err *e) {
    struct run_lock l;
    struct err note = {0};
    if (access(out, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR)) return true;
    if (!run_lock_take(&l, out, RUN_LOCK_READ, &note, e)) return false;
    run_lock_release(&l);
    return true;
}

/* held: by this process. */
static bool fits_new(const char *out, bool held, struct err *e) {
    struct found f;
    if (!look(out, NULL, &f, e)) return false;
    if (!f.log && !f.checkpoint) return true;
    if (!held && !run_dir_is_free(out, e)) return false;
    char *quoted = shell_quote(out);
    if (f.checkpoint)
        err_set(e, "%s already holds a run; choose another --out, or continue it with --resume %s", out, quoted);
    else
        err_set(e,
                "%s holds the log of a run that ended before its first checkpoint; choose another --out, or remove it: "
                "rm -r %s",
                out, quoted);
    mem_free(quoted);
    return false;
}

static bool fits_resumed(const char *out, const struct checkpoint *from, bool held, struct err *e) {
    struct found f;
    if (!look(out, from, &f, e)) return false;
    const bool itself = same_directory(out, from->run_dir);
    if (f.other && itself)
        return err_set(e, "%s holds files of two runs, %016llx and %016llx; move those of one of them away", out,
                       (unsigned long long)f.run_id, (unsigned long long)from->run_id);
    if (f.other)
        return err_set(e, "--out %s holds another run, %016llx, not %016llx, which is resumed; choose another --out",
                       out, (unsigned long long)f.run_id, (unsigned long long)from->run_id);
    if (f.unread.text[0])
        return err_with(e, err_status(&f.unread),
                        "%.700s; going on from step %llu would remove it: choose another --out, or move it away",
                        f.unread.text, (unsigned long long)from->step);
    if (!itself && !held && !run_dir_is_free(out, e)) return false;
    if (itself || f.same || !(f.log || f.checkpoint || (f.more && !f.lock))) return true;
    return err_set(e, "--out %s is not empty and holds nothing of the run that is resumed; choose another --out", out);
}

static bool fits(struct run *r, const struct checkpoint *from, struct err *e) {
    const bool held = r->job.dir.lock.open;
    return from ? fits_resumed(r->options.out, from, held, e) : fits_new(r->options.out, held, e);
}

bool run_dir_fits(struct run *r, const struct checkpoint *from, struct err *e) {
    if (r->comm->rank == 0 && r->options.out[0]) fits(r, from, e);
    return !comm_agree(r->comm, e);
}

/* -- the lock ------------------------------------------------------------------------------------------------------ */

static bool lock(struct run_lock *l, const char *dir, enum run_lock_use use, struct err *e) {
    struct err note = {0};
    if (!run_lock_take(l, dir, use, &note, e)) return false;
    if (note.text[0]) fprintf(stderr, "sparsetrain: %s\n", note.text);
    return true;
}

bool run_dir_reserve(struct run *r, const struct checkpoint *from, struct err *e) {
    /* The other ranks do not look: a node that has seen that there is no --out may not see for a while that there is.
     */
    uint64_t elsewhere = r->comm->rank == 0 && !same_directory(r->options.out, from->run_dir);
    comm_bcast(r->comm, 0, &elsewhere, sizeof elsewhere);
    r->job.dir.elsewhere = elsewhere != 0;
    /* A run that is complete can say so where nothing may be written; another finds that out in run_dir_enter. */
    if (r->comm->rank == 0 && !elsewhere && !r->options.dry_run && access(r->options.out, W_OK) == 0)
        lock(&r->job.dir.lock, r->options.out, RUN_LOCK_WRITE, e);
    else if (r->comm->rank == 0)
        lock(&r->job.dir.source, from->run_dir, RUN_LOCK_READ, e);
    return !comm_agree(r->comm, e);
}

void run_dir_close_source(struct run *r) {
    run_lock_release(&r->job.dir.source);
}

/* Makes out and its parents. */
static bool make_directories(const char *out, int *made, struct err *e) {
    const int reason = file_make_folders(out, made);
    return !reason ||
           err_with(e, err_of_errno(reason), "cannot make the directory --out %s: %s", out, strerror(reason));
}

/* By any rank; on a network file system what rank 0 has just made may take a moment. */
static bool is_writable(const char *out) {
    const struct timespec moment = {.tv_nsec = 100 * 1000 * 1000};
    for (int i = 0; i < 30; i++) {
        if (access(out, W_OK | X_OK) == 0) return true;
        if (errno != ENOENT && errno != ESTALE) return false;
        nanosleep(&moment, NULL);
    }
    return false;
}

bool run_dir_enter(struct run *r, const struct checkpoint *from, struct err *e) {
    struct run_dir *d = &r->job.dir;
    const char *out = r->options.out;
    if (r->comm->rank == 0 && out[0] && !d->lock.open && fits(r, from, e) && make_directories(out, &d->made, e) &&
        lock(&d->lock, out, RUN_LOCK_WRITE, e))
        fits(r, from, e); /* somebody may have been there in between */
    if (comm_agree(r->comm, e)) return false;
    if (out[0] && !is_writable(out))
        err_with(e, err_of_errno(errno), "rank %d cannot write to --out %s: %s; name a directory that all ranks see",
                 r->comm->rank, out, strerror(errno));
    return !comm_agree(r->comm, e);
}

/* On the disk, too: a power failure must not bring them back once the log has lost their rows. */
static void turn_back(struct run *r, const struct checkpoint *from, struct err *e) {
    const char *out = r->options.out;
    const long long step = (long long)from->step;
    struct err left = {0};
    if (from->passed > 0 && !r->job.dir.elsewhere)
        checkpoint_set_aside(out, step, e);
    else
        checkpoint_discard(out, step, &left);
    if (left.text[0]) err_with(e, err_status(&left), "cannot go on from step %lld: %s; move it away", step, left.text);
    if (!e->text[0]) directory_sync(out, e);
}

bool run_dir_turn_back(struct run *r, const struct checkpoint *from, struct err *e) {
    if (r->comm->rank == 0 && from) turn_back(r, from, e);
    return !comm_agree(r->comm, e);
}

/* What was made here goes, the directories from the last one up. The vocabulary while the directory is still locked. */
void run_dir_leave(struct run *r, bool abandon) {
    struct run_dir *d = &r->job.dir;
    char path[DIR_MAX];
    snprintf(path, sizeof path, "%s/vocabulary.txt", r->options.out);
    if (abandon && d->vocabulary) unlink(path);
    run_lock_release(&d->source);
    run_lock_release(&d->lock);
    if (abandon && d->made > 0) file_remove_folders(r->options.out, d->made);
    d->made = 0;
    d->vocabulary = false;
}

/* -- is there anything left to do? --------------------------------------------------------------------------------- */

/* Where this target, if there is one, ended the run at the checkpoint, rank 0 notes that in r->target. */
static bool log_ends(struct run *r, const struct checkpoint *from, const char *dir) {
    char *path = mem_printf("%s/run.jsonl", dir), mark[TARGET_MARK_MAX];
    const bool stops = from->step == r->stop;
    target_mark(r, mark);
    r->target.reached = mark[0] && log_rows_end(path, from->step, mark);
    r->target.step = (size_t)from->step;
    bool ends = r->target.reached ||
                (stops && log_rows_end(path, r->stop, run_is_prefix(r) ? "\"prefix\":true" : "\"completed\":true"));
    mem_free(path);
    return ends;
}

/* Where the run that is resumed is done, nothing is done in --out. */
static bool is_done(struct run *r, const struct checkpoint *from) {
    struct options *o = &r->options;
    if (log_ends(r, from, o->out)) return true;
    if (!r->job.dir.elsewhere || strlen(from->run_dir) >= sizeof o->out || !log_ends(r, from, from->run_dir))
        return false;
    strcpy(o->out, from->run_dir);
    return true;
}

bool run_dir_is_done(struct run *r, const struct checkpoint *from) {
    uint64_t done = r->comm->rank == 0 && is_done(r, from);
    if (done && r->job.dir.lock.open) { /* a kill in its last moment may have left a checkpoint half removed */
        struct err left = {0};
        checkpoint_tidy(r->options.out, &left);
    }
    comm_bcast(r->comm, 0, &done, sizeof done);
    return done != 0;
}
