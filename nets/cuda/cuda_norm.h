/* cuda_norm.h: max(0, batch normalisation [+ a second tensor]) on the GPU: the launchers of cuda_norm.cu. All work goes
 * to cuda_stream(). */
#ifndef ST_NETS_CUDA_NORM_H
#define ST_NETS_CUDA_NORM_H

#include <stddef.h>

#include "nets/cuda/cuda_index.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a layer has on the device, c channels: coefficients of y = max(0, a x + b [+ add]) and dx = a g + p x + q, and
 * 1 / standard deviation; sums of parts of a channel [c][2][cuda_norm_parts], and how many blocks of each slab are done
 * ([walk.slabs], 0 between launches). */
struct cuda_norm_memory {
    float *a, *b, *mean, *p, *q; /* [c] each */
    double *r;                   /* [c] */
    double *partial;
    unsigned *done;
};

struct cuda_norm {
    struct cuda_walk walk;
    bool is_bf16, joins;
    struct cuda_norm_memory memory;
};

/* The walk and the kinds; the memory is the caller's to give. */
void cuda_norm_plan(struct cuda_norm *norm, const struct cuda_shape *shape, bool is_bf16, bool joins);
/* Into how many parts a channel is cut for its sums. */
size_t cuda_norm_parts(const struct cuda_norm *norm);

/* Of x [+ bias [c]]. param [2][c]: scale, shift; state [2][c]: running mean and variance, moved in training. */
void cuda_norm_forward(const struct cuda_norm *norm, const void *x, const void *add, void *y, const float *param,
                       const float *bias, float *state, bool training);
/* As struct layer_call says; dy is left as the gradient of `add` where one is added. dx: may be dy, or NULL. adds: to
 * dparam. */
void cuda_norm_backward(const struct cuda_norm *norm, const void *x, const void *y, void *dy, const void *dy2, void *dx,
                        const float *param, float *dparam, bool adds);

#ifdef __cplusplus
}
#endif

#endif
