/* position.c: see position.h. */
#include "nets/sequences/position.h"

#include "nets/layers/layer.h"

int build_position(struct net *net, const char *name, int x, int positions, double deviation) {
    const struct layer_spec spec = {.kind = LAYER_POSITION, .position = {layer_sequence(net), positions}};
    const struct tensor y = layer_shape(net, x);
    const int made = layer_add(net, name, &spec, x, BUILD_NONE, y);
    const size_t dim[2] = {(size_t)positions, layer_features(&y)};
    if (positions < spec.position.sequence)
        die("layer %s: %d positions for %d rows", name, positions, spec.position.sequence);
    arena_add(&net->arena, name, "weight", 2, dim, arena_normal(deviation));
    return made;
}
