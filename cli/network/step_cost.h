/* step_cost.h: the step of a run as the cost model sees it (comm/cost/cost.h). */
#ifndef ST_CLI_STEP_COST_H
#define ST_CLI_STEP_COST_H

#include "cli/train/run.h"

/* The ranks of a node, for the model: 1 where the nodes are unequal. */
int step_ranks_per_node(const struct comm *c);

/* The step as cost cases: one, or with --overlap layers one for each group, of which each gets its share of k. cases:
 * fresh memory; slices and options are the run's own. Returns how many. */
size_t step_cost_cases(const struct run *r, size_t k, struct cost_case **cases);

/* Their sum for a row, in the format where it takes one (NULL: coo32). */
struct cost step_cost(const struct run *r, const struct exchange_ops *ops, const struct wire_ops *wire, size_t k);

#endif
