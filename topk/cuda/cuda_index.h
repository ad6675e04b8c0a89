/* cuda_index.h: the index arithmetic of the store's kernels, as functions that a plain C test runs, too
 * (tests/topk/topk_cuda_index.c).
 *
 * An array x of n floats may begin at any multiple of 4 bytes; kernels read 16 at once. So positions are counted from
 * the 16-byte boundary at or before x: entry i is at position i + shift, shift < 4, and quad q holds the positions
 * 4q..4q+3. A tile is 4096 positions, the work of one block at a time: warp w of it has the quads of four rows, row r
 * being 32 quads side by side, one for each lane. The order of the entries is that of (warp, row, lane, place). */
#ifndef ST_TOPK_CUDA_INDEX_H
#define ST_TOPK_CUDA_INDEX_H

#include <stdint.h>

#include "base/cuda/cuda_hd.h"

enum {
    QUAD = 4, /* floats of 16 bytes */
    LANES = 32,
    TILE_ROWS = 4, /* quads of a thread */
    TILE_THREADS = 256,
    TILE_WARPS = TILE_THREADS / LANES,
    TILE_QUADS = TILE_THREADS * TILE_ROWS,
    TILE = TILE_QUADS * QUAD,
    TILE_ALL = 0xffff /* as a mask of a thread's 16 entries, bit 4 row + place: all of them */
};

struct span {
    uint64_t n;
    uint32_t shift;
};

ST_HD struct span span_of(const void *x, uint64_t n) {
    struct span s;
    s.n = n;
    s.shift = (uint32_t)((uintptr_t)x / 4 % QUAD);
    return s;
}

ST_HD uint32_t span_tiles(struct span s) {
    return s.n == 0 ? 0 : (uint32_t)((s.n + s.shift + TILE - 1) / TILE);
}

/* Are there entries at all positions of this tile? */
ST_HD int span_fills(struct span s, uint32_t tile) {
    uint64_t from = (uint64_t)tile * TILE;
    return from >= s.shift && from + TILE <= s.n + s.shift;
}

ST_HD uint64_t quad_of(uint32_t tile, uint32_t thread, uint32_t row) {
    uint32_t inside = (thread / LANES * TILE_ROWS + row) * LANES + thread % LANES;
    return (uint64_t)tile * TILE_QUADS + inside;
}

/* Is there an entry at this place of the quad? Which one, if so. */
ST_HD int span_has(struct span s, uint64_t quad, uint32_t place) {
    uint64_t at = quad * QUAD + place;
    return at >= s.shift && at < s.n + s.shift;
}
ST_HD uint64_t span_entry(struct span s, uint64_t quad, uint32_t place) {
    return quad * QUAD + place - s.shift;
}

/* -- a warp's chosen entries: four counts, one a row, in the bytes of a word --------------------------------------- */

/* Of a mask as TILE_ALL: how many bits each row has. Sums over the lanes of a warp still fit: 128 at most. */
ST_HD uint32_t row_counts(uint32_t mask) {
    uint32_t pairs = mask - (mask >> 1 & 0x5555u), rows = (pairs & 0x3333u) + (pairs >> 2 & 0x3333u);
    uint32_t spread = (rows | rows << 8) & 0x00ff00ffu;
    return (spread | spread << 4) & 0x0f0f0f0fu;
}

ST_HD uint32_t row_count(uint32_t counts, uint32_t row) {
    return counts >> 8 * row & 0xffu;
}

/* The four of them together; those of the rows before this one. */
ST_HD uint32_t rows_sum(uint32_t counts) {
    uint32_t halves = (counts & 0x00ff00ffu) + (counts >> 8 & 0x00ff00ffu);
    return (halves & 0xffffu) + (halves >> 16);
}
ST_HD uint32_t rows_before(uint32_t counts, uint32_t row) {
    return rows_sum(counts & ((1u << 8 * row) - 1));
}

/* -- what a tile tells the tiles after it --------------------------------------------------------------------------
 * One word, so that no fence is needed: a count, what it counts, and the number of the launch, so that words of
 * earlier launches are ignored and need not be cleared. */

enum tile_state { TILE_SILENT, TILE_OWN /* its own count */, TILE_SUM /* its count and those of all tiles before */ };

#define LAUNCH_LAST 0x3fffffffu /* launches are numbered from 1 to this */

ST_HD uint64_t tile_word(uint32_t launch, enum tile_state state, uint32_t count) {
    return (uint64_t)launch << 34 | (uint64_t)state << 32 | count;
}
ST_HD enum tile_state tile_state(uint64_t word, uint32_t launch) {
    return word >> 34 == launch ? (enum tile_state)(word >> 32 & 3) : TILE_SILENT;
}
ST_HD uint32_t tile_count(uint64_t word) {
    return (uint32_t)word;
}

/* -- the k-th largest key, by digits -------------------------------------------------------------------------------
 * Keys are magnitudes: IEEE bits without the sign. Digits from the top: 11, 10 and 10 bits. */

#define KEY_BITS 0x7fffffffu
#define KEY_NOT_FINITE 0x7f800000u /* the least key of those that are NaN or infinite */

enum { DIGITS = 3, DIGIT_BINS = 2048, BINS_EACH = DIGIT_BINS / TILE_THREADS };

ST_HD uint32_t digit_shift(int digit) {
    return digit == 0 ? 20 : digit == 1 ? 10 : 0;
}
ST_HD uint32_t digit_bits(int digit) {
    return digit == 0 ? 11 : 10;
}
/* Does the key have these digits above this one? prefix: 0 in the digits that are not known. */
ST_HD int digit_follows(uint32_t key, uint32_t prefix, int digit) {
    return (key ^ prefix) >> (digit_shift(digit) + digit_bits(digit)) == 0;
}
ST_HD uint32_t digit_of(uint32_t key, int digit) {
    return key >> digit_shift(digit) & ((1u << digit_bits(digit)) - 1);
}

/* Thread t looks at BINS_EACH bins from the top: its j-th. */
ST_HD uint32_t bin_at(uint32_t thread, uint32_t j) {
    return DIGIT_BINS - 1 - (thread * BINS_EACH + j);
}

/* -- exactly k: those with a larger key, and the first `ties` of those that are equal to the k-th --------------------
 * Where the next one goes, when so many larger and so many equal ones come before it. */
ST_HD uint32_t top_place(uint32_t larger, uint32_t equal, uint32_t ties) {
    return larger + (equal < ties ? equal : ties);
}

#endif
