/* outputs.h: a run may write several files of names that the user gives, beside those that it keeps in --out. Where two
 * of them are one file, the one would take the other's place, or write into it, and nobody would notice. */
#ifndef ST_CLI_OUTPUTS_H
#define ST_CLI_OUTPUTS_H

#include "cli/options/options.h"

/* Has each of them a place of its own? Whether they, or the folders around them, are there is of no matter: the run may
 * make them. False: the user's mistake, one line in *e. Nothing is opened or made. */
bool outputs_apart(const struct options *o, struct err *e);

/* Is this a file in --out, which is not there yet? Then whether it can be written is found out when the run has made
 * its directory. */
bool outputs_wait(const struct options *o, const char *name);

#endif
