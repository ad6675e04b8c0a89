/* nets_schedule.c: learning-rate schedules against their formulas. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "nets/optimisers/schedule.h"

static struct lr_schedule parsed(const char *text, double epochs) {
    struct err e = {0};
    struct lr_schedule s = {.base = 0.1};
    if (!lr_parse(text, epochs, &s, &e)) fail_msg("%s", e.text);
    return s;
}

static void same(double a, double b) {
    if (fabs(a - b) > 1e-12 * fabs(b)) fail_msg("%.17g, not %.17g", a, b);
}

static void steps_are_taken_at_their_epochs(void **state) {
    (void)state;
    struct lr_schedule s = parsed("step:81,122", 140);
    same(lr_at(&s, 0, 4), 0.1);
    same(lr_at(&s, 80.999, 4), 0.1);
    same(lr_at(&s, 81, 4), 0.01);
    same(lr_at(&s, 122, 4), 0.001);
    same(lr_at(&s, 1e9, 4), 0.001);
    s = parsed("step:50%,75%:0.2", 10);
    same(lr_at(&s, 4.99, 1), 0.1);
    same(lr_at(&s, 5, 1), 0.02);
    same(lr_at(&s, 7.5, 1), 0.004);
    s = parsed("step:2.5:2", 10);
    same(lr_at(&s, 2.5, 1), 0.2);
    s = parsed("constant", 10);
    same(lr_at(&s, 9, 8), 0.1);
    s = parsed("step:50%,75%", 0); /* a run of no length: nothing to refuse */
    same(lr_at(&s, 0, 1), 0.001);
}

static void decay_goes_on_at_every_epoch(void **state) {
    (void)state;
    struct lr_schedule s = parsed("decay:6:0.5", 13);
    same(lr_at(&s, 0, 4), 0.1);
    same(lr_at(&s, 5.999, 4), 0.1);
    same(lr_at(&s, 6, 4), 0.05);
    same(lr_at(&s, 6.999, 4), 0.05);
    same(lr_at(&s, 7, 4), 0.025);
    same(lr_at(&s, 12.5, 4), 0.1 / 128);
    s = parsed("decay:6:0.8333333", 39); /* Zaremba et al.'s medium model: after 39 epochs */
    s.base = 1;
    if (fabs(lr_at(&s, 38, 1) * pow(1.2, 33) - 1) > 1e-5) fail_msg("%g", lr_at(&s, 38, 1));
    s = parsed("decay:50%:0.2", 5); /* from the middle of an epoch to that of the next one */
    same(lr_at(&s, 2.4375, 1), 0.1);
    same(lr_at(&s, 2.5, 1), 0.02);
    same(lr_at(&s, 3.4375, 1), 0.02);
    same(lr_at(&s, 3.5, 1), 0.004);
    s = parsed("decay:0:0.5", 3);
    same(lr_at(&s, 0, 1), 0.05);
    s = parsed("decay:3:1", 3);
    same(lr_at(&s, 1e9, 1), 0.1);
    s = parsed("decay:3:1e-9", 3);
    assert_true(lr_at(&s, 1e9, 1) == 0);
    s = parsed("decay:100%:0.5", 0);
    same(lr_at(&s, 0, 1), 0.05);
}

static void linear_ends_at_zero(void **state) {
    (void)state;
    struct lr_schedule s = parsed("linear", 8);
    same(lr_at(&s, 0, 4), 0.1);
    same(lr_at(&s, 2, 4), 0.075);
    same(lr_at(&s, 7.75, 4), 0.1 / 32);
    assert_true(lr_at(&s, 8, 4) == 0);
    assert_true(lr_at(&s, 9, 4) == 0);
    s.warmup = 4;
    same(lr_at(&s, 1, 4), 0.1 * 7 / 8 * (0.25 + 0.75 / 4));
    s = parsed("linear", 0); /* a run of no length is at its end */
    assert_true(lr_at(&s, 0, 1) == 0);
}

/* What a schedule was before it was parsed leaves nothing behind. */
static void parsing_sets_all_of_the_form(void **state) {
    (void)state;
    const char *texts[] = {"constant", "step:1,2:0.5", "decay:1:0.5", "linear"};
    enum { TEXTS = sizeof texts / sizeof *texts };
    for (size_t before = 0; before < TEXTS; before++)
        for (size_t i = 0; i < TEXTS; i++) {
            struct err e = {0};
            struct lr_schedule s = parsed(texts[before], 7), fresh = parsed(texts[i], 4);
            if (!lr_parse(texts[i], 4, &s, &e)) fail_msg("%s", e.text);
            for (double epoch = 0; epoch < 5; epoch += 0.5) assert_true(lr_at(&s, epoch, 3) == lr_at(&fresh, epoch, 3));
        }
}

static void warm_up_ramps_from_one_over_p(void **state) {
    (void)state;
    struct lr_schedule s = parsed("step:4", 10);
    s.warmup = 8;
    same(lr_at(&s, 0, 4), 0.025);
    same(lr_at(&s, 2, 4), 0.1 * (0.25 + 0.75 * 2 / 8));
    same(lr_at(&s, 6, 4), 0.01 * (0.25 + 0.75 * 6 / 8));
    same(lr_at(&s, 8, 4), 0.01);
    same(lr_at(&s, 0, 1), 0.1);
}

static void bad_schedules_are_refused_with_a_line(void **state) {
    (void)state;
    const char *bad[] = {"",
                         "steps:3",
                         "step",
                         "step:",
                         "step:a",
                         "step:3,",
                         "step:3,,4",
                         "step:5,4",
                         "step:4,4",
                         "step:4:",
                         "step:4:x",
                         "step:4:0",
                         "step:4:-1",
                         "step:4:0.1:2",
                         "step:4;5",
                         "step: 4",
                         "step:-1",
                         "step:101%",
                         "step:nan",
                         "step:inf",
                         "step:4:nan",
                         "constant:3",
                         "Constant",
                         "constants",
                         "linear:3",
                         "linearly",
                         "Linear",
                         "decay",
                         "decay:",
                         "decay:6",
                         "decay:6:",
                         "decay:6:0",
                         "decay:6:-1",
                         "decay:6:1.01",
                         "decay:6:x",
                         "decay:6:0.5:2",
                         "decay:6,7:0.5",
                         "decay::0.5",
                         "decay:-1:0.5",
                         "decay:101%:0.5",
                         "decay:nan:0.5",
                         "decay:6:nan",
                         "decay: 6:0.5",
                         "step:1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct err e = {0};
        struct lr_schedule s;
        if (lr_parse(bad[i], 10, &s, &e)) fail_msg("\"%s\" was taken", bad[i]);
        assert_true(strlen(e.text) > 10);
        assert_null(strchr(e.text, '\n'));
    }
}

int main(void) {
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_taken_at_their_epochs),
        cmocka_unit_test(decay_goes_on_at_every_epoch),
        cmocka_unit_test(linear_ends_at_zero),
        cmocka_unit_test(parsing_sets_all_of_the_form),
        cmocka_unit_test(warm_up_ramps_from_one_over_p),
        cmocka_unit_test(bad_schedules_are_refused_with_a_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
