/* nets_schedule.c: learning-rate schedules against their formulas. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/half_turn.h"
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
    same(lr_at(&s, 0, 0, 4), 0.1);
    same(lr_at(&s, 0, 80.999, 4), 0.1);
    same(lr_at(&s, 0, 81, 4), 0.01);
    same(lr_at(&s, 0, 122, 4), 0.001);
    same(lr_at(&s, 0, 1e9, 4), 0.001);
    s = parsed("step:50%,75%:0.2", 10);
    same(lr_at(&s, 0, 4.99, 1), 0.1);
    same(lr_at(&s, 0, 5, 1), 0.02);
    same(lr_at(&s, 0, 7.5, 1), 0.004);
    s = parsed("step:2.5:2", 10);
    same(lr_at(&s, 0, 2.5, 1), 0.2);
    s = parsed("constant", 10);
    same(lr_at(&s, 0, 9, 8), 0.1);
    s = parsed("step:50%,75%", 0); /* a run of no length: nothing to refuse */
    same(lr_at(&s, 0, 0, 1), 0.001);
}

static void decay_goes_on_at_every_epoch(void **state) {
    (void)state;
    struct lr_schedule s = parsed("decay:6:0.5", 13);
    same(lr_at(&s, 0, 0, 4), 0.1);
    same(lr_at(&s, 0, 5.999, 4), 0.1);
    same(lr_at(&s, 0, 6, 4), 0.05);
    same(lr_at(&s, 0, 6.999, 4), 0.05);
    same(lr_at(&s, 0, 7, 4), 0.025);
    same(lr_at(&s, 0, 12.5, 4), 0.1 / 128);
    s = parsed("decay:6:0.8333333", 39); /* Zaremba et al.'s medium model: after 39 epochs */
    s.base = 1;
    if (fabs(lr_at(&s, 0, 38, 1) * pow(1.2, 33) - 1) > 1e-5) fail_msg("%g", lr_at(&s, 0, 38, 1));
    s = parsed("decay:50%:0.2", 5); /* from the middle of an epoch to that of the next one */
    same(lr_at(&s, 0, 2.4375, 1), 0.1);
    same(lr_at(&s, 0, 2.5, 1), 0.02);
    same(lr_at(&s, 0, 3.4375, 1), 0.02);
    same(lr_at(&s, 0, 3.5, 1), 0.004);
    s = parsed("decay:0:0.5", 3);
    same(lr_at(&s, 0, 0, 1), 0.05);
    s = parsed("decay:3:1", 3);
    same(lr_at(&s, 0, 1e9, 1), 0.1);
    s = parsed("decay:3:1e-9", 3);
    assert_true(lr_at(&s, 0, 1e9, 1) == 0);
    s = parsed("decay:100%:0.5", 0);
    same(lr_at(&s, 0, 0, 1), 0.05);
}

/* Where a run of `epochs`, of so many steps each, takes its rate down: in the first step at or behind these shares of
 * it, as whole numbers have it. `length`: what lr_parse was given for epochs. */
static void falls_in_its_steps(const char *text, const int percent[2], size_t epochs, size_t each, double length) {
    struct lr_schedule s = parsed(text, length);
    for (size_t t = 0; t < epochs * each; t++) {
        double want = 0.1;
        for (int i = 0; i < 2; i++)
            if (100 * t >= (size_t)percent[i] * epochs * each) want *= 0.1;
        const double epoch = (double)(t * 12) / (double)(each * 12), rate = lr_at(&s, t, epoch, 1);
        if (fabs(rate - want) > 1e-9)
            fail_msg("%s of %zu epochs of %zu steps: %.3g in step %zu, not %.3g", text, epochs, each, rate, t, want);
    }
}

/* However a share and a quotient are rounded; the length is asked for, or comes from a number of steps. */
static void steps_fall_where_they_fall(void **state) {
    (void)state;
    for (size_t epochs = 1; epochs <= 140; epochs++)
        for (size_t each = 1; each <= 13; each += 3) {
            const double batches = 1 / (12 / (double)(12 * each));
            const double lengths[] = {(double)epochs, (double)(epochs * each) / batches};
            for (int i = 0; i < 2; i++) {
                falls_in_its_steps("step:50%,75%", (const int[2]){50, 75}, epochs, each, lengths[i]);
                falls_in_its_steps("step:30%,60%", (const int[2]){30, 60}, epochs, each, lengths[i]);
                falls_in_its_steps("step:7%,99%", (const int[2]){7, 99}, epochs, each, lengths[i]);
            }
        }
    assert_true(parsed("step:50%,75%", 14).boundary[0] == 7 && parsed("step:50%,75%", 28).boundary[1] == 21);
    struct lr_schedule s = parsed("step:50%,75%", 28 / 64.);
    same(lr_at(&s, 13, 13 / 64., 1), 0.1);
    same(lr_at(&s, 14, 14 / 64., 1), 0.01);
    s = parsed("decay:70%:0.5", 3); /* from 2.1 on */
    for (size_t t = 1; t <= 60; t++) {
        const double epoch = (double)t / 10;
        same(lr_at(&s, t, epoch, 1), t < 21 ? 0.1 : 0.1 * pow(0.5, (double)((t - 21) / 10 + 1)));
    }
}

static void linear_ends_at_zero(void **state) {
    (void)state;
    struct lr_schedule s = parsed("linear", 8);
    same(lr_at(&s, 0, 0, 4), 0.1);
    same(lr_at(&s, 0, 2, 4), 0.075);
    same(lr_at(&s, 0, 7.75, 4), 0.1 / 32);
    assert_true(lr_at(&s, 0, 8, 4) == 0);
    assert_true(lr_at(&s, 0, 9, 4) == 0);
    s.warmup = 4;
    same(lr_at(&s, 0, 1, 4), 0.1 * 7 / 8 * (0.25 + 0.75 / 4));
    s = parsed("linear", 0); /* a run of no length is at its end */
    assert_true(lr_at(&s, 0, 0, 1) == 0);
}

/* What a schedule was before it was parsed leaves nothing behind. */
static void parsing_sets_all_of_the_form(void **state) {
    (void)state;
    const char *texts[] = {"constant", "step:1,2:0.5", "decay:1:0.5", "linear", "cosine", "cosine:0.5", "inverse-sqrt"};
    enum { TEXTS = sizeof texts / sizeof *texts };
    for (size_t before = 0; before < TEXTS; before++)
        for (size_t i = 0; i < TEXTS; i++) {
            struct err e = {0};
            struct lr_schedule s = parsed(texts[before], 7), fresh = parsed(texts[i], 4);
            if (!lr_parse(texts[i], 4, &s, &e)) fail_msg("%s", e.text);
            s.steps = fresh.steps = 8;
            for (size_t t = 0; t < 10; t++)
                assert_true(lr_at(&s, t, (double)t / 2, 3) == lr_at(&fresh, t, (double)t / 2, 3));
        }
}

static void warm_up_ramps_from_one_over_p(void **state) {
    (void)state;
    struct lr_schedule s = parsed("step:4", 10);
    s.warmup = 8;
    same(lr_at(&s, 0, 0, 4), 0.025);
    same(lr_at(&s, 0, 2, 4), 0.1 * (0.25 + 0.75 * 2 / 8));
    same(lr_at(&s, 0, 6, 4), 0.01 * (0.25 + 0.75 * 6 / 8));
    same(lr_at(&s, 0, 8, 4), 0.01);
    same(lr_at(&s, 0, 0, 1), 0.1);
}

/* A run of 1000 steps in 10 epochs with so many of warm-up; base 0.1. */
static struct lr_schedule in_steps(const char *text, size_t warmup) {
    struct lr_schedule s = parsed(text, 10);
    s.warmup_steps = warmup;
    s.steps = 1000;
    return s;
}

static double rate(const struct lr_schedule *s, size_t step, int P) {
    return lr_at(s, step, (double)step / 100, P);
}

/* (t + 1) / (W + 1) of the base, whatever P is, and all of it from step W on. */
static void warm_up_in_steps(void **state) {
    (void)state;
    const char *texts[] = {"constant", "linear", "cosine:0.1", "inverse-sqrt", "step:90%", "decay:90%:0.5"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (size_t W = 1; W <= 100; W += 33) {
            struct lr_schedule s = in_steps(texts[i], W);
            for (int P = 1; P <= 9; P += 4) {
                for (size_t t = 0; t < W; t++) same(rate(&s, t, P), 0.1 * (double)(t + 1) / (double)(W + 1));
                same(rate(&s, W, P), 0.1);
            }
        }
    struct lr_schedule s = in_steps("step:0.5:0.2", 99); /* falls in the warm-up */
    same(rate(&s, 49, 4), 0.1 * 50 / 100);
    same(rate(&s, 50, 4), 0.02 * 51 / 100);
    same(rate(&s, 99, 4), 0.02);
    s = in_steps("decay:0.5:0.5", 99);
    same(rate(&s, 50, 4), 0.05 * 51 / 100);
    s = in_steps("constant", 2000); /* longer than the run */
    same(rate(&s, 999, 4), 0.1 * 1000 / 2001);
}

/* nanoGPT's get_lr, learning_rate 1e-3, min_lr 1e-4, warmup_iters 100, lr_decay_iters 1000, as it is written there. */
static double of_nanogpt(size_t it) {
    const double learning_rate = 1e-3, min_lr = 1e-4, warmup_iters = 100, lr_decay_iters = 1000;
    if ((double)it < warmup_iters) return learning_rate * ((double)it + 1) / (warmup_iters + 1);
    if ((double)it > lr_decay_iters) return min_lr;
    double decay_ratio = ((double)it - warmup_iters) / (lr_decay_iters - warmup_iters);
    double coeff = 0.5 * (1.0 + cos(M_PI * decay_ratio));
    return min_lr + coeff * (learning_rate - min_lr);
}

static void cosine_is_nanogpts(void **state) {
    (void)state;
    struct lr_schedule s = in_steps("cosine:0.1", 100);
    s.base = 1e-3;
    for (size_t t = 0; t < 1200; t++) same(rate(&s, t, 3), of_nanogpt(t));
    s = in_steps("cosine", 0); /* without a warm-up; to 0 */
    same(rate(&s, 0, 3), 0.1);
    same(rate(&s, 500, 3), 0.05);
    assert_true(rate(&s, 1000, 3) == 0 && rate(&s, 5000, 3) == 0);
    s.warmup = 4; /* with one in epochs */
    same(rate(&s, 200, 4), 0.05 * (1 + cos(M_PI / 5)) * (0.25 + 0.75 / 2));
    s = in_steps("cosine:1", 0);
    same(rate(&s, 700, 1), 0.1);
    s = in_steps("cosine:0.5", 1000); /* all of the run is its warm-up */
    same(rate(&s, 1000, 1), 0.05);
    s.steps = 0;
    same(rate(&s, 1000, 1), 0.05);
}

static void linear_behind_a_warm_up_in_steps(void **state) {
    (void)state;
    struct lr_schedule s = in_steps("linear", 200);
    same(rate(&s, 200, 4), 0.1);
    same(rate(&s, 400, 4), 0.1 * 600 / 800);
    same(rate(&s, 999, 4), 0.1 / 800);
    assert_true(rate(&s, 1000, 4) == 0 && rate(&s, 2000, 4) == 0);
    s = in_steps("linear", 0); /* without one by epochs, whatever the steps are */
    s.steps = 17;
    same(rate(&s, 400, 4), 0.06);
}

/* 1000 steps of 10 epochs, the last five of which are taken in half as many steps: rates that go by steps come to those
 * of the epochs that they would have been at. */
static void longer_steps_go_on_by_epochs(void **state) {
    (void)state;
    const char *texts[] = {"cosine:0.1", "cosine", "linear", "inverse-sqrt", "constant"};
    for (size_t i = 0; i < 3; i++)
        for (size_t W = 100; W <= 700; W += 600) {
            const struct lr_schedule whole = in_steps(texts[i], W);
            struct lr_schedule s = whole;
            s.steps = 750;
            s.from = W <= 500 ? (double)W / 100 : 5 + (double)(W - 500) / 50;
            s.to = 10;
            for (size_t t = 500; t < 750; t++) {
                const double epoch = 5 + (double)(t - 500) / 50, from = (double)W / 100;
                const double as_far = W <= 500 ? epoch : from + (epoch - s.from) * (10 - from) / (10 - s.from);
                const double got = lr_at(&s, t, epoch, 3), at = as_far * 100;
                const double floor_share = i == 0 ? 0.1 : 0, done = (at - (double)W) / (1000 - (double)W);
                const double cosine = 0.1 * (floor_share + (1 - floor_share) * (1 + cos(M_PI * done)) / 2);
                if (t < W)
                    same(got, rate(&whole, t, 3)); /* a warm-up in steps is one */
                else if (fabs(got - (i < 2 ? cosine : 0.1 * (1 - done))) > 1e-12)
                    fail_msg("%s, W = %zu: %.17g in step %zu", texts[i], W, got, t);
            }
            same(lr_at(&s, 750, 10, 3), i == 0 ? 0.01 : 0);
        }
    for (size_t i = 3; i < 5; i++) { /* which do not go by the length of the run */
        const struct lr_schedule whole = in_steps(texts[i], 99);
        struct lr_schedule s = whole;
        s.from = 0.99;
        s.to = 10;
        for (size_t t = 0; t < 750; t++) same(lr_at(&s, t, 5, 3), lr_at(&whole, t, 5, 3));
    }
}

static void inverse_square_root(void **state) {
    (void)state;
    struct lr_schedule s = in_steps("inverse-sqrt", 99);
    struct err e = {0};
    same(rate(&s, 99, 4), 0.1);
    same(rate(&s, 100, 4), 0.1 * sqrt(100 / 101.));
    same(rate(&s, 399, 4), 0.05);
    same(rate(&s, 9999, 4), 0.01); /* the length of the run does not matter */
    assert_true(lr_complete(&s, &e));
    s.warmup_steps = 0;
    assert_false(lr_complete(&s, &e));
    assert_non_null(strstr(e.text, "--lr-warmup-steps"));
    s = in_steps("cosine", 0);
    assert_true(lr_complete(&s, &e));
}

/* Within 1e-15 of libm's, whose argument is rounded; within the 3e-16 that the header says of the exact one's. */
static void cosine_of_half_a_turn(void **state) {
    (void)state;
    const long double pi = 3.14159265358979323846264338327950288L;
    const int places = 1 << 20;
    for (int i = 0; i <= places; i++) {
        const double x = i % 2 ? i / (double)places : (i / 2) / (places / 2. + 1), own = half_turn_cos(x);
        if (fabs(own - cos(M_PI * x)) > 1e-15) fail_msg("cos(pi %.17g) = %.17g", x, own);
        if (fabsl(own - cosl(pi * x)) > 3e-16L) fail_msg("cos(pi %.17g) = %.17g", x, own);
    }
    assert_true(half_turn_cos(0) == 1 && half_turn_cos(1) == -1 && half_turn_cos(0.5) == 0);
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
                         "cosine:",
                         "cosine:x",
                         "cosine:-0.1",
                         "cosine:1.01",
                         "cosine:nan",
                         "cosine:0.1:2",
                         "cosine:0.1%",
                         "cosine0.1",
                         "cosines",
                         "inverse-sqrt:3",
                         "inverse",
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
        cmocka_unit_test(steps_fall_where_they_fall),
        cmocka_unit_test(linear_ends_at_zero),
        cmocka_unit_test(parsing_sets_all_of_the_form),
        cmocka_unit_test(warm_up_ramps_from_one_over_p),
        cmocka_unit_test(warm_up_in_steps),
        cmocka_unit_test(cosine_is_nanogpts),
        cmocka_unit_test(linear_behind_a_warm_up_in_steps),
        cmocka_unit_test(longer_steps_go_on_by_epochs),
        cmocka_unit_test(inverse_square_root),
        cmocka_unit_test(cosine_of_half_a_turn),
        cmocka_unit_test(bad_schedules_are_refused_with_a_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
