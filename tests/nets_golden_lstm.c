/* nets_golden_lstm.c: a small language model in training against golden values that PyTorch computed in double
 * precision from the same tokens, initial parameters and dropout masks (tests/golden/lstm.py).
 *
 * Tolerances: the golden file says how far PyTorch's own single precision was from its double precision (range_...);
 * ours, which adds up in another order and has exponentials of its own, may be ten times as far, and 1e-6 always. */
/* devices: cuda */
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
#include "nets/net_build.h"
#include "nets/optimiser.h"
#include "tests/golden/lstm.h"
#include "tests/test_device.h"

#define SLACK 10.0
#define FLOOR 1e-6

enum { ROWS = GOLDEN_BATCH * GOLDEN_SEQUENCE };

static bool build(struct net *net, struct err *e) {
    (void)e;
    int x = build_embedding(net, "embedding", build_tokens(net), GOLDEN_VOCABULARY, GOLDEN_FEATURES);
    x = build_dropout(net, "dropout1", x, GOLDEN_DROP);
    x = build_lstm(net, "lstm1", x, GOLDEN_HIDDEN1);
    x = build_dropout(net, "dropout2", x, GOLDEN_DROP);
    x = build_lstm(net, "lstm2", x, GOLDEN_HIDDEN2);
    x = build_dropout(net, "dropout3", x, GOLDEN_DROP);
    build_loss(net, build_linear(net, "linear", x, GOLDEN_VOCABULARY));
    return true;
}

static const struct model_ops model = {.name = "golden", .build = build};

/* The same tokens and labels as window_of() in lstm.py. */
static void fill(int index, int32_t token[ROWS], int32_t label[ROWS]) {
    struct rng r = rng_open(GOLDEN_SEED, RNG_TEST, (uint64_t)index);
    for (int i = 0; i < ROWS; i++) token[i] = (int32_t)(rng_u32(&r) % GOLDEN_VOCABULARY);
    for (int i = 0; i < ROWS; i++) label[i] = (int32_t)(rng_u32(&r) % GOLDEN_VOCABULARY);
}

static void near(double found, double wanted, double tolerance, const char *what, int step) {
    if (!(fabs(found - wanted) <= tolerance))
        fail_msg("%s, step %d: %.9g, not %.9g (off by %.2g, allowed %.2g)", what, step, found, wanted,
                 fabs(found - wanted), tolerance);
}

static void check(const float *value, size_t n, const struct golden *golden, const char *name, int step) {
    double sum = 0, squares = 0, tolerance = (SLACK * range_slices + FLOOR) * golden->norm;
    const size_t entry[3] = {0, n / 3, n - 1};
    for (size_t i = 0; i < n; i++) sum += value[i], squares += (double)value[i] * value[i];
    near(sum, golden->sum, tolerance, name, step);
    near(sqrt(squares), golden->norm, tolerance, name, step);
    for (int i = 0; i < 3; i++) near(value[entry[i]], golden->entry[i], tolerance, name, step);
}

static void check_gradients(const struct arena *a, int which) {
    float *grad = device_fetch(a->grad, a->n);
    assert_int_equal(sizeof golden_gradients / sizeof *golden_gradients, a->slices);
    for (size_t i = 0; i < a->slices; i++) {
        assert_string_equal(golden_gradients[i].name, a->slice[i].name);
        check(grad + a->slice[i].offset, a->slice[i].size, &golden_gradients[i].step[which], a->slice[i].name, which);
    }
    mem_free(grad);
}

static void check_carry(const struct arena *a) {
    float *carry = device_fetch(a->carry, a->n_carry);
    assert_int_equal(sizeof golden_carry / sizeof *golden_carry, a->carry_slices);
    for (size_t i = 0; i < a->carry_slices; i++) {
        assert_string_equal(golden_carry[i].name, a->carry_slice[i].name);
        check(carry + a->carry_slice[i].offset, a->carry_slice[i].size, &golden_carry[i].state, a->carry_slice[i].name,
              GOLDEN_STEPS);
    }
    mem_free(carry);
}

static void training_is_that_of_pytorch(void **state) {
    (void)state;
    const struct net_setup setup = {.batch = GOLDEN_BATCH,
                                    .sequence = GOLDEN_SEQUENCE,
                                    .classes = GOLDEN_VOCABULARY,
                                    .threads = 1,
                                    .seed = GOLDEN_SEED,
                                    .dropout_seed = GOLDEN_SEED,
                                    .device = test_device()};
    struct err e = {0};
    struct net *net = net_open(&model, &setup, &e);
    assert_non_null(net);
    struct arena *a = &net->arena;
    struct optimiser sgd;
    const struct optimiser_ops *ops;
    TABLE_FIND(optimisers, "sgd", ops);
    optimiser_open(&sgd, ops, a->n, setup.device, &(struct optimiser_setup){.momentum = GOLDEN_MOMENTUM});
    int32_t token[ROWS], label[ROWS];
    struct net_result r;
    for (int step = 0; step < GOLDEN_STEPS; step++) {
        fill(step, token, label);
        net_forward_tokens(net, token, label, &r);
        near(r.loss / ROWS, golden_losses[step], SLACK * range_losses + FLOOR, "loss", step);
        net_backward(net);
        if (step == 0 || step == GOLDEN_STEPS - 1) check_gradients(a, step > 0);
        assert_int_equal(optimiser_step(&sgd, a->param, a->grad, GOLDEN_RATE), a->n);
    }
    check_carry(a);
    fill(GOLDEN_STEPS, token, label);
    net_evaluate_tokens(net, token, label, ROWS, &r);
    near(r.loss / ROWS, golden_evaluation, SLACK * range_losses + FLOOR, "evaluation", GOLDEN_STEPS);
    optimiser_close(&sgd);
    net_close(net);
}

int main(void) {
    cmocka_set_message_output(CM_OUTPUT_TAP);
    test_device();
    const struct CMUnitTest tests[] = {cmocka_unit_test(training_is_that_of_pytorch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
