/* speech.c: the speech recogniser that Ok-Topk trains on AN4 (LSTM-AN4 in its Table 2, 27,569,568 parameters for 29
 * characters): DeepSpeech 2 (Amodei et al., ICML 2016) with unidirectional layers, as in the public code that the paper
 * builds on, of utterances as spectrograms of 161 frequencies,
 *
 *      x = hardtanh(norm(conv(x)))     twice: 41 x 11 (frequency x time) by 2 x 2, then 21 x 11 by 2 x 1, 32 channels
 *      x = lstm(x)                     five, of 800 features, with a batch normalisation before each but the first
 *      x = hardtanh(lookahead(x))      over the 20 steps to come
 *      logits = linear(norm(x))        without a bias
 *
 * hardtanh(x) = min(max(0, x), 20). Norms take their statistics over the frames of utterances alone, never over what is
 * behind their end. The loss is CTC's; class 0 is its blank. The lookahead has 21 weights for each feature: the paper's
 * number of parameters comes out with them to the last digit. The hardtanh behind it, which has no parameters, is that
 * of the public code's lookahead block.
 *
 * Parameters: 14,464 + 236,576 of convolutions, 6,764,800 + 4 x 5,126,400 of LSTMs, 64 + 64 + 5 x 1,600 of norms,
 * 16,800 of the lookahead, 23,200 of the linear layer. */
#include <math.h>
#include <stdio.h>

#include "nets/layers/conv.h"
#include "nets/layers/linear.h"
#include "nets/net_build.h"
#include "nets/sequences/frame_norm.h"
#include "nets/sequences/lookahead.h"
#include "nets/sequences/lstm.h"
#include "nets/sequences/time_rows.h"

enum { CHANNELS = 32, CONTEXT = 20, HIDDEN_MAX = 65536, LAYERS_MAX = 64 };

#define CEILING 20.0

static const struct conv_form first = {{41, 11}, {2, 2}, {20, 5}, true}, second = {{21, 11}, {2, 1}, {10, 5}, true};

static bool sizes_of(const struct net *net, int *hidden, int *layers, struct err *e) {
    const struct net_setup *s = &net->setup;
    const struct model_reference *ref = net_reference(net->model, s);
    *hidden = s->hidden > 0 ? s->hidden : ref->hidden;
    *layers = s->layers > 0 ? s->layers : ref->layers;
    if (*hidden > HIDDEN_MAX)
        return err_set(e, "model speech takes at most %d hidden features, not %d", HIDDEN_MAX, *hidden);
    if (*layers > LAYERS_MAX) return err_set(e, "model speech takes at most %d layers, not %d", LAYERS_MAX, *layers);
    return true;
}

static bool build(struct net *net, struct err *e) {
    int hidden, layers;
    char name[SLICE_NAME_MAX];
    if (!sizes_of(net, &hidden, &layers, e)) return false;
    int x = build_frames(net);
    const int lengths = build_numbers(net, NUMBERS_LENGTHS, net->setup.batch, 0, net->setup.width + 1);
    x = build_frame_norm(net, "bn1", build_conv_form(net, "conv1", x, CHANNELS, &first), lengths, CEILING);
    x = build_frame_norm(net, "bn2", build_conv_form(net, "conv2", x, CHANNELS, &second), lengths, CEILING);
    x = build_time_rows(net, "rows", x);
    for (int i = 1; i <= layers; i++) {
        snprintf(name, sizeof name, "norm%d", i);
        if (i > 1) x = build_frame_norm(net, name, x, lengths, 0);
        snprintf(name, sizeof name, "lstm%d", i);
        x = build_lstm_padded(net, name, x, lengths, hidden);
    }
    x = build_lookahead(net, "lookahead", x, lengths, CONTEXT, CEILING);
    x = build_frame_norm(net, "norm", x, lengths, 0);
    build_ctc(net, build_linear_normal(net, "linear", x, net->setup.classes, false, sqrt(2.0 / hidden)));
    return true;
}

/* Batch (2 on each of 32 or 64 GPUs), rate, epochs and density as in the paper (Section 5), the rest, of which it says
 * nothing, as in the public code that it builds on, gTop-k's: momentum, decay, clipping, a rate that is divided by 1.01
 * at each epoch, and recordings that are changed in tempo and loudness at random (data/speech/speech_batch.h). */
const struct model_ops model_speech = {
    .name = "speech",
    .summary = "speech recognition by convolutions and five LSTM layers with CTC, 27,569,568 parameters",
    .paper = "Amodei et al., ICML 2016; as LSTM-AN4 in Ok-Topk",
    .input = MODEL_SPEECH,
    .parameters = 27569568,
    .classes = 29,
    .reference = {.data = "an4",
                  .batch = 2,
                  .lr = 1e-3,
                  .momentum = 0.9,
                  .weight_decay = 1e-4,
                  .clip_norm = 400,
                  .lr_schedule = "decay:1:0.9900990099",
                  .epochs = 160,
                  .density = 0.02,
                  .hidden = 800,
                  .layers = 5},
    .build = build,
};
