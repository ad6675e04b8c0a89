/* chunk_top.c: see chunk_top.h. */
#include "comm/parts/chunk_top.h"

#include "base/simd.h"
#include "topk/sparse.h"

enum { BLOCK = 16 };

SIMD_CLONES static void make_keys(const float *val, size_t m, uint32_t *key) {
    for (size_t i = 0; i < m; i++) key[i] = magnitude_key(val[i]);
}

SIMD_CLONES static size_t count_above(const float *val, size_t m, uint32_t key) {
    size_t count = 0;
    for (size_t i = 0; i < m; i++) count += magnitude_key(val[i]) > key;
    return count;
}

/* The places of those above kth, and of the first `ties` that equal it: k in all. Blocks without one are passed by. */
SIMD_CLONES static void places(const float *val, size_t m, uint32_t kth, size_t ties, size_t k, uint16_t *at) {
    for (size_t from = 0, count = 0; from < m && count < k; from += BLOCK) {
        const size_t end = m - from < BLOCK ? m : from + BLOCK;
        uint32_t any = 0;
        for (size_t i = from; i < end; i++) any |= magnitude_key(val[i]) >= kth;
        for (size_t i = from; any && i < end && count < k; i++) {
            const uint32_t own = magnitude_key(val[i]);
            const bool tie = own == kth && ties > 0;
            ties -= tie;
            at[count] = (uint16_t)i;
            count += own > kth || tie;
        }
    }
}

void chunk_top(const float *val, size_t m, size_t k, uint32_t *key, uint16_t *at) {
    make_keys(val, m, key);
    const uint32_t kth = key_kth_largest(key, m, k); /* which leaves the keys in another order */
    places(val, m, kth, k - count_above(val, m, kth), k, at);
}
