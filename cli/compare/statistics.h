/* statistics.h: what a few repeated measurements say. Pure. */
#ifndef ST_CLI_STATISTICS_H
#define ST_CLI_STATISTICS_H

#include <stddef.h>

/* Of x: [n]. Sorts x. */
struct sample {
    size_t n;
    double mean, deviation, least, most; /* deviation: the sample's (n - 1), NaN below 2; all NaN of none */
    double olympic;                      /* the mean without the least and the greatest, NaN below 3 */
};
struct sample sample_of(double *x, size_t n);

/* Welch's t-test (Biometrika 34, 1947) of whether a's mean is below b's:
 *
 *        t = (mean_a - mean_b) / sqrt(u + v),   u = s_a^2 / n_a,   v = s_b^2 / n_b
 *        freedom = (u + v)^2 / (u^2 / (n_a - 1) + v^2 / (n_b - 1))         (Satterthwaite)
 *        p = P(T <= t), T of Student's distribution: small where a is below b by more than chance
 *
 * All NaN where a sample has less than 2 numbers, or neither varies. */
struct welch {
    double t, freedom, p;
};
struct welch welch_below(const struct sample *a, const struct sample *b);

/* P(T <= t) of Student's distribution with so many degrees of freedom, > 0. */
double student_below(double t, double freedom);

/* The regularised incomplete beta function I_x(a, b), a, b > 0, 0 <= x <= 1, by its continued fraction (Abramowitz and
 * Stegun, 26.5.8), from the side on which that converges fast: x < (a + 1) / (a + b + 2), else by I_x(a, b) = 1 -
 * I_{1-x}(b, a). */
double incomplete_beta(double a, double b, double x);

#endif
