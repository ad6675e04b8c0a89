/* report.h: what a run says at its beginning and at its end. */
#ifndef ST_CLI_REPORT_H
#define ST_CLI_REPORT_H

#include "cli/train/run.h"

/* "3.15 KiB" */
void human_bytes(char *text, size_t size, double bytes);

/* Of a run that was resumed with nothing left to do (r->complete). */
void report_complete(struct run *r);
void report_begin(struct run *r);
void report_end(struct run *r, int status);

#endif
