/* bench_exchange.h: `mpirun -np P sparsetrain bench`: every exchange algorithm over sizes and densities, timed and
 * verified, without training anything. Also what its parts share:
 *
 *        bench_exchange.c          the verb: opens a case (algorithm, n, k), runs its steps
 *        bench_exchange_options.c  the command line
 *        bench_exchange_costs.c    computing around a step, and costs of local work in a simulation
 *        bench_exchange_check.c    the verification
 *        bench_exchange_print.c    statistics, table, JSON
 */
#ifndef ST_CLI_BENCH_EXCHANGE_H
#define ST_CLI_BENCH_EXCHANGE_H

#include "base/json.h"
#include "base/option.h"
#include "cli/gradients/pattern.h"
#include "cli/log/trace_file.h"
#include "comm/exchange_options.h"
#include "comm/reducer.h"

/* A verb that needs MPI (main.c): the status of the program; with one line in *e it is that of the error. */
int bench_exchange(struct comm *c, int argc, char **argv, struct err *e);

/* -- what is asked (bench_exchange_options.c) ---------------------------------------------------------------------- */
struct bench_request {
    struct option_names algo_names;
    const struct exchange_ops *algo[OPTION_LIST_MAX];
    size_t algos; /* with --algo all those that cannot serve these ranks are left out */
    int select_number, wire_number;
    const struct selector_ops *select; /* NULL: each algorithm's own */
    const struct wire_ops *wire;
    struct option_numbers n, density;
    bool n_given, density_given;
    const char *pattern, *trace; /* trace: NULL for none */
    const char *device_name;
    const struct device_ops *device; /* what that is here; bench_exchange sets it */
    int ranks_per_node;              /* 0: the nodes there are */
    size_t warmup, repeat;
    int64_t seed;
    double timeout;
    bool unchecked, check, json, phases;
    bool wire_check;               /* each row once more with comm_set_wire_check */
    struct exchange_own own;       /* what algorithms and selectors declare */
    size_t bucket_bytes;           /* dense-ovlp */
    double compute;                /* forward and backward of a step [s]; NaN: none */
    double select_cost, word_cost; /* in a simulation [s], [s per 4-byte word received]; NaN: not given */
    const char *network;           /* what rows call it; NULL: nothing */
};

/* False: one line in *e. */
bool bench_parse(struct bench_request *r, int argc, char **argv, struct err *e);
extern struct option_table bench_options;

/* The values of the algorithms' own options, as long as *r is there. */
struct option_values bench_own(const struct bench_request *r);

/* Those that are not as by default, into an object: "gaussian_adjust": "off". own: where they lie. */
void bench_own_json(const struct option_values *values, const struct exchange_own *own, struct json *j);

/* The selector that this algorithm gets; NULL where it takes none. */
const struct selector_ops *bench_selector(const struct bench_request *r, const struct exchange_ops *ops);

/* -- one case: an algorithm at one n and density, and what was measured -------------------------------------------- */
struct bench_step {
    double seconds;            /* of this rank, without the computing of forward and backward */
    double whole;              /* with them [s] */
    double phase[PHASE_COUNT]; /* [s] */
    double sent, received;     /* 4-byte words */
    double messages;           /* sent */
    double extra_words;        /* allowed above the bound in this step */
    double local_nnz;
};

struct bench_case {
    struct comm *comm;
    const struct bench_request *request;
    const struct exchange_ops *ops;
    const struct selector_ops *select; /* NULL where the algorithm takes none */
    size_t n, k;
    double density;
    struct reducer reducer;
    struct phases phases;
    float *grad;             /* [n] on the device of the request */
    float *host;             /* [n] the same in host memory; grad itself where that is the device; NULL: not needed */
    struct sparse entries;   /* of the pattern, where the gradient is made of them on the device */
    bool unread;             /* the gradient's contents do not matter: it lies in memory of comm_unread_alloc */
    struct bench_step *step; /* [repeat]: the timed steps of this rank */
    double global_nnz;       /* mean over the timed steps */
    double median;           /* of the timed steps, of the slowest rank [s]; bench_print_row sets it */
    double bare;             /* a row with comm_set_wire_check: the median of the row without; else NaN */
    uint64_t wrong;
    bool above_bound; /* words over the bound */
    bool selected;    /* this step's selection was charged */
    uint64_t charged; /* bytes received when packing and merging were charged last */
};

/* -- time that local work takes (bench_exchange_costs.c) ----------------------------------------------------------- */
/* False: one line in *e. */
bool bench_costs_check(const struct bench_request *r, struct err *e);
/* Sets the phases' `spend` to this case's costs of local work; for rows with `sparse` in a simulation. */
void bench_costs_open(struct bench_case *b);
/* A step begins. */
void bench_costs_restart(struct bench_case *b);
/* The forward and backward pass before an exchange, where one was asked for; overlap begins in it. */
void bench_compute(struct bench_case *b);

/* -- verification (bench_exchange_check.c) ------------------------------------------------------------------------- */
/* Whatever the algorithm is, the sum over all steps and ranks of what went in must be what came out and what is left:
 *
 *        sum_t sum_r grad_r(t)  ==  sum_t u(t) + sum_r residual_r        for every entry, to the rounding of floats
 *
 * and u(t) must have the same bits on every rank. A row with a plain definition is also held against that, in one step
 * more than is timed (bench_check_step). */
struct bench_check {
    double *account; /* [n]: this rank's gradients, less u on rank 0 */
    float *weight;   /* [n]: sum of their magnitudes */
    size_t steps;
    uint64_t hash; /* of u, over all steps */
};

/* Is this case held against what the ranks say they have delivered? */
bool bench_wants_sent(const struct bench_case *b);

void bench_check_open(struct bench_check *k, size_t n);
void bench_check_close(struct bench_check *k);
/* Before a step: what goes in (host holds it). After it: sum, and grad, which holds the update u/P and is copied to
 * host. */
void bench_check_before(struct bench_check *k, const struct bench_case *b);
void bench_check_after(struct bench_check *k, const struct bench_case *b, const struct exchange_sum *sum);
/* Collective: the number of entries that violate the equation above, and of ranks whose u had other bits. */
uint64_t bench_check_end(struct bench_check *k, struct bench_case *b);

/* One more step with the gradient in b->grad and b->host, not timed, held against the definition where the row has one.
 * Collective. Returns the number of wrong entries. A gradient that is not finite ends the job. */
uint64_t bench_check_step(struct bench_check *k, struct bench_case *b);

/* Runs exchange and mean; dies where entries are not finite. */
void bench_exchange_step(struct bench_case *b, struct exchange_sum *sum);

/* -- output (bench_exchange_print.c) ------------------------------------------------------------------------------- */
void bench_print_head(const struct bench_request *r, const struct comm *c, const struct pattern *p);
/* Collective: statistics over the ranks; rank 0 prints. */
void bench_print_row(struct bench_case *b);
void bench_print_end(const struct bench_request *r, size_t rows, size_t wrong_rows, size_t above_bound);

#endif
