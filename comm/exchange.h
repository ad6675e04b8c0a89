/* exchange.h: how the ranks' gradients become one sum. One file and one row in exchanges.def per algorithm.
 *
 * The contract of a step (for every row with `conserves`): in: each rank's acc_r = residual_r + grad_r;
 * out: u, the same bits on every rank, and the new residuals, with
 *
 *        sum_r acc_r == u + sum_r residual_r
 *
 *        struct exchange x;
 *        exchange_open(&x, &exchange_gtopk, &setup);
 *        if (!exchange_run(&x, grad, k, &sum)) die_status(...);     // sum.bad: NaN or Inf at this index
 *        exchange_mean(&x, &sum, grad);                             // grad = u / P, dense, for the optimiser
 *        exchange_close(&x);
 */
#ifndef ST_COMM_EXCHANGE_H
#define ST_COMM_EXCHANGE_H

#include "base/clock.h"
#include "comm/comm.h"
#include "topk/selector.h"

/* Which entries return to the residual after gtopk (--gtopk-residual). */
enum gtopk_residual {
    GTOPK_CONSERVE, /* the merging rank keeps what it drops; a sender's entries count as delivered */
    GTOPK_PAPER /* as published (Algorithm 4): what is in the final set counts as delivered; loses mass for P >= 3 */
};

struct exchange_setup {
    struct comm *comm;
    struct store *store;       /* the residual; every row but dense uses it */
    struct selector *selector; /* over that store; every row but dense uses it */
    size_t n;                  /* gradient length */
    size_t k_max;              /* largest k of any step */
    enum gtopk_residual gtopk_residual;
    struct phases *phases; /* where the time goes; may be NULL */
};

/* The result of a step. Exactly one of dense and sparse is set; it stays valid until the next run. */
struct exchange_sum {
    float *dense;                /* device, [n]: u */
    const struct sparse *sparse; /* host: u */
    size_t local_nnz;            /* entries this rank put into the exchange */
    size_t global_nnz;           /* entries of u */
    double mass_lost;            /* sum of |v| this rank dropped that is neither in u nor in a residual */
    size_t bad;                  /* when run fails: the index of the NaN or infinity */
};

struct exchange;

struct exchange_ops {
    const char *name;    /* what --algo takes */
    const char *summary; /* one line for --help and `sparsetrain list` */
    const char *paper;
    const char *default_select;       /* selector of the paper; NULL for dense */
    bool sparse;                      /* uses store and selector */
    bool conserves;                   /* the equation above holds exactly (with the default residual rule) */
    void (*open)(struct exchange *x); /* allocates for the largest step */
    /* Allocates nothing. grad: device, [n], this rank's gradient; it may be overwritten (dense reduces in place). */
    bool (*run)(struct exchange *x, float *grad, size_t k, struct exchange_sum *sum);
    void (*close)(struct exchange *x);
    /* Bound on the 4-byte words that any one rank sends, and on those it receives, in one step. */
    double (*max_words)(size_t n, size_t k, int P);
};

struct exchange {
    const struct exchange_ops *ops;
    struct exchange_setup setup;
    void *state;
};

extern const struct exchange_ops *const exchanges[]; /* every row, NULL-terminated */

void exchange_open(struct exchange *x, const struct exchange_ops *ops, const struct exchange_setup *setup);
void exchange_close(struct exchange *x);

/* One step; collective. Restores the caller's phase and traffic. False: acc (dense: u) holds a NaN or an
 * infinity at sum->bad; the caller must end the job, the other ranks may be waiting. */
bool exchange_run(struct exchange *x, float *grad, size_t k, struct exchange_sum *sum);

/* update = u / P as a dense vector of n on the device; update may be the gradient itself. */
void exchange_mean(struct exchange *x, const struct exchange_sum *sum, float *update);

#endif
