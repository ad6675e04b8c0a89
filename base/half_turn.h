/* half_turn.h: a cosine with the same bits on every machine, which libm's does not promise: ranks that are not alike
 * must make the same steps (as nets/optimisers/power.h). */
#ifndef ST_BASE_HALF_TURN_H
#define ST_BASE_HALF_TURN_H

/* The sum over k = 0 .. terms of (-1)^k y^2k / (2k + odd)!: cos y with odd = 0, sin y / y with odd = 1. From its small
 * end: 1 - y^2 / ((2 + odd)(1 + odd)) (1 - y^2 / ((4 + odd)(3 + odd)) (1 - ...)). */
static inline double half_turn_series(double y, int odd, int terms) {
    double sum = 1;
    for (int k = terms; k > 0; k--) sum = 1 - y * y / (double)((2 * k + odd) * (2 * k + odd - 1)) * sum;
    return sum;
}

/* cos(pi x) of 0 <= x <= 1. No further than an eighth of a turn from 0 a Taylor series of 8 terms is off by less than
 * (pi/4)^18 / 18! < 3e-18; elsewhere cos(pi x) = -cos(pi (1 - x)) = sin(pi (1/2 - x)), whose differences are exact.
 * What is left are roundings, of pi x and of the last operations: together below 3e-16. */
static inline double half_turn_cos(double x) {
    const double pi = 3.14159265358979323846;
    if (x > 0.5) return -half_turn_cos(1 - x);
    if (x <= 0.25) return half_turn_series(pi * x, 0, 8);
    const double y = pi * (0.5 - x);
    return y * half_turn_series(y, 1, 8);
}

#endif
