/* nets_winograd.c: which convolutions of the CPU --precision f32-winograd changes: those of 3 x 3 at stride 1 for which
 * it pays, where the library has that algorithm. What they compute is held against the naive loops in nets_layers.c. */
#include <math.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>

#include "nets/layers/average.h"
#include "nets/layers/conv.h"
#include "nets/layers/linear.h"
#include "nets/layers/norm_relu.h"
#include "nets/net_build.h"
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
    batch_close(&b);
    net_close(plain), net_close(other);
    return sqrt(far / size);
}

static void where_it_pays_it_is_taken(void **state) {
    (void)state;
    const unsigned wanted = dnnl_cpu_isa_avx512_core;
    if (dnnl_version()->major >= 3 || ((unsigned)dnnl_get_effective_cpu_isa() & wanted) != wanted) {
        printf("# SKIP Winograd's algorithm of the CPU: oneDNN 2.x has it for AVX-512 alone\n");
        skip();
    }
    const int shapes[][3] = {{8, 16, 32}, {8, 15, 48}, {16, 8, 64}, {4, 32, 64}}; /* batch, side, channels */
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const double apart = difference(shapes[i][0], shapes[i][1], shapes[i][2], 3, 1);
        if (!(apart > 0 && apart < 1e-4))
            fail_msg("%d images of %d x %d, %d channels: apart by %g", shapes[i][0], shapes[i][1], shapes[i][1],
                     shapes[i][2], apart);
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(where_it_pays_it_is_taken),
                                       cmocka_unit_test(elsewhere_the_bits_are_those_of_f32)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
