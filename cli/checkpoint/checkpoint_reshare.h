/* checkpoint_reshare.h: what each rank of a run had of its own, for another number of ranks.
 *
 *        residual, velocity    redistributed (topk/reshare.h), or zero: --resume-residuals
 *        running statistics    their average, on all ranks, as an evaluation makes it
 *        own parameters, own optimiser (where replicas drift)    their averages, on all ranks: as if an average of the
 *                              parameters was due, of which the optimiser's state, which follows them, has its part
 *        states of streams     those of the streams that a rank reads, whoever read them; zero where a text is cut
 *                              otherwise, which is at the beginning of an epoch
 *        exchange, selectors   as at the start of a run: what they know is of the accumulated gradient that a rank had
 *                              (thresholds), or of the number of ranks (regions, turns); they find it again in the
 *                              first step */
#ifndef ST_CLI_CHECKPOINT_RESHARE_H
#define ST_CLI_CHECKPOINT_RESHARE_H

#include "cli/checkpoint/checkpoint_own.h"
#include "cli/train/run.h"

/* The parts of r that are each rank's own, from all files of the checkpoint, whose position model.ckpt has. written: as
 * it has the hashes; parameters and optimiser are in their places. Collective. */
bool checkpoint_reshare(struct run *r, const struct checkpoint *from, const struct position *model,
                        const struct written *written, struct err *e);

#endif
