/* nets_winograd.c: which convolutions of the CPU --precision f32-winograd changes: those of 3 x 3 at stride 1 for which
 * it pays, where the library has that algorithm; where it has none they stay those of f32. What they compute is held
 * against the naive loops in nets_layers.c. */
#include <math.h>

#include "nets/layers/average.h"
#include "nets/layers/conv.h"
#include "nets/layers/linear.h"
#include "nets/layers/norm_relu.h"
#include "nets/net_build.h"
#include "nets/onednn/backend_onednn_shim.h"
#include "tests/lib/nets_rig.h"

/* A net of one convolution behind another, which begins with `channels`. */
static int channels, kernel, stride;
static bool build_two(struct net *net, struct err *e) {
    (void)e;
    int x = build_norm_relu(net, "norm1", build_conv(net, "conv1", build_input(net), channels, 1, 1, 0), BUILD_NONE);
    x = build_norm_relu(net, "norm2", build_conv(net, "conv2", x, channels, kernel, stride, kernel / 2), BUILD_NONE);
    build_loss(net, build_linear(net, "linear", build_average(net, x), net->setup.classes));
    return true;
}

/* How far the gradients of the two precisions lie apart, over the length of those of f32. */
static double difference(int batch, int side, int of_channels, int of_kernel, int of_stride) {
    static const struct model_ops two = {.name = "two", .build = build_two};
    channels = of_channels, kernel = of_kernel, stride = of_stride;
    struct net_setup setup = image_setup(batch, side, 1);
    struct net *plain = open_model(&two, setup);
    setup.precision = PRECISION_F32_WINOGRAD;
    struct net *other = open_model(&two, setup);
    struct batch b = batch_open(plain, 1);
    struct net *both[2] = {plain, other};
    for (int i = 0; i < 2; i++) {
        net_forward(both[i], b.x, b.y, NULL);
        net_backward(both[i]);
    }
    double far = 0, size = 0;
    for (size_t i = 0; i < plain->arena.n; i++) {
        far += pow((double)plain->arena.grad[i] - (double)other->arena.grad[i], 2);
        size += pow((double)plain->arena.grad[i], 2);
    }
    assert_false(net_lacks_winograd(plain));
    assert_int_equal(net_lacks_winograd(other), far == 0);
    batch_close(&b);
    net_close(plain), net_close(other);
    return sqrt(far / size);
}

/* Does the library have the algorithm on this processor? It is asked for a shape that is as good as any. */
static bool the_library_has_it(void) {
    const dnnl_dims_t x_size = {8, 64, 32, 32}, w_size = {64, 64, 3, 3};
    const struct shim_window window = {.stride = {1, 1}, .pad = {1, 1}};
    dnnl_engine_t engine;
    dnnl_primitive_attr_t attr;
    dnnl_primitive_desc_t made;
    shim_own_desc x, w;
    ONEDNN(dnnl_engine_create(&engine, dnnl_cpu, 0));
    ONEDNN(dnnl_primitive_attr_create(&attr));
    shim_desc_open(&x, 4, x_size, dnnl_format_tag_any);
    shim_desc_open(&w, 4, w_size, dnnl_format_tag_any);
    const bool has = shim_convolution(&made, engine, SHIM_FORWARD, dnnl_convolution_winograd, shim_desc_of(&x),
                                      shim_desc_of(&w), NULL, shim_desc_of(&x), &window, attr, NULL) == dnnl_success;
    if (has) ONEDNN(dnnl_primitive_desc_destroy(made));
    shim_desc_close(&x);
    shim_desc_close(&w);
    ONEDNN(dnnl_primitive_attr_destroy(attr));
    ONEDNN(dnnl_engine_destroy(engine));
    return has;
}

static void where_it_pays_it_is_taken_if_the_library_has_it(void **state) {
    (void)state;
    const bool has = the_library_has_it();
    /* batch, side, channels; the last row goes through the batch in 4, 2, 2, 2 parts, and in one */
    const int shapes[][3] = {{8, 16, 32}, {8, 15, 48},  {16, 8, 64},  {4, 32, 64}, {32, 32, 16},
                             {4, 64, 16}, {16, 30, 16}, {48, 32, 16}, {12, 32, 16}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const double apart = difference(shapes[i][0], shapes[i][1], shapes[i][2], 3, 1);
        if (has ? !(apart > 0 && apart < 1e-4) : apart != 0)
            fail_msg("%d images of %d x %d, %d channels: apart by %g where the library has %s", shapes[i][0],
                     shapes[i][1], shapes[i][1], shapes[i][2], apart, has ? "it" : "none");
    }
}

static void elsewhere_the_bits_are_those_of_f32(void **state) {
    (void)state;
    assert_true(difference(16, 2, 512, 3, 1) == 0); /* hardly a tile for so many weights */
    assert_true(difference(16, 4, 512, 1, 1) == 0);
    assert_true(difference(8, 16, 32, 5, 1) == 0);
    assert_true(difference(8, 16, 32, 3, 2) == 0);
}

int main(void) {
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {cmocka_unit_test(where_it_pays_it_is_taken_if_the_library_has_it),
                                       cmocka_unit_test(elsewhere_the_bits_are_those_of_f32)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
