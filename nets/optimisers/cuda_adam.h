/* cuda_adam.h: Adam on the GPU: the launcher of cuda_adam.cu. */
#ifndef ST_NETS_CUDA_ADAM_H
#define ST_NETS_CUDA_ADAM_H

#include <stddef.h>
#include <stdint.h>

#include "nets/cuda/cuda_chunk.h"
#include "nets/optimisers/adam.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The formula of adam.h. w, g: device, [n]; state: device, [2][n], m and v. *first: device; the lowest index of a new w
 * or v that is not finite, UINT32_MAX where there is none. n < UINT32_MAX. */
void cuda_adam_step(float *w, float *state, const float *g, size_t n, const struct adam_rates *r, uint32_t *first);
/* The same, each chunk by its own rates; chunk: device, [chunks], which cover 0..n-1. */
void cuda_adamw_step(float *w, float *state, const float *g, size_t n, const struct adamw_rates *r,
                     const struct cuda_update_chunk *chunk, uint32_t chunks, uint32_t *first);

#ifdef __cplusplus
}
#endif

#endif
