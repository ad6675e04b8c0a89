/* lookahead.h: a convolution over the steps to come, of every feature by itself (Wang et al., "Lookahead convolution
 * layer for unidirectional recurrent neural networks", ICLR 2016 workshop), and a hardtanh:
 *
 *      y [t][n][f] = min(max(0, sum over j = 0 ... context of w [f][j] x [t + j][n][f]), ceiling)
 *
 * x is 0 behind the end of its utterance, whatever it holds there, as dy; so are y and dx. lengths as in frame_norm.h.
 * Parameters: NAME.weight [features][context + 1]. */
#ifndef ST_NETS_LAYERS_LOOKAHEAD_H
#define ST_NETS_LAYERS_LOOKAHEAD_H

#include "nets/net_build.h"

/* ceiling > 0. He-normal weights. */
int build_lookahead(struct net *net, const char *name, int x, int lengths, int context, double ceiling);

#endif
