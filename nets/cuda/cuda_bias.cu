/* cuda_bias.cu: see cuda_bias.h, and cuda_walk.h for the way that a thread takes and how sums are made. */
#include "nets/cuda/cuda_bias.h"

#include "nets/cuda/cuda_walk.h"

template <class T, int V> static __global__ void __launch_bounds__(THREADS) add(cuda_walk w, const float *b, T *y) {
    const walker me = walker_of(w);
    if (!me.takes_part) return;
    float mine[V];
    of_channels(w, me, b, mine);
    for (uint32_t i = me.first; i < w.steps; i += me.stride) {
        vector_of<T, V> *at = (vector_of<T, V> *)y + cuda_walk_place(&w, me.slab, me.column, i);
        vector_of<T, V> v = *at;
        for (int l = 0; l < V; l++) v.value[l] = stored<T>(load(v.value[l]) + mine[l]);
        *at = v;
    }
}

/* A warp for its channel. */
static __device__ void give_sum(const double *partial, uint32_t parts, uint32_t c, bool adds, float *db) {
    double sum[1];
    sum_parts<1>(partial, parts, c, sum);
    if (threadIdx.x % WARP == 0) db[c] = adds ? db[c] + (float)sum[0] : (float)sum[0];
}

static __global__ void __launch_bounds__(THREADS)
    give_sums(uint32_t channels, const double *partial, uint32_t parts, bool adds, float *db) {
    const uint32_t c = channel_of_warp();
    if (c < channels) give_sum(partial, parts, c, adds, db);
}

template <class T, int V, bool LAST>
static __global__ void __launch_bounds__(THREADS)
    gradient(cuda_walk w, const T *dy, double *partial, unsigned *done, bool adds, float *db) {
    const walker me = walker_of(w);
    float sum[1][V] = {};
    if (me.takes_part) {
        for (uint32_t i = me.first; i < w.steps; i += me.stride) {
            const vector_of<T, V> v = ((const vector_of<T, V> *)dy)[cuda_walk_place(&w, me.slab, me.column, i)];
            for (int l = 0; l < V; l++) sum[0][l] += load(v.value[l]);
        }
    }
    sum_block<1, V, LAST>(w, me, sum, partial);
    if (ends_channel<LAST>(me.slab, done)) give_sum(partial, gridDim.x, me.slab, adds, db);
    if constexpr (LAST) {
        if (gridDim.x > 1 || me.row > 0 || !me.takes_part) return;
        for (int l = 0; l < V; l++) { /* one part: these are the threads that have just written it */
            const uint32_t c = cuda_walk_channel(&w, me.slab, me.column, (uint32_t)l);
            db[c] = adds ? db[c] + (float)partial[c] : (float)partial[c];
        }
    }
}

/* -- launchers ---------------------------------------------------------------------------------------------------- */

extern "C" void cuda_bias_plan(struct cuda_bias *bias, const struct cuda_shape *shape, bool is_bf16) {
    *bias = cuda_bias{};
    bias->walk = cuda_walk_of(shape, is_bf16 ? 8 : 4); /* 16 bytes */
    bias->is_bf16 = is_bf16;
}

extern "C" size_t cuda_bias_parts(const struct cuda_bias *bias) {
    return walk_parts(&bias->walk, SUM_STEPS);
}

/* One of the six kinds of tensors. */
template <class T, int V, bool LAST> struct bias_of {
    static void forward(const cuda_bias *k, const float *b, void *y) {
        LAUNCH((add<T, V>), walk_grid(&k->walk, 1), THREADS, 0, cuda_stream(), k->walk, b, (T *)y);
        CUDA_CALL(cudaGetLastError());
    }
    static void backward(const cuda_bias *k, const void *dy, bool adds, float *db) {
        LAUNCH((gradient<T, V, LAST>), walk_grid(&k->walk, SUM_STEPS), THREADS, (sum_block_shared<1, V, LAST>()),
               cuda_stream(), k->walk, (const T *)dy, k->partial, k->done, adds, db);
        CUDA_CALL(cudaGetLastError());
        const uint32_t channels = k->walk.shape.channels, parts = walk_parts(&k->walk, SUM_STEPS);
        if (LAST && parts > 1)
            LAUNCH(give_sums, channel_grid(channels), THREADS, 0, cuda_stream(), channels, (const double *)k->partial,
                   parts, adds, db);
        CUDA_CALL(cudaGetLastError());
    }
};

extern "C" void cuda_bias_forward(const struct cuda_bias *bias, const float *b, void *y) {
    WALK_FOR_KIND(bias_of, bias->walk, bias->is_bf16, forward(bias, b, y));
}

extern "C" void cuda_bias_backward(const struct cuda_bias *bias, const void *dy, bool adds, float *db) {
    WALK_FOR_KIND(bias_of, bias->walk, bias->is_bf16, backward(bias, dy, adds, db));
}
