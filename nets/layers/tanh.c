/* tanh.c: see tanh.h. */
#include "nets/layers/tanh.h"

#include "nets/layers/layer.h"

int build_tanh(struct net *net, const char *name, int x) {
    const struct layer_spec spec = {.kind = LAYER_TANH};
    return layer_add(net, name, &spec, x, BUILD_NONE, layer_shape(net, x));
}
