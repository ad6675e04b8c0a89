/* cpu_update.c: see cpu_update.h. */
#include "nets/cpu/cpu_update.h"

enum { CHUNK = 4096 /* floats */, STATES_MAX = 2 };

static bool bad_at(const struct optimiser *o, const float *param, size_t i) {
    uint32_t any = update_bad(param[i]);
    for (size_t s = 0; s < o->ops->states; s++) any |= update_bad(o->state[s * o->n + i]);
    return any;
}

size_t update_in_chunks(struct optimiser *o, float *param, const float *grad, update_chunk *chunk, const void *rates) {
    if (o->ops->states > STATES_MAX) die("the optimiser %s has %zu states", o->ops->name, o->ops->states);
    size_t first = o->n;
    for (size_t at = 0; at < o->n; at += CHUNK) {
        size_t n = o->n - at < CHUNK ? o->n - at : CHUNK;
        float *state[STATES_MAX];
        for (size_t s = 0; s < o->ops->states; s++) state[s] = o->state + s * o->n + at;
        uint32_t any = chunk(param + at, state, grad + at, n, rates);
        for (size_t i = at; any && first == o->n && i < at + n; i++)
            if (bad_at(o, param, i)) first = i;
    }
    return first;
}
