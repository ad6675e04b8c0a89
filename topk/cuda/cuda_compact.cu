/* cuda_compact.cu: acc += grad, the entries that reach a key and the moments, in one pass over memory.
 *
 * Blocks take tiles in order from a counter. A tile is read, added to and written back once; its selected entries
 * stay in registers until the tile knows, from the words of earlier tiles, how many entries were selected before it.
 * So the pairs are in index order, whichever block is faster, and nothing is read twice. */
#include "base/cuda/cuda_device.h"
#include "topk/cuda/cuda_tile.h"

enum { STAGED = 1024 }; /* pairs of a tile that leave at once */

/* What is known of the entries that a thread has found. */
struct seen {
    uint32_t least, most, reaching;
};

/* The entries of `mask` whose numbers in the tile are from .. from + STAGED - 1; the thread's first is `first`. */
static __device__ __forceinline__ void stage_pairs(const struct compaction &c, struct span s, uint32_t tile,
                                                   const piece &p, uint32_t mask, struct standing st, uint32_t first,
                                                   uint32_t from, struct staged<STAGED> &to, struct seen &seen) {
#pragma unroll
    for (uint32_t row = 0; row < TILE_ROWS; row++) {
        const uint64_t quad = quad_of(tile, threadIdx.x, row);
        uint32_t at = first + standing_at(st, row) - from;
#pragma unroll
        for (uint32_t place = 0; place < QUAD; place++) {
            if (!(mask >> (QUAD * row + place) & 1)) continue;
            if (at < STAGED) { /* those before `from` are far above */
                const float x = p.x[row][place];
                const uint32_t key = key_of(x);
                to.idx[at] = uint32_t(span_entry(s, quad, place));
                to.val[at] = x;
                seen.least = min(seen.least, key), seen.most = max(seen.most, key);
                seen.reaching += key >= c.probe;
            }
            at++;
        }
    }
}

/* All pairs of a tile, `count` of them, to their places from `before` on. By all threads. */
static __device__ __forceinline__ void write_pairs(const struct compaction &c, struct span s, uint32_t tile,
                                                   const piece &p, uint32_t mask, struct standing st, uint32_t first,
                                                   uint32_t count, uint32_t before, struct staged<STAGED> &staged,
                                                   struct seen &seen) {
    for (uint32_t from = 0; from < count; from += STAGED) {
        if (mask) stage_pairs(c, s, tile, p, mask, st, first, from, staged, seen);
        __syncthreads();
        const uint32_t at = before + from, room = at < c.cap ? c.cap - at : 0;
        staged_leave<TILE_THREADS>(staged, min(min(count - from, uint32_t(STAGED)), room), c.idx + at, c.val + at);
        __syncthreads();
    }
}

/* What all threads have seen to the answer, by the last block. */
static __device__ __forceinline__ void tell_seen(const struct compaction &c, struct seen seen) {
    seen.least = __reduce_min_sync(EVERY_LANE, seen.least);
    seen.most = __reduce_max_sync(EVERY_LANE, seen.most);
    seen.reaching = __reduce_add_sync(EVERY_LANE, seen.reaching);
    if (threadIdx.x % LANES == 0 && seen.least != UINT32_MAX) {
        atomicMin(&c.words->least, seen.least);
        atomicMax(&c.words->most, seen.most);
        atomicAdd(&c.words->reaching, seen.reaching);
    }
}
static __device__ __forceinline__ void publish_seen(const struct compaction &c) {
    struct store_words *w = c.words;
    c.answer->least = __ldcg(&w->least), c.answer->most = __ldcg(&w->most);
    c.answer->reaching = __ldcg(&w->reaching);
    w->least = UINT32_MAX, w->most = 0, w->reaching = 0;
}

/* Blocks per multiprocessor: as many as the registers allow, because tiles wait for earlier ones and others should
 * work meanwhile. */
enum { BLOCKS_ADDING = 4, BLOCKS_READING = 6 };

template <bool ADD, bool SUMS>
static __global__ void __launch_bounds__(TILE_THREADS, ADD ? BLOCKS_ADDING : BLOCKS_READING)
    compact(struct compaction c) {
    __shared__ uint32_t of_warp[TILE_WARPS], before_tile, ticket;
    __shared__ struct sums sums_of_warp[SUMS ? TILE_WARPS : 1];
    __shared__ struct staged<STAGED> staged;
    const struct span s = span_of(c.acc, c.n);
    const uint32_t tiles = span_tiles(s), warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const uint32_t key = c.key_at ? *c.key_at : c.key;
    uint32_t next = 0;
    struct seen seen = {UINT32_MAX, 0, 0};
    if (threadIdx.x == 0) ticket = tile_taken(&c.words->ticket, tiles);
    __syncthreads();
    for (uint32_t tile = ticket; tile < tiles; tile = ticket) {
        piece p;
        piece_take<ADD>(c.acc, c.grad, s, tile, p);
        if (threadIdx.x == 0)
            next = tile_taken(&c.words->ticket, tiles); /* asked for early, since it takes long to arrive */
        const uint32_t mask = piece_reaching(p, key);
        const struct standing st = warp_standing(mask);
        if (lane == 0) of_warp[warp] = rows_sum(st.rows);
        if (SUMS) {
            const struct sums own = warp_sums(piece_sums(p, p.present));
            if (lane == 0) sums_of_warp[warp] = own;
        }
        __syncthreads();
        uint32_t first = 0, all = 0;
        for (uint32_t w = 0; w < TILE_WARPS; w++) {
            if (w < warp) first += of_warp[w];
            all += of_warp[w];
        }
        if (warp == 0) {
            const uint32_t own = __reduce_add_sync(EVERY_LANE, lane < TILE_WARPS ? of_warp[lane] : 0u);
            const uint32_t before = tiles_before(c.tiles, c.launch, tile, own);
            if (lane == 0) {
                before_tile = before;
                ticket = next;
                if (tile == tiles - 1) c.words->count = c.answer->count = before + own;
            }
        }
        if (SUMS && threadIdx.x == LANES) tile_sums_put(c.sums, tile, block_sums(sums_of_warp));
        __syncthreads();
        write_pairs(c, s, tile, p, mask, st, first, all, before_tile, staged, seen);
    }
    tell_seen(c, seen);
    if (!block_is_last(&c.words->done)) return;
    if (SUMS) tile_sums_fold(c.sums, tiles, sums_of_warp, c.answer);
    if (threadIdx.x == 0) publish_seen(c);
}

extern "C" void store_launch_compaction(const struct compaction *c) {
    const unsigned grid = cuda_grid(c->grad ? BLOCKS_ADDING : BLOCKS_READING, span_tiles(span_of(c->acc, c->n)));
    if (c->grad && c->sums.sum)
        LAUNCH((compact<true, true>), grid, TILE_THREADS, 0, cuda_stream(), *c);
    else if (c->grad)
        LAUNCH((compact<true, false>), grid, TILE_THREADS, 0, cuda_stream(), *c);
    else
        LAUNCH((compact<false, false>), grid, TILE_THREADS, 0, cuda_stream(), *c);
    CUDA_CALL(cudaGetLastError());
}
