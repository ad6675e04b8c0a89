/* rounds.h: training in rounds of local steps, for rows with `outer`: what the ranks hold alike from one round to the
 * next, the parameters with which the round began and the velocity of the outer step (nets/optimisers/outer.h).
 *
 *        rounds_open(r);                  // the memory, once the options say that there are rounds
 *        rounds_begin(r);                 // the parameters that all ranks have now; or a checkpoint brings both
 *        for (each step) if (it ends a round) run_round(r);
 *        rounds_close(r);
 */
#ifndef ST_CLI_ROUNDS_H
#define ST_CLI_ROUNDS_H

#include "cli/train/run.h"

void rounds_open(struct run *r);
void rounds_begin(struct run *r);
void rounds_close(struct run *r);

/* What a checkpoint holds of them and --resume reads back, the same on all ranks: the i-th, [r->model.n] floats in host
 * memory, and its name. NULL past the last one, of a run without rounds at once. */
float *rounds_saved(struct run *r, size_t i, const char **name);

/* Collective, after r->step steps: the outer gradient's exchange and the outer step, from which all ranks go on.
 * Exchange traffic; r->now.sum is then that of the outer gradients. */
void run_round(struct run *r);

#endif
