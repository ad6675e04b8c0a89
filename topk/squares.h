/* squares.h: the sum of squares over a block of entries, in the order that all stores have: entry i of the block goes
 * to lane i % SQUARE_LANES, each lane in index order and in double, where x^2 is exact; then lanes are folded in
 * halves. */
#ifndef ST_TOPK_SQUARES_H
#define ST_TOPK_SQUARES_H

#include <stddef.h>

enum { SQUARE_LANES = 32 }; /* a warp of the GPU */

/* Lanes 0..31: ((0 + 16) + (8 + 24)) + ... */
static inline double squares_fold(double lane[SQUARE_LANES]) {
    for (size_t half = SQUARE_LANES / 2; half > 0; half /= 2)
        for (size_t j = 0; j < half; j++) lane[j] += lane[j + half];
    return lane[0];
}

#endif
