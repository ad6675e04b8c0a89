/* nets_net.c: passes of a whole network, ResNet-20 for one: gradients against differences of the loss, evaluation,
 * running statistics, the same bits in every run, whether passes are repeated or not. What holds for every model:
 * nets_models.c.
 * devices: cuda */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "nets/backend.h"
#include "nets/layers/average.h"
#include "nets/layers/conv.h"
#include "nets/layers/linear.h"
#include "nets/layers/norm_relu.h"
#include "nets/net_build.h"
#include "nets/optimisers/optimiser.h"
#include "tests/lib/nets_direction.h"
#include "tests/lib/nets_rig.h"

static const struct model_ops *resnet20(void) {
    return model_named("resnet20");
}

/* -- passes -------------------------------------------------------------------------------------------------------- */

/* Along a direction of nets_direction.h, the whole net at once. The kinks of the ReLU that w passes on its way make an
 * error that falls with h; below h |d| = 3e-4, where it is a quarter of a percent here, the rounding of float takes
 * over. */
static void gradient_is_the_difference_of_losses(void **state) {
    (void)state;
    struct net *net = open_model(resnet20(), image_setup(8, 16, 1));
    struct batch b = batch_open(net, 1);
    struct arena *a = &net->arena;
    struct net_result above, below, here;
    for (uint64_t trial = 0; trial < 3; trial++) {
        net_forward(net, b.x, b.y, &here);
        net_backward(net);
        float *kept = device_fetch(a->param, a->n), *grad = device_fetch(a->grad, a->n),
              *moved = device_fetch(a->param, a->n);
        float *d = mem_alloc(a->n, sizeof *d, "a direction");
        struct rng r = rng_open(23, RNG_TEST, trial);
        double slope;
        const double h = 3e-4 / direction_along(grad, a->n, &r, d, &slope);
        for (size_t i = 0; i < a->n; i++) moved[i] = (float)(kept[i] + h * d[i]);
        device_fill(a->param, moved, a->n);
        net_forward(net, b.x, b.y, &above);
        for (size_t i = 0; i < a->n; i++) moved[i] = (float)(kept[i] - h * d[i]);
        device_fill(a->param, moved, a->n);
        net_forward(net, b.x, b.y, &below);
        double difference = (above.loss - below.loss) / net->setup.batch / (2 * h);
        if (fabs(difference / slope - 1) > 0.005) fail_msg("the gradient says %g, differences %g", slope, difference);
        device_fill(a->param, kept, a->n);
        mem_free(kept);
        mem_free(grad);
        mem_free(moved);
        mem_free(d);
    }
    batch_close(&b);
    net_close(net);
}

static void runs_give_the_same_bits(void **state) {
    (void)state;
    for (int threads = 1; threads <= 2; threads++) {
        struct net *a = open_model(resnet20(), image_setup(3, 9, threads)),
                   *b = open_model(resnet20(), image_setup(3, 9, threads));
        struct batch one = batch_open(a, 2), other = batch_open(a, 3);
        struct net_result ra, rb;
        net_forward(b, other.x, other.y, &rb); /* a past must not matter */
        net_backward(b);
        test_device()->copy(b->arena.state, a->arena.state, a->arena.n_state * sizeof(float));
        for (int step = 0; step < 2; step++) {
            net_forward(a, one.x, one.y, &ra);
            net_backward(a);
            net_forward(b, one.x, one.y, &rb);
            net_backward(b);
            assert_memory_equal(&ra.loss, &rb.loss, sizeof ra.loss);
            assert_true(device_same_bits(a->arena.grad, b->arena.grad, a->arena.n));
            assert_true(device_same_bits(a->arena.state, b->arena.state, a->arena.n_state));
        }
        batch_close(&one);
        batch_close(&other);
        net_close(a);
        net_close(b);
    }
}

static void evaluation_counts_only_valid_images(void **state) {
    (void)state;
    struct net *net = open_model(resnet20(), image_setup(4, 16, 1));
    struct batch b = batch_open(net, 5);
    struct net_result all, some, none, changed;
    net_forward(net, b.x, b.y, &all); /* statistics that are not the initial ones */
    float *statistics = device_fetch(net->arena.state, net->arena.n_state);
    net_evaluate(net, b.x, b.y, 4, &all);
    net_evaluate(net, b.x, b.y, 3, &some);
    assert_int_equal(all.count, 4);
    assert_int_equal(some.count, 3);
    net_evaluate(net, b.x, b.y, 0, &none);
    assert_true(none.count == 0 && none.correct == 0 && none.loss == 0);
    assert_true(some.loss < all.loss && some.correct <= all.correct);
    size_t image = 3 * 16 * 16;
    for (size_t i = 3 * image; i < 4 * image; i++) b.x[i] = -b.x[i];
    net_evaluate(net, b.x, b.y, 3, &changed); /* each image on its own, unlike training */
    assert_memory_equal(&some.loss, &changed.loss, sizeof some.loss);
    float *after = device_fetch(net->arena.state, net->arena.n_state);
    assert_memory_equal(statistics, after, net->arena.n_state * sizeof *statistics);
    mem_free(after);
    mem_free(statistics);
    batch_close(&b);
    net_close(net);
}

static void statistics_move_in_training_only(void **state) {
    (void)state;
    struct net *net = open_model(resnet20(), image_setup(4, 8, 1));
    struct batch b = batch_open(net, 6);
    struct net_result r;
    const struct arena *a = &net->arena;
    net_evaluate(net, b.x, b.y, 4, &r);
    float *initial = device_fetch(a->state, a->n_state);
    assert_true(initial[0] == 0 && initial[16] == 1);
    net_forward(net, b.x, b.y, &r); /* the same batch again and again: running = (1 - 0.9^t) batch */
    float *once = device_fetch(a->state, a->n_state);
    net_forward(net, b.x, b.y, &r);
    float *twice = device_fetch(a->state, a->n_state);
    for (int c = 0; c < 16; c++) assert_true(fabs(twice[c] - 1.9 * once[c]) < 1e-6);
    mem_free(initial);
    mem_free(once);
    mem_free(twice);
    batch_close(&b);
    net_close(net);
}

enum { BIASED = 4 }; /* channels of the net below */
static bool build_biased(struct net *net, struct err *e) {
    (void)e;
    int x = build_conv_bias(net, "conv", build_input(net), BIASED, 3, 1, 1);
    x = build_average(net, build_norm_relu(net, "norm", x, BUILD_NONE));
    build_loss(net, build_linear(net, "linear", x, net->setup.classes));
    return true;
}

/* What a bias adds in front of a norm, the norm takes away again: the loss is the same, its gradient is 0, and the
 * running mean alone knows of it, which inference then needs. In every precision, as the layouts differ. */
static void a_bias_before_a_norm_moves_the_running_mean(void **state) {
    (void)state;
    static const struct model_ops biased = {.name = "biased", .build = build_biased};
    static const float bias[BIASED] = {3, -2, 0.5f, 100};
    for (int p = PRECISION_F32; net_precision_names[p]; p++) {
        struct err why = {0};
        struct net_setup setup = image_setup(6, 8, 1);
        setup.precision = (enum precision)p;
        if (!backend_for(setup.device)->serves(setup.precision, &why)) continue;
        const double near = p == PRECISION_F32 ? 1e-4 : p == PRECISION_F32_WINOGRAD ? 1e-3 : 0.05;
        struct net *without = open_model(&biased, setup), *with = open_model(&biased, setup);
        const size_t at = 3 * BIASED * 9;
        struct batch b = batch_open(with, 7);
        struct net_result r[2];
        device_fill(with->arena.param + at, bias, BIASED);
        net_forward(without, b.x, b.y, &r[0]);
        net_forward(with, b.x, b.y, &r[1]);
        net_backward(with);
        assert_true(fabs(r[1].loss - r[0].loss) < near);
        float *mean[2] = {device_fetch(without->arena.state, BIASED), device_fetch(with->arena.state, BIASED)};
        float *db = device_fetch(with->arena.grad + at, BIASED);
        for (int c = 0; c < BIASED; c++) {
            assert_true(fabs(mean[1][c] - mean[0][c] - 0.1 * bias[c]) < near);
            assert_true(fabsf(db[c]) < near);
            mean[1][c] = mean[0][c] + bias[c];
        }
        device_fill(with->arena.state, mean[1], BIASED);
        net_evaluate(without, b.x, b.y, 6, &r[0]);
        net_evaluate(with, b.x, b.y, 6, &r[1]);
        assert_true(fabs(r[1].loss - r[0].loss) < near);
        mem_free(mean[0]), mem_free(mean[1]), mem_free(db);
        batch_close(&b);
        net_close(without), net_close(with);
    }
}

/* A net in training, with its optimiser. */
struct trainee {
    struct net *net;
    struct optimiser sgd;
};
static struct trainee trainee_open(struct net_setup setup) {
    struct trainee t = {.net = open_model(resnet20(), setup)};
    const struct optimiser_ops *ops;
    TABLE_FIND(optimisers, "sgd", ops);
    optimiser_open(&t.sgd, ops, &t.net->arena, &(struct optimiser_setup){.momentum = 0.9, .weight_decay = 1e-4});
    return t;
}
static void trainee_step(struct trainee *t, const struct batch *b, struct net_result *r) {
    struct arena *a = &t->net->arena;
    net_forward(t->net, b->x, b->y, r);
    net_backward(t->net);
    optimiser_step(&t->sgd, a->param, a->grad, 0.05);
    assert_int_equal(optimiser_settle(&t->sgd), a->n);
}
static void trainee_close(struct trainee *t) {
    optimiser_close(&t->sgd);
    net_close(t->net);
}

/* One net runs every pass plainly and is evaluated at the end only; the other records passes and repeats them, where
 * the device does that, and is evaluated after every step. New images, labels and parameters come in all the same. */
static void repeated_passes_give_the_bits_of_plain_ones(void **state) {
    (void)state;
    enum { STEPS = 5 };
    for (int p = PRECISION_F32; net_precision_names[p]; p++) {
        struct err why = {0};
        struct net_setup setup = image_setup(3, 8, 1);
        setup.precision = (enum precision)p;
        if (!backend_for(setup.device)->serves(setup.precision, &why)) continue;
        setenv("SPARSETRAIN_CUDA_GRAPH", "0", 1);
        struct trainee plain = trainee_open(setup);
        unsetenv("SPARSETRAIN_CUDA_GRAPH");
        struct trainee other = trainee_open(setup);
        struct batch test = batch_open(plain.net, 99);
        struct net_result a, b;
        for (uint64_t step = 0; step < STEPS; step++) {
            struct batch batch = batch_open(plain.net, 30 + step);
            trainee_step(&plain, &batch, &a);
            trainee_step(&other, &batch, &b);
            assert_memory_equal(&a.loss, &b.loss, sizeof a.loss);
            assert_int_equal(a.correct, b.correct);
            net_evaluate(other.net, test.x, test.y, (int)step % 3 + 1, &b);
            assert_int_equal(b.count, step % 3 + 1);
            batch_close(&batch);
        }
        assert_true(device_same_bits(plain.net->arena.grad, other.net->arena.grad, plain.net->arena.n));
        assert_true(device_same_bits(plain.net->arena.param, other.net->arena.param, plain.net->arena.n));
        assert_true(device_same_bits(plain.net->arena.state, other.net->arena.state, plain.net->arena.n_state));
        net_evaluate(plain.net, test.x, test.y, 2, &a);
        net_evaluate(other.net, test.x, test.y, 2, &b);
        assert_memory_equal(&a.loss, &b.loss, sizeof a.loss);
        batch_close(&test);
        trainee_close(&plain);
        trainee_close(&other);
    }
}

/* The loss of a pass can be asked for when others have been given since. */
static void a_result_can_be_asked_for_later(void **state) {
    (void)state;
    struct net *net = open_model(resnet20(), image_setup(2, 8, 1));
    struct batch b = batch_open(net, 7);
    struct net_result at_once, later;
    net_evaluate(net, b.x, b.y, 2, &at_once);
    for (int pass = 0; pass < 3; pass++) {
        net_evaluate(net, b.x, b.y, 2, NULL);
        net_result(net, &later);
        assert_memory_equal(&at_once.loss, &later.loss, sizeof later.loss);
    }
    net_forward(net, b.x, b.y, &at_once);
    net_forward(net, b.x, b.y, NULL);
    net_backward(net);
    net_result(net, &later);
    assert_memory_equal(&at_once.loss, &later.loss, sizeof later.loss);
    batch_close(&b);
    net_close(net);
}

/* -- mistakes ------------------------------------------------------------------------------------------------------ */

static void devices_without_backend_are_refused(void **state) {
    (void)state;
    struct device_ops nowhere = *device_find("cpu");
    nowhere.name = "nowhere";
    struct net_setup setup = image_setup(1, 32, 1);
    setup.device = &nowhere;
    struct err e = {0};
    assert_null(net_open(resnet20(), &setup, &e));
    assert_non_null(strstr(e.text, "nowhere"));
}

static void version_names_the_library(void **state) {
    (void)state;
    assert_non_null(strchr(net_backend_version(test_device()), '.'));
}

int main(void) {
    cmocka_set_message_output(CM_OUTPUT_TAP);
    test_device(); /* says so and ends where there is none */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradient_is_the_difference_of_losses),
        cmocka_unit_test(runs_give_the_same_bits),
        cmocka_unit_test(evaluation_counts_only_valid_images),
        cmocka_unit_test(statistics_move_in_training_only),
        cmocka_unit_test(a_bias_before_a_norm_moves_the_running_mean),
        cmocka_unit_test(repeated_passes_give_the_bits_of_plain_ones),
        cmocka_unit_test(a_result_can_be_asked_for_later),
        cmocka_unit_test(devices_without_backend_are_refused),
        cmocka_unit_test(version_names_the_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
