/* comm_density.c: the density of each epoch or step, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "comm/density.h"

static void no_warmup(void **state) {
    (void)state;
    struct density_schedule d = {.target = 0.001, .warmup_epochs = 3};
    struct err e = {0};
    assert_true(density_parse_warmup("none", &d, &e));
    assert_int_equal(d.warmup_epochs, 0);
    assert_true(density_at(&d, 0, 0) == 0.001 && density_at(&d, SIZE_MAX, SIZE_MAX) == 0.001);
    assert_true(density_largest(&d) == 0.001);
    assert_int_equal((int)density_settled(&d, 0.25), 0);
}

static void warmup_of_the_paper(void **state) {
    (void)state;
    struct density_schedule d = {.target = 0.001};
    struct err e = {0};
    const double want[] = {0.25, 0.0725, 0.015, 0.004, 0.001, 0.001};
    assert_true(density_parse_warmup("gtopk", &d, &e));
    for (size_t epoch = 0; epoch < 6; epoch++) assert_true(density_at(&d, 7, epoch) == want[epoch]);
    assert_true(density_largest(&d) == 0.25);
    assert_int_equal((int)density_settled(&d, 0.25), 4);
    assert_true(d.target == 0.001);
}

static void a_list(void **state) {
    (void)state;
    struct density_schedule d = {.target = 0.01};
    struct err e = {0};
    assert_true(density_parse_warmup("1,.5,2e-2", &d, &e));
    assert_true(density_at(&d, 0, 0) == 1.0 && density_at(&d, 5, 1) == 0.5 && density_at(&d, 9, 2) == 0.02);
    assert_true(density_at(&d, 9, 3) == 0.01);
}

/* A warm-up never sends less than the run after it. */
static void raised_to_the_target(void **state) {
    (void)state;
    struct density_schedule d = {.target = 0.02};
    struct err e = {0};
    assert_true(density_parse_warmup("gtopk", &d, &e));
    const double want[] = {0.25, 0.0725, 0.02, 0.02, 0.02};
    for (size_t epoch = 0; epoch < 5; epoch++) assert_true(density_at(&d, 7, epoch) == want[epoch]);
    assert_int_equal((int)density_settled(&d, 0.25), 2);
    d.target = 0.5;
    assert_true(density_largest(&d) == 0.5);
    assert_int_equal((int)density_settled(&d, 0.25), 0);
}

static bool near(double a, double b) {
    return a - b < 1e-15 && b - a < 1e-15;
}

/* Aji et al.: the drop ratio rises by as much in every step, from 0 to 99% after 1000. */
static void linear_in_the_drop_ratio(void **state) {
    (void)state;
    struct density_schedule d = {.target = 0.01, .warmup = {0.7}, .warmup_epochs = 1};
    struct err e = {0};
    assert_true(density_parse_warmup("linear:1000", &d, &e));
    assert_int_equal(d.warmup_epochs, 0);
    for (size_t step = 0; step < 1000; step++)
        assert_true(near(1 - density_at(&d, step, 0), 0.99 * (double)step / 1000));
    assert_true(density_at(&d, 0, 0) == 1 && density_largest(&d) == 1);
    for (size_t step = 1000; step < 1003; step++) assert_true(density_at(&d, step, 0) == 0.01);
    assert_true(density_at(&d, SIZE_MAX, 9) == 0.01);
    assert_true(density_parse_warmup("linear:1e1:0.5", &d, &e));
    for (size_t step = 0; step < 10; step++) assert_true(near(density_at(&d, step, 0), 0.5 - 0.049 * (double)step));
    assert_true(density_at(&d, 10, 0) == 0.01 && density_largest(&d) == 0.5);
    d.target = 0.3; /* on the way to another target */
    assert_true(near(density_at(&d, 5, 0), 0.4) && density_at(&d, 10, 0) == 0.3);
    assert_true(density_settled(&d, 2.5) == 2.5);
    d.target = 0.6; /* already above it: nothing falls below the target */
    for (size_t step = 0; step < 12; step++) assert_true(density_at(&d, step, 0) == 0.6);
    assert_true(density_settled(&d, 0.25) == 0);
    assert_true(density_parse_warmup("none", &d, &e));
    assert_true(d.warmup_steps == 0 && density_at(&d, 0, 0) == 0.6);
}

/* Dense steps take the place of the first ones, so that the largest density is that of the step after them. */
static void dense_steps_before_a_linear_warmup(void **state) {
    (void)state;
    struct density_schedule d = {.target = 0.01, .dense_steps = 500};
    struct err e = {0};
    assert_true(density_parse_warmup("linear:1000", &d, &e));
    assert_true(density_largest(&d) == density_at(&d, 500, 0) && near(density_largest(&d), 0.505));
    d.dense_steps = 1000;
    assert_true(density_largest(&d) == 0.01);
}

static void refused(void **state) {
    (void)state;
    const char *bad[] = {"",
                         "0",
                         "1.5",
                         "-0.1",
                         "nan",
                         "inf",
                         "0.1,",
                         ",0.1",
                         "0.1;",
                         "0.1 0.2",
                         " 0.1",
                         "gtop",
                         "0.1,,.2",
                         "0x.1",
                         "1e-400",
                         "+0.1",
                         "linear",
                         "linear:",
                         "linear:0",
                         "linear:-5",
                         "linear:1.5",
                         "linear:1e10",
                         "linear: 5",
                         "linear:5:",
                         "linear:5:0",
                         "linear:5:1.5",
                         "linear:5:.5:.1",
                         "linear:5,0.1",
                         "linear:5:x",
                         "linear:nan",
                         "linear:0x5"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct density_schedule d = {
            .target = 0.01, .warmup = {0.7}, .warmup_epochs = 1, .warmup_steps = 3, .warmup_from = 0.9};
        struct err e = {0};
        assert_false(density_parse_warmup(bad[i], &d, &e));
        assert_non_null(strstr(e.text, "density warm-up"));
        assert_null(strchr(e.text, '\n'));
        assert_true(d.warmup_epochs == 1 && d.warmup[0] == 0.7 && d.warmup_steps == 3 &&
                    d.warmup_from == 0.9); /* untouched */
    }
}

static void as_many_epochs_as_fit(void **state) {
    (void)state;
    char text[4 * (DENSITY_WARMUP_MAX + 1) + 1] = "";
    struct density_schedule d = {.target = 0.01};
    struct err e = {0};
    for (int i = 0; i < DENSITY_WARMUP_MAX; i++) strcat(text, i ? ",0.5" : "0.5");
    assert_true(density_parse_warmup(text, &d, &e));
    assert_int_equal(d.warmup_epochs, DENSITY_WARMUP_MAX);
    strcat(text, ",.5");
    assert_false(density_parse_warmup(text, &d, &e));
    assert_non_null(strstr(e.text, "more than 32 epochs"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_warmup),
        cmocka_unit_test(warmup_of_the_paper),
        cmocka_unit_test(a_list),
        cmocka_unit_test(raised_to_the_target),
        cmocka_unit_test(refused),
        cmocka_unit_test(as_many_epochs_as_fit),
        cmocka_unit_test(linear_in_the_drop_ratio),
        cmocka_unit_test(dense_steps_before_a_linear_warmup),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
