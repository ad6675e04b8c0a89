/* kernels_generic.c: the kernels in plain C, for any processor; the reference that the others answer to. */
#include "topk/cpu/kernels.h"
#include "topk/cpu/kernels_scalar.h"

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

/* MOMENT_LANES entries, one to each lane. */
static inline void add_lanes(struct moment_lanes *m, const float *x) {
    for (size_t j = 0; j < MOMENT_LANES; j++) {
        double wide = (double)x[j];
        m->sum[j] += wide;
        m->sum_abs[j] += wide < 0 ? -wide : wide;
        m->sum_square[j] += wide * wide;
    }
    for (size_t j = 0; j < MOMENT_LANES; j++) {
        uint32_t own = magnitude_key(x[j]);
        m->max_key = own > m->max_key ? own : m->max_key;
    }
}

static size_t accumulate_compact_moments(float *acc, const float *grad, size_t n, uint32_t base, uint32_t key,
                                         uint32_t *idx, float *val, size_t cap, struct moment_lanes *m) {
    size_t count = 0, i = 0;
    *m = (struct moment_lanes){0};
    for (; i + MOMENT_LANES <= n; i += MOMENT_LANES) {
        for (size_t j = i; j < i + MOMENT_LANES; j++) {
            acc[j] += grad[j];
            count = emit(acc[j], base + (uint32_t)j, key, idx, val, cap, count);
        }
        add_lanes(m, acc + i);
    }
    for (; i < n; i++) {
        acc[i] += grad[i];
        count = emit(acc[i], base + (uint32_t)i, key, idx, val, cap, count);
        moment_add(m, i, acc[i], magnitude_key(acc[i]));
    }
    m->count = n;
    return count;
}

static void moments(const float *acc, size_t n, uint32_t key, struct moment_lanes *m) {
    *m = (struct moment_lanes){0};
    for (size_t i = 0; i < n; i++) {
        uint32_t own = magnitude_key(acc[i]);
        if (own >= key) moment_add(m, i, acc[i], own);
    }
}

static size_t count_keys(const float *acc, size_t n, uint32_t key) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) count += magnitude_key(acc[i]) >= key;
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
    .accumulate_compact_moments = accumulate_compact_moments,
    .moments = moments,
    .count = count_keys,
    .filter = filter,
    .filter_keys = filter_keys,
};
