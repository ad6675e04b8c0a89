/* nets_golden_lstm.c: small language models in training against golden values that PyTorch computed in double precision
 * from the same tokens, initial parameters and dropout masks (tests/golden/lstm.py): one with layers of three sizes,
 * and the row lstm of the table of models. */
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
#include "nets/layers/dropout.h"
#include "nets/layers/linear.h"
#include "nets/net_build.h"
#include "nets/optimisers/optimiser.h"
#include "nets/sequences/embedding.h"
#include "nets/sequences/lstm.h"
#include "tests/golden/lstm.h"
#include "tests/lib/test_device.h"

enum { ROWS = GOLDEN_BATCH * GOLDEN_SEQUENCE };

static bool build_of_sizes(struct net *net, struct err *e) {
    const struct golden_run *run = &golden_of_sizes;
    (void)e;
    int x = build_embedding(net, "embedding", build_tokens(net), GOLDEN_VOCABULARY, run->features);
    x = build_dropout(net, "dropout1", x, run->dropped);
    x = build_lstm(net, "lstm1", x, run->hidden[0]);
    x = build_dropout(net, "dropout2", x, run->dropped);
    x = build_lstm(net, "lstm2", x, run->hidden[1]);
    x = build_dropout(net, "dropout3", x, run->dropped);
    build_loss(net, build_linear(net, "linear", x, GOLDEN_VOCABULARY));
    return true;
}

static const struct model_ops of_sizes = {.name = "golden", .build = build_of_sizes};

/* The same tokens and labels as window_of() in lstm.py. */
static void fill(int index, int32_t token[ROWS], int32_t label[ROWS]) {
    struct rng r = rng_open(GOLDEN_SEED, RNG_TEST, (uint64_t)index);
    for (int i = 0; i < ROWS; i++) token[i] = (int32_t)(rng_u32(&r) % GOLDEN_VOCABULARY);
    for (int i = 0; i < ROWS; i++) label[i] = (int32_t)(rng_u32(&r) % GOLDEN_VOCABULARY);
}

static void check_gradients(const struct arena *a, const struct golden_run *run, int which) {
    float *grad = device_fetch(a->grad, a->n);
    assert_int_equal(a->slices, GOLDEN_SLICES);
    for (size_t i = 0; i < a->slices; i++) {
        const struct slice *s = &a->slice[i];
        assert_string_equal(run->gradients[i].name, s->name);
        golden_check(grad + s->offset, s->size, &run->gradients[i].step[which], run->range_slices, s->name, which);
    }
    mem_free(grad);
}

static void check_carry(const struct arena *a, const struct golden_run *run) {
    float *carry = device_fetch(a->carry, a->n_carry);
    assert_int_equal(a->carry_slices, GOLDEN_CARRIED);
    for (size_t i = 0; i < a->carry_slices; i++) {
        const struct slice *s = &a->carry_slice[i];
        assert_string_equal(run->carry[i].name, s->name);
        golden_check(carry + s->offset, s->size, &run->carry[i].state, run->range_slices, s->name, GOLDEN_STEPS);
    }
    mem_free(carry);
}

static void check_run(const struct model_ops *model, const struct golden_run *run) {
    const struct net_setup setup = {.batch = GOLDEN_BATCH,
                                    .sequence = GOLDEN_SEQUENCE,
                                    .classes = GOLDEN_VOCABULARY,
                                    .hidden = run->hidden[0],
                                    .dropout = run->dropped,
                                    .threads = 1,
                                    .seed = GOLDEN_SEED,
                                    .dropout_seed = GOLDEN_SEED,
                                    .device = test_device()};
    const double tolerance = GOLDEN_SLACK * run->range_losses + GOLDEN_FLOOR;
    struct err e = {0};
    struct net *net = net_open(model, &setup, &e);
    if (!net) fail_msg("%s", e.text);
    struct arena *a = &net->arena;
    struct optimiser sgd;
    const struct optimiser_ops *ops;
    TABLE_FIND(optimisers, "sgd", ops);
    optimiser_open(&sgd, ops, a, &(struct optimiser_setup){.momentum = GOLDEN_MOMENTUM});
    int32_t token[ROWS], label[ROWS];
    struct net_result r;
    for (int step = 0; step < GOLDEN_STEPS; step++) {
        fill(step, token, label);
        net_forward_tokens(net, token, label, &r);
        golden_near(r.loss / ROWS, run->losses[step], tolerance, "loss", step);
        net_backward(net);
        if (step == 0 || step == GOLDEN_STEPS - 1) check_gradients(a, run, step > 0);
        optimiser_step(&sgd, a->param, a->grad, GOLDEN_RATE);
        assert_int_equal(optimiser_settle(&sgd), a->n);
    }
    check_carry(a, run);
    fill(GOLDEN_STEPS, token, label);
    net_evaluate_tokens(net, token, label, ROWS, &r);
    golden_near(r.loss / ROWS, run->evaluation, tolerance, "evaluation", GOLDEN_STEPS);
    optimiser_close(&sgd);
    net_close(net);
}

static void layers_of_three_sizes_train_as_in_pytorch(void **state) {
    (void)state;
    check_run(&of_sizes, &golden_of_sizes);
}

static void the_model_trains_as_in_pytorch(void **state) {
    (void)state;
    const struct model_ops *model;
    TABLE_FIND(models, "lstm", model);
    assert_non_null(model);
    check_run(model, &golden_lstm);
}

int main(void) {
    cmocka_set_message_output(CM_OUTPUT_TAP);
    test_device();
    const struct CMUnitTest tests[] = {cmocka_unit_test(layers_of_three_sizes_train_as_in_pytorch),
                                       cmocka_unit_test(the_model_trains_as_in_pytorch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
