/* linear.c: see linear.h. */
#include "nets/layers/linear.h"

#include "nets/layers/layer.h"

static int add_linear(struct net *net, const char *name, int x, int features, const struct layer_spec *spec) {
    const struct tensor in = layer_shape(net, x), y = {.n = in.n, .c = features, .h = 1, .w = 1, .frames = in.frames};
    return layer_add(net, name, spec, x, BUILD_NONE, y);
}

static int add_with(struct net *net, const char *name, int x, int features, bool bias, struct slice_initial weights) {
    const struct layer_spec spec = {.kind = LAYER_LINEAR, .linear = {.bias = bias}};
    const struct tensor in = layer_shape(net, x);
    const int made = add_linear(net, name, x, features, &spec);
    const size_t dim[2] = {(size_t)features, layer_features(&in)};
    arena_add(&net->arena, name, "weight", 2, dim, weights);
    if (bias) arena_add(&net->arena, name, "bias", 1, dim, ARENA_ZERO);
    return made;
}

int build_linear(struct net *net, const char *name, int x, int features) {
    const struct tensor in = layer_shape(net, x);
    const size_t dim[2] = {(size_t)features, layer_features(&in)};
    return add_with(net, name, x, features, true, arena_he(2, dim));
}

int build_linear_normal(struct net *net, const char *name, int x, int features, bool bias, double deviation) {
    return add_with(net, name, x, features, bias, arena_normal(deviation));
}

int build_linear_tied(struct net *net, const char *name, int x, int embedding) {
    struct net_impl *m = net_impl(net);
    const struct layer_spec spec = {.kind = LAYER_LINEAR, .linear = {.tied = true}};
    struct net_layer *table = m->tensor[embedding].maker < 0 ? NULL : &m->layer[m->tensor[embedding].maker];
    const struct tensor in = layer_shape(net, x);
    if (!table || table->spec.kind != LAYER_EMBEDDING || table->spec.embedding.shared)
        die("layer %s: tied to what is no embedding, or is another layer's already", name);
    if (layer_features(&in) != (size_t)layer_shape(net, embedding).c)
        die("layer %s: %zu numbers, but the embedding has %d", name, layer_features(&in),
            layer_shape(net, embedding).c);
    table->spec.embedding.shared = true;
    const int made = add_linear(net, name, x, table->spec.embedding.vocabulary, &spec);
    m->layer[m->tensor[made].maker].param = table->param;
    return made;
}
