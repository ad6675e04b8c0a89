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

static struct slice slice_of(int dims, const size_t *dim) {
    struct slice s = {.dims = dims, .size = 1};
    for (int i = 0; i < dims; i++) s.size *= s.dim[i] = dim[i];
    return s;
}

size_t arena_add(struct arena *a, const char *name, const char *suffix, int dims, const size_t *dim) {
    struct slice s = slice_of(dims, dim);
    set_name(&s, name, suffix);
    return append(&a->slice, &a->slices, &a->n, &s);
}

size_t arena_add_state(struct arena *a, const char *name, const char *suffix, size_t size) {
    struct slice s = {.dims = 1, .size = size, .dim = {size}};
    set_name(&s, name, suffix);
    return append(&a->state_slice, &a->state_slices, &a->n_state, &s);
}

size_t arena_add_carry(struct arena *a, const char *name, const char *suffix, int dims, const size_t *dim) {
    struct slice s = slice_of(dims, dim);
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

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

/* Of an LSTM: weight_ih, weight_hh, bias_ih, bias_hh, with 4 hidden rows each. */
static bool is_recurrent(const struct slice *s) {
    return ends_with(s->name, "_ih") || ends_with(s->name, "_hh");
}

/* Weights of two and more dimensions [out][in]...: normal with standard deviation sqrt(2 / fan_in), fan_in = entries
 * per output (He et al., "Delving deep into rectifiers", ICCV 2015, eq. 10). A weight of one dimension is a scale.
 * What an LSTM has is uniform in +-1 / sqrt(hidden), as PyTorch has it. */
static void initial(float *value, const struct slice *s, uint64_t seed, size_t number) {
    struct rng r = rng_open(seed, RNG_INIT, number);
    if (is_recurrent(s)) {
        double bound = 1 / sqrt((double)s->dim[0] / 4);
        for (size_t i = 0; i < s->size; i++) value[i] = (float)(bound * (2 * rng_uniform(&r) - 1));
        return;
    }
    if (!ends_with(s->name, ".weight") || s->dims == 1) {
        float all = s->dims == 1 && ends_with(s->name, ".weight") ? 1 : 0;
        for (size_t i = 0; i < s->size; i++) value[i] = all;
        return;
    }
    double deviation = sqrt(2.0 / ((double)s->size / (double)s->dim[0]));
    for (size_t i = 0; i < s->size; i++) value[i] = (float)(deviation * rng_normal(&r));
}

void arena_initialise(struct arena *a, uint64_t seed) {
    size_t floats = a->n > a->n_state ? a->n : a->n_state;
    float *host = mem_alloc(floats, sizeof(float), "the initial parameters");
    for (size_t i = 0; i < a->slices; i++) initial(host + a->slice[i].offset, &a->slice[i], seed, i);
    a->device->to_device(a->param, host, a->n * sizeof(float));
    for (size_t i = 0; i < a->state_slices; i++) {
        const struct slice *s = &a->state_slice[i];
        for (size_t j = 0; j < s->size; j++) host[s->offset + j] = ends_with(s->name, ".running_var") ? 1 : 0;
    }
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
