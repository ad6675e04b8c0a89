/* moments.h: from the lanes that the kernels sum in to the moments that a store gives. */
#ifndef ST_TOPK_MOMENTS_H
#define ST_TOPK_MOMENTS_H

#include "topk/cpu/kernels.h"
#include "topk/store.h"

/* Lanes 0..15 pairwise: ((0 + 8) + (4 + 12)) + ... */
static inline double moments_fold(double lane[MOMENT_LANES]) {
    for (size_t half = MOMENT_LANES / 2; half > 0; half /= 2)
        for (size_t j = 0; j < half; j++) lane[j] += lane[j + half];
    return lane[0];
}

static inline struct moments moments_folded(struct moment_lanes *lanes) {
    struct moments m = {.count = lanes->count, .max_key = lanes->max_key};
    if (m.max_key >= KEY_INFINITE)
        return m; /* sums would differ in the sign of a NaN from one kernel set to the next */
    m.sum = moments_fold(lanes->sum);
    m.sum_abs = moments_fold(lanes->sum_abs);
    m.sum_square = moments_fold(lanes->sum_square);
    return m;
}

#endif
