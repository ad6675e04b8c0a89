/* cuda_sgd.cu: see cuda_sgd.h. */
#include "nets/cuda_sgd.h"

#include "base/cuda_device.h"
#include "nets/cuda_values.h"

enum { THREADS = 256, BLOCKS_EACH = 8, WIDE = 4 };

struct rates {
    float mu, wd, lr;
};

/* Each operation with one rounding, as nets/sgd.c has them. */
static __device__ __forceinline__ void update(float &w, float &v, float g, rates r) {
    v = __fadd_rn(__fmul_rn(r.mu, v), __fadd_rn(g, __fmul_rn(r.wd, w)));
    w = __fsub_rn(w, __fmul_rn(r.lr, v));
}

/* NaN and infinities have all exponent bits set. */
static __device__ __forceinline__ bool bad(float value) {
    return (__float_as_uint(value) & 0x7f800000u) == 0x7f800000u;
}

/* Vectors of V from 0 on, then what is left, element by element. */
template <int V> static __global__ void step(float *w, float *v, const float *g, uint32_t n, rates r, uint32_t *first) {
    typedef vector_of<float, V> vector;
    const uint32_t me = blockIdx.x * THREADS + threadIdx.x, all = gridDim.x * THREADS, vectors = n / V;
    uint32_t lowest = UINT32_MAX;
    for (uint32_t i = me; i < vectors; i += all) {
        vector to_w = ((const vector *)w)[i], to_v = ((const vector *)v)[i];
        const vector from = ((const vector *)g)[i];
        for (int l = 0; l < V; l++) {
            update(to_w.value[l], to_v.value[l], from.value[l], r);
            if (bad(to_w.value[l])) lowest = min(lowest, i * V + (uint32_t)l);
        }
        ((vector *)w)[i] = to_w;
        ((vector *)v)[i] = to_v;
    }
    for (uint32_t i = vectors * V + me; i < n; i += all) {
        update(w[i], v[i], g[i], r);
        if (bad(w[i])) lowest = min(lowest, i);
    }
    if (lowest != UINT32_MAX) atomicMin(first, lowest);
}

extern "C" void cuda_sgd_step(float *w, float *v, const float *g, size_t n, float mu, float wd, float lr,
                              uint32_t *first) {
    const bool wide = ((uintptr_t)w | (uintptr_t)v | (uintptr_t)g) % (WIDE * sizeof(float)) == 0;
    const unsigned grid = cuda_grid(BLOCKS_EACH, (n / WIDE + THREADS - 1) / THREADS);
    const rates r = {mu, wd, lr};
    CUDA_CALL(cudaMemsetAsync(first, 0xff, sizeof *first, cuda_stream()));
    if (wide)
        LAUNCH((step<WIDE>), grid, THREADS, 0, cuda_stream(), w, v, g, (uint32_t)n, r, first);
    else
        LAUNCH((step<1>), grid, THREADS, 0, cuda_stream(), w, v, g, (uint32_t)n, r, first);
    CUDA_CALL(cudaGetLastError());
}
