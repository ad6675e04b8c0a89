/* cuda_cut.cu: exactly the k largest, in order, once the k-th key is known: all that are larger, and of those that are
 * equal to it the first. One read, as in cuda_compact.cu, with two counts that are passed from tile to tile. */
#include "base/cuda/cuda_device.h"
#include "topk/cuda/cuda_tile.h"

/* What comes before a thread's row: in the tiles before, in the warps before, in the warp. */
struct ranks {
    uint32_t larger, equal;
};

/* The pairs of a row to their places among those of the tile, whose first goes to out.idx[tile_at]. */
static __device__ __forceinline__ void stage_row(const struct cut_out &out, struct span s, uint64_t quad,
                                                 const float *x, uint32_t larger, uint32_t equal, struct ranks before,
                                                 uint32_t ties, uint32_t tile_at, struct staged<TILE> &to) {
#pragma unroll
    for (uint32_t place = 0; place < QUAD; place++) {
        const bool over = larger >> place & 1, even = equal >> place & 1;
        if (over || (even && before.equal < ties)) {
            const uint32_t at = top_place(before.larger, before.equal, ties) - tile_at;
            const uint64_t entry = span_entry(s, quad, place);
            to.idx[at] = out.of ? out.of[entry] : uint32_t(entry);
            to.val[at] = x[place];
        }
        before.larger += over;
        before.equal += even;
    }
}

static __device__ __forceinline__ uint32_t piece_equal(const piece &p, uint32_t key) {
    uint32_t mask = 0;
#pragma unroll
    for (uint32_t j = 0; j < TILE_ROWS * QUAD; j++) mask |= uint32_t(key_of(p.x[j / QUAD][j % QUAD]) == key) << j;
    return mask & p.present;
}

/* A thread's entries of a tile: which of them are larger, which equal, where they stand in the warp, and how many come
 * before in the block's other warps. */
struct chosen {
    uint32_t larger, equal;
    struct standing over, even;
    struct ranks first, all; /* all: of the tile */
};

/* Of other warps, by what each has. By all threads. */
static __device__ __forceinline__ void count_warps(const uint32_t *larger, const uint32_t *equal, struct chosen &c) {
    c.first = c.all = {0, 0};
    for (uint32_t w = 0; w < TILE_WARPS; w++) {
        if (w == threadIdx.x / LANES) c.first = c.all;
        c.all.larger += larger[w], c.all.equal += equal[w];
    }
}

/* All pairs of a tile; begin: what comes before it. By all threads. */
static __device__ __forceinline__ void write_tile(const struct cut_out &out, struct span s, uint32_t tile,
                                                  const piece &p, const struct chosen &c, struct ranks begin,
                                                  uint32_t ties, struct staged<TILE> &staged) {
    const uint32_t at = top_place(begin.larger, begin.equal, ties);
    const uint32_t end = top_place(begin.larger + c.all.larger, begin.equal + c.all.equal, ties);
#pragma unroll
    for (uint32_t row = 0; row < TILE_ROWS; row++) {
        const struct ranks before = {begin.larger + c.first.larger + standing_at(c.over, row),
                                     begin.equal + c.first.equal + standing_at(c.even, row)};
        stage_row(out, s, quad_of(tile, threadIdx.x, row), p.x[row], c.larger >> QUAD * row, c.equal >> QUAD * row,
                  before, ties, at, staged);
    }
    __syncthreads();
    staged_leave<TILE_THREADS>(staged, end - at, out.idx + at, out.val + at);
}

static __global__ void __launch_bounds__(TILE_THREADS, 4)
    cut(struct top t, struct cut_out out, const struct store_search *search) {
    __shared__ uint32_t larger_of_warp[TILE_WARPS], equal_of_warp[TILE_WARPS], ticket;
    __shared__ struct ranks before_tile;
    __shared__ struct staged<TILE> staged;
    const uint64_t n = t.count ? *t.count : t.n;
    if (t.count && (n < t.k || n > t.n)) return; /* all blocks alike */
    const struct span s = span_of(t.val, n);
    const uint32_t tiles = span_tiles(s), warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const uint32_t key = search->key, ties = search->rank;
    if (threadIdx.x == 0) ticket = tile_taken(&out.words->ticket, tiles);
    __syncthreads();
    for (uint32_t tile = ticket; tile < tiles; tile = ticket) {
        piece p;
        struct chosen c;
        piece_read(t.val, s, tile, p);
        c.larger = piece_reaching(p, key + 1), c.equal = piece_equal(p, key);
        c.over = warp_standing(c.larger), c.even = warp_standing(c.equal);
        if (lane == 0) larger_of_warp[warp] = rows_sum(c.over.rows), equal_of_warp[warp] = rows_sum(c.even.rows);
        __syncthreads();
        count_warps(larger_of_warp, equal_of_warp, c);
        if (warp < 2) { /* one for each count */
            const uint32_t own = warp == 0 ? c.all.larger : c.all.equal;
            const uint32_t before = tiles_before(warp == 0 ? out.tiles : out.tiles_equal, out.launch, tile, own);
            if (lane == 0) *(warp == 0 ? &before_tile.larger : &before_tile.equal) = before;
        }
        if (threadIdx.x == 0) ticket = tile_taken(&out.words->ticket, tiles);
        __syncthreads();
        write_tile(out, s, tile, p, c, before_tile, ties, staged);
    }
}

extern "C" void store_launch_cut(const struct top *t, struct store_search *search, const struct cut_out *out) {
    if (t->n <= ONE_BLOCK_MOST) {
        store_launch_one_block(t, DIGITS, search, out, out->answer);
        return;
    }
    store_launch_search(t, DIGITS, search, out->answer);
    const unsigned grid = cuda_grid(4, span_tiles(span_of(t->val, t->n)));
    LAUNCH(cut, grid, TILE_THREADS, 0, cuda_stream(), *t, *out, (const struct store_search *)search);
    CUDA_CALL(cudaGetLastError());
}
