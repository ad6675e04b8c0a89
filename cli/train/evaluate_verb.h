/* evaluate_verb.h: `sparsetrain evaluate`: the scores of a checkpoint, as the run itself would have logged them. */
#ifndef ST_CLI_EVALUATE_VERB_H
#define ST_CLI_EVALUATE_VERB_H

#include "base/option.h"

#include "base/error.h"
#include "comm/comm.h"

/* argv[1...]: the checkpoint and the options. Collective; returns an exit status; with *e filled it is that of the
 * error. */
int evaluate_verb(struct comm *c, int argc, char **argv, struct err *e);

extern const struct option_table evaluate_options;

#endif
