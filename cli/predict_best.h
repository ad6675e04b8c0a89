/* predict_best.h: sparsetrain predict --best: every algorithm in every wire format, the fastest first. */
#ifndef ST_CLI_PREDICT_BEST_H
#define ST_CLI_PREDICT_BEST_H

#include "comm/best.h"

struct predict_best {
    const struct network *net;
    const struct wire_ops *only; /* NULL: every format */
    double compute;              /* [s] a step; 0: not given */
    bool json;
};

/* Of one case the whole ranking; of several (as many numbers of ranks) the first of each, and the best other algorithm
 * beside it. Rows that cannot be compared (exchange_apart) are never first; the ranking has them at its end. */
void predict_best(const struct predict_best *b, const struct cost_case *cases, size_t count);

#endif
