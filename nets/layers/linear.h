/* linear.h: y = w x + b over the rows of x. Parameters: NAME.weight [features][c h w of x], NAME.bias [features]. */
#ifndef ST_NETS_LAYERS_LINEAR_H
#define ST_NETS_LAYERS_LINEAR_H

#include "nets/net_build.h"

int build_linear(struct net *net, const char *name, int x, int features);

#endif
