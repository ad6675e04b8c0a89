/* comm_wire.c: the wire formats and the search for NaN and infinities, without MPI. (What a bad message does to a job
 * is in comm_ends.c: it ends it. Arbitrary bytes: fuzz_wire.c.) */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rng.h"
#include "comm/wire/wire.h"
#include "topk/finite.h"

static const struct wire_ops *wire_named(const char *name) {
    for (size_t w = 0; wires[w]; w++)
        if (strcmp(wires[w]->name, name) == 0) return wires[w];
    fail_msg("no wire format \"%s\"", name);
    return NULL;
}

/* The formats, and behind them what each is where indices travel alone; NULL past the end. */
static const struct wire_ops *row(size_t i) {
    size_t formats = 0;
    while (wires[formats]) formats++;
    return i < formats ? wires[i] : i < 2 * formats ? wires[i - formats]->indices : NULL;
}

static void coo32_is_two_plain_arrays(void **state) {
    (void)state;
    enum { N = 1000 };
    uint32_t message[2 * 64];
    for (size_t nnz = 0; nnz <= 64; nnz++) {
        struct sparse s, view;
        sparse_open(&s, 64);
        for (size_t i = 0; i < nnz; i++) {
            s.idx[i] = (uint32_t)(i == 63 ? N - 1 : 15 * i);
            s.val[i] = (float)i - 3.5f;
        }
        s.nnz = nnz;
        assert_int_equal(wire_capacity(wires[0], nnz), 8 * nnz);
        assert_int_equal(wires[0]->encode(&s, 0, N, message), 8 * nnz);
        wire_read(wires[0], message, 8 * nnz, 0, N, 0, NULL, &view);
        assert_int_equal(view.nnz, nnz);
        for (size_t i = 0; i < nnz; i++) assert_true(view.idx[i] == s.idx[i] && view.val[i] == s.val[i]);
        if (nnz) assert_memory_equal(message, s.idx, 4 * nnz); /* indices first, then values */
        if (nnz) assert_memory_equal(message + nnz, s.val, 4 * nnz);
        sparse_close(&s);
    }
}

/* The cost model's sizes against real messages of entries at random places: within 2% of the mean for messages of 1000
 * entries and more, within 5% for 40 and more, within 15% for shorter ones (whose width follows a few gaps), at every
 * density; without values half as much again, or 2 bytes. */
static void expected_sizes(void **state) {
    (void)state;
    static const double densities[] = {1e-4, 3e-4, 0.001, 0.003, 0.01, 0.02, 0.1, 0.25, 0.5, 0.9};
    static const size_t lengths[] = {1, 2, 7, 40, 256, 300, 1000, 5000};
    enum { LONGEST = 5000, REPEAT = 200 };
    struct sparse s;
    struct rng r = rng_open(5, RNG_TEST, 77);
    sparse_open(&s, LONGEST);
    for (size_t w = 0; row(w); w++) {
        void *message = malloc(wire_capacity(row(w), LONGEST));
        for (size_t d = 0; d < sizeof densities / sizeof *densities; d++) {
            for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
                double bytes = 0;
                size_t repeat = lengths[l] < 1000 ? REPEAT : REPEAT / 10;
                for (size_t t = 0; t < repeat; t++) {
                    double at = -1;
                    for (s.nnz = 0; s.nnz < lengths[l]; s.nnz++) {
                        double uniform = ((double)rng_below(&r, 1u << 31) + 0.5) / 2147483648.0;
                        at += 1 + floor(log(uniform) / log1p(-densities[d])); /* geometric gaps */
                        s.idx[s.nnz] = (uint32_t)at;
                        s.val[s.nnz] = 1;
                    }
                    bytes += (double)row(w)->encode(&s, 0, UINT32_MAX, message) / (double)repeat;
                }
                double expected = row(w)->expected_bytes((double)lengths[l], densities[d]);
                double tolerance = lengths[l] < 40 ? 0.15 : lengths[l] < 1000 ? 0.05 : 0.02;
                if (row(w)->value_bytes == 0) tolerance *= 1.5; /* of fewer bytes */
                if (fabs(expected / bytes - 1) > tolerance && (row(w)->value_bytes > 0 || fabs(expected - bytes) > 2))
                    fail_msg("%s, %zu entries at %g: %g bytes where %g were expected", row(w)->name, lengths[l],
                             densities[d], bytes, expected);
            }
            double entry = wire_entry_bytes(row(w), densities[d]), many = row(w)->expected_bytes(1e6, densities[d]);
            assert_true(fabs(entry / (many / 1e6) - 1) < 1e-3);
        }
        assert_true(row(w)->expected_bytes(0, 0.5) == 0);
        assert_true(row(w)->expected_bytes(0.25, 0.5) == row(w)->expected_bytes(1, 0.5) / 4);
        free(message);
    }
    sparse_close(&s);
}

/* -- all formats ------------------------------------------------------------------------------------------ */
enum { MOST = 3000 };
#define FAR 4294967294u /* the largest index */

enum pattern { ONES, UNIFORM, RARE, CLUSTERS, GROWING, FAR_APART, ONE_OUTLIER, ALL_OUTLIERS_BUT_ONE, PATTERNS };

/* nnz indices in [from, to = 2^32 - 1); returns how many there was room for. */
static size_t make_indices(enum pattern pattern, size_t nnz, size_t from, uint32_t *idx) {
    struct rng r = rng_open(11 + (uint64_t)pattern, RNG_TEST, nnz);
    uint64_t at = from;
    for (size_t i = 0; i < nnz; i++) {
        uint64_t gap = 0;
        switch (pattern) {
        case UNIFORM:
            gap = rng_below(&r, 200);
            break;
        case RARE:
            gap = rng_below(&r, 2000000);
            break;
        case CLUSTERS:
            gap = rng_below(&r, 20) ? rng_below(&r, 3) : rng_below(&r, 100000);
            break;
        case GROWING:
            gap = i * i / 3;
            break;
        case FAR_APART:
            gap = (FAR - from) / nnz - 1;
            break;
        case ONE_OUTLIER:
            gap = i == nnz / 2 ? FAR - nnz - from : 0;
            break;
        case ALL_OUTLIERS_BUT_ONE:
            gap = i % 256 == 7 ? 0 : 1000000 + rng_below(&r, 99);
            break;
        default:
            break;
        }
        at += gap;
        if (at > FAR) return i;
        idx[i] = (uint32_t)at++;
    }
    return nnz;
}

static void make_values(const struct wire_ops *w, struct sparse *s) {
    struct rng r = rng_open(5, RNG_TEST, s->nnz);
    for (size_t i = 0; i < s->nnz; i++) s->val[i] = (float)rng_normal(&r);
    wire_round(w, s, NULL);
}

static void same_vectors(const struct wire_ops *w, const struct sparse *a, const struct sparse *b) {
    assert_int_equal(a->nnz, b->nnz);
    if (a->nnz == 0) return;
    assert_memory_equal(a->idx, b->idx, a->nnz * sizeof *a->idx);
    if (w->value_bytes > 0) assert_memory_equal(a->val, b->val, a->nnz * sizeof *a->val);
}

/* Encodes into a block of exactly the capacity, decodes from one of exactly the message's length. Returns the bytes. */
static size_t round_trip(const struct wire_ops *w, const struct sparse *s, size_t from, size_t to) {
    struct sparse buffer, view;
    struct err e = {0};
    size_t capacity = wire_capacity(w, s->nnz);
    unsigned char *message = malloc(capacity + 1), *copy;
    sparse_open(&buffer, s->nnz);
    message[capacity] = 0x5a;
    size_t bytes = w->encode(s, from, to, message);
    assert_true(bytes <= capacity && bytes % 4 == 0);
    assert_true(!w->fixed || bytes == capacity);
    assert_int_equal(message[capacity], 0x5a);
    copy = malloc(bytes ? bytes : 1);
    memcpy(copy, message, bytes);
    if (!w->decode(copy, bytes, from, to, w->in_place ? NULL : &buffer, &view, &e)) fail_msg("%s: %s", w->name, e.text);
    same_vectors(w, &view, s);
    /* the last index is the largest that this range allows */
    if (s->nnz > 0) assert_false(w->decode(copy, bytes, from, s->idx[s->nnz - 1], &buffer, &view, &e));
    if (s->nnz > 0 && !w->in_place) {
        buffer.cap = s->nnz - 1;
        assert_false(w->decode(copy, bytes, from, to, &buffer, &view, &e));
    }
    free(copy);
    free(message);
    sparse_close(&buffer);
    return bytes;
}

static void capacity_grows(void **state) {
    (void)state;
    for (size_t w = 0; row(w); w++)
        for (size_t nnz = 0; nnz < 2000; nnz++) {
            assert_int_equal(wire_capacity(row(w), nnz) % 4, 0);
            assert_true(wire_capacity(row(w), nnz) <= wire_capacity(row(w), nnz + 1));
            assert_true(!row(w)->fixed || wire_capacity(row(w), nnz) < wire_capacity(row(w), nnz + 1));
        }
}

static void there_and_back(void **state) {
    (void)state;
    static const size_t counts[] = {0, 1, 2, 3, 7, 8, 9, 31, 32, 33, 100, 255, 256, 257, 511, 512, 513, 1000, MOST};
    static const size_t froms[] = {0, 1, 1000003, 4294960000u};
    struct sparse s;
    sparse_open(&s, MOST);
    for (size_t w = 0; row(w); w++)
        for (enum pattern p = 0; p < PATTERNS; p++)
            for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++)
                for (size_t f = 0; f < sizeof froms / sizeof froms[0]; f++) {
                    s.nnz = make_indices(p, counts[c], froms[f], s.idx);
                    make_values(row(w), &s);
                    round_trip(row(w), &s, froms[f], (size_t)FAR + 1);
                }
    sparse_close(&s);
}

/* -- the formats packed and packed-f32 ----------------------------------------------------------------------- */
/* Bit `at` of a field that begins at words[0]; column: words of one column lie 8 apart (0: end to end). */
static uint32_t bit(const uint32_t *words, size_t at) {
    return words[at / 32] >> (at % 32) & 1;
}

/* The indices, read bit by bit as packed_index.h describes them; returns the words that were read. */
static size_t read_slowly(const uint32_t *words, size_t nnz, uint64_t from, uint32_t *idx) {
    const uint32_t *begin = words;
    uint64_t next = from;
    for (size_t first = 0; first < nnz; first += 256) {
        size_t c = nnz - first < 256 ? nnz - first : 256, position = 0, outlier = 0;
        uint32_t width = words[0] & 63, heights = words[0] >> 6 & 8191, outliers = words[0] >> 19;
        const uint32_t *low = words + 1, *bitmap = low + (c * width + 31) / 32;
        const uint32_t *places = bitmap + (c + heights + 31) / 32, *outlier_at = places + (outliers + 3) / 4;
        for (size_t i = 0; i < c; i++) {
            uint64_t gap = 0, high = 0;
            for (uint32_t b = 0; b < width; b++) {
                size_t at = c < 256 ? i * width + b : i / 8 * width + b; /* in its column */
                uint32_t word = c < 256 ? low[at / 32] : low[at / 32 * 8 + i % 8];
                gap |= (uint64_t)(word >> (at % 32) & 1) << b;
            }
            for (; !bit(bitmap, position); position++) high++;
            position++;
            if (outlier < outliers && ((const unsigned char *)places)[outlier] == i) {
                assert_int_equal(high, 0);
                high = outlier_at[outlier++];
            }
            gap += high << width;
            idx[first + i] = (uint32_t)(next + gap);
            next += gap + 1;
        }
        assert_int_equal(outlier, outliers);
        assert_int_equal(position, c + heights);
        words = outlier_at + outliers;
    }
    return (size_t)(words - begin);
}

static void packed_as_documented(void **state) {
    (void)state;
    struct sparse s;
    uint32_t idx[MOST];
    sparse_open(&s, MOST);
    for (int f32 = 0; f32 < 2; f32++) {
        const struct wire_ops *w = wire_named(f32 ? "packed-f32" : "packed");
        for (enum pattern p = 0; p < PATTERNS; p++)
            for (size_t nnz = 1; nnz <= MOST; nnz += nnz < 10 ? 1 : nnz / 2) {
                s.nnz = make_indices(p, nnz, 42, s.idx);
                make_values(w, &s);
                uint32_t *words = calloc(1, wire_capacity(w, s.nnz));
                size_t bytes = w->encode(&s, 42, (size_t)FAR + 1, words), values = f32 ? s.nnz : (s.nnz + 1) / 2;
                assert_int_equal(words[0], f32 ? 0x504b4631 : 0x504b4231);
                assert_int_equal(words[1], s.nnz);
                for (size_t i = 0; i < s.nnz; i++) {
                    uint32_t value;
                    memcpy(&value, &s.val[i], sizeof value);
                    if (f32) assert_int_equal(words[2 + i], value);
                    if (!f32) assert_int_equal((uint32_t)((uint16_t *)(void *)(words + 2))[i] << 16, value);
                }
                assert_int_equal(4 * (2 + values + read_slowly(words + 2 + values, s.nnz, 42, idx)), bytes);
                assert_memory_equal(idx, s.idx, s.nnz * sizeof *idx);
                free(words);
            }
    }
    sparse_close(&s);
}

/* Bits of an index on average; the rest of a message is known. */
static double index_bits(enum pattern pattern, double density) {
    enum { N = 2000000 };
    struct sparse s;
    struct rng r = rng_open(3, RNG_TEST, 1);
    sparse_open(&s, N);
    for (uint32_t i = 0; i < N; i++) {
        double here = pattern == CLUSTERS ? (i / 5000 % 10 == 3 ? 9.5 * density : density / 18) : density;
        if (rng_below(&r, 1u << 30) < here * (1u << 30)) s.idx[s.nnz++] = i;
    }
    const struct wire_ops *w = wire_named("packed");
    make_values(w, &s);
    double bytes = (double)round_trip(w, &s, 0, N), nnz = (double)s.nnz;
    assert_true(bytes < 0.45 * 8 * nnz);
    sparse_close(&s);
    return 8 * bytes / nnz - 16;
}

static void packed_is_small(void **state) {
    (void)state;
    assert_true(index_bits(UNIFORM, 0.01) < 8.5); /* the entropy is 8.1 */
    assert_true(index_bits(UNIFORM, 0.001) < 12); /* 11.4 */
    assert_true(index_bits(CLUSTERS, 0.01) < 7);  /* 5.3 */
    assert_true(index_bits(UNIFORM, 1) < 1.3);    /* 0 */
    for (enum pattern p = 0; p < PATTERNS; p++) {
        struct sparse s;
        sparse_open(&s, MOST);
        s.nnz = make_indices(p, MOST, 0, s.idx);
        make_values(wire_named("packed"), &s);
        double bits = 8 * (double)round_trip(wire_named("packed"), &s, 0, (size_t)FAR + 1) / (double)s.nnz - 16;
        if (p == ONES || p == ONE_OUTLIER) assert_true(bits < 1.3);
        sparse_close(&s);
    }
}

/* -- rounding ------------------------------------------------------------------------------------------------ */
static uint32_t float_bits(float x) {
    uint32_t whole;
    memcpy(&whole, &x, sizeof whole);
    return whole;
}
static float bits_float(uint32_t whole) {
    float x;
    memcpy(&x, &whole, sizeof x);
    return x;
}

/* bf16 by its definition: the neighbours of x among the values with a lower half of zero, in double precision. */
static float nearest_bf16(float x) {
    double magnitude = fabs((double)x);
    float below = bits_float(float_bits(fabsf(x)) & 0xffff0000), result;
    uint32_t next = float_bits(below) + 0x10000;
    if (next >= KEY_INFINITE)
        result = below;
    else {
        double down = magnitude - (double)below, up = (double)bits_float(next) - magnitude;
        bool even = (float_bits(below) >> 16) % 2 == 0;
        result = down < up || (down == up && even) ? below : bits_float(next);
    }
    return signbit(x) ? -result : result;
}

static float round_one(const struct wire_ops *w, float x, float *error) {
    float many[21]; /* vector code and what is left of it */
    float errors[21];
    for (int i = 0; i < 21; i++) many[i] = x;
    w->round_all(many, 21, errors);
    for (int i = 1; i < 21; i++) assert_int_equal(float_bits(many[i]), float_bits(many[0]));
    assert_int_equal(float_bits(w->round(x)), float_bits(many[0]));
    *error = errors[20];
    return many[20];
}

static void rounding_to_the_nearest_even(void **state) {
    (void)state;
    const struct wire_ops *w = wire_named("packed");
    struct rng r = rng_open(8, RNG_TEST, 0);
    assert_true(w->rounds && !wire_named("packed-f32")->rounds && !wires[0]->rounds);
    for (uint32_t upper = 0; upper < 0x10000; upper++) { /* all sign, exponents and significands, and what follows */
        const uint32_t lower[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff, rng_below(&r, 0x10000)};
        for (size_t i = 0; i < sizeof lower / sizeof lower[0]; i++) {
            float x = bits_float(upper << 16 | lower[i]), error, rounded = round_one(w, x, &error);
            if (isfinite(x)) {
                assert_true(isfinite(rounded));
                assert_int_equal(float_bits(rounded), float_bits(nearest_bf16(x)));
                assert_true((double)error == (double)x - (double)rounded); /* exactly */
                assert_int_equal(float_bits(round_one(w, rounded, &error)), float_bits(rounded));
                assert_true(error == 0);
            } else {
                assert_true(isinf(x) ? rounded == x : isnan(rounded));
            }
        }
    }
}

/* Values alone: as many bytes as the row says, and what came out of rounding comes back. */
static void values_alone(void **state) {
    (void)state;
    struct sparse s;
    sparse_open(&s, MOST);
    for (size_t w = 0; wires[w]; w++) {
        float back[MOST];
        s.nnz = make_indices(ONES, MOST, 0, s.idx);
        make_values(wires[w], &s);
        assert_int_equal(wires[w]->value_bytes, wires[w]->rounds ? 2 : 4);
        assert_int_equal(wires[w]->indices->value_bytes, 0);
        for (size_t count = 0; count <= MOST; count += 1 + count) {
            size_t bytes = count * wires[w]->value_bytes;
            unsigned char *message = malloc(bytes + 1);
            message[bytes] = 0x5a;
            wire_values_write(wires[w], s.val, count, message);
            assert_int_equal(message[bytes], 0x5a);
            wire_values_read(wires[w], message, count, back);
            if (count > 0) assert_memory_equal(back, s.val, count * sizeof *back);
            free(message);
        }
    }
    sparse_close(&s);
}

static void rounding_keeps_the_difference(void **state) {
    (void)state;
    struct sparse s, error;
    float old[MOST];
    sparse_open(&s, MOST);
    sparse_open(&error, MOST);
    for (size_t w = 0; wires[w]; w++) {
        struct rng r = rng_open(9, RNG_TEST, 0);
        s.nnz = make_indices(UNIFORM, MOST, 0, s.idx);
        size_t changed = 0, at = 0;
        for (size_t i = 0; i < MOST; i++) old[i] = s.val[i] = i % 3 ? (float)rng_normal(&r) : (float)rng_below(&r, 200);
        wire_round(wires[w], &s, &error);
        for (size_t i = 0; i < MOST; i++) {
            if (s.val[i] == old[i]) continue;
            changed++;
            assert_true(at < error.nnz && error.idx[at] == s.idx[i]);
            assert_true((double)error.val[at++] + (double)s.val[i] == (double)old[i]);
        }
        assert_int_equal(error.nnz, changed);
        assert_true(wires[w]->rounds ? changed > MOST / 2 && changed <= MOST - MOST / 3 : changed == 0);
        make_values(wires[w], &s);
        wire_round(wires[w], &s, &error); /* a second time changes nothing */
        assert_int_equal(error.nnz, 0);
    }
    sparse_close(&error);
    sparse_close(&s);
}

/* -- bad messages --------------------------------------------------------------------------------------------- */
/* Decodes these bytes from a block of exactly their length into a buffer of `cap`, whose fence must stay. Whatever is
 * accepted is a vector that fits. */
static bool accepts(const struct wire_ops *w, const unsigned char *bytes, size_t count, size_t from, size_t to,
                    size_t cap) {
    struct sparse buffer, view;
    struct err e = {0};
    unsigned char *copy = malloc(count ? count : 1);
    memcpy(copy, bytes, count);
    buffer = (struct sparse){calloc(cap + 1, 4), calloc(cap + 1, 4), 0, cap};
    buffer.idx[cap] = 0x5a5a5a5a;
    buffer.val[cap] = 77;
    bool good = w->decode(copy, count, from, to, &buffer, &view, &e);
    assert_true(buffer.idx[cap] == 0x5a5a5a5a && buffer.val[cap] == 77);
    assert_true(good == (e.text[0] == '\0'));
    if (good) assert_true(sparse_valid(&view, to) && (view.nnz == 0 || view.idx[0] >= from));
    if (good && !w->in_place) assert_true(view.nnz <= cap);
    free(buffer.idx);
    free(buffer.val);
    free(copy);
    return good;
}

/* Every cut of a message, every bit of its index part turned over, runs of noise. */
static void damaged_messages(void **state) {
    (void)state;
    enum { COUNT = 300, FROM = 100 };
    static unsigned char message[8 * 8 * COUNT], bad[sizeof message];
    struct sparse s;
    struct rng r = rng_open(4, RNG_TEST, 0);
    sparse_open(&s, COUNT);
    for (size_t w = 0; row(w); w++)
        for (enum pattern p = 0; p < PATTERNS; p++) {
            s.nnz = make_indices(p, COUNT, FROM, s.idx);
            make_values(row(w), &s);
            size_t to = (size_t)s.idx[s.nnz - 1] + 1, bytes = row(w)->encode(&s, FROM, to, message);
            assert_true(accepts(row(w), message, bytes, FROM, to, s.nnz));
            for (size_t cut = 1; cut < bytes; cut++)
                if (!row(w)->in_place || cut % (4 + row(w)->value_bytes) != 0)
                    assert_false(accepts(row(w), message, cut, FROM, to, s.nnz));
            for (size_t b = 0; b < 8 * bytes; b++) {
                memcpy(bad, message, bytes);
                bad[b / 8] ^= (unsigned char)(1u << b % 8);
                accepts(row(w), bad, bytes, FROM, to, s.nnz);
            }
            for (int i = 0; i < 300; i++) {
                memcpy(bad, message, bytes);
                size_t at = rng_below(&r, (uint32_t)bytes), length = 1 + rng_below(&r, 16);
                for (size_t j = at; j < bytes && j < at + length; j++) bad[j] = (unsigned char)rng_below(&r, 256);
                accepts(row(w), bad, bytes, FROM, to, s.nnz);
            }
        }
    sparse_close(&s);
}

static void expect_refusal(const struct wire_ops *w, uint32_t *words, size_t count, size_t to, const char *text) {
    struct sparse buffer, view;
    struct err e = {0};
    sparse_open(&buffer, 300);
    if (w->decode(words, 4 * count, 10, to, &buffer, &view, &e) || !strstr(e.text, text))
        fail_msg("\"%s\" instead of \"%s\"", e.text, text);
    sparse_close(&buffer);
}

/* Four entries 10, 12, 14, 99: [0] name, [1] count, [2..3] values, [4] the block, [5...] its parts. */
static void what_is_wrong_is_said(void **state) {
    (void)state;
    uint32_t idx[4] = {10, 12, 14, 99}, words[64], bad[64];
    float val[4] = {1, 2, 3, 4};
    const struct wire_ops *w = wire_named("packed");
    const struct {
        int at;
        uint32_t value;
        size_t to, extra;
        const char *text;
    } cases[] = {
        {0, 0x504b4631, 100, 0, "it begins with 504b4631 instead of 504b4231"},
        {0, 8, 100, 0, "it begins with 00000008"},
        {1, 0, 100, 0, "0 entries where 1 to 90"},
        {1, 0xffffffff, 100, 0, "4294967295 entries where 1 to 90"},
        {1, 301, 5000, 0, "301 entries where 1 to 300"},
        {1, 200, 5000, 0, "bytes with 200 entries"},
        {4, 33, 100, 0, "its indices have 33 bits"},
        {4, 3u | 8191u << 6, 100, 0, "a block of 4 indices begins with"},
        {4, 3u | 5u << 19, 100, 0, "a block of 4 indices begins with"},
        {4, 32u | 1u << 6, 100, 0, "a block of 4 indices begins with"},
        {4, 32, 100, 0, "words where"},
        {0, 0x504b4231, 99, 0, "its indices reach 99"},
        {0, 0x504b4231, 100, 1, "1 words follow the last index"},
    };
    size_t count = w->encode(&(struct sparse){idx, val, 4, 4}, 10, 100, words) / 4;
    assert_true(count >= 7 && count < 12);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        memset(bad, 0, sizeof bad);
        memcpy(bad, words, 4 * count);
        bad[cases[i].at] = cases[i].value;
        expect_refusal(w, bad, count + cases[i].extra, cases[i].to, cases[i].text);
    }
    for (int spoilt = 0; spoilt < 2; spoilt++) { /* too few bits in the bitmap, too many */
        size_t width = words[4] & 63, bitmap = 5 + (4 * width + 31) / 32;
        memcpy(bad, words, 4 * count);
        bad[bitmap] = spoilt ? 0xffffffff : 0;
        expect_refusal(w, bad, count, 100, "bitmap is not of 4 indices");
    }
    expect_refusal(w, words, 1, 100, "4 bytes");
    expect_refusal(w, words, 4, 100, "it ends after 0 of 4 indices");
}

/* Gaps of 0 but for two: the message ends in their places (two bytes of a word), then the two heights. */
static void wrong_outliers_are_refused(void **state) {
    (void)state;
    uint32_t idx[40], words[128], bad[128];
    float val[40] = {0};
    const struct wire_ops *w = wire_named("packed");
    for (uint32_t i = 0; i < 40; i++) idx[i] = 10 + i + (i >= 11 ? 1000000 : 0) + (i >= 22 ? 3000000 : 0);
    size_t to = (size_t)FAR + 1, count = w->encode(&(struct sparse){idx, val, 40, 40}, 10, to, words) / 4;
    assert_int_equal(words[count - 3] & 0xffff, 11 | 22 << 8);
    assert_int_equal(words[count - 1], 3000000);
    const struct {
        size_t back;
        uint32_t value;
        const char *text;
    } cases[] = {
        {3, 11 | 40 << 8, "outliers are wrong"}, {3, 22 | 11 << 8, "outliers are wrong"},
        {3, 11 | 11 << 8, "outliers are wrong"}, {1, 0xffffffff, "its indices reach"},
        {2, 4293967250, "its indices reach"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        memcpy(bad, words, 4 * count);
        bad[count - cases[i].back] = cases[i].value;
        expect_refusal(w, bad, count, to, cases[i].text);
    }
    /* the same with a width: only heights that leave room for the low bits */
    for (uint32_t i = 0; i < 40; i++) idx[i] = 10 + 200 * i + (i >= 11 ? 1000000 : 0);
    count = w->encode(&(struct sparse){idx, val, 40, 40}, 10, to, words) / 4;
    assert_true((words[2 + 20] & 63) > 0 && words[2 + 20] >> 19 == 1);
    words[count - 1] = 0xffffffff;
    expect_refusal(w, words, count, to, "outliers are wrong");
}

static void lowest_bad_entry(void **state) {
    (void)state;
    enum { N = 10000 };
    const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    float *v = calloc(N, sizeof *v);
    assert_non_null(v);
    for (int i = 0; i < N; i++) v[i] = (i % 3 ? 3.4028234e38f : -1e-45f) * (float)(i % 2 ? 1 : -1);
    assert_int_equal(first_nonfinite(v, N), N);
    assert_int_equal(first_nonfinite(v, 0), 0);
    const size_t at[] = {0, 1, 4095, 4096, 4097, 8191, N - 1};
    for (size_t b = 0; b < 4; b++) {
        for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
            float keep = v[at[i]], last = v[N - 1];
            v[N - 1] = v[at[i]] = bad[b];
            assert_int_equal(first_nonfinite(v, N), at[i]);
            assert_int_equal(first_nonfinite(v, at[i]), at[i]);
            v[N - 1] = last;
            v[at[i]] = keep;
        }
    }
    free(v);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coo32_is_two_plain_arrays),
        cmocka_unit_test(expected_sizes),
        cmocka_unit_test(capacity_grows),
        cmocka_unit_test(there_and_back),
        cmocka_unit_test(packed_as_documented),
        cmocka_unit_test(packed_is_small),
        cmocka_unit_test(rounding_to_the_nearest_even),
        cmocka_unit_test(rounding_keeps_the_difference),
        cmocka_unit_test(values_alone),
        cmocka_unit_test(damaged_messages),
        cmocka_unit_test(what_is_wrong_is_said),
        cmocka_unit_test(wrong_outliers_are_refused),
        cmocka_unit_test(lowest_bad_entry),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
