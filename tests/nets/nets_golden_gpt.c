/* nets_golden_gpt.c: decoders in training against golden values that PyTorch computed in double precision from the same
 * tokens, initial parameters and dropout masks (tests/golden/gpt.py): ten steps of AdamW of the row gpt in its preset
 * char-cpu, and of a small one that has what that lacks: biases, the tanh form of GELU, dropout. */
/* devices: cuda */
#include <math.h>
#include <stdlib.h>

#include "nets/optimisers/optimiser.h"
#include "tests/golden/gpt.h"
#include "tests/lib/nets_rig.h"

/* The same tokens and labels as window_of() in gpt.py. */
static struct batch window_of(const struct golden_run *run, int index) {
    const size_t rows = (size_t)run->batch * (size_t)run->context;
    struct rng r = rng_open(GOLDEN_SEED, RNG_TEST, (uint64_t)index);
    struct batch b = {.values = rows};
    b.token = mem_alloc(rows, sizeof *b.token, "test tokens");
    b.y = mem_alloc(rows, sizeof *b.y, "test labels");
    for (size_t i = 0; i < rows; i++) b.token[i] = (int32_t)(rng_u32(&r) % (uint32_t)run->vocabulary);
    for (size_t i = 0; i < rows; i++) b.y[i] = (int32_t)(rng_u32(&r) % (uint32_t)run->vocabulary);
    return b;
}

/* which: the first step or the last */
static void check_gradients(const struct arena *a, const struct golden_run *run, int which) {
    float *grad = device_fetch(a->grad, a->n);
    assert_int_equal(a->slices, run->slices);
    for (size_t i = 0; i < a->slices; i++) {
        const struct slice *s = arena_slice(a, run->gradients[i].name);
        if (!s) fail_msg("there is no slice %s", run->gradients[i].name);
        golden_check(grad + s->offset, s->size, &run->gradients[i].step[which], run->range_slices[which], s->name,
                     which);
    }
    mem_free(grad);
}

/* steps: so many of the golden ones. */
static void check_run(const struct golden_run *run, int steps) {
    const struct model_reference reference = {.bias = run->bias, .gelu_tanh = run->tanh};
    const struct net_setup setup = {.batch = run->batch,
                                    .sequence = run->context,
                                    .classes = run->vocabulary,
                                    .layers = run->blocks,
                                    .heads = run->heads,
                                    .hidden = run->features,
                                    .reference = &reference,
                                    .dropout = run->dropped,
                                    .threads = 1,
                                    .seed = GOLDEN_SEED,
                                    .dropout_seed = GOLDEN_SEED,
                                    .device = test_device()};
    const double rows = (double)run->batch * run->context, tolerance = GOLDEN_SLACK * run->range_losses + GOLDEN_FLOOR;
    struct net *net = open_model(model_named("gpt"), setup);
    struct arena *a = &net->arena;
    struct optimiser adamw;
    const struct optimiser_ops *ops;
    struct net_result r;
    TABLE_FIND(optimisers, "adamw", ops);
    optimiser_open(&adamw, ops, a,
                   &(struct optimiser_setup){
                       .beta1 = GOLDEN_BETA1, .beta2 = GOLDEN_BETA2, .epsilon = 1e-8, .weight_decay = GOLDEN_DECAY});
    for (int step = 0; step < steps; step++) {
        struct batch b = window_of(run, step);
        net_forward_tokens(net, b.token, b.y, &r);
        golden_near(r.loss / rows, run->losses[step], tolerance, "loss", step);
        net_backward(net);
        if (step == 0 || step == GOLDEN_STEPS - 1) check_gradients(a, run, step > 0);
        optimiser_step(&adamw, a->param, a->grad, golden_rates[step]);
        assert_int_equal(optimiser_settle(&adamw), a->n);
        batch_close(&b);
    }
    if (steps == GOLDEN_STEPS) {
        struct batch b = window_of(run, GOLDEN_STEPS);
        net_evaluate_tokens(net, b.token, b.y, (int)rows, &r);
        golden_near(r.loss / rows, run->evaluation, tolerance, "evaluation", GOLDEN_STEPS);
        batch_close(&b);
    }
    optimiser_close(&adamw);
    net_close(net);
}

/* Emulated, a step takes a minute: two of them, of which the second has the first one's update in it. */
static void the_preset_trains_as_in_pytorch(void **state) {
    (void)state;
    check_run(&golden_char_cpu, test_device_is_emulated() ? 2 : GOLDEN_STEPS);
}

static void one_with_biases_and_dropout_trains_as_in_pytorch(void **state) {
    (void)state;
    check_run(&golden_small, GOLDEN_STEPS);
}

int main(void) {
    cmocka_set_message_output(CM_OUTPUT_TAP);
    test_device();
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_preset_trains_as_in_pytorch),
                                       cmocka_unit_test(one_with_biases_and_dropout_trains_as_in_pytorch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
