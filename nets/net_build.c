/* net_build.c: see net_build.h. Layers and tensors are only written down here; net_open gives them memory. */
#include "nets/net_build.h"

#include <stdio.h>

#include "base/error.h"
#include "nets/net_impl.h"

static int add_tensor(struct net *net, struct tensor shape, int maker) {
    struct net_impl *m = net_impl(net);
    m->tensor[m->tensors] = (struct net_tensor){.shape = shape, .maker = maker};
    return m->tensors++;
}

/* One more reader of tensor t. */
static void use(struct net_impl *m, int t, const char *name) {
    if (t < 0 || t >= m->tensors) die("layer %s reads a tensor that does not exist", name);
    int maker = m->tensor[t].maker;
    bool adds_up = maker >= 0 && m->layer[maker].spec.kind == LAYER_NORM_RELU;
    if (++m->tensor[t].users > (adds_up ? NET_USERS_MAX : 1)) die("layer %s: its input has too many users", name);
}

/* Writes a layer down and returns its y of the given shape. */
static int add_layer(struct net *net, const char *name, struct layer_spec spec, int x, int add, struct tensor y) {
    struct net_impl *m = net_impl(net);
    if (m->layers == NET_LAYERS_MAX) die("layer %s: a net has at most %d layers", name, NET_LAYERS_MAX);
    use(m, x, name);
    if (m->tensor[x].shape.layout == LAYOUT_TOKENS && spec.kind != LAYER_EMBEDDING)
        die("layer %s: its input holds tokens", name);
    if (add != BUILD_NONE) use(m, add, name);
    if (y.c < 1 || y.h < 1 || y.w < 1) die("layer %s: its output is empty", name);
    spec.wants_dx = m->tensor[x].maker >= 0;
    struct net_layer *l = &m->layer[m->layers];
    *l = (struct net_layer){.spec = spec,
                            .x = x,
                            .add = add,
                            .param = net->arena.n,
                            .state = net->arena.n_state,
                            .carry = net->arena.n_carry};
    snprintf(l->name, sizeof l->name, "%s", name);
    return l->y = add_tensor(net, y, m->layers++);
}

static struct tensor shape_of(const struct net *net, int x) {
    return net_impl(net)->tensor[x].shape;
}

bool build_fits(const struct net *net, int smallest, struct err *e) {
    const struct net_setup *s = &net->setup;
    if (s->height >= smallest && s->width >= smallest) return true;
    return err_set(e, "model %s needs images of at least %dx%d pixels, not %dx%d", net->model->name, smallest, smallest,
                   s->height, s->width);
}

int build_input(struct net *net) {
    const struct net_setup *s = &net->setup;
    return add_tensor(net, (struct tensor){.n = net_rows(s), .c = s->channels, .h = s->height, .w = s->width}, -1);
}

int build_tokens(struct net *net) {
    struct tensor tokens = {.n = net_rows(&net->setup), .c = 1, .h = 1, .w = 1, .layout = LAYOUT_TOKENS};
    return add_tensor(net, tokens, -1);
}

int build_embedding(struct net *net, const char *name, int x, int vocabulary, int features) {
    struct layer_spec spec = {.kind = LAYER_EMBEDDING, .vocabulary = vocabulary};
    struct tensor in = shape_of(net, x), y = {.n = in.n, .c = features, .h = 1, .w = 1};
    if (in.layout != LAYOUT_TOKENS || vocabulary < 1) die("layer %s: an embedding of something else than tokens", name);
    int made = add_layer(net, name, spec, x, BUILD_NONE, y);
    arena_add(&net->arena, name, "weight", 2, (const size_t[]){(size_t)vocabulary, (size_t)features});
    net_impl(net)->vocabulary = vocabulary;
    return made;
}

/* Places at which a window of `kernel` fits into `in` pixels and the padding on both sides. */
static int places_of(int in, const struct layer_spec *spec) {
    return (in + 2 * spec->pad - spec->kernel) / spec->stride + 1;
}

static int add_conv(struct net *net, const char *name, int x, int channels, const struct layer_spec *spec) {
    struct tensor in = shape_of(net, x), y = in;
    y.c = channels;
    y.h = places_of(in.h, spec);
    y.w = places_of(in.w, spec);
    int made = add_layer(net, name, *spec, x, BUILD_NONE, y);
    size_t dim[4] = {(size_t)channels, (size_t)in.c, (size_t)spec->kernel, (size_t)spec->kernel};
    arena_add(&net->arena, name, "weight", 4, dim);
    if (spec->bias) arena_add(&net->arena, name, "bias", 1, dim);
    return made;
}

int build_conv(struct net *net, const char *name, int x, int channels, int kernel, int stride, int pad) {
    struct layer_spec spec = {.kind = LAYER_CONV, .kernel = kernel, .stride = stride, .pad = pad};
    return add_conv(net, name, x, channels, &spec);
}

int build_conv_bias(struct net *net, const char *name, int x, int channels, int kernel, int stride, int pad) {
    struct layer_spec spec = {.kind = LAYER_CONV, .kernel = kernel, .stride = stride, .pad = pad, .bias = true};
    return add_conv(net, name, x, channels, &spec);
}

int build_norm_relu(struct net *net, const char *name, int x, int add) {
    struct tensor y = shape_of(net, x);
    if (add != BUILD_NONE) {
        struct tensor other = shape_of(net, add);
        if (other.c != y.c || other.h != y.h || other.w != y.w) die("layer %s joins tensors of two shapes", name);
    }
    int made = add_layer(net, name, (struct layer_spec){.kind = LAYER_NORM_RELU}, x, add, y);
    size_t channels = (size_t)y.c;
    arena_add(&net->arena, name, "weight", 1, &channels);
    arena_add(&net->arena, name, "bias", 1, &channels);
    arena_add_state(&net->arena, name, "running_mean", channels);
    arena_add_state(&net->arena, name, "running_var", channels);
    return made;
}

int build_shortcut(struct net *net, int x, int channels, int stride) {
    struct tensor y = shape_of(net, x);
    if ((channels - y.c) % 2 != 0 || channels < y.c) die("shortcut: %d channels from %d", channels, y.c);
    y.c = channels;
    y.h = (y.h + stride - 1) / stride;
    y.w = (y.w + stride - 1) / stride;
    return add_layer(net, "shortcut", (struct layer_spec){.kind = LAYER_SHORTCUT, .stride = stride}, x, BUILD_NONE, y);
}

int build_pool(struct net *net, const char *name, int x, int kernel, int stride, int pad) {
    struct layer_spec spec = {.kind = LAYER_POOL, .kernel = kernel, .stride = stride, .pad = pad};
    struct tensor in = shape_of(net, x), y = in;
    if (pad >= kernel) die("layer %s: a window of %d with padding %d may hold no pixel", name, kernel, pad);
    y.h = places_of(in.h, &spec);
    y.w = places_of(in.w, &spec);
    return add_layer(net, name, spec, x, BUILD_NONE, y);
}

int build_dropout(struct net *net, const char *name, int x, double drop) {
    struct layer_spec spec = {.kind = LAYER_DROPOUT, .drop = drop, .number = net_impl(net)->layers};
    if (!(drop >= 0 && drop < 1)) die("layer %s: elements dropped with probability %g", name, drop);
    return add_layer(net, name, spec, x, BUILD_NONE, shape_of(net, x));
}

int build_lstm(struct net *net, const char *name, int x, int hidden) {
    const struct net_setup *s = &net->setup;
    struct layer_spec spec = {.kind = LAYER_LSTM, .sequence = s->sequence > 1 ? s->sequence : 1};
    struct tensor in = shape_of(net, x), y = {.n = in.n, .c = hidden, .h = 1, .w = 1};
    int made = add_layer(net, name, spec, x, BUILD_NONE, y);
    const size_t H = (size_t)hidden, ih[2] = {4 * H, (size_t)in.c * (size_t)in.h * (size_t)in.w}, hh[2] = {4 * H, H};
    const size_t streams[2] = {(size_t)s->batch, H};
    arena_add(&net->arena, name, "weight_ih", 2, ih);
    arena_add(&net->arena, name, "weight_hh", 2, hh);
    arena_add(&net->arena, name, "bias_ih", 1, ih);
    arena_add(&net->arena, name, "bias_hh", 1, hh);
    arena_add_carry(&net->arena, name, "hidden", 2, streams);
    arena_add_carry(&net->arena, name, "cell", 2, streams);
    return made;
}

int build_average(struct net *net, int x) {
    struct tensor y = shape_of(net, x);
    y.h = y.w = 1;
    return add_layer(net, "average", (struct layer_spec){.kind = LAYER_AVERAGE}, x, BUILD_NONE, y);
}

int build_linear(struct net *net, const char *name, int x, int features) {
    struct tensor in = shape_of(net, x), y = {.n = in.n, .c = features, .h = 1, .w = 1};
    int made = add_layer(net, name, (struct layer_spec){.kind = LAYER_LINEAR}, x, BUILD_NONE, y);
    size_t dim[2] = {(size_t)features, (size_t)in.c * (size_t)in.h * (size_t)in.w};
    arena_add(&net->arena, name, "weight", 2, dim);
    arena_add(&net->arena, name, "bias", 1, dim);
    return made;
}

void build_loss(struct net *net, int logits) {
    struct net_impl *m = net_impl(net);
    use(m, logits, "loss");
    m->logits = logits;
}

void net_fold_biases(struct net *net) {
    struct net_impl *m = net_impl(net);
    for (int i = 0; i < m->layers; i++) {
        struct net_layer *norm = &m->layer[i];
        const int maker = m->tensor[norm->x].maker;
        if (norm->spec.kind != LAYER_NORM_RELU || maker < 0) continue;
        struct net_layer *conv = &m->layer[maker];
        if (conv->spec.kind != LAYER_CONV || !conv->spec.bias) continue;
        const size_t window = (size_t)conv->spec.kernel * (size_t)conv->spec.kernel;
        conv->spec.folded = true;
        norm->bias = conv->param + (size_t)m->tensor[norm->x].shape.c * (size_t)m->tensor[conv->x].shape.c * window;
    }
}
