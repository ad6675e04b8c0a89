/* nets_sequences.c: whole networks over windows of tokens: their slices, gradients against differences of the loss,
 * states carried from window to window, dropout from step to step, the same bits in every run. On the device that
 * SPARSETRAIN_TEST_DEVICE names. */
/* devices: cuda */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "nets/backend.h"
#include "nets/layers/dropout.h"
#include "nets/layers/linear.h"
#include "nets/net_build.h"
#include "nets/sequences/embedding.h"
#include "nets/sequences/lstm.h"
#include "tests/lib/in_child.h"
#include "tests/lib/nets_direction.h"
#include "tests/lib/test_device.h"

enum { STREAMS = 3, STEPS = 4, VOCABULARY = 11, FEATURES = 6, HIDDEN1 = 7, HIDDEN2 = 5, ROWS_MAX = 64 };

static double drop_of_model = 0.3;

static bool build(struct net *net, struct err *e) {
    (void)e;
    int x = build_embedding(net, "embedding", build_tokens(net), VOCABULARY, FEATURES);
    x = build_dropout(net, "dropout1", x, drop_of_model);
    x = build_lstm(net, "lstm1", x, HIDDEN1);
    x = build_dropout(net, "dropout2", x, drop_of_model);
    x = build_lstm(net, "lstm2", x, HIDDEN2);
    build_loss(net, build_linear(net, "linear", x, VOCABULARY));
    return true;
}

static const struct model_ops model = {.name = "tokens", .build = build};

static struct net_setup setup_of(int sequence) {
    return (struct net_setup){.batch = STREAMS,
                              .sequence = sequence,
                              .classes = VOCABULARY,
                              .threads = 1,
                              .seed = 3,
                              .dropout_seed = 8,
                              .device = test_device()};
}

static struct net *open_setup(struct net_setup setup) {
    struct err e = {0};
    struct net *net = net_open(&model, &setup, &e);
    if (!net) fail_msg("%s", e.text);
    return net;
}

static struct net *open_model(int sequence) {
    return open_setup(setup_of(sequence));
}

/* A long text for each stream; `window_of` cuts [steps][STREAMS] out of it. */
struct window {
    int32_t token[ROWS_MAX], label[ROWS_MAX];
};
static int32_t text(int stream, int at) {
    struct rng r = rng_open(17, RNG_TEST, (uint64_t)(stream * 1000 + at));
    return (int32_t)rng_below(&r, VOCABULARY);
}
static struct window window_of(int first, int steps) {
    struct window w = {{0}, {0}};
    for (int t = 0; t < steps; t++)
        for (int b = 0; b < STREAMS; b++) {
            w.token[t * STREAMS + b] = text(b, first + t);
            w.label[t * STREAMS + b] = text(b, first + t + 1);
        }
    return w;
}

/* -- slices ------------------------------------------------------------------------------------------------------- */

static void slices_are_the_promised_ones(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int dims;
        size_t dim[2];
    } wanted[] = {{"embedding.weight", 2, {VOCABULARY, FEATURES}},
                  {"lstm1.weight_ih", 2, {4 * HIDDEN1, FEATURES}},
                  {"lstm1.weight_hh", 2, {4 * HIDDEN1, HIDDEN1}},
                  {"lstm1.bias_ih", 1, {4 * HIDDEN1, 0}},
                  {"lstm1.bias_hh", 1, {4 * HIDDEN1, 0}},
                  {"lstm2.weight_ih", 2, {4 * HIDDEN2, HIDDEN1}},
                  {"lstm2.weight_hh", 2, {4 * HIDDEN2, HIDDEN2}},
                  {"lstm2.bias_ih", 1, {4 * HIDDEN2, 0}},
                  {"lstm2.bias_hh", 1, {4 * HIDDEN2, 0}},
                  {"linear.weight", 2, {VOCABULARY, HIDDEN2}},
                  {"linear.bias", 1, {VOCABULARY, 0}}};
    static const char *const carried[] = {"lstm1.hidden", "lstm1.cell", "lstm2.hidden", "lstm2.cell"};
    struct net *net = open_model(STEPS);
    const struct arena *a = &net->arena;
    assert_int_equal(net_rows(&net->setup), STREAMS * STEPS);
    assert_int_equal(a->slices, sizeof wanted / sizeof *wanted);
    for (size_t i = 0; i < a->slices; i++) {
        assert_string_equal(a->slice[i].name, wanted[i].name);
        assert_int_equal(a->slice[i].dims, wanted[i].dims);
        for (int d = 0; d < wanted[i].dims; d++) assert_int_equal(a->slice[i].dim[d], wanted[i].dim[d]);
    }
    assert_int_equal(a->carry_slices, 4);
    size_t next = 0;
    for (size_t i = 0; i < 4; i++) {
        const struct slice *s = &a->carry_slice[i];
        assert_string_equal(s->name, carried[i]);
        assert_int_equal(s->offset, next);
        assert_int_equal(s->dims, 2);
        assert_int_equal(s->dim[0], STREAMS);
        assert_int_equal(s->size, STREAMS * (i < 2 ? HIDDEN1 : HIDDEN2));
        next += s->size;
    }
    assert_int_equal(next, a->n_carry);
    net_close(net);
}

/* Uniform in +-1 / sqrt(hidden): variance a third of the square. */
static void lstms_begin_uniform(void **state) {
    (void)state;
    struct net *net = open_model(STEPS);
    const struct arena *a = &net->arena;
    float *param = device_fetch(a->param, a->n);
    for (size_t s = 1; s < 9; s++) {
        const struct slice *slice = &a->slice[s];
        double bound = 1 / sqrt(s < 5 ? HIDDEN1 : HIDDEN2), n = (double)slice->size, mean = 0, squares = 0;
        for (size_t i = 0; i < slice->size; i++) {
            double value = param[slice->offset + i] / bound;
            assert_true(fabs(value) <= 1.0000001);
            mean += value / n;
            squares += value * value / n;
        }
        assert_true(fabs(mean) < 5 * sqrt(1 / 3.0 / n));
        assert_true(fabs(squares - 1 / 3.0) < 5 * sqrt(4 / 45.0 / n));
    }
    mem_free(param);
    net_close(net);
}

/* -- gradients ---------------------------------------------------------------------------------------------------- */

/* The loss of step 5 over a window after another one, with `param` moved by h d. */
static double loss_at(struct net *net, const float *param, const float *d, double h) {
    struct arena *a = &net->arena;
    float *moved = mem_alloc(a->n, sizeof *moved, "parameters");
    struct net_result r;
    struct window before = window_of(0, STEPS), w = window_of(STEPS, STEPS);
    a->device->to_device(a->param, param, a->n * sizeof *param);
    net_carry_reset(net);
    net_set_step(net, 4);
    net_forward_tokens(net, before.token, before.label, &r); /* states that are not 0, and not of h */
    for (size_t i = 0; i < a->n; i++) moved[i] = (float)(param[i] + h * d[i]);
    a->device->to_device(a->param, moved, a->n * sizeof *moved);
    net_forward_tokens(net, w.token, w.label, &r);
    mem_free(moved);
    return r.loss / net_rows(&net->setup);
}

/* Along a direction of nets_direction.h, each slice on its own. The masks are those of one step. */
static void gradient_is_the_difference_of_losses(void **state) {
    (void)state;
    struct net *net = open_model(STEPS);
    struct arena *a = &net->arena;
    float *param = device_fetch(a->param, a->n), *d = mem_zalloc(a->n, sizeof *d, "a direction");
    loss_at(net, param, d, 0);
    net_backward(net);
    float *grad = device_fetch(a->grad, a->n);
    struct rng r = rng_open(23, RNG_TEST, 0);
    for (size_t s = 0; s < a->slices; s++) {
        const size_t begin = a->slice[s].offset, end = begin + a->slice[s].size;
        double slope;
        const double h = 0.02 / direction_along(grad + begin, end - begin, &r, d + begin, &slope);
        const double difference = (loss_at(net, param, d, h) - loss_at(net, param, d, -h)) / (2 * h);
        if (!(fabs(difference / slope - 1) < 0.005))
            fail_msg("%s: the gradient says %g, differences %g", a->slice[s].name, slope, difference);
        for (size_t i = begin; i < end; i++) d[i] = 0;
    }
    mem_free(param);
    mem_free(d);
    mem_free(grad);
    net_close(net);
}

/* -- carry -------------------------------------------------------------------------------------------------------- */

static double evaluated(struct net *net, int first, int steps) {
    struct net_result r;
    struct window w = window_of(first, steps);
    net_evaluate_tokens(net, w.token, w.label, STREAMS * steps, &r);
    assert_int_equal(r.count, STREAMS * steps);
    return r.loss;
}

static void two_windows_are_one_of_twice_the_length(void **state) {
    (void)state;
    struct net *net = open_model(STEPS), *other = open_model(2 * STEPS);
    const size_t n = net->arena.n_carry;
    double first = evaluated(net, 0, STEPS), second = evaluated(net, STEPS, STEPS),
           both = evaluated(other, 0, 2 * STEPS);
    assert_true(fabs(first + second - both) < 1e-5);
    float *a = device_fetch(net->arena.carry, n), *b = device_fetch(other->arena.carry, n);
    for (size_t i = 0; i < n; i++) assert_true(fabsf(a[i] - b[i]) < 1e-6f);
    net_carry_reset(net);
    double fresh = evaluated(net, STEPS, STEPS); /* the states do matter */
    assert_true(fabs(fresh - second) > 1e-4);
    mem_free(a);
    mem_free(b);
    net_close(net);
    net_close(other);
}

static void a_reset_is_a_new_beginning(void **state) {
    (void)state;
    struct net *net = open_model(STEPS);
    double first = evaluated(net, 0, STEPS);
    evaluated(net, STEPS, STEPS);
    net_carry_reset(net);
    float *carry = device_fetch(net->arena.carry, net->arena.n_carry);
    for (size_t i = 0; i < net->arena.n_carry; i++) assert_true(carry[i] == 0);
    double again = evaluated(net, 0, STEPS);
    assert_memory_equal(&first, &again, sizeof first);
    mem_free(carry);
    net_close(net);
}

/* Training without dropout moves the states as inference does. */
static void training_carries_as_inference_does(void **state) {
    (void)state;
    drop_of_model = 0;
    struct net *net = open_model(STEPS), *other = open_model(STEPS);
    drop_of_model = 0.3;
    struct window w = window_of(0, STEPS);
    struct net_result r;
    net_forward_tokens(net, w.token, w.label, &r);
    double loss = evaluated(other, 0, STEPS);
    assert_true(fabs(loss - r.loss) < 1e-5);
    float *a = device_fetch(net->arena.carry, net->arena.n_carry),
          *b = device_fetch(other->arena.carry, net->arena.n_carry);
    for (size_t i = 0; i < net->arena.n_carry; i++) assert_true(fabsf(a[i] - b[i]) < 1e-6f && a[i] != 0);
    mem_free(a);
    mem_free(b);
    net_close(net);
    net_close(other);
}

/* -- steps -------------------------------------------------------------------------------------------------------- */

/* One pass of training forth and back. */
static double trained(struct net *net, int first) {
    struct net_result r;
    struct window w = window_of(first, STEPS);
    net_forward_tokens(net, w.token, w.label, &r);
    net_backward(net);
    return r.loss;
}

/* The same window with the same states: only the masks differ; evaluation has none and counts no step. */
static void each_step_drops_anew(void **state) {
    (void)state;
    enum { PASSES = 6 };
    struct net *net = open_model(STEPS);
    double loss[PASSES], without = evaluated(net, 0, STEPS);
    for (int i = 0; i < PASSES; i++) { /* plain, recorded, repeated */
        net_carry_reset(net);
        double again = evaluated(net, 0, STEPS);
        assert_memory_equal(&again, &without, sizeof again);
        net_carry_reset(net);
        loss[i] = trained(net, 0);
        assert_true(fabs(loss[i] - without) > 1e-4);
        for (int j = 0; j < i; j++) assert_true(fabs(loss[i] - loss[j]) > 1e-5);
    }
    for (int i = PASSES; i-- > 0;) { /* a step's number is all that its masks depend on */
        net_carry_reset(net);
        net_set_step(net, (uint64_t)i);
        double again = trained(net, 0);
        assert_memory_equal(&again, &loss[i], sizeof again);
    }
    net_close(net);
}

static void runs_give_the_same_bits(void **state) {
    (void)state;
    for (int threads = 1; threads <= 2; threads++) {
        struct net_setup setup = setup_of(STEPS);
        setup.threads = threads;
        struct net *a = open_setup(setup), *b = open_setup(setup);
        trained(b, 100); /* a past must not matter */
        net_set_step(b, 0);
        net_carry_reset(b);
        for (int i = 0; i < 4; i++) {
            double one = trained(a, i * STEPS), other = trained(b, i * STEPS);
            assert_memory_equal(&one, &other, sizeof one);
            assert_true(device_same_bits(a->arena.grad, b->arena.grad, a->arena.n));
            assert_true(device_same_bits(a->arena.carry, b->arena.carry, a->arena.n_carry));
        }
        net_close(a);
        net_close(b);
    }
}

/* A net that takes over in the middle of a run, with carry and number of the step, goes on with the same bits. */
static void a_run_can_be_resumed(void **state) {
    (void)state;
    struct net *a = open_model(STEPS), *b = open_model(STEPS);
    for (int i = 0; i < 3; i++) trained(a, i * STEPS);
    float *carry = device_fetch(a->arena.carry, a->arena.n_carry);
    device_fill(b->arena.carry, carry, a->arena.n_carry);
    net_set_step(b, 3);
    for (int i = 3; i < 5; i++) {
        double one = trained(a, i * STEPS), other = trained(b, i * STEPS);
        assert_memory_equal(&one, &other, sizeof one);
        assert_true(device_same_bits(a->arena.grad, b->arena.grad, a->arena.n));
    }
    mem_free(carry);
    net_close(a);
    net_close(b);
}

/* One net runs every pass plainly, the other records passes and repeats them, where the device does that. New tokens,
 * states, steps and parameters come in all the same. */
static void repeated_passes_give_the_bits_of_plain_ones(void **state) {
    (void)state;
    for (int p = PRECISION_F32; net_precision_names[p]; p++) {
        struct err why = {0};
        struct net_setup setup = setup_of(STEPS);
        setup.precision = (enum precision)p;
        if (!backend_for(setup.device)->serves(setup.precision, &why)) continue;
        setenv("SPARSETRAIN_CUDA_GRAPH", "0", 1);
        struct net *plain = open_setup(setup);
        unsetenv("SPARSETRAIN_CUDA_GRAPH");
        struct net *other = open_setup(setup);
        for (int i = 0; i < 5; i++) {
            double one = trained(plain, i * STEPS), two = trained(other, i * STEPS);
            assert_memory_equal(&one, &two, sizeof one);
            assert_true(device_same_bits(plain->arena.grad, other->arena.grad, plain->arena.n));
            float *param = device_fetch(plain->arena.param, plain->arena.n),
                  *grad = device_fetch(plain->arena.grad, plain->arena.n);
            for (size_t k = 0; k < plain->arena.n; k++) param[k] -= 0.3f * grad[k];
            device_fill(plain->arena.param, param, plain->arena.n);
            device_fill(other->arena.param, param, plain->arena.n);
            mem_free(param);
            mem_free(grad);
            one = evaluated(plain, 50 + i, STEPS), two = evaluated(other, 50 + i, STEPS);
            assert_memory_equal(&one, &two, sizeof one);
            assert_true(device_same_bits(plain->arena.carry, other->arena.carry, plain->arena.n_carry));
        }
        net_close(plain);
        net_close(other);
    }
}

/* A library does something that no capture survives, or gives no graph: the run goes on without, to the same bits, and
 * the reason can be asked for. On the stand-in, whose calls fail when they are told to. */
static void what_cannot_be_recorded_runs_plainly(void **state) {
    (void)state;
    static const char *const failing[] = {"cudaStreamBeginCapture",    "cudaStreamBeginCapture:2",
                                          "cudaGraphInstantiate",      "cudaGraphInstantiate:2",
                                          "cudnnRNNForward:3",         "cudnnRNNForward:4",
                                          "cudnnRNNBackwardData_v8:3", "cudnnRNNBackwardWeights_v8:4"};
    if (!test_device_is_emulated()) {
        puts("# SKIP what_cannot_be_recorded_runs_plainly: calls fail when they are told to on the stand-in alone");
        skip();
    }
    for (size_t f = 0; f < sizeof failing / sizeof *failing; f++) {
        const char *why;
        struct net *plain = open_setup(setup_of(STEPS)), *other = open_setup(setup_of(STEPS));
        for (int i = 0; i < 4; i++) {
            double one = trained(plain, i * STEPS);
            assert_true(net_graphs(plain, &why) == NET_GRAPHS_USED);
            setenv("SPARSETRAIN_HOSTCUDA_FAIL", failing[f], 1);
            double two = trained(other, i * STEPS);
            unsetenv("SPARSETRAIN_HOSTCUDA_FAIL");
            assert_memory_equal(&one, &two, sizeof one);
            assert_true(device_same_bits(plain->arena.grad, other->arena.grad, plain->arena.n));
            assert_true(device_same_bits(plain->arena.carry, other->arena.carry, plain->arena.n_carry));
        }
        assert_true(net_graphs(other, &why) == NET_GRAPHS_FAILED);
        assert_non_null(strstr(why, "failed"));
        net_close(plain);
        net_close(other);
    }
}

/* -- mistakes ----------------------------------------------------------------------------------------------------- */

enum { IMAGES = -2 };
static int32_t given; /* a token; or IMAGES, in place of tokens */

static void take_what_is_given(void) {
    struct net *net = open_model(STEPS);
    struct window w = window_of(0, STEPS);
    float x[ROWS_MAX] = {0};
    w.token[4] = given;
    if (given == IMAGES)
        net_forward(net, x, w.label, NULL);
    else
        net_forward_tokens(net, w.token, w.label, NULL);
}

/* They end the job, with a line that has these words. */
static void check_last_words(int32_t token, const char *wanted) {
    char words[512];
    given = token;
    assert_int_equal(in_child(take_what_is_given, words, sizeof words), EXIT_SYSTEM);
    assert_non_null(strstr(words, wanted));
}

static void tokens_outside_the_vocabulary_are_named(void **state) {
    (void)state;
    if (!test_device_is_host()) {
        printf(
            "# SKIP tokens_outside_the_vocabulary_are_named: no GPU outlives a fork; the host looks at the tokens\n");
        skip();
    }
    check_last_words(VOCABULARY, "token 11 in row 4");
    check_last_words(-1, "token -1 in row 4");
    check_last_words(IMAGES, "takes tokens");
}

int main(void) {
    cmocka_set_message_output(CM_OUTPUT_TAP);
    if (!test_device_is_host()) test_device(); /* says so and ends where there is none */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_outside_the_vocabulary_are_named), /* first: it forks, and threads would not follow */
        cmocka_unit_test(slices_are_the_promised_ones),
        cmocka_unit_test(lstms_begin_uniform),
        cmocka_unit_test(gradient_is_the_difference_of_losses),
        cmocka_unit_test(two_windows_are_one_of_twice_the_length),
        cmocka_unit_test(a_reset_is_a_new_beginning),
        cmocka_unit_test(training_carries_as_inference_does),
        cmocka_unit_test(each_step_drops_anew),
        cmocka_unit_test(runs_give_the_same_bits),
        cmocka_unit_test(a_run_can_be_resumed),
        cmocka_unit_test(repeated_passes_give_the_bits_of_plain_ones),
        cmocka_unit_test(what_cannot_be_recorded_runs_plainly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
