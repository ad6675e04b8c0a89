/* gelu.c: see gelu.h. */
#include "nets/layers/gelu.h"

#include "nets/layers/layer.h"

int build_gelu(struct net *net, const char *name, int x, enum gelu_form form) {
    const struct layer_spec spec = {.kind = LAYER_GELU, .gelu = {form == GELU_TANH}};
    return layer_add(net, name, &spec, x, BUILD_NONE, layer_shape(net, x));
}
