/* add.c: see add.h. */
#include "nets/layers/add.h"

#include "nets/layers/layer.h"

int build_add(struct net *net, const char *name, int x, int add) {
    const struct layer_spec spec = {.kind = LAYER_ADD};
    const struct tensor y = layer_shape(net, x), other = layer_shape(net, add);
    if (other.n != y.n || other.c != y.c || other.h != y.h || other.w != y.w)
        die("layer %s adds tensors of two shapes", name);
    return layer_add(net, name, &spec, x, add, y);
}
