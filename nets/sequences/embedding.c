/* embedding.c: see embedding.h. */
#include "nets/sequences/embedding.h"

#include "nets/layers/layer.h"

static int add_embedding(struct net *net, const char *name, int x, int add, const size_t dim[2],
                         struct slice_initial weights) {
    const int vocabulary = (int)dim[0], features = (int)dim[1];
    const struct layer_spec spec = {
        .kind = LAYER_EMBEDDING, .takes_tokens = true, .embedding = {.vocabulary = vocabulary}};
    const struct tensor in = layer_shape(net, x), y = {.n = in.n, .c = features, .h = 1, .w = 1};
    if (vocabulary < 1) die("layer %s: an embedding of %d tokens", name, vocabulary);
    const int made = layer_add(net, name, &spec, x, add, y);
    arena_add(&net->arena, name, "weight", 2, dim, weights);
    net_impl(net)->tensor[x].limit = vocabulary;
    return made;
}

int build_embedding(struct net *net, const char *name, int x, int vocabulary, int features) {
    const size_t dim[2] = {(size_t)vocabulary, (size_t)features};
    return add_embedding(net, name, x, BUILD_NONE, dim, arena_he(2, dim));
}

int build_embedding_normal(struct net *net, const char *name, int x, int vocabulary, int features, double deviation) {
    const size_t dim[2] = {(size_t)vocabulary, (size_t)features};
    return add_embedding(net, name, x, BUILD_NONE, dim, arena_normal(deviation));
}

int build_embedding_onto(struct net *net, const char *name, int x, int vocabulary, int add, double deviation) {
    const struct tensor to = layer_shape(net, add);
    const size_t dim[2] = {(size_t)vocabulary, layer_features(&to)};
    if (to.n != layer_shape(net, x).n || to.h != 1 || to.w != 1) die("layer %s: its rows are others", name);
    return add_embedding(net, name, x, add, dim, arena_normal(deviation));
}
