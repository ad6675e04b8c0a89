/* between_steps.h: what a run does besides steps: it evaluates, compares the replicas, writes checkpoints. The time of
 * that belongs to no step. All calls are collective. */
#ifndef ST_CLI_BETWEEN_STEPS_H
#define ST_CLI_BETWEEN_STEPS_H

#include "cli/train/run.h"

/* Before the first step of this process: the evaluation of a run that begins, and what one that resumes lacks. */
void before_steps(struct run *r);
/* Is there anything to do after the step that begins? The same on all ranks, which meet at its end then. */
bool comes_between(const struct run *r);
/* After a step of which that was said, or one after which the run stops. */
void between_steps(struct run *r, bool stop);
/* After the last step. False: something was refused on the way; *e says what, and what is left. */
bool after_steps(struct run *r, struct err *e);

#endif
