/* nets_golden_images.h: training steps of a model for images against golden values that PyTorch computed in double
 * precision from the same images and initial parameters (tests/golden/images.py). A test includes the values first.
 *
 * Tolerances: rounding to float makes a computation of this depth differ from the exact one, by how much depends on
 * the order of the sums. The golden file says how far PyTorch's own single precision was from its double precision
 * (range_...); ours, which adds up in another order, may be ten times as far. A floor stands under the ranges that
 * happened to be tiny: 1e-5 for losses and running statistics, GOLDEN_FLOOR once the parameters have moved. Gradients
 * may be 3% of a slice's norm away: where a ReLU's input is within rounding of 0, one order of the sums opens
 * it and another does not, and then every gradient below it differs by that element's part (1% of the norm with the
 * kernels that oneDNN has for CPUs without FMA). What layers compute is held to more digits by nets_layers. Mistakes
 * worth the name (a wrong epsilon, a biased variance, a missing weight decay) show in the losses and statistics of the
 * first steps. */
#ifndef ST_TESTS_NETS_GOLDEN_IMAGES_H
#define ST_TESTS_NETS_GOLDEN_IMAGES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>
#include <math.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/table.h"
#include "nets/net.h"
#include "nets/optimisers/optimiser.h"
#include "tests/lib/test_device.h"

#define SLACK 10.0
#define FLOOR 1e-5
#define KINK 3e-2

enum { PIXELS = 3 * 32 * 32, CLASSES = 10 };

struct run {
    struct net *net;
    struct optimiser sgd;
    float x[GOLDEN_BATCH * PIXELS];
    int32_t y[GOLDEN_BATCH];
};

/* The same images and labels as batch_of() in images.py. */
static void fill(struct run *r, int index) {
    struct rng rng = rng_open(GOLDEN_SEED, RNG_TEST, (uint64_t)index);
    for (int i = 0; i < GOLDEN_BATCH; i++) {
        r->y[i] = (i * 7 + index) % CLASSES;
        for (int j = 0; j < PIXELS; j++)
            r->x[i * PIXELS + j] = (float)(0.5 * rng_normal(&rng) + sin((r->y[i] + 1) * (j % 101) * 0.05));
    }
}

static int open_run(void **state) {
    struct err e = {0};
    const struct model_ops *model;
    TABLE_FIND(models, GOLDEN_MODEL, model);
    assert_non_null(model);
    struct net_setup setup = {.batch = GOLDEN_BATCH,
                              .channels = 3,
                              .height = 32,
                              .width = 32,
                              .classes = CLASSES,
                              .threads = 1,
                              .seed = GOLDEN_SEED,
                              .device = test_device()};
    struct run *r = *state = mem_zalloc(1, sizeof *r, "the golden run");
    r->net = net_open(model, &setup, &e);
    if (!r->net) fail_msg("%s", e.text);
    const struct optimiser_ops *ops;
    TABLE_FIND(optimisers, "sgd", ops);
    optimiser_open(&r->sgd, ops, &r->net->arena,
                   &(struct optimiser_setup){.momentum = 0.9, .weight_decay = GOLDEN_DECAY});
    return 0;
}

static int close_run(void **state) {
    struct run *r = *state;
    optimiser_close(&r->sgd);
    net_close(r->net);
    mem_free(r);
    return 0;
}

static void near(double found, double wanted, double tolerance, const char *what, size_t i) {
    if (!(fabs(found - wanted) <= tolerance))
        fail_msg("%s [%zu]: %.9g, not %.9g (off by %.2g, allowed %.2g)", what, i, found, wanted, fabs(found - wanted),
                 tolerance);
}

/* Entries 0, n/3, n-1 as in common.py. */
static size_t kept(size_t n, size_t which) {
    return which == 0 ? 0 : which == 1 ? n / 3 : n - 1;
}

static void check_gradients(const struct arena *a) {
    float *grad = device_fetch(a->grad, a->n);
    assert_int_equal(a->slices, sizeof golden_gradients / sizeof *golden_gradients);
    for (size_t s = 0; s < a->slices; s++) {
        const struct slice *slice = &a->slice[s];
        const float *g = grad + slice->offset;
        const double scale = golden_gradients[s].scale, tolerance = fmax(SLACK * range_gradient, KINK) * scale;
        double sum = 0, squares = 0;
        for (size_t i = 0; i < slice->size; i++) sum += g[i], squares += (double)g[i] * g[i];
        assert_string_equal(slice->name, golden_gradients[s].name);
        near(sqrt(squares), golden_gradients[s].norm, tolerance, slice->name, 0);
        near(sum, golden_gradients[s].sum, fmax(SLACK * range_sum, KINK) * scale, slice->name, 0);
        for (size_t i = 0; i < 3; i++)
            near(g[kept(slice->size, i)], golden_gradients[s].entry[i], tolerance, slice->name, kept(slice->size, i));
    }
    mem_free(grad);
}

/* when: 0 after the first step, 1 after all. */
static void check_state(const struct arena *a, int when) {
    float *statistics = device_fetch(a->state, a->n_state);
    assert_int_equal(a->state_slices, sizeof golden_state / sizeof *golden_state);
    for (size_t s = 0; s < a->state_slices; s++) {
        const struct slice *slice = &a->state_slice[s];
        const float *v = statistics + slice->offset;
        const double *entry = golden_state[s].entry[when];
        double sum = 0, tolerance = fmax(SLACK * range_state[when], when ? GOLDEN_FLOOR : FLOOR), size = 0;
        for (size_t i = 0; i < slice->size; i++) sum += v[i], size += 1 + fabs((double)v[i]);
        assert_string_equal(slice->name, golden_state[s].name);
        near(sum, golden_state[s].sum[when], tolerance * size, slice->name, 0);
        for (size_t i = 0; i < 3; i++)
            near(v[kept(slice->size, i)], entry[i], tolerance * (1 + fabs(entry[i])), slice->name,
                 kept(slice->size, i));
    }
    mem_free(statistics);
}

/* Losses of every step, gradients and running statistics of the first, running statistics and the evaluation in the
 * end. */
static void training_is_that_of_pytorch(void **state) {
    struct run *r = *state;
    struct net_result result;
    for (int step = 0; step < GOLDEN_STEPS; step++) {
        fill(r, step);
        net_forward(r->net, r->x, r->y, &result);
        net_backward(r->net);
        near(result.loss / result.count, golden_losses[step],
             fmax(SLACK * range_losses[step], step ? GOLDEN_FLOOR : FLOOR), "loss of step", (size_t)step);
        if (step == 0) check_gradients(&r->net->arena);
        if (step == 0) check_state(&r->net->arena, 0);
        optimiser_step(&r->sgd, r->net->arena.param, r->net->arena.grad, GOLDEN_RATE);
        size_t bad = optimiser_settle(&r->sgd);
        assert_int_equal(bad, r->net->arena.n);
    }
    check_state(&r->net->arena, 1);
    fill(r, GOLDEN_EVALUATED);
    net_evaluate(r->net, r->x, r->y, GOLDEN_BATCH, &result);
    near(result.loss / result.count, golden_evaluation, fmax(SLACK * range_evaluation, GOLDEN_FLOOR), "evaluated loss",
         0);
    assert_int_equal(result.correct, golden_correct);
}

static int golden_main(void) {
    cmocka_set_message_output(CM_OUTPUT_TAP);
    test_device(); /* says so and ends where there is none */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(training_is_that_of_pytorch, open_run, close_run)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
