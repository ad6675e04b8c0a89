/* embedding.c: see embedding.h. */
#include "nets/layers/embedding.h"

#include "nets/layers/layer.h"

int build_embedding(struct net *net, const char *name, int x, int vocabulary, int features) {
    const struct layer_spec spec = {.kind = LAYER_EMBEDDING, .takes_tokens = true, .embedding = {vocabulary}};
    const struct tensor in = layer_shape(net, x), y = {.n = in.n, .c = features, .h = 1, .w = 1};
    if (vocabulary < 1) die("layer %s: an embedding of %d tokens", name, vocabulary);
    const int made = layer_add(net, name, &spec, x, BUILD_NONE, y);
    const size_t dim[2] = {(size_t)vocabulary, (size_t)features};
    arena_add(&net->arena, name, "weight", 2, dim, arena_he(2, dim));
    net_impl(net)->vocabulary = vocabulary;
    return made;
}
