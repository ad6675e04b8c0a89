/* signals.h: SIGINT, SIGTERM, SIGUSR1 and SIGHUP (not under nohup) ask a run to end at the next occasion with a
 * checkpoint. */
#ifndef ST_CLI_SIGNALS_H
#define ST_CLI_SIGNALS_H

/* Keeps the four from ending the process. No handler runs on the calling thread nor on any that it makes later: the
 * matrix products of oneDNN 2.6 point the stack pointer into their workspace meanwhile, where the frame of a handler
 * overwrites the heap (a run that was told to stop sometimes aborted instead). Before any product is computed. */
void signals_open(void);

/* The signal that asked for the end, or 0. */
int signals_caught(void);

#endif
