/* rng.c: see rng.h; the block function is in philox.h, which kernels include too. */
#include "base/rng.h"

#include <math.h>

#include "base/philox.h"

void philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
    struct philox_block made = philox_block_of(counter[0], counter[1], counter[2], counter[3], key[0], key[1]);
    for (int i = 0; i < 4; i++) out[i] = made.word[i];
}

struct rng rng_open(uint64_t seed, enum rng_stream stream, uint64_t index) {
    return (struct rng){.counter = {0, (uint32_t)stream, (uint32_t)index, (uint32_t)(index >> 32)},
                        .key = {(uint32_t)seed, (uint32_t)(seed >> 32)}};
}

uint32_t rng_u32(struct rng *r) {
    if (r->left == 0) {
        philox4x32(r->counter, r->key, r->word);
        r->counter[0]++;
        r->left = 4;
    }
    return r->word[4 - r->left--];
}

/* Lemire, "Fast random integer generation in an interval", 2019: the high half of word * n, after throwing
 * away the few words that would make some results likelier. */
uint32_t rng_below(struct rng *r, uint32_t n) {
    uint32_t unfair = (uint32_t)(-n) % n; /* 2^32 mod n */
    uint64_t product;
    do product = (uint64_t)rng_u32(r) * n;
    while ((uint32_t)product < unfair);
    return (uint32_t)(product >> 32);
}

double rng_uniform(struct rng *r) {
    uint64_t high = rng_u32(r), low = rng_u32(r);
    return (double)((high << 32 | low) >> 11) * 0x1p-53;
}

double rng_normal(struct rng *r) {
    double u = 1.0 - rng_uniform(r); /* in (0, 1]: its logarithm is finite */
    double v = rng_uniform(r);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}
