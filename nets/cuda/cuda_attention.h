/* cuda_attention.h: what attention does between its products on the GPU: the launchers of cuda_attention.cu. All work
 * goes to cuda_stream(); arrays are on the device, those of scores at multiples of 16 bytes. */
#ifndef ST_NETS_CUDA_ATTENTION_H
#define ST_NETS_CUDA_ATTENTION_H

#include "nets/cuda/cuda_attention_index.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The matrices of a head. */
enum attention_matrix {
    ATTENTION_Q,
    ATTENTION_K,
    ATTENTION_V,
    ATTENTION_Y, /* y in the forward pass, dy in the backward pass */
    ATTENTION_DQ,
    ATTENTION_DK,
    ATTENTION_DV,
    ATTENTION_SCORE, /* [T][T] floats, rows attention_pitch apart; probabilities later, of the type of x, in place */
    ATTENTION_DSCORE,
    ATTENTION_MATRICES
};

/* What they lie in; y: in the backward pass dy; dx: NULL in the forward pass. score, dscore: of the heads of one turn.
 * is_bf16: the elements of x, y, dx, else float. */
struct cuda_attention_arrays {
    const void *x;
    void *y, *dx;
    float *score, *dscore;
    bool is_bf16;
};

/* pointer [ATTENTION_MATRICES][heads] to the matrices of all heads, which are taken `chunk` at a time. */
void cuda_attention_point(const struct cuda_attention *a, uint32_t chunk, const struct cuda_attention_arrays *arrays,
                          void **pointer);

/* The heads of a turn: `count` of them from number `first`, and what their rows need. */
struct cuda_attention_turn {
    uint32_t first, count;
    float scale;           /* 1 / sqrt(d) */
    const int32_t *length; /* [sequences], or NULL: all are T */
    struct dropout drop;   /* scale 1: nothing is dropped */
    const uint32_t *step;  /* the low and the high half */
    float *log_sum;        /* [heads][T] of all heads */
};

/* score [count][T][pitch], s to m p, 0 beyond the keys that a query sees; log_sum = log of the sum of exp(scale s). */
void cuda_attention_forward(const struct cuda_attention *a, const struct cuda_attention_turn *turn,
                            const struct cuda_attention_arrays *arrays);

/* score: s to m p; dscore: dp = dy v^T to ds = scale p (m dp - y . dy); both 0 beyond the keys. y: the forward pass's,
 * whole. */
void cuda_attention_backward(const struct cuda_attention *a, const struct cuda_attention_turn *turn,
                             const struct cuda_attention_arrays *arrays, const void *y);

#ifdef __cplusplus
}
#endif

#endif
