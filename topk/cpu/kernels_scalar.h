/* kernels_scalar.h: one entry at a time. Filtering: all of it in generic C and AVX2 (which has no compressing store),
 * the last few entries with AVX-512. Entries [from, n) are looked at; kept: how many stand already at the front.
 * Every entry is written, so that no branch depends on the data. Moments: the last few entries of an array. */
#ifndef ST_TOPK_KERNELS_SCALAR_H
#define ST_TOPK_KERNELS_SCALAR_H

#include "topk/cpu/kernels.h"
#include "topk/sparse.h"

static inline size_t filter_rest(uint32_t *idx, float *val, size_t from, size_t n, uint32_t key, size_t kept) {
    for (size_t i = from; i < n; i++) {
        uint32_t index = idx[i];
        float value = val[i];
        idx[kept] = index;
        val[kept] = value;
        kept += magnitude_key(value) >= key;
    }
    return kept;
}

static inline size_t filter_keys_rest(uint32_t *keys, size_t from, size_t n, uint32_t low, uint32_t width,
                                      size_t kept) {
    for (size_t i = from; i < n; i++) {
        uint32_t key = keys[i];
        keys[kept] = key;
        kept += key - low < width;
    }
    return kept;
}

/* Entry i of an array, with value x and this magnitude key. */
static inline void moment_add(struct moment_lanes *m, size_t i, float x, uint32_t own) {
    double wide = (double)x, magnitude = wide < 0 ? -wide : wide;
    size_t lane = i % MOMENT_LANES;
    m->sum[lane] += wide;
    m->sum_abs[lane] += magnitude;
    m->sum_square[lane] += wide * wide;
    m->count++;
    m->max_key = own > m->max_key ? own : m->max_key;
}

#endif
