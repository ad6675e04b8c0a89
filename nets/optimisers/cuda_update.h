/* cuda_update.h: what the kernels of optimisers share: the walk over the parameters, each element by a rule. Empty
 * where no compiler for kernels reads it.
 *
 *        struct rule {
 *            enum { STATES = 1 };   // arrays of n that the rule keeps
 *            float ...;             // its numbers
 *            // New w and state of an element; is something of it not finite?
 *            __device__ __forceinline__ bool operator()(float &w, float (&state)[STATES], float g) const { ... }
 *        };
 *        update_by(rule{...}, w, state, g, n, first); */
#ifndef ST_NETS_CUDA_UPDATE_H
#define ST_NETS_CUDA_UPDATE_H

#include "base/cuda/cuda_device.h"
#include "base/subnormal.h"
#include "nets/cuda/cuda_chunk.h"
#include "nets/cuda/cuda_values.h"

#if defined(ST_HOSTCUDA) || defined(__CUDACC__)

enum { THREADS = 256, BLOCKS_EACH = 8, WIDE = 4 };

/* NaN and infinities have all exponent bits set. */
static __device__ __forceinline__ bool update_bad(float value) {
    return (__float_as_uint(value) & 0x7f800000u) == 0x7f800000u;
}

/* Elements i * V + (0..V-1). The lowest index that went bad, with `lowest`. */
template <int V, class RULE>
static __device__ __forceinline__ uint32_t update_vector(const RULE &rule, float *w, float *state, const float *g,
                                                         uint32_t n, uint32_t i, uint32_t lowest) {
    typedef vector_of<float, V> vector;
    vector to_w = ((const vector *)w)[i], to_state[RULE::STATES];
    const vector from = ((const vector *)g)[i];
    for (int s = 0; s < RULE::STATES; s++) to_state[s] = ((const vector *)(state + (size_t)s * n))[i];
    for (int l = 0; l < V; l++) {
        float mine[RULE::STATES];
        for (int s = 0; s < RULE::STATES; s++) mine[s] = to_state[s].value[l];
        if (rule(to_w.value[l], mine, from.value[l])) lowest = min(lowest, i * V + (uint32_t)l);
        for (int s = 0; s < RULE::STATES; s++) to_state[s].value[l] = mine[s];
    }
    ((vector *)w)[i] = to_w;
    for (int s = 0; s < RULE::STATES; s++) ((vector *)(state + (size_t)s * n))[i] = to_state[s];
    return lowest;
}

/* Vectors of V from 0 on, then what is left, element by element. */
template <int V, class RULE>
static __global__ void update_all(RULE rule, float *w, float *state, const float *g, uint32_t n, uint32_t *first) {
    const uint32_t me = blockIdx.x * THREADS + threadIdx.x, all = gridDim.x * THREADS, vectors = n / V;
    uint32_t lowest = UINT32_MAX;
    for (uint32_t i = me; i < vectors; i += all) lowest = update_vector<V>(rule, w, state, g, n, i, lowest);
    for (uint32_t i = vectors * V + me; i < n; i += all) lowest = update_vector<1>(rule, w, state, g, n, i, lowest);
    if (lowest != UINT32_MAX) atomicMin(first, lowest);
}

/* w, g: device, [n]; state: device, [STATES][n]. *first becomes the lowest index that went bad, where that is lower. */
template <class RULE>
static void update_by(const RULE &rule, float *w, float *state, const float *g, size_t n, uint32_t *first) {
    const size_t last_state = (size_t)(RULE::STATES - 1) * n; /* the others lie between it and the first one */
    const bool wide =
        ((uintptr_t)w | (uintptr_t)state | (uintptr_t)(state + last_state) | (uintptr_t)g) % (WIDE * sizeof(float)) ==
        0;
    const unsigned grid = cuda_grid(BLOCKS_EACH, (n / WIDE + THREADS - 1) / THREADS);
    if (wide)
        LAUNCH((update_all<WIDE, RULE>), grid, THREADS, 0, cuda_stream(), rule, w, state, g, (uint32_t)n, first);
    else
        LAUNCH((update_all<1, RULE>), grid, THREADS, 0, cuda_stream(), rule, w, state, g, (uint32_t)n, first);
    CUDA_CALL(cudaGetLastError());
}

/* See cuda_chunk.h. */
template <class RULE> struct rules { RULE of[2]; };

/* chunk: device, [chunks]. */
template <class RULE>
static __global__ void update_chunks(rules<RULE> rules, const cuda_update_chunk *chunk, uint32_t chunks, float *w,
                                     float *state, const float *g, uint32_t n, uint32_t *first) {
    uint32_t lowest = UINT32_MAX;
    for (uint32_t c = blockIdx.x; c < chunks; c += gridDim.x) {
        const cuda_update_chunk mine = chunk[c];
        const RULE &rule = rules.of[mine.rule];
        for (uint32_t i = mine.from + threadIdx.x; i < mine.to; i += THREADS)
            lowest = update_vector<1>(rule, w, state, g, n, i, lowest);
    }
    if (lowest != UINT32_MAX) atomicMin(first, lowest);
}

template <class RULE>
static void update_by_chunk(const rules<RULE> &rules, const cuda_update_chunk *chunk, uint32_t chunks, float *w,
                            float *state, const float *g, size_t n, uint32_t *first) {
    LAUNCH((update_chunks<RULE>), cuda_grid(BLOCKS_EACH, chunks), THREADS, 0, cuda_stream(), rules, chunk, chunks, w,
           state, g, (uint32_t)n, first);
    CUDA_CALL(cudaGetLastError());
}

#endif

#endif
