/* standard_streams.h: standard output, in the one place where its errors are looked for: a full disk behind it, a
 * pipe whose reader has gone, none at all. A verb whose output is lost has failed, so main ends it with one line and
 * EXIT_SYSTEM; a run still goes on to its end and keeps its checkpoints (docs/faults.md). */
#ifndef ST_CLI_STANDARD_STREAMS_H
#define ST_CLI_STANDARD_STREAMS_H

#include <stdbool.h>

#include "base/error.h"

/* First of all: no file that the program opens may take the number of a standard stream that is closed, or what is
 * printed would go there; and a pipe without reader, or a file at its limit, is an error that a call returns (EPIPE,
 * EFBIG), not a signal that kills. */
void streams_open(void);

/* Flushes standard output. False, once: something of it was lost. */
bool streams_check(struct err *e);

#endif
