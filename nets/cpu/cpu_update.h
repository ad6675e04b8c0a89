/* cpu_update.h: what the optimisers of the CPU share: the walk over the parameters, in chunks that stay in the
 * first-level cache while it is looked whether a value went bad.
 *
 *        SIMD_CLONES static uint32_t step_chunk(float *restrict w, float *const *state, const float *restrict g,
 *                                               size_t n, const void *rates);   // not 0: update_bad of some value
 *        return update_in_chunks(o, param, grad, step_chunk, &rates); */
#ifndef ST_NETS_CPU_UPDATE_H
#define ST_NETS_CPU_UPDATE_H

#include <stdint.h>
#include <string.h>

#include "nets/optimisers/optimiser.h"

/* NaN and infinities have all exponent bits set. An integer, so that loops over it are vectorised. */
static inline uint32_t update_bad(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (bits & 0x7f800000u) == 0x7f800000u;
}

/* w, g: [n]; state[s]: [n], for each of the row's moments. Not 0 if something new is not finite. */
typedef uint32_t update_chunk(float *w, float *const *state, const float *g, size_t n, const void *rates);

/* Returns what optimiser_ops.step does. */
size_t update_in_chunks(struct optimiser *o, float *param, const float *grad, update_chunk *chunk, const void *rates);
/* The same with the rates of each slice, which rates_of finds in `all`. */
size_t update_by_slice(struct optimiser *o, float *param, const float *grad, update_chunk *chunk,
                       const void *(*rates_of)(const void *all, const struct slice *slice), const void *all);

#endif
