/* rival.h: which configuration the others are held against. algo: what --against says, or its default. */
#ifndef ST_CLI_COMPARE_RIVAL_H
#define ST_CLI_COMPARE_RIVAL_H

#include "base/error.h"
#include "cli/compare/groups.h"

/* Is --against, which the user gave, one of the runs or an algorithm of theirs? */
bool rival_check(const struct groups *all, const char *against, struct err *e);

/* With the same target, the one of the run that --against names, or of that algorithm; NULL: there is none, or more
 * than one, or it is g itself. */
const struct group *rival_of(const struct groups *all, const struct group *g, const char *algo);

#endif
