/* normal.c: quantiles of the normal distribution, see normal.h.
 *
 * Newton's method on f(y) = ln erfc(y) - ln(2q), z = sqrt(2) y. ln erfc is concave and decreasing without bound, so
 * from a point to the left of the root (y = 0 for q <= 1/2) the first step may go past it, and all later ones
 * approach it from the right: it converges from any start, quadratically near the root. */
#include "topk/normal.h"

#include <math.h>

enum { ROUNDS_MAX = 60 };

double normal_upper_quantile(double q) {
    if (q > 0.5) return -normal_upper_quantile(1 - q);
    const double pi = 3.14159265358979323846;
    double wanted = log(2 * q), y = sqrt(fmax(0, -wanted - 0.5 * log(pi * fmax(1, -wanted)))); /* erfc's tail */
    for (int round = 0; round < ROUNDS_MAX; round++) {
        double tail = erfc(y);
        /* (ln erfc)' = -2/sqrt(pi) exp(-y^2) / erfc(y) */
        double step = (log(tail) - wanted) * tail * sqrt(pi) / 2 * exp(y * y);
        y += step;
        if (fabs(step) <= 1e-15 * fmax(1e-3, y)) break;
    }
    return sqrt(2) * y;
}

double normal_threshold(const struct moments *m, size_t k) {
    double n = (double)m->count, mean = m->sum / n, variance = m->sum_square / n - mean * mean;
    return mean + normal_upper_quantile((double)k / n / 2) * sqrt(fmax(0, variance));
}
