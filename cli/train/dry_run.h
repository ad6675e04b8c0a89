/* dry_run.h: --dry-run: a run that opens everything but its files, says what it would do, and ends. */
#ifndef ST_CLI_DRY_RUN_H
#define ST_CLI_DRY_RUN_H

#include "cli/train/run.h"

/* In place of opening the files of a run, once all else is open: may they be written, is there room for them, and
 * memory? Leaves nothing behind. Collective. */
bool dry_run_check(struct run *r, struct err *e);

/* After the banner: traffic, memory, checkpoints. Collective. */
void dry_run_report(struct run *r);

#endif
