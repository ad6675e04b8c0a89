/* signals.h: SIGINT, SIGTERM, SIGUSR1 and SIGHUP (not under nohup) ask a run to end at the next occasion with a
 * checkpoint. */
#ifndef ST_CLI_SIGNALS_H
#define ST_CLI_SIGNALS_H

/* Catches the four. */
void signals_open(void);

/* The signal that asked for the end, or 0. */
int signals_caught(void);

#endif
