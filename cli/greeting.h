/* greeting.h: before anything else the ranks of a job see to it that they were started alike: one that trains and one
 * that lists would wait for each other for ever. */
#ifndef ST_CLI_GREETING_H
#define ST_CLI_GREETING_H

#include "comm/comm.h"

/* MPI for the verb of these words of argv (0: none, which is train), where it fits the launcher, and ranks started
 * alike. options: compare also what comes after the verb, word by word. NULL: *status is how to end, and it has been
 * said why; where the ranks have met MPI has ended. */
struct comm *greeting_open(int *argc, char ***argv, int words, bool options, int *status);

/* For a verb that needs no MPI: where other ranks of this job might, they meet first, as far as that can be without
 * spoiling the start of a later verb. False: they were started differently; *status is how to end. */
bool greeting_plain(const char *first, const char *second, int *status);

#endif
