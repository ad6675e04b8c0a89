/* auto.h: --algo auto: at the start of a run the network is measured, and what selecting, packing, unpacking and
 * merging take on this device; every algorithm and format is predicted for this n, k and P, the best three are tried,
 * and the fastest is taken. The decision is comm/cost/best.h's. */
#ifndef ST_CLI_AUTO_H
#define ST_CLI_AUTO_H

#include "cli/network/local_costs.h"
#include "cli/train/run.h"

enum { AUTO_TRIES = 3, AUTO_WARMUP = 2, AUTO_STEPS = 5 };

/* Why, for the log. */
struct auto_choice {
    bool measured;            /* network and local work were; not with one rank */
    struct network net;       /* name empty */
    struct local_times local; /* of the slowest rank, part by part */
    double local_seconds;     /* that it took to measure these */
    int nodes, ranks_per_node, groups;
    size_t n, k;                     /* that compete for selection */
    const struct wire_ops *only;     /* --wire; NULL: not given */
    struct candidate list[BEST_MAX]; /* [count]: the ranking */
    size_t count;
    size_t tried[AUTO_TRIES], tries;     /* places in list */
    double step[AUTO_TRIES][AUTO_STEPS]; /* [s] each timed step of these, on the slowest rank, ascending */
    const struct candidate *takes;
    double seconds; /* that all this took */
};

/* Collective. Replaces --algo auto in r->options by what was found, as if that had been asked for by name;
 * r->job.choice says why. False: a mistake of the user's, the same on all ranks. */
bool auto_choose(struct run *r, const struct device_ops *device, struct err *e);
void auto_close(struct auto_choice *choice);

/* One line for the terminal: fresh memory. */
char *auto_text(const struct auto_choice *choice);

/* The members of the record in run.jsonl. */
void auto_json(const struct auto_choice *choice, struct json *j);

#endif
