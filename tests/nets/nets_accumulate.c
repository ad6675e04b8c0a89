/* nets_accumulate.c: steps of several batches: the gradients of all rows of the table of models add up to their mean,
 * with the bits of plain passes where passes are recorded and repeated; without batch normalisation N batches of B make
 * the gradient of one of N B. The layers one by one: nets_layers.c. */
/* long: more than ten seconds at one P */
/* devices: cuda */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "nets/layers/average.h"
#include "nets/layers/conv.h"
#include "nets/layers/linear.h"
#include "nets/layers/pool.h"
#include "nets/net_build.h"
#include "tests/lib/in_child.h"
#include "tests/lib/nets_rig.h"

enum { PARTS = 3 };

/* What the last backward pass of a step has said to be final. */
struct witness {
    const struct arena *arena;
    float *seen; /* [n] the gradient as it was then; only [from, n) is filled */
    size_t from;
};

static void witness_ready(void *context, size_t from) {
    struct witness *w = context;
    assert_true(from < w->from);
    test_device()->to_host(w->seen + from, w->arena->grad + from, (w->from - from) * sizeof *w->seen);
    w->from = from;
}

/* A step of PARTS batches, the first of this number. The last backward pass is watched in every other step, as one with
 * which communication overlaps. */
static void step_of_parts(struct net *net, uint64_t first, bool watched) {
    struct witness w = {.arena = &net->arena, .from = net->arena.n};
    if (watched) w.seen = mem_alloc(net->arena.n, sizeof *w.seen, "gradients");
    for (int i = 0; i < PARTS; i++) {
        struct batch b = batch_open(net, first + (uint64_t)i);
        batch_forward_on(net, &b, NULL);
        bool last = watched && i + 1 == PARTS;
        net_backward_with(net, i > 0, last ? witness_ready : NULL, last ? &w : NULL);
        batch_close(&b);
    }
    if (watched) {
        float *grad = device_fetch(net->arena.grad, net->arena.n);
        assert_int_equal(w.from, 0);
        assert_memory_equal(w.seen, grad, net->arena.n * sizeof *grad);
        mem_free(grad);
    }
    mem_free(w.seen);
}

/* The mean of the gradients of the same batches, one after the other in a net that knows nothing of steps. */
static double *mean_of_parts(struct net *net, uint64_t first) {
    double *sum = mem_zalloc(net->arena.n, sizeof *sum, "gradients");
    for (int i = 0; i < PARTS; i++) {
        struct batch b = batch_open(net, first + (uint64_t)i);
        batch_forward_on(net, &b, NULL);
        net_backward(net);
        float *grad = device_fetch(net->arena.grad, net->arena.n);
        for (size_t j = 0; j < net->arena.n; j++) sum[j] += grad[j] / (double)PARTS;
        mem_free(grad);
        batch_close(&b);
    }
    return sum;
}

/* |found - wanted| of all entries together, as a part of |wanted| */
static double apart(const float *found, const double *wanted, size_t n) {
    double off = 0, all = 0;
    for (size_t i = 0; i < n; i++) off += pow(found[i] - wanted[i], 2), all += pow(wanted[i], 2);
    return sqrt(off / all);
}

/* States carried on, masks and statistics are those of passes one after the other; only rounding differs, which VGG-16
 * with its normalisations over two numbers makes larger. Steps enough that passes which a device records are repeated
 * as well: with the bits of plain ones. */
static void check_parts(const struct model_ops *model) {
    struct net_setup setup = small_setup(model, 2, 1);
    struct net *single = open_model(model, setup);
    setup.accumulate = PARTS;
    setenv("SPARSETRAIN_CUDA_GRAPH", "0", 1);
    struct net *plain = open_model(model, setup);
    unsetenv("SPARSETRAIN_CUDA_GRAPH");
    struct net *other = open_model(model, setup);
    const size_t n = single->arena.n;
    bool large = model->parameters > 1000000 && model->input == MODEL_IMAGES;
    uint64_t steps = large ? (test_device_is_emulated() ? 1 : 2) : 5;
    for (uint64_t step = 0; step < steps; step++) {
        step_of_parts(plain, 50 + PARTS * step, false);
        step_of_parts(other, 50 + PARTS * step, steps == 1 || step % 2 == 1);
        double *wanted = mean_of_parts(single, 50 + PARTS * step);
        float *grad = device_fetch(plain->arena.grad, n);
        if (!(apart(grad, wanted, n) < 1e-5))
            fail_msg("%s: gradients of parts are %g of the mean's length beside it", model->name,
                     apart(grad, wanted, n));
        assert_true(device_same_bits(plain->arena.grad, other->arena.grad, n));
        assert_true(device_same_bits(single->arena.state, other->arena.state, single->arena.n_state));
        assert_true(device_same_bits(single->arena.carry, other->arena.carry, single->arena.n_carry));
        mem_free(wanted);
        mem_free(grad);
    }
    net_close(single);
    net_close(plain);
    net_close(other);
}

static void gradients_of_batches_make_their_mean(void **state) {
    (void)state;
    for (size_t m = 0; models[m]; m++)
        if (model_is_served(models[m])) check_parts(models[m]);
}

/* Without normalisation and dropout: N batches of B are one of N B. */
static bool build_plain(struct net *net, struct err *e) {
    (void)e;
    int x = build_conv_bias(net, "conv1", build_input(net), 10, 3, 1, 1);
    x = build_pool(net, "pool", x, 2, 2, 0);
    x = build_conv_bias(net, "conv2", x, 12, 3, 2, 1);
    build_loss(net, build_linear(net, "linear", build_average(net, x), net->setup.classes));
    return true;
}

static void parts_of_a_batch_make_the_batch(void **state) {
    (void)state;
    enum { EACH = 2 };
    static const struct model_ops plain = {.name = "plain", .build = build_plain};
    struct net_setup setup = image_setup(EACH * PARTS, 12, 1);
    struct net *whole = open_model(&plain, setup);
    setup.batch = EACH;
    setup.accumulate = PARTS;
    struct net *parts = open_model(&plain, setup);
    const size_t n = whole->arena.n;
    struct batch b = batch_open(whole, 70);
    struct net_result all, part;
    double loss = 0;
    net_forward(whole, b.x, b.y, &all);
    net_backward(whole);
    for (int i = 0; i < PARTS; i++) {
        net_forward(parts, b.x + (size_t)i * b.values / PARTS, b.y + i * EACH, &part);
        net_backward_with(parts, i > 0, NULL, NULL);
        loss += part.loss;
    }
    assert_true(fabs(loss - all.loss) < 1e-5);
    float *found = device_fetch(parts->arena.grad, n), *grad = device_fetch(whole->arena.grad, n);
    double *wanted = mem_alloc(n, sizeof *wanted, "gradients");
    for (size_t i = 0; i < n; i++) wanted[i] = grad[i];
    assert_true(apart(found, wanted, n) < 1e-5); /* a GPU may compute other batches by other algorithms */
    mem_free(found);
    mem_free(grad);
    mem_free(wanted);
    batch_close(&b);
    net_close(whole);
    net_close(parts);
}

/* A net opened for steps of one batch has not prepared to add. */
static void add_unprepared(void) {
    struct net *net = open_model(model_named("resnet20"), image_setup(1, 8, 1));
    net_backward_with(net, true, NULL, NULL);
}

static void adding_wants_steps_of_several_batches(void **state) {
    (void)state;
    char words[512];
    if (!test_device_is_host()) {
        printf("# SKIP adding_wants_steps_of_several_batches: no GPU outlives a fork; the host looks at it\n");
        skip();
    }
    assert_int_equal(in_child(add_unprepared, words, sizeof words), EXIT_SYSTEM);
    assert_non_null(strstr(words, "adds up no gradients"));
}

int main(void) {
    cmocka_set_message_output(CM_OUTPUT_TAP);
    if (!test_device_is_host()) test_device(); /* says so and ends where there is none */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adding_wants_steps_of_several_batches), /* first: it forks, and threads would not follow */
        cmocka_unit_test(gradients_of_batches_make_their_mean),
        cmocka_unit_test(parts_of_a_batch_make_the_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
