/* pool.c: see pool.h. */
#include "nets/layers/pool.h"

#include "nets/layers/layer.h"

int build_pool(struct net *net, const char *name, int x, int kernel, int stride, int pad) {
    const struct layer_spec spec = {.kind = LAYER_POOL, .pool = {kernel, stride, pad}};
    struct tensor y = layer_shape(net, x);
    if (pad >= kernel) die("layer %s: a window of %d with padding %d may hold no pixel", name, kernel, pad);
    y.h = layer_windows(y.h, kernel, stride, pad);
    y.w = layer_windows(y.w, kernel, stride, pad);
    return layer_add(net, name, &spec, x, BUILD_NONE, y);
}
