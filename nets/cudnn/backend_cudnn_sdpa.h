/* backend_cudnn_sdpa.h: attention fused into one kernel for each pass, in bf16, by cuDNN's graph API:
 *     y = softmax(mask(q k^T / sqrt(d))) v      and      dq, dk, dv of it.
 * Forward writes no scores to memory, but the logarithm of each row's sum of exponentials, from which backward makes
 * the probabilities again.
 *
 * Form. The library has two ways to ask: one operation for a whole pass (CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR
 * and, later, _BWD_), and a graph of matrix products, pointwise operations and reductions that it knows by its shape.
 * The first has no causal mask before 9.21, and cudnn-frontend does not use it for backward; so both passes are graphs,
 * which were tried with 9.14, 9.16 and 9.19.
 *
 * The same bits every time. Backward's usual graph adds the parts of dq up in an array of floats, in whichever order
 * blocks come; the library's notes do not always say so. In the graph that is asked for here the product of dS and k
 * gives dq itself: then the library keeps dS in its workspace (about batch * heads * T * T * 2 bytes) and each sum has
 * one order. Besides, engines are refused that say of themselves that their bits change. That is all that can be known
 * without running: other bits were seen on Hopper before 9.18 (NVIDIA-NeMo/Megatron-Bridge, issue 2169), so whoever
 * opens a plan should compare two runs. The kernels are compiled when a plan is opened, which takes NVRTC (libnvrtc)
 * and some time.
 *
 * What is not asked for, as public reports have it go wrong, and NULL is what one gets:
 *   - cuDNN before 9.14;
 *   - T = 1;
 *   - backward, T no multiple of 128, up to 9.15.0: reads beyond the end when it is replayed from a CUDA graph;
 *   - backward without a mask, T no multiple of 128: on Hopper, columns beyond T are not masked where T = 64 (mod 128),
 *     and rows whose scores are all very small get NaN;
 *   - without a mask, T > 1024, before 9.15: fails when it is replayed from a CUDA graph. */
#ifndef ST_NETS_BACKEND_CUDNN_SDPA_H
#define ST_NETS_BACKEND_CUDNN_SDPA_H

#include <stddef.h>

#include "nets/cudnn/backend_cudnn_parts.h"

/* x, dx: [batch][T][3][heads][d], of q, k, v; y, dy: [batch][T][heads][d]; all bf16. d: a multiple of 8, at most 128.
 * causal: a position sees itself and what is before it. */
struct cudnn_sdpa_shape {
    int64_t batch, heads, T, d;
    bool causal;
};

struct cudnn_sdpa;

/* Device memory of a pass, each aligned to 16 bytes. Forward: x in, y out in `out`, stats out. Backward: x, y, dy,
 * stats in, dx out in `out`. */
struct cudnn_sdpa_arrays {
    const void *x, *y, *dy;
    void *out;
    float *stats; /* [batch][heads][T] */
    void *workspace;
};

/* NULL: the library does not make a plan that gives the same bits every time, or only one that is reported to go wrong.
 * *workspace: bytes that it wants at each run. */
struct cudnn_sdpa *cudnn_sdpa_open(const struct cudnn_plan_gpu *gpu, const struct cudnn_sdpa_shape *s, bool backward,
                                   size_t *workspace);
void cudnn_sdpa_close(struct cudnn_sdpa *plan); /* NULL: nothing to do */

/* Enqueues the pass; may be recorded into a CUDA graph. */
cudnnStatus_t cudnn_sdpa_run(cudnnHandle_t handle, const struct cudnn_sdpa *plan, const struct cudnn_sdpa_arrays *a);

/* The number of the engine that was taken, and its notes, a bit for each: for people and tests. */
struct cudnn_sdpa_engine {
    int64_t number;
    unsigned numerical, behaviour;
};
struct cudnn_sdpa_engine cudnn_sdpa_engine(const struct cudnn_sdpa *plan);

#endif
