/* radix.c: see radix.h: a pass over the keys for each byte that they use, from the lowest on; equal bytes keep their
 * order. */
#include "cli/gradients/radix.h"

#include <string.h>

enum { BITS = 8, BUCKETS = 1 << BITS };

static void sort_by_byte(const uint64_t *from, uint64_t *to, size_t count, int shift) {
    size_t at[BUCKETS] = {0}, sum = 0;
    for (size_t i = 0; i < count; i++) at[from[i] >> shift & (BUCKETS - 1)]++;
    for (size_t b = 0; b < BUCKETS; b++) {
        size_t here = at[b];
        at[b] = sum;
        sum += here;
    }
    for (size_t i = 0; i < count; i++) to[at[from[i] >> shift & (BUCKETS - 1)]++] = from[i];
}

void radix_sort(uint64_t *key, uint64_t *scratch, size_t count, uint64_t limit) {
    uint64_t *from = key, *to = scratch;
    for (int shift = 0; shift < 64 && limit > 0 && (limit - 1) >> shift > 0; shift += BITS) {
        sort_by_byte(from, to, count, shift);
        uint64_t *other = from;
        from = to;
        to = other;
    }
    if (from != key) memcpy(key, from, count * sizeof *key);
}
