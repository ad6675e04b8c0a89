/* cuda_rows.h: layers that go element by element or take rows on the GPU: the launchers of cuda_rows.cu. All work goes
 * to cuda_stream(); arrays are on the device, tensors at multiples of 16 bytes. is_bf16: the elements of all tensors
 * are bf16, else float. */
#ifndef ST_NETS_CUDA_ROWS_H
#define ST_NETS_CUDA_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* to = a + b, [n] each. */
void cuda_sum(uint32_t n, const void *a, const void *b, void *to, bool is_bf16);

/* GELU (nets/layers/gelu.h), tanh: by its approximation: y = gelu(x), dx = gelu'(x) dy, [n] each. dx may be dy. */
void cuda_gelu_forward(uint32_t n, bool tanh, const void *x, void *y, bool is_bf16);
void cuda_gelu_backward(uint32_t n, bool tanh, const void *x, const void *dy, void *dx, bool is_bf16);

/* y = tanh(x), dx = (1 - tanh(x)^2) dy, [n] each. dx may be dy. */
void cuda_tanh_forward(uint32_t n, const void *x, void *y, bool is_bf16);
void cuda_tanh_backward(uint32_t n, const void *x, const void *dy, void *dx, bool is_bf16);

/* y [sequences][length] = x + w [length], and dw = sum of dy over the sequences, in their order; adds: += each. x and
 * dx are floats, is_bf16: of y and dy. dx: NULL, or dy as floats. */
void cuda_position_forward(uint32_t sequences, uint32_t length, const float *x, const float *w, void *y, bool is_bf16);
void cuda_position_backward(uint32_t sequences, uint32_t length, const void *dy, bool adds, float *dw, float *dx,
                            bool is_bf16);

/* Some rows of each sequence (nets/sequences/choose.h): `count` of its T. number: [sequences][count], each below T;
 * NULL: the first ones. */
struct cuda_choose {
    uint32_t sequences, T, count, features;
    bool is_bf16;
};
void cuda_choose_forward(const struct cuda_choose *l, const int32_t *number, const void *x, void *y);
void cuda_choose_backward(const struct cuda_choose *l, const int32_t *number, const void *dy, void *dx);

#ifdef __cplusplus
}
#endif

#endif
