/* conv.h: a convolution with a square window, y = w * x [+ b]. Parameters: NAME.weight [c_y][c_x][kernel][kernel] and,
 * with a bias, NAME.bias [c_y].
 *
 * A bias before LAYER_NORM_RELU: the norm takes away again what the bias adds, but for the running mean. So a backend
 * that folds_bias has the convolution leave it out (conv.folded) and the norm reckon with it (layer_call.bias); its
 * gradient is 0. */
#ifndef ST_NETS_LAYERS_CONV_H
#define ST_NETS_LAYERS_CONV_H

#include "nets/net_build.h"

int build_conv(struct net *net, const char *name, int x, int channels, int kernel, int stride, int pad);
int build_conv_bias(struct net *net, const char *name, int x, int channels, int kernel, int stride, int pad);

#endif
