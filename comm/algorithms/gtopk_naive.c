/* gtopk_naive.c: the global top k, by gathering everything: the reference for gtopk.
 *
 * Idea: topka's sum has up to kP entries; only the k largest of them are applied. What a rank sent but was not
 * kept goes back to its residual: here it simply never leaves it.
 *
 * Source: Shi et al., "A Distributed Synchronous SGD Algorithm with Global Top-k Sparsification for Low Bandwidth
 * Networks", ICDCS 2019 (arXiv 1901.04359), Algorithm 2.
 *
 * Cost per rank: log2(P) alpha + 2k(P-1) beta, as topka; k(P+1) more keys for the second selection.
 * Residual: acc without the entries that were sent and kept (what the wire format rounded off those stays). Conserves:
 * an index that is kept is delivered by every rank that sent it, one that is not kept by none. Restrictions: none.
 * Deviations: one message per rank (see topka.c). */
#include "base/mem.h"
#include "comm/parts/gather_sum.h"
#include "comm/parts/peers.h"

struct gtopk_naive {
    struct sparse local;     /* [selector.room]: what this rank sends */
    struct sparse delivered; /* [selector.room]: those of them that were kept */
    struct sparse rounded;   /* [selector.room, 0 where nothing rounds]: what the format cut off local */
    struct sparse error;     /* the same: the part of it that belongs to delivered */
    struct gather_sum gathered;
    uint32_t *keys; /* [gathered.sum.cap] */
};

static void gtopk_naive_open(struct exchange *x) {
    struct gtopk_naive *t = x->state = mem_zalloc(1, sizeof *t, "gtopk-naive");
    size_t cap = x->setup.selector->room;
    sparse_open(&t->local, cap);
    sparse_open(&t->delivered, cap);
    sparse_open(&t->rounded, x->setup.wire->rounds ? cap : 0);
    sparse_open(&t->error, x->setup.wire->rounds ? cap : 0);
    gather_sum_open(&t->gathered, x);
    t->keys = mem_alloc(t->gathered.sum.cap, sizeof *t->keys, "keys of a selection");
}

static void gtopk_naive_close(struct exchange *x) {
    struct gtopk_naive *t = x->state;
    mem_free(t->keys);
    gather_sum_close(&t->gathered);
    sparse_close(&t->error);
    sparse_close(&t->rounded);
    sparse_close(&t->delivered);
    sparse_close(&t->local);
    mem_free(t);
}

static bool gtopk_naive_run(struct exchange *x, float *grad, size_t k, struct exchange_sum *sum) {
    struct gtopk_naive *t = x->state;
    struct store *store = x->setup.store;
    if (!selector_run(x->setup.selector, grad, k, &t->local, &sum->bad)) return false;
    exchange_round(x, &t->local, &t->rounded);
    gather_sum_run(&t->gathered, &t->local);
    struct sparse *u = &t->gathered.sum;
    sparse_keep_top(u, k, NULL, t->keys);
    sparse_split(&t->local, u, &t->delivered, NULL);
    sparse_split(&t->rounded, u, &t->error, NULL);
    store_zero_at(store, &t->delivered);
    store_add_at(store, &t->error);
    sum->sparse = u;
    sum->sent = sum->delivered = &t->delivered;
    sum->extra_words = t->gathered.extra_words;
    sum->local_nnz = t->local.nnz;
    return true;
}

static double gtopk_naive_max_words(const struct cost_case *c) {
    return gather_sum_words(c->k, c->P);
}

static void gtopk_naive_cost(const struct cost_case *c, struct cost *cost) {
    gather_sum_cost(c, cost);
}

extern const struct exchange_ops exchange_gtopk_naive;
const struct exchange_ops exchange_gtopk_naive = {
    .name = "gtopk-naive",
    .summary = "topka's sum cut to its k largest entries; the reference for gtopk",
    .paper = "gTop-k Algorithm 2 (Shi et al., ICDCS 2019)",
    .default_select = "exact",
    .sparse = true,
    .selects = true,
    .sends_all = true,
    .keeps_k = true,
    .conserves = true,
    .moves_as = "topka",
    .open = gtopk_naive_open,
    .run = gtopk_naive_run,
    .close = gtopk_naive_close,
    .max_words = gtopk_naive_max_words,
    .cost = gtopk_naive_cost,
};
