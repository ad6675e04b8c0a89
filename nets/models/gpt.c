/* gpt.c: a decoder of transformer blocks that predicts each token from those before it (Radford et al., "Language
 * models are unsupervised multitask learners", 2019): normalisation before each part (pre-norm), learned positions,
 * output weights tied to the embedding,
 *
 *      x = drop(embedding(token) + position)
 *      x = x + drop(out(attention(qkv(norm(x)))))         for each block
 *      x = x + drop(out(GELU(in(norm(x)))))               in has 4 times as many features
 *      logits = embedding^T norm(x)
 *
 * Initialised as there: normal with deviation 0.02, of what is added to x divided by sqrt(2 blocks); biases 0.
 *
 * char-cpu and char are the character models of the public nanoGPT (its config/train_shakespeare_char.py, and what its
 * README has for a CPU): without biases, exact GELU; AdamW, 1e-3 to 1e-4 by a cosine, beta2 0.99, 0.1 of decay, clipped
 * to 1.0. gpt2 is the smallest of the paper: biases, the tanh form of GELU; trained as nanoGPT's config/train_gpt2.py,
 * whose batch of half a million tokens is 12 x 40 of its windows: --accumulate says how a rank makes its part of them.
 */
#include <math.h>
#include <stdio.h>

#include "nets/layers/add.h"
#include "nets/layers/dropout.h"
#include "nets/layers/gelu.h"
#include "nets/layers/linear.h"
#include "nets/net_build.h"
#include "nets/sequences/attention.h"
#include "nets/sequences/embedding.h"
#include "nets/sequences/layer_norm.h"
#include "nets/sequences/position.h"

enum { BLOCKS_MAX = 64, HIDDEN_MAX = 65536 };

#define DEVIATION 0.02
#define EPSILON 1e-5

/* What the blocks of a net have in common. */
struct form {
    int blocks, heads, hidden;
    bool bias;
    enum gelu_form gelu;
    double drop, residual; /* residual: deviation of what is added to x */
};

static double dropout_of(const struct model_reference *ref, int hidden) {
    (void)hidden;
    return ref->dropout;
}

static int dropped(struct net *net, const struct form *f, const char *name, int x) {
    return f->drop > 0 ? build_dropout(net, name, x, f->drop) : x;
}

/* "block0.attention.qkv" */
static const char *named(char text[SLICE_NAME_MAX], int block, const char *layer) {
    snprintf(text, SLICE_NAME_MAX, "block%d.%s", block, layer);
    return text;
}

static int attention_part(struct net *net, const struct form *f, int block, int x) {
    char name[SLICE_NAME_MAX];
    const struct attention_form form = {.heads = f->heads, .causal = true, .drop = f->drop};
    int y = build_layer_norm(net, named(name, block, "norm1"), x, f->bias, EPSILON);
    y = build_linear_normal(net, named(name, block, "attention.qkv"), y, 3 * f->hidden, f->bias, DEVIATION);
    y = build_attention(net, named(name, block, "attention"), y, BUILD_NONE, &form);
    y = build_linear_normal(net, named(name, block, "attention.out"), y, f->hidden, f->bias, f->residual);
    y = dropped(net, f, named(name, block, "attention.dropout"), y);
    return build_add(net, named(name, block, "attention.add"), y, x);
}

static int feed_forward_part(struct net *net, const struct form *f, int block, int x) {
    char name[SLICE_NAME_MAX];
    int y = build_layer_norm(net, named(name, block, "norm2"), x, f->bias, EPSILON);
    y = build_linear_normal(net, named(name, block, "mlp.in"), y, 4 * f->hidden, f->bias, DEVIATION);
    y = build_gelu(net, named(name, block, "mlp.gelu"), y, f->gelu);
    y = build_linear_normal(net, named(name, block, "mlp.out"), y, f->hidden, f->bias, f->residual);
    y = dropped(net, f, named(name, block, "mlp.dropout"), y);
    return build_add(net, named(name, block, "mlp.add"), y, x);
}

static bool form_of(const struct net *net, struct form *f, struct err *e) {
    const struct net_setup *s = &net->setup;
    const struct model_reference *ref = net_reference(net->model, s);
    *f = (struct form){.blocks = s->layers > 0 ? s->layers : ref->layers,
                       .heads = s->heads > 0 ? s->heads : ref->heads,
                       .hidden = s->hidden > 0 ? s->hidden : ref->hidden,
                       .bias = ref->bias,
                       .gelu = ref->gelu_tanh ? GELU_TANH : GELU_EXACT,
                       .drop = s->dropout};
    f->residual = DEVIATION / sqrt(2.0 * f->blocks);
    if (f->blocks > BLOCKS_MAX) return err_set(e, "model gpt takes at most %d layers, not %d", BLOCKS_MAX, f->blocks);
    if (f->hidden > HIDDEN_MAX)
        return err_set(e, "model gpt takes at most %d hidden features, not %d", HIDDEN_MAX, f->hidden);
    if (f->drop > 0 && !attention_can_drop(s->batch, s->sequence, f->heads))
        return err_set(
            e,
            "model gpt with --dropout %g takes fewer than 2^34 probabilities of attention, not %d x %d heads "
            "x %d x %d: take a smaller --batch or --context, fewer --heads, or --dropout 0",
            f->drop, s->batch, f->heads, s->sequence, s->sequence);
    if (f->hidden % f->heads == 0) return true;
    return err_set(
        e, "model gpt shares its %d hidden features out to %d heads, which does not come out even: take a multiple",
        f->hidden, f->heads);
}

static bool build(struct net *net, struct err *e) {
    struct form f;
    if (!form_of(net, &f, e)) return false;
    const int context = net->setup.sequence > 1 ? net->setup.sequence : 1;
    const int embedding =
        build_embedding_normal(net, "embedding", build_tokens(net), net->setup.classes, f.hidden, DEVIATION);
    int x = dropped(net, &f, "dropout", build_position(net, "position", embedding, context, DEVIATION));
    for (int i = 0; i < f.blocks; i++) x = feed_forward_part(net, &f, i, attention_part(net, &f, i, x));
    x = build_layer_norm(net, "norm", x, f.bias, EPSILON);
    build_loss(net, build_linear_tied(net, "linear", x, embedding));
    return true;
}

/* What the two sizes of nanoGPT's character model share. */
#define CHARACTERS                                                                                                     \
    .data = "text-char", .optimiser = "adamw", .lr = 1e-3, .momentum = 0.9, .lr_schedule = "cosine:0.1",               \
    .lr_warmup_steps = 100, .beta2 = 0.99, .weight_decay = 0.1, .clip_norm = 1, .density = 0.01, .epochs = 1,          \
    .sgd_lr = 0.3, .density_warmup = "none"

#define CHAR_CPU                                                                                                       \
    { CHARACTERS, .batch = 12, .steps = 2000, .sequence = 64, .layers = 4, .heads = 4, .hidden = 128, .samples = 240 }

static const struct model_preset presets[] = {
    {"char-cpu", 804096, 65, CHAR_CPU},
    {"char",
     10745088,
     65,
     {CHARACTERS, .batch = 64, .steps = 5000, .sequence = 256, .layers = 6, .heads = 6, .hidden = 384, .dropout = 0.2,
      .samples = 12800}},
    {"gpt2",
     124439808,
     50257,
     {.data = "text-char",
      .optimiser = "adamw",
      .lr = 6e-4,
      .momentum = 0.9,
      .lr_schedule = "cosine:0.1",
      .lr_warmup_steps = 2000,
      .beta2 = 0.95,
      .weight_decay = 0.1,
      .clip_norm = 1,
      .density = 0.01,
      .epochs = 1,
      .sgd_lr = 0.3,
      .density_warmup = "none",
      .batch = 12,
      .steps = 600000,
      .sequence = 1024,
      .layers = 12,
      .heads = 12,
      .hidden = 768,
      .bias = true,
      .gelu_tanh = true,
      .samples = 2400}},
    {.name = NULL},
};

const struct model_ops model_gpt = {
    .name = "gpt",
    .summary =
        "decoder of transformer blocks, --preset char-cpu, char or gpt2: 804,096, 10,745,088 or 124,439,808 parameters",
    .paper = "Radford et al. 2019; character models as in nanoGPT",
    .input = MODEL_TOKENS,
    .windows = true,
    .parameters = 804096,
    .classes = 65,
    .reference = CHAR_CPU,
    .presets = presets,
    .dropout = dropout_of,
    .build = build,
};
