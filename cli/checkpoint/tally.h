/* tally.h: what rank 0 adds up over all processes of a run, which a checkpoint keeps, so that a run that was resumed
 * says what all of it took: section "tally" of model.ckpt, since format version 6; with error rates since 8. */
#ifndef ST_CLI_TALLY_H
#define ST_CLI_TALLY_H

#include <stdint.h>

#include "cli/checkpoint/container.h"
#include "cli/log/log.h"

struct run;

struct tally {
    struct spent spent;
    uint64_t evaluated; /* 1: there was an evaluation after this step, and scores has it; else 0 */
    struct scores scores;
};

/* Up to now. */
struct tally tally_of(const struct run *r);

/* Of a container that was read. One of an older version has none: then nothing is known. False: it is such as no run
 * writes, one line. */
bool tally_read(const struct container *c, struct tally *t, struct err *e);

/* What a run goes on from; on all ranks. */
void tally_put(struct run *r, const struct tally *t);

#endif
