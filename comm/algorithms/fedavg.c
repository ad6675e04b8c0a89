/* fedavg.c: no gradient exchange: every rank steps on its own gradient, and the caller averages the parameters now and
 * then (--average-every).
 *
 * Source: McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data", AISTATS 2017
 * (FederatedAveraging with all clients in every round).
 *
 * Cost per rank and step: nothing here; an average is an allreduce of the parameters, 2 log2(P) alpha + 2n(P-1)/P beta,
 * once in so many steps.
 * Restrictions: u is this rank's own gradient, so replicas differ between two averages; no selector, no residual.
 * Deviation: the optimiser's momentum stays local; the paper's clients use plain SGD. */
#include "comm/exchange.h"
#include "comm/transport/host_stage.h"

static void fedavg_open(struct exchange *x) {
    (void)x;
}

static bool fedavg_run(struct exchange *x, float *grad, size_t k, struct exchange_sum *sum) {
    const struct host_stage where = {.store = x->setup.store};
    size_t n = x->setup.n;
    (void)k;
    sum->bad = host_stage_nonfinite_own(&where, x, grad, n);
    if (sum->bad < n) return false;
    sum->dense = grad;
    sum->local_nnz = sum->global_nnz = 0; /* there is no sum */
    return true;
}

static double fedavg_max_words(const struct cost_case *c) {
    (void)c;
    return 0;
}

static void fedavg_cost(const struct cost_case *c, struct cost *cost) {
    (void)c;
    *cost = (struct cost){0};
}

const struct exchange_ops exchange_fedavg = {
    .name = "fedavg",
    .summary = "no exchange of gradients; parameters averaged every --average-every steps",
    .paper = "FederatedAveraging (McMahan et al., AISTATS 2017)",
    .drifts = true,
    .rounds_of = {.steps = 20},
    .open = fedavg_open,
    .run = fedavg_run,
    .close = fedavg_open,
    .max_words = fedavg_max_words,
    .cost = fedavg_cost,
};
