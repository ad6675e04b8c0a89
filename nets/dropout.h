/* dropout.h: which elements a dropout layer drops: the same on every device, because both compute it from here.
 *
 * Element i of the canonical order belongs to word i % 4 of the Philox block with the counter {i / 4, stream
 * RNG_DROPOUT and number of the layer, low and high half of the step} and the key {low(seed), high(seed)} (base/rng.h).
 * It is kept where the word is at least p 2^32. */
#ifndef ST_NETS_DROPOUT_H
#define ST_NETS_DROPOUT_H

#include <stdint.h>

#include "base/philox.h"
#include "base/rng.h"

struct dropout {
    uint32_t layer;     /* second word of the counter */
    uint32_t key[2];    /* the seed */
    uint32_t threshold; /* words below are dropped */
    float scale;        /* what the others are multiplied by: 1 / (1 - p) */
};

/* 0 <= p < 1; number: of the layer, < 2^24. */
static inline struct dropout dropout_of(uint64_t seed, int number, double p) {
    struct dropout d;
    d.layer = (uint32_t)RNG_DROPOUT | (uint32_t)number << 8;
    d.key[0] = (uint32_t)seed;
    d.key[1] = (uint32_t)(seed >> 32);
    d.threshold = (uint32_t)(p * 4294967296.0);
    d.scale = (float)(1 / (1 - p));
    return d;
}

struct dropout_factors {
    float of[4];
};

/* What elements 4 block ... 4 block + 3 are multiplied by in this step. */
ST_HD struct dropout_factors dropout_block(const struct dropout *d, uint32_t step_low, uint32_t step_high,
                                           uint32_t block) {
    const struct philox_block random = philox_block_of(block, d->layer, step_low, step_high, d->key[0], d->key[1]);
    struct dropout_factors made;
    for (int i = 0; i < 4; i++) made.of[i] = random.word[i] < d->threshold ? 0 : d->scale;
    return made;
}

#endif
