/* nets_models.c: every row of the table of models: parameters and their names, initial values, gradients against
 * differences of the loss, the same bits in every run, what backward says, what is refused, and what happens without
 * memory. */
/* long: more than ten seconds at one P */
/* devices: cuda */
#include <math.h>
#include <stdio.h>

#include "tests/lib/in_child.h"
#include "tests/lib/nets_direction.h"
#include "tests/lib/nets_rig.h"

/* Millions of parameters however small its setup, whose random numbers take their time: what a loop repeats is repeated
 * less, with one size of batch, so that a GPU measures algorithms once; and what the host does by itself is looked at
 * on the host alone. */
static bool is_large(const struct model_ops *model) {
    return model->input == MODEL_IMAGES && model->parameters > 1000000;
}

/* -- parameters ---------------------------------------------------------------------------------------------------- */

static void check_slices(const struct slice *slice, size_t slices, size_t n) {
    size_t next = 0;
    for (size_t s = 0; s < slices; s++) {
        size_t size = 1;
        for (int d = 0; d < slice[s].dims; d++) size *= slice[s].dim[d];
        assert_int_equal(slice[s].offset, next);
        assert_int_equal(slice[s].size, size);
        assert_true(size > 0 && slice[s].name[0]);
        for (size_t other = 0; other < s; other++) assert_string_not_equal(slice[s].name, slice[other].name);
        next += size;
    }
    assert_int_equal(next, n);
}

/* Counted by hand from the papers: for 10 classes, or 10,000 words and 1500 features. */
static const struct published {
    const char *model;
    size_t parameters, slices, statistics, carry_slices;
    const char *first, *inner, *last; /* slices */
    int dims;                         /* of `inner` */
    size_t dim[4];
} published[] = {
    /* 19 convolutions, 19 normalisations of two, one linear layer of two */
    {"resnet20", 269722, 59, 1376, 0, "conv1.weight", "stage3.block0.conv1.weight", "linear.bias", 4, {64, 32, 3, 3}},
    /* 13 convolutions of two, 13 normalisations of two, one linear layer of two */
    {"vgg16", 14728266, 54, 8448, 0, "stage1.conv1.weight", "stage4.conv1.weight", "linear.bias", 4, {512, 256, 3, 3}},
    /* an embedding, two LSTMs of four, one linear layer of two */
    {"lstm", 66034000, 11, 0, 4, "embedding.weight", "lstm2.weight_hh", "linear.bias", 2, {6000, 1500, 0, 0}},
    /* an embedding, positions, six for each of four blocks, the last norm; the output has the embedding's */
    {"gpt", 804096, 27, 0, 0, "embedding.weight", "block3.mlp.in.weight", "norm.weight", 2, {512, 128, 0, 0}},
    /* three embeddings and a norm of two, twelve for each of two blocks, the transform's and the decoder's six, the
     * pooler's and the next sentence's four */
    /* two convolutions of two, five LSTMs of four, seven normalisations of two, lookahead and linear layer of one */
    {"speech", 27569568, 40, 8128, 0, "conv1.weight", "lookahead.weight", "linear.weight", 2, {800, 21, 0, 0}},
    {"bert", 8340284, 39, 0, 0, "embedding.weight", "block1.mlp.in.weight", "next.bias", 2, {512, 128, 0, 0}},
};

static void check_published(const struct net *net, const struct published *wanted) {
    const struct arena *a = &net->arena;
    const struct slice *inner = arena_slice(a, wanted->inner);
    assert_int_equal(a->n, wanted->parameters);
    assert_int_equal(a->n, net->model->parameters);
    assert_int_equal(a->slices, wanted->slices);
    assert_int_equal(a->n_state, wanted->statistics);
    assert_int_equal(a->carry_slices, wanted->carry_slices);
    assert_string_equal(a->slice[0].name, wanted->first);
    assert_string_equal(a->slice[a->slices - 1].name, wanted->last);
    assert_non_null(inner);
    assert_int_equal(inner->dims, wanted->dims);
    for (int d = 0; d < wanted->dims; d++) assert_int_equal(inner->dim[d], wanted->dim[d]);
}

static void models_have_their_parameters(void **state) {
    (void)state;
    for (size_t m = 0; models[m]; m++) {
        if (!model_is_served(models[m])) continue;
        const struct published *wanted = published;
        while (strcmp(wanted->model, models[m]->name) != 0)
            if (++wanted == published + sizeof published / sizeof *published)
                fail_msg("%s is not in this test", models[m]->name);
        /* A gigabyte for the language model of 1500 features, which counts its slices on the host. */
        if (models[m]->input == MODEL_TOKENS && !test_device_is_host()) continue;
        struct net_setup setup = image_setup(2, 32, 1); /* what else the counts hold for is the default */
        setup.classes = models[m]->classes;
        if (models[m]->input == MODEL_SPEECH) setup.channels = 1, setup.height = 161;
        if (models[m]->windows) setup.sequence = models[m]->reference.sequence; /* as many positions */
        struct net *net = open_model(models[m], setup);
        const struct arena *a = &net->arena;
        check_published(net, wanted);
        check_slices(a->slice, a->slices, a->n);
        check_slices(a->state_slice, a->state_slices, a->n_state);
        check_slices(a->carry_slice, a->carry_slices, a->n_carry);
        for (size_t s = 0; s < a->slices; s++) {
            const struct slice *slice = &a->slice[s];
            assert_ptr_equal(arena_slice(a, slice->name), slice);
            assert_ptr_equal(arena_slice_at(a, slice->offset), slice);
            assert_ptr_equal(arena_slice_at(a, slice->offset + slice->size - 1), slice);
        }
        assert_null(arena_slice(a, "no.such.slice"));
        net_close(net);
    }
}

/* The moments of `size` numbers lie within 5 of their deviations; kurtosis: of the distribution. */
static void check_moments(const struct slice *slice, const float *v, double variance, double kurtosis) {
    double mean = 0, squares = 0, size = (double)slice->size;
    for (size_t i = 0; i < slice->size; i++) mean += v[i] / size, squares += (double)v[i] * v[i] / size;
    if (!(fabs(mean) < 5 * sqrt(variance / size)) || !(fabs(squares / variance - 1) < 5 * sqrt((kurtosis - 1) / size)))
        fail_msg("%s: mean %g, mean square %g, not %g", slice->name, mean, squares, variance);
}

/* GPT-2: deviation 0.02, of what is added to the residual stream less. */
static double transformer_variance(const struct net *net, const struct slice *slice) {
    const bool less = net->model->input == MODEL_TOKENS && strstr(slice->name, ".out.");
    return 0.02 * 0.02 / (less ? 2 * net->setup.layers : 1);
}

/* Weights He-normal: mean 0, variance 2 / fan_in; LSTMs uniform in +-1 / sqrt(hidden): a third of the square. */
static void check_initial(const struct net *net, const struct slice *slice, const float *v) {
    const double size = (double)slice->size, first = (double)slice->dim[0];
    if (net->model->windows && slice->dims > 1) {
        check_moments(slice, v, transformer_variance(net, slice), 3);
    } else if (strncmp(slice->name, "lstm", 4) == 0) {
        check_moments(slice, v, 4 / first / 3, 9 / 5.0);
        for (size_t i = 0; i < slice->size; i++) assert_true(fabs((double)v[i]) <= sqrt(4 / first) * (1 + 1e-6));
    } else if (slice->dims > 1) {
        check_moments(slice, v, 2 / (size / first), 3);
    } else {
        const float all = strstr(slice->name, ".weight") ? 1 : 0;
        for (size_t i = 0; i < slice->size; i++) assert_true(v[i] == all);
    }
}

static void initial_values_are_as_promised(void **state) {
    (void)state;
    for (size_t m = 0; models[m]; m++) {
        if (!model_is_served(models[m])) continue;
        struct net_setup setup = small_setup(models[m], 2, 1);
        setup.hidden = 66; /* enough numbers for their moments to tell */
        struct net *net = open_model(models[m], setup);
        const struct arena *a = &net->arena;
        float *param = device_fetch(a->param, a->n), *statistics = device_fetch(a->state, a->n_state),
              *carry = device_fetch(a->carry, a->n_carry);
        for (size_t s = 0; s < a->slices; s++) check_initial(net, &a->slice[s], param + a->slice[s].offset);
        for (size_t s = 0; s < a->state_slices; s++) {
            const struct slice *slice = &a->state_slice[s];
            float want = strstr(slice->name, "running_var") ? 1 : 0;
            for (size_t i = 0; i < slice->size; i++) assert_true(statistics[slice->offset + i] == want);
        }
        for (size_t i = 0; i < a->n_carry; i++) assert_true(carry[i] == 0);
        mem_free(param);
        mem_free(statistics);
        mem_free(carry);
        net_close(net);
    }
}

static void initial_values_depend_on_the_seed_alone(void **state) {
    (void)state;
    for (size_t m = 0; models[m]; m++) {
        if (!model_is_served(models[m])) continue;
        struct net_setup other_seed = small_setup(models[m], 2, 1);
        if (is_large(models[m]) && !test_device_is_host()) continue;
        other_seed.seed = 4;
        struct net *a = open_model(models[m], small_setup(models[m], 2, 1)),
                   *b = open_model(models[m], small_setup(models[m], 3, 2)), *c = open_model(models[m], other_seed);
        assert_true(device_same_bits(a->arena.param, b->arena.param, a->arena.n));
        assert_false(device_same_bits(a->arena.param, c->arena.param, a->arena.n));
        net_close(a);
        net_close(b);
        net_close(c);
    }
}

/* -- passes -------------------------------------------------------------------------------------------------------- */

/* The mean loss with parameters param + h d. */
static double loss_at(struct net *net, const struct batch *b, const float *param, const float *d, double h) {
    struct arena *a = &net->arena;
    struct net_result r;
    float *moved = mem_alloc(a->n, sizeof *moved, "parameters");
    for (size_t i = 0; i < a->n; i++) moved[i] = (float)(param[i] + h * d[i]);
    device_fill(a->param, moved, a->n);
    batch_forward(net, b, &r);
    device_fill(a->param, param, a->n);
    mem_free(moved);
    return batch_loss(net);
}

/* Step |h d|. The kinks that w passes on its way (of the ReLU, of a largest value) make an error that falls with h,
 * rounding one that grows as h falls; here both are below 0.2 percent. */
static double step_of(const struct model_ops *model) {
    if (model->windows) return 5e-4; /* weights of 0.02 behind a normalisation: the loss bends early */
    return model->input == MODEL_TOKENS ? 0.02 : 5e-5;
}

/* Along a direction of nets_direction.h, the whole net at once. */
static void check_gradient(struct net *net, const struct batch *b, uint64_t trial) {
    struct arena *a = &net->arena;
    struct net_result here;
    batch_forward(net, b, &here);
    net_backward(net);
    float *param = device_fetch(a->param, a->n), *grad = device_fetch(a->grad, a->n);
    float *d = mem_alloc(a->n, sizeof *d, "a direction");
    struct rng r = rng_open(23, RNG_TEST, trial);
    double slope;
    const double h = step_of(net->model) / direction_along(grad, a->n, &r, d, &slope);
    const double difference = (loss_at(net, b, param, d, h) - loss_at(net, b, param, d, -h)) / (2 * h);
    if (!(fabs(difference / slope - 1) < 0.005))
        fail_msg("%s: the gradient says %g, differences %g", net->model->name, slope, difference);
    mem_free(param);
    mem_free(grad);
    mem_free(d);
}

static void gradient_is_the_difference_of_losses(void **state) {
    (void)state;
    for (size_t m = 0; models[m]; m++) {
        if (!model_is_served(models[m])) continue;
        struct net *net = open_model(models[m], small_setup(models[m], is_large(models[m]) ? 2 : 8, 1));
        struct batch b = batch_open(net, 1);
        for (uint64_t trial = 0; trial < (is_large(models[m]) ? 1 : 3); trial++) check_gradient(net, &b, trial);
        batch_close(&b);
        net_close(net);
    }
}

static void check_same_bits(const struct model_ops *model, int threads) {
    struct net *a = open_model(model, small_setup(model, 2, threads)),
               *b = open_model(model, small_setup(model, 2, threads));
    struct batch one = batch_open(a, 2), other = batch_open(a, 3);
    struct net_result ra, rb;
    batch_forward(b, &other, &rb); /* a past must not matter */
    net_backward(b);
    test_device()->copy(b->arena.state, a->arena.state, a->arena.n_state * sizeof(float));
    net_set_step(b, 0);
    net_carry_reset(b);
    for (int step = 0; step < 2; step++) {
        batch_forward_on(a, &one, &ra);
        net_backward(a);
        batch_forward_on(b, &one, &rb);
        net_backward(b);
        assert_memory_equal(&ra.loss, &rb.loss, sizeof ra.loss);
        assert_true(device_same_bits(a->arena.grad, b->arena.grad, a->arena.n));
        assert_true(device_same_bits(a->arena.state, b->arena.state, a->arena.n_state));
        assert_true(device_same_bits(a->arena.carry, b->arena.carry, a->arena.n_carry));
    }
    batch_close(&one);
    batch_close(&other);
    net_close(a);
    net_close(b);
}

/* Threads are the host's. */
static void runs_give_the_same_bits(void **state) {
    (void)state;
    for (size_t m = 0; models[m]; m++) {
        if (!model_is_served(models[m])) continue;
        if (!is_large(models[m])) check_same_bits(models[m], 1);
        if (is_large(models[m]) || test_device_is_host()) check_same_bits(models[m], 2);
    }
}

static void inputs_may_change_between_forward_and_backward(void **state) {
    (void)state;
    for (size_t m = 0; models[m]; m++) {
        if (!model_is_served(models[m])) continue;
        struct net *net = open_model(models[m], small_setup(models[m], 2, 1));
        struct batch b = batch_open(net, 4);
        struct net_result r;
        batch_forward(net, &b, &r);
        net_backward(net);
        float *grad = device_fetch(net->arena.grad, net->arena.n);
        batch_forward(net, &b, &r);
        for (size_t i = 0; i < b.values; i++)
            if (b.token)
                b.token[i] = (b.token[i] + 1) % net->setup.classes;
            else
                b.x[i] = NAN;
        net_backward(net);
        float *again = device_fetch(net->arena.grad, net->arena.n);
        assert_memory_equal(grad, again, net->arena.n * sizeof *grad);
        mem_free(again);
        mem_free(grad);
        batch_close(&b);
        net_close(net);
    }
}

/* What backward has said to be final, and when. */
struct witness {
    const struct arena *arena;
    float *seen; /* [n] the gradient as it was when it became final; only [from, n) is filled */
    size_t from, calls;
};

static void witness_ready(void *context, size_t from) {
    struct witness *w = context;
    assert_true(from < w->from);
    test_device()->to_host(w->seen + from, w->arena->grad + from, (w->from - from) * sizeof *w->seen);
    for (size_t i = from; i < w->from; i++) assert_true(isfinite(w->seen[i]));
    w->from = from;
    w->calls++;
    assert_int_equal(arena_slice_at(w->arena, from)->offset, from); /* never inside a slice */
}

/* The calls fall from the end to 0, in many steps; what they announce is not touched again; and the gradient is that of
 * a backward pass without them. */
static void backward_tells_what_is_final(void **state) {
    (void)state;
    for (size_t m = 0; models[m]; m++) {
        if (!model_is_served(models[m])) continue;
        struct net *net = open_model(models[m], small_setup(models[m], 2, 1));
        const struct arena *a = &net->arena;
        struct batch b = batch_open(net, 6);
        struct net_result r;
        struct witness w = {.arena = a, .seen = mem_alloc(a->n, sizeof *w.seen, "gradients"), .from = a->n};
        batch_forward(net, &b, &r);
        for (size_t i = 0; i < a->n; i++) w.seen[i] = NAN;
        device_fill(a->grad, w.seen, a->n);
        net_backward_with(net, false, witness_ready, &w);
        assert_int_equal(w.from, 0);
        assert_true(w.calls > a->slices / 4);
        /* and so it stays, also where passes are recorded and repeated */
        for (int pass = 0; pass < (is_large(models[m]) && test_device_is_emulated() ? 1 : 4); pass++) {
            float *grad = device_fetch(a->grad, a->n);
            assert_memory_equal(w.seen, grad, a->n * sizeof *w.seen);
            mem_free(grad);
            batch_forward(net, &b, &r);
            net_backward(net);
        }
        mem_free(w.seen);
        batch_close(&b);
        net_close(net);
    }
}

/* -- mistakes ------------------------------------------------------------------------------------------------------ */

/* NULL, and one line that has both texts. */
static void check_refused(const char *model, struct net_setup setup, const char *limit, const char *given) {
    struct err e = {0};
    assert_null(net_open(model_named(model), &setup, &e));
    if (!strstr(e.text, model) || !strstr(e.text, limit) || !strstr(e.text, given) || strchr(e.text, '\n'))
        fail_msg("refused with \"%s\"", e.text);
}

static void sizes_that_a_model_cannot_take_are_refused(void **state) {
    (void)state;
    struct net_setup wide = image_setup(1, 31, 1), large = text_setup(1, 1);
    wide.width = 64;
    large.hidden = 65537;
    check_refused("resnet20", image_setup(1, 7, 1), "8x8", "7x7");
    check_refused("vgg16", image_setup(1, 16, 1), "32x32", "16x16");
    check_refused("vgg16", wide, "32x32", "31x64");
    check_refused("lstm", large, "65536", "65537");
}

static const struct model_ops *opened; /* in a child */
static long failing;                   /* the allocation that fails */

static void open_and_close(void) {
    mem_fail_at(failing);
    struct err e = {0};
    struct net_setup setup = small_setup(opened, 1, 1);
    struct net *net = net_open(opened, &setup, &e);
    mem_fail_at(0);
    net_close(net);
}

/* Each allocation of the first few, then every fifth or fewer. */
static void no_memory_is_an_end_with_a_line(void **state) {
    (void)state;
    if (!test_device_is_host()) {
        printf("# SKIP no_memory_is_an_end_with_a_line: it is the host's memory that runs out, and no GPU outlives a "
               "fork\n");
        skip();
    }
    char text[512];
    for (size_t m = 0; models[m]; m++) {
        if (!model_is_served(models[m])) continue;
        const long stride = is_large(models[m]) ? 37 : 5;
        opened = models[m];
        for (failing = 1;; failing += failing < 8 ? 1 : stride) {
            int status = in_child(open_and_close, text, sizeof text);
            if (status == IN_CHILD_RETURNED) break;
            assert_int_equal(status, EXIT_SYSTEM);
            assert_non_null(strstr(text, "no memory for"));
            assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
        }
        assert_true(failing > 30); /* the layers' memory was reached */
    }
}

int main(void) {
    cmocka_set_message_output(CM_OUTPUT_TAP);
    if (!test_device_is_host()) test_device(); /* says so and ends where there is none */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_memory_is_an_end_with_a_line), /* first: it forks, and threads would not follow */
        cmocka_unit_test(models_have_their_parameters),
        cmocka_unit_test(initial_values_are_as_promised),
        cmocka_unit_test(initial_values_depend_on_the_seed_alone),
        cmocka_unit_test(gradient_is_the_difference_of_losses),
        cmocka_unit_test(runs_give_the_same_bits),
        cmocka_unit_test(inputs_may_change_between_forward_and_backward),
        cmocka_unit_test(backward_tells_what_is_final),
        cmocka_unit_test(sizes_that_a_model_cannot_take_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
