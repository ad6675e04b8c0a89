/* schedule_text.h: the course of density and learning rate in words, for a start of a run that may end before all of it
 * has come: "0.25 (k = 67430) now, 0.001 (k = 269) from epoch 4, which this run does not reach". */
#ifndef ST_CLI_SCHEDULE_TEXT_H
#define ST_CLI_SCHEDULE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "comm/density.h"
#include "nets/optimisers/schedule.h"

/* Where the steps lie that are to be taken, in epochs. */
struct course {
    double first, last; /* of the first step, of the last one */
    double end;         /* behind that */
    double step;        /* epochs in a step */
    size_t leg_step;    /* a step from which on they are as long, */
    double leg;         /* and the epochs before that one; 0 and 0 where all are */
};

/* entries: that compete for selection. later: dense steps come first, and c->first is behind them. */
void schedule_density(const struct density_schedule *d, size_t entries, bool later, const struct course *c, char *text,
                      size_t size);

void schedule_rate(const struct lr_schedule *s, int P, const struct course *c, char *text, size_t size);

#endif
