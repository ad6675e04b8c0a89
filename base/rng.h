/* rng.h: counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy
 * as 1, 2, 3", SC 2011). A number is a pure function of (seed, stream, index): no state has to be
 * saved for a run to resume to the same bits, and any rank can compute any other rank's numbers.
 *
 *        struct rng r = rng_open(seed, RNG_SHUFFLE, epoch);
 *        uint32_t j = rng_below(&r, n);
 */
#ifndef ST_BASE_RNG_H
#define ST_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

/* Streams: one purpose each, so that no two uses share numbers. */
enum rng_stream {
    RNG_INIT = 1,
    RNG_SHUFFLE,
    RNG_AUGMENT,
    RNG_SYNTHETIC,
    RNG_DROPOUT,
    RNG_SELECT,
    RNG_TEST,
    RNG_DRAW,
    RNG_WINDOW,    /* of a text, to train on */
    RNG_SAMPLE,    /* to evaluate on */
    RNG_PACK,      /* a text into pairs of parts */
    RNG_MASK,      /* of sequences, to train on */
    RNG_MASK_EVAL, /* to evaluate on */
    RNG_ROUND,     /* of gradients, up or down */
    RNG_SUBSET,    /* of the entries of a gradient, the same on all ranks */
    RNG_DIRECTIONS /* to begin with in matrices of a gradient, the same on all ranks */
};

/* The Philox4x32-10 block function: counter and key to four uniform words. */
void philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* A sequence: block b of (seed, stream, index) has the counter {b, stream, low(index), high(index)}
 * and the key {low(seed), high(seed)}. */
struct rng {
    uint32_t counter[4], key[2], word[4];
    int left; /* words of `word` not yet given out */
};

struct rng rng_open(uint64_t seed, enum rng_stream stream, uint64_t index);
uint32_t rng_u32(struct rng *r);               /* uniform over all 2^32 values */
uint32_t rng_below(struct rng *r, uint32_t n); /* uniform over 0..n-1 without bias, n >= 1 (Lemire) */
double rng_uniform(struct rng *r);             /* uniform in [0, 1), 53 bits */
double rng_normal(struct rng *r);              /* standard normal (Box-Muller, one of the pair) */

/* (float)(scale * rng_normal(r)), n times, to x: the same bits and the same place in the sequence, sooner. */
void rng_normals(struct rng *r, double scale, float *x, size_t n);

#endif
