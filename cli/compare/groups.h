/* groups.h: what the verb `compare` has read: runs, and the configurations that they are of. */
#ifndef ST_CLI_COMPARE_GROUPS_H
#define ST_CLI_COMPARE_GROUPS_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/compare/statistics.h"

enum { MEASURES = 3 };
extern const char *const group_measures[MEASURES]; /* keys of a summary's target: steps, seconds, bytes_sent */

/* Runs of one configuration. */
struct group {
    char *config, *target; /* "ranks=2 algo=gtopk ..."; "test:accuracy:0.9"; what its runs have in common */
    char *algo, *label;
    size_t runs, reached;    /* runs: that reached their target, or came to their length without it; */
    size_t unfinished;       /* and that ended before both, of which nobody knows whether they would have */
    double *value[MEASURES]; /* [reached] */
    struct sample sample[MEASURES];
};

/* A run that counts, to know it again. */
struct taken {
    const char *name;
    char *id, *summary; /* id: the run's, which copies of its log have, too */
    const struct group *group;
    const char *copy; /* another name that it was given by; NULL: none */
};

struct groups {
    struct group *at;            /* [count] */
    struct taken *run;           /* [runs] */
    size_t count, runs, room;    /* room: of groups, of runs, and of the numbers of a group */
    const struct group *against; /* of the run that --against names; NULL: it names none */
};

#endif
