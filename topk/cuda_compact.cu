/* cuda_compact.cu: acc += grad, the entries that reach a key and the moments, in one pass over memory.
 *
 * Blocks take tiles by a counter. A tile is read, added to and written back at once; the entries that leave wait in
 * registers until the tile knows how many leave before it, from the words of earlier tiles. So the pairs come in index
 * order, whichever block is faster, and nothing is read twice. */
#include "base/cuda_device.h"
#include "topk/cuda_tile.h"

/* The entries of `mask` to their places, the first of the warp's to `first`. */
static __device__ __forceinline__ void write_pairs(const struct compaction &c, struct span s, uint32_t tile,
                                                   const piece &p, uint32_t mask, struct standing st, uint32_t first) {
#pragma unroll
    for (uint32_t row = 0; row < TILE_ROWS; row++) {
        const uint64_t quad = quad_of(tile, threadIdx.x, row);
        uint32_t at = first + standing_at(st, row);
#pragma unroll
        for (uint32_t place = 0; place < QUAD; place++) {
            if (!(mask >> (QUAD * row + place) & 1)) continue;
            if (at < c.cap) {
                c.idx[at] = uint32_t(span_entry(s, quad, place));
                c.val[at] = p.x[row][place];
            }
            at++;
        }
    }
}

/* Blocks of a multiprocessor: as many as there are registers for, as a tile waits for those before it. */
enum { BLOCKS_ADDING = 4, BLOCKS_READING = 6 };

template <bool ADD, bool SUMS>
static __global__ void __launch_bounds__(TILE_THREADS, ADD ? BLOCKS_ADDING : BLOCKS_READING)
    compact(struct compaction c) {
    __shared__ uint32_t of_warp[TILE_WARPS], before_tile, ticket;
    __shared__ struct sums sums_of_warp[SUMS ? TILE_WARPS : 1];
    const struct span s = span_of(c.acc, c.n);
    const uint32_t tiles = span_tiles(s), warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const uint32_t key = c.key_at ? *c.key_at : c.key;
    uint32_t next = 0;
    if (threadIdx.x == 0) ticket = tile_taken(&c.words->ticket, tiles);
    __syncthreads();
    for (uint32_t tile = ticket; tile < tiles; tile = ticket) {
        piece p;
        piece_take<ADD>(c.acc, c.grad, s, tile, p);
        if (threadIdx.x == 0) next = tile_taken(&c.words->ticket, tiles); /* early: the answer takes its time */
        const uint32_t mask = piece_reaching(p, key);
        const struct standing st = warp_standing(mask);
        if (lane == 0) of_warp[warp] = rows_sum(st.rows);
        if (SUMS) {
            const struct sums own = warp_sums(piece_sums(p, p.present));
            if (lane == 0) sums_of_warp[warp] = own;
        }
        __syncthreads();
        uint32_t first = 0;
        for (uint32_t w = 0; w < warp; w++) first += of_warp[w];
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
        if (mask) write_pairs(c, s, tile, p, mask, st, before_tile + first);
    }
    if (SUMS && block_is_last(&c.words->done)) tile_sums_fold(c.sums, tiles, sums_of_warp, c.answer);
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
