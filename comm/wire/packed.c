/* packed.c: indices as Rice-coded gaps (packed_index.h) and values as bf16 (`packed`) or as they are (`packed-f32`).
 *
 * A message, in 32-bit words of the machine's byte order: a word that names format and version; the number of entries;
 * the values, 2 or 4 bytes each, filled up to a word, or none where indices travel alone; the indices. No entries: no
 * bytes. */
#include <math.h>

#include "comm/wire/bf16.h"
#include "comm/wire/packed_index.h"
#include "comm/wire/wire.h"

/* "PKB1", "PKF1", "PKI1" as numbers. */
enum { NAME_BF16 = 0x504b4231, NAME_F32 = 0x504b4631, NAME_INDICES = 0x504b4931, HEADER = 2 };

static size_t bf16_words(size_t nnz) {
    return (nnz + 1) / 2;
}

static size_t capacity_bf16(size_t nnz) {
    return nnz ? sizeof(uint32_t) * (HEADER + bf16_words(nnz) + packed_index_words_max(nnz)) : 0;
}
static size_t capacity_f32(size_t nnz) {
    return nnz ? sizeof(uint32_t) * (HEADER + nnz + packed_index_words_max(nnz)) : 0;
}
static size_t capacity_indices(size_t nnz) {
    return nnz ? sizeof(uint32_t) * (HEADER + packed_index_words_max(nnz)) : 0;
}

/* Less than one entry on average: mostly no message at all. */
static double expected(double entries, double density, double value_bytes) {
    if (entries < 1) return entries > 0 ? entries * expected(1, density, value_bytes) : 0;
    double values = ceil(value_bytes * entries / sizeof(uint32_t));
    return sizeof(uint32_t) * (HEADER + values + packed_index_words_expected(entries, density));
}
static double expected_bf16(double entries, double density) {
    return expected(entries, density, sizeof(uint16_t));
}
static double expected_f32(double entries, double density) {
    return expected(entries, density, sizeof(float));
}
static double expected_indices(double entries, double density) {
    return expected(entries, density, 0);
}

static size_t finish(const struct sparse *s, size_t from, uint32_t *words, uint32_t name, size_t value_words) {
    words[0] = name;
    words[1] = (uint32_t)s->nnz;
    size_t before = HEADER + value_words;
    return sizeof *words * (before + packed_index_encode(s->idx, s->nnz, from, words + before));
}

static size_t encode_bf16(const struct sparse *s, size_t from, size_t to, void *message) {
    uint32_t *words = message;
    (void)to;
    if (s->nnz == 0) return 0;
    words[HEADER + s->nnz / 2] = 0; /* half of it stays free when nnz is odd */
    bf16_write(s->val, s->nnz, (unsigned char *)(words + HEADER));
    return finish(s, from, words, NAME_BF16, bf16_words(s->nnz));
}

static size_t encode_f32(const struct sparse *s, size_t from, size_t to, void *message) {
    uint32_t *words = message;
    (void)to;
    if (s->nnz == 0) return 0;
    memcpy(words + HEADER, s->val, s->nnz * sizeof *s->val);
    return finish(s, from, words, NAME_F32, s->nnz);
}

static size_t encode_indices(const struct sparse *s, size_t from, size_t to, void *message) {
    (void)to;
    return s->nnz > 0 ? finish(s, from, message, NAME_INDICES, 0) : 0;
}

/* Everything but the values; they begin at word HEADER. value_words(nnz) words of them. */
static bool decode(const uint32_t *words, size_t bytes, size_t from, size_t to, struct sparse *view, uint32_t name,
                   size_t (*value_words)(size_t nnz), struct err *e) {
    size_t count = bytes / sizeof *words;
    view->nnz = 0;
    if (bytes == 0) return true;
    if (bytes % sizeof *words != 0 || count < HEADER) return err_set(e, "%zu bytes", bytes);
    if (words[0] != name) return err_set(e, "it begins with %08x instead of %08x", words[0], name);
    size_t nnz = words[1], before = HEADER + value_words(nnz);
    if (nnz == 0 || nnz > view->cap || nnz > to - from)
        return err_set(e, "%zu entries where 1 to %zu were expected", nnz,
                       view->cap < to - from ? view->cap : to - from);
    if (before > count) return err_set(e, "%zu bytes with %zu entries", bytes, nnz);
    view->nnz = nnz;
    return packed_index_decode(words + before, count - before, from, to, view->idx, nnz, e);
}

static bool decode_bf16(void *message, size_t bytes, size_t from, size_t to, struct sparse *buffer, struct sparse *view,
                        struct err *e) {
    *view = *buffer;
    if (!decode(message, bytes, from, to, view, NAME_BF16, bf16_words, e)) return false;
    if (view->nnz > 0) bf16_read((const unsigned char *)message + HEADER * sizeof(uint32_t), view->nnz, view->val);
    return true;
}

static size_t f32_words(size_t nnz) {
    return nnz;
}

static bool decode_f32(void *message, size_t bytes, size_t from, size_t to, struct sparse *buffer, struct sparse *view,
                       struct err *e) {
    *view = *buffer;
    if (!decode(message, bytes, from, to, view, NAME_F32, f32_words, e)) return false;
    if (view->nnz > 0) view->val = (float *)(void *)((uint32_t *)message + HEADER);
    return true;
}

static size_t no_words(size_t nnz) {
    (void)nnz;
    return 0;
}

static bool decode_indices(void *message, size_t bytes, size_t from, size_t to, struct sparse *buffer,
                           struct sparse *view, struct err *e) {
    *view = *buffer;
    return decode(message, bytes, from, to, view, NAME_INDICES, no_words, e);
}

static const struct wire_ops indices = {
    .name = "packed",
    .capacity = capacity_indices,
    .expected_bytes = expected_indices,
    .encode = encode_indices,
    .decode = decode_indices,
};

extern const struct wire_ops wire_packed, wire_packed_f32;
const struct wire_ops wire_packed = {
    .name = "packed",
    .summary = "gaps of indices in Rice's code, values rounded to bf16; about 3 bytes an entry",
    .paper = "Rice and Plaunt 1971; Zukowski et al., ICDE 2006 (outliers)",
    .rounds = true,
    .indices = &indices,
    .value_bytes = sizeof(uint16_t),
    .capacity = capacity_bf16,
    .expected_bytes = expected_bf16,
    .encode = encode_bf16,
    .decode = decode_bf16,
    .round = bf16_round,
    .round_all = bf16_round_all,
};
const struct wire_ops wire_packed_f32 = {
    .name = "packed-f32",
    .summary = "gaps of indices in Rice's code, values as they are; about 5 bytes an entry",
    .paper = "Rice and Plaunt 1971; Zukowski et al., ICDE 2006 (outliers)",
    .indices = &indices,
    .value_bytes = sizeof(float),
    .capacity = capacity_f32,
    .expected_bytes = expected_f32,
    .encode = encode_f32,
    .decode = decode_f32,
};
