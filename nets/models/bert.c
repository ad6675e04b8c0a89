/* bert.c: the encoder of Devlin et al. ("BERT: pre-training of deep bidirectional transformers for language
 * understanding", NAACL 2019) with both tasks of its pre-training: what stood at places that were masked, and whether
 * the second of two texts is the one that followed,
 *
 *      x = drop(norm(embedding(token) + position + type))
 *      x = norm(x + drop(out(attention(qkv(x)))))          for each block; padding is not attended to
 *      x = norm(x + drop(out(GELU(in(x)))))                in has 4 times as many features
 *      logits 0 = decoder(norm(GELU(transform(x))))        of the chosen rows
 *      logits 1 = next(tanh(pooler(x)))                    of the first row
 *
 * Exact GELU, epsilon 1e-12, weights normal with deviation 0.02, biases 0, as in its public code. There the decoder's
 * weights are tied to the embedding; Ok-Topk counts them by themselves (its Table 2: 133,547,324 parameters for the
 * 30,522 pieces of the uncased vocabulary), and so does this. 512 positions, however many of them a window has. The
 * other sizes are the smaller ones of the same authors' public code (2 to 4 layers of 128 to 512 features).
 *
 * Trained as Ok-Topk does (sections 5 and 5.4.3): Adam at 2e-4, betas 0.9 and 0.999, decay 0.01, the rate falling
 * linearly, windows of 128, density 0.01. Its decay is taken as decoupled, and the warm-up is that of the original: a
 * hundredth of the steps. */
#include <stdio.h>

#include "nets/layers/add.h"
#include "nets/layers/dropout.h"
#include "nets/layers/gelu.h"
#include "nets/layers/linear.h"
#include "nets/layers/tanh.h"
#include "nets/net_build.h"
#include "nets/sequences/attention.h"
#include "nets/sequences/choose.h"
#include "nets/sequences/embedding.h"
#include "nets/sequences/layer_norm.h"
#include "nets/sequences/position.h"

enum { BLOCKS_MAX = 64, POSITIONS = 512, TYPES = 2, NEXT = 2 };

#define DEVIATION 0.02
#define EPSILON 1e-12

/* What the blocks of a net have in common. */
struct form {
    int blocks, heads, hidden, chosen;
    double drop;
    int lengths; /* tensor */
};

static double dropout_of(const struct model_reference *ref, int hidden) {
    (void)hidden;
    return ref->dropout;
}

static int dropped(struct net *net, const struct form *f, const char *name, int x) {
    return f->drop > 0 ? build_dropout(net, name, x, f->drop) : x;
}

static int linear(struct net *net, const char *name, int x, int features) {
    return build_linear_normal(net, name, x, features, true, DEVIATION);
}

static int norm(struct net *net, const char *name, int x) {
    return build_layer_norm(net, name, x, true, EPSILON);
}

/* "block0.attention.qkv" */
static const char *named(char text[SLICE_NAME_MAX], int block, const char *layer) {
    snprintf(text, SLICE_NAME_MAX, "block%d.%s", block, layer);
    return text;
}

static int attention_part(struct net *net, const struct form *f, int block, int x) {
    char name[SLICE_NAME_MAX];
    const struct attention_form form = {.heads = f->heads, .drop = f->drop};
    int y = linear(net, named(name, block, "attention.qkv"), x, 3 * f->hidden);
    y = build_attention(net, named(name, block, "attention"), y, f->lengths, &form);
    y = linear(net, named(name, block, "attention.out"), y, f->hidden);
    y = dropped(net, f, named(name, block, "attention.dropout"), y);
    y = build_add(net, named(name, block, "attention.add"), y, x);
    return norm(net, named(name, block, "norm1"), y);
}

static int feed_forward_part(struct net *net, const struct form *f, int block, int x) {
    char name[SLICE_NAME_MAX];
    int y = linear(net, named(name, block, "mlp.in"), x, 4 * f->hidden);
    y = build_gelu(net, named(name, block, "mlp.gelu"), y, GELU_EXACT);
    y = linear(net, named(name, block, "mlp.out"), y, f->hidden);
    y = dropped(net, f, named(name, block, "mlp.dropout"), y);
    y = build_add(net, named(name, block, "mlp.add"), y, x);
    return norm(net, named(name, block, "norm2"), y);
}

static int embeddings(struct net *net, const struct form *f) {
    const int tokens = build_tokens(net), types = build_numbers(net, NUMBERS_TYPES, net_rows(&net->setup), 0, TYPES);
    int x = build_embedding_normal(net, "embedding", tokens, net->setup.classes, f->hidden, DEVIATION);
    x = build_position(net, "position", x, POSITIONS, DEVIATION);
    x = build_embedding_onto(net, "segment", types, TYPES, x, DEVIATION);
    return dropped(net, f, "dropout", norm(net, "norm", x));
}

/* What stood at the chosen rows. */
static void masked_words(struct net *net, const struct form *f, int x) {
    const int numbers = build_numbers(net, NUMBERS_CHOSEN, net->setup.batch * f->chosen, 0, net->setup.sequence);
    int y = build_choose(net, "chosen", x, numbers, f->chosen);
    y = build_gelu(net, "transform.gelu", linear(net, "transform", y, f->hidden), GELU_EXACT);
    build_loss(net, linear(net, "decoder", norm(net, "transform.norm", y), net->setup.classes));
}

static void next_sentence(struct net *net, const struct form *f, int x) {
    int y = build_choose(net, "first", x, BUILD_NONE, 1);
    y = build_tanh(net, "pooler.tanh", linear(net, "pooler", y, f->hidden));
    build_loss(net, linear(net, "next", y, NEXT));
}

static bool form_of(const struct net *net, struct form *f, struct err *e) {
    const struct net_setup *s = &net->setup;
    const struct model_reference *ref = net_reference(net->model, s);
    *f = (struct form){.blocks = s->layers > 0 ? s->layers : ref->layers,
                       .heads = s->heads > 0 ? s->heads : ref->heads,
                       .hidden = s->hidden > 0 ? s->hidden : ref->hidden,
                       .chosen = s->chosen > 0 ? s->chosen : ref->chosen,
                       .drop = s->dropout};
    if (f->blocks > BLOCKS_MAX) return err_set(e, "model bert takes at most %d layers, not %d", BLOCKS_MAX, f->blocks);
    if (s->sequence > POSITIONS)
        return err_set(e, "model bert has %d positions, too few for windows of %d tokens", POSITIONS, s->sequence);
    if (f->chosen > s->sequence)
        return err_set(e, "model bert: %d masked places of a window of %d tokens; take a longer one", f->chosen,
                       s->sequence);
    if (f->hidden % f->heads == 0) return true;
    return err_set(e,
                   "model bert shares its %d hidden features out to %d heads, which does not come out even: take a "
                   "multiple",
                   f->hidden, f->heads);
}

static bool build(struct net *net, struct err *e) {
    struct form f;
    if (!form_of(net, &f, e)) return false;
    int x = embeddings(net, &f);
    f.lengths = build_numbers(net, NUMBERS_LENGTHS, net->setup.batch, 1, net->setup.sequence + 1);
    for (int i = 0; i < f.blocks; i++) x = feed_forward_part(net, &f, i, attention_part(net, &f, i, x));
    masked_words(net, &f, x);
    next_sentence(net, &f, x);
    return true;
}

/* What all sizes share. */
#define PRE_TRAINING                                                                                                   \
    .data = "wiki", .optimiser = "adamw", .lr = 2e-4, .momentum = 0.9, .lr_schedule = "linear", .beta2 = 0.999,        \
    .weight_decay = 0.01, .clip_norm = 1, .density = 0.01, .density_warmup = "none", .epochs = 1, .sgd_lr = 0.3,       \
    .sequence = 128, .chosen = 20, .dropout = 0.1, .batch = 8, .bias = true

#define TINY                                                                                                           \
    { PRE_TRAINING, .steps = 20000, .lr_warmup_steps = 200, .layers = 2, .heads = 2, .hidden = 128 }

static const struct model_preset presets[] = {
    {"tiny", 8340284, 30522, TINY},
    {"mini",
     19081532,
     30522,
     {PRE_TRAINING, .steps = 20000, .lr_warmup_steps = 200, .layers = 4, .heads = 4, .hidden = 256}},
    {"small",
     44686140,
     30522,
     {PRE_TRAINING, .steps = 20000, .lr_warmup_steps = 200, .layers = 4, .heads = 8, .hidden = 512}},
    {"base",
     133547324,
     30522,
     {PRE_TRAINING, .steps = 400000, .lr_warmup_steps = 4000, .layers = 12, .heads = 12, .hidden = 768}},
    {.name = NULL},
};

const struct model_ops model_bert = {
    .name = "bert",
    .summary =
        "encoder with both tasks of its pre-training, --preset tiny, mini, small or base: 133,547,324 parameters",
    .paper = "Devlin et al., NAACL 2019; base as in Ok-Topk",
    .input = MODEL_PAIRS,
    .windows = true,
    .parameters = 8340284,
    .classes = 30522,
    .reference = TINY,
    .presets = presets,
    .dropout = dropout_of,
    .build = build,
};
