/* comm_wire_fast.c: the formats packed-fast and packed-fast-f32, without MPI: their bytes as gap_block.h describes
 * them, the same ones in every build, how many they are, and what is refused. (What all formats are tested by is in
 * comm_wire.c and comm_fuzz_wire.c.) */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/rng.h"
#include "comm/wire/gap_block.h"
#include "comm/wire/wire.h"

enum { MOST = 3000, WIDTH_MAX = 24 };
#define LAST 4294967294u /* the largest index */

static const struct wire_ops *wire_named(const char *name) {
    for (size_t w = 0; wires[w]; w++)
        if (strcmp(wires[w]->name, name) == 0) return wires[w];
    fail_msg("no wire format \"%s\"", name);
    return NULL;
}

/* -- vectors ------------------------------------------------------------------------------------------------- */
enum pattern { ONES, UNIFORM, RARE, CLUSTERS, WIDE, ONE_FAR, SOME_FAR, MANY_FAR, LENGTHS, PATTERNS };

static uint64_t gap_of(enum pattern pattern, size_t i, size_t nnz, size_t from, struct rng *r) {
    switch (pattern) {
    case UNIFORM:
        return rng_below(r, 200);
    case RARE:
        return rng_below(r, 1000000);
    case CLUSTERS: /* short exceptions */
        return rng_below(r, 20) ? rng_below(r, 5) : 200 + rng_below(r, 300);
    case WIDE: /* gaps around the widest width: exceptions of its 25th to 32nd bit */
        return i % 97 == 5 ? UINT64_C(1) << (22 + i % 8) : 5;
    case ONE_FAR:
        return i == nnz / 2 ? LAST - nnz - from : 0;
    case SOME_FAR: /* long exceptions */
        return i % 31 == 7 ? 100000 + rng_below(r, 999) : rng_below(r, 9);
    case MANY_FAR: /* too many for exceptions */
        return i % 2 ? 0 : 70000 + rng_below(r, 99);
    case LENGTHS: /* every width in turn */
        return (UINT64_C(1) << (i / GAP_BLOCK % 21)) - 1;
    default:
        return 0;
    }
}

/* nnz indices from `from` on and values; fewer where there is no more room. */
static void make_vector(enum pattern pattern, size_t nnz, size_t from, struct sparse *s) {
    struct rng r = rng_open(31 + (uint64_t)pattern, RNG_TEST, nnz);
    uint64_t at = from;
    for (s->nnz = 0; s->nnz < nnz; s->nnz++) {
        at += gap_of(pattern, s->nnz, nnz, from, &r);
        if (at > LAST) return;
        s->idx[s->nnz] = (uint32_t)at++;
        s->val[s->nnz] = (float)rng_below(&r, 1 << 20) / 1024 - 300;
    }
}

/* -- the bytes ----------------------------------------------------------------------------------------------- */
static uint32_t number_at(const unsigned char *bytes, size_t size) {
    uint16_t half;
    uint32_t whole;
    memcpy(size == 2 ? (void *)&half : &whole, bytes, size);
    return size == 2 ? half : whole;
}

/* Bit b of the i-th low value of a block of c. */
static uint32_t low_bit(const unsigned char *low, size_t c, uint32_t width, size_t i, uint32_t b) {
    size_t at = i * width + b;
    if (c < GAP_BLOCK) return number_at(low + at / 16 * 2, 2) >> at % 16 & 1;
    at = i / 4 * width + b;
    return number_at(low + 4 * (at / 32 * 4 + i % 4), 4) >> at % 32 & 1;
}

struct seen {
    size_t widths[WIDTH_MAX + 1], shorts, longs;
};

/* The indices, read bit by bit as gap_block.h describes them; returns the bytes that were read. */
static size_t read_slowly(const unsigned char *bytes, size_t nnz, uint64_t next, uint32_t *idx, struct seen *seen) {
    const unsigned char *begin = bytes;
    for (size_t first = 0; first < nnz; first += GAP_BLOCK) {
        size_t c = nnz - first < GAP_BLOCK ? nnz - first : GAP_BLOCK;
        uint32_t head = number_at(bytes, 2), width = head & 31, exceptions = head >> 6;
        size_t size = head >> 5 & 1 ? 4 : 2;
        uint64_t gap[GAP_BLOCK] = {0};
        assert_true(width <= WIDTH_MAX && exceptions <= c);
        seen->widths[width]++;
        *(size == 4 ? &seen->longs : &seen->shorts) += exceptions;
        const unsigned char *low = bytes + 2;
        for (size_t i = 0; i < c; i++)
            for (uint32_t b = 0; b < width; b++) gap[i] |= (uint64_t)low_bit(low, c, width, i, b) << b;
        bytes = low + 2 * ((c * width + 15) / 16);
        for (uint32_t i = 0; i < exceptions; i++, bytes += size) {
            uint32_t number = number_at(bytes, size);
            assert_true(gap[number % 128] >> width == 0); /* each place once */
            assert_true(number >> 7 > 0);
            gap[number % 128] |= (uint64_t)(number >> 7) << width;
        }
        for (size_t i = 0; i < c; i++) {
            idx[first + i] = (uint32_t)(next + gap[i]);
            next += gap[i] + 1;
        }
    }
    return (size_t)(bytes - begin);
}

static void as_documented(void **state) {
    (void)state;
    struct sparse s;
    static const size_t counts[] = {1, 2, 3, 4, 5, 9, 31, 64, 100, 127, 128, 129, 255, 256, 257, 1000, MOST};
    struct seen seen = {0};
    uint32_t idx[MOST];
    sparse_open(&s, MOST);
    for (int f32 = 0; f32 < 2; f32++) {
        const struct wire_ops *w = wire_named(f32 ? "packed-fast-f32" : "packed-fast");
        assert_true(w->rounds == !f32);
        for (enum pattern p = 0; p < PATTERNS; p++)
            for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
                make_vector(p, counts[c], 42, &s);
                wire_round(w, &s, NULL);
                unsigned char *message = calloc(1, wire_capacity(w, s.nnz));
                size_t bytes = w->encode(&s, 42, (size_t)LAST + 1, message), value = f32 ? 4 : 2;
                assert_int_equal(number_at(message, 4), f32 ? 0x50474631 : 0x50474231);
                assert_int_equal(number_at(message + 4, 4), s.nnz);
                for (size_t i = 0; i < s.nnz; i++) {
                    uint32_t bits = number_at(message + 8 + value * i, value), whole;
                    memcpy(&whole, &s.val[i], sizeof whole);
                    assert_int_equal(f32 ? bits : bits << 16, whole);
                }
                size_t end = 8 + value * s.nnz + read_slowly(message + 8 + value * s.nnz, s.nnz, 42, idx, &seen);
                assert_int_equal((end + 3) / 4 * 4, bytes);
                for (; end < bytes; end++) assert_int_equal(message[end], 0);
                assert_memory_equal(idx, s.idx, s.nnz * sizeof *idx);
                free(message);
            }
    }
    for (int width = 0; width < 21; width++) assert_true(seen.widths[width] > 0);
    assert_true(seen.widths[WIDTH_MAX] + seen.widths[WIDTH_MAX - 1] > 0 && seen.shorts > 100 && seen.longs > 100);
    sparse_close(&s);
}

/* Vector instructions, others, or none: the same bytes. */
static void the_same_in_every_build(void **state) {
    (void)state;
    static const struct {
        const char *name;
        uint64_t hash;
    } known[] = {{"packed-fast", UINT64_C(0xda3824a400f9c49e)}, {"packed-fast-f32", UINT64_C(0x23edf2948e9d77a7)}};
    struct sparse s;
    sparse_open(&s, MOST);
    for (size_t f = 0; f < 2; f++) {
        const struct wire_ops *w = wire_named(known[f].name);
        unsigned char *message = malloc(wire_capacity(w, MOST));
        uint64_t hash = 0;
        for (enum pattern p = 0; p < PATTERNS; p++)
            for (size_t nnz = 100; nnz <= MOST; nnz += 700) {
                make_vector(p, nnz, 1000003, &s);
                wire_round(w, &s, NULL);
                hash = hash64(hash, message, w->encode(&s, 1000003, (size_t)LAST + 1, message));
            }
        if (hash != known[f].hash) fail_msg("%s: %016llx", w->name, (unsigned long long)hash);
        free(message);
    }
    sparse_close(&s);
}

/* -- how many bytes ------------------------------------------------------------------------------------------ */
/* Bytes for bytes of Rice's code. */
static double beside_rice(bool f32, const struct sparse *s, size_t to) {
    const struct wire_ops *fast = wire_named(f32 ? "packed-fast-f32" : "packed-fast"),
                          *rice = wire_named(f32 ? "packed-f32" : "packed");
    void *message = malloc(wire_capacity(fast, s->nnz) + wire_capacity(rice, s->nnz));
    double ratio = (double)fast->encode(s, 0, to, message);
    ratio /= (double)rice->encode(s, 0, to, message);
    free(message);
    return ratio;
}

/* At random places within 7% of Rice's code, in clusters too: the exceptions keep a far gap from widening its block. */
static void little_more_than_rice(void **state) {
    (void)state;
    enum { N = 1 << 21 };
    static const double densities[] = {0.001, 0.01, 0.1};
    struct sparse s;
    sparse_open(&s, N / 4);
    for (size_t d = 0; d < 3; d++)
        for (int clusters = 0; clusters < 2; clusters++) {
            struct rng r = rng_open(6, RNG_TEST, d);
            s.nnz = 0;
            for (uint32_t i = 0; i < N; i++) {
                double here = clusters ? (i / 5000 % 10 == 3 ? 9 * densities[d] : densities[d] / 9) : densities[d];
                if (rng_below(&r, 1u << 30) >= here * (1u << 30)) continue;
                s.idx[s.nnz] = i;
                s.val[s.nnz++] = 1;
            }
            for (int f32 = 0; f32 < 2; f32++) {
                double ratio = beside_rice(f32, &s, N);
                if (ratio > 1.07 || ratio < 0.95)
                    fail_msg("%s values at %g: %g of Rice's bytes", f32 ? "f32" : "bf16", densities[d], ratio);
            }
        }
    sparse_close(&s);
}

/* Some in 100 gaps have several bits more than the others: at most 12% more bytes, also where it is not worth it to
 * search for the best width. */
static void two_lengths(void **state) {
    (void)state;
    static const uint32_t shares[] = {2, 5, 10, 15, 20, 25, 30, 40, 60};
    struct sparse s;
    sparse_open(&s, MOST);
    for (size_t k = 0; k < sizeof shares / sizeof *shares; k++)
        for (uint32_t bits = 1; bits <= 6; bits++)
            for (uint32_t more = 1; more <= 12; more++) {
                struct rng r = rng_open(bits, RNG_TEST, more);
                uint64_t at = 0;
                for (s.nnz = 0; s.nnz < MOST; s.nnz++) {
                    bool is_far = rng_below(&r, 100) < shares[k];
                    at += rng_below(&r, UINT32_C(1) << (is_far ? bits + more : bits));
                    s.idx[s.nnz] = (uint32_t)at++;
                    s.val[s.nnz] = 1;
                }
                double ratio = beside_rice(false, &s, (size_t)LAST + 1);
                if (ratio > 1.12)
                    fail_msg("%u%% of %u bits, the others of %u: %g", shares[k], bits + more, bits, ratio);
            }
    sparse_close(&s);
}

static double index_bits(enum pattern p) {
    struct sparse s;
    const struct wire_ops *w = wire_named("packed-fast");
    sparse_open(&s, MOST);
    make_vector(p, MOST, 0, &s);
    void *message = malloc(wire_capacity(w, s.nnz));
    double bits = 8 * (double)w->encode(&s, 0, (size_t)LAST + 1, message) / (double)s.nnz - 16;
    free(message);
    sparse_close(&s);
    return bits;
}

static void exceptions_keep_blocks_narrow(void **state) {
    (void)state;
    assert_true(index_bits(ONES) < 0.2);
    assert_true(index_bits(ONE_FAR) < 0.2 + 128.0 / MOST * 7); /* 25 bits of an exception */
    assert_true(index_bits(SOME_FAR) < 4 + 2);                 /* 17 bits without */
    assert_true(index_bits(CLUSTERS) < 3 + 1.5);               /* 9 without */
}

/* -- what is refused ----------------------------------------------------------------------------------------- */
static void refused(const struct wire_ops *w, const unsigned char *message, size_t bytes, size_t to, const char *text) {
    struct sparse buffer, view;
    struct err e = {0};
    unsigned char *copy = malloc(bytes);
    memcpy(copy, message, bytes);
    sparse_open(&buffer, 300);
    if (w->decode(copy, bytes, 10, to, &buffer, &view, &e) || !strstr(e.text, text))
        fail_msg("\"%s\" instead of \"%s\"", e.text, text);
    sparse_close(&buffer);
    free(copy);
}

static void accepted(const struct wire_ops *w, unsigned char *message, size_t bytes, size_t to) {
    struct sparse buffer, view;
    struct err e = {0};
    sparse_open(&buffer, 300);
    if (!w->decode(message, bytes, 10, to, &buffer, &view, &e)) fail_msg("%s", e.text);
    assert_true(sparse_valid(&view, to) && view.idx[0] >= 10);
    sparse_close(&buffer);
}

static void put(unsigned char *at, size_t size, uint32_t number) {
    uint16_t half = (uint16_t)number;
    memcpy(at, size == 2 ? (void *)&half : &number, size);
}

/* Four entries 10, 12, 14, 99: name, count, 4 values of 2 bytes, then at 16 the block: its head, 4 gaps of 7 bits. */
static void what_is_wrong_is_said(void **state) {
    (void)state;
    uint32_t idx[4] = {10, 12, 14, 99}, words[16];
    float val[4] = {1, 2, 3, 4};
    unsigned char *message = (unsigned char *)words, bad[64];
    const struct wire_ops *w = wire_named("packed-fast");
    const struct {
        size_t at, size;
        uint32_t value;
        size_t to, extra;
        const char *text;
    } cases[] = {
        {0, 4, 0x50474631, 100, 0, "it begins with 50474631 instead of 50474231"},
        {4, 4, 0, 100, 0, "0 entries where 1 to 90"},
        {4, 4, 0xffffffff, 100, 0, "4294967295 entries where 1 to 90"},
        {4, 4, 301, 5000, 0, "301 entries where 1 to 300"},
        {4, 4, 200, 5000, 0, "24 bytes with 200 entries"},
        {4, 4, 8, 100, 0, "it ends before its last 8 indices"},
        {16, 2, 25, 100, 0, "a block of 4 indices begins with 0019"},
        {16, 2, 5 << 6, 100, 0, "a block of 4 indices begins with 0140"},
        {16, 2, 7 | 1 << 14, 100, 0, "a block of 4 indices begins with 4007"},
        {16, 2, 24, 100, 0, "a block of 14 bytes where 8 are left"},
        {16, 2, 7 | 1 << 5 | 1 << 6, 100, 0, "a block of 10 bytes where 8 are left"},
        {0, 4, 0x50474231, 99, 0, "its indices reach 99"},
        {0, 4, 0x50474231, 100, 4, "6 bytes follow the last index"},
        {16, 2, 0, 100, 0, "6 bytes follow the last index"},
    };
    assert_int_equal(w->encode(&(struct sparse){idx, val, 4, 4}, 10, 100, words), 24);
    assert_int_equal(number_at(message + 16, 2), 7);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        memset(bad, 0, sizeof bad);
        memcpy(bad, message, 24);
        put(bad + cases[i].at, cases[i].size, cases[i].value);
        refused(w, bad, 24 + cases[i].extra, cases[i].to, cases[i].text);
    }
    refused(w, message, 4, 100, "4 bytes");
    refused(w, message, 20, 100, "a block of 6 bytes where 4 are left");
}

/* 128 gaps of 0 but for two, in a full block and in the last one; the exceptions end the block. */
static void exceptions_that_are_none(void **state) {
    (void)state;
    uint32_t idx[GAP_BLOCK], words[256];
    float val[GAP_BLOCK] = {0};
    unsigned char *message = (unsigned char *)words;
    const struct wire_ops *w = wire_named("packed-fast");
    for (size_t c = GAP_BLOCK; c > 0; c = c == GAP_BLOCK ? 60 : 0) {
        for (uint32_t i = 0; i < c; i++) idx[i] = 10 + i + (i >= 11 ? 1000000 : 0) + (i >= 22 ? 3000000 : 0);
        size_t to = idx[c - 1] + 1, bytes = w->encode(&(struct sparse){idx, val, c, c}, 10, to, words), at = 10 + 2 * c;
        unsigned char bad[1024];
        assert_int_equal(number_at(message + at - 2, 2), 1 << 5 | 2 << 6);
        assert_int_equal(number_at(message + at, 4) + number_at(message + at + 4, 4), (4000000 << 7) + 11 + 22);
        memcpy(bad, message, bytes);
        put(bad + at, 4, 1000001 << 7 | 11);
        put(bad + at + 4, 4, 3000000 << 7 | 22);
        refused(w, bad, bytes, to, "its indices reach");
        put(bad + at, 4, 1000000 << 7 | 60);
        if (c == 60) refused(w, bad, bytes, to, "an exception is not in its block of 60 indices");
        if (c == GAP_BLOCK) accepted(w, bad, bytes, to); /* for another gap */
        put(bad + at, 4, 1000000 << 7 | 22);             /* twice the same */
        accepted(w, bad, bytes, to);
    }
}

/* Exceptions whose sum is a multiple of 2^32: by 32 bits alone the last index would be in range. */
static void once_around_is_refused(void **state) {
    (void)state;
    enum { WIDTH = 7, HEAD = 8 + 2 * GAP_BLOCK, AT = HEAD + 2 + GAP_BLOCK * WIDTH / 8, BYTES = AT + 4 * GAP_BLOCK + 2 };
    unsigned char message[BYTES] = {0};
    put(message, 4, 0x50474231);
    put(message + 4, 4, GAP_BLOCK);
    put(message + HEAD, 2, WIDTH | 1 << 5 | GAP_BLOCK << 6);
    for (uint32_t i = 0; i < GAP_BLOCK; i++) put(message + AT + 4 * i, 4, UINT32_C(1) << 31 | i); /* 2^24 2^7 */
    refused(wire_named("packed-fast"), message, BYTES, 10000, "its indices reach 10000");
    for (uint32_t i = 0; i < GAP_BLOCK; i++) put(message + AT + 4 * i, 4, i); /* nothing is added */
    accepted(wire_named("packed-fast"), message, BYTES, 10000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_documented),
        cmocka_unit_test(the_same_in_every_build),
        cmocka_unit_test(little_more_than_rice),
        cmocka_unit_test(two_lengths),
        cmocka_unit_test(exceptions_keep_blocks_narrow),
        cmocka_unit_test(what_is_wrong_is_said),
        cmocka_unit_test(exceptions_that_are_none),
        cmocka_unit_test(once_around_is_refused),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
