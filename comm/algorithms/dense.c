/* dense.c: the baseline: MPI's allreduce over the whole gradient, in place.
 *
 * Cost per rank (Rabenseifner's reduce-scatter and all-gather, or a ring, which MPI chooses for long vectors):
 * 2 log2(P) alpha + 2n(P-1)/P beta.
 * Restrictions: a gradient on a device whose memory MPI does not take is staged through a host buffer of n, in chunks
 * of 4 MiB: while one is summed the next comes down and the one before it goes back (then 2 log2(P) alpha for each
 * chunk). There is no residual; the store, where there is one, only says on which device the gradient lies. NaN and
 * infinities are looked for in the gradient before the sum, while it is still known whose they are, and in the sum
 * after it, for overflow: two reads of n. */
#include "base/mem.h"
#include "comm/exchange.h"
#include "comm/parts/peers.h"
#include "comm/transport/host_stage.h"

static void dense_open(struct exchange *x) {
    struct host_stage *stage = x->state = mem_zalloc(1, sizeof *stage, "dense");
    host_stage_open(stage, &x->setup, true);
}

static void dense_close(struct exchange *x) {
    host_stage_close(x->state);
    mem_free(x->state);
}

static void allreduce(struct exchange *x, float *part, size_t count) {
    comm_allreduce_f32(x->setup.comm, part, count, COMM_SUM);
}

static bool dense_run(struct exchange *x, float *grad, size_t k, struct exchange_sum *sum) {
    (void)k;
    return host_stage_sum_parts(x->state, x, grad, allreduce, sum);
}

static double dense_max_words(const struct cost_case *c) {
    return 2.0 * (double)c->n * (c->P - 1) / c->P;
}

static void dense_cost(const struct cost_case *c, struct cost *cost) {
    *cost = (struct cost){.alphas = 2.0 * ceil_log2(c->P), .words = dense_max_words(c)};
}

const struct exchange_ops exchange_dense = {
    .name = "dense",
    .summary = "MPI allreduce of the whole gradient: the baseline",
    .paper = "Thakur, Rabenseifner and Gropp, IJHPCA 2005 (the allreduce inside MPI)",
    .default_select = NULL,
    .sparse = false,
    .conserves = true,
    .open = dense_open,
    .run = dense_run,
    .close = dense_close,
    .max_words = dense_max_words,
    .cost = dense_cost,
};
