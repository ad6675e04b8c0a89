/* layer.h: what the files of nets/layers and nets/sequences write a layer down with. A kind of layer is a row of
 * layers.def, a header that says what it computes, and a file that knows its shapes and slices:
 *
 *        int build_pool(struct net *net, const char *name, int x, int kernel, int stride, int pad) {
 *            struct layer_spec spec = {.kind = LAYER_POOL, .pool = {kernel, stride, pad}};
 *            struct tensor y = layer_shape(net, x);
 *            y.h = ...
 *            return layer_add(net, name, &spec, x, BUILD_NONE, y);        // then arena_add for each slice
 *        } */
#ifndef ST_NETS_LAYERS_LAYER_H
#define ST_NETS_LAYERS_LAYER_H

#include "nets/net_build.h"
#include "nets/net_impl.h"

/* Writes a layer down and returns its y, of the given shape. The slices that are added after this are the layer's. */
int layer_add(struct net *net, const char *name, const struct layer_spec *spec, int x, int add, struct tensor y);

/* The shape of tensor x. */
struct tensor layer_shape(const struct net *net, int x);

/* Dies where x has no steps in time, or `lengths` is not a number for each utterance. */
void layer_check_lengths(const struct net *net, const char *name, int x, int lengths);

/* Rows of a sequence: those of setup.sequence. */
static inline int layer_sequence(const struct net *net) {
    return net->setup.sequence > 1 ? net->setup.sequence : 1;
}

/* Places at which a window fits into `in` pixels and the padding on both sides. */
static inline int layer_windows(int in, int kernel, int stride, int pad) {
    return (in + 2 * pad - kernel) / stride + 1;
}

/* x [n][c][h][w] as rows of so many numbers. */
static inline size_t layer_features(const struct tensor *x) {
    return (size_t)x->c * (size_t)x->h * (size_t)x->w;
}

#endif
