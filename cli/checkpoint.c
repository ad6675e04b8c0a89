/* checkpoint.c: see checkpoint.h. */
#include "cli/checkpoint.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "cli/model_layout.h"

static struct position position_of(const struct run *r) {
    return (struct position){.run_id = r->id,
                             .step = r->step,
                             .ranks = (uint32_t)r->comm->size,
                             .rank = (uint32_t)r->comm->rank,
                             .parameters = r->n,
                             .optimiser_states = r->optimiser.n_state,
                             .net_states = r->net->arena.n_state,
                             .carried = r->net->arena.n_carry,
                             .data_checksum = r->data_checksum,
                             .averaged = r->averaged_at == r->step,
                             .start = r->log.start};
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

enum { OWN_MAX = 8 };

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
    struct arena *a = &r->net->arena;
    struct optimiser *o = &r->optimiser;
    *own = (struct own){0};
    own_add(own, "position", sizeof(struct position));
    own_add_array(own, "net state", a->device, a->state, a->n_state);
    if (a->n_carry > 0) own_add_array(own, "streams", a->device, a->carry, a->n_carry);
    own_add(own, "exchange", exchange_state_bytes(&r->exchange));
    if (r->options.momentum_correction) own_add_array(own, "velocity", a->device, r->correction.velocity.acc, r->n);
    if (r->sparse) own_add(own, "residual", r->n * sizeof(float));
    if (r->drifts) own_add_array(own, "own parameters", a->device, a->param, r->n);
    if (r->drifts) own_add_array(own, "own optimiser", o->device, o->state, o->n_state);
}

static void own_close(struct own *own) {
    for (size_t i = 0; i < own->count; i++) mem_free(own->memory[i]);
}

static void *own_find(const struct own *own, const char *name) {
    for (size_t i = 0; i < own->count; i++)
        if (strcmp(own->section[i].name, name) == 0) return own->memory[i];
    return NULL;
}

/* From the run to the sections, or (load) back; all but the position. */
static void own_move(struct run *r, struct own *own, bool load) {
    void *residual = own_find(own, "residual");
    for (size_t i = 0; i < own->count; i++) {
        size_t bytes = own->section[i].bytes;
        if (own->device[i] && load) own->device[i]->to_device(own->array[i], own->memory[i], bytes);
        if (own->device[i] && !load) own->device[i]->to_host(own->memory[i], own->array[i], bytes);
    }
    move_exchange_state(&r->exchange, own_find(own, "exchange"), load);
    if (residual && load) r->store.ops->write(&r->store, 0, r->n, residual);
    if (residual && !load) r->store.ops->read(&r->store, 0, r->n, residual);
}

static bool write_rank(struct run *r, const char *dir, struct err *e) {
    char path[CHECKPOINT_PATH_MAX + 32];
    struct position position = position_of(r);
    struct own own;
    snprintf(path, sizeof path, "%s/rank%04d.ckpt", dir, r->comm->rank);
    own_open(r, &own);
    memcpy(own_find(&own, "position"), &position, sizeof position);
    own_move(r, &own, false);
    bool good = container_write(path, own.section, own.count, e);
    own_close(&own);
    return good;
}

static bool write_model(const struct run *r, const char *dir, struct err *e) {
    char path[CHECKPOINT_PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/model.ckpt", dir);
    struct position position = position_of(r);
    const struct arena *a = &r->net->arena;
    float *param = device_copy_to_host(a->device, a->param, a->n, "a copy for the checkpoint");
    float *moments =
        device_copy_to_host(r->optimiser.device, r->optimiser.state, r->optimiser.n_state, "a copy for the checkpoint");
    char *options = options_text(&r->options, RULE_RUN), *layout = model_layout_text(a, &r->data);
    struct section sections[] = {{"position", &position, sizeof position},
                                 {"options", options, strlen(options) + 1},
                                 {"layout", layout, strlen(layout) + 1},
                                 {"parameters", param, a->n * sizeof *param},
                                 {"optimiser", moments, r->optimiser.n_state * sizeof *moments}};
    bool good = container_write(path, sections, sizeof sections / sizeof *sections, e);
    mem_free(param);
    mem_free(moments);
    mem_free(options);
    mem_free(layout);
    return good;
}

size_t checkpoint_bytes(struct run *r, bool copy) {
    struct own own;
    size_t rank = 0, model = r->comm->rank == 0 ? (r->n + r->optimiser.n_state) * sizeof(float) : 0;
    own_open(r, &own);
    for (size_t i = 0; i < own.count; i++) rank += own.section[i].bytes;
    own_close(&own);
    return copy ? (model > rank ? model : rank) : model + rank;
}

bool checkpoint_write(struct run *r, struct err *e) {
    const char *out = r->options.out;
    char path[CHECKPOINT_PATH_MAX], temporary[CHECKPOINT_PATH_MAX + 8];
    bool first = r->comm->rank == 0;
    checkpoint_name(path, out, (long long)r->step);
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    double begin = clock_now();
    if (first) {
        checkpoint_tidy(out);
        if (mkdir(temporary, 0777) != 0) err_set(e, "cannot make the directory %s: %s", temporary, strerror(errno));
    }
    if (comm_agree(r->comm, e)) return false;
    if (first) write_model(r, temporary, e);
    write_rank(r, temporary, e);
    bool failed = comm_agree(r->comm, e);
    if (first && failed) checkpoint_remove(temporary);
    if (failed) return false;
    if (first) {
        checkpoint_sync(temporary);
        if (rename(temporary, path) != 0) err_set(e, "cannot rename %s: %s", temporary, strerror(errno));
        checkpoint_sync(out);
        if (!e->text[0]) checkpoint_prune(out, r->options.keep, r->options.keep_every);
    }
    if (comm_agree(r->comm, e)) return false;
    r->checkpoint_last = r->step;
    log_checkpoint(r, path, clock_now() - begin);
    return log_flush(r, e);
}

/* -- reading --------------------------------------------------------------------------------------------------- */

bool checkpoint_find(struct comm *c, const char *dir, struct checkpoint *found, struct err *e) {
    struct container file;
    uint64_t bytes = 0;
    memset(found, 0, sizeof *found);
    found->use = &checkpoint_resume;
    if (c->rank == 0 && checkpoint_locate(&checkpoint_resume, dir, found, e) &&
        checkpoint_read(found, "model.ckpt", &file, e)) {
        size_t size;
        const char *text = container_find(&file, "options", &size);
        if (text && size && text[size - 1] == '\0') {
            found->options = mem_printf("%s", text);
            bytes = size;
        } else {
            err_set(e, "the checkpoint %s has no options", file.path);
        }
        container_close(&file);
    }
    if (comm_agree(c, e)) return false;
    comm_bcast(c, 0, &bytes, sizeof bytes);
    comm_bcast(c, 0, found->path, sizeof found->path);
    comm_bcast(c, 0, found->run_dir, sizeof found->run_dir);
    if (c->rank != 0) found->options = mem_alloc(bytes, 1, "the options of the checkpoint");
    comm_bcast(c, 0, found->options, bytes);
    return true;
}

void checkpoint_close(struct checkpoint *found) {
    mem_free(found->options);
    found->options = NULL;
}

static bool fits(const struct run *r, const struct position *p, const struct container *c, struct err *e) {
    if (p->ranks != (uint32_t)r->comm->size)
        return err_set(e,
                       "cannot resume: the checkpoint %s is of %u rank%s, this run has %d; start it with mpirun -np %u",
                       c->path, p->ranks, p->ranks > 1 ? "s" : "", r->comm->size, p->ranks);
    if (p->carried != r->net->arena.n_carry)
        return err_set(e, "cannot resume: the checkpoint %s holds states of other streams than this run reads",
                       c->path);
    if (p->parameters != r->n || p->optimiser_states != r->optimiser.n_state || p->net_states != r->net->arena.n_state)
        return err_set(e, "cannot resume: the checkpoint %s has %llu parameters, this model %zu", c->path,
                       (unsigned long long)p->parameters, r->n);
    if (p->data_checksum != r->data_checksum)
        return err_set(e, "cannot resume: the dataset differs from the one of the checkpoint (checksum %08x, now %08x)",
                       p->data_checksum, r->data_checksum);
    return true;
}

/* Rank 0: parameters, optimiser, position; they reach the others by broadcast, so all start from the same bits. */
static bool load_model(struct run *r, const struct checkpoint *from, float *param, float *moments, struct position *p,
                       struct err *e) {
    struct container c;
    if (!checkpoint_read(from, "model.ckpt", &c, e)) return false;
    bool good = container_get(&c, "position", p, sizeof *p, e) && fits(r, p, &c, e) &&
                container_get(&c, "parameters", param, r->n * sizeof *param, e) &&
                container_get(&c, "optimiser", moments, r->optimiser.n_state * sizeof *moments, e);
    container_close(&c);
    return good;
}

static bool load_rank(struct run *r, const struct checkpoint *from, const struct position *model, struct err *e) {
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
    if (good && (p->run_id != model->run_id || p->step != model->step || p->rank != (uint32_t)r->comm->rank))
        good = err_set(e, "cannot resume: %s belongs to another run or step than model.ckpt beside it", c.path);
    if (good) own_move(r, &own, true);
    own_close(&own);
    container_close(&c);
    return good;
}

bool checkpoint_load(struct run *r, const struct checkpoint *from, struct err *e) {
    struct position p = {0};
    const struct arena *a = &r->net->arena;
    float *param = mem_alloc(r->n, sizeof *param, "the parameters");
    float *moments = mem_alloc(r->optimiser.n_state, sizeof *moments, "the optimiser's state");
    if (r->comm->rank == 0) load_model(r, from, param, moments, &p, e);
    bool failed = comm_agree(r->comm, e);
    if (!failed) {
        comm_bcast(r->comm, 0, &p, sizeof p);
        comm_bcast(r->comm, 0, param, r->n * sizeof *param);
        comm_bcast(r->comm, 0, moments, r->optimiser.n_state * sizeof *moments);
        a->device->to_device(a->param, param, r->n * sizeof *param);
        r->optimiser.device->to_device(r->optimiser.state, moments, r->optimiser.n_state * sizeof *moments);
        load_rank(r, from, &p, e);
        failed = comm_agree(r->comm, e);
    }
    mem_free(param);
    mem_free(moments);
    r->id = p.run_id;
    r->step = r->first_step = r->checkpoint_last = (size_t)p.step;
    r->averaged_at = p.averaged ? r->step : SIZE_MAX;
    r->log.start = p.start;
    optimiser_set_steps(&r->optimiser, p.step);
    return !failed;
}
