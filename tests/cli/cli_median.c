/* cli_median.c: the median of none, of few and of many. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "cli/bench/median.h"

static void of_none_is_no_number(void **state) {
    (void)state;
    double guard[3] = {7, 5, 3};
    assert_true(isnan(median(guard + 1, 0)));
    assert_true(guard[0] == 7 && guard[1] == 5 && guard[2] == 3);
}

static void of_few(void **state) {
    (void)state;
    assert_true(median((double[]){4}, 1) == 4);
    assert_true(median((double[]){4, 1}, 2) == 2.5);
    assert_true(median((double[]){9, -1, 4}, 3) == 4);
    assert_true(median((double[]){9, 2, 1, 4}, 4) == 3);
    assert_true(median((double[]){INFINITY, 2, 1}, 3) == 2);
}

/* As many below as above it, and the values in order. */
static void of_many(void **state) {
    (void)state;
    struct rng rng = rng_open(3, RNG_TEST, 0);
    double x[200];
    for (size_t count = 1; count <= sizeof x / sizeof *x; count++) {
        size_t below = 0, above = 0;
        for (size_t i = 0; i < count; i++) x[i] = rng_below(&rng, 50);
        double m = median(x, count);
        for (size_t i = 0; i < count; i++) {
            below += x[i] < m;
            above += x[i] > m;
            assert_true(i == 0 || x[i - 1] <= x[i]);
        }
        assert_true(2 * below <= count && 2 * above <= count);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_none_is_no_number),
        cmocka_unit_test(of_few),
        cmocka_unit_test(of_many),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
