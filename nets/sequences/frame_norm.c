/* frame_norm.c: see frame_norm.h. */
#include "nets/sequences/frame_norm.h"

#include "nets/layers/layer.h"

int build_frame_norm(struct net *net, const char *name, int x, int lengths, double ceiling) {
    const struct layer_spec spec = {.kind = LAYER_FRAME_NORM, .in_place = true, .frame_norm = {ceiling}};
    const struct tensor y = layer_shape(net, x);
    const size_t channels = (size_t)y.c;
    layer_check_lengths(net, name, x, lengths);
    const int made = layer_add(net, name, &spec, x, lengths, y);
    arena_add(&net->arena, name, "weight", 1, &channels, ARENA_ONE);
    arena_add(&net->arena, name, "bias", 1, &channels, ARENA_ZERO);
    arena_add_state(&net->arena, name, "running_mean", channels, ARENA_ZERO);
    arena_add_state(&net->arena, name, "running_var", channels, ARENA_ONE);
    return made;
}
