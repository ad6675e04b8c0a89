/* cuda_bias.cu: see cuda_bias.h. Walks over channels as cuda_norm.cu does (cuda_index.h): a thread stays on the same
 * channels and reads 16 bytes at once. It adds up in float, all beyond it in double, and in an order that does not
 * depend on which block is done first: the last one adds up the blocks' parts. */
#include "nets/cuda_bias.h"

#include "base/cuda_device.h"
#include "nets/cuda_values.h"

enum {
    THREADS = CUDA_WALK_THREADS,
    WARP = 32,
    BLOCKS_EACH = 4, /* on each multiprocessor */
    SUM_STEPS = 4    /* of a thread at least, so that the parts to be added up in the end are not too many */
};

template <class T, int V> static __global__ void __launch_bounds__(THREADS) add(cuda_walk w, const float *b, T *y) {
    const uint32_t column = threadIdx.x % w.columns, slab = blockIdx.y, stride = gridDim.x * w.rows;
    if (!cuda_walk_takes_part(&w, slab, threadIdx.x)) return;
    float mine[V];
    for (int l = 0; l < V; l++) mine[l] = b[cuda_walk_channel(&w, slab, column, (uint32_t)l)];
    for (uint32_t i = blockIdx.x * w.rows + threadIdx.x / w.columns; i < w.steps; i += stride) {
        vector_of<T, V> *at = (vector_of<T, V> *)y + cuda_walk_place(&w, slab, column, i);
        vector_of<T, V> v = *at;
        for (int l = 0; l < V; l++) v.value[l] = stored<T>(load(v.value[l]) + mine[l]);
        *at = v;
    }
}

/* The threads' sums, over the rows of the block, to partial[channel][part]. */
template <int V, bool LAST>
static __device__ void sum_block(const cuda_walk &w, const float (&sum)[V], double *partial) {
    constexpr int LANES = LAST ? V : 1; /* channels of a vector */
    SHARED_DYNAMIC(double, sums);       /* [LANES][THREADS] */
    const uint32_t column = threadIdx.x % w.columns, row = threadIdx.x / w.columns, slab = blockIdx.y;
    double *mine = sums + threadIdx.x;
    for (int l = 0; l < LANES; l++) mine[l * THREADS] = sum[l];
    for (int l = LANES; l < V; l++) mine[0] += sum[l];
    __syncthreads();
    for (uint32_t half = THREADS / 2; half > 0; half /= 2) {
        if (row < half && row + half < w.rows)
            for (int l = 0; l < LANES; l++) mine[l * THREADS] += mine[l * THREADS + half * w.columns];
        __syncthreads();
    }
    if (row > 0 || !cuda_walk_takes_part(&w, slab, threadIdx.x)) return;
    for (int l = 0; l < LANES; l++)
        partial[(size_t)cuda_walk_channel(&w, slab, column, (uint32_t)l) * gridDim.x + blockIdx.x] = mine[l * THREADS];
}

/* The last block: a warp for each channel. */
static __device__ void sum_parts(uint32_t channels, const double *partial, float *db) {
    for (uint32_t c = threadIdx.x / WARP; c < channels; c += THREADS / WARP) {
        double sum = 0;
        for (uint32_t i = threadIdx.x % WARP; i < gridDim.x; i += WARP) sum += __ldcg(partial + c * gridDim.x + i);
        for (int by = WARP / 2; by > 0; by /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, by);
        if (threadIdx.x % WARP == 0) db[c] = (float)sum;
    }
}

template <class T, int V, bool LAST>
static __global__ void __launch_bounds__(THREADS)
    gradient(cuda_walk w, const T *dy, double *partial, unsigned *done, float *db) {
    __shared__ bool last;
    const uint32_t column = threadIdx.x % w.columns, slab = blockIdx.y, stride = gridDim.x * w.rows;
    float sum[V] = {};
    if (cuda_walk_takes_part(&w, slab, threadIdx.x)) {
        for (uint32_t i = blockIdx.x * w.rows + threadIdx.x / w.columns; i < w.steps; i += stride) {
            const vector_of<T, V> v = ((const vector_of<T, V> *)dy)[cuda_walk_place(&w, slab, column, i)];
            for (int l = 0; l < V; l++) sum[l] += load(v.value[l]);
        }
    }
    sum_block<V, LAST>(w, sum, partial);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicAdd(done, 1u) == gridDim.x * gridDim.y - 1;
        if (last) *done = 0;
    }
    __syncthreads();
    __threadfence();
    if (last) sum_parts(w.shape.channels, partial, db);
}

/* -- launchers ---------------------------------------------------------------------------------------------------- */

extern "C" void cuda_bias_plan(struct cuda_bias *bias, const struct cuda_shape *shape, bool is_bf16) {
    *bias = cuda_bias{};
    bias->walk = cuda_walk_of(shape, is_bf16 ? 8 : 4); /* 16 bytes */
    bias->is_bf16 = is_bf16;
}

/* Blocks in x: BLOCKS_EACH on every multiprocessor together with those in y, but none whose threads have fewer than
 * `least` steps. */
static unsigned parts_of(const cuda_walk *w, uint32_t least) {
    const uint32_t each = w->rows * least, most = (w->steps + each - 1) / each;
    const unsigned parts = (cuda_grid(BLOCKS_EACH, SIZE_MAX) + w->slabs - 1) / w->slabs;
    return parts < most ? parts : most;
}

extern "C" size_t cuda_bias_parts(const struct cuda_bias *bias) {
    return parts_of(&bias->walk, SUM_STEPS);
}

/* One of the six kinds of tensors: element type, elements at once, whether channels come last. */
template <class T, int V, bool LAST> struct bias_of {
    static void forward(const cuda_bias *k, const float *b, void *y) {
        LAUNCH((add<T, V>), dim3(parts_of(&k->walk, 1), k->walk.slabs), THREADS, 0, cuda_stream(), k->walk, b, (T *)y);
    }
    static void backward(const cuda_bias *k, const void *dy, float *db) {
        LAUNCH((gradient<T, V, LAST>), dim3(parts_of(&k->walk, SUM_STEPS), k->walk.slabs), THREADS,
               (LAST ? V : 1) * THREADS * sizeof(double), cuda_stream(), k->walk, (const T *)dy, k->partial, k->done,
               db);
    }
};

#define FOR_KIND(k, call)                                                                                              \
    do {                                                                                                               \
        const bool wide = (k)->walk.vector > 1, last = (k)->walk.shape.last;                                           \
        if ((k)->is_bf16 && wide)                                                                                      \
            bias_of<bf16, 8, true>::call;                                                                              \
        else if ((k)->is_bf16)                                                                                         \
            bias_of<bf16, 1, true>::call;                                                                              \
        else if (last && wide)                                                                                         \
            bias_of<float, 4, true>::call;                                                                             \
        else if (last)                                                                                                 \
            bias_of<float, 1, true>::call;                                                                             \
        else if (wide)                                                                                                 \
            bias_of<float, 4, false>::call;                                                                            \
        else                                                                                                           \
            bias_of<float, 1, false>::call;                                                                            \
        CUDA_CALL(cudaGetLastError());                                                                                 \
    } while (0)

extern "C" void cuda_bias_forward(const struct cuda_bias *bias, const float *b, void *y) {
    FOR_KIND(bias, forward(bias, b, y));
}

extern "C" void cuda_bias_backward(const struct cuda_bias *bias, const void *dy, float *db) {
    FOR_KIND(bias, backward(bias, dy, db));
}
