/* time_rows.c: see time_rows.h. */
#include "nets/sequences/time_rows.h"

#include "nets/layers/layer.h"

int build_time_rows(struct net *net, const char *name, int x) {
    const struct layer_spec spec = {.kind = LAYER_TIME_ROWS};
    const struct tensor in = layer_shape(net, x);
    if (!in.frames) die("layer %s: images without time", name);
    const struct tensor y = {.n = in.n * in.w, .c = in.c * in.h, .h = 1, .w = 1, .frames = in.frames};
    return layer_add(net, name, &spec, x, BUILD_NONE, y);
}
