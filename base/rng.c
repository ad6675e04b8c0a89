/* rng.c: see rng.h. Philox4x32-10: ten rounds; the counter is multiplied, swapped and keyed, the key bumped by
 * Weyl constants (Salmon et al. 2011, Section 3.3 and Table 2). */
#include "base/rng.h"

#include <math.h>

static const uint32_t multiplier[2] = {0xD2511F53u, 0xCD9E8D57u};
static const uint32_t weyl[2] = {0x9E3779B9u, 0xBB67AE85u};

void philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)multiplier[0] * c0, p1 = (uint64_t)multiplier[1] * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        k0 += weyl[0];
        k1 += weyl[1];
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
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
