/* nets_direction.h: a direction in which the loss falls and in which no entry is left out, for a gradient that is held
 * against the difference of two losses:
 *
 *        (loss(w + h d) - loss(w - h d)) / 2h  =  gradient . d
 */
#ifndef ST_TESTS_NETS_DIRECTION_H
#define ST_TESTS_NETS_DIRECTION_H

#include <math.h>
#include <stddef.h>

#include "base/rng.h"

/* d: [n] the gradient plus as much noise. Returns |d|; *slope: grad . d. */
static inline double direction_along(const float *grad, size_t n, struct rng *r, float *d, double *slope) {
    double squares = 0, size = 0;
    for (size_t i = 0; i < n; i++) squares += (double)grad[i] * grad[i];
    rng_normals(r, sqrt(squares / (double)n), d, n);
    *slope = 0;
    for (size_t i = 0; i < n; i++) {
        d[i] += grad[i];
        size += (double)d[i] * d[i];
        *slope += (double)grad[i] * d[i];
    }
    return sqrt(size);
}

#endif
