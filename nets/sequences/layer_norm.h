/* layer_norm.h: layer normalisation (Ba, Kiros and Hinton, arXiv 1607.06450, eq. 3) over the numbers of each row:
 *
 *      y = w (x - mean) / sqrt(variance + epsilon) [+ b],  mean and variance of the c numbers, the latter by 1/c
 *
 * Parameters: NAME.weight [c] and, with a bias, NAME.bias [c]. The same in training and in inference. */
#ifndef ST_NETS_LAYERS_LAYER_NORM_H
#define ST_NETS_LAYERS_LAYER_NORM_H

#include "nets/net_build.h"

/* epsilon: 1e-5 in GPT-2 and PyTorch, 1e-12 in BERT. */
int build_layer_norm(struct net *net, const char *name, int x, bool bias, double epsilon);

#endif
