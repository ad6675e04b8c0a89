/* rival.h: which configuration the others are held against. algo: what --against says, or its default. */
#ifndef ST_CLI_COMPARE_RIVAL_H
#define ST_CLI_COMPARE_RIVAL_H

#include "base/error.h"
#include "cli/compare/groups.h"

/* Is --against, which the user gave, one of the runs, or an algorithm of which one configuration is meant? For what has
 * been settled (labels). */
bool rival_check(const struct groups *all, const char *against, struct err *e);

/* Says on stderr where there is no test since none of several configurations is meant, or none has that target. */
void rival_note(const struct groups *all, const char *against);

/* With the same target, the one of the run that --against names, or of that algorithm; of several configurations that
 * differ in the format of messages alone, the one in coo32. NULL: there is none, or it is g itself. */
const struct group *rival_of(const struct groups *all, const struct group *g, const char *algo);

#endif
