/* conv.h: a convolution, y = w * x [+ b], with a window of kernel[0] rows and kernel[1] columns that moves by as many
 * as `stride` says over an image with `pad` of zeros on both sides. Parameters: NAME.weight
 * [c_y][c_x][kernel[0]][kernel[1]] and, with a bias, NAME.bias [c_y].
 *
 * A bias before LAYER_NORM_RELU: the norm takes away again what the bias adds, but for the running mean. So a backend
 * that folds_bias has the convolution leave it out (conv.folded) and the norm reckon with it (layer_call.bias); its
 * gradient is 0.
 *
 * Where columns are steps in time (tensor.frames), y has one for every stride[1] of x: an odd kernel[1], half of it
 * padding. */
#ifndef ST_NETS_LAYERS_CONV_H
#define ST_NETS_LAYERS_CONV_H

#include "nets/net_build.h"

/* Each: of rows, of columns. */
struct conv_form {
    int kernel[2], stride[2], pad[2];
    bool bias;
};
int build_conv_form(struct net *net, const char *name, int x, int channels, const struct conv_form *form);

/* With a square window. */
int build_conv(struct net *net, const char *name, int x, int channels, int kernel, int stride, int pad);
int build_conv_bias(struct net *net, const char *name, int x, int channels, int kernel, int stride, int pad);

#endif
