/* net_build.c: see net_build.h. Layers and tensors are only written down here; net_open gives them memory. */
#include "nets/net_build.h"

#include <stdio.h>

#include "base/error.h"
#include "nets/layers/layer.h"

static int add_tensor(struct net *net, struct tensor shape, int maker) {
    struct net_impl *m = net_impl(net);
    m->tensor[m->tensors] = (struct net_tensor){.shape = shape, .maker = maker};
    return m->tensors++;
}

/* One more reader of tensor t. */
static void use(struct net_impl *m, int t, const char *name) {
    if (t < 0 || t >= m->tensors) die("layer %s reads a tensor that does not exist", name);
    m->tensor[t].users++;
}

int layer_add(struct net *net, const char *name, const struct layer_spec *spec, int x, int add, struct tensor y) {
    struct net_impl *m = net_impl(net);
    if (m->layers == NET_LAYERS_MAX) die("layer %s: a net has at most %d layers", name, NET_LAYERS_MAX);
    use(m, x, name);
    if (add != BUILD_NONE) use(m, add, name);
    if ((m->tensor[x].shape.layout == LAYOUT_TOKENS) != spec->takes_tokens)
        die("layer %s: its input holds %s", name, spec->takes_tokens ? "no tokens" : "tokens");
    if (y.c < 1 || y.h < 1 || y.w < 1) die("layer %s: its output is empty", name);
    struct net_layer *l = &m->layer[m->layers];
    *l = (struct net_layer){.spec = *spec,
                            .x = x,
                            .add = add,
                            .param = net->arena.n,
                            .state = net->arena.n_state,
                            .carry = net->arena.n_carry};
    l->spec.number = m->layers;
    l->spec.wants_dx = m->tensor[x].maker >= 0;
    snprintf(l->name, sizeof l->name, "%s", name);
    return l->y = add_tensor(net, y, m->layers++);
}

struct tensor layer_shape(const struct net *net, int x) {
    return net_impl(net)->tensor[x].shape;
}

void layer_check_lengths(const struct net *net, const char *name, int x, int lengths) {
    const struct tensor t = layer_shape(net, lengths);
    if (!layer_shape(net, x).frames || t.layout != LAYOUT_TOKENS || t.n != net->setup.batch)
        die("layer %s: not the lengths of utterances", name);
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

int build_frames(struct net *net) {
    const struct net_setup *s = &net->setup;
    return add_tensor(
        net,
        (struct tensor){.n = s->batch, .c = s->channels, .h = s->height, .w = frames_rounded(s->width), .frames = 1},
        -1);
}

int build_tokens(struct net *net) {
    struct tensor tokens = {.n = net_rows(&net->setup), .c = 1, .h = 1, .w = 1, .layout = LAYOUT_TOKENS};
    return add_tensor(net, tokens, -1);
}

int build_numbers(struct net *net, enum net_numbers which, int n, int least, int limit) {
    struct net_impl *m = net_impl(net);
    if (m->tensors == 0 || m->numbers[which]) die("numbers come in behind the input, and once");
    const int made = add_tensor(net, (struct tensor){.n = n, .c = 1, .h = 1, .w = 1, .layout = LAYOUT_TOKENS}, -1);
    m->tensor[made].least = least;
    m->tensor[made].limit = limit;
    return m->numbers[which] = made;
}

void build_loss(struct net *net, int logits) {
    struct net_impl *m = net_impl(net);
    if (m->losses == NET_LOSSES_MAX) die("a net with more than %d losses", NET_LOSSES_MAX);
    use(m, logits, "loss");
    if (m->tensor[logits].maker >= 0) m->layer[m->tensor[logits].maker].spec.gives_logits = true;
    m->logits[m->losses++] = logits;
}

void build_ctc(struct net *net, int logits) {
    struct net_impl *m = net_impl(net);
    if (m->losses || !m->tensor[logits].shape.frames || !m->numbers[NUMBERS_LENGTHS])
        die("CTC's loss is the only one, of rows of time, with lengths");
    m->ctc = true;
    use(m, m->numbers[NUMBERS_LENGTHS], "loss");
    build_loss(net, logits);
}
