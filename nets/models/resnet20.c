/* resnet20.c: the 20-layer residual network for CIFAR-10 (He et al., "Deep residual learning for image recognition",
 * CVPR 2016, Section 4.2): a 3x3 convolution, three stages of three blocks of two 3x3 convolutions with 16, 32 and 64
 * channels, the mean over all positions, a linear layer. Shortcuts have no parameters (option A: every second row and
 * column, zeros for the new channels, as many before the old ones as after). 269,722 parameters for 10 classes. */
#include <stdio.h>

#include "nets/layers/average.h"
#include "nets/layers/conv.h"
#include "nets/layers/linear.h"
#include "nets/layers/norm_relu.h"
#include "nets/layers/shortcut.h"
#include "nets/net_build.h"

enum { STAGES = 3, BLOCKS = 3, WIDTH = 16, SMALLEST = 8 };

/* "stage1.block0.conv1" */
static const char *named(char text[SLICE_NAME_MAX], int stage, int number, const char *layer) {
    snprintf(text, SLICE_NAME_MAX, "stage%d.block%d.%s", stage + 1, number, layer);
    return text;
}

/* relu(norm(conv(relu(norm(conv(x))))) + shortcut(x)) */
static int block(struct net *net, int stage, int number, int x) {
    char name[SLICE_NAME_MAX];
    int channels = WIDTH << stage, stride = stage > 0 && number == 0 ? 2 : 1;
    int y = build_conv(net, named(name, stage, number, "conv1"), x, channels, 3, stride, 1);
    y = build_norm_relu(net, named(name, stage, number, "bn1"), y, BUILD_NONE);
    y = build_conv(net, named(name, stage, number, "conv2"), y, channels, 3, 1, 1);
    int shortcut = stride == 1 ? x : build_shortcut(net, x, channels, stride);
    return build_norm_relu(net, named(name, stage, number, "bn2"), y, shortcut);
}

static bool build(struct net *net, struct err *e) {
    if (!build_fits(net, SMALLEST, e)) return false;
    int x = build_input(net);
    x = build_conv(net, "conv1", x, WIDTH, 3, 1, 1);
    x = build_norm_relu(net, "bn1", x, BUILD_NONE);
    for (int stage = 0; stage < STAGES; stage++)
        for (int i = 0; i < BLOCKS; i++) x = block(net, stage, i, x);
    x = build_average(net, x);
    build_loss(net, build_linear(net, "linear", x, net->setup.classes));
    return true;
}

const struct model_ops model_resnet20 = {
    .name = "resnet20",
    .summary = "20-layer residual network for 32x32 images, 269,722 parameters",
    .paper = "He et al., CVPR 2016; shortcuts of option A",
    .parameters = 269722,
    .classes = 10,
    .reference = MODEL_REFERENCE_CIFAR10,
    .build = build,
};
