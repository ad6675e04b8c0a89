/* lstm.h: one layer of long short-term memory. Rows are steps of time, each a row of every stream (lstm.sequence steps,
 * B streams, H = c_y):
 *
 *      i, f, o = sigmoid(sum),  g = tanh(sum),  sum = w_ih x + b_ih + w_hh h' + b_hh       gates in the order i, f, g,
 * o c = f c' + i g,  y = h = o tanh(c)                                      h', c': those of the step before
 *
 * Parameters NAME.weight_ih [4 H][c_x], NAME.weight_hh [4 H][H], NAME.bias_ih [4 H], NAME.bias_hh [4 H].
 * Before the first step h' and c' are the layer's carry, NAME.hidden [B][H] and NAME.cell [B][H], which every forward
 * pass, also of inference, leaves as they are after the last. No gradient goes into them: backpropagation through time
 * ends with the window. Backward comes once after a forward pass of training.
 *
 * A padded one reads utterances of different lengths (lstm.padded; frame_norm.h says what lengths are): their states
 * begin with 0, and there is no carry. Behind the end of an utterance x is 0, as the layers before leave it; dy is not
 * read, and y and dx are 0. */
#ifndef ST_NETS_LAYERS_LSTM_H
#define ST_NETS_LAYERS_LSTM_H

#include "nets/net_build.h"

/* Over the steps of setup.sequence. */
int build_lstm(struct net *net, const char *name, int x, int hidden);
/* Over the steps of x, whose rows are steps of utterances. */
int build_lstm_padded(struct net *net, const char *name, int x, int lengths, int hidden);

#endif
