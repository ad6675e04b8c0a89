/* gather_sum.c: see gather_sum.h. One message per rank holds indices and values together: published code gathers
 * them one after the other and pays the start-up time twice. With a selector that returns exactly k the sizes are
 * known and one all-gather does it; else the counts are gathered first.
 *
 * Cost per rank: log2(P) alpha + 2k(P-1) beta; with varying counts another log2(P) alpha + 2(P-1) beta. */
#include "comm/gather_sum.h"

#include "base/mem.h"
#include "comm/wire.h"

void gather_sum_open(struct gather_sum *g, const struct exchange_setup *setup) {
    size_t P = (size_t)setup->comm->size;
    const struct selector_ops *select = setup->selector->ops;
    *g = (struct gather_sum){.setup = setup, .format = setup->wire};
    g->cap = select->exact_count ? setup->k_max : selector_capacity(select, setup->n, setup->k_max);
    g->wire = mem_alloc(P, wire_capacity(g->format, g->cap), "the messages of all ranks");
    g->counts = mem_alloc(P, sizeof *g->counts, "entry counts");
    g->each = mem_alloc(P, sizeof *g->each, "message sizes");
    g->part = mem_alloc(P, sizeof *g->part, "views of messages");
    g->scratch = mem_alloc(1, sparse_sum_scratch(P), "scratch of a sparse sum");
    sparse_open(&g->sum, setup->n / P < g->cap ? setup->n : P * g->cap);
}

void gather_sum_close(struct gather_sum *g) {
    sparse_close(&g->sum);
    mem_free(g->scratch);
    mem_free(g->part);
    mem_free(g->each);
    mem_free(g->counts);
    mem_free(g->wire);
}

/* g->each from every rank's nnz. */
static void gather_sizes(struct gather_sum *g, size_t nnz) {
    struct comm *c = g->setup->comm;
    g->counts[c->rank] = nnz;
    if (!g->setup->selector->ops->exact_count)
        comm_allgather(c, &g->counts[c->rank], sizeof *g->counts, g->counts);
    else
        for (int r = 0; r < c->size; r++) g->counts[r] = nnz;
    for (int r = 0; r < c->size; r++) {
        if (g->counts[r] > g->cap) die("rank %d selected %zu entries where at most %zu fit", r, g->counts[r], g->cap);
        g->each[r] = wire_capacity(g->format, g->counts[r]);
    }
}

static void gather(struct gather_sum *g, const struct sparse *local) {
    struct comm *c = g->setup->comm;
    phase_enter(g->setup->phases, PHASE_COMMUNICATE);
    gather_sizes(g, local->nnz);
    unsigned char *mine = g->wire;
    for (int r = 0; r < c->rank; r++) mine += g->each[r];
    phase_enter(g->setup->phases, PHASE_PACK);
    g->format->encode(local, 0, g->setup->n, mine);
    phase_enter(g->setup->phases, PHASE_COMMUNICATE);
    if (g->setup->selector->ops->exact_count)
        comm_allgather(c, mine, g->each[c->rank], g->wire);
    else
        comm_allgatherv(c, mine, g->each[c->rank], g->wire, g->each);
}

void gather_sum_run(struct gather_sum *g, const struct sparse *local) {
    int P = g->setup->comm->size;
    gather(g, local);
    phase_enter(g->setup->phases, PHASE_PACK);
    unsigned char *at = g->wire;
    for (int r = 0; r < P; at += g->each[r++])
        wire_read(g->format, at, g->each[r], 0, g->setup->n, r, NULL, &g->part[r]);
    phase_enter(g->setup->phases, PHASE_MERGE);
    sparse_sum(g->part, (size_t)P, g->setup->n, &g->sum, g->scratch);
}

double gather_sum_words(size_t k, int P) {
    return 2.0 * (double)k * (P - 1);
}
