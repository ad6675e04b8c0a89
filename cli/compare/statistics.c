/* statistics.c: see statistics.h. */
#include "cli/compare/statistics.h"

#include <math.h>
#include <stdlib.h>

static int order(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of ascending numbers. Where all are equal it is that number: what rounding the sum leaves would pass for variance. */
static double mean(const double *x, size_t n) {
    double sum = 0;
    if (n > 0 && x[0] == x[n - 1]) return x[0];
    for (size_t i = 0; i < n; i++) sum += x[i];
    return n > 0 ? sum / (double)n : NAN;
}

struct sample sample_of(double *x, size_t n) {
    struct sample s = {n, NAN, NAN, NAN, NAN, NAN};
    double squares = 0;
    if (n == 0) return s;
    qsort(x, n, sizeof *x, order);
    s.mean = mean(x, n);
    for (size_t i = 0; i < n; i++) squares += (x[i] - s.mean) * (x[i] - s.mean);
    if (n > 1) s.deviation = sqrt(squares / (double)(n - 1));
    s.least = x[0];
    s.most = x[n - 1];
    if (n > 2) s.olympic = mean(x + 1, n - 2);
    return s;
}

/* A divisor of Lentz's method, which must not be 0. */
static double no_zero(double value) {
    return fabs(value) < 1e-300 ? 1e-300 : value;
}

/* The continued fraction 1/(1 + d_1/(1 + d_2/(1 + ...))) of 26.5.8, by Lentz's method with d_1 taken first, two terms a
 * turn: d_2m = m (b - m) x / ((a + 2m - 1)(a + 2m)), d_2m+1 = -(a + m)(a + b + m) x / ((a + 2m)(a + 2m + 1)). */
static double beta_fraction(double a, double b, double x) {
    double c = 1, d = 1 / no_zero(1 - (a + b) * x / (a + 1)), value = d;
    for (int m = 1; m <= 10000; m++) {
        const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                     odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 / no_zero(1 + even * d);
        c = no_zero(1 + even / c);
        value *= c * d;
        d = 1 / no_zero(1 + odd * d);
        c = no_zero(1 + odd / c);
        value *= c * d;
        if (fabs(c * d - 1) < 1e-15) break;
    }
    return value;
}

double incomplete_beta(double a, double b, double x) {
    if (x <= 0) return 0;
    if (x >= 1) return 1;
    if (x > (a + 1) / (a + b + 2)) return 1 - incomplete_beta(b, a, 1 - x);
    return exp(a * log(x) + b * log1p(-x) + lgamma(a + b) - lgamma(a) - lgamma(b)) / a * beta_fraction(a, b, x);
}

/* P(|T| > |t|) = I_x(freedom / 2, 1/2), x = freedom / (freedom + t^2). */
double student_below(double t, double freedom) {
    const double tail = incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t)) / 2;
    return t < 0 ? tail : 1 - tail;
}

struct welch welch_below(const struct sample *a, const struct sample *b) {
    if (a->n < 2 || b->n < 2) return (struct welch){NAN, NAN, NAN};
    const double na = (double)a->n, nb = (double)b->n;
    const double u = a->deviation * a->deviation / na, v = b->deviation * b->deviation / nb;
    if (!(u + v > 0)) return (struct welch){NAN, NAN, NAN};
    struct welch w = {.t = (a->mean - b->mean) / sqrt(u + v),
                      .freedom = (u + v) * (u + v) / (u * u / (na - 1) + v * v / (nb - 1))};
    w.p = student_below(w.t, w.freedom);
    return w;
}
