/* cuda_bias.h: the bias of a convolution or of a linear layer on the GPU: the launchers of cuda_bias.cu. All work goes
 * to cuda_stream(). */
#ifndef ST_NETS_CUDA_BIAS_H
#define ST_NETS_CUDA_BIAS_H

#include <stddef.h>

#include "nets/cuda/cuda_index.h"

#ifdef __cplusplus
extern "C" {
#endif

/* partial: sums of parts of a channel, [c][cuda_bias_parts]; done: how many blocks of each slab are done, [walk.slabs],
 * 0 between launches. Both on the device, the caller's to give after cuda_bias_plan. */
struct cuda_bias {
    struct cuda_walk walk;
    bool is_bf16;
    double *partial;
    unsigned *done;
};

void cuda_bias_plan(struct cuda_bias *bias, const struct cuda_shape *shape, bool is_bf16);
/* Into how many parts a channel is cut for its sum. */
size_t cuda_bias_parts(const struct cuda_bias *bias);

/* y += b [c];  db [c] = sum of dy over images and positions; adds: += that. y, dy: of the plan's shape and element
 * type. */
void cuda_bias_forward(const struct cuda_bias *bias, const float *b, void *y);
void cuda_bias_backward(const struct cuda_bias *bias, const void *dy, bool adds, float *db);

#ifdef __cplusplus
}
#endif

#endif
