/* watching.h: what a run tells the watchdog (comm/transport/watch.h). */
#ifndef ST_CLI_WATCHING_H
#define ST_CLI_WATCHING_H

#include "base/beat.h"
#include "cli/train/run.h"

/* --timeout S among the words of a command line, before anybody has parsed it; the default where there is none, or none
 * that makes sense, which its verb will say. */
double watching_limit(int argc, char **argv);

/* What --help says of --timeout, which greeting_open has acted upon. */
#define WATCHING_HELP "end the job, naming the rank, when one has given no sign of life for S seconds; 0: never"

/* The options are known, those of a resumed run too. */
void watching_begin(const struct run *r);
/* What the run does from here on; step: beat.h's.
 *
 * For tests: SPARSETRAIN_FAULT=RANK:ACTIVITY:STEP:stop|loop|kill, with step, evaluation or checkpoint for ACTIVITY, has
 * that rank stop, run in circles or die there. */
void watching_enter(const struct run *r, enum activity activity, size_t step);
/* There is a complete checkpoint in the run's directory. */
void watching_saved(const struct run *r);

#endif
