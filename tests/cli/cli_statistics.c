/* cli_statistics.c: means without the extremes, Student's distribution and Welch's test against values from tables and
 * closed forms. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>

#include "cli/compare/statistics.h"

static void near(double x, double want, double by) {
    if (!(fabs(x - want) <= by)) fail_msg("%.17g, not %.17g", x, want);
}

static void samples(void **state) {
    (void)state;
    double x[] = {5, 1, 9, 3, 2};
    struct sample s = sample_of(x, 5);
    assert_true(s.n == 5 && s.least == 1 && s.most == 9 && s.mean == 4);
    near(s.olympic, 10.0 / 3, 1e-15);
    near(s.deviation, sqrt(10), 1e-15);
    double alike[] = {0.1, 0.1, 0.1, 0.1, 0.1, 0.1};
    for (size_t n = 3; n <= 6; n++) {
        s = sample_of(alike, n);
        assert_true(s.mean == 0.1 && s.olympic == 0.1 && s.deviation == 0);
    }
    s = sample_of(x, 2);
    assert_true(isnan(s.olympic) && s.mean == 1.5);
    s = sample_of(x, 1);
    assert_true(isnan(s.deviation) && s.mean == 1 && s.least == 1);
    s = sample_of(x, 0);
    assert_true(s.n == 0 && isnan(s.mean) && isnan(s.least));
}

/* I_x(a, 1) = x^a; I_x(1, b) = 1 - (1 - x)^b; I_x(1/2, 1/2) = 2/pi asin sqrt x; of whole numbers the sum of a binomial
 * distribution: I_x(a, b) = P(X >= a), X of a + b - 1 trials. */
static void beta(void **state) {
    (void)state;
    for (int i = 1; i < 20; i++) {
        const double x = i / 20.0;
        for (int n = 1; n < 60; n += 7) {
            near(incomplete_beta(n, 1, x), pow(x, n), 1e-13);
            near(incomplete_beta(1, n, x), 1 - pow(1 - x, n), 1e-13);
        }
        near(incomplete_beta(0.5, 0.5, x), 2 / acos(-1) * asin(sqrt(x)), 1e-13);
        double tail = 0, choose = 1;
        for (int k = 0; k <= 9; k++) {
            if (k >= 4) tail += choose * pow(x, k) * pow(1 - x, 9 - k);
            choose *= (9 - k) / (k + 1.0);
        }
        near(incomplete_beta(4, 6, x), tail, 1e-13);
    }
    assert_true(incomplete_beta(2, 3, 0) == 0 && incomplete_beta(2, 3, 1) == 1);
}

/* Freedom 1: 1/2 + atan(t)/pi; 2: 1/2 + t / (2 sqrt(2 + t^2)). The usual table, one-sided 5% and 1%. */
static void student(void **state) {
    (void)state;
    for (double t = -6; t <= 6; t += 0.37) {
        near(student_below(t, 1), 0.5 + atan(t) / acos(-1), 1e-13);
        near(student_below(t, 2), 0.5 + t / (2 * sqrt(2 + t * t)), 1e-13);
    }
    near(student_below(-1.812, 10), 0.05, 5e-5);
    near(student_below(-2.764, 10), 0.01, 5e-5);
    near(student_below(1.697, 30), 0.95, 5e-5);
    near(student_below(0, 7.3), 0.5, 1e-15);
}

/* Of equal sizes and variances Welch's test is Student's, of 2 n - 2 degrees of freedom. */
static void welch(void **state) {
    (void)state;
    double a[] = {1, 2, 3, 4, 5}, b[] = {3, 4, 5, 6, 7}, c[] = {0.1, 0.1, 0.1}, d[] = {10, 30};
    const struct sample x = sample_of(a, 5), y = sample_of(b, 5), z = sample_of(c, 3), few = sample_of(d, 1);
    struct welch w = welch_below(&x, &y);
    near(w.t, -2, 1e-14);
    near(w.freedom, 8, 1e-12);
    near(w.p, 0.0402580, 1e-6);
    near(welch_below(&y, &x).p, 1 - w.p, 1e-13);
    w = welch_below(&x, &z); /* one that does not vary: n - 1 of the other */
    near(w.freedom, 4, 1e-12);
    near(w.t, 2.9 / sqrt(0.5), 1e-14);
    assert_true(isnan(welch_below(&z, &z).t) && isnan(welch_below(&z, &z).p) && isnan(welch_below(&few, &x).t));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples),
        cmocka_unit_test(beta),
        cmocka_unit_test(student),
        cmocka_unit_test(welch),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
