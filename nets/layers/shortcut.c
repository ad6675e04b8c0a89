/* shortcut.c: see shortcut.h. */
#include "nets/layers/shortcut.h"

#include "nets/layers/layer.h"

int build_shortcut(struct net *net, int x, int channels, int stride) {
    const struct layer_spec spec = {.kind = LAYER_SHORTCUT, .shortcut = {stride}};
    struct tensor y = layer_shape(net, x);
    if ((channels - y.c) % 2 != 0 || channels < y.c) die("shortcut: %d channels from %d", channels, y.c);
    y.c = channels;
    y.h = (y.h + stride - 1) / stride;
    y.w = (y.w + stride - 1) / stride;
    return layer_add(net, "shortcut", &spec, x, BUILD_NONE, y);
}
