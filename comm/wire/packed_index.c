/* packed_index.c: see packed_index.h.
 *
 * Idea: gaps between selected entries are nearly geometric, for which Rice's code is within 0.1 bits of the entropy
 * (8.1 bits at a density of 0.01, 11.4 at 0.001). Heights in a bitmap of their own and the low bits in columns make
 * both ends loops over words instead of over bits. A gap far above the others of its block (between two clusters) is
 * taken out as an outlier: its height would fill the bitmap.
 *
 * Source: Rice and Plaunt, "Adaptive Variable-Length Coding", 1971; the split in two halves from Elias and Fano, 1974;
 * outliers from PForDelta (Zukowski et al., ICDE 2006); columns from Lemire and Boytsov, "Decoding billions of integers
 * per second through vectorization", 2015 (arXiv 1209.2137). */
#include "comm/wire/packed_index.h"

#include <math.h>
#include <string.h>

#include "base/simd.h"

enum {
    BLOCK = 256,       /* entries */
    COLUMNS = 8,       /* of the low bits of a full block: BLOCK / COLUMNS = 32 values of w bits are w words */
    HEIGHT_LIMIT = 32, /* a height from here on costs more in the bitmap than an outlier: 8 + 32 bits */
    WIDTH_MAX = 32,
    HEIGHTS_MAX = BLOCK * (HEIGHT_LIMIT - 1), /* 13 bits */
    BITMAP_MAX = (BLOCK + HEIGHTS_MAX) / 32 + 2
};

/* What one block is made of. */
struct shape {
    uint32_t width, heights, outliers;
};

/* Words of the parts of a block of c entries. */
static size_t low_words(struct shape s, size_t c) {
    return (c * s.width + 31) / 32;
}
static size_t bitmap_words(struct shape s, size_t c) {
    return (c + s.heights + 31) / 32;
}
static size_t outlier_words(struct shape s) {
    return (s.outliers + 3) / 4 + s.outliers;
}
static size_t block_words(struct shape s, size_t c) {
    return 1 + low_words(s, c) + bitmap_words(s, c) + outlier_words(s);
}

size_t packed_index_words_max(size_t nnz) {
    return nnz + (nnz + 31) / 32 + (nnz + BLOCK - 1) / BLOCK;
}

/* -- what to expect -------------------------------------------------------------------------------------- */
/* The width that width_for takes for gaps of this mean, and the mean of their heights: a gap is g with probability
 * p (1-p)^g, so that with q = (1-p)^(2^w) a height is h with probability (1-q) q^h, and its mean q / (1-q). */
static uint32_t usual_width(double density, double *height) {
    double mean = (1 - density) / density;
    uint32_t width = 0;
    while (width < WIDTH_MAX && mean / exp2(width) > 1 + mean / exp2(width + 1)) width++;
    double log_q = log1p(-density) * exp2(width); /* -infinity where every index is taken: no heights */
    *height = exp(log_q) / -expm1(log_q);
    return width;
}

/* ceil(bits / 32) for a number of bits that varies. */
static double words_for(double bits) {
    return bits <= 32 ? 1 : bits / 32 + 0.5;
}

double packed_index_words_expected(double entries, double density) {
    double height, full = floor(entries / BLOCK), rest = entries - full * BLOCK;
    uint32_t width = usual_width(density, &height);
    double words = full * (1 + BLOCK * width / 32.0 + words_for(BLOCK * (1 + height)));
    if (rest > 0) words += 1 + ceil(rest * width / 32) + words_for(rest * (1 + height));
    return words;
}

static inline uint32_t low_mask(uint32_t width) {
    return (uint32_t)(((uint64_t)1 << width) - 1);
}

/* -- the low bits ---------------------------------------------------------------------------------------- */
/* Inlined where `columns` is a constant, so that the loop over columns becomes vector instructions. */
#define INLINE static inline __attribute__((always_inline))

/* value: [rows * columns], row by row, each < 2^width; words: [ceil(rows * width / 32) * columns]. */
INLINE void pack_columns(const uint32_t *value, size_t rows, uint32_t width, size_t columns, uint32_t *words) {
    uint32_t part[COLUMNS] = {0}, mask = low_mask(width);
    uint32_t shift = 0;
    if (width == 0) return;
    for (size_t row = 0; row < rows; row++, value += columns) {
        for (size_t j = 0; j < columns; j++) part[j] |= (value[j] & mask) << shift;
        shift += width;
        if (shift < 32) continue;
        for (size_t j = 0; j < columns; j++) words[j] = part[j];
        words += columns;
        shift -= 32;
        if (shift == 0)
            for (size_t j = 0; j < columns; j++) part[j] = 0;
        else
            for (size_t j = 0; j < columns; j++) part[j] = (value[j] & mask) >> (width - shift);
    }
    for (size_t j = 0; shift > 0 && j < columns; j++) words[j] = part[j];
}

INLINE void unpack_columns(const uint32_t *words, size_t rows, uint32_t width, size_t columns, uint32_t *value) {
    uint32_t mask = low_mask(width), shift = 0;
    if (width == 0) {
        memset(value, 0, rows * columns * sizeof *value);
        return;
    }
    for (size_t row = 0; row < rows; row++, value += columns) {
        if (shift + width <= 32)
            for (size_t j = 0; j < columns; j++) value[j] = words[j] >> shift & mask;
        else
            for (size_t j = 0; j < columns; j++)
                value[j] = (words[j] >> shift | words[columns + j] << (32 - shift)) & mask;
        shift += width;
        if (shift < 32) continue;
        shift -= 32;
        words += columns;
    }
}

/* -- encoding ---------------------------------------------------------------------------------------------- */
/* gap[i] = idx[i] - idx[i-1] - 1, idx[-1] + 1 = next; returns the largest. */
INLINE uint32_t find_gaps(const uint32_t *idx, size_t c, uint32_t next, uint32_t *gap) {
    uint32_t most = gap[0] = idx[0] - next;
    for (size_t i = 1; i < c; i++) {
        gap[i] = idx[i] - idx[i - 1] - 1;
        most = gap[i] > most ? gap[i] : most;
    }
    return most;
}

static inline uint32_t bit_length(uint32_t x) {
    return x ? 32 - (uint32_t)__builtin_clz(x) : 0;
}

/* Bits of c gaps of this sum that have no outliers; half a unit of height per gap is lost in rounding, whatever the
 * width. */
static uint64_t bits(uint32_t width, size_t c, uint64_t sum) {
    return c * (width + 1) + (sum >> width);
}

/* The best width by the mean alone. */
static uint32_t width_for(size_t c, uint64_t sum) {
    uint32_t width = bit_length((uint32_t)(sum / c));
    while (width > 0 && bits(width - 1, c, sum) <= bits(width, c, sum)) width--;
    return width;
}

/* The best width where some gaps are far above the others: every width is tried, with the gaps from
 * 2^width HEIGHT_LIMIT on as outliers. */
static uint32_t width_with_outliers(const uint32_t *gap, size_t c) {
    uint64_t sum[WIDTH_MAX + 1] = {0}, best = UINT64_MAX, below = 0;
    size_t number[WIDTH_MAX + 1] = {0}, inside = 0;
    uint32_t width = 0, length = 0;
    for (size_t i = 0; i < c; i++) {
        sum[bit_length(gap[i])] += gap[i];
        number[bit_length(gap[i])]++;
    }
    for (uint32_t w = 0; w <= WIDTH_MAX; w++) {
        for (; length <= w + 5 && length <= WIDTH_MAX; length++) {
            below += sum[length];
            inside += number[length];
        }
        uint64_t cost = c * (w + 1) + (below >> w) + 40 * (c - inside);
        if (cost >= best) continue;
        best = cost;
        width = w;
    }
    return width;
}

/* Writes the bitmap of the heights and the outliers from words[0] on; gap: [c]. */
static struct shape write_heights(const uint32_t *gap, size_t c, uint32_t width, uint32_t *words) {
    struct shape shape = {.width = width};
    uint8_t place[BLOCK];
    uint32_t outlier[BLOCK];
    uint64_t word = 0;
    size_t at = 0, end = 0; /* bits of the bitmap; 64-bit words of it that are written */
    for (size_t i = 0; i < c; i++) {
        uint32_t high = (uint32_t)((uint64_t)gap[i] >> width);
        if (high >= HEIGHT_LIMIT) {
            place[shape.outliers] = (uint8_t)i;
            outlier[shape.outliers++] = high;
            high = 0;
        }
        at += high;
        if (at >> 6 != end) { /* by at most one: a height is below 64 */
            words[2 * end] = (uint32_t)word;
            words[2 * end + 1] = (uint32_t)(word >> 32);
            end++;
            word = 0;
        }
        word |= (uint64_t)1 << (at & 63);
        at++;
    }
    words[2 * end] = (uint32_t)word;
    if (((at - 1) & 63) >= 32) words[2 * end + 1] = (uint32_t)(word >> 32);
    shape.heights = (uint32_t)(at - c);
    if (shape.outliers == 0) return shape;
    words += bitmap_words(shape, c);
    words[(shape.outliers - 1) / 4] = 0;
    memcpy(words, place, shape.outliers);
    memcpy(words + (shape.outliers + 3) / 4, outlier, shape.outliers * sizeof *outlier);
    return shape;
}

/* One block, behind its first word. */
INLINE struct shape write_block(const uint32_t *gap, size_t c, uint32_t width, uint32_t *words) {
    size_t low = low_words((struct shape){.width = width}, c);
    if (c == BLOCK)
        pack_columns(gap, BLOCK / COLUMNS, width, COLUMNS, words);
    else
        pack_columns(gap, c, width, 1, words);
    return write_heights(gap, c, width, words + low);
}

SIMD_CLONES size_t packed_index_encode(const uint32_t *idx, size_t nnz, size_t from, uint32_t *words) {
    uint32_t gap[BLOCK], block[2 * BLOCK + 2 * BITMAP_MAX];
    size_t written = 0;
    uint32_t next = (uint32_t)from;
    for (size_t at = 0; at < nnz; at += BLOCK) {
        size_t left = nnz - at, c = left < BLOCK ? left : BLOCK;
        uint32_t most = find_gaps(idx + at, c, next, gap);
        uint32_t width = width_for(c, (uint64_t)idx[at + c - 1] + 1 - next - c);
        if (most >> width >= HEIGHT_LIMIT) width = width_with_outliers(gap, c);
        struct shape shape = write_block(gap, c, width, block);
        if (block_words(shape, c) > 1 + c + (c + 31) / 32) shape = write_block(gap, c, WIDTH_MAX, block);
        words[written] = shape.width | shape.heights << 6 | shape.outliers << 19;
        memcpy(words + written + 1, block, (block_words(shape, c) - 1) * sizeof *words);
        written += block_words(shape, c);
        next = idx[at + c - 1] + 1;
    }
    return written;
}

/* -- decoding ---------------------------------------------------------------------------------------------- */
static bool read_shape(uint32_t word, size_t c, size_t left, struct shape *s, struct err *e) {
    *s = (struct shape){word & 63, word >> 6 & 8191, word >> 19};
    if (s->width > WIDTH_MAX) return err_set(e, "its indices have %u bits", s->width);
    if (s->heights > HEIGHTS_MAX || s->outliers > c || (s->width == WIDTH_MAX && s->heights > 0))
        return err_set(e, "a block of %zu indices begins with %08x", c, word);
    if (block_words(*s, c) > left)
        return err_set(e, "a block of %zu words where %zu are left", block_words(*s, c), left);
    return true;
}

/* The places of the c bits of a bitmap of `length` bits, the last of which is set; place: [BLOCK + 64]. */
static bool read_bitmap(const uint32_t *words, size_t length, size_t c, uint32_t *place) {
    size_t count = (length + 31) / 32, found = 0;
    for (size_t w = 0; w < count; w += 2) {
        uint64_t word = words[w] | (w + 1 < count ? (uint64_t)words[w + 1] << 32 : 0);
        for (; word; word &= word - 1) place[found++] = (uint32_t)(32 * w) + (uint32_t)__builtin_ctzll(word);
        if (found > c) return false;
    }
    return found == c && place[c - 1] == length - 1;
}

/* low[place] += outlier 2^width. */
static bool add_outliers(const uint32_t *words, struct shape s, size_t c, uint32_t *low) {
    uint8_t place[BLOCK];
    const uint32_t *outlier = words + (s.outliers + 3) / 4;
    memcpy(place, words, s.outliers);
    for (size_t i = 0; i < s.outliers; i++) {
        if (place[i] >= c || (i > 0 && place[i] <= place[i - 1])) return false;
        uint64_t gap = low[place[i]] + ((uint64_t)outlier[i] << s.width);
        if (gap > UINT32_MAX) return false;
        low[place[i]] = (uint32_t)gap;
    }
    return true;
}

/* idx[i] = next + (place[i] - i) 2^width + sum_{j <= i} low[j] + i, next = one past the last index. Returns the next
 * `next`; the sums fit into 64 bits, and where the result is in range, every index before it is. */
INLINE uint64_t add_up(const uint32_t *low, const uint32_t *place, size_t c, uint32_t width, uint64_t next,
                       uint32_t *idx) {
    uint64_t sum = next, last = next;
    for (size_t i = 0; i < c; i++) {
        sum += low[i];
        last = sum + ((uint64_t)(place[i] - (uint32_t)i) << width) + i;
        idx[i] = (uint32_t)last;
    }
    return last + 1;
}

SIMD_CLONES bool packed_index_decode(const uint32_t *words, size_t count, size_t from, size_t to, uint32_t *idx,
                                     size_t nnz, struct err *e) {
    uint32_t low[BLOCK], place[BLOCK + 64];
    uint64_t next = from;
    for (size_t at = 0; at < nnz; at += BLOCK) {
        size_t c = nnz - at < BLOCK ? nnz - at : BLOCK;
        struct shape s;
        if (count == 0) return err_set(e, "it ends after %zu of %zu indices", at, nnz);
        if (!read_shape(words[0], c, count, &s, e)) return false;
        const uint32_t *bitmap = words + 1 + low_words(s, c);
        if (c == BLOCK)
            unpack_columns(words + 1, BLOCK / COLUMNS, s.width, COLUMNS, low);
        else
            unpack_columns(words + 1, c, s.width, 1, low);
        if (!read_bitmap(bitmap, c + s.heights, c, place))
            return err_set(e, "a block's bitmap is not of %zu indices", c);
        if (!add_outliers(bitmap + bitmap_words(s, c), s, c, low)) return err_set(e, "a block's outliers are wrong");
        next = add_up(low, place, c, s.width, next, idx + at);
        if (next > to) return err_set(e, "its indices reach %zu", to);
        words += block_words(s, c);
        count -= block_words(s, c);
    }
    return count == 0 || err_set(e, "%zu words follow the last index", count);
}
