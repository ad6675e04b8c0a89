/* checkpoint.h: a run on the disk: OUT/checkpoint-<step>/ with model.ckpt (parameters, optimiser, options; written by
 * rank 0) and rank<r>.ckpt (residual and batch-norm statistics of each rank). The directory is filled under a temporary
 * name, every file fsynced, and renamed when all ranks are done: it is complete or not there. The last ones are kept
 * (--keep). What lies where is checkpoint_files.h's. */
#ifndef ST_CLI_CHECKPOINT_H
#define ST_CLI_CHECKPOINT_H

#include "cli/checkpoint/checkpoint_files.h"
#include "cli/train/run.h"

/* Writes the state after r->step steps, and before it is there all rows of the log. Collective. False: there is none
 * of this step, nothing of it is left, and the run can go on. A log that fails is r->trouble. */
bool checkpoint_write(struct run *r, struct err *e);

/* In the directory of a run that goes on: what the start before it was killed in the midst of writing, or of removing,
 * goes. The next checkpoint would do the same, but there may be none. */
void checkpoint_tidy_start(struct run *r);

/* Bytes that this rank writes of a checkpoint; copy: that it needs for its copies meanwhile. */
size_t checkpoint_bytes(struct run *r, bool copy);

/* --resume DIR (checkpoint_find.c), in two steps, between which DIR is locked: first which directories are meant. Both
 * collective. */
bool checkpoint_place(struct comm *c, const char *dir, struct checkpoint *found, struct err *e);
/* Then the checkpoint: the one that was named, or the newest of the run that is whole: the ranks share out its files,
 * however many wrote it, and verify every checksum. Fills in options, run_id, step, ranks and leg. */
bool checkpoint_find(struct comm *c, struct checkpoint *found, struct err *e);
/* What it says has turned out to be nothing that a run leaves (*why): the newest whole one before it, which must be of
 * the same options, ranks and leg. Collective. */
bool checkpoint_find_older(struct comm *c, struct checkpoint *found, const struct err *why, struct err *e);
/* Where it is not the newest, *note says so; else it stays as it is. */
void checkpoint_note(const struct checkpoint *found, struct err *note);
void checkpoint_close(struct checkpoint *found);

/* Has it as many numbers as a net of this size? Asked before there is one. was, now: the batch of each rank of the
 * checkpoint, and of the net: so many streams have states. */
bool checkpoint_is_of(const struct checkpoint *from, int64_t was, int64_t now, const struct net_size *size,
                      struct err *e);

/* Fills parameters, optimiser, residual, statistics, step and run id of an opened run; r->resize says whether it goes
 * on otherwise than it was. False: *damaged says whether that is the checkpoint's fault, not that of what the run is to
 * go on with; another one may then be loaded. Collective. */
bool checkpoint_load(struct run *r, const struct checkpoint *from, bool *damaged, struct err *e);

#endif
