/* nets_optimise.c: optimisers against their formulas, learning-rate schedules against theirs.
 * devices: cuda */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/table.h"
#include "nets/optimiser.h"
#include "nets/schedule.h"
#include "tests/test_device.h"

enum { N = 10007 };

static struct optimiser sgd(size_t n, double momentum, double decay) {
    const struct optimiser_ops *ops;
    TABLE_FIND(optimisers, "sgd", ops);
    struct optimiser o;
    optimiser_open(&o, ops, n, test_device(), &(struct optimiser_setup){momentum, decay});
    return o;
}

/* One step on w and g of the host, by way of the device's memory. */
static size_t step(struct optimiser *o, float *w, const float *g, double lr) {
    float *param = device_upload(w, o->n), *grad = device_upload(g, o->n);
    size_t first = optimiser_step(o, param, grad, lr);
    device_download(w, param, o->n);
    test_device()->release(param);
    test_device()->release(grad);
    return first;
}

static void sgd_is_its_formula(void **state) {
    (void)state;
    static float w[N], g[N];
    static double w64[N], v64[N];
    struct rng r = rng_open(1, RNG_TEST, 1);
    for (int i = 0; i < N; i++) w64[i] = w[i] = (float)rng_normal(&r);
    struct optimiser o = sgd(N, 0.9, 1e-2);
    assert_int_equal(o.n_state, N);
    for (int t = 0; t < 5; t++) {
        double lr = t < 3 ? 0.1 : 0.01;
        for (int i = 0; i < N; i++) {
            g[i] = (float)rng_normal(&r);
            v64[i] = 0.9 * v64[i] + (g[i] + 1e-2 * w64[i]);
            w64[i] -= lr * v64[i];
        }
        assert_int_equal(step(&o, w, g, lr), N);
        float *v = device_fetch(o.state, N);
        for (int i = 0; i < N; i++) {
            assert_true(fabs(w[i] - w64[i]) < 1e-6);
            assert_true(fabs(v[i] - v64[i]) < 1e-6 * (1 + fabs(v64[i])));
        }
        mem_free(v);
    }
    optimiser_close(&o);
}

static void sgd_without_momentum_and_decay(void **state) {
    (void)state;
    float w[3] = {1, 2, 3}, g[3] = {4, -8, 0};
    struct optimiser o = sgd(3, 0, 0);
    for (int i = 0; i < 2; i++) assert_int_equal(step(&o, w, g, 0.25), 3);
    assert_true(w[0] == -1 && w[1] == 6 && w[2] == 3);
    optimiser_close(&o);
}

static void sgd_names_the_first_bad_parameter(void **state) {
    (void)state;
    static float w[N], g[N];
    const float bad[] = {NAN, INFINITY, -INFINITY, 3e38f};
    const size_t places[] = {0, 1, 4095, 4096, 9999, N - 1};
    for (size_t b = 0; b < sizeof bad / sizeof *bad; b++)
        for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
            struct optimiser o = sgd(N, 0.9, 0);
            memset(w, 0, sizeof w);
            memset(g, 0, sizeof g);
            g[places[p]] = bad[b];
            g[N - 1] = bad[b];
            assert_int_equal(step(&o, w, g, 10), places[p]); /* 10 * 3e38 overflows */
            optimiser_close(&o);
        }
}

/* Every device rounds each operation by itself, so all give the bits of the formula in C. */
static void sgd_rounds_as_written(void **state) {
    (void)state;
    static float w[N], v[N], g[N], found[N];
    struct rng r = rng_open(1, RNG_TEST, 2);
    const float mu = 0.9f, wd = 5e-4f, lr = 0.1f;
    for (int i = 0; i < N; i++) found[i] = w[i] = (float)rng_normal(&r);
    struct optimiser o = sgd(N, 0.9, 5e-4);
    for (int t = 0; t < 3; t++) {
        for (int i = 0; i < N; i++) {
            g[i] = (float)rng_normal(&r);
            v[i] = mu * v[i] + (g[i] + wd * w[i]);
            w[i] = w[i] - lr * v[i];
        }
        assert_int_equal(step(&o, found, g, 0.1), N);
        assert_memory_equal(w, found, sizeof w);
    }
    optimiser_close(&o);
}

/* Arrays of any length that begin where no wide access may. */
static void sgd_takes_any_length_and_place(void **state) {
    (void)state;
    enum { MOST = 9 };
    for (size_t n = 1; n <= MOST; n++)
        for (size_t shift = 0; shift < 4; shift++) {
            float w[4 + MOST + 1], g[4 + MOST + 1], wide[4 + MOST + 1];
            for (size_t i = 0; i < 4 + MOST + 1; i++) w[i] = wide[i] = (float)(i + 1), g[i] = 0.5f;
            struct optimiser o = sgd(n, 0, 0);
            float *param = device_upload(w, 4 + MOST + 1), *grad = device_upload(g, 4 + MOST + 1);
            assert_int_equal(optimiser_step(&o, param + shift, grad + 3 - shift % 2, 2), n);
            device_download(w, param, 4 + MOST + 1);
            for (size_t i = 0; i < 4 + MOST + 1; i++)
                assert_true(w[i] == wide[i] - (i >= shift && i < shift + n ? 1 : 0));
            optimiser_close(&o);
            test_device()->release(param);
            test_device()->release(grad);
        }
}

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
    const char *bad[] = {"",           "steps:3",      "step",      "step:",
                         "step:a",     "step:3,",      "step:3,,4", "step:5,4",
                         "step:4,4",   "step:4:",      "step:4:x",  "step:4:0",
                         "step:4:-1",  "step:4:0.1:2", "step:4;5",  "step: 4",
                         "step:-1",    "step:101%",    "step:nan",  "step:inf",
                         "step:4:nan", "constant:3",   "Constant",  "step:1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17"};
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
    test_device(); /* says so and ends where there is none */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sgd_is_its_formula),
        cmocka_unit_test(sgd_without_momentum_and_decay),
        cmocka_unit_test(sgd_names_the_first_bad_parameter),
        cmocka_unit_test(sgd_rounds_as_written),
        cmocka_unit_test(sgd_takes_any_length_and_place),
        cmocka_unit_test(steps_are_taken_at_their_epochs),
        cmocka_unit_test(warm_up_ramps_from_one_over_p),
        cmocka_unit_test(bad_schedules_are_refused_with_a_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
