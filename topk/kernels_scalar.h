/* kernels_scalar.h: filtering one entry at a time: all of it in generic C and AVX2 (which has no compressing store),
 * the last few entries with AVX-512. Entries [from, n) are looked at; kept: how many stand already at the front.
 * Every entry is written, so that no branch depends on the data. */
#ifndef ST_TOPK_KERNELS_SCALAR_H
#define ST_TOPK_KERNELS_SCALAR_H

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

#endif
