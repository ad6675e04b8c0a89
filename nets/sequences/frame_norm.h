/* frame_norm.h: batch normalisation of utterances of different lengths, side by side in one tensor whose columns or
 * rows are steps in time (tensor.frames), and a hardtanh behind it or nothing:
 *
 *      y = min(max(0, norm(x)), ceiling)        or, ceiling 0,      y = norm(x)
 *
 * over the utterances, rows and steps of each channel, of steps those alone that are before the end of their utterance.
 * Formulas, parameters and running statistics are those of norm_relu.h. lengths [batch], whole numbers: frames of each
 * utterance, whose steps are as many, divided by tensor.frames and rounded up. What x and dy hold behind the end is not
 * read, be it NaN; y and dx are 0 there. A pass in which no utterance has a step leaves the running statistics alone.
 */
#ifndef ST_NETS_LAYERS_FRAME_NORM_H
#define ST_NETS_LAYERS_FRAME_NORM_H

#include "nets/net_build.h"

int build_frame_norm(struct net *net, const char *name, int x, int lengths, double ceiling);

#endif
