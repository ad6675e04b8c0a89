/* exchange.h: how the ranks' gradients become one sum. One file and one row in exchanges.def per algorithm.
 *
 * The contract of a step (for every row with `conserves`): in: each rank's acc_r = residual_r + grad_r;
 * out: u, the same bits on every rank, and the new residuals, with
 *
 *        sum_r acc_r == u + sum_r residual_r
 *
 * Entries that the caller exempts from selection (setup.exempt) are summed beside it: they are taken out of grad_r
 * first, so that u and the residuals stay zero there. With e, the sum over the ranks of what was taken out,
 *
 *        sum_r (residual_r + grad_r) == u + e + sum_r residual_r        (grad_r as it came; the new residuals)
 *
 * Where a residual is not zero when the exchange is opened, it leaves like any other entry.
 *
 *        struct exchange x;
 *        exchange_open(&x, &exchange_gtopk, &setup);
 *        exchange_begin(&x, grad, k);                                // where communication may overlap backward:
 *        ... backward ... exchange_ready(&x, from);                  // grad[from..n-1] is final now
 *        if (!exchange_run(&x, grad, k, &sum)) die_status(...);     // sum.bad: NaN or Inf at this index
 *        exchange_mean(&x, &sum, grad);                             // grad = (u + e) / P, dense, for the optimiser
 *        exchange_close(&x);
 */
#ifndef ST_COMM_EXCHANGE_H
#define ST_COMM_EXCHANGE_H

#include "base/clock.h"
#include "comm/comm.h"
#include "comm/cost/cost.h"
#include "comm/wire/wire.h"
#include "topk/selector.h"

/* Which entries return to the residual after gtopk (--gtopk-residual). */
enum gtopk_residual {
    GTOPK_CONSERVE, /* the merging rank keeps what it drops; a sender's entries count as delivered */
    GTOPK_PAPER /* as published (Algorithm 4): what is in the final set counts as delivered; loses mass for P >= 3 */
};

/* Ok-Topk's parameters, and its techniques, each of which can be left out (the ablations of its Figure 7). */
struct oktopk_setup {
    int period;                 /* tau': steps between exact thresholds, local and global (32) */
    int balance_period;         /* tau: steps between new region boundaries (64) */
    int bucket;                 /* receives in flight at once in split-and-reduce (4) */
    enum reuse_rule thresholds; /* the global one between exact ones; the local one's rule is the selector's */
    bool even_regions;          /* left out: boundaries at the selected indices; regions are n/P each */
    bool same_destination;      /* left out: rotation; every rank sends to 0, 1, 2, ... */
    bool no_overlap;            /* left out: bucketing; one message after the other, summed before the next */
    bool direct_gather;         /* left out: evening out before the all-gather */
};

struct exchange_setup {
    struct comm *comm;
    struct store *store;       /* the residual; rows with `sparse` use it. The others use its device: a bare one where
                                * the gradient is not in host memory, else NULL */
    struct selector *selector; /* over that store; rows with `selects` use it. By slices (topk/by_slice.h): the same
                                * slices on all ranks; not with own_parts; gtopk and oktopk cut what it returns to its
                                * k largest when that is more */
    size_t n;                  /* gradient length */
    size_t k_max;              /* largest k of any step */
    enum gtopk_residual gtopk_residual;
    const struct wire_ops *wire; /* NULL: coo32 */
    struct oktopk_setup oktopk;  /* zero: the paper's values */
    size_t bucket_bytes;         /* dense-ovlp: of one allreduce; 0: 4 MiB */
    const size_t *group; /* overlap by layers (exchange_open_layers): [groups], where each group begins, ascending, */
    size_t groups;       /* the first at 0; 0: all of it is one */
    const uint32_t *exempt; /* [exempts], strictly increasing: entries that are summed densely beside the sparse */
    size_t exempts;         /* algorithm, see exempt.h; only for rows with `sparse`. Copied. */
    bool wants_sent;        /* sum.sent and sum.delivered, which cost a step something. Where it was opened with it,
                             * x.setup.wants_sent may be cleared, and set again, from step to step */
    struct phases *phases;  /* where the time goes; may be NULL */
    struct phases *hidden_phases; /* overlap by layers: where the time of its thread goes; may be NULL */
};

/* The result of a step. Exactly one of dense and sparse is set; it stays valid until the next run. */
struct exchange_sum {
    float *dense;                /* device, [n]: u */
    const struct sparse *sparse; /* host: u */
    const struct sparse *exempt; /* host: e, [exempts] entries; NULL where none is exempt */
    size_t local_nnz;            /* entries this rank put into the exchange, without the exempt ones */
    size_t global_nnz;           /* entries of u; so neither depends on how many are exempt, and both compare with k */
    double mass_lost;            /* sum of |v| this rank dropped that is neither in u nor in a residual */
    float threshold;             /* of the global selection, where there is one (oktopk); else 0 */
    float exact_threshold;       /* the exact one, when the selector's audit was asked for; else 0 */
    unsigned evaluated;          /* why that threshold was found anew in this step: flags EVALUATED_* (topk/track.h) */
    double extra_words;          /* at most so many more words than max_words in this step, because thresholds or
                                  * boundaries were evaluated anew, message sizes that vary were gathered first, or
                                  * entries tie or crowd (see the row) */
    double hidden_seconds;       /* communication (with overlap by layers: the exchange) that ran during backward */
    size_t bad;                  /* when run fails: the index of the NaN or infinity */
    /* Both NULL without setup.wants_sent, where u is dense, and in rows with `by_node`, whose ranks add up before they
     * select. Host; indices of u only. sent: this rank's part of u. Over the ranks these add up to u (to the rounding
     * of floats): what a merge drops, or rounding cuts off a sum, counts as its sender's, who cannot know, and the rank
     * that did it counts it back, with the other sign. delivered: this rank's own entries that are in u, as they left
     * it; where sums are neither cut nor rounded on their way, the two are the same. */
    const struct sparse *sent, *delivered;
};

struct exchange;

struct exchange_ops {
    const char *name;    /* what --algo takes */
    const char *summary; /* one line for --help and `sparsetrain list` */
    const char *paper;
    const char *default_select;       /* selector of the paper; NULL for dense */
    bool sparse;                      /* uses the store, has residuals */
    bool selects;                     /* uses the selector, which --select names */
    bool conserves;                   /* the equation above holds exactly (with the default residual rule) */
    bool drifts;                      /* u is this rank's own gradient: replicas differ between averages (fedavg) */
    bool own_parts;                   /* selects in parts of its own making, so that no selector by slices serves it */
    bool by_node;                     /* goes by the nodes of struct comm (comm_set_ranks_per_node matters) */
    bool sends_all;                   /* all that the selector returns leaves, be it more than k */
    bool blind;                       /* what leaves does not go by magnitude: k entries at random places, say */
    bool ours;                        /* no paper has it in this form */
    const char *moves_as;             /* the row whose messages it sends, where each rank is a node; NULL: its own */
    void (*open)(struct exchange *x); /* allocates for the largest step */
    /* Both NULL for a row that cannot overlap. After begin, ready(from) says that grad[from..n-1] is final; from falls
     * from call to call. run then completes the step; without begin it does the whole. */
    void (*begin)(struct exchange *x, float *grad, size_t k);
    void (*ready)(struct exchange *x, size_t from);
    /* Allocates nothing. grad: device, [n], this rank's gradient; it may be overwritten (dense reduces in place). */
    bool (*run)(struct exchange *x, float *grad, size_t k, struct exchange_sum *sum);
    void (*close)(struct exchange *x);
    /* Bound on the 4-byte words (of coo32) that any one rank sends, and on those it receives, in one step, when the
     * selector keeps to k; and the cost line of the file's head, with what of it a wire format changes. */
    double (*max_words)(const struct cost_case *c);
    void (*cost)(const struct cost_case *c, struct cost *cost);
    /* exchange_saved, and exchange_check_own for what is the row's in these pieces. Both NULL: nothing but the
     * selector's is saved. */
    bool (*saved)(struct exchange *x, size_t piece, void **memory, size_t *bytes);
    bool (*check)(const struct exchange *x, uint64_t *alike, struct err *e);
    /* Can it run over these ranks? If not, false and one line in *e, on some rank at least: see exchange_serves. NULL:
     * over any. */
    bool (*serves)(const struct comm *c, struct err *e);
    /* Of a row that has no `sent` because the ranks of a node give their gradients as one: exchange_combine, but for
     * exempt entries; collective, allocates nothing. And what it adds to the cost of the step. NULL: exchange_combine's
     * own. */
    void (*combine)(struct exchange *x, const struct exchange_sum *sum, float *grad);
    void (*combine_cost)(const struct cost_case *c, struct cost *cost);
};

struct exchange {
    const struct exchange_ops *ops;
    struct exchange_setup setup;
    void *state;
    struct sparse exempt;   /* [exempts]: this rank's, then the sum; empty by layers, whose groups have theirs */
    bool room_for_sent;     /* setup.wants_sent, when it was opened */
    bool by_layers;         /* opened by exchange_open_layers */
    bool begun;             /* begin was called and run was not */
    enum traffic traffic;   /* the caller's of setup.comm, in a step */
    struct phases *charged; /* likewise */
};

extern const struct exchange_ops *const exchanges[]; /* every row, NULL-terminated */
const char *exchange_name(size_t i);                 /* the i-th row's, NULL past the end */

/* Overlap by layers: any algorithm, group by group of setup.group, the last group first, by a thread of its own while
 * backward goes on. Opened instead of exchange_open; everything else is as for any exchange. Each group has its own
 * exchange, selector (a part of setup.selector: selector_open_part) and part of the store; of k it gets
 * max(1, floor(k n_group / n)), where n_group and n leave out exempt entries and those in no slice of a selector by
 * slices. x->ops is a row of its own, valid until close, named "NAME by layers". Where MPI allows no calls from a
 * second thread (comm.any_thread) its `begin` is NULL and run does everything, one group after the other. Between begin
 * and run the caller makes no call on setup.comm, and does not touch the store, the selector and setup.hidden_phases. x
 * stays where it is until close. After a run, setup.selector->stats are those of all groups: counts added up, the
 * smallest thresholds. */
void exchange_open_layers(struct exchange *x, const struct exchange_ops *ops, const struct exchange_setup *setup);
double exchange_layers_words(const struct exchange *x, size_t k); /* exchange_max_words of one that was */

/* Why a step of this row is not to be held against one of the others with the same k, in a few words; NULL: it is. */
const char *exchange_apart(const struct exchange_ops *ops);

void exchange_open(struct exchange *x, const struct exchange_ops *ops, const struct exchange_setup *setup);
void exchange_close(struct exchange *x);

/* Can this row run over these ranks? Collective; the same answer on all of them. False: one line in *e says what is
 * wrong and what to do. To be asked before exchange_open, which dies. */
bool exchange_serves(const struct exchange_ops *ops, struct comm *c, struct err *e);

/* What a checkpoint must hold besides the residual: the exchange's own state and that of its selectors, as pieces of
 * plain memory numbered 0, 1, ...: written out, and read back into the same places of a fresh exchange that was opened
 * with the same setup. False: there is no piece of this number. A piece may be empty (0 bytes).
 *
 *        for (size_t i = 0; exchange_saved(&x, i, &memory, &bytes); i++) ...
 */
bool exchange_saved(struct exchange *x, size_t piece, void **memory, size_t *bytes);
/* For `saved` of a row that has one block itself, of so many bytes: that, and then what its selector has. */
bool exchange_saved_block(struct exchange *x, void *block, size_t size, size_t piece, void **memory, size_t *bytes);

/* After the pieces were read back, and before anything is run: can this exchange and its selectors have left them? A
 * file may be anybody's, and with a state that ranks do not share, or that no step makes, a step may wait for ever.
 * False: what is wrong, as a few words, in *e. Collective; the same answer on all ranks. */
bool exchange_check(struct exchange *x, struct err *e);
/* The part of it that asks no other rank, for rows that have exchanges inside. What must be the same on all ranks goes
 * into the hash *alike. */
bool exchange_check_own(const struct exchange *x, uint64_t *alike, struct err *e);

/* ops->max_words of a step with this k, and the words of exempt entries; with overlap by layers, of all its groups. It
 * holds for selectors by slices, which may ask for more than k. */
double exchange_max_words(const struct exchange *x, size_t k);
/* The two calls that let communication overlap backward; nothing happens for rows that cannot. From begin to the end
 * of run all traffic counts as TRAFFIC_EXCHANGE. run is then called with the same grad and k. */
void exchange_begin(struct exchange *x, float *grad, size_t k);
void exchange_ready(struct exchange *x, size_t from);

/* One step; collective. Restores the caller's phase and traffic. False: acc (dense: u), an exempt entry of grad or a
 * sum is NaN or infinite at sum->bad; the caller must end the job, the other ranks may be waiting. */
bool exchange_run(struct exchange *x, float *grad, size_t k, struct exchange_sum *sum);

/* -- for the rows -- */
/* In a step time is charged to PHASE_MERGE, but for what the selector and the store do (PHASE_SELECT), the transport
 * (PHASE_COMMUNICATE) and, in setup.wire's format, these (PHASE_PACK): see there, in wire.h, for what they do. */
void exchange_round(struct exchange *x, struct sparse *s, struct sparse *error);
size_t exchange_encode(struct exchange *x, const struct sparse *s, size_t from, size_t to, void *message);
void exchange_read(struct exchange *x, void *message, size_t bytes, size_t from, size_t to, int sender,
                   struct sparse *buffer, struct sparse *view);

/* update = (u + e) / P as a dense vector of n on the device; update may be the gradient itself. */
void exchange_mean(struct exchange *x, const struct exchange_sum *sum, float *update);

/* Local-gradient combination (Aji, Heafield and Bogoychev, EMNLP 2019, their C = G - S + L), over P:
 * grad = (u - sent + grad) / P, and e / P where entries are exempt. grad: device, [n], this rank's fresh gradient as
 * run has left it. Differs from rank to rank; over the ranks it adds up to ((P - 1) u + sum_r grad_r) / P. Dies without
 * sum->sent, or a combine.
 *
 * With a row that has a `combine` the ranks of a node are one: S is what the node has in u, L the sum of its ranks'
 * fresh gradients, and grad the same bits on all ranks of a node; over the nodes the sum of S is u. Collective then,
 * exchange traffic beside that of run: the row's combine_cost. */
void exchange_combine(struct exchange *x, const struct exchange_sum *sum, float *grad);

#endif
