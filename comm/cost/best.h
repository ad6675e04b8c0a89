/* best.h: which exchange, in which wire format, by the cost model: a ranking of all, whom to try, and whom to keep.
 * Pure: numbers in, rows out, the same on every rank.
 *
 *        size_t count = best_rank(&c, 1, &net, NULL, allowed, &local, false, list); // list[0] has the shortest time
 *        size_t tries = best_to_try(list, count, 3, tried);
 *        for (i < tries) list[tried[i]].measured = ...                   // a step of it, in truth
 *        const struct candidate *take = best_measured(list, tried, tries);
 */
#ifndef ST_COMM_BEST_H
#define ST_COMM_BEST_H

#include "comm/exchange.h"

enum { BEST_ALGORITHMS = 32, BEST_FORMATS = 8, BEST_MAX = BEST_ALGORITHMS * BEST_FORMATS };

/* Costs of local work of exchanges[i] with wires[f]: [i][f]; [i][0] for exchanges as they are without a format. */
struct local_costs {
    struct local_cost of[BEST_ALGORITHMS][BEST_FORMATS]; /* select NAN: not known */
};

struct candidate {
    const struct exchange_ops *ops;
    const struct wire_ops *wire; /* NULL: nothing of it travels in a format */
    double seconds;              /* predicted, of one step: communication and */
    double local;                /* [s] local work; 0 where none is charged */
    double measured;             /* [s]; NAN: it was not tried */
};

/* Of the step that consists of these cases (several with overlap by layers: one for each group): every row of exchanges
 * that allowed (by index in exchanges; NULL: all) lets in, in the format `only` (NULL: in each one) where it takes
 * that, the fastest first; of equals the first in the tables. local: what is charged for local work, those of whom it
 * is not known are left out; NULL: communication alone. combines: exchange_combine follows on the exchange. list:
 * [BEST_MAX]. Returns how many. */
size_t best_rank(const struct cost_case *cases, size_t count, const struct network *net, const struct wire_ops *only,
                 const bool *allowed, const struct local_costs *local, bool combines, struct candidate *list);

/* Whom to try of a ranking: the first `tries`; but where these are all of one algorithm, the first of another takes the
 * place of the last. chosen: [tries], places in list, ascending. Returns how many (count where that is less). */
size_t best_to_try(const struct candidate *list, size_t count, size_t tries, size_t *chosen);

/* The one with the shortest measured time; of equals the one predicted faster. */
const struct candidate *best_measured(const struct candidate *list, const size_t *chosen, size_t tries);

/* Does this row send sparse vectors, so that its step changes with every format? */
bool best_takes_format(const struct exchange_ops *ops);

/* Predicted seconds of a step's communication; wire NULL: coo32. */
double best_seconds(const struct exchange_ops *ops, const struct wire_ops *wire, const struct cost_case *c,
                    const struct network *net);
/* ... and of its local work. What goes by the nodes selects from a rank's part of them. net: beside whose transfers
 * dense sums are added up; NULL: which hide all of that. */
double best_local_seconds(const struct exchange_ops *ops, const struct wire_ops *wire, const struct cost_case *c,
                          const struct local_cost *local, const struct network *net);

#endif
