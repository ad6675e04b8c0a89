/* side_files.h: files for other programs that rank 0 writes beside run.jsonl: --mllog FILE (cli/observe/mllog.h) and
 * --log-tensorboard DIR (event_file.h). What cannot be written of them ends a run as a log does that cannot be. */
#ifndef ST_CLI_SIDE_FILES_H
#define ST_CLI_SIDE_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct run;
struct options;
struct job_step;
struct scores;

/* Rank 0: could they be written? run: the identity of the run that is resumed, 0: a new one. */
bool side_files_check(const struct options *o, uint64_t run, struct err *e);
/* Collective; r->step: where the run goes on. */
bool side_files_open(struct run *r, struct err *e);
/* Rank 0: the numbers of a step, over the ranks; those of an evaluation. */
void side_files_step(struct run *r, const struct job_step *s);
void side_files_scores(struct run *r, const struct scores *scores);
/* Rank 0: all of it is in the files, but for what *e says. */
bool side_files_flush(struct run *r, struct err *e);
/* abandon: the run has not begun, so what was made here goes. Rank 0 acts. */
void side_files_close(struct run *r, bool abandon);

#endif
