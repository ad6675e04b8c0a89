/* coo16.c: coordinate form with values of 16 bits. A message, in 32-bit words of the machine's byte order: a word that
 * names format and version; the number of entries; all indices; all values as bf16 or fp16, filled up to a word. No
 * entries: no bytes. 6 bytes an entry.
 *
 * Dense sums travel in these formats, too, without indices (parts/coded_sum.h): half of f32's bytes.
 *
 * The errors of fp16 are exact for values below 2^29; above, where no gradient is, to the rounding of f32. */
#include "base/simd.h"
#include "comm/wire/bf16.h"
#include "comm/wire/half.h"
#include "comm/wire/wire.h"

/* "CBF1", "CFP1" as numbers. */
enum { NAME_BF16 = 0x43424631, NAME_FP16 = 0x43465031, HEADER = 2 };

static size_t value_words(size_t nnz) {
    return (nnz + 1) / 2;
}

static size_t capacity(size_t nnz) {
    return nnz ? sizeof(uint32_t) * (HEADER + nnz + value_words(nnz)) : 0;
}

/* Less than one entry on average: mostly no message at all. */
static double expected_bytes(double entries, double density) {
    (void)density;
    if (entries < 1) return entries > 0 ? entries * (double)capacity(1) : 0;
    return sizeof(uint32_t) * (HEADER + entries + ceil(entries / 2));
}

static void pack_bf16(const float *val, size_t count, uint16_t *to) {
    bf16_write(val, count, (unsigned char *)to);
}
static void unpack_bf16(const uint16_t *from, size_t count, float *val) {
    bf16_read((const unsigned char *)from, count, val);
}

SIMD_CLONES static void round_all_fp16(float *val, size_t count, float *error) {
    for (size_t i = 0; i < count; i++) {
        float rounded = fp16_round(val[i]);
        error[i] = val[i] - rounded;
        val[i] = rounded;
    }
}
SIMD_CLONES static void pack_fp16(const float *val, size_t count, uint16_t *to) {
    for (size_t i = 0; i < count; i++) to[i] = fp16_half(val[i]);
}
SIMD_CLONES static void unpack_fp16(const uint16_t *from, size_t count, float *val) {
    for (size_t i = 0; i < count; i++) val[i] = fp16_value(from[i]);
}

static size_t encode(const struct sparse *s, void *message, uint32_t name,
                     void (*pack)(const float *val, size_t count, uint16_t *to)) {
    uint32_t *words = message;
    if (s->nnz == 0) return 0;
    words[0] = name;
    words[1] = (uint32_t)s->nnz;
    memcpy(words + HEADER, s->idx, s->nnz * sizeof *s->idx);
    if (s->nnz % 2) words[HEADER + s->nnz + s->nnz / 2] = 0; /* half of it stays free */
    pack(s->val, s->nnz, (uint16_t *)(void *)(words + HEADER + s->nnz));
    return capacity(s->nnz);
}

static bool decode(uint32_t *words, size_t bytes, size_t from, size_t to, struct sparse *buffer, struct sparse *view,
                   uint32_t name, void (*unpack)(const uint16_t *from, size_t count, float *val), struct err *e) {
    *view = (struct sparse){.idx = words, .val = buffer->val, .cap = buffer->cap};
    if (bytes == 0) return true;
    if (bytes % sizeof *words != 0 || bytes < sizeof *words * HEADER) return err_set(e, "%zu bytes", bytes);
    if (words[0] != name) return err_set(e, "it begins with %08x instead of %08x", words[0], name);
    size_t nnz = words[1];
    if (nnz == 0 || nnz > buffer->cap || bytes != capacity(nnz))
        return err_set(e, "%zu bytes with %zu entries where 1 to %zu were expected", bytes, nnz, buffer->cap);
    view->idx = words + HEADER;
    view->nnz = nnz;
    if (!sparse_valid(view, to)) return err_set(e, "its indices do not increase or reach %zu", to);
    if (view->idx[0] < from) return err_set(e, "index %u lies before %zu", view->idx[0], from);
    unpack((const uint16_t *)(const void *)(words + HEADER + nnz), nnz, view->val);
    return true;
}

static size_t encode_bf16(const struct sparse *s, size_t from, size_t to, void *message) {
    (void)from, (void)to;
    return encode(s, message, NAME_BF16, pack_bf16);
}
static size_t encode_fp16(const struct sparse *s, size_t from, size_t to, void *message) {
    (void)from, (void)to;
    return encode(s, message, NAME_FP16, pack_fp16);
}
static bool decode_bf16(void *message, size_t bytes, size_t from, size_t to, struct sparse *buffer, struct sparse *view,
                        struct err *e) {
    return decode(message, bytes, from, to, buffer, view, NAME_BF16, unpack_bf16, e);
}
static bool decode_fp16(void *message, size_t bytes, size_t from, size_t to, struct sparse *buffer, struct sparse *view,
                        struct err *e) {
    return decode(message, bytes, from, to, buffer, view, NAME_FP16, unpack_fp16, e);
}

extern const struct wire_ops wire_bf16, wire_fp16;
const struct wire_ops wire_bf16 = {
    .name = "bf16",
    .summary = "values rounded to bf16: dense sums in 2 bytes an entry, sparse ones with their index in 6",
    .paper = "PyTorch DDP's bf16_compress_hook; Kalamkar et al., 2019 (arXiv 1905.12322)",
    .rounds = true,
    .indices = &wire_indices,
    .value_bytes = sizeof(uint16_t),
    .fixed = true,
    .capacity = capacity,
    .expected_bytes = expected_bytes,
    .encode = encode_bf16,
    .decode = decode_bf16,
    .round = bf16_round,
    .round_all = bf16_round_all,
    .pack = pack_bf16,
    .unpack = unpack_bf16,
};
const struct wire_ops wire_fp16 = {
    .name = "fp16",
    .summary = "values rounded to fp16 (up to 65504): dense sums in 2 bytes an entry, sparse ones in 6",
    .paper = "PyTorch DDP's fp16_compress_hook; Micikevicius et al., ICLR 2018",
    .rounds = true,
    .indices = &wire_indices,
    .value_bytes = sizeof(uint16_t),
    .fixed = true,
    .capacity = capacity,
    .expected_bytes = expected_bytes,
    .encode = encode_fp16,
    .decode = decode_fp16,
    .round = fp16_round,
    .round_all = round_all_fp16,
    .pack = pack_fp16,
    .unpack = unpack_fp16,
};
