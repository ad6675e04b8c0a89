/* nets_golden_slices.h: what tests/golden has of a slice of parameters, gradients or states, and how ours is held
 * against it. Each golden file says how far PyTorch's own single precision was from its double precision (range_...);
 * ours, which adds up in another order and has exponentials of its own, may be ten times as far, and 1e-6 always. */
#ifndef ST_TESTS_NETS_GOLDEN_SLICES_H
#define ST_TESTS_NETS_GOLDEN_SLICES_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants these */
#include <cmocka.h>

#ifndef GOLDEN_SLACK
#define GOLDEN_SLACK 10.0
#endif
#define GOLDEN_FLOOR 1e-6

/* Sum, norm and entries 0, n/3, n-1 of a slice. */
struct golden {
    double sum, norm, entry[3];
};

static inline void golden_near(double found, double wanted, double tolerance, const char *what, int step) {
    if (!(fabs(found - wanted) <= tolerance))
        fail_msg("%s, step %d: %.9g, not %.9g (off by %.2g, allowed %.2g)", what, step, found, wanted,
                 fabs(found - wanted), tolerance);
}

/* range: that of the golden file, relative to the norm. */
static inline void golden_check(const float *value, size_t n, const struct golden *golden, double range,
                                const char *name, int step) {
    const double tolerance = (GOLDEN_SLACK * range + GOLDEN_FLOOR) * golden->norm;
    const size_t entry[3] = {0, n / 3, n - 1};
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) sum += value[i], squares += (double)value[i] * value[i];
    golden_near(sum, golden->sum, tolerance, name, step);
    golden_near(sqrt(squares), golden->norm, tolerance, name, step);
    for (int i = 0; i < 3; i++) golden_near(value[entry[i]], golden->entry[i], tolerance, name, step);
}

#endif
