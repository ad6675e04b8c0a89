/* tanh.h: y = tanh(x), of every number by itself. */
#ifndef ST_NETS_LAYERS_TANH_H
#define ST_NETS_LAYERS_TANH_H

#include "nets/net_build.h"

int build_tanh(struct net *net, const char *name, int x);

#endif
