/* dropout.h: y = x m / (1 - p), each m 0 with probability p, else 1; y = x in inference. The mask m is a function of
 * seed, step, layer and canonical index alone (nets/dropout.h), so every device drops the same elements, and nothing is
 * kept for the backward pass. */
#ifndef ST_NETS_LAYERS_DROPOUT_H
#define ST_NETS_LAYERS_DROPOUT_H

#include "nets/net_build.h"

/* drop: p, 0 <= p < 1. */
int build_dropout(struct net *net, const char *name, int x, double drop);

#endif
