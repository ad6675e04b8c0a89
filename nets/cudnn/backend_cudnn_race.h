/* backend_cudnn_race.h: is a plan of the graph API faster than the best algorithm of the functions of old? Both run as
 * they do in training, one run after the other in a recording, and are timed by events. A plan is taken where it is
 * clearly faster, and only where on the same arrays it comes to the algorithm's numbers, within the precision, and
 * twice to the same bits, whatever it says of itself. */
#ifndef ST_NETS_BACKEND_CUDNN_RACE_H
#define ST_NETS_BACKEND_CUDNN_RACE_H

#include "nets/cudnn/backend_cudnn_plans.h"

/* The winner among the plans; engine -1: the algorithm, whose kind of products is set in the window. Takes and
 * gives back device memory; waits. */
struct cudnn_recipe cudnn_race(const struct cudnn_backend *b, const struct conv *c, enum conv_pass pass,
                               const struct conv_choice *algorithm, const struct conv_arrays *a);

#endif
