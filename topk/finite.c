/* finite.c: see finite.h. The largest magnitude of a block, as its IEEE bits, tells whether the block needs a
 * closer look; that loop has no branch in it and runs at the speed of memory. */
#include "topk/finite.h"

#include "base/simd.h"
#include "topk/sparse.h"

enum { BLOCK = 4096 };

SIMD_CLONES static uint32_t largest_key(const float *v, size_t n) {
    uint32_t most = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t key = magnitude_key(v[i]);
        most = key > most ? key : most;
    }
    return most;
}

size_t first_nonfinite(const float *v, size_t n) {
    for (size_t from = 0; from < n; from += BLOCK) {
        size_t count = n - from < BLOCK ? n - from : BLOCK;
        if (largest_key(v + from, count) < KEY_INFINITE) continue;
        size_t i = from;
        while (magnitude_key(v[i]) < KEY_INFINITE) i++;
        return i;
    }
    return n;
}
