/* lstm.c: see lstm.h. Initialised as PyTorch does: all of it uniform in +-1 / sqrt(hidden). */
#include "nets/sequences/lstm.h"

#include <math.h>

#include "nets/layers/layer.h"

static int add_lstm(struct net *net, const char *name, int x, int lengths, int hidden, const struct layer_spec *spec) {
    const struct tensor in = layer_shape(net, x);
    const struct tensor y = {.n = in.n, .c = hidden, .h = 1, .w = 1, .frames = in.frames};
    const int made = layer_add(net, name, spec, x, lengths, y);
    const size_t H = (size_t)hidden, ih[2] = {4 * H, layer_features(&in)}, hh[2] = {4 * H, H};
    const struct slice_initial uniform = {INITIAL_UNIFORM, 1 / sqrt((double)hidden)};
    arena_add(&net->arena, name, "weight_ih", 2, ih, uniform);
    arena_add(&net->arena, name, "weight_hh", 2, hh, uniform);
    arena_add(&net->arena, name, "bias_ih", 1, ih, uniform);
    arena_add(&net->arena, name, "bias_hh", 1, hh, uniform);
    return made;
}

int build_lstm(struct net *net, const char *name, int x, int hidden) {
    const struct layer_spec spec = {.kind = LAYER_LSTM, .lstm = {.sequence = layer_sequence(net)}};
    const size_t streams[2] = {(size_t)net->setup.batch, (size_t)hidden};
    const int made = add_lstm(net, name, x, BUILD_NONE, hidden, &spec);
    arena_add_carry(&net->arena, name, "hidden", 2, streams);
    arena_add_carry(&net->arena, name, "cell", 2, streams);
    return made;
}

int build_lstm_padded(struct net *net, const char *name, int x, int lengths, int hidden) {
    const struct tensor in = layer_shape(net, x);
    const struct layer_spec spec = {.kind = LAYER_LSTM, .lstm = {.sequence = in.n / net->setup.batch, .padded = true}};
    layer_check_lengths(net, name, x, lengths);
    if (in.h != 1 || in.w != 1) die("layer %s reads rows of time", name);
    return add_lstm(net, name, x, lengths, hidden, &spec);
}
