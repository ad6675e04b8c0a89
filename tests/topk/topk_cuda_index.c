/* topk_cuda_index.c: the index arithmetic of the store's CUDA kernels, which needs no GPU: sizes around those of a tile
 * and around 2^31 and 2^32, every misalignment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "topk/cuda/cuda_index.h"
#include "topk/sample.h"
#include "topk/sparse.h"

#define SIZES(more)                                                                                                    \
    1, 2, 3, 4, 5, 15, 16, 17, 127, 128, 129, TILE - 5, TILE - 4, TILE - 3, TILE - 2, TILE - 1, TILE, TILE + 1,        \
        TILE + 2, TILE + 3, TILE + 4, TILE + 5, 2 * TILE - 1, 2 * TILE, 2 * TILE + 1, 5 * TILE + 77, more

static const uint64_t small[] = {SIZES(100)};
static const uint64_t all_sizes[] = {SIZES(14728266),  133000000,           (1ull << 31) - 1, 1ull << 31,
                                     (1ull << 31) + 1, (1ull << 32) - TILE, (1ull << 32) - 2, (1ull << 32) - 1};
enum { SMALL = sizeof small / sizeof small[0], ALL = sizeof all_sizes / sizeof all_sizes[0] };

static void shifts(void **state) {
    (void)state;
    const char *base = (const char *)((uintptr_t)1 << 40);
    for (unsigned i = 0; i < 64; i++) {
        struct span s = span_of(base + (size_t)4 * i, 7);
        assert_int_equal(s.n, 7);
        assert_true(s.shift < QUAD);
        assert_int_equal((4 * i - 4 * s.shift) % 16, 0);
    }
}

/* Walks tile by tile, warp, row, lane, place: every entry comes once, in order, whatever the misalignment. */
static void walk_is_in_order(void **state) {
    (void)state;
    for (size_t i = 0; i < SMALL; i++)
        for (uint32_t shift = 0; shift < QUAD; shift++) {
            const struct span s = {small[i], shift};
            uint64_t next = 0;
            for (uint32_t tile = 0; tile < span_tiles(s); tile++) {
                unsigned in_tile = 0;
                for (uint32_t j = 0; j < TILE; j++) {
                    uint32_t place = j % QUAD, lane = j / QUAD % LANES, row = j / QUAD / LANES % TILE_ROWS;
                    uint32_t thread = j / QUAD / LANES / TILE_ROWS * LANES + lane;
                    uint64_t quad = quad_of(tile, thread, row);
                    if (!span_has(s, quad, place)) continue;
                    assert_int_equal(span_entry(s, quad, place), next);
                    next++, in_tile++;
                }
                assert_int_equal(span_fills(s, tile), in_tile == TILE);
            }
            assert_int_equal(next, s.n);
        }
}

/* The first and last positions of large arrays, where 32 bits would not be enough. */
static void ends_of_large_arrays(void **state) {
    (void)state;
    for (size_t i = 0; i < ALL; i++)
        for (uint32_t shift = 0; shift < QUAD; shift++) {
            const struct span s = {all_sizes[i], shift};
            const uint32_t tiles = span_tiles(s);
            assert_true((uint64_t)tiles * TILE >= s.n + shift);
            assert_true((uint64_t)(tiles - 1) * TILE < s.n + shift);
            assert_int_equal(span_fills(s, 0), shift == 0 && s.n >= TILE);
            assert_int_equal(span_fills(s, tiles - 1), (s.n + shift) % TILE == 0 && (tiles > 1 || shift == 0));
            if (tiles > 2) assert_true(span_fills(s, tiles - 2) && span_fills(s, 1));
            const uint64_t at = s.n - 1 + shift, quad = at / QUAD;
            assert_int_equal(span_entry(s, quad, (uint32_t)(at % QUAD)), s.n - 1);
            assert_true(span_has(s, quad, (uint32_t)(at % QUAD)));
            assert_false(span_has(s, (at + 1) / QUAD, (uint32_t)((at + 1) % QUAD)));
            assert_true(span_has(s, 0, shift));
            if (shift > 0) assert_false(span_has(s, 0, shift - 1));
            assert_int_equal(quad_of(tiles - 1, TILE_THREADS - 1, TILE_ROWS - 1), (uint64_t)tiles * TILE_QUADS - 1);
            assert_int_equal(quad_of(tiles - 1, 0, 0), (uint64_t)(tiles - 1) * TILE_QUADS);
        }
    assert_int_equal(span_tiles((struct span){0, 3}), 0);
}

static void counts_of_rows(void **state) {
    (void)state;
    for (uint32_t mask = 0; mask <= TILE_ALL; mask++) {
        uint32_t counts = row_counts(mask), before = 0;
        for (uint32_t row = 0; row < TILE_ROWS; row++) {
            uint32_t wanted = (uint32_t)__builtin_popcount(mask >> QUAD * row & 0xfu);
            assert_int_equal(row_count(counts, row), wanted);
            assert_int_equal(rows_before(counts, row), before);
            before += wanted;
        }
        assert_int_equal(rows_sum(counts), before);
    }
    /* of a whole warp, all of whose entries are chosen */
    uint32_t full = row_counts(TILE_ALL) * LANES;
    assert_int_equal(full, 0x80808080u);
    assert_int_equal(rows_sum(full), QUAD * LANES * TILE_ROWS);
    for (uint32_t row = 0; row < TILE_ROWS; row++) assert_int_equal(rows_before(full, row), QUAD * LANES * row);
}

static void words_of_tiles(void **state) {
    (void)state;
    const uint32_t launches[] = {1, 2, 0x1fffffff, LAUNCH_LAST - 1, LAUNCH_LAST};
    const uint32_t counts[] = {0, 1, 4096, 0x7fffffff, 0x80000000, UINT32_MAX};
    for (size_t i = 0; i < 5; i++)
        for (size_t j = 0; j < 6; j++)
            for (int k = TILE_OWN; k <= TILE_SUM; k++) {
                uint64_t word = tile_word(launches[i], (enum tile_state)k, counts[j]);
                assert_int_equal(tile_count(word), counts[j]);
                for (size_t other = 0; other < 5; other++)
                    assert_int_equal(tile_state(word, launches[other]), other == i ? k : TILE_SILENT);
            }
    assert_int_equal(tile_state(0, 1), TILE_SILENT);
    assert_int_equal(tile_state(0, LAUNCH_LAST), TILE_SILENT);
}

static int descending(const void *a, const void *b) {
    const uint32_t *x = a, *y = b;
    return (*x < *y) - (*x > *y);
}

/* The search of the kernels, one digit after the other, on keys that share digits or do not. */
static void search(const uint32_t *key, uint32_t n, uint32_t rank, uint32_t *found, uint32_t *left) {
    uint32_t prefix = 0, histogram[DIGIT_BINS];
    for (int digit = 0; digit < DIGITS; digit++) {
        memset(histogram, 0, sizeof histogram);
        for (uint32_t i = 0; i < n; i++)
            if (digit_follows(key[i], prefix, digit)) histogram[digit_of(key[i], digit)]++;
        for (uint32_t thread = 0, hit = 0; thread < TILE_THREADS && !hit; thread++)
            for (uint32_t j = 0; j < BINS_EACH && !hit; j++) {
                uint32_t bin = bin_at(thread, j);
                assert_true(bin < DIGIT_BINS);
                if (rank <= histogram[bin])
                    prefix |= bin << digit_shift(digit), hit = 1;
                else
                    rank -= histogram[bin];
            }
    }
    *found = prefix;
    *left = rank;
}

static void digits(void **state) {
    (void)state;
    enum { N = 700 };
    uint32_t key[N], sorted[N], covered = 0;
    for (int digit = 0; digit < DIGITS; digit++) {
        uint32_t mask = ((1u << digit_bits(digit)) - 1) << digit_shift(digit);
        assert_int_equal(covered & mask, 0);
        assert_true(1u << digit_bits(digit) <= DIGIT_BINS);
        covered |= mask;
    }
    assert_int_equal(covered, KEY_BITS);
    assert_int_equal(KEY_NOT_FINITE, KEY_INFINITE);
    const uint32_t masks[] = {KEY_BITS, 0, 0x3ff, 0x000ffc00, 0x7ff00000, 0x00100400, 7};
    struct rng r = rng_open(1, RNG_TEST, 0);
    for (size_t m = 0; m < 7; m++) {
        uint32_t base = rng_u32(&r) & KEY_BITS & ~masks[m];
        for (uint32_t i = 0; i < N; i++) sorted[i] = key[i] = base | (rng_u32(&r) & masks[m]);
        qsort(sorted, N, sizeof *sorted, descending);
        for (uint32_t rank = 1; rank <= N; rank += 1 + rank / 40) {
            uint32_t found, left, larger = 0;
            search(key, N, rank, &found, &left);
            assert_int_equal(found, sorted[rank - 1]);
            while (sorted[larger] > found) larger++;
            assert_int_equal(left, rank - larger);
        }
    }
}

/* Each bin is looked at once, from the top. */
static void bins(void **state) {
    (void)state;
    uint32_t next = DIGIT_BINS;
    for (uint32_t thread = 0; thread < TILE_THREADS; thread++)
        for (uint32_t j = 0; j < BINS_EACH; j++) assert_int_equal(bin_at(thread, j), --next);
    assert_int_equal(next, 0);
}

/* Larger and equal entries in any order fill 0..k-1 without a gap. */
static void places_of_the_top(void **state) {
    (void)state;
    struct rng r = rng_open(2, RNG_TEST, 0);
    for (int round = 0; round < 2000; round++) {
        uint32_t larger = 0, equal = 0, next = 0, ties = rng_below(&r, 20);
        for (int i = 0; i < 60; i++) {
            uint32_t kind = rng_below(&r, 3);
            if (kind == 0 || (kind == 1 && equal < ties)) {
                assert_int_equal(top_place(larger, equal, ties), next);
                next++;
            }
            larger += kind == 0;
            equal += kind == 1;
        }
    }
    assert_int_equal(top_place(UINT32_MAX - 5, 5, UINT32_MAX), UINT32_MAX);
}

/* Whole lines, one in each stratum, inside of the vector. */
static void samples(void **state) {
    (void)state;
    for (size_t i = 0; i < ALL; i++) {
        const uint64_t n = all_sizes[i], lines = sample_lines(n);
        assert_true(lines * SAMPLE_LINE <= SAMPLE_MAX && lines * SAMPLE_LINE * SAMPLE_PART <= n);
        assert_true((lines > 0) == (n >= (uint64_t)SAMPLE_LINE * SAMPLE_PART));
        for (uint32_t b = 0; b < lines; b++) {
            uint64_t at = sample_line_at(n, lines, b), stride = n / lines;
            assert_int_equal(at % SAMPLE_LINE, 0);
            assert_true(at + SAMPLE_LINE > b * stride && at + SAMPLE_LINE <= (b + 1) * stride && at + SAMPLE_LINE <= n);
        }
    }
}

int main(void) {
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shifts),         cmocka_unit_test(walk_is_in_order),  cmocka_unit_test(ends_of_large_arrays),
        cmocka_unit_test(counts_of_rows), cmocka_unit_test(words_of_tiles),    cmocka_unit_test(digits),
        cmocka_unit_test(bins),           cmocka_unit_test(places_of_the_top), cmocka_unit_test(samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
