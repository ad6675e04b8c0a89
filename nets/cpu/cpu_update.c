/* cpu_update.c: see cpu_update.h. */
#include "nets/cpu/cpu_update.h"

enum { CHUNK = 4096 /* floats */ };

static bool bad_at(const struct optimiser *o, const float *param, size_t i) {
    uint32_t any = update_bad(param[i]);
    for (size_t at = i; at < o->n_state; at += o->n) any |= update_bad(o->state[at]);
    return any;
}

/* Parameters from..to-1. Returns the first index that went bad, or o->n. */
static size_t update_range(struct optimiser *o, float *param, const float *grad, size_t from, size_t to,
                           update_chunk *chunk, const void *rates) {
    size_t first = o->n;
    for (size_t at = from; at < to; at += CHUNK) {
        const size_t n = to - at < CHUNK ? to - at : CHUNK;
        float *state[OPTIMISER_MOMENTS_MAX];
        for (size_t s = 0; s < o->n_state / o->n; s++) state[s] = o->state + s * o->n + at;
        const uint32_t any = chunk(param + at, state, grad + at, n, rates);
        for (size_t i = at; any && first == o->n && i < at + n; i++)
            if (bad_at(o, param, i)) first = i;
    }
    return first;
}

size_t update_in_chunks(struct optimiser *o, float *param, const float *grad, update_chunk *chunk, const void *rates) {
    return update_range(o, param, grad, 0, o->n, chunk, rates);
}

size_t update_by_slice(struct optimiser *o, float *param, const float *grad, update_chunk *chunk,
                       const void *(*rates_of)(const void *all, const struct slice *slice), const void *all) {
    size_t first = o->n;
    for (size_t s = 0; s < o->slices; s++) {
        const struct slice *slice = &o->slice[s];
        const size_t bad =
            update_range(o, param, grad, slice->offset, slice->offset + slice->size, chunk, rates_of(all, slice));
        if (bad < first) first = bad;
    }
    return first;
}
