/* pool.h: y = the largest of x over each square window. Padding never wins, so that every window must hold a pixel; NaN
 * does. The gradient of a window goes to its largest element: of several equal ones to one of them, on the CPU the
 * first by rows, on a GPU the one that cuDNN's deterministic pooling takes, which its manual does not name. */
#ifndef ST_NETS_LAYERS_POOL_H
#define ST_NETS_LAYERS_POOL_H

#include "nets/net_build.h"

/* pad < kernel. */
int build_pool(struct net *net, const char *name, int x, int kernel, int stride, int pad);

#endif
