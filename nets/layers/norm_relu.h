/* norm_relu.h: batch normalisation and ReLU, y = max(0, norm(x) [+ add]), over the images and positions of each
 * channel. Parameters: NAME.weight [c] (scale), NAME.bias [c] (shift); state: NAME.running_mean [c], NAME.running_var
 * [c]. Ioffe and Szegedy, "Batch normalization", ICML 2015, Algorithm 1; epsilon 1e-5, and 0.1 of each batch's
 * statistics go into the running ones.
 *
 * Its backward pass adds two gradients of y up inside its own pass over them, and leaves the gradient of `add` in dy.
 */
#ifndef ST_NETS_LAYERS_NORM_RELU_H
#define ST_NETS_LAYERS_NORM_RELU_H

#include "nets/net_build.h"

/* add: a tensor of the same shape, or BUILD_NONE. */
int build_norm_relu(struct net *net, const char *name, int x, int add);

#endif
