/* step_row.h: r->now.row, the step under way as the log has it (log.h). Loss and images are added to it by forward, the
 * gradient's norm by who clips, the rest by observers (observers.h) and here. */
#ifndef ST_CLI_STEP_ROW_H
#define ST_CLI_STEP_ROW_H

#include "cli/train/run.h"

/* What is known before the step. */
void step_row_begin(struct run *r);
/* After it: what the exchange says and has moved, and where the time went, which runs from the end of the step before
 * to here. */
void step_row_end(struct run *r);

#endif
