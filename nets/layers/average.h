/* average.h: y [n][c] = the mean of x over its positions. */
#ifndef ST_NETS_LAYERS_AVERAGE_H
#define ST_NETS_LAYERS_AVERAGE_H

#include "nets/net_build.h"

int build_average(struct net *net, int x);

#endif
