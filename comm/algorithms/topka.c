/* topka.c: TopKAllReduce: every rank sends its k largest entries to all, and all add them up.
 *
 * Idea: the union of P sparse vectors of k entries each may hold up to kP, so nothing is reduced on the way: one
 * all-gather, then the sum in rank order on every rank, which gives all of them the same bits.
 *
 * Source: Shi et al., "A Distributed Synchronous SGD Algorithm with Global Top-k Sparsification for Low Bandwidth
 * Networks", ICDCS 2019 (arXiv 1901.04359), Algorithm 1; Renggli et al., "SparCML", SC 2019, the all-gather form.
 *
 * Cost per rank: log2(P) alpha + 2k(P-1) beta. Memory 2kP words and the sum.
 * Residual: acc without the entries that were sent, and what the wire format rounds off them.
 * Restrictions: none; any P, any selector.
 * Deviation: the paper gathers indices and values one after the other; here they are one message. */
#include "comm/algorithms/topka.h"

#include "base/mem.h"
#include "comm/parts/gather_sum.h"
#include "comm/parts/peers.h"

struct topka {
    struct sparse local;   /* [selector.room]: what this rank sends */
    struct sparse rounded; /* [selector.room, 0 where nothing rounds]: what the format cut off it */
    struct gather_sum gathered;
};

void topka_open(struct exchange *x) {
    struct topka *t = x->state = mem_zalloc(1, sizeof *t, x->ops->name);
    size_t cap = x->setup.selector->room;
    sparse_open(&t->local, cap);
    sparse_open(&t->rounded, x->setup.wire->rounds ? cap : 0);
    gather_sum_open(&t->gathered, x);
}

void topka_close(struct exchange *x) {
    struct topka *t = x->state;
    gather_sum_close(&t->gathered);
    sparse_close(&t->rounded);
    sparse_close(&t->local);
    mem_free(t);
}

bool topka_run(struct exchange *x, float *grad, size_t k, struct exchange_sum *sum) {
    struct topka *t = x->state;
    struct store *store = x->setup.store;
    if (!selector_run(x->setup.selector, grad, k, &t->local, &sum->bad)) return false;
    exchange_round(x, &t->local, &t->rounded);
    store_zero_at(store, &t->local);
    store_add_at(store, &t->rounded);
    gather_sum_run(&t->gathered, &t->local);
    sum->sparse = &t->gathered.sum;
    sum->sent = sum->delivered = &t->local;
    sum->local_nnz = t->local.nnz;
    sum->extra_words = t->gathered.extra_words;
    return true;
}

double topka_max_words(const struct cost_case *c) {
    return gather_sum_words(c->k, c->P);
}

void topka_cost(const struct cost_case *c, struct cost *cost) {
    gather_sum_cost(c, cost);
}

extern const struct exchange_ops exchange_topka;
const struct exchange_ops exchange_topka = {
    .name = "topka",
    .summary = "all-gather of every rank's top k, summed on all ranks",
    .paper = "TopKAllReduce in gTop-k (Shi et al., ICDCS 2019); SparCML (Renggli et al., SC 2019)",
    .default_select = "exact",
    .sparse = true,
    .selects = true,
    .sends_all = true,
    .conserves = true,
    .line_off = "an all-gather of our own with log2(P) start-ups, as the line has it",
    .open = topka_open,
    .run = topka_run,
    .close = topka_close,
    .max_words = topka_max_words,
    .cost = topka_cost,
};
