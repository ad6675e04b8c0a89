/* cuda_moments.cu: one read of an array: moments, a count, the first entry that is not finite. */
#include "base/cuda/cuda_device.h"
#include "topk/cuda/cuda_tile.h"

/* Each tile's sums on their own, so that the result does not depend on which block has which tile. */
static __global__ void __launch_bounds__(TILE_THREADS)
    moments(const float *x, uint64_t n, uint32_t key, struct tile_sums sums, struct store_words *words,
            struct store_answer *answer) {
    __shared__ struct sums of_warp[TILE_WARPS];
    const struct span s = span_of(x, n);
    const uint32_t tiles = span_tiles(s);
    for (uint32_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        piece p;
        piece_read(x, s, tile, p);
        const struct sums own = warp_sums(piece_sums(p, piece_reaching(p, key)));
        __syncthreads(); /* the tile before has been written */
        if (threadIdx.x % LANES == 0) of_warp[threadIdx.x / LANES] = own;
        __syncthreads();
        if (threadIdx.x == 0) tile_sums_put(sums, tile, block_sums(of_warp));
    }
    if (!block_is_last(&words->done)) return;
    const uint32_t count = tile_sums_fold(sums, tiles, of_warp, answer);
    if (threadIdx.x == 0) answer->count = count;
}

static __global__ void __launch_bounds__(TILE_THREADS)
    count(const float *x, uint64_t n, uint32_t key, struct store_words *words, struct store_answer *answer) {
    const struct span s = span_of(x, n);
    const uint32_t tiles = span_tiles(s);
    uint32_t own = 0;
    for (uint32_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        piece p;
        piece_read(x, s, tile, p);
        own += uint32_t(__popc(piece_reaching(p, key)));
    }
    own = __reduce_add_sync(EVERY_LANE, own);
    if (threadIdx.x % LANES == 0 && own > 0) atomicAdd(&words->total, own);
    if (block_is_last(&words->done) && threadIdx.x == 0) answer->count = atomicExch(&words->total, 0u);
}

static __global__ void __launch_bounds__(TILE_THREADS)
    nonfinite(const float *x, uint64_t n, struct store_words *words, struct store_answer *answer) {
    const struct span s = span_of(x, n);
    const uint32_t tiles = span_tiles(s);
    for (uint32_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        piece p;
        piece_read(x, s, tile, p);
        const uint32_t mask = piece_reaching(p, KEY_NOT_FINITE);
        if (!mask) continue;
        const uint32_t first = uint32_t(__ffs(int(mask))) - 1;
        const uint64_t entry = span_entry(s, quad_of(tile, threadIdx.x, first / QUAD), first % QUAD);
        atomicMin(&words->bad, (unsigned long long)entry);
    }
    if (block_is_last(&words->done) && threadIdx.x == 0) answer->bad = atomicExch(&words->bad, ~0ull);
}

static unsigned grid_for(const float *x, uint64_t n) {
    return cuda_grid(4, span_tiles(span_of(x, n)));
}

extern "C" void store_launch_moments(const float *x, uint64_t n, uint32_t key, const struct tile_sums *sums,
                                     struct store_words *words, struct store_answer *answer) {
    LAUNCH(moments, grid_for(x, n), TILE_THREADS, 0, cuda_stream(), x, n, key, *sums, words, answer);
    CUDA_CALL(cudaGetLastError());
}

extern "C" void store_launch_count(const float *x, uint64_t n, uint32_t key, struct store_words *words,
                                   struct store_answer *answer) {
    LAUNCH(count, grid_for(x, n), TILE_THREADS, 0, cuda_stream(), x, n, key, words, answer);
    CUDA_CALL(cudaGetLastError());
}

extern "C" void store_launch_nonfinite(const float *x, uint64_t n, struct store_words *words,
                                       struct store_answer *answer) {
    LAUNCH(nonfinite, grid_for(x, n), TILE_THREADS, 0, cuda_stream(), x, n, words, answer);
    CUDA_CALL(cudaGetLastError());
}
