/* linear.c: see linear.h. */
#include "nets/layers/linear.h"

#include "nets/layers/layer.h"

int build_linear(struct net *net, const char *name, int x, int features) {
    const struct layer_spec spec = {.kind = LAYER_LINEAR};
    const struct tensor in = layer_shape(net, x), y = {.n = in.n, .c = features, .h = 1, .w = 1};
    const int made = layer_add(net, name, &spec, x, BUILD_NONE, y);
    const size_t dim[2] = {(size_t)features, layer_features(&in)};
    arena_add(&net->arena, name, "weight", 2, dim, arena_he(2, dim));
    arena_add(&net->arena, name, "bias", 1, dim, ARENA_ZERO);
    return made;
}
