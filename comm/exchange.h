/* exchange.h: how the ranks' gradients become one sum. One file and one row in exchanges.def per algorithm.
 *
 *        struct exchange x;
 *        struct exchange_sum sum;
 *        exchange_open(&x, &exchange_gtopk, &setup);
 *        for (each step) {
 *            exchange_begin(&x, grad, k);                             // optional: overlap with backward
 *            ... backward ... exchange_ready(&x, from);               // grad[from..n-1] is final
 *            if (!exchange_run(&x, grad, k, &sum)) die_status(...);   // NaN or infinity at index sum.bad
 *            exchange_mean(&x, &sum, grad);                           // grad = (u + e) / P for the optimiser
 *        }
 *        exchange_close(&x);
 *
 * A step takes acc_r = residual_r + grad_r on each rank r to the sum u, the same bits on every rank, and to new
 * residuals. An algorithm that `conserves` loses nothing:
 *
 *        sum_r acc_r == u + sum_r residual_r
 *
 * Exempt entries (setup.exempt) are taken out of grad_r before the algorithm sees it and summed densely to e. With them
 *
 *        sum_r (residual_r + grad_r) == u + e + sum_r residual_r
 *
 * (A residual of such an entry that is not zero at open leaves like any other.)
 */
#ifndef ST_COMM_EXCHANGE_H
#define ST_COMM_EXCHANGE_H

#include "base/clock.h"
#include "comm/comm.h"
#include "comm/cost/cost.h"
#include "comm/wire/wire.h"
#include "topk/selector.h"

struct exchange_setup {
    struct comm *comm;
    struct store *store; /* the residual. Where there is none (exchange_keeps): a bare store of the gradient's device,
                          * or NULL */
    struct selector *selector; /* over that store, for rows with `selects`. By slices: the same slices on all ranks, and
                                * not for rows with `own_parts` */
    size_t n;                  /* gradient length */
    size_t k_max;              /* largest k of any step */
    bool any_k;                /* a state that is read back may be of an exchange with a larger k_max */
    struct option_values options;       /* the row takes its own from them in `open`; all zero: the defaults */
    const struct wire_ops *wire;        /* NULL: coo32 */
    uint64_t seed;                      /* of rows that draw random numbers; the same on all ranks */
    const struct exchange_slice *slice; /* [slices], end to end from 0 to n, for rows that go by them; needed in open
                                         * only */
    size_t slices;                      /* 0: all of it is one */
    size_t bucket_bytes;                /* dense-ovlp: bytes of one allreduce; 0: 4 MiB */
    const size_t *group;    /* exchange_open_layers: [groups], first entry of each group, ascending from 0 */
    size_t groups;          /* 0: one group */
    const uint32_t *exempt; /* [exempts], strictly increasing; rows with `sparse` only; copied. See exempt.h */
    size_t exempts;
    bool wants_sent;              /* fill in sum.sent and sum.delivered. If set at open, it may change between steps */
    struct phases *phases;        /* time of the calling thread; may be NULL */
    struct phases *hidden_phases; /* exchange_open_layers: time of its thread; may be NULL */
};

/* The result of a step, valid until the next run. Exactly one of dense and sparse is set. */
struct exchange_sum {
    float *dense;                /* device, [n]: u */
    const struct sparse *sparse; /* host: u */
    const struct sparse *exempt; /* host: e, [exempts]; NULL without exempt entries */
    size_t local_nnz;            /* entries that this rank put into the exchange; exempt ones not counted */
    size_t global_nnz;           /* entries of u; 0 where nothing is summed (fedavg) */
    double mass_lost;      /* sum of |v| that this rank dropped and no residual has; not what --feedback off drops */
    float threshold;       /* oktopk: the global one; else 0 */
    float exact_threshold; /* oktopk, with selector->audit: the exact global one; else 0 */
    unsigned evaluated;    /* oktopk: why the exact one was found in this step: EVALUATED_* (topk/track.h) */
    double extra_words;    /* words that this step may use beyond max_words; the row says for what */
    double hidden_seconds; /* communication during backward; overlap by layers: all of the exchange's work */
    size_t bad;            /* if run fails: index of the NaN or infinity */
    /* With setup.wants_sent and a sparse u, else NULL, as in rows with `by_node`. Host; indices of u only.
     * sent: this rank's part of u. The parts add up to u, to the rounding of floats: what a merge drops, or rounding
     * cuts off a sum, stays in its sender's part and is subtracted from the part of the rank that did it.
     * delivered: this rank's own entries that are in u, as it sent them. */
    const struct sparse *sent, *delivered;
};

struct exchange;

/* What a simulation of many ranks on one core takes of it (comm/cost/simulation.h), measured at P = 16 to 256. */
struct exchange_simulation {
    double rank, peer;  /* [s] of that core for a rank's step, and for each of the P ranks besides */
    double entry;       /* ... for each of the rank's k entries, */
    double entry_round; /* times log2 P, */
    double entry_peer;  /* times P */
    /* Bytes that a rank holds for each entry that all ranks selected: as arrays, and as lists (--device sparse). */
    double held_arrays, held_lists;
    bool undivided; /* k is not cut into P parts, so it may be below P */
};
/* Of rows that gather everything, as topka; and of those that say nothing. */
#define EXCHANGE_SIMULATION_GATHERS                                                                                    \
    { .rank = 2e-3, .peer = 0.05e-3, .entry_peer = 0.05e-6, .held_arrays = 16, .held_lists = 22 }

/* Of rows between whose sums the caller makes steps of its own (--average-every), as published. */
struct exchange_rounds {
    int steps;             /* of a round */
    double rate, momentum; /* of the outer step, which rows with `outer` have (nets/optimisers/outer.h) */
};

struct exchange_ops {
    const char *name;           /* what --algo takes */
    const char *summary;        /* one line for --help and `sparsetrain list` */
    const char *paper;          /* citation */
    const char *default_select; /* the paper's selector; NULL: none */
    struct option_part options; /* what it alone reads */
    bool sparse;                /* sends some entries, the others wait in residuals: uses the store */
    bool selects;               /* uses the selector, which --select names */
    bool conserves;             /* the equation above holds, but for what `loses` says */
    bool drifts;                /* u is this rank's own gradient; replicas differ between averages (fedavg) */
    bool outer;                 /* what it sums are outer gradients, how far parameters have moved in a round */
    bool own_parts;             /* selects in parts of its own, so it takes no selector by slices */
    bool by_node;               /* depends on the nodes of struct comm */
    bool sends_all;             /* sends everything that the selector returns, even more than k */
    bool keeps_k;               /* with sends_all: u is the k largest of the sum of all that, and no more */
    bool evaluates;             /* a global threshold serves several steps: sum.evaluated, sum.threshold */
    bool blind;                 /* what it sends are not the largest entries: random ones, whole blocks */
    bool rounds;                /* sends every entry in so few bits, or directions, that u is the sum in outline only */
    bool flattens;              /* with rounds: many entries get one magnitude, and say nothing by their squares */
    bool low_rank;              /* these are directions of its matrices, so that n alone does not say what is sent */
    bool halves; /* its dense values travel in setup.wire where that has a form for them (wire.h: pack) */
    /* Seconds of coding a value as this row alone does it, or of decoding and adding one, measured here and now; NULL:
     * it has no coder of its own. cost->coded counts them. */
    double (*code_seconds)(void);
    bool ours;            /* published nowhere in this form */
    const char *moves_as; /* row that sends the same messages when each rank is a node; NULL: none */
    const char *line_off; /* why a simulated step takes other than `cost` says, in a few words; NULL: unsaid */
    struct exchange_rounds rounds_of;      /* of rows with `drifts` or `outer` */
    struct exchange_simulation simulation; /* all zero: nobody measured, and it is taken for one that gathers all */
    /* Of rows without `sparse`: does it keep a residual with these options and this wire? NULL: never. */
    bool (*keeps)(const struct option_values *options, const struct wire_ops *wire);
    /* Allocates for the largest step. */
    void (*open)(struct exchange *x);
    /* Which of these options makes it lose gradient, as "--name value"; NULL: none does. NULL: none ever does. */
    const char *(*loses)(const struct option_values *options);
    /* Which of these options makes every entry of u P or -P (or 0), so that its length says nothing, as "--name value";
     * NULL: none does. NULL: none ever does. */
    const char *(*signs)(const struct option_values *options);
    /* Both NULL for rows that cannot overlap. After begin, ready(from) says that grad[from..n-1] is final; from falls
     * from call to call. run completes the step; without begin it does all of it. */
    void (*begin)(struct exchange *x, float *grad, size_t k);
    void (*ready)(struct exchange *x, size_t from);
    /* One step; allocates nothing. grad: device, [n], may be overwritten. */
    bool (*run)(struct exchange *x, float *grad, size_t k, struct exchange_sum *sum);
    void (*close)(struct exchange *x);
    /* Bound on the 4-byte words (of coo32) that a rank sends, and on those it receives, in a step with at most k
     * selected entries. */
    double (*max_words)(const struct cost_case *c);
    /* The same of an exchange that is open, for rows whose own options or slices have a say in it. NULL: max_words. */
    double (*own_max_words)(const struct exchange *x, size_t k);
    /* The alpha-beta cost in the head of the row's file. */
    void (*cost)(const struct cost_case *c, struct cost *cost);
    /* As exchange_saved and exchange_check_own, for the row's own pieces. Both NULL: it has none. */
    bool (*saved)(struct exchange *x, size_t piece, void **memory, size_t *bytes);
    bool (*check)(const struct exchange *x, uint64_t *alike, struct err *e);
    /* As exchange_skip. NULL: it draws no random numbers. */
    void (*skip)(struct exchange *x, uint64_t steps);
    /* Can it run over these ranks? If not, one rank at least returns false, with one line in *e. NULL: over any. */
    bool (*serves)(const struct comm *c, struct err *e);
    /* exchange_combine for rows with `by_node`, but for exempt entries; collective, allocates nothing. And its cost, on
     * top of the step's. NULL: exchange_combine does it, at no cost. */
    void (*combine)(struct exchange *x, const struct exchange_sum *sum, float *grad);
    void (*combine_cost)(const struct cost_case *c, struct cost *cost);
};

struct exchange {
    const struct exchange_ops *ops;
    struct exchange_setup setup;
    void *state;
    struct sparse exempt;   /* [exempts]: this rank's values, then the sum; empty by layers, whose groups have theirs */
    bool room_for_sent;     /* setup.wants_sent at open */
    bool by_layers;         /* opened by exchange_open_layers */
    bool begun;             /* between begin and run */
    enum traffic traffic;   /* the caller's setup.comm->traffic, during a step */
    struct phases *charged; /* the caller's setup.comm->phases, during a step */
};

extern const struct exchange_ops *const exchanges[]; /* every row, NULL-terminated */
const char *exchange_name(size_t i);                 /* the i-th row's, NULL past the end */

/* -- opening and closing ------------------------------------------------------------------------------------------- */

void exchange_open(struct exchange *x, const struct exchange_ops *ops, const struct exchange_setup *setup);
void exchange_close(struct exchange *x);

/* To be asked before exchange_open, which dies: can this row run over these ranks? Collective, the same answer on all
 * of them. False: one line in *e says what is wrong and what to do. */
bool exchange_serves(const struct exchange_ops *ops, struct comm *c, struct err *e);

/* In place of exchange_open: overlap by layers. A thread exchanges group after group of setup.group with the row `ops`,
 * the last group first, while backward goes on.
 * - Each group has a part of the store, a selector (selector_open_part), an exchange, and max(1, floor(k n_group / n))
 *   of k; n_group and n count the entries that compete for selection.
 * - Each draws its random numbers from a seed of its own (exchange_group_seed).
 * - x->ops becomes a row "NAME by layers", valid until close. Its begin is NULL where MPI allows no calls from a second
 *   thread (comm.any_thread): run then does all groups.
 * - Between begin and run the caller makes no call on setup.comm and leaves store, selector and hidden_phases alone.
 * - x must not be moved in memory before close.
 * - After run setup.selector->stats are those of all groups: counts added up, the smallest thresholds. */
void exchange_open_layers(struct exchange *x, const struct exchange_ops *ops, const struct exchange_setup *setup);
/* In place of exchange_close where other ranks may not answer any more: ends the thread, and frees nothing. False: it
 * is within a group, maybe for ever, and x must stay where it is. */
bool exchange_layers_abandon(struct exchange *x);
/* Of the group that begins at entry `from`: so groups of one length draw different entries. */
uint64_t exchange_group_seed(uint64_t seed, size_t from);

/* -- a step -------------------------------------------------------------------------------------------------------- */

/* Optional calls that let communication overlap backward; no effect in rows that cannot. From begin to the end of run
 * all traffic counts as TRAFFIC_EXCHANGE. run is then called with the same grad and k. */
void exchange_begin(struct exchange *x, float *grad, size_t k);
void exchange_ready(struct exchange *x, size_t from);

/* One step; collective. False: acc (dense: u), an exempt entry or a sum is NaN or infinite at sum->bad. The caller must
 * then end the job, since other ranks may be waiting. */
bool exchange_run(struct exchange *x, float *grad, size_t k, struct exchange_sum *sum);

/* update = (u + e) / P. update: device, [n]; may be the gradient. */
void exchange_mean(struct exchange *x, const struct exchange_sum *sum, float *update);

/* In place of exchange_mean: local-gradient combination (Aji, Heafield and Bogoychev, EMNLP 2019: C = G - S + L),
 *
 *        grad = (u - sent + grad) / P        and e / P where entries are exempt
 *
 * grad: device, [n], as run has left it. The result differs from rank to rank. Dies without sum->sent.
 * Rows with a `combine` do it by node: sent is the node's part of u, grad on the right the sum of its ranks' gradients,
 * and all ranks of a node get the same bits. Collective then, with exchange traffic of its own (combine_cost). */
void exchange_combine(struct exchange *x, const struct exchange_sum *sum, float *grad);

/* The row's bound of a step with this k (own_max_words, max_words), plus the words of exempt entries; summed over the
 * groups of an exchange by layers. Also holds for selectors by slices, which may select more than k. */
double exchange_max_words(const struct exchange *x, size_t k);
double exchange_layers_words(const struct exchange *x, size_t k); /* its part for exchange_open_layers */

/* The plain sum of everything: what the others are held against, and what takes their place in dense steps. */
extern const struct exchange_ops exchange_dense;
/* Every rank's own gradient: what takes the place of an exchange in the steps between two rounds. */
extern const struct exchange_ops exchange_fedavg;

/* Does it sum the gradients of steps? Not where replicas drift: fedavg sums nothing, others outer gradients. */
bool exchange_of_gradients(const struct exchange_ops *ops);

/* Does anything of its step travel in this format? All take coo32, which is as if there were none. */
bool exchange_takes(const struct exchange_ops *ops, const struct wire_ops *wire);

/* Does it keep a residual with these options and this wire (NULL: coo32), so that it uses the store? */
bool exchange_keeps(const struct exchange_ops *ops, const struct option_values *options, const struct wire_ops *wire);

/* Does it conserve gradient with these options? */
bool exchange_conserves(const struct exchange_ops *ops, const struct option_values *options);

/* Why this row's step cannot be compared with the others' at the same k, in a few words; NULL: it can. */
const char *exchange_apart(const struct exchange_ops *ops);

/* -- checkpoints --------------------------------------------------------------------------------------------------- */

/* The state besides the residual, of the row and its selectors, as pieces of plain memory, some of 0 bytes. They are
 * written out, and read back into the same places of an exchange that was opened with the same setup.
 *
 *        for (size_t i = 0; exchange_saved(&x, i, &memory, &bytes); i++) ...
 */
bool exchange_saved(struct exchange *x, size_t piece, void **memory, size_t *bytes);

/* After reading back: could a run have left this state? A file may come from anybody, and with an impossible state, or
 * one that differs between ranks, a step may wait for ever. Collective, the same answer on all ranks. False: a few
 * words in *e. */
bool exchange_check(struct exchange *x, struct err *e);

/* It draws as after so many steps, of which it knows nothing else: where a run goes on without that state, on another
 * number of ranks, what its first steps drew is not drawn once more. */
void exchange_skip(struct exchange *x, uint64_t steps);

/* -- for the rows -------------------------------------------------------------------------------------------------- */

/* As wire.h has them, in setup.wire's format; charged to PHASE_PACK. Besides, the selector and the store charge
 * PHASE_SELECT, the transport PHASE_COMMUNICATE, and the rest of a step is PHASE_MERGE. */
void exchange_round(struct exchange *x, struct sparse *s, struct sparse *error);
size_t exchange_encode(struct exchange *x, const struct sparse *s, size_t from, size_t to, void *message);
void exchange_read(struct exchange *x, void *message, size_t bytes, size_t from, size_t to, int sender,
                   struct sparse *buffer, struct sparse *view);

/* A `saved` for rows with one block of their own: that block, then the selector's pieces. */
bool exchange_saved_block(struct exchange *x, void *block, size_t size, size_t piece, void **memory, size_t *bytes);

/* The part of exchange_check that asks no other rank, for rows that contain exchanges. What must be the same on all
 * ranks is added to the hash *alike. */
bool exchange_check_own(const struct exchange *x, uint64_t *alike, struct err *e);

#endif
