/* add.h: y = x + add, as behind the parts of a residual network that are not normalised there. Of any layout, the same
 * for both. */
#ifndef ST_NETS_LAYERS_ADD_H
#define ST_NETS_LAYERS_ADD_H

#include "nets/net_build.h"

/* x, add: tensors of the same shape. */
int build_add(struct net *net, const char *name, int x, int add);

#endif
