/* shortcut.h: option A of He et al. (CVPR 2016): y = x at every stride-th row and column, as many zero channels before
 * as after. */
#ifndef ST_NETS_LAYERS_SHORTCUT_H
#define ST_NETS_LAYERS_SHORTCUT_H

#include "nets/net_build.h"

int build_shortcut(struct net *net, int x, int channels, int stride);

#endif
