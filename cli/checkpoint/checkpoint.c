/* checkpoint.c: see checkpoint.h. */
#include "cli/checkpoint/checkpoint.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "cli/checkpoint/checkpoint_check.h"
#include "cli/checkpoint/checkpoint_clean.h"
#include "cli/checkpoint/file_sync.h"
#include "cli/checkpoint/tally.h"
#include "cli/export/model_layout.h"
#include "cli/train/replicas.h"
#include "cli/train/watching.h"

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

/* -- writing --------------------------------------------------------------------------------------------------- */

/* The state of the exchange and its selectors, end to end. */
static size_t exchange_state_bytes(struct exchange *x) {
    size_t total = 0, bytes;
    void *memory;
    for (size_t i = 0; exchange_saved(x, i, &memory, &bytes); i++) total += bytes;
    return total;
}

static void move_exchange_state(struct exchange *x, unsigned char *state, bool load) {
    size_t bytes;
    void *memory;
    for (size_t i = 0; exchange_saved(x, i, &memory, &bytes); state += bytes, i++)
        if (bytes > 0) memcpy(load ? memory : state, load ? state : memory, bytes);
}

enum { OWN_MAX = 10 };

/* What each rank has of its own: the state of its net and its exchange, those of the streams it reads, its residual and
 * the velocity before the exchange; where the replicas drift apart also its parameters and optimiser. All in fresh host
 * memory, as sections. */
struct own {
    struct section section[OWN_MAX];
    void *memory[OWN_MAX];
    const struct device_ops *device[OWN_MAX]; /* of a section that is an array of a device, else NULL */
    float *array[OWN_MAX];
    size_t count;
};

static void own_add(struct own *own, const char *name, size_t bytes) {
    void *memory = mem_alloc(bytes, 1, "a copy for the checkpoint");
    own->section[own->count] = (struct section){name, memory, bytes};
    own->memory[own->count++] = memory;
}

static void own_add_array(struct own *own, const char *name, const struct device_ops *device, float *array, size_t n) {
    own->device[own->count] = device;
    own->array[own->count] = array;
    own_add(own, name, n * sizeof *array);
}

/* Room for all that this run has. */
static void own_open(struct run *r, struct own *own) {
    struct arena *a = &r->model.net->arena;
    struct optimiser *o = &r->model.optimiser;
    *own = (struct own){0};
    own_add(own, "position", sizeof(struct position));
    own_add_array(own, "net state", a->device, a->state, a->n_state);
    if (a->n_carry > 0) own_add_array(own, "streams", a->device, a->carry, a->n_carry);
    own_add(own, "exchange", exchange_state_bytes(&r->path.reducer.exchange));
    if (r->options.momentum_correction)
        own_add_array(own, "velocity", a->device, r->path.correction.velocity.acc, r->model.n);
    if (r->path.reducer.keeps) own_add(own, "residual", r->model.n * sizeof(float));
    if (r->replicas.drifts) own_add_array(own, "own parameters", a->device, a->param, r->model.n);
    if (r->replicas.drifts) own_add_array(own, "own optimiser", o->device, o->state, o->n_state);
}

static void own_close(struct own *own) {
    for (size_t i = 0; i < own->count; i++) mem_free(own->memory[i]);
}

static void *own_find(const struct own *own, const char *name) {
    for (size_t i = 0; i < own->count; i++)
        if (strcmp(own->section[i].name, name) == 0) return own->memory[i];
    return NULL;
}

/* From the run to the sections, or (load) back; all but the position. m: what of it is in host memory already. */
static void own_move(struct run *r, struct own *own, const struct replica *m, bool load) {
    void *residual = own_find(own, "residual");
    for (size_t i = 0; i < own->count; i++) {
        size_t bytes = own->section[i].bytes;
        if (own->device[i] && load) own->device[i]->to_device(own->array[i], own->memory[i], bytes);
        if (load || !own->device[i]) continue;
        const float *there = own->array[i] == r->model.net->arena.param  ? m->param
                             : own->array[i] == r->model.optimiser.state ? m->moments
                                                                         : NULL;
        if (there && bytes > 0)
            memcpy(own->memory[i], there, bytes);
        else
            own->device[i]->to_host(own->memory[i], own->array[i], bytes);
    }
    move_exchange_state(&r->path.reducer.exchange, own_find(own, "exchange"), load);
    if (residual && load) r->path.reducer.store.ops->write(&r->path.reducer.store, 0, r->model.n, residual);
    if (residual && !load) r->path.reducer.store.ops->read(&r->path.reducer.store, 0, r->model.n, residual);
}

static bool write_rank(struct run *r, const struct replica *m, const char *dir, struct err *e) {
    char path[CHECKPOINT_PATH_MAX + 32];
    struct position position = position_of(r);
    struct own own;
    snprintf(path, sizeof path, "%s/rank%04d.ckpt", dir, r->comm->rank);
    own_open(r, &own);
    memcpy(own_find(&own, "position"), &position, sizeof position);
    own_move(r, &own, m, false);
    if (r->replicas.drifts) own.section[own.count++] = (struct section){"own hashes", &m->hash, sizeof m->hash};
    bool good = container_write(path, own.section, own.count, e);
    own_close(&own);
    return good;
}

static bool write_model(const struct run *r, const struct replica *m, const char *dir, struct err *e) {
    char path[CHECKPOINT_PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/model.ckpt", dir);
    const struct position position = position_of(r);
    const struct tally tally = tally_of(r);
    const struct arena *a = &r->model.net->arena;
    char *options = options_kept(&r->options), *layout = model_layout_text(a, &r->data.set);
    struct section sections[] = {{"position", &position, sizeof position},
                                 {"tally", &tally, sizeof tally},
                                 {"options", options, strlen(options) + 1},
                                 {"layout", layout, strlen(layout) + 1},
                                 {"hashes", &m->hash, sizeof m->hash},
                                 {"parameters", m->param, a->n * sizeof *m->param},
                                 {"optimiser", m->moments, r->model.optimiser.n_state * sizeof *m->moments}};
    bool good = container_write(path, sections, sizeof sections / sizeof *sections, e);
    mem_free(options);
    mem_free(layout);
    return good;
}

size_t checkpoint_bytes(struct run *r, bool copy) {
    struct own own;
    const size_t alike = (r->model.n + r->model.optimiser.n_state) * sizeof(float),
                 model = r->comm->rank == 0 ? alike : 0;
    size_t rank = 0;
    own_open(r, &own);
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

static void make_directory(const char *path, struct err *e) {
    struct err left = {0};
    if (mkdir(path, 0777) == 0) return;
    int reason = errno;
    if (reason == EEXIST) checkpoint_remove(path, &left);
    if (left.text[0]) err_set(e, "cannot write a checkpoint: %s; move it away", left.text);
    err_system(e, "cannot make the directory %s: %s", path, strerror(reason));
}

/* After a new checkpoint is complete: removes the one that it replaces, and damaged ones that the run skipped when it
 * resumed, which would otherwise count among those to keep. */
static void tidy_older(struct run *r, const char *temporary, const char *aside, struct err *left) {
    const char *out = r->options.out;
    const long long step = (long long)r->step, behind = r->saved.damaged + 1;
    checkpoint_remove(temporary, left);
    checkpoint_remove(aside, left);
    if (r->saved.damaged > 0) checkpoint_discard(out, (long long)r->saved.last, step < behind ? step : behind, left);
    checkpoint_prune(out, step + 1, r->options.keep, r->options.keep_every, left);
    checkpoint_tidy(out, left); /* what that may have left */
}

/* Rank 0: renames the complete directory to its final name. If the name could not be synced to the disk, a power
 * failure may undo the rename: that is reported as an error, and the older checkpoints stay. */
static void put_in_place(struct run *r, const char *temporary, const char *path, struct err *left, struct err *e) {
    const char *out = r->options.out;
    char aside[CHECKPOINT_PATH_MAX + 8];
    snprintf(aside, sizeof aside, "%s.old", path);
    if (directory_sync(temporary, e)) checkpoint_replace(temporary, path, aside, e);
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

/* -- reading --------------------------------------------------------------------------------------------------- */

bool checkpoint_is_of(const struct checkpoint *from, const struct net_size *size, struct err *e) {
    if (from->parameters != size->n || from->net_states != size->n_state)
        return err_set(e, "cannot resume: the checkpoint %s/model.ckpt has %llu parameters, this model %zu", from->path,
                       (unsigned long long)from->parameters, size->n);
    return from->carried == size->n_carry ||
           err_set(e, "cannot resume: the checkpoint %s/model.ckpt holds states of other streams than this run reads",
                   from->path);
}

static bool fits(const struct run *r, const struct checkpoint *from, const struct position *p, struct err *e) {
    const struct arena *a = &r->model.net->arena;
    if (!checkpoint_is_of(from, &(struct net_size){a->n, a->n_state, a->n_carry, 0}, e)) return false;
    if (p->optimiser_states != r->model.optimiser.n_state)
        return err_set(e, "cannot resume: the checkpoint %s/model.ckpt has %llu states of an optimiser, this one %zu",
                       from->path, (unsigned long long)p->optimiser_states, r->model.optimiser.n_state);
    if (p->data_checksum != r->data.checksum)
        return err_set(e, "cannot resume: the dataset differs from the one of the checkpoint (checksum %08x, now %08x)",
                       p->data_checksum, r->data.checksum);
    return true;
}

/* The hashes that a file has of what was written to it; the format had none before version 5. */
struct written {
    bool known;
    struct replica_hash hash;
};

static bool find_hashes(const struct container *c, const char *section, struct written *w, struct err *e) {
    size_t bytes;
    w->known = container_has(c, section, &bytes);
    return !w->known || container_get(c, section, &w->hash, sizeof w->hash, e);
}

/* A file whose own numbers are not those that its hashes are of was made so, or spoilt in the memory that wrote it. */
static bool holds(const struct run *r, const struct written *w, const float *param, const float *moments,
                  const char *path, struct err *e) {
    const struct replica_hash is = replica_hash_of(param, r->model.n, moments, r->model.optimiser.n_state);
    if (!w->known || (is.parameters == w->hash.parameters && is.optimiser == w->hash.optimiser)) return true;
    return err_set(e, "the checkpoint %s is damaged: its %s are not those that its hashes are of", path,
                   is.parameters == w->hash.parameters ? "optimiser's states" : "parameters");
}

/* Rank 0: parameters, optimiser, position, tally; they reach the others by broadcast, so all start from the same bits.
 */
static bool load_model(struct run *r, const struct checkpoint *from, float *param, float *moments, struct position *p,
                       struct tally *t, struct written *w, uint64_t *unfit, struct err *e) {
    struct container c;
    if (!checkpoint_read(from, "model.ckpt", &c, e)) return false;
    bool good = container_get(&c, "position", p, sizeof *p, e) && checkpoint_check_position(p, c.path, from->path, e);
    *unfit = good && !fits(r, from, p, e);
    good = good && !*unfit && container_get(&c, "parameters", param, r->model.n * sizeof *param, e) &&
           container_get(&c, "optimiser", moments, r->model.optimiser.n_state * sizeof *moments, e) &&
           checkpoint_check_finite(param, r->model.n, "parameters", c.path, e) &&
           checkpoint_check_moments(moments, r->model.n, r->model.optimiser.ops, "optimiser", c.path, e) &&
           tally_read(&c, t, e) && find_hashes(&c, "hashes", w, e) && holds(r, w, param, moments, c.path, e);
    container_close(&c);
    return good;
}

/* All numbers are such as a run leaves; what the exchange has is looked at once it is in its place. */
static bool own_check(const struct run *r, const struct own *own, const char *path, struct err *e) {
    const struct arena *a = &r->model.net->arena;
    for (size_t i = 0; i < own->count; i++) {
        const struct section *s = &own->section[i];
        const bool numbers = own->device[i] || strcmp(s->name, "residual") == 0;
        if (numbers && !checkpoint_check_finite(own->memory[i], s->bytes / sizeof(float), s->name, path, e))
            return false;
    }
    const float *state = own_find(own, "net state"), *moments = own_find(own, "own optimiser");
    return checkpoint_check_statistics(state, a->n_state, a->state_slice, a->state_slices, path, e) &&
           (!moments ||
            checkpoint_check_moments(moments, r->model.n, r->model.optimiser.ops, "own optimiser", path, e));
}

static bool check_exchange(const struct run *r, const char *path, struct err *e) {
    struct err why = {0};
    uint64_t alike = 0;
    return exchange_check_own(&r->path.reducer.exchange, &alike, &why) ||
           err_set(e, "the checkpoint %s is damaged: its section exchange: %.200s", path, why.text);
}

/* Each rank has checked its own state; this checks that the ranks' states fit together. Collective. */
static bool check_alike(struct run *r, const struct checkpoint *from, struct err *e) {
    struct err why = {0};
    return exchange_check(&r->path.reducer.exchange, &why) ||
           err_set(e, "the checkpoint %s is damaged: %.200s", from->path, why.text);
}

/* w: of all ranks, where replicas are the same, else of this one. */
static bool load_rank(struct run *r, const struct checkpoint *from, const struct position *model, struct written *w,
                      struct err *e) {
    char name[32];
    struct container c;
    struct own own;
    snprintf(name, sizeof name, "rank%04d.ckpt", r->comm->rank);
    if (!checkpoint_read(from, name, &c, e)) return false;
    own_open(r, &own);
    bool good = true;
    for (size_t i = 0; i < own.count && good; i++)
        good = container_get(&c, own.section[i].name, own.memory[i], own.section[i].bytes, e);
    const struct position *p = own_find(&own, "position");
    good = good && checkpoint_check_beside(p, model, r->comm->rank, c.path, "resume from", e) &&
           own_check(r, &own, c.path, e);
    if (good && r->replicas.drifts)
        good = find_hashes(&c, "own hashes", w, e) &&
               holds(r, w, own_find(&own, "own parameters"), own_find(&own, "own optimiser"), c.path, e);
    if (good) own_move(r, &own, NULL, true);
    good = good && (!w->known || replica_is(r, &w->hash, from->path, e));
    good = good && check_exchange(r, c.path, e);
    own_close(&own);
    container_close(&c);
    return good;
}

bool checkpoint_load(struct run *r, const struct checkpoint *from, bool *damaged, struct err *e) {
    struct position p = {0};
    struct tally tally = {.evaluated = 0};
    uint64_t unfit = 0;
    struct written written = {0};
    const struct arena *a = &r->model.net->arena;
    float *param = mem_alloc(r->model.n, sizeof *param, "the parameters");
    float *moments = mem_alloc(r->model.optimiser.n_state, sizeof *moments, "the optimiser's state");
    if (r->comm->rank == 0) load_model(r, from, param, moments, &p, &tally, &written, &unfit, e);
    bool failed = comm_agree(r->comm, e);
    comm_bcast(r->comm, 0, &unfit, sizeof unfit);
    *damaged = !unfit;
    if (!failed) {
        comm_bcast(r->comm, 0, &p, sizeof p);
        comm_bcast(r->comm, 0, &tally, sizeof tally);
        comm_bcast(r->comm, 0, &written, sizeof written);
        comm_bcast(r->comm, 0, param, r->model.n * sizeof *param);
        comm_bcast(r->comm, 0, moments, r->model.optimiser.n_state * sizeof *moments);
        a->device->to_device(a->param, param, r->model.n * sizeof *param);
        r->model.optimiser.device->to_device(r->model.optimiser.state, moments,
                                             r->model.optimiser.n_state * sizeof *moments);
        load_rank(r, from, &p, &written, e);
        failed = comm_agree(r->comm, e) || !check_alike(r, from, e);
    }
    mem_free(param);
    mem_free(moments);
    r->job.id = p.run_id;
    r->step = r->first_step = (size_t)p.step;
    r->saved.last = r->job.dir.elsewhere ? SIZE_MAX : r->step; /* in --out */
    r->replicas.averaged_at = p.averaged ? r->step : SIZE_MAX;
    r->log.start = (struct scores){p.start.test_loss, p.start.test_accuracy, p.start.valid_loss, NAN, NAN, NAN};
    r->saved.damaged = r->job.dir.elsewhere ? 0 : from->damaged;
    tally_put(r, &tally);
    optimiser_set_steps(&r->model.optimiser, p.step);
    return !failed;
}
