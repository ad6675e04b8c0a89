/* kernels_generic.c: the kernels in plain C, for any processor; the reference that the others answer to. */
#include "topk/kernels.h"
#include "topk/kernels_scalar.h"

static void accumulate(float *acc, const float *grad, size_t n) {
    for (size_t i = 0; i < n; i++) acc[i] += grad[i];
}

/* One entry; the same rule as in the vector versions, which store 16 places at a time. */
static inline size_t emit(float value, uint32_t i, uint32_t key, uint32_t *idx, float *val, size_t cap, size_t count) {
    if (magnitude_key(value) < key) return count;
    if (count + 16 <= cap) {
        idx[count] = i;
        val[count] = value;
    }
    return count + 1;
}

static size_t accumulate_compact(float *acc, const float *grad, size_t n, uint32_t base, uint32_t key, uint32_t *idx,
                                 float *val, size_t cap) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        acc[i] += grad[i];
        count = emit(acc[i], base + (uint32_t)i, key, idx, val, cap, count);
    }
    return count;
}

static size_t compact(const float *acc, size_t n, uint32_t base, uint32_t key, uint32_t *idx, float *val, size_t cap) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) count = emit(acc[i], base + (uint32_t)i, key, idx, val, cap, count);
    return count;
}

static size_t filter(uint32_t *idx, float *val, size_t n, uint32_t key) {
    return filter_rest(idx, val, 0, n, key, 0);
}

static size_t filter_keys(uint32_t *keys, size_t n, uint32_t low, uint32_t width) {
    return filter_keys_rest(keys, 0, n, low, width, 0);
}

extern const struct topk_kernels topk_kernels_generic;
const struct topk_kernels topk_kernels_generic = {
    .name = "generic",
    .accumulate = accumulate,
    .accumulate_compact = accumulate_compact,
    .compact = compact,
    .filter = filter,
    .filter_keys = filter_keys,
};
