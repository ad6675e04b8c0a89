/* gather_sum.c: see gather_sum.h. One message per rank holds indices and values together: published code gathers
 * them one after the other and pays the start-up time twice. With a selector that returns exactly k and a format of
 * fixed length the sizes are known and one all-gather does it; else the sizes are gathered first.
 *
 * Cost per rank: log2(P) alpha + 2k(P-1) beta; where sizes vary another log2(P) alpha + 2(P-1) beta. */
#include "comm/parts/gather_sum.h"

#include "base/mem.h"
#include "comm/parts/peers.h"
#include "comm/wire/wire.h"

void gather_sum_open(struct gather_sum *g, struct exchange *x) {
    const struct exchange_setup *setup = &x->setup;
    size_t P = (size_t)setup->comm->size;
    const struct selector_ops *select = setup->selector->ops;
    *g = (struct gather_sum){.x = x, .format = setup->wire};
    g->cap = setup->selector->most;
    g->same_size = select->exact_count && g->format->fixed;
    g->wire = mem_alloc(P, wire_capacity(g->format, g->cap), "the messages of all ranks");
    if (!g->format->fixed) g->mine = mem_alloc(1, wire_capacity(g->format, g->cap), "a message");
    g->each = mem_alloc(P, sizeof *g->each, "message sizes");
    g->part = mem_alloc(P, sizeof *g->part, "views of messages");
    g->scratch = mem_alloc(1, sparse_sum_scratch(P), "scratch of a sparse sum");
    sparse_open(&g->unpacked, g->format->in_place ? 0 : P * g->cap);
    sparse_open(&g->sum, sparse_sum_capacity(setup->n, P, g->cap));
}

void gather_sum_close(struct gather_sum *g) {
    sparse_close(&g->sum);
    sparse_close(&g->unpacked);
    mem_free(g->scratch);
    mem_free(g->part);
    mem_free(g->each);
    mem_free(g->mine);
    mem_free(g->wire);
}

/* g->each, from this rank's message of so many bytes. */
static void gather_sizes(struct gather_sum *g, size_t bytes) {
    struct comm *c = g->x->setup.comm;
    g->extra_words = 0;
    if (g->same_size) {
        for (int r = 0; r < c->size; r++) g->each[r] = bytes;
        return;
    }
    comm_allgather_sizes(c, bytes, wire_capacity(g->format, g->cap), g->each);
    g->extra_words = (double)sizeof *g->each / 4 * (c->size - 1);
}

static void gather(struct gather_sum *g, const struct sparse *local) {
    struct comm *c = g->x->setup.comm;
    unsigned char *mine = g->mine;
    size_t bytes = wire_capacity(g->format, local->nnz);
    if (mine) bytes = exchange_encode(g->x, local, 0, g->x->setup.n, mine);
    gather_sizes(g, bytes);
    if (!mine) {
        mine = g->wire;
        for (int r = 0; r < c->rank; r++) mine += g->each[r];
        exchange_encode(g->x, local, 0, g->x->setup.n, mine);
    }
    /* MPI's own takes P/2 start-ups and more where the vectors are long; this one takes log2(P) for any length. */
    comm_allgatherv(c, mine, bytes, g->wire, g->each);
}

/* The r-th part of the buffer for entries that do not lie in their message. */
static struct sparse buffer_of(const struct gather_sum *g, int r) {
    if (g->format->in_place) return (struct sparse){0};
    size_t at = (size_t)r * g->cap;
    return (struct sparse){.idx = g->unpacked.idx + at, .val = g->unpacked.val + at, .cap = g->cap};
}

void gather_sum_run(struct gather_sum *g, const struct sparse *local) {
    int P = g->x->setup.comm->size;
    gather(g, local);
    unsigned char *at = g->wire;
    for (int r = 0; r < P; at += g->each[r++]) {
        struct sparse buffer = buffer_of(g, r);
        exchange_read(g->x, at, g->each[r], 0, g->x->setup.n, r, &buffer, &g->part[r]);
    }
    sparse_sum(g->part, (size_t)P, g->x->setup.n, &g->sum, g->scratch);
}

void gather_sum_cost(const struct cost_case *c, struct cost *cost) {
    double others = c->P - 1, k = (double)c->k;
    *cost = (struct cost){.alphas = ceil_log2(c->P),
                          .words = gather_sum_words(c->k, c->P),
                          .sparse = {others, k, k / (double)c->n, .packed = others > 0, .unpacked = others},
                          .size_alphas = ceil_log2(c->P),
                          .size_words = 2 * others};
}

double gather_sum_words(size_t k, int P) {
    return 2.0 * (double)k * (P - 1);
}
