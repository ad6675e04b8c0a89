/* launcher.h: who started this process, by the variables that launchers leave in its environment. The launcher of one
 * MPI starts the program of another as jobs of one rank each, which all train the same and write the same files. */
#ifndef ST_CLI_LAUNCHER_H
#define ST_CLI_LAUNCHER_H

#include <stdbool.h>

#include "base/error.h"

/* The rank that it gave this process; 0 without one. For verbs that need no MPI. */
int launcher_rank(void);

/* How many processes it says it started. */
struct launcher {
    int ranks;            /* 0: nobody says more than one */
    bool at_least;        /* there may be more */
    const char *variable; /* that says so, */
    const char *name;     /* whose it is, */
    const char *advice;   /* and what to do about it */
    bool speaks;          /* of these processes this one tells the user */
};

/* To be asked before MPI has started, which may set such variables itself. */
struct launcher launcher_look(void);

/* MPI has so many ranks, of this library. False: only one, though there should be more: one line in *e. */
bool launcher_fits(const struct launcher *l, int size, const char *library, struct err *e);

/* Was this process started by Open MPI's mpirun, which kills those it started a second after Ctrl-C
 * (odls_base_sigkill_timeout)? */
bool launcher_kills(void);

/* For a verb that needs no MPI: did this MPI's launcher start this process together with others, so that it can start
 * MPI and compare? False inside a script that the launcher started: there MPI can be started only once, and a later
 * verb may need that. */
bool launcher_joins(const char *library);

#endif
