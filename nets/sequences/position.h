/* position.h: learned positions, y [row] = x [row] + w [row mod T]: rows are sequences of T = position.sequence rows,
 * one after the other. Parameters: NAME.weight [positions][c], of which the first T are used; the gradient of each is
 * the sum of those of the sequences, in their order. */
#ifndef ST_NETS_LAYERS_POSITION_H
#define ST_NETS_LAYERS_POSITION_H

#include "nets/net_build.h"

/* Over the rows of setup.sequence, of which there are not more than positions; deviation: of the normal initial
 * weights. */
int build_position(struct net *net, const char *name, int x, int positions, double deviation);

#endif
