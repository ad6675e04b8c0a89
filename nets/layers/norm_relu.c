/* norm_relu.c: see norm_relu.h. */
#include "nets/layers/norm_relu.h"

#include "nets/layers/layer.h"

int build_norm_relu(struct net *net, const char *name, int x, int add) {
    const struct layer_spec spec = {.kind = LAYER_NORM_RELU, .sums_two = true, .in_place = true};
    const struct tensor y = layer_shape(net, x);
    if (add != BUILD_NONE) {
        const struct tensor other = layer_shape(net, add);
        if (other.c != y.c || other.h != y.h || other.w != y.w) die("layer %s joins tensors of two shapes", name);
    }
    const int made = layer_add(net, name, &spec, x, add, y);
    const size_t channels = (size_t)y.c;
    arena_add(&net->arena, name, "weight", 1, &channels, ARENA_ONE);
    arena_add(&net->arena, name, "bias", 1, &channels, ARENA_ZERO);
    arena_add_state(&net->arena, name, "running_mean", channels, ARENA_ZERO);
    arena_add_state(&net->arena, name, "running_var", channels, ARENA_ONE);
    return made;
}
