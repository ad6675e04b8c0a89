/* dense.c: the baseline: MPI's allreduce over the whole gradient, in place.
 *
 * Cost per rank (Rabenseifner's reduce-scatter and all-gather, or a ring, which MPI chooses for long vectors):
 * 2 log2(P) alpha + 2n(P-1)/P beta.
 * Restrictions: MPI sums in host memory, so a gradient on another device is staged through a host buffer of n.
 * There is no residual; the store, where there is one, only says on which device the gradient lies.
 * NaN and infinities are looked for in the gradient before the sum, while it is still known whose they are, and in
 * the sum after it, for overflow: two reads of n. */
#include "base/mem.h"
#include "comm/exchange.h"
#include "comm/peers.h"
#include "topk/finite.h"

struct dense {
    const struct device_ops *device; /* NULL: the gradient is in host memory */
    float *stage;                    /* [n] host; NULL where device is */
};

static void dense_open(struct exchange *x) {
    struct dense *d = x->state = mem_zalloc(1, sizeof *d, "dense");
    if (!x->setup.store || x->setup.store->device == device_find("cpu")) return;
    d->device = x->setup.store->device;
    d->stage = mem_alloc(x->setup.n, sizeof *d->stage, "the gradient on its way from the device");
}

static void dense_close(struct exchange *x) {
    struct dense *d = x->state;
    mem_free(d->stage);
    mem_free(d);
}

static bool all_finite(const float *v, size_t n, size_t *bad) {
    *bad = first_nonfinite(v, n);
    return *bad == n;
}

static bool dense_run(struct exchange *x, float *grad, size_t k, struct exchange_sum *sum) {
    struct dense *d = x->state;
    size_t n = x->setup.n;
    (void)k;
    float *host = d->device ? d->stage : grad;
    phase_enter(x->setup.phases, PHASE_PACK);
    if (d->device) d->device->to_host(host, grad, n * sizeof *host);
    phase_enter(x->setup.phases, PHASE_SELECT);
    if (!all_finite(host, n, &sum->bad)) return false;
    phase_enter(x->setup.phases, PHASE_COMMUNICATE);
    comm_allreduce_f32(x->setup.comm, host, n, COMM_SUM);
    phase_enter(x->setup.phases, PHASE_MERGE);
    if (!all_finite(host, n, &sum->bad)) return false;
    phase_enter(x->setup.phases, PHASE_PACK);
    if (d->device) d->device->to_device(grad, host, n * sizeof *host);
    sum->dense = grad;
    sum->local_nnz = sum->global_nnz = n;
    return true;
}

static double dense_max_words(const struct cost_case *c) {
    return 2.0 * (double)c->n * (c->P - 1) / c->P;
}

static void dense_cost(const struct cost_case *c, struct cost *cost) {
    *cost = (struct cost){.alphas = 2.0 * ceil_log2(c->P), .words = dense_max_words(c)};
}

extern const struct exchange_ops exchange_dense;
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
