/* conv.c: see conv.h. */
#include "nets/layers/conv.h"

#include "nets/layers/layer.h"

/* Steps in time stay steps in time. */
static void check_time(const char *name, const struct conv_form *f) {
    if (f->kernel[1] % 2 == 0 || f->pad[1] != f->kernel[1] / 2 || FRAMES_ROUND % f->stride[1] != 0)
        die("layer %s: a window of %d columns, padding %d, stride %d over time", name, f->kernel[1], f->pad[1],
            f->stride[1]);
}

int build_conv_form(struct net *net, const char *name, int x, int channels, const struct conv_form *f) {
    const struct layer_spec spec = {.kind = LAYER_CONV,
                                    .conv = {.kernel = {f->kernel[0], f->kernel[1]},
                                             .stride = {f->stride[0], f->stride[1]},
                                             .pad = {f->pad[0], f->pad[1]},
                                             .bias = f->bias}};
    const struct tensor in = layer_shape(net, x);
    const struct tensor y = {.n = in.n,
                             .c = channels,
                             .h = layer_windows(in.h, f->kernel[0], f->stride[0], f->pad[0]),
                             .w = layer_windows(in.w, f->kernel[1], f->stride[1], f->pad[1]),
                             .frames = in.frames * f->stride[1]};
    const size_t dim[4] = {(size_t)channels, (size_t)in.c, (size_t)f->kernel[0], (size_t)f->kernel[1]};
    if (in.frames) check_time(name, f);
    const int made = layer_add(net, name, &spec, x, BUILD_NONE, y);
    arena_add(&net->arena, name, "weight", 4, dim, arena_he(4, dim));
    if (f->bias) arena_add(&net->arena, name, "bias", 1, dim, ARENA_ZERO);
    return made;
}

static struct conv_form square(int kernel, int stride, int pad, bool bias) {
    return (struct conv_form){{kernel, kernel}, {stride, stride}, {pad, pad}, bias};
}

int build_conv(struct net *net, const char *name, int x, int channels, int kernel, int stride, int pad) {
    const struct conv_form form = square(kernel, stride, pad, false);
    return build_conv_form(net, name, x, channels, &form);
}

int build_conv_bias(struct net *net, const char *name, int x, int channels, int kernel, int stride, int pad) {
    const struct conv_form form = square(kernel, stride, pad, true);
    return build_conv_form(net, name, x, channels, &form);
}

void net_fold_biases(struct net *net) {
    struct net_impl *m = net_impl(net);
    for (int i = 0; i < m->layers; i++) {
        struct net_layer *norm = &m->layer[i];
        const struct net_tensor *x = &m->tensor[norm->x];
        if (norm->spec.kind != LAYER_NORM_RELU || x->maker < 0 || x->users > 1) continue;
        struct net_layer *conv = &m->layer[x->maker];
        if (conv->spec.kind != LAYER_CONV || !conv->spec.conv.bias) continue;
        const size_t window = (size_t)conv->spec.conv.kernel[0] * (size_t)conv->spec.conv.kernel[1];
        conv->spec.conv.folded = true;
        norm->bias = conv->param + (size_t)x->shape.c * (size_t)m->tensor[conv->x].shape.c * window;
    }
}
