/* conv.c: see conv.h. */
#include "nets/layers/conv.h"

#include "nets/layers/layer.h"

static int add_conv(struct net *net, const char *name, int x, int channels, const struct layer_spec *spec) {
    const int kernel = spec->conv.kernel, stride = spec->conv.stride, pad = spec->conv.pad;
    const struct tensor in = layer_shape(net, x);
    const struct tensor y = {.n = in.n,
                             .c = channels,
                             .h = layer_windows(in.h, kernel, stride, pad),
                             .w = layer_windows(in.w, kernel, stride, pad)};
    const size_t dim[4] = {(size_t)channels, (size_t)in.c, (size_t)kernel, (size_t)kernel};
    const int made = layer_add(net, name, spec, x, BUILD_NONE, y);
    arena_add(&net->arena, name, "weight", 4, dim, arena_he(4, dim));
    if (spec->conv.bias) arena_add(&net->arena, name, "bias", 1, dim, ARENA_ZERO);
    return made;
}

int build_conv(struct net *net, const char *name, int x, int channels, int kernel, int stride, int pad) {
    const struct layer_spec spec = {.kind = LAYER_CONV, .conv = {.kernel = kernel, .stride = stride, .pad = pad}};
    return add_conv(net, name, x, channels, &spec);
}

int build_conv_bias(struct net *net, const char *name, int x, int channels, int kernel, int stride, int pad) {
    const struct layer_spec spec = {.kind = LAYER_CONV,
                                    .conv = {.kernel = kernel, .stride = stride, .pad = pad, .bias = true}};
    return add_conv(net, name, x, channels, &spec);
}

void net_fold_biases(struct net *net) {
    struct net_impl *m = net_impl(net);
    for (int i = 0; i < m->layers; i++) {
        struct net_layer *norm = &m->layer[i];
        const struct net_tensor *x = &m->tensor[norm->x];
        if (norm->spec.kind != LAYER_NORM_RELU || x->maker < 0 || x->users > 1) continue;
        struct net_layer *conv = &m->layer[x->maker];
        if (conv->spec.kind != LAYER_CONV || !conv->spec.conv.bias) continue;
        const size_t window = (size_t)conv->spec.conv.kernel * (size_t)conv->spec.conv.kernel;
        conv->spec.conv.folded = true;
        norm->bias = conv->param + (size_t)x->shape.c * (size_t)m->tensor[conv->x].shape.c * window;
    }
}
