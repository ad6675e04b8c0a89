/* lookahead.c: see lookahead.h. */
#include "nets/sequences/lookahead.h"

#include "nets/layers/layer.h"

int build_lookahead(struct net *net, const char *name, int x, int lengths, int context, double ceiling) {
    const struct layer_spec spec = {.kind = LAYER_LOOKAHEAD, .lookahead = {context, ceiling}};
    const struct tensor y = layer_shape(net, x);
    const size_t dim[2] = {(size_t)y.c, (size_t)context + 1};
    layer_check_lengths(net, name, x, lengths);
    if (y.h != 1 || y.w != 1) die("layer %s looks ahead over rows of time", name);
    const int made = layer_add(net, name, &spec, x, lengths, y);
    arena_add(&net->arena, name, "weight", 2, dim, arena_he(2, dim));
    return made;
}
