/* lstm.c: see lstm.h. Initialised as PyTorch does: all of it uniform in +-1 / sqrt(hidden). */
#include "nets/layers/lstm.h"

#include <math.h>

#include "nets/layers/layer.h"

int build_lstm(struct net *net, const char *name, int x, int hidden) {
    const struct net_setup *s = &net->setup;
    const struct layer_spec spec = {.kind = LAYER_LSTM, .lstm = {layer_sequence(net)}};
    const struct tensor in = layer_shape(net, x), y = {.n = in.n, .c = hidden, .h = 1, .w = 1};
    const int made = layer_add(net, name, &spec, x, BUILD_NONE, y);
    const size_t H = (size_t)hidden, ih[2] = {4 * H, layer_features(&in)}, hh[2] = {4 * H, H};
    const size_t streams[2] = {(size_t)s->batch, H};
    const struct slice_initial uniform = {INITIAL_UNIFORM, 1 / sqrt((double)hidden)};
    arena_add(&net->arena, name, "weight_ih", 2, ih, uniform);
    arena_add(&net->arena, name, "weight_hh", 2, hh, uniform);
    arena_add(&net->arena, name, "bias_ih", 1, ih, uniform);
    arena_add(&net->arena, name, "bias_hh", 1, hh, uniform);
    arena_add_carry(&net->arena, name, "hidden", 2, streams);
    arena_add_carry(&net->arena, name, "cell", 2, streams);
    return made;
}
