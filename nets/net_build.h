/* net_build.h: what a model file strings its layers together with. Tensors are numbers; shapes follow by themselves.
 *
 *        int x = build_input(net);
 *        x = build_conv(net, "conv1", x, 16, 3, 1, 1);
 *        x = build_norm_relu(net, "bn1", x, BUILD_NONE);
 *        x = build_average(net, x);
 *        build_loss(net, build_linear(net, "linear", x, net->setup.classes));
 *
 * Layers: nets/layers and nets/sequences, a header for each. A tensor may have any number of users; its gradient is the
 * sum of theirs. A mistake here is the programmer's: it ends the job with the layer's name.
 */
#ifndef ST_NETS_NET_BUILD_H
#define ST_NETS_NET_BUILD_H

#include "nets/net.h"

enum { BUILD_NONE = -1 };

/* Are the images at least `smallest` pixels high and wide? If not, false, and *e names the model. */
bool build_fits(const struct net *net, int smallest, struct err *e);
/* The images: net_rows(&net->setup) x channels x height x width. */
int build_input(struct net *net);
/* Speech: batch x channels x height x width, of which a pass has as many columns as its longest utterance has frames,
 * and what is behind the end of an utterance is 0. */
int build_frames(struct net *net);
/* Tokens: net_rows(&net->setup) of them. For layers that take tokens. */
int build_tokens(struct net *net);
/* Whole numbers that come in besides, so many: least <= each < limit. Once for each kind. */
int build_numbers(struct net *net, enum net_numbers which, int n, int least, int limit);
/* Softmax cross-entropy over the channels of `logits`; another one after it is the next loss. */
void build_loss(struct net *net, int logits);
/* CTC's loss over the rows of `logits`, steps in time of utterances whose frames are NUMBERS_LENGTHS. Class 0 is the
 * blank. It is the net's one loss. */
void build_ctc(struct net *net, int logits);

#endif
