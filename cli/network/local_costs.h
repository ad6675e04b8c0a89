/* local_costs.h: what local work takes on a rank, for the ranking of exchanges (comm/cost/best.h): selecting, packing,
 * unpacking and merging, measured here and now, or from a table of scripts/measure-costs.sh.
 *
 *        const struct local_request request = {.device = device, .n = n, .k = k, .selector = selector};
 *        local_measure(&request, &times);                  // tens of milliseconds
 *        comm_allreduce_f64(c, (double *)&times, sizeof times / sizeof(double), COMM_MAX);
 *        local_from_times(&times, selector, &costs);
 *        size_t count = best_rank(&c, 1, &net, NULL, allowed, &costs, false, list);
 *
 *        if (!local_from_table("costs.csv", "cpu", n, density, &costs, model, &missing, &e)) ...
 */
#ifndef ST_CLI_LOCAL_COSTS_H
#define ST_CLI_LOCAL_COSTS_H

#include "base/json.h"
#include "comm/cost/best.h"
#include "topk/selector.h"

enum { LOCAL_SELECTORS = 16, LOCAL_NAME = 32 };

/* Who selects for each row of exchanges; NULL: nobody, or the row itself, or the row is not asked for. */
typedef const struct selector_ops *local_selectors[BEST_ALGORITHMS];

/* The selectors of the papers. */
void local_default_selectors(local_selectors selector);

struct local_request {
    const struct device_ops *device;
    size_t n, k;                                /* of a step */
    const struct selector_settings *settings;   /* NULL: the defaults */
    const struct selector_ops *const *selector; /* [BEST_ALGORITHMS] */
};

/* Nothing but doubles, so that the ranks can take the largest of each. */
struct local_times {
    double select[LOCAL_SELECTORS]; /* [s] for an entry of the gradient, by selectors[i]; 0: not asked for */
    double own; /* the same of one pass with a known threshold, for rows that select by themselves */
    double pack[BEST_FORMATS], unpack[BEST_FORMATS];  /* [s] for an entry in wires[i]; merging is in unpack */
    double round[BEST_FORMATS], decode[BEST_FORMATS]; /* of pack, rounding alone; of unpack, all but merging */
    double half[BEST_FORMATS]; /* [s] for a dense value in wires[i], packed, or unpacked and added; 0: it has no form */
    double code[BEST_ALGORITHMS]; /* [s] for a value that exchanges[i] codes or decodes itself; 0: it does not */
    double add;                   /* [s] for a word that is added up as it is */
    double sum;                   /* [s] for a value of a dense sum that has come in and is added up */
};

/* What these take on this process and device, least of a few runs, on normal numbers: of at most LOCAL_ENTRIES of n
 * entries in host memory, and of so many as are selected of these; a dense sum of at most 2^24. */
enum { LOCAL_ENTRIES = 1 << 21 };
void local_measure(const struct local_request *request, struct local_times *times);

void local_from_times(const struct local_times *times, const local_selectors selector, struct local_costs *costs);

/* The members of an object that say all of it. */
void local_times_json(const struct local_times *times, struct json *j);

/* Algorithms in formats that a table lacks. */
struct local_missing {
    char names[2048]; /* "hitopk packed-f32, ...", cut where there is no room */
    size_t count;
};

/* Of these entries and this density, on this device of the table: as `sparsetrain costs` says it (cost_table.h).
 * model: the table's name of a gradient of this length. False: one line in *e says what is not in it and what is. */
bool local_from_table(const char *path, const char *device, size_t n, double density, struct local_costs *costs,
                      char model[LOCAL_NAME], struct local_missing *missing, struct err *e);

#endif
