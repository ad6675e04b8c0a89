/* cli_fit.c: the line through measured times: exact lines are found; on others, the normal equations hold; the
 * intervals are those of a textbook's example and cover the truth as often as they say. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "cli/network/line_fit.h"

enum { SIZES = 23 };

static void close_to(double got, double want, double relative) {
    if (!(fabs(got - want) <= relative * fabs(want))) fail_msg("%.10g, not %.10g", got, want);
}

static void exact_line(void **state) {
    (void)state;
    double m[SIZES], t[SIZES];
    struct line_fit f;
    for (int i = 0; i < SIZES; i++) t[i] = 0.436e-3 + 3.6e-8 * (m[i] = ldexp(1, i));
    for (size_t count = 3; count <= SIZES; count++) {
        line_fit(m, t, count, &f);
        close_to(f.alpha, 0.436e-3, 1e-9);
        close_to(f.beta, 3.6e-8, 1e-6);
        assert_true(f.worst < 1e-9);
        if (count > 18) assert_true(f.r2 > 0.999999 && f.beta_error < 1e-6 * f.beta && f.alpha_error < 1e-6 * f.alpha);
    }
}

/* Nothing near the line that was found is better. */
static void least_squares(void **state) {
    (void)state;
    struct rng rng = rng_open(5, RNG_TEST, 0);
    for (int trial = 0; trial < 20; trial++) {
        double m[SIZES], t[SIZES], best = 0;
        struct line_fit f;
        for (int i = 0; i < SIZES; i++) t[i] = (1e-5 + 1e-9 * (m[i] = ldexp(1, i))) * (1 + 0.3 * rng_uniform(&rng));
        line_fit(m, t, SIZES, &f);
        for (int step = -1; step < 8; step++) { /* -1: the line itself */
            double a = f.alpha * (step < 0 ? 1 : 1 + 1e-3 * cos(step * 0.785398)), sum = 0;
            double b = f.beta * (step < 0 ? 1 : 1 + 1e-3 * sin(step * 0.785398));
            for (int i = 0; i < SIZES; i++) sum += pow((a + b * m[i]) / t[i] - 1, 2);
            if (step < 0) best = sum;
            assert_true(sum >= best);
        }
    }
}

/* t = 1, 1, 1 would have weights of 1: nearly so here. By hand: m = -1, 0, 1 with t = 1 + e, 1, 1 + e and small e:
 * beta 0, alpha 1 + 2e/3, residuals e/3, -2e/3, e/3, their sum of squares 2e^2/3 over one degree of freedom;
 * standard errors sqrt(2/3) e sqrt(1/3) and sqrt(2/3) e sqrt(1/2); t quantile 12.706. */
static void intervals_by_hand(void **state) {
    (void)state;
    double e = 1e-6, m[] = {-1, 0, 1}, t[] = {1 + e, 1, 1 + e};
    struct line_fit f;
    line_fit(m, t, 3, &f);
    close_to(f.alpha, 1 + 2 * e / 3, 1e-10);
    assert_true(fabs(f.beta) < 1e-12);
    close_to(f.alpha_error, 12.706 * sqrt(2.0 / 3) * e * sqrt(1.0 / 3), 1e-4);
    close_to(f.beta_error, 12.706 * sqrt(2.0 / 3) * e * sqrt(1.0 / 2), 1e-4);
    close_to(f.worst, 2 * e / 3, 1e-4);
}

/* 2000 lines with relative noise of 2%: the truth lies in about 95% of the intervals. */
static void intervals_cover(void **state) {
    (void)state;
    for (size_t count = 5; count <= SIZES; count += 9) {
        struct rng rng = rng_open(7, RNG_TEST, count);
        int alphas = 0, betas = 0, trials = 2000;
        for (int trial = 0; trial < trials; trial++) {
            double m[SIZES], t[SIZES];
            struct line_fit f;
            for (size_t i = 0; i < count; i++) {
                m[i] = ldexp(1, (int)i) * 1e6 / ldexp(1, (int)count);
                t[i] = (1e-4 + 1e-9 * m[i]) * (1 + 0.02 * rng_normal(&rng));
            }
            line_fit(m, t, count, &f);
            alphas += fabs(f.alpha - 1e-4) <= f.alpha_error;
            betas += fabs(f.beta - 1e-9) <= f.beta_error;
        }
        assert_in_range(alphas, trials * 93 / 100, trials * 97 / 100);
        assert_in_range(betas, trials * 93 / 100, trials * 97 / 100);
    }
}

/* Times that fall with m, or whose line starts below zero. */
static void never_negative(void **state) {
    (void)state;
    double m[] = {1, 2, 3, 4}, falling[] = {4, 3, 2, 1}, steep[] = {1, 3, 5, 7};
    struct line_fit f;
    line_fit(m, falling, 4, &f);
    assert_true(f.beta == 0 && f.alpha > 1 && f.alpha < 4);
    line_fit(m, steep, 4, &f);
    assert_true(f.alpha == 0 && f.beta > 1 && f.beta < 2);
}

/* Times by chance are no line; flat ones, and a line with some noise, are. */
static void poor_fits_are_known(void **state) {
    (void)state;
    struct rng rng = rng_open(7, RNG_TEST, 1);
    static const struct {
        double alpha, beta, noise; /* noise: part of the time, to both sides */
        bool poor;
    } cases[] = {{1, 1e-5, 0, false},   {1, 1e-5, 0.05, false}, {1, 0, 0.05, false},
                 {1, 1e-5, 0.1, false}, {1, 0, 0.9, true},      {1, 1e-7, 0.9, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double m[SIZES], t[SIZES];
        struct line_fit f;
        for (int s = 0; s < SIZES; s++) {
            m[s] = ldexp(1, s);
            t[s] = (cases[i].alpha + cases[i].beta * m[s]) * (1 + cases[i].noise * (2 * rng_uniform(&rng) - 1));
        }
        line_fit(m, t, SIZES, &f);
        if (line_fit_poor(&f) != cases[i].poor) fail_msg("case %zu: R2 %g, worst %g", i, f.r2, f.worst);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_line),      cmocka_unit_test(least_squares),  cmocka_unit_test(intervals_by_hand),
        cmocka_unit_test(intervals_cover), cmocka_unit_test(never_negative), cmocka_unit_test(poor_fits_are_known),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
