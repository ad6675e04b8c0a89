/* layer_norm.c: see layer_norm.h. */
#include "nets/sequences/layer_norm.h"

#include "nets/layers/layer.h"

int build_layer_norm(struct net *net, const char *name, int x, bool bias, double epsilon) {
    const struct layer_spec spec = {.kind = LAYER_LAYER_NORM, .layer_norm = {epsilon, bias}};
    const struct tensor y = layer_shape(net, x);
    const int made = layer_add(net, name, &spec, x, BUILD_NONE, y);
    const size_t features = layer_features(&y);
    if (!(epsilon > 0)) die("layer %s: a normalisation with epsilon %g", name, epsilon);
    arena_add(&net->arena, name, "weight", 1, &features, ARENA_ONE);
    if (bias) arena_add(&net->arena, name, "bias", 1, &features, ARENA_ZERO);
    return made;
}
