/* cli_schedule_text.c: density and learning rate in words, for runs that reach all of their schedules, some, or none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>

#include "cli/options/schedule_text.h"

static void densities(void **state) {
    (void)state;
    static const struct {
        const char *warmup;
        double target;
        bool later;
        struct course course;
        const char *text;
    } cases[] = {
        {"none", 0.001, false, {0, 1.9, 2, 0.01, 0, 0}, "0.001 (k = 10)"},
        {"gtopk", 0.001, false, {0, 9.9, 10, 0.01, 0, 0}, "0.25 (k = 2500) now, 0.001 (k = 10) from epoch 4"},
        {"gtopk", 0.001, false, {0, 4, 4.1, 0.01, 0, 0}, "0.25 (k = 2500) now, 0.001 (k = 10) from epoch 4"},
        {"gtopk",
         0.001,
         false,
         {0, 0.9, 1, 0.01, 0, 0},
         "0.25 (k = 2500) now, 0.001 (k = 10) from epoch 4, which this run does not reach"},
        {"gtopk",
         0.001,
         false,
         {0, 3.99, 4, 0.01, 0, 0},
         "0.25 (k = 2500) now, 0.004 in its last epoch, 0.001 (k = 10) from epoch 4, which this run does not reach"},
        {"gtopk",
         0.001,
         false,
         {2.5, 9.9, 10, 0.01, 0, 0},
         "0.015 (k = 150) now, 0.001 (k = 10) from epoch 4"}, /* resumed */
        {"gtopk", 0.001, false, {4, 9.9, 10, 0.01, 0, 0}, "0.001 (k = 10)"},
        {"gtopk", 0.02, false, {0, 9.9, 10, 0.01, 0, 0}, "0.25 (k = 2500) now, 0.02 (k = 200) from epoch 2"},
        {"linear:100", 0.01, false, {0, 9.99, 10, 0.01, 0, 0}, "1 (k = 10000) now, 0.01 (k = 100) from epoch 1"},
        {"linear:100", 0.01, false, {0.99, 9.99, 10, 0.01, 0, 0}, "0.0199 (k = 199) now, 0.01 (k = 100) from epoch 1"},
        {"linear:100", 0.01, false, {1, 9.99, 10, 0.01, 0, 0}, "0.01 (k = 100)"},
        {"linear:100:0.51",
         0.01,
         false,
         {0, 0.49, 0.5, 0.01, 0, 0},
         "0.51 (k = 5100) now, 0.265 in its last step, 0.01 (k = 100) from epoch 1, which this run does not reach"},
        {"linear:110",
         0.01,
         false,
         {1, 9.9, 10, 0.1, 100, 1}, /* steps were a tenth as long in the first epoch */
         "0.1 (k = 1000) now, 0.01 (k = 100) from epoch 2"},
        {"linear:90", 0.01, false, {1, 9.9, 10, 0.1, 100, 1}, "0.01 (k = 100)"},
        {"gtopk", 0.001, true, {0.5, 9.9, 10, 0.01, 0, 0}, "0.25 (k = 2500), 0.001 (k = 10) from epoch 4"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct density_schedule d = {.target = cases[i].target};
        struct err e = {0};
        char text[200];
        assert_true(density_parse_warmup(cases[i].warmup, &d, &e));
        schedule_density(&d, 10000, cases[i].later, &cases[i].course, text, sizeof text);
        assert_string_equal(text, cases[i].text);
    }
}

static void rates(void **state) {
    (void)state;
    static const struct {
        const char *schedule;
        double epochs, warmup;
        int P;
        struct course course;
        const char *text;
    } cases[] = {
        {"constant", 10, 0, 4, {0, 9.9, 10, 0.01, 0, 0}, "0.1"},
        {"constant", 10, 4, 1, {0, 9.9, 10, 0.01, 0, 0}, "0.1"}, /* one rank has no ramp */
        {"constant", 10, 4, 4, {0, 9.9, 10, 0.01, 0, 0}, "0.025 now, rising to 0.1 until epoch 4"},
        {"constant", 4, 4, 4, {0, 3.9, 4, 0.01, 0, 0}, "0.025 now, rising to 0.1 until epoch 4"},
        {"constant",
         10,
         4,
         4,
         {0, 1.9, 2, 0.01, 0, 0},
         "0.025 now, rising to 0.1 until epoch 4, which this run does not reach"},
        {"constant", 10, 4, 4, {2, 9.9, 10, 0.01, 0, 0}, "0.0625 now, rising to 0.1 until epoch 4"},
        {"constant", 10, 4, 4, {4, 9.9, 10, 0.01, 0, 0}, "0.1"},
        {"step:50%,75%",
         140,
         4,
         4,
         {0, 139.9, 140, 0.01, 0, 0},
         "0.025 now, rising to 0.1 until epoch 4; times 0.1 at epochs 70 and 105"},
        {"step:50%,75%",
         140,
         4,
         4,
         {0, 5.9, 6, 0.01, 0, 0},
         "0.025 now, rising to 0.1 until epoch 4; times 0.1 at epochs 70 and 105, which this run does not reach"},
        {"step:2,4,8",
         140,
         0,
         4,
         {0, 5, 6, 0.01, 0, 0},
         "0.1; times 0.1 at epochs 2, 4 and 8, the last of which this run does not reach"},
        {"step:2,4,8:0.5",
         140,
         0,
         4,
         {0, 3, 4, 0.01, 0, 0},
         "0.1; times 0.5 at epochs 2, 4 and 8, the last 2 of which this run does not reach"},
        {"step:2,4,8", 140, 0, 4, {2, 139.9, 140, 0.01, 0, 0}, "0.01; times 0.1 at epochs 4 and 8"},
        {"step:2", 140, 0, 4, {3, 139.9, 140, 0.01, 0, 0}, "0.01"},
        {"step:3", 3, 0, 4, {0, 2.9, 3, 0.01, 0, 0}, "0.1; times 0.1 at epoch 3, which this run does not reach"},
        {"decay:6:0.5", 13, 0, 4, {0, 12.9, 13, 0.01, 0, 0}, "0.1; times 0.5 at every epoch from 6 on"},
        {"decay:6:0.5",
         13,
         0,
         4,
         {0, 4.9, 5, 0.01, 0, 0},
         "0.1; times 0.5 at every epoch from 6 on, which this run does not reach"},
        {"linear", 10, 0, 4, {0, 9.9, 10, 0.01, 0, 0}, "0.1; down to 0 at epoch 10"},
        {"linear", 10, 0, 4, {0, 4.9, 5, 0.01, 0, 0}, "0.1; down to 0 at epoch 10, which this run does not reach"},
        {"cosine:0.1", 10, 0, 4, {0, 9.9, 10, 0.01, 0, 0}, "0.1; along a cosine down to 0.01 at epoch 10"},
        {"cosine",
         10,
         0,
         4,
         {0, 4.9, 5, 0.01, 0, 0},
         "0.1; along a cosine down to 0 at epoch 10, which this run does not reach"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lr_schedule s = {.base = 0.1, .warmup = cases[i].warmup, .steps = (size_t)(100 * cases[i].epochs)};
        struct err e = {0};
        char text[300];
        assert_true(lr_parse(cases[i].schedule, cases[i].epochs, &s, &e));
        schedule_rate(&s, cases[i].P, &cases[i].course, text, sizeof text);
        assert_string_equal(text, cases[i].text);
    }
}

/* Warm-ups counted in steps, of a run of 1000 steps in 10 epochs; the same at any P. */
static void rates_of_steps(void **state) {
    (void)state;
    const struct {
        const char *schedule;
        struct course course;
        const char *text;
    } cases[] = {
        {"constant", {0, 9.99, 10, 0.01, 0, 0}, "0.001 now, rising to 0.1 until step 99"},
        {"constant", {0.49, 9.99, 10, 0.01, 0, 0}, "0.05 now, rising to 0.1 until step 99"},
        {"constant",
         {0, 0.49, 0.5, 0.01, 0, 0},
         "0.001 now, rising to 0.1 until step 99, which this run does not reach"},
        {"constant", {0.98, 9.99, 10, 0.01, 0, 0}, "0.099 now, rising to 0.1 until step 99"},
        {"constant", {0.99, 9.99, 10, 0.01, 0, 0}, "0.1"},
        {"cosine:0.1",
         {0, 9.99, 10, 0.01, 0, 0},
         "0.001 now, rising to 0.1 until step 99; along a cosine down to 0.01 at epoch 10"},
        {"linear", {0, 9.99, 10, 0.01, 0, 0}, "0.001 now, rising to 0.1 until step 99; down to 0 at epoch 10"},
        {"inverse-sqrt",
         {0, 9.99, 10, 0.01, 0, 0},
         "0.001 now, rising to 0.1 until step 99; from step 99 on with the inverse square root of the step"},
        {"inverse-sqrt",
         {3.99, 9.99, 10, 0.01, 0, 0},
         "0.05; from step 99 on with the inverse square root of the step"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int P = 1; P <= 4; P += 3) {
            struct lr_schedule s = {.base = 0.1, .warmup_steps = 99, .steps = 1000};
            struct err e = {0};
            char text[300];
            assert_true(lr_parse(cases[i].schedule, 10, &s, &e));
            schedule_rate(&s, P, &cases[i].course, text, sizeof text);
            assert_string_equal(text, cases[i].text);
        }
}

/* 100 steps of 0.01 epochs, then of 0.1: steps are counted, whatever their lengths. */
static void rates_of_a_later_leg(void **state) {
    (void)state;
    const struct {
        size_t warmup;
        struct course course;
        const char *text;
    } cases[] = {
        {119, {1, 9.9, 10, 0.1, 100, 1}, "0.08417 now, rising to 0.1 until step 119; down to 0 at epoch 10"},
        {119,
         {1, 1.9, 2, 0.1, 100, 1},
         "0.08417 now, rising to 0.1 until step 119, which this run does not reach; down to 0 at epoch 10, which this "
         "run does not reach"},
        {99, {1, 9.9, 10, 0.1, 100, 1}, "0.09989; down to 0 at epoch 10"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lr_schedule s = {.base = 0.1, .warmup_steps = cases[i].warmup, .steps = 190, .to = 10};
        struct err e = {0};
        char text[300];
        s.from = cases[i].warmup > 100 ? 2.9 : 0.99;
        assert_true(lr_parse("linear", 10, &s, &e));
        schedule_rate(&s, 2, &cases[i].course, text, sizeof text);
        assert_string_equal(text, cases[i].text);
    }
}

/* A run of 10 steps, shorter than its warm-up: what would fall behind that is not spoken of. */
static void rates_that_only_rise(void **state) {
    static const char *const forms[] = {"constant", "linear", "cosine:0.1"};
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct lr_schedule s = {.base = 0.1, .warmup_steps = 99, .steps = 10};
        struct err e = {0};
        char text[300];
        assert_true(lr_parse(forms[i], 0.1, &s, &e));
        schedule_rate(&s, 2, &(struct course){0, 0.09, 0.1, 0.01, 0, 0}, text, sizeof text);
        assert_string_equal(text, "0.001 now, rising to 0.1 until step 99, which this run does not reach");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(densities),
        cmocka_unit_test(rates),
        cmocka_unit_test(rates_of_steps),
        cmocka_unit_test(rates_of_a_later_leg),
        cmocka_unit_test(rates_that_only_rise),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
