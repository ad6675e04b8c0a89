/* schedule.h: the learning rate of each step. */
#ifndef ST_NETS_SCHEDULE_H
#define ST_NETS_SCHEDULE_H

#include <stddef.h>

#include "base/error.h"

enum { SCHEDULE_STEPS_MAX = 16 };

/* lr(epoch) = base * factor^(number of boundaries passed), times the warm-up. The warm-up ramps linearly from
 * 1/P to 1 over the first `warmup` epochs (Goyal et al. 2017; the gTop-k authors' code uses 10, DGC 5). */
struct lr_schedule {
    double base;
    double factor;
    double boundary[SCHEDULE_STEPS_MAX]; /* epochs, rising; */
    int boundaries;
    double warmup; /* epochs, 0: none */
};

/* "constant" or "step:E,E,...[:FACTOR]" (FACTOR 0.1 unless given), E in epochs or, with a %, of all epochs;
 * "step:81,122" or "step:50%,75%:0.2". epochs: length of the run.
 * Sets factor and boundaries; base and warmup are left to the caller. */
bool lr_parse(const char *text, double epochs, struct lr_schedule *s, struct err *e);

/* epoch: fractional position in the run, >= 0; P: number of ranks. */
double lr_at(const struct lr_schedule *s, double epoch, int P);

#endif
