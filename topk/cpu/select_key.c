/* select_key.c: the k-th largest of n integers in O(n), whatever they are.
 *
 * A radix selection that adapts to the range: find the smallest and largest key, cut that range into at most
 * 2048 bins of equal width (a power of two), count, keep the one bin that holds the k-th largest, repeat inside
 * it. A round narrows the range at least 1024-fold, so 32-bit keys need at most four rounds: no input is bad,
 * which a quickselect cannot say. Keys above a threshold, the usual input here, span few binades and are spread
 * evenly over the bins, so that the second round sees a few hundred of them. */
#include "base/simd.h"
#include "topk/cpu/kernels.h"
#include "topk/sparse.h"

enum { BINS = 2048, FEW = 24 };

/* Insertion sort from large to small: for a handful of keys cheaper than clearing the bins. */
static uint32_t kth_of_few(uint32_t *key, size_t n, size_t k) {
    for (size_t i = 1; i < n; i++) {
        uint32_t x = key[i];
        size_t j = i;
        for (; j > 0 && key[j - 1] < x; j--) key[j] = key[j - 1];
        key[j] = x;
    }
    return key[k - 1];
}

SIMD_CLONES static void range_of(const uint32_t *key, size_t n, uint32_t *low, uint32_t *high) {
    uint32_t least = key[0], most = key[0];
    for (size_t i = 1; i < n; i++) {
        least = key[i] < least ? key[i] : least;
        most = key[i] > most ? key[i] : most;
    }
    *low = least;
    *high = most;
}

uint32_t key_kth_largest(uint32_t *key, size_t n, size_t k) {
    uint32_t count[BINS];
    while (n > FEW) {
        uint32_t low, high;
        range_of(key, n, &low, &high);
        unsigned shift = 0;
        while ((high - low) >> shift >= BINS) shift++;
        uint32_t bin = (high - low) >> shift;
        memset(count, 0, ((size_t)bin + 1) * sizeof count[0]);
        for (size_t i = 0; i < n; i++) count[(key[i] - low) >> shift]++;
        for (; count[bin] < k; bin--) k -= count[bin];
        if (shift == 0) return low + bin;
        n = topk_kernels()->filter_keys(key, n, low + (bin << shift), 1u << shift);
    }
    return kth_of_few(key, n, k);
}
