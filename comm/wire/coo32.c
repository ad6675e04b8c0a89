/* coo32.c: coordinate form: all indices (u32), then all values (f32), both in the machine's byte order; 8 bytes an
 * entry, no header. The format of the papers; a message that came is used where it lies. */
#include "comm/wire/wire.h"

enum { ENTRY = sizeof(uint32_t) + sizeof(float) };

static size_t capacity(size_t nnz) {
    return ENTRY * nnz;
}

static double expected_bytes(double entries, double density) {
    (void)density;
    return ENTRY * entries;
}

static size_t encode(const struct sparse *s, size_t from, size_t to, void *message) {
    (void)from, (void)to;
    if (s->nnz == 0) return 0;
    memcpy(message, s->idx, s->nnz * sizeof *s->idx);
    memcpy((uint32_t *)message + s->nnz, s->val, s->nnz * sizeof *s->val);
    return ENTRY * s->nnz;
}

static bool in_range(const struct sparse *view, size_t from, size_t to, struct err *e) {
    if (!sparse_valid(view, to)) return err_set(e, "its indices do not increase or reach %zu", to);
    if (view->nnz > 0 && view->idx[0] < from) return err_set(e, "index %u lies before %zu", view->idx[0], from);
    return true;
}

static bool decode(void *message, size_t bytes, size_t from, size_t to, struct sparse *buffer, struct sparse *view,
                   struct err *e) {
    size_t nnz = bytes / ENTRY;
    uint32_t *idx = message;
    (void)buffer;
    if (bytes % ENTRY != 0) return err_set(e, "%zu bytes are no whole number of %d-byte entries", bytes, (int)ENTRY);
    *view = (struct sparse){.idx = idx, .val = (float *)(void *)(idx + nnz), .nnz = nnz, .cap = nnz};
    return in_range(view, from, to, e);
}

/* -- indices alone ------------------------------------------------------------------------------------------- */
static size_t capacity_indices(size_t nnz) {
    return sizeof(uint32_t) * nnz;
}

static double expected_indices(double entries, double density) {
    (void)density;
    return sizeof(uint32_t) * entries;
}

static size_t encode_indices(const struct sparse *s, size_t from, size_t to, void *message) {
    (void)from, (void)to;
    if (s->nnz > 0) memcpy(message, s->idx, s->nnz * sizeof *s->idx);
    return sizeof *s->idx * s->nnz;
}

static bool decode_indices(void *message, size_t bytes, size_t from, size_t to, struct sparse *buffer,
                           struct sparse *view, struct err *e) {
    size_t nnz = bytes / sizeof *view->idx;
    (void)buffer;
    *view = (struct sparse){.idx = message, .nnz = nnz, .cap = nnz};
    return (bytes % sizeof *view->idx == 0 || err_set(e, "%zu bytes are no whole number of indices", bytes)) &&
           in_range(view, from, to, e);
}

const struct wire_ops wire_indices = {
    .name = "coo32",
    .in_place = true,
    .fixed = true,
    .capacity = capacity_indices,
    .expected_bytes = expected_indices,
    .encode = encode_indices,
    .decode = decode_indices,
};

extern const struct wire_ops wire_coo32;
const struct wire_ops wire_coo32 = {
    .name = "coo32",
    .summary = "index and value, 4 bytes each: the papers' format",
    .paper = "gTop-k (Shi et al., ICDCS 2019), Section III; 8 bytes an entry",
    .in_place = true,
    .indices = &wire_indices,
    .value_bytes = sizeof(float),
    .fixed = true,
    .capacity = capacity,
    .expected_bytes = expected_bytes,
    .encode = encode,
    .decode = decode,
};
