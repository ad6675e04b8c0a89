/* checkpoint.c: writing one, see checkpoint.h. */
#include "cli/checkpoint/checkpoint.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "cli/checkpoint/checkpoint_clean.h"
#include "cli/checkpoint/checkpoint_own.h"
#include "cli/checkpoint/file_sync.h"
#include "cli/checkpoint/tally.h"
#include "cli/export/model_layout.h"
#include "cli/observe/watching.h"
#include "cli/train/rounds.h"

static struct position position_of(const struct run *r) {
    const struct scores *start = &r->log.start;
    return (struct position){.run_id = r->job.id,
                             .step = r->step,
                             .ranks = (uint32_t)r->comm->size,
                             .rank = (uint32_t)r->comm->rank,
                             .parameters = r->model.n,
                             .optimiser_states = r->model.optimiser.n_state,
                             .net_states = r->model.net->arena.n_state,
                             .carried = r->model.net->arena.n_carry,
                             .data_checksum = r->data.checksum,
                             .averaged = r->replicas.averaged_at == r->step,
                             .start = {start->test_loss, start->test_accuracy, start->valid_loss}};
}

static bool write_rank(struct run *r, const struct replica *m, const char *dir, struct err *e) {
    char path[CHECKPOINT_PATH_MAX + 32];
    struct position position = position_of(r);
    struct own own;
    snprintf(path, sizeof path, "%s/rank%04d.ckpt", dir, r->comm->rank);
    own_open(r, OWN_ALL, &own);
    memcpy(own_find(&own, "position"), &position, sizeof position);
    own_move(r, &own, m, false);
    if (r->replicas.drifts) own.section[own.count++] = (struct section){"own hashes", &m->hash, sizeof m->hash};
    bool good = container_write(path, own.section, own.count, e);
    own_close(&own);
    return good;
}

enum { MODEL_MAX = 12 }; /* sections of it */

static bool write_model(struct run *r, const struct replica *m, const char *dir, struct err *e) {
    char path[CHECKPOINT_PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/model.ckpt", dir);
    const struct position position = position_of(r);
    const struct tally tally = tally_of(r);
    const struct arena *a = &r->model.net->arena;
    const bool words = r->data.set.vocabulary.bytes > 0;
    const uint32_t vocabulary = words ? vocabulary_crc(&r->data.set.vocabulary) : 0;
    char *options = options_kept(&r->options), *layout = model_layout_text(a, &r->data.set);
    struct section sections[MODEL_MAX] = {{"position", &position, sizeof position},
                                          {"tally", &tally, sizeof tally},
                                          {"options", options, strlen(options) + 1},
                                          {"layout", layout, strlen(layout) + 1},
                                          {"leg", &r->leg, sizeof r->leg},
                                          {"hashes", &m->hash, sizeof m->hash},
                                          {"parameters", m->param, a->n * sizeof *m->param},
                                          {"optimiser", m->moments, r->model.optimiser.n_state * sizeof *m->moments}};
    size_t count = 8;
    const char *name;
    for (size_t i = 0; rounds_saved(r, i, &name); i++)
        sections[count++] = (struct section){name, rounds_saved(r, i, &name), a->n * sizeof(float)};
    if (rounds_saved(r, 0, &name)) sections[count++] = (struct section){"round hash", &m->round, sizeof m->round};
    if (words) sections[count++] = (struct section){"vocabulary", &vocabulary, sizeof vocabulary};
    bool good = container_write(path, sections, count, e);
    mem_free(options);
    mem_free(layout);
    return good;
}

size_t checkpoint_bytes(struct run *r, bool copy) {
    struct own own;
    const size_t alike = (r->model.n + r->model.optimiser.n_state) * sizeof(float);
    const char *name;
    size_t rank = 0, rounds = 0;
    while (rounds_saved(r, rounds, &name)) rounds++;
    const size_t model = r->comm->rank == 0 ? alike + rounds * r->model.n * sizeof(float) : 0;
    own_open(r, OWN_ALL, &own);
    for (size_t i = 0; i < own.count; i++) rank += own.section[i].bytes;
    own_close(&own);
    return rank + (copy ? (device_is_host(r->model.net->arena.device) ? 0 : alike) : model);
}

/* Reports what cleaning up could not remove, but only once, not at each checkpoint. */
static void say_left(struct run *r, const struct err *left) {
    if (!left->text[0] || strcmp(left->text, r->saved.left.text) == 0) return;
    r->saved.left = *left;
    log_say(r, "%s", left->text);
}

void checkpoint_tidy_start(struct run *r) {
    struct err left = {0};
    if (r->comm->rank != 0) return;
    checkpoint_tidy(r->options.out, &left);
    say_left(r, &left);
}

static bool in_the_way(const struct err *left, struct err *e) {
    return err_with(e, err_status(left), "cannot write a checkpoint: %s%s", left->text,
                    err_status(left) == EXIT_USER ? "; move it away" : "");
}

static void make_directory(const char *path, struct err *e) {
    struct err left = {0};
    if (mkdir(path, 0777) == 0) return;
    int reason = errno;
    if (reason == EEXIST) checkpoint_remove(path, &left);
    if (left.text[0]) in_the_way(&left, e);
    err_system(e, "cannot make the directory %s: %s", path, strerror(reason));
}

/* After a new checkpoint is complete: removes the one that it replaces, those that are not kept, and damaged ones that
 * were set aside and have been passed by. */
static void tidy_older(struct run *r, const char *temporary, const char *aside, struct err *left) {
    const char *out = r->options.out;
    const long long step = (long long)r->step;
    checkpoint_remove(temporary, left);
    checkpoint_remove(aside, left);
    checkpoint_prune(out, step + 1, r->options.keep, r->options.keep_every, left);
    checkpoint_tidy_damaged(out, step, left); /* and what that may have left */
}

/* Rank 0: renames the complete directory to its final name. If the name could not be synced to the disk, a power
 * failure may undo the rename: that is reported as an error, and the older checkpoints stay. */
static void put_in_place(struct run *r, const char *temporary, const char *path, struct err *left, struct err *e) {
    const char *out = r->options.out;
    char aside[CHECKPOINT_PATH_MAX + 8];
    snprintf(aside, sizeof aside, "%s.old", path);
    struct err other = {0};
    if (!checkpoint_is_ours(path, &other)) in_the_way(&other, e);
    if (!e->text[0] && directory_sync(temporary, e)) checkpoint_replace(temporary, path, aside, e);
    if (e->text[0])
        checkpoint_remove(temporary, left);
    else if (directory_sync(out, e))
        tidy_older(r, temporary, aside, left);
}

static bool write_all(struct run *r, const struct replica *m, struct err *e) {
    const char *out = r->options.out;
    char path[CHECKPOINT_PATH_MAX], temporary[CHECKPOINT_PATH_MAX + 8];
    struct err left = {0};
    bool first = r->comm->rank == 0;
    checkpoint_name(path, out, (long long)r->step);
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    double begin = clock_now();
    watching_enter(r, ACTIVITY_CHECKPOINT, r->step);
    if (first) {
        checkpoint_tidy(out, &left);
        make_directory(temporary, e);
    }
    if (comm_agree(r->comm, e)) return false;
    if (first) write_model(r, m, temporary, e);
    write_rank(r, m, temporary, e);
    bool failed = comm_agree(r->comm, e);
    if (first && failed) checkpoint_remove(temporary, &left);
    if (failed) return false;
    log_flush(r, &r->trouble); /* the log first: rows before a checkpoint are never written again */
    if (log_is_behind(r)) { /* without these rows there must be no checkpoint: the run resumes from an earlier one and
                               writes them then */
        if (first) checkpoint_remove(temporary, &left);
        return true;
    }
    if (first) {
        put_in_place(r, temporary, path, &left, e);
        say_left(r, &left);
    }
    if (comm_agree(r->comm, e)) return false;
    r->saved.last = r->step;
    watching_saved(r);
    log_checkpoint(r, path, clock_now() - begin);
    log_flush(r, &r->trouble);
    return true;
}

/* Replicas that differ must not become what a run goes on from. */
bool checkpoint_write(struct run *r, struct err *e) {
    struct replica m;
    char then[96] = "; no checkpoint of it is written";
    size_t used = strlen(then);
    if (r->saved.last != SIZE_MAX)
        snprintf(then + used, sizeof then - used, ", the one of step %zu is kept", r->saved.last);
    replica_open(&m, r);
    replicas_compare(r, &m, then);
    bool good = write_all(r, &m, e);
    replica_close(&m);
    return good;
}
