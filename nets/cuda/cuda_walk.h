/* cuda_walk.h: what kernels share that walk over the channels of a tensor (cuda_index.h): where a thread is, sums of
 * each channel, launches for every kind of tensor. Empty where no compiler for kernels reads it.
 *
 * A sum over a channel is made of parts, one of each block that reads it: a thread adds up in float, all beyond it in
 * double, and a warp adds up the parts, so that no order depends on which block came when. Where a slab is a channel,
 * that is a warp of the slab's last block; where channels come last, all blocks read all channels, and a launch of its
 * own has a warp for each: one block alone would take longer for them than the kernel before it. */
#ifndef ST_NETS_CUDA_WALK_H
#define ST_NETS_CUDA_WALK_H

#include "base/cuda/cuda_device.h"
#include "nets/cuda/cuda_values.h"

#if defined(ST_HOSTCUDA) || defined(__CUDACC__)

enum {
    THREADS = CUDA_WALK_THREADS,
    WARP = 32,
    BLOCKS_EACH = 4, /* on each multiprocessor: as many as fit at once, whatever the kernel */
    SUM_STEPS = 4    /* of a thread at least, so that the parts to be added up in the end are not too many */
};

/* What a thread is in its walk. */
struct walker {
    uint32_t column, row, slab, first, stride;
    bool takes_part;
};

static __device__ __forceinline__ walker walker_of(const cuda_walk &w) {
    walker me;
    me.column = threadIdx.x % w.columns;
    me.row = threadIdx.x / w.columns;
    me.slab = blockIdx.y;
    me.first = blockIdx.x * w.rows + me.row;
    me.stride = gridDim.x * w.rows;
    me.takes_part = cuda_walk_takes_part(&w, me.slab, threadIdx.x);
    return me;
}

/* The `V` numbers of array [c] that belong to the elements of a thread's vectors. */
template <int V>
static __device__ __forceinline__ void of_channels(const cuda_walk &w, const walker &me, const float *array,
                                                   float (&mine)[V]) {
    for (int l = 0; l < V; l++) mine[l] = array[cuda_walk_channel(&w, me.slab, me.column, (uint32_t)l)];
}

/* The threads' N sums, over the rows of the block, to partial[channel][N][part]. */
template <int N, int V, bool LAST>
static __device__ void sum_block(const cuda_walk &w, const walker &me, const float (&sum)[N][V], double *partial) {
    constexpr int LANES = LAST ? V : 1; /* channels of a vector */
    SHARED_DYNAMIC(double, sums);       /* [N][LANES][THREADS] */
    double *mine = sums + threadIdx.x;
    for (int i = 0; i < N; i++) {
        for (int l = 0; l < LANES; l++) mine[(i * LANES + l) * THREADS] = sum[i][l];
        for (int l = LANES; l < V; l++) mine[i * LANES * THREADS] += sum[i][l];
    }
    __syncthreads();
    for (uint32_t half = THREADS / 2; half > 0; half /= 2) {
        if (me.row < half && me.row + half < w.rows)
            for (int i = 0; i < N * LANES; i++) mine[i * THREADS] += mine[i * THREADS + half * w.columns];
        __syncthreads();
    }
    if (me.row > 0 || !me.takes_part) return;
    for (int l = 0; l < LANES; l++) {
        const uint32_t channel = cuda_walk_channel(&w, me.slab, me.column, (uint32_t)l);
        double *to = partial + (size_t)channel * N * gridDim.x + blockIdx.x;
        for (int i = 0; i < N; i++) to[i * gridDim.x] = mine[(i * LANES + l) * THREADS];
    }
}

/* Its dynamic shared memory. */
template <int N, int V, bool LAST> static size_t sum_block_shared() {
    return N * (LAST ? V : 1) * THREADS * sizeof(double);
}

/* The parts of a channel's N sums added up by a warp, the same on every lane. A lane asks for several of its parts
 * before it adds them: they come from L2, and one after the other they would take as long as all else. */
template <int N>
static __device__ void sum_parts(const double *partial, uint32_t parts, uint32_t channel, double (&sum)[N]) {
    constexpr uint32_t DEEP = 4;
    const double *part = partial + (size_t)channel * N * parts;
    for (int i = 0; i < N; i++) sum[i] = 0;
    for (uint32_t first = threadIdx.x % WARP; first < parts; first += DEEP * WARP) {
        double some[N][DEEP];
        for (int i = 0; i < N; i++)
            for (uint32_t k = 0; k < DEEP; k++) {
                const uint32_t p = first + k * WARP;
                some[i][k] = p < parts ? __ldcg(part + i * parts + p) : 0;
            }
        for (int i = 0; i < N; i++)
            for (uint32_t k = 0; k < DEEP; k++) sum[i] += some[i][k];
    }
    for (int i = 0; i < N; i++)
        for (int by = WARP / 2; by > 0; by /= 2) sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], by);
}

/* After sum_block: is this a warp that has its slab's channel to end? */
template <bool LAST> static __device__ __forceinline__ bool ends_channel(uint32_t slab, uint32_t *done) {
    return !LAST && block_is_last_of(gridDim.x, done + slab) && threadIdx.x < WARP;
}
/* Of the launch that ends all channels: that of this warp, which there need not be. */
static __device__ __forceinline__ uint32_t channel_of_warp() {
    return (blockIdx.x * THREADS + threadIdx.x) / WARP;
}
static inline unsigned channel_grid(uint32_t channels) {
    return (channels + THREADS / WARP - 1) / (THREADS / WARP);
}

/* Blocks in x: BLOCKS_EACH on every multiprocessor together with those in y, but none whose threads have fewer than
 * `least` steps. */
static inline unsigned walk_parts(const cuda_walk *w, uint32_t least) {
    const uint32_t each = w->rows * least, most = (w->steps + each - 1) / each;
    const unsigned parts = (cuda_grid(BLOCKS_EACH, SIZE_MAX) + w->slabs - 1) / w->slabs;
    return parts < most ? parts : most;
}
static inline dim3 walk_grid(const cuda_walk *w, uint32_t least) {
    return dim3(walk_parts(w, least), w->slabs);
}

/* kernels<T, V, LAST>::call, for the kind of tensor: element type, elements at once, whether channels come last. */
#define WALK_FOR_KIND(kernels, walk, is_bf16, call)                                                                    \
    do {                                                                                                               \
        const bool wide = (walk).vector > 1, last = (walk).shape.last;                                                 \
        if ((is_bf16) && wide)                                                                                         \
            kernels<bf16, 8, true>::call;                                                                              \
        else if (is_bf16)                                                                                              \
            kernels<bf16, 1, true>::call;                                                                              \
        else if (last && wide)                                                                                         \
            kernels<float, 4, true>::call;                                                                             \
        else if (last)                                                                                                 \
            kernels<float, 1, true>::call;                                                                             \
        else if (wide)                                                                                                 \
            kernels<float, 4, false>::call;                                                                            \
        else                                                                                                           \
            kernels<float, 1, false>::call;                                                                            \
    } while (0)

#endif

#endif
