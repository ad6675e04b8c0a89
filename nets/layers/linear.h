/* linear.h: y = w x [+ b] over the rows of x. Parameters: NAME.weight [features][c h w of x], and NAME.bias [features].
 *
 * A tied one has no parameters of its own: w is the table of an embedding [vocabulary = features][c of x] (Press and
 * Wolf, "Using the output embedding to improve language models", EACL 2017). Both gradients go into the one slice:
 * backward, the linear layer, which comes first, writes its own, and the embedding (embedding.shared) adds to that. */
#ifndef ST_NETS_LAYERS_LINEAR_H
#define ST_NETS_LAYERS_LINEAR_H

#include "nets/net_build.h"

int build_linear(struct net *net, const char *name, int x, int features); /* with a bias; He-normal weights */

/* deviation: of the normal initial weights. */
int build_linear_normal(struct net *net, const char *name, int x, int features, bool bias, double deviation);

/* embedding: the tensor that the embedding makes; one tied layer for each. No bias. */
int build_linear_tied(struct net *net, const char *name, int x, int embedding);

#endif
