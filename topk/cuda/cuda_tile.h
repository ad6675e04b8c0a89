/* cuda_tile.h: what the store's kernels share: a thread's part of a tile, counts that are added up over warps, tiles
 * and blocks, and sums of doubles in a fixed order. All blocks have TILE_THREADS threads. See cuda_index.h. */
#ifndef ST_TOPK_CUDA_TILE_H
#define ST_TOPK_CUDA_TILE_H

#include "base/cuda/cuda_kernel.h"
#include "topk/cuda/cuda_kernels.h"

#if defined(ST_HOSTCUDA) || defined(__CUDACC__)

#define EVERY_LANE 0xffffffffu

static __device__ __forceinline__ uint32_t key_of(float x) {
    return __float_as_uint(x) & KEY_BITS;
}

/* A thread's entries of a tile: x[row][place], and which of them there are. */
struct piece {
    float x[TILE_ROWS][QUAD];
    uint32_t present; /* bit 4 row + place */
};

/* x[..] (+ y[..], when ADD, and the sum back to x). */
template <bool ADD> static __device__ __forceinline__ float piece_entry(float *x, const float *y, uint64_t i) {
    if (!ADD) return x[i];
    return x[i] = __fadd_rn(x[i], y[i]);
}

/* The first and the last tile, where some positions have no entry. */
template <bool ADD>
static __device__ __forceinline__ void piece_some(float *x, const float *y, struct span s, uint32_t tile, piece &p) {
    p.present = 0;
#pragma unroll
    for (uint32_t row = 0; row < TILE_ROWS; row++) {
        const uint64_t quad = quad_of(tile, threadIdx.x, row);
#pragma unroll
        for (uint32_t place = 0; place < QUAD; place++) {
            const bool has = span_has(s, quad, place);
            p.x[row][place] = has ? piece_entry<ADD>(x, y, span_entry(s, quad, place)) : 0.0f;
            p.present |= uint32_t(has) << (QUAD * row + place);
        }
    }
}

/* Reads 16 bytes at once; where y begins elsewhere between two 16-byte boundaries than x, its floats one by one. */
template <bool ADD>
static __device__ __forceinline__ void piece_whole(float *x, const float *y, struct span s, uint32_t tile, piece &p) {
    float *from = x - s.shift;
    const float *more = ADD ? y - s.shift : nullptr;
    float4 a[TILE_ROWS], b[TILE_ROWS];
#pragma unroll
    for (uint32_t row = 0; row < TILE_ROWS; row++)
        a[row] = load_streaming(reinterpret_cast<const float4 *>(from) + quad_of(tile, threadIdx.x, row));
    if (ADD && (uintptr_t)more % sizeof(float4) == 0) {
#pragma unroll
        for (uint32_t row = 0; row < TILE_ROWS; row++)
            b[row] = load_streaming(reinterpret_cast<const float4 *>(more) + quad_of(tile, threadIdx.x, row));
    } else if (ADD) {
#pragma unroll
        for (uint32_t row = 0; row < TILE_ROWS; row++) {
            const float *one = more + quad_of(tile, threadIdx.x, row) * QUAD;
            b[row] = make_float4(__ldg(one), __ldg(one + 1), __ldg(one + 2), __ldg(one + 3));
        }
    }
#pragma unroll
    for (uint32_t row = 0; row < TILE_ROWS; row++) {
        if (ADD) {
            a[row] = make_float4(__fadd_rn(a[row].x, b[row].x), __fadd_rn(a[row].y, b[row].y),
                                 __fadd_rn(a[row].z, b[row].z), __fadd_rn(a[row].w, b[row].w));
            store_streaming(reinterpret_cast<float4 *>(from) + quad_of(tile, threadIdx.x, row), a[row]);
        }
        p.x[row][0] = a[row].x, p.x[row][1] = a[row].y, p.x[row][2] = a[row].z, p.x[row][3] = a[row].w;
    }
    p.present = TILE_ALL;
}

/* This thread's entries of x; when ADD, x += y first. */
template <bool ADD>
static __device__ __forceinline__ void piece_take(float *x, const float *y, struct span s, uint32_t tile, piece &p) {
    if (span_fills(s, tile))
        piece_whole<ADD>(x, y, s, tile, p);
    else
        piece_some<ADD>(x, y, s, tile, p);
}
static __device__ __forceinline__ void piece_read(const float *x, struct span s, uint32_t tile, piece &p) {
    piece_take<false>(const_cast<float *>(x), nullptr, s, tile, p);
}

/* Those of them with a key >= `key`, as a mask. */
static __device__ __forceinline__ uint32_t piece_reaching(const piece &p, uint32_t key) {
    uint32_t mask = 0;
#pragma unroll
    for (uint32_t j = 0; j < TILE_ROWS * QUAD; j++) mask |= uint32_t(key_of(p.x[j / QUAD][j % QUAD]) >= key) << j;
    return mask & p.present;
}

/* -- counts -------------------------------------------------------------------------------------------------------- */

/* The sum over this lane and those before it. */
static __device__ __forceinline__ uint32_t warp_running(uint32_t value) {
    const uint32_t lane = threadIdx.x % LANES;
#pragma unroll
    for (uint32_t by = 1; by < LANES; by *= 2) {
        const uint32_t below = __shfl_up_sync(EVERY_LANE, value, by);
        if (lane >= by) value += below;
    }
    return value;
}

/* Where the entries of `mask` (as piece_reaching) stand among those of the warp. */
struct standing {
    uint32_t rows;  /* counts of the warp's rows */
    uint32_t lower; /* of each row, those of lower lanes */
};
static __device__ __forceinline__ struct standing warp_standing(uint32_t mask) {
    const uint32_t own = row_counts(mask), up_to = warp_running(own);
    return {__shfl_sync(EVERY_LANE, up_to, LANES - 1), up_to - own};
}
/* The first of a row's among the warp's. */
static __device__ __forceinline__ uint32_t standing_at(struct standing s, uint32_t row) {
    return rows_before(s.rows, row) + row_count(s.lower, row);
}

/* Of all tiles before this one, whose own count is `own`: decoupled look-back (Merrill and Garland, "Single-pass
 * Parallel Prefix Scan with Decoupled Look-back", NVIDIA 2016). Called by a whole warp. It waits for tiles that have
 * said nothing yet; tiles are taken in rising order, so that those are being worked on.
 *
 * A lane asks for LOOK_ROWS words at once: sums go forward by as many tiles as one look goes back, and a look takes as
 * long as a word from the L2 cache. With one row an H200 did 75 tiles a microsecond where memory gives 245
 * (select_alone_s, read_s, n = 133M, in results/measured/gpu-bench-select.json of commit 2da8ad14f373). */
enum { LOOK_ROWS = 4 };
static __device__ __forceinline__ uint32_t tiles_before(uint64_t *words, uint32_t launch, uint32_t tile, uint32_t own) {
    const uint32_t lane = threadIdx.x % LANES;
    uint32_t before = 0, end = tile; /* tiles from `end` on are added up */
    if (lane == 0) store_relaxed(words + tile, tile_word(launch, tile == 0 ? TILE_SUM : TILE_OWN, own));
    for (bool found = tile == 0; !found;) {
        uint64_t word[LOOK_ROWS];
#pragma unroll
        for (uint32_t row = 0; row < LOOK_ROWS; row++) {
            const uint32_t back = LANES * row + lane;
            /* before the first tile there is nothing */
            word[row] = back < end ? load_relaxed(words + end - 1 - back) : tile_word(launch, TILE_SUM, 0);
        }
        bool silent = false; /* the rest is asked for again */
#pragma unroll
        for (uint32_t row = 0; row < LOOK_ROWS; row++) {
            if (found || silent) continue;
            silent = __any_sync(EVERY_LANE, tile_state(word[row], launch) == TILE_SILENT);
            if (silent) continue;
            const uint32_t sums = __ballot_sync(EVERY_LANE, tile_state(word[row], launch) == TILE_SUM);
            const uint32_t last = sums ? uint32_t(__ffs(int(sums))) - 1 : LANES - 1;
            before += __reduce_add_sync(EVERY_LANE, lane <= last ? tile_count(word[row]) : 0u);
            end -= LANES; /* below 0 where a sum is found, after which it is not looked at */
            found = sums != 0;
        }
    }
    if (lane == 0 && tile > 0) store_relaxed(words + tile, tile_word(launch, TILE_SUM, before + own));
    return before;
}

/* -- blocks -------------------------------------------------------------------------------------------------------- */

/* The next tile that no block has taken. One that is >= tiles is the block's last; the last of all blocks' makes the
 * counter ready for the next launch. Called by one thread. */
static __device__ __forceinline__ uint32_t tile_taken(uint32_t *ticket, uint32_t tiles) {
    const uint32_t taken = atomicAdd(ticket, 1u);
    if (taken == tiles + gridDim.x - 1) *ticket = 0;
    return taken;
}

/* -- pairs on their way out of a block ------------------------------------------------------------------------------
 * They wait in shared memory and leave by threads side by side, since each write of a few bytes into the host's memory
 * is a message of its own on the bus. */

template <uint32_t ROOM> struct staged {
    uint32_t idx[ROOM];
    float val[ROOM];
};

/* The first `ready` of them to idx and val, by all threads of the block. A warp's writes begin at a boundary of its
 * 128 bytes, so that they are one message, and not two. */
template <uint32_t THREADS, uint32_t ROOM>
static __device__ __forceinline__ void staged_leave(const struct staged<ROOM> &from, uint32_t ready, uint32_t *idx,
                                                    float *val) {
    const uint32_t skew = uint32_t((uintptr_t)idx / sizeof *idx % LANES);
    for (uint32_t j = threadIdx.x; j < ready + skew; j += THREADS) {
        if (j < skew) continue;
        idx[j - skew] = from.idx[j - skew];
        val[j - skew] = from.val[j - skew];
    }
}

/* -- moments ------------------------------------------------------------------------------------------------------- */

struct sums {
    double sum, sum_abs, sum_square;
    uint32_t count, max_key;
};

static __device__ __forceinline__ void sums_join(struct sums &to, const struct sums &more) {
    to.sum = __dadd_rn(to.sum, more.sum);
    to.sum_abs = __dadd_rn(to.sum_abs, more.sum_abs);
    to.sum_square = __dadd_rn(to.sum_square, more.sum_square);
    to.count += more.count;
    to.max_key = max(to.max_key, more.max_key);
}

/* Of the entries in `mask`. x^2 is exact in double. */
static __device__ __forceinline__ struct sums piece_sums(const piece &p, uint32_t mask) {
    struct sums s = {0, 0, 0, uint32_t(__popc(mask)), 0};
#pragma unroll
    for (uint32_t j = 0; j < TILE_ROWS * QUAD; j++) {
        const float x = mask >> j & 1 ? p.x[j / QUAD][j % QUAD] : 0.0f;
        const double wide = x;
        s.sum = __dadd_rn(s.sum, wide);
        s.sum_abs = __dadd_rn(s.sum_abs, fabs(wide));
        s.sum_square = __fma_rn(wide, wide, s.sum_square);
        s.max_key = max(s.max_key, key_of(x));
    }
    return s;
}

/* Over the lanes: pairs 16 apart, then 8 ... The result is lane 0's. */
static __device__ __forceinline__ struct sums warp_sums(struct sums s) {
#pragma unroll
    for (uint32_t by = LANES / 2; by > 0; by /= 2) {
        s.sum = __dadd_rn(s.sum, __shfl_down_sync(EVERY_LANE, s.sum, by));
        s.sum_abs = __dadd_rn(s.sum_abs, __shfl_down_sync(EVERY_LANE, s.sum_abs, by));
        s.sum_square = __dadd_rn(s.sum_square, __shfl_down_sync(EVERY_LANE, s.sum_square, by));
    }
    s.count = __reduce_add_sync(EVERY_LANE, s.count);
    s.max_key = __reduce_max_sync(EVERY_LANE, s.max_key);
    return s;
}

/* Of the block's warps, [TILE_WARPS] in shared memory; in their order. Called by one thread. */
static __device__ __forceinline__ struct sums block_sums(const struct sums *of_warp) {
    struct sums s = of_warp[0];
    for (uint32_t w = 1; w < TILE_WARPS; w++) sums_join(s, of_warp[w]);
    return s;
}

static __device__ __forceinline__ void tile_sums_put(const struct tile_sums &to, uint32_t tile, const struct sums &s) {
    to.sum[tile] = s.sum, to.sum_abs[tile] = s.sum_abs, to.sum_square[tile] = s.sum_square;
    to.count[tile] = s.count, to.max_key[tile] = s.max_key;
}

/* The tiles' sums to *answer, by the last block: thread t has tiles t, t + TILE_THREADS ..., so that the order of the
 * additions depends on the number of tiles alone. of_warp: as above. Returns their count, to thread 0. */
static __device__ __forceinline__ uint32_t tile_sums_fold(const struct tile_sums &of, uint32_t tiles,
                                                          struct sums *of_warp, struct store_answer *answer) {
    struct sums s = {0, 0, 0, 0, 0};
#pragma unroll 8 /* loads of eight tiles on their way at once, while the other blocks have nothing to do any more */
    for (uint32_t tile = threadIdx.x; tile < tiles; tile += TILE_THREADS)
        sums_join(s, {__ldcg(of.sum + tile), __ldcg(of.sum_abs + tile), __ldcg(of.sum_square + tile),
                      __ldcg(of.count + tile), __ldcg(of.max_key + tile)});
    s = warp_sums(s);
    if (threadIdx.x % LANES == 0) of_warp[threadIdx.x / LANES] = s;
    __syncthreads();
    if (threadIdx.x > 0) return 0;
    s = block_sums(of_warp);
    answer->sum = s.sum, answer->sum_abs = s.sum_abs, answer->sum_square = s.sum_square;
    answer->max_key = s.max_key;
    return s.count;
}

#endif

#endif
