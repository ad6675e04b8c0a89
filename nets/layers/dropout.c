/* dropout.c: see dropout.h. */
#include "nets/layers/dropout.h"

#include "nets/layers/layer.h"

int build_dropout(struct net *net, const char *name, int x, double drop) {
    const struct layer_spec spec = {.kind = LAYER_DROPOUT, .dropout = {drop}};
    if (!(drop >= 0 && drop < 1)) die("layer %s: elements dropped with probability %g", name, drop);
    return layer_add(net, name, &spec, x, BUILD_NONE, layer_shape(net, x));
}
