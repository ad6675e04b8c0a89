/* checkpoint_own.c: see checkpoint_own.h. */
#include "cli/checkpoint/checkpoint_own.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cli/checkpoint/checkpoint_check.h"

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

void own_open(struct run *r, unsigned less, struct own *own) {
    struct arena *a = &r->model.net->arena;
    struct optimiser *o = &r->model.optimiser;
    const bool residuals = !(less & OWN_NO_RESIDUALS);
    *own = (struct own){0};
    own_add(own, "position", sizeof(struct position));
    own_add_array(own, "net state", a->device, a->state, a->n_state);
    if (a->n_carry > 0 && !(less & OWN_NO_STREAMS)) own_add_array(own, "streams", a->device, a->carry, a->n_carry);
    if (residuals) own_add(own, "exchange", exchange_state_bytes(&r->path.reducer.exchange));
    if (residuals && r->options.momentum_correction)
        own_add_array(own, "velocity", a->device, r->path.correction.velocity.acc, r->model.n);
    if (residuals && r->path.reducer.keeps) own_add(own, "residual", r->model.n * sizeof(float));
    if (r->replicas.drifts) own_add_array(own, "own parameters", a->device, a->param, r->model.n);
    if (r->replicas.drifts) own_add_array(own, "own optimiser", o->device, o->state, o->n_state);
}

void own_close(struct own *own) {
    for (size_t i = 0; i < own->count; i++) mem_free(own->memory[i]);
}

void *own_find(const struct own *own, const char *name) {
    for (size_t i = 0; i < own->count; i++)
        if (strcmp(own->section[i].name, name) == 0) return own->memory[i];
    return NULL;
}

void own_move(struct run *r, struct own *own, const struct replica *m, bool load) {
    void *residual = own_find(own, "residual"), *exchange = own_find(own, "exchange");
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
    if (exchange) move_exchange_state(&r->path.reducer.exchange, exchange, load);
    if (residual && load) r->path.reducer.store.ops->write(&r->path.reducer.store, 0, r->model.n, residual);
    if (residual && !load) r->path.reducer.store.ops->read(&r->path.reducer.store, 0, r->model.n, residual);
}

bool own_check(const struct run *r, const struct own *own, const char *path, struct err *e) {
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

bool written_find(const struct container *c, const char *section, struct written *w, struct err *e) {
    size_t bytes;
    w->known = container_has(c, section, &bytes);
    return !w->known || container_get(c, section, &w->hash, sizeof w->hash, e);
}

bool written_holds(const struct run *r, const struct written *w, const float *param, const float *moments,
                   const char *path, struct err *e) {
    const struct replica_hash is = replica_hash_of(param, r->model.n, moments, r->model.optimiser.n_state);
    if (!w->known || (is.parameters == w->hash.parameters && is.optimiser == w->hash.optimiser)) return true;
    return err_set(e, "the checkpoint %s is damaged: its %s are not those that its hashes are of", path,
                   is.parameters == w->hash.parameters ? "optimiser's states" : "parameters");
}
