/* cuda_layer_norm.h: normalisation of each row by itself on the GPU: the launchers of cuda_layer_norm.cu. All work goes
 * to cuda_stream(); arrays are on the device, tensors at multiples of 16 bytes. */
#ifndef ST_NETS_CUDA_LAYER_NORM_H
#define ST_NETS_CUDA_LAYER_NORM_H

#include <stddef.h>

#include "nets/cuda/cuda_index.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cuda_layer_norm {
    uint32_t rows, features;
    float epsilon;
    bool bias, is_bf16;    /* is_bf16: elements of x, y, dy, dx, else float */
    struct cuda_walk walk; /* over the columns */
    float *mean, *inverse; /* [rows] each, of the last forward pass: inverse = 1 / deviation; the caller's to give */
};

void cuda_layer_norm_plan(struct cuda_layer_norm *norm, uint32_t rows, uint32_t features, float epsilon, bool bias,
                          bool is_bf16);
/* What the backward pass wants to write its sums of columns to: doubles. */
size_t cuda_layer_norm_scratch(const struct cuda_layer_norm *norm);

/* x, y, dy, dx: [rows][features]. param, dparam: weights [features] and, with a bias, biases [features]. dx: may be
 * NULL, or dy. adds: to dparam. */
void cuda_layer_norm_forward(const struct cuda_layer_norm *norm, const void *x, const float *param, void *y);
void cuda_layer_norm_backward(const struct cuda_layer_norm *norm, const void *x, const void *dy, const float *param,
                              void *dx, bool adds, float *dparam, double *scratch);

#ifdef __cplusplus
}
#endif

#endif
