/* cuda_layers.h: the launchers of cuda_layers.cu: layers that are bound by memory, and copies between layouts. All work
 * goes to cuda_stream(); all arrays are on the device. is_bf16: the elements of that tensor are bf16, else float. */
#ifndef ST_NETS_CUDA_LAYERS_H
#define ST_NETS_CUDA_LAYERS_H

#include <stddef.h>

#include "nets/cuda/cuda_index.h"

#ifdef __cplusplus
extern "C" {
#endif

/* to (channels last, float or bf16) = from (canonical floats), and back. shape: that of `to` and `from`. */
void cuda_to_last(const struct cuda_shape *shape, const float *from, void *to, bool is_bf16);
void cuda_from_last(const struct cuda_shape *shape, const void *from, float *to, bool is_bf16);

/* Weights [out][in][window] of the arena to [out][window][in], and gradients back; adds: += them. */
void cuda_weights_to_last(uint32_t out, uint32_t in, uint32_t window, const float *from, void *to, bool is_bf16);
void cuda_weights_from_last(uint32_t out, uint32_t in, uint32_t window, const void *from, float *to, bool adds,
                            bool is_bf16);

/* The same of many layers at once. */
struct cuda_cast {
    uint32_t out, in, window;
    const float *param; /* in the arena */
    float *dparam;
    void *w, *dw; /* as the library wants them */
};
/* cast: device, [layers]; most: elements of the largest of them. */
void cuda_weights_all_to_last(const struct cuda_cast *cast, uint32_t layers, uint32_t most, bool is_bf16);
void cuda_weights_all_from_last(const struct cuda_cast *cast, uint32_t layers, uint32_t most, bool adds, bool is_bf16);

/* y = x at every stride-th row and column, between zero channels; dx from dy. x and y in one layout. */
void cuda_shortcut_forward(const struct cuda_shape *x, const struct cuda_shape *y, uint32_t stride, const void *from,
                           void *to, bool is_bf16);
void cuda_shortcut_backward(const struct cuda_shape *x, const struct cuda_shape *y, uint32_t stride, const void *dy,
                            void *dx, bool is_bf16);

/* y [n][c] = mean of x over its positions; dx = dy / positions. */
void cuda_average_forward(const struct cuda_shape *x, const void *from, float *y, bool is_bf16);
void cuda_average_backward(const struct cuda_shape *x, const float *dy, void *dx, bool is_bf16);

/* to += from, [n] each. */
void cuda_add(uint32_t n, const void *from, void *to, bool is_bf16);

#ifdef __cplusplus
}
#endif

#endif
