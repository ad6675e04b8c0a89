/* choose.h: some rows of each sequence of T = choose.sequence rows: y [s count + i] = x [s T + number [s count + i]],
 * the numbers (`add`, LAYOUT_TOKENS, [sequences][count], each below T) coming in with the batch; without them the first
 * `count` rows. A row that was chosen twice gets both gradients, in their order; one that was not gets 0. */
#ifndef ST_NETS_LAYERS_CHOOSE_H
#define ST_NETS_LAYERS_CHOOSE_H

#include "nets/net_build.h"

/* Of the rows of setup.sequence. numbers: a tensor of whole numbers, or BUILD_NONE. */
int build_choose(struct net *net, const char *name, int x, int numbers, int count);

#endif
