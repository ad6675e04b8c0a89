/* resize.h: a run that goes on with another number of ranks, or another batch over all of them. In the order of
 * run_open:
 *
 *        resize_options   which batch each rank has, before the options are resolved
 *        resize_plan      the leg that begins with another batch over all ranks, once the data are known
 *
 * Without --batch the batch over all ranks stays, and with it steps, epochs, schedules and the order of the samples:
 * only which rank has which of them changes. With another one the run goes on behind the samples that it has had.
 * What each rank had of its own the new ranks get by checkpoint_reshare.h. */
#ifndef ST_CLI_RESIZE_H
#define ST_CLI_RESIZE_H

#include "cli/train/run.h"

/* Fills in r->resize and r->leg, and r->options.batch unless that was given. Its options have been taken over. False:
 * as many ranks cannot share the batch; one line in *e, the same on all ranks. */
bool resize_options(struct run *r, const struct checkpoint *from, struct err *e);

/* Nothing happens unless the batch over all ranks is another one. False: streams of a text cannot be cut anew here. */
bool resize_plan(struct run *r, struct err *e);

/* Does the run go on otherwise than it was? */
bool resize_is(const struct run *r);
/* What becomes of residuals and velocities: "mean", "sum", "reset", "kept" as they are, or "none" where there are none.
 */
const char *resize_residuals(const struct run *r);

#endif
