/* arena.c: see arena.h; the slices are laid out by net_build.c. */
#include "nets/arena.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "nets/net_impl.h"

enum { SLICES_STEP = 64 };

/* The list of slices with room for one more. */
static struct slice *grown(struct slice *list, size_t used) {
    if (used % SLICES_STEP != 0) return list;
    struct slice *longer = mem_zalloc(used + SLICES_STEP, sizeof *longer, "the list of parameter slices");
    if (used) memcpy(longer, list, used * sizeof *list);
    mem_free(list);
    return longer;
}

static size_t append(struct slice **list, size_t *used, size_t *total, const struct slice *s) {
    *list = grown(*list, *used);
    struct slice *last = &(*list)[(*used)++];
    *last = *s;
    last->offset = *total;
    *total += s->size;
    return last->offset;
}

static void set_name(struct slice *s, const char *name, const char *suffix) {
    int length = snprintf(s->name, sizeof s->name, "%s.%s", name, suffix);
    if (length < 0 || (size_t)length >= sizeof s->name) die("the slice name %s.%s is too long", name, suffix);
}

static struct slice slice_of(int dims, const size_t *dim, struct slice_initial initial) {
    struct slice s = {.dims = dims, .size = 1, .initial = initial};
    for (int i = 0; i < dims; i++) s.size *= s.dim[i] = dim[i];
    return s;
}

size_t arena_add(struct arena *a, const char *name, const char *suffix, int dims, const size_t *dim,
                 struct slice_initial initial) {
    struct slice s = slice_of(dims, dim, initial);
    set_name(&s, name, suffix);
    return append(&a->slice, &a->slices, &a->n, &s);
}

size_t arena_add_state(struct arena *a, const char *name, const char *suffix, size_t size,
                       struct slice_initial initial) {
    struct slice s = slice_of(1, &size, initial);
    set_name(&s, name, suffix);
    return append(&a->state_slice, &a->state_slices, &a->n_state, &s);
}

size_t arena_add_carry(struct arena *a, const char *name, const char *suffix, int dims, const size_t *dim) {
    struct slice s = slice_of(dims, dim, ARENA_ZERO);
    set_name(&s, name, suffix);
    return append(&a->carry_slice, &a->carry_slices, &a->n_carry, &s);
}

void arena_open(struct arena *a, const struct device_ops *device) {
    a->device = device;
    a->param = device->alloc(a->n * sizeof(float), "the parameters (--model says how many)");
    a->grad = device->alloc(a->n * sizeof(float), "the gradients (--model says how many)");
    a->state = device->alloc(a->n_state * sizeof(float), "the running statistics (--model says how many)");
    a->carry = device->alloc(a->n_carry * sizeof(float), "the states of the streams (a smaller --batch needs less)");
    device->zero(a->param, a->n * sizeof(float));
    device->zero(a->grad, a->n * sizeof(float));
    device->zero(a->state, a->n_state * sizeof(float));
    device->zero(a->carry, a->n_carry * sizeof(float));
}

void arena_close(struct arena *a) {
    if (a->device) {
        a->device->release(a->param);
        a->device->release(a->grad);
        a->device->release(a->state);
        a->device->release(a->carry);
    }
    mem_free(a->slice);
    mem_free(a->state_slice);
    mem_free(a->carry_slice);
    *a = (struct arena){0};
}

struct slice_initial arena_he(int dims, const size_t *dim) {
    const struct slice s = slice_of(dims, dim, ARENA_ZERO);
    return (struct slice_initial){INITIAL_NORMAL, sqrt(2.0 / ((double)s.size / (double)dim[0]))};
}

/* number: of the slice in its list. */
static void initial(float *value, const struct slice *s, uint64_t seed, size_t number) {
    const double scale = s->initial.scale;
    struct rng r = rng_open(seed, RNG_INIT, number);
    switch (s->initial.form) {
    case INITIAL_ZERO:
        for (size_t i = 0; i < s->size; i++) value[i] = 0;
        break;
    case INITIAL_ONE:
        for (size_t i = 0; i < s->size; i++) value[i] = 1;
        break;
    case INITIAL_NORMAL:
        rng_normals(&r, scale, value, s->size);
        break;
    case INITIAL_UNIFORM:
        for (size_t i = 0; i < s->size; i++) value[i] = (float)(scale * (2 * rng_uniform(&r) - 1));
        break;
    }
}

void arena_initialise(struct arena *a, uint64_t seed) {
    size_t floats = a->n > a->n_state ? a->n : a->n_state;
    float *host = mem_alloc(floats, sizeof(float), "the initial parameters");
    for (size_t i = 0; i < a->slices; i++) initial(host + a->slice[i].offset, &a->slice[i], seed, i);
    a->device->to_device(a->param, host, a->n * sizeof(float));
    for (size_t i = 0; i < a->state_slices; i++) initial(host + a->state_slice[i].offset, &a->state_slice[i], seed, i);
    a->device->to_device(a->state, host, a->n_state * sizeof(float));
    mem_free(host);
}

const struct slice *arena_slice_at(const struct arena *a, size_t index) {
    if (index >= a->n) die("parameter index %zu, but there are %zu", index, a->n);
    size_t low = 0, high = a->slices; /* slice[low].offset <= index < slice[high].offset */
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (a->slice[middle].offset <= index)
            low = middle;
        else
            high = middle;
    }
    return &a->slice[low];
}

const struct slice *arena_slice(const struct arena *a, const char *name) {
    for (size_t i = 0; i < a->slices; i++)
        if (strcmp(a->slice[i].name, name) == 0) return &a->slice[i];
    return NULL;
}
