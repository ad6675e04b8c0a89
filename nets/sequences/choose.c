/* choose.c: see choose.h. */
#include "nets/sequences/choose.h"

#include "nets/layers/layer.h"

int build_choose(struct net *net, const char *name, int x, int numbers, int count) {
    const struct layer_spec spec = {.kind = LAYER_CHOOSE, .choose = {layer_sequence(net), count}};
    struct tensor y = layer_shape(net, x);
    if (count < 1 || count > spec.choose.sequence) die("layer %s: %d rows of %d", name, count, spec.choose.sequence);
    y.n = y.n / spec.choose.sequence * count;
    if (numbers != BUILD_NONE &&
        (layer_shape(net, numbers).layout != LAYOUT_TOKENS || layer_shape(net, numbers).n != y.n))
        die("layer %s: its rows are chosen by whole numbers, one for each", name);
    return layer_add(net, name, &spec, x, numbers, y);
}
