/* lstm.c: the word-level language model of Zaremba, Sutskever and Vinyals ("Recurrent neural network regularization",
 * arXiv 1409.2329): an embedding, two LSTM layers, and a softmax over the vocabulary whose weights are its own
 * (untied). Dropout goes on the embedding, between the layers and on the output, never on what an LSTM hands itself in
 * time. The gTop-k paper trains it with 1500 features everywhere: 66,034,000 parameters for 10,000 words. The presets
 * are that paper's sizes: 200 ("small"), 650 ("medium", 0.5 dropped), 1500 ("large", 0.65 dropped). */
#include "nets/sequences/lstm.h"
#include "nets/layers/dropout.h"
#include "nets/layers/linear.h"
#include "nets/net_build.h"
#include "nets/sequences/embedding.h"

enum { HIDDEN_MAX = 65536 };

static double dropout_of(const struct model_reference *ref, int hidden) {
    (void)ref;
    return hidden < 650 ? 0 : hidden < 1500 ? 0.5 : 0.65;
}

static int dropped(struct net *net, const char *name, int x) {
    return net->setup.dropout > 0 ? build_dropout(net, name, x, net->setup.dropout) : x;
}

static bool build(struct net *net, struct err *e) {
    const struct net_setup *s = &net->setup;
    const int hidden = s->hidden > 0 ? s->hidden : net->model->reference.hidden;
    if (hidden > HIDDEN_MAX)
        return err_set(e, "model lstm takes at most %d hidden features, not %d", HIDDEN_MAX, hidden);
    int x = build_embedding(net, "embedding", build_tokens(net), s->classes, hidden);
    x = build_lstm(net, "lstm1", dropped(net, "dropout1", x), hidden);
    x = build_lstm(net, "lstm2", dropped(net, "dropout2", x), hidden);
    build_loss(net, build_linear(net, "linear", dropped(net, "dropout3", x), s->classes));
    return true;
}

const struct model_ops model_lstm = {
    .name = "lstm",
    .summary = "language model of two LSTM layers, --hidden 200, 650 or 1500: 66,034,000 parameters for 10,000 words",
    .paper = "Zaremba, Sutskever & Vinyals, arXiv 1409.2329; as LSTM-PTB in gTop-k",
    .input = MODEL_TOKENS,
    .parameters = 66034000,
    .classes = 10000,
    .reference = {.data = "ptb",
                  .batch = 20,
                  .lr = 1,
                  .momentum = 0.9,
                  .clip_norm = 0.25,
                  .lr_schedule = "constant",
                  .lr_warmup = 4,
                  .epochs = 40,
                  .density = 0.005,
                  .sequence = 35,
                  .hidden = 1500},
    .dropout = dropout_of,
    .build = build,
};
