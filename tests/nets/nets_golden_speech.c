/* nets_golden_speech.c: the speech recogniser in training against golden values that PyTorch computed in double
 * precision from the same utterances and initial parameters (tests/golden/speech.py): ten steps of SGD of a small one,
 * of passes that differ in length, with an evaluation and its best path after them; the first step of the full width.
 */
/* devices: cuda */
/* long: more than ten seconds at one P */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "nets/backend.h"
#include "nets/optimisers/optimiser.h"

/* Four times that of other models: the library's direct convolutions add the 7,392 products of a large window one after
 * the other, with six times the rounding of the matrix products that PyTorch's range was measured with (rms 1.3e-6 of
 * y, 2.3e-7). */
#define GOLDEN_SLACK 40.0
#include "tests/golden/speech.h"
#include "tests/lib/nets_rig.h"

static int least(int a, int b) {
    return a < b ? a : b;
}

/* The same as utterances_of() in speech.py. */
static struct batch utterances_of(int step) {
    const int frames = GOLDEN_WIDTH - 7 * (step % 4);
    const int length[GOLDEN_BATCH] = {frames, frames / 2 + 1, step % 3 == 0 ? 1 : frames - 5, step % 2 == 0 ? 0 : 9};
    struct batch b = {.values = (size_t)(GOLDEN_BATCH * GOLDEN_FREQUENCIES * frames),
                      .frames = frames,
                      .label_stride = GOLDEN_STRIDE};
    struct rng r = rng_open(GOLDEN_SEED, RNG_TEST, 11200 + (uint64_t)step);
    b.x = mem_alloc(b.values, sizeof *b.x, "test utterances");
    b.length = mem_alloc(GOLDEN_BATCH, sizeof *b.length, "test lengths");
    b.y = mem_alloc(GOLDEN_BATCH * GOLDEN_STRIDE, sizeof *b.y, "test labels");
    rng_normals(&r, 1, b.x, b.values);
    r = rng_open(GOLDEN_SEED, RNG_TEST, 1000 + (uint64_t)step);
    for (int i = 0; i < GOLDEN_BATCH; i++) {
        b.length[i] = length[i];
        const int labels = least((i + step) % (GOLDEN_STRIDE + 1), (length[i] + 1) / 2 / 2);
        for (int k = 0; k < GOLDEN_STRIDE; k++) {
            const int32_t label = 1 + (int32_t)(rng_u32(&r) % (GOLDEN_CLASSES - 1));
            b.y[i * GOLDEN_STRIDE + k] = k < labels ? label : -1;
        }
    }
    return b;
}

/* which: the first step or the last. Errors are relative to a scale of the slice's own. */
static void check_gradients(const struct arena *a, const struct golden_run *run, int which) {
    float *grad = device_fetch(a->grad, a->n);
    assert_int_equal(a->slices, run->slices);
    for (int i = 0; i < run->slices; i++) {
        const struct slice *s = arena_slice(a, run->gradients[i].name);
        if (!s) fail_msg("there is no slice %s", run->gradients[i].name);
        struct golden golden = run->gradients[i].step[which];
        const double range = (GOLDEN_SLACK * run->range_slices[which] + GOLDEN_FLOOR) * run->gradients[i].scale[which];
        const size_t entry[3] = {0, s->size / 3, s->size - 1};
        const float *value = grad + s->offset;
        double sum = 0, squares = 0;
        for (size_t k = 0; k < s->size; k++) sum += value[k], squares += (double)value[k] * value[k];
        golden_near(sum, golden.sum, range * sqrt((double)s->size), s->name, which);
        golden_near(sqrt(squares), golden.norm, range, s->name, which);
        for (int k = 0; k < 3; k++) golden_near(value[entry[k]], golden.entry[k], range, s->name, which);
    }
    mem_free(grad);
}

static void check_statistics(const struct arena *a, const struct golden_run *run) {
    float *statistics = device_fetch(a->state, a->n_state);
    assert_int_equal(a->state_slices, run->states);
    for (size_t i = 0; i < a->state_slices; i++) {
        const struct slice *s = &a->state_slice[i];
        assert_string_equal(s->name, run->statistics[i].name);
        golden_check(statistics + s->offset, s->size, &run->statistics[i].after, run->range_states, s->name, 0);
    }
    mem_free(statistics);
}

static void check_evaluation(struct net *net, const struct golden_run *run, double tolerance) {
    struct net_result r;
    struct batch b = utterances_of(GOLDEN_STEPS);
    int steps;
    batch_evaluate(net, &b, &r);
    golden_near(r.loss / r.count, run->evaluation, tolerance, "evaluation", GOLDEN_STEPS);
    const int32_t *path = net_best_path(net, &steps);
    assert_int_equal(steps, (b.frames + 1) / 2);
    for (int i = 0; i < GOLDEN_BATCH; i++)
        for (int t = 0; t < steps; t++)
            assert_int_equal(path[i * steps + t], t < (b.length[i] + 1) / 2 ? run->path[i][t] : -1);
    batch_close(&b);
}

/* steps: so many of the golden ones. */
static void check_run(const struct golden_run *run, int steps) {
    const struct net_setup setup = {.batch = GOLDEN_BATCH,
                                    .channels = 1,
                                    .height = GOLDEN_FREQUENCIES,
                                    .width = GOLDEN_WIDTH,
                                    .classes = GOLDEN_CLASSES,
                                    .layers = run->layers,
                                    .hidden = run->hidden,
                                    .threads = 1,
                                    .seed = GOLDEN_SEED,
                                    .device = test_device()};
    const double tolerance = GOLDEN_SLACK * run->range_losses + GOLDEN_FLOOR * 100;
    struct net *net = open_model(model_named("speech"), setup);
    struct arena *a = &net->arena;
    struct optimiser sgd;
    const struct optimiser_ops *ops;
    struct net_result r;
    TABLE_FIND(optimisers, "sgd", ops);
    optimiser_open(&sgd, ops, a, &(struct optimiser_setup){.momentum = GOLDEN_MOMENTUM});
    for (int step = 0; step < steps; step++) {
        struct batch b = utterances_of(step);
        batch_forward_on(net, &b, &r);
        assert_int_equal(r.count, step % 2 == 0 ? GOLDEN_BATCH - 1 : GOLDEN_BATCH);
        golden_near(r.loss / r.count, run->losses[step], tolerance, "loss", step);
        net_backward(net);
        if (step == 0) check_gradients(a, run, 0);
        if (step > 0 && step == run->steps - 1) check_gradients(a, run, 1);
        optimiser_step(&sgd, a->param, a->grad, GOLDEN_RATE);
        assert_int_equal(optimiser_settle(&sgd), a->n);
        batch_close(&b);
    }
    if (steps == run->steps) {
        check_statistics(a, run);
        check_evaluation(net, run, tolerance);
    }
    optimiser_close(&sgd);
    net_close(net);
}

/* Emulated, two steps, of which the second has the first one's update in it. */
static void a_small_one_trains_as_in_pytorch(void **state) {
    (void)state;
    check_run(&golden_small, test_device_is_emulated() ? 2 : golden_small.steps);
}

static void the_full_width_has_the_first_step_of_pytorch(void **state) {
    (void)state;
    if (test_device_is_emulated()) {
        printf(
            "# SKIP the_full_width_has_the_first_step_of_pytorch: too much to emulate; the small one has its layers\n");
        skip();
    }
    check_run(&golden_full, golden_full.steps);
}

int main(void) {
    cmocka_set_message_output(CM_OUTPUT_TAP);
    test_device();
    if (!backend_for(test_device())->ctc) {
        printf("# SKIP nets_golden_speech: the backend of device %s has no such layers\n1..0\n", test_device()->name);
        return 0;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_small_one_trains_as_in_pytorch),
                                       cmocka_unit_test(the_full_width_has_the_first_step_of_pytorch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
