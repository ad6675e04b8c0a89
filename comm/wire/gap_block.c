/* gap_block.c: see gap_block.h.
 *
 * Idea: gaps in binary at one width a block need no look at single bits on either side: a row of 4 columns is packed by
 * a mask, a shift and an or. The width is that of the longest gap. A few gaps far above the others would widen the
 * whole block, so where there are such it is the width that takes the fewest bits when what does not fit is written
 * behind the rest (patched coding). Sums of gaps are a sum within each row and one from row to row.
 *
 * Source: Lemire and Boytsov, "Decoding billions of integers per second through vectorization", Software: Practice and
 * Experience 45(1), 2015 (arXiv 1209.2137), SIMD-BP128 for the columns and SIMD-FastPFOR for the choice of a width;
 * Zukowski, Heman, Nes and Boncz, "Super-Scalar RAM-CPU Cache Compression", ICDE 2006 (PFOR).
 * Deviations: exceptions stand in their block, place and high bits in one number of 16 bits, or of 32 where one needs
 * more; and only where they save 3 bits an entry or more (find_width). */
#include "comm/wire/gap_block.h"

#include <math.h>
#include <string.h>

#include "base/simd.h"

enum {
    COLUMNS = 4,
    ROWS = GAP_BLOCK / COLUMNS,
    WIDTH_MAX = 24,
    PLACE_BITS = 7,
    SHORT_BITS = 16 - PLACE_BITS, /* of the high part of a short exception, */
    LONG_BITS = 32 - PLACE_BITS,  /* and of a long one */
    FAR_GAPS_MAX = 255            /* of a message: gaps that WIDTH_MAX bits do not hold */
};

/* Inlined into what SIMD_CLONES compiles for several instruction sets. */
#define INLINE static inline __attribute__((always_inline))

/* A row of the columns. */
typedef uint32_t row __attribute__((vector_size(COLUMNS * sizeof(uint32_t))));

/* 16 lengths. */
enum { WIDE = 16 };
typedef signed char lengths __attribute__((vector_size(WIDE)));

#ifdef __clang__
#define SHUFFLE(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
#define SHUFFLE(a, b, i, j, k, l) __builtin_shuffle(a, b, (row){i, j, k, l})
#endif

INLINE row load(const void *from) {
    row r;
    memcpy(&r, from, sizeof r);
    return r;
}

INLINE void store(void *to, row r) {
    memcpy(to, &r, sizeof r);
}

INLINE uint32_t bit_length(uint32_t x) {
    return x ? 32 - (uint32_t)__builtin_clz(x) : 0;
}

INLINE uint32_t low_mask(uint32_t width) {
    return (UINT32_C(1) << width) - 1;
}

/* What a block is made of. */
struct shape {
    uint32_t width, exceptions;
    bool are_long;
};

INLINE size_t low_bytes(struct shape s, size_t c) {
    return 2 * ((c * s.width + 15) / 16);
}

INLINE size_t exception_bytes(struct shape s) {
    return s.exceptions * (s.are_long ? sizeof(uint32_t) : sizeof(uint16_t));
}

/* -- what to expect -------------------------------------------------------------------------------------- */
/* At 24 bits every gap is below 2^32 and so its exception a short one. */
size_t gap_blocks_bytes_max(size_t nnz) {
    size_t blocks = (nnz + GAP_BLOCK - 1) / GAP_BLOCK, far = nnz < FAR_GAPS_MAX ? nnz : FAR_GAPS_MAX;
    return 2 * (blocks + (nnz * WIDTH_MAX + 15) / 16 + far);
}

/* Mean bits of the longest of c gaps: it is below 2^w, and so has w bits or fewer, with probability (1 - q^(2^w))^c,
 * q = 1 - density. Longer ones by exceptions: hardly ever at random places. */
static double usual_width(double c, double density) {
    double width = 0;
    for (int w = 0; w < WIDTH_MAX; w++) width += -expm1(c * log1p(-exp(log1p(-density) * exp2(w))));
    return width;
}

double gap_blocks_bytes_expected(double entries, double density) {
    double full = floor(entries / GAP_BLOCK), rest = entries - full * GAP_BLOCK;
    double bytes = full * (2 + GAP_BLOCK / 8 * usual_width(GAP_BLOCK, density));
    if (rest == 0) return bytes;
    double last = rest * usual_width(rest, density); /* less than 1 bit on average: mostly none */
    return bytes + 2 + 2 * (last < 1 ? last : ceil(last / 16));
}

/* -- the choice of a width ------------------------------------------------------------------------------- */
/* length[i] = the bits of gap[i], or 25 where there are more: the exponent of that number as an f32, which is exact up
 * to 2^24. In loops each of which becomes vector instructions. */
INLINE void find_lengths(const uint32_t *gap, signed char *length) {
    enum { MOST = 1 << WIDTH_MAX, BELOW_ONE = 126 };
    float number[GAP_BLOCK];
    int32_t cut[GAP_BLOCK];
    unsigned char exponent[GAP_BLOCK];
    for (size_t i = 0; i < GAP_BLOCK; i++) cut[i] = (int32_t)(gap[i] < MOST ? gap[i] : MOST);
    for (size_t i = 0; i < GAP_BLOCK; i++) number[i] = (float)cut[i];
    for (size_t i = 0; i < GAP_BLOCK; i++) {
        uint32_t bits;
        memcpy(&bits, &number[i], sizeof bits);
        exponent[i] = (unsigned char)(bits >> 23);
    }
    for (size_t i = 0; i < GAP_BLOCK; i++)
        length[i] = (signed char)((exponent[i] > BELOW_ONE ? exponent[i] : BELOW_ONE) - BELOW_ONE);
}

/* How many lengths are above w: the sum of 16 bytes, each 8 at most, by a multiplication. */
INLINE uint32_t count_longer(const signed char *length, uint32_t w) {
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t half[2];
    lengths count = {0}, each;
    for (size_t i = 0; i < GAP_BLOCK; i += sizeof each) {
        memcpy(&each, length + i, sizeof each);
        count -= each > (signed char)w;
    }
    memcpy(half, &count, sizeof half);
    return (uint32_t)((half[0] + half[1]) * ones >> 56);
}

/* The width with the fewest bits, c w and those of the exceptions; of equals the wider one. most: bits of the longest
 * gap. gap: [128], 0 from c on; length: [128], of its lengths. A narrower one has at least as many exceptions: where
 * these alone take as many bits as the best, the search is at its end. */
SIMD_CLONES static struct shape search_width(const uint32_t *gap, size_t c, uint32_t most, signed char *length) {
    uint32_t best = UINT32_MAX;
    struct shape s = {0};
    find_lengths(gap, length);
    for (uint32_t w = most < WIDTH_MAX ? most : WIDTH_MAX; w + LONG_BITS >= most; w--) {
        bool are_long = most > w + SHORT_BITS;
        uint32_t x = count_longer(length, w), longer = x * (are_long ? 32 : 16), bits = (uint32_t)c * w + longer;
        if (bits < best) {
            best = bits;
            s = (struct shape){w, x, are_long};
        }
        if (w == 0 || 16 * x >= best) break;
    }
    return s;
}

/* How many gaps have more than w bits. */
INLINE size_t count_above(const uint32_t *gap, size_t c, uint32_t w) {
    uint32_t x = 0;
    for (size_t i = 0; i < c; i++) x += gap[i] >> w != 0;
    return x;
}

/* The width of the longest gap, unless one of 4 or 6 bits less, with exceptions, saves GAIN bits an entry or more; then
 * the best of all, and length holds the lengths. Less is not worth it: on a network of 10 Gbit/s a block would gain 40
 * ns at most, and the search and the exceptions take more than twice that. At random places nothing is gained, and
 * more than 4 in 5 gaps have no more than 6 bits less than the longest, so that the second look is left out. */
INLINE struct shape find_width(const uint32_t *gap, size_t c, uint32_t most, signed char *length) {
    enum { GAIN = 3, LESS = 4, MUCH_LESS = 6 };
    const struct shape whole = {.width = most};
    uint32_t w = most > MUCH_LESS ? most - MUCH_LESS : 0;
    size_t x = count_above(gap, c, w);
    if (most > WIDTH_MAX || 16 * x + GAIN * c <= (most - w) * c) return search_width(gap, c, most, length);
    if (5 * x > 4 * c || most < LESS) return whole;
    x = count_above(gap, c, most - LESS);
    return 16 * x + GAIN * c <= LESS * c ? search_width(gap, c, most, length) : whole;
}

/* -- the columns ----------------------------------------------------------------------------------------- */
/* Both ways with the width a constant, the loop over rows unrolled, so that only shifts by constants are left. */
INLINE void pack_rows(const uint32_t *gap, uint32_t width, unsigned char *to) {
    row part = {0};
    uint32_t shift = 0;
#pragma GCC unroll 32
    for (size_t r = 0; r < ROWS; r++) {
        row low = load(gap + COLUMNS * r) & low_mask(width);
        part |= low << shift;
        shift += width;
        if (shift < 32) continue;
        store(to, part);
        to += sizeof part;
        shift -= 32;
        part = low >> (width - shift);
    }
}

/* A column's last row ends with its last word. */
INLINE void unpack_rows(const unsigned char *from, uint32_t width, uint32_t *gap) {
#pragma GCC unroll 32
    for (size_t r = 0; r < ROWS; r++) {
        size_t word = r * width / 32;
        uint32_t shift = (uint32_t)(r * width % 32);
        row low = {0};
        if (width > 0) low = load(from + sizeof low * word) >> shift;
        if (shift + width > 32) low |= load(from + sizeof low * (word + 1)) << (32 - shift);
        store(gap + COLUMNS * r, low & low_mask(width));
    }
}

#define WIDTHS(X)                                                                                                      \
    X(0)                                                                                                               \
    X(1)                                                                                                               \
    X(2)                                                                                                               \
    X(3)                                                                                                               \
    X(4)                                                                                                               \
    X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16) X(17) X(18) X(19) X(20) X(21) X(22) X(23) X(24)
#define FUNCTIONS(w)                                                                                                   \
    static void pack_##w(const uint32_t *gap, unsigned char *to) {                                                     \
        pack_rows(gap, w, to);                                                                                         \
    }                                                                                                                  \
    static void unpack_##w(const unsigned char *from, uint32_t *gap) {                                                 \
        unpack_rows(from, w, gap);                                                                                     \
    }
#define PACK(w) pack_##w,
#define UNPACK(w) unpack_##w,
WIDTHS(FUNCTIONS)
static void (*const pack[WIDTH_MAX + 1])(const uint32_t *gap, unsigned char *to) = {WIDTHS(PACK)};
static void (*const unpack[WIDTH_MAX + 1])(const unsigned char *from, uint32_t *gap) = {WIDTHS(UNPACK)};

/* -- writing --------------------------------------------------------------------------------------------- */
/* gap[i] = idx[i] - before[i] - 1; returns the or of all. */
INLINE uint32_t find_gaps(const uint32_t *idx, const uint32_t *before, size_t c, uint32_t *gap) {
    uint32_t all = 0;
    for (size_t i = 0; i < c; i++) {
        gap[i] = idx[i] - before[i] - 1;
        all |= gap[i];
    }
    return all;
}

static void pack_last(const uint32_t *gap, size_t c, uint32_t width, unsigned char *to) {
    uint64_t part = 0;
    uint32_t bits = 0, mask = low_mask(width);
    for (size_t i = 0; i < c; i++) {
        part |= (uint64_t)(gap[i] & mask) << bits;
        for (bits += width; bits >= 16; bits -= 16, part >>= 16, to += 2) memcpy(to, &(uint16_t){(uint16_t)part}, 2);
    }
    if (bits > 0) memcpy(to, &(uint16_t){(uint16_t)part}, 2);
}

INLINE unsigned char *put_exception(uint32_t place, uint32_t high, bool is_long, unsigned char *to) {
    uint32_t number = high << PLACE_BITS | place;
    if (is_long) return (unsigned char *)memcpy(to, &number, sizeof number) + sizeof number;
    return (unsigned char *)memcpy(to, &(uint16_t){(uint16_t)number}, sizeof(uint16_t)) + sizeof(uint16_t);
}

/* The lengths as 8 rows of 16: a byte of marks for each column, then from mark to mark. */
INLINE void put_exceptions(const uint32_t *gap, const signed char *length, struct shape s, unsigned char *to) {
    enum { DEEP = GAP_BLOCK / WIDE };
    lengths marks = {0}, each;
    uint64_t halves[2];
    for (size_t r = 0; r < DEEP; r++) {
        memcpy(&each, length + r * sizeof each, sizeof each);
        marks |= (each > (signed char)s.width) & (signed char)(1 << r);
    }
    memcpy(halves, &marks, sizeof halves);
    for (uint32_t half = 0; half < 2; half++)
        for (uint64_t left = halves[half]; left; left &= left - 1) {
            uint32_t bit = (uint32_t)__builtin_ctzll(left);
            uint32_t place = bit % DEEP * WIDE + 8 * half + bit / DEEP;
            to = put_exception(place, gap[place] >> s.width, s.are_long, to);
        }
}

static void put_last_exceptions(const uint32_t *gap, size_t c, struct shape s, unsigned char *to) {
    for (uint32_t i = 0; i < c; i++)
        if (gap[i] >> s.width != 0) to = put_exception(i, gap[i] >> s.width, s.are_long, to);
}

SIMD_CLONES static size_t write_full(const uint32_t *idx, const uint32_t *before, unsigned char *to) {
    uint32_t gap[GAP_BLOCK];
    signed char length[GAP_BLOCK];
    uint32_t most = bit_length(find_gaps(idx, before, GAP_BLOCK, gap));
    struct shape s = find_width(gap, GAP_BLOCK, most, length);
    uint16_t head = (uint16_t)(s.width | (uint32_t)s.are_long << 5 | s.exceptions << 6);
    memcpy(to, &head, sizeof head);
    pack[s.width](gap, to + sizeof head);
    to += sizeof head + low_bytes(s, GAP_BLOCK);
    if (s.exceptions > 0) put_exceptions(gap, length, s, to);
    return sizeof head + low_bytes(s, GAP_BLOCK) + exception_bytes(s);
}

static size_t write_last(const uint32_t *idx, const uint32_t *before, size_t c, unsigned char *to) {
    uint32_t gap[GAP_BLOCK] = {0};
    signed char length[GAP_BLOCK];
    uint32_t most = bit_length(find_gaps(idx, before, c, gap));
    struct shape s = find_width(gap, c, most, length);
    uint16_t head = (uint16_t)(s.width | (uint32_t)s.are_long << 5 | s.exceptions << 6);
    memcpy(to, &head, sizeof head);
    pack_last(gap, c, s.width, to + sizeof head);
    put_last_exceptions(gap, c, s, to + sizeof head + low_bytes(s, c));
    return sizeof head + low_bytes(s, c) + exception_bytes(s);
}

size_t gap_block_write(const uint32_t *idx, const uint32_t *before, size_t c, unsigned char *to) {
    return c == GAP_BLOCK ? write_full(idx, before, to) : write_last(idx, before, c, to);
}

/* -- reading --------------------------------------------------------------------------------------------- */
static void unpack_last(const unsigned char *from, size_t c, uint32_t width, uint32_t *gap) {
    uint64_t part = 0;
    uint32_t bits = 0, mask = low_mask(width);
    for (size_t i = 0; i < c; i++) {
        for (; bits < width; bits += 16, from += 2) {
            uint16_t more;
            memcpy(&more, from, sizeof more);
            part |= (uint64_t)more << bits;
        }
        gap[i] = (uint32_t)part & mask;
        part >>= width;
        bits -= width;
    }
}

/* gap[place] += high 2^width, modulo 2^32; *sum: of what was added, whole. A place that comes twice is added to twice.
 */
INLINE bool add_exceptions(const unsigned char *from, struct shape s, size_t c, uint32_t *gap, uint64_t *sum) {
    *sum = 0;
    for (uint32_t i = 0; i < s.exceptions; i++) {
        uint32_t number = 0;
        if (s.are_long)
            memcpy(&number, from + sizeof(uint32_t) * i, sizeof number);
        else {
            uint16_t half;
            memcpy(&half, from + sizeof half * i, sizeof half);
            number = half;
        }
        uint32_t place = number % (1 << PLACE_BITS), high = number >> PLACE_BITS;
        if (place >= c) return false;
        gap[place] += high << s.width;
        *sum += (uint64_t)high << s.width;
    }
    return true;
}

/* idx[i] = next + sum_{j <= i} (gap[j] + 1) - 1, modulo 2^32. A row by itself in two steps; its last sum is added to
 * all that follow. */
static void add_up_rows(const uint32_t *gap, uint32_t next, uint32_t *idx) {
    const row none = {0};
    row before = none + (next - 1);
    for (size_t r = 0; r < ROWS; r++) {
        row sum = load(gap + COLUMNS * r) + 1;
        sum += SHUFFLE(none, sum, 0, 4, 5, 6);
        sum += SHUFFLE(none, sum, 0, 1, 4, 5);
        store(idx + COLUMNS * r, sum + before);
        before += SHUFFLE(sum, sum, 3, 3, 3, 3);
    }
}

static void add_up_last(const uint32_t *gap, size_t c, uint32_t next, uint32_t *idx) {
    for (size_t i = 0; i < c; i++) {
        idx[i] = next + gap[i];
        next = idx[i] + 1;
    }
}

static bool read_full(const unsigned char *from, struct shape s, uint32_t next, uint32_t *idx, uint64_t *sum) {
    uint32_t gap[GAP_BLOCK];
    unpack[s.width](from, gap);
    if (!add_exceptions(from + low_bytes(s, GAP_BLOCK), s, GAP_BLOCK, gap, sum)) return false;
    add_up_rows(gap, next, idx);
    return true;
}

static bool read_last(const unsigned char *from, struct shape s, size_t c, uint32_t next, uint32_t *idx,
                      uint64_t *sum) {
    uint32_t gap[GAP_BLOCK];
    unpack_last(from, c, s.width, gap);
    if (!add_exceptions(from + low_bytes(s, c), s, c, gap, sum)) return false;
    add_up_last(gap, c, next, idx);
    return true;
}

static bool read_shape(const unsigned char *from, size_t bytes, size_t c, struct shape *s, struct err *e) {
    uint16_t head;
    if (bytes < sizeof head) return err_set(e, "it ends before its last %zu indices", c);
    memcpy(&head, from, sizeof head);
    *s = (struct shape){.width = head & 31, .exceptions = (uint32_t)head >> 6, .are_long = head >> 5 & 1};
    if (s->width > WIDTH_MAX || s->exceptions > c)
        return err_set(e, "a block of %zu indices begins with %04x", c, (unsigned)head);
    size_t needs = sizeof head + low_bytes(*s, c) + exception_bytes(*s);
    return needs <= bytes || err_set(e, "a block of %zu bytes where %zu are left", needs, bytes);
}

/* What is added to `next` in 32 bits is known whole: low bits of 128 gaps and 128 ones are less than 2^32, and the sum
 * of the rest is there. So where the last index is in range none before it has gone round, and they increase. */
size_t gap_block_read(const unsigned char *from, size_t bytes, size_t c, uint64_t *next, uint64_t to, uint32_t *idx,
                      struct err *e) {
    struct shape s = {0};
    uint64_t sum;
    if (!read_shape(from, bytes, c, &s, e)) return 0;
    const unsigned char *low = from + sizeof(uint16_t);
    uint32_t begin = (uint32_t)*next;
    bool good = c == GAP_BLOCK ? read_full(low, s, begin, idx, &sum) : read_last(low, s, c, begin, idx, &sum);
    if (!good) {
        err_set(e, "an exception is not in its block of %zu indices", c);
        return 0;
    }
    uint64_t whole = sum + (uint32_t)(idx[c - 1] + 1 - begin - (uint32_t)sum);
    if (whole > to - *next) {
        err_set(e, "its indices reach %llu", (unsigned long long)to);
        return 0;
    }
    *next += whole;
    return sizeof(uint16_t) + low_bytes(s, c) + exception_bytes(s);
}
