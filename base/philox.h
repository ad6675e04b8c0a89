/* philox.h: the block function of rng.h as one that host and device code share. */
#ifndef ST_BASE_PHILOX_H
#define ST_BASE_PHILOX_H

#include <stdint.h>

#include "base/cuda/cuda_hd.h"

struct philox_block {
    uint32_t word[4];
};

/* What each round multiplies by, and adds to the key. */
#define PHILOX_M0 0xD2511F53u
#define PHILOX_M1 0xCD9E8D57u
#define PHILOX_W0 0x9E3779B9u
#define PHILOX_W1 0xBB67AE85u
enum { PHILOX_ROUNDS = 10 };

/* Philox4x32-10: ten rounds; each multiplies, swaps and keys the counter, and adds the Weyl constants to the key
 * (Salmon et al. 2011, Section 3.3 and Table 2). */
ST_HD struct philox_block philox_block_of(uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3, uint32_t k0,
                                          uint32_t k1) {
    struct philox_block made;
    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        const uint64_t p0 = (uint64_t)PHILOX_M0 * c0, p1 = (uint64_t)PHILOX_M1 * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        k0 += PHILOX_W0;
        k1 += PHILOX_W1;
    }
    made.word[0] = c0;
    made.word[1] = c1;
    made.word[2] = c2;
    made.word[3] = c3;
    return made;
}

#endif
