/* nets_users.c: tensors that several layers read, and layers that a backend lacks. A net whose tensors have up to four
 * users is held against its twin, in which each user has a copy of its own, with the same weights: the gradient of a
 * weight is the sum of those of its copies.
 * devices: cuda */
#include <math.h>
#include <stdio.h>

#include "nets/backend.h"
#include "nets/layers/average.h"
#include "nets/layers/conv.h"
#include "nets/layers/linear.h"
#include "nets/layers/norm_relu.h"
#include "nets/net_build.h"
#include "nets/sequences/embedding.h"
#include "nets/sequences/lstm.h"
#include "tests/lib/in_child.h"
#include "tests/lib/nets_rig.h"

enum { CHANNELS = 20 /* fills no register of any width */, COPIES = 6, BATCH = 5, SIDE = 7 };

/* -- the net ------------------------------------------------------------------------------------------------------- */

/* The two tensors that have several users: once, or a copy for each user. */
struct sharing {
    struct net *net;
    bool copies;
    int image, conv, norm;      /* tensors, BUILD_NONE: not yet */
    int conv_count, norm_count; /* copies so far */
};

static const char *copy_name(char *text, const char *name, int number, bool copies) {
    if (copies)
        snprintf(text, SLICE_NAME_MAX, "%s.%d", name, number);
    else
        snprintf(text, SLICE_NAME_MAX, "%s", name);
    return text;
}

static int conv_of(struct sharing *s) {
    char name[SLICE_NAME_MAX];
    if (s->copies || s->conv == BUILD_NONE)
        s->conv =
            build_conv_bias(s->net, copy_name(name, "conv", s->conv_count++, s->copies), s->image, CHANNELS, 3, 1, 1);
    return s->conv;
}

static int norm_of(struct sharing *s) {
    char name[SLICE_NAME_MAX];
    if (s->copies || s->norm == BUILD_NONE)
        s->norm = build_norm_relu(s->net, copy_name(name, "norm", s->norm_count++, s->copies), conv_of(s), BUILD_NONE);
    return s->norm;
}

static int conv(struct net *net, const char *name, int x) {
    return build_conv(net, name, x, CHANNELS, 3, 1, 1);
}

/* Users of `conv`: a norm that works in place, one that joins, another one's `add`, a second one in place. Of `norm`: a
 * convolution and two joining norms, one more than its backward pass adds up by itself. */
static bool build(struct net *net, bool copies) {
    struct sharing s = {.net = net, .copies = copies, .conv = BUILD_NONE, .norm = BUILD_NONE};
    s.image = build_input(net);
    int f = build_norm_relu(net, "f.norm", conv(net, "f.conv", norm_of(&s)), norm_of(&s));
    int g = build_norm_relu(net, "g.norm", conv_of(&s), norm_of(&s));
    int h = build_norm_relu(net, "h.norm", conv(net, "h.conv", f), g);
    int j = build_norm_relu(net, "j.norm", conv(net, "j.conv", h), conv_of(&s));
    int k = build_norm_relu(net, "k.norm", conv_of(&s), BUILD_NONE);
    int l = build_norm_relu(net, "l.norm", conv(net, "l.conv", k), j);
    build_loss(net, build_linear(net, "linear", build_average(net, l), net->setup.classes));
    return true;
}
static bool build_shared(struct net *net, struct err *e) {
    (void)e;
    return build(net, false);
}
static bool build_copies(struct net *net, struct err *e) {
    (void)e;
    return build(net, true);
}
static const struct model_ops shared = {.name = "shared", .build = build_shared},
                              copied = {.name = "copied", .build = build_copies};

/* "conv.3.weight" -> "conv.weight" */
static const struct slice *original_of(const struct net *net, const struct slice *copy) {
    char name[SLICE_NAME_MAX] = "";
    size_t used = 0;
    for (const char *at = copy->name; *at; at++) {
        if (at[0] == '.' && at[1] >= '0' && at[1] <= '9') at += 2;
        name[used++] = *at;
    }
    const struct slice *original = arena_slice(&net->arena, name);
    if (!original) fail_msg("no slice %s", name);
    return original;
}

/* -- gradients ----------------------------------------------------------------------------------------------------- */

static double tolerance_of(enum precision precision) {
    return precision == PRECISION_F32 ? 2e-5 : precision == PRECISION_F32_WINOGRAD ? 1e-3 : 0.05;
}

static void compare(const struct net *one, const float *grad, const double *sum, double tolerance) {
    for (size_t s = 0; s < one->arena.slices; s++) {
        const struct slice *slice = &one->arena.slice[s];
        double far = 0, size = 0;
        for (size_t i = slice->offset; i < slice->offset + slice->size; i++) {
            far += pow((double)grad[i] - sum[i], 2);
            size += pow(sum[i], 2);
        }
        if (strcmp(slice->name, "conv.bias") == 0) { /* taken away by most of its readers */
            assert_true(sqrt(far) < 0.1 + tolerance);
            continue;
        }
        if (!(sqrt(far / size) < tolerance)) fail_msg("%s: off by %g of itself", slice->name, sqrt(far / size));
    }
}

static void check(enum precision precision) {
    struct net_setup setup = image_setup(BATCH, SIDE, 1);
    setup.precision = precision;
    struct net *one = open_model(&shared, setup), *many = open_model(&copied, setup);
    struct batch b = batch_open(one, 1);
    struct net_result r[2];
    const struct arena *o = &one->arena, *m = &many->arena;
    float *param = device_fetch(o->param, o->n), *wide = device_fetch(m->param, m->n);
    size_t copies = 0;
    for (size_t s = 0; s < m->slices; s++) {
        const struct slice *from = original_of(one, &m->slice[s]);
        memcpy(wide + m->slice[s].offset, param + from->offset, from->size * sizeof *wide);
        copies += strncmp(m->slice[s].name, "conv.", 5) == 0;
    }
    assert_int_equal(copies, 2 * COPIES); /* weights, biases */
    device_fill(m->param, wide, m->n);
    net_forward(one, b.x, b.y, &r[0]);
    net_forward(many, b.x, b.y, &r[1]);
    assert_true(fabs(r[0].loss / r[1].loss - 1) < tolerance_of(precision));
    net_backward(one);
    net_backward(many);
    float *grad = device_fetch(o->grad, o->n), *parts = device_fetch(m->grad, m->n);
    double *sum = mem_zalloc(o->n, sizeof *sum, "a test's sums");
    for (size_t s = 0; s < m->slices; s++) {
        const struct slice *to = original_of(one, &m->slice[s]);
        for (size_t i = 0; i < to->size; i++) sum[to->offset + i] += (double)parts[m->slice[s].offset + i];
    }
    compare(one, grad, sum, tolerance_of(precision));
    for (int pass = 0; pass < 3; pass++) { /* where passes are recorded: one of them is, one is repeated */
        net_forward(one, b.x, b.y, NULL);
        net_backward(one);
        float *again = device_fetch(o->grad, o->n);
        assert_memory_equal(grad, again, o->n * sizeof *grad);
        mem_free(again);
    }
    void *memory[] = {param, wide, grad, parts, sum};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) mem_free(memory[i]);
    batch_close(&b);
    net_close(one);
    net_close(many);
}

static void a_gradient_is_the_sum_over_all_users(void **state) {
    (void)state;
    for (int p = PRECISION_F32; net_precision_names[p]; p++) {
        struct err why = {0};
        if (backend_for(test_device())->serves((enum precision)p, &why)) check((enum precision)p);
    }
}

/* -- mistakes ------------------------------------------------------------------------------------------------------ */

static struct backend_ops lacking;
static const struct backend_ops *lacking_backend(void) {
    return &lacking;
}

static void a_layer_that_a_backend_lacks_is_named(void **state) {
    (void)state;
    struct device_ops device = *test_device();
    struct net_setup setup = text_setup(2, 1);
    struct err e = {0};
    lacking = *backend_for(&device);
    lacking.layer[LAYER_LSTM] = &layer_missing;
    device.backend = lacking_backend;
    setup.device = &device;
    assert_null(net_open(model_named("lstm"), &setup, &e));
    assert_non_null(strstr(e.text, "lstm1 (lstm)"));
    assert_non_null(strstr(e.text, lacking.name));
    setup = image_setup(2, 9, 1); /* which needs none of those */
    setup.device = &device;
    net_close(open_model(model_named("resnet20"), setup));
}

static bool build_idle(struct net *net, struct err *e) {
    (void)e;
    int x = build_input(net);
    (void)build_conv(net, "idle", x, 4, 3, 1, 1);
    build_loss(net, build_linear(net, "linear", build_average(net, x), net->setup.classes));
    return true;
}
static bool build_tokenless(struct net *net, struct err *e) {
    (void)e;
    build_loss(net, build_embedding(net, "embedding", build_input(net), 5, 4));
    return true;
}
static bool build_on_tokens(struct net *net, struct err *e) {
    (void)e;
    build_loss(net, build_lstm(net, "lstm", build_tokens(net), 4));
    return true;
}

static const struct model_ops mistaken[] = {{.name = "idle", .build = build_idle},
                                            {.name = "tokenless", .build = build_tokenless},
                                            {.name = "on_tokens", .build = build_on_tokens}};
static const struct model_ops *measured;
static void measure(void) {
    const struct net_setup setup = image_setup(2, 8, 1);
    struct net_size size;
    struct err e = {0};
    (void)net_measure(measured, &setup, &size, &e);
}

static void mistakes_of_a_model_end_the_job(void **state) {
    (void)state;
    static const char *const line[] = {"nothing reads idle", "layer embedding: its input holds no tokens",
                                       "layer lstm: its input holds tokens"};
    for (size_t i = 0; i < sizeof mistaken / sizeof *mistaken; i++) {
        char text[512];
        measured = &mistaken[i];
        assert_int_equal(in_child(measure, text, sizeof text), EXIT_SYSTEM);
        if (!strstr(text, line[i])) fail_msg("%s: %s", mistaken[i].name, text);
    }
}

int main(void) {
    cmocka_set_message_output(CM_OUTPUT_TAP);
    test_device(); /* says so and ends where there is none */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistakes_of_a_model_end_the_job), /* forks: before there are threads */
        cmocka_unit_test(a_gradient_is_the_sum_over_all_users),
        cmocka_unit_test(a_layer_that_a_backend_lacks_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
