/* predict_best.h: sparsetrain predict --best: every algorithm in every wire format, the fastest first, charged with
 * what selecting, packing, unpacking and merging take on some machine. */
#ifndef ST_CLI_PREDICT_BEST_H
#define ST_CLI_PREDICT_BEST_H

#include "comm/cost/best.h"

struct device_ops;

struct predict_best {
    const struct network *net;
    const struct wire_ops *only; /* NULL: every format */
    double compute;              /* [s] a step; 0: not given */
    bool json;
    const char *costs;               /* a table of measure-costs.sh, or "none"; NULL: measured here */
    const char *on;                  /* the device of the table, or to measure on; NULL: cpu */
    const struct device_ops *device; /* to measure on; NULL: nothing is measured */
};

/* Finds `device`. Once, before the first predict_best. A user's mistake: false. */
bool predict_best_open(struct predict_best *b, struct err *e);

/* Of one case the whole ranking; of several (as many numbers of ranks) the first of each, and the best other algorithm
 * beside it. Rows that cannot be compared (exchange_apart) are never first; the ranking has them at its end. density:
 * of all cases, which have one n and k. False: the table has no such row, or none that can be first. */
bool predict_best(const struct predict_best *b, double density, const struct cost_case *cases, size_t count,
                  struct err *e);

#endif
