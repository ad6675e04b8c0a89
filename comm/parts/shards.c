/* shards.c: see shards.h. */
#include "comm/parts/shards.h"

#include "base/mem.h"
#include "comm/parts/peers.h"
#include "comm/parts/regions.h"

/* -- the grid ------------------------------------------------------------------------------------------------ */
bool shards_serve(const struct comm *c, struct err *e) {
    if (c->local_size * c->nodes == c->size) return true;
    return err_set(
        e,
        "hitopk and torus2d need as many ranks on every node, but %d ranks are on %d nodes, %d of them on %s: "
        "start the job with as many on each, or set --ranks-per-node to a number that divides %d",
        c->size, c->nodes, c->local_size, comm_host(), c->size);
}

void shards_open(struct shards *s, struct comm *c, size_t n) {
    *s = (struct shards){.inside = comm_split(c, c->node, c->local_rank),
                         .across = comm_split(c, c->local_rank, c->node)};
    int m = s->inside->size;
    s->each = mem_alloc((size_t)m, sizeof *s->each, "sizes of shards");
    s->bytes = mem_alloc((size_t)m, sizeof *s->bytes, "sizes of shards");
    for (int j = 0; j < m; j++) {
        s->each[j] = front_part(n, m, j);
        s->bytes[j] = s->each[j] * sizeof(float);
        if (j < s->inside->rank) s->from += s->each[j];
    }
    s->count = s->each[s->inside->rank];
    s->scratch = mem_alloc(comm_reduce_scatter_scratch(s->inside, s->each), sizeof *s->scratch, "sums of shards");
}

void shards_close(struct shards *s) {
    mem_free(s->scratch);
    mem_free(s->bytes);
    mem_free(s->each);
    comm_split_close(s->across);
    comm_split_close(s->inside);
}

/* -- sparse vectors to all ranks of a group -------------------------------------------------------------------- */
static const uint64_t DENSE = (uint64_t)1 << 63;

void sparse_gather_open(struct sparse_gather *g, struct exchange *x, struct comm *c, size_t cap) {
    const struct wire_ops *wire = x->setup.wire;
    size_t size = (size_t)c->size, sparse = wire_capacity(wire, cap), dense = 2 * cap * sizeof(float);
    *g = (struct sparse_gather){.x = x, .comm = c, .cap = cap, .room = sparse > dense ? sparse : dense};
    g->message = mem_alloc(size, g->room, "the messages of a group of ranks");
    g->heads = mem_alloc(size, sizeof *g->heads, "lengths of messages");
    g->each = mem_alloc(size, sizeof *g->each, "lengths of messages");
    g->rank = mem_alloc(size, sizeof *g->rank, "ranks of a group");
    g->part = mem_zalloc(size, sizeof *g->part, "views of messages");
    for (struct comm *job = c;; job = job->parent) {
        g->rank[c->rank] = job->rank;
        if (!job->parent) break;
    }
    comm_allgather(c, &g->rank[c->rank], sizeof *g->rank, g->rank);
    g->buffer = mem_zalloc(size, sizeof *g->buffer, "decoded messages");
    for (size_t r = 0; r < size; r++) sparse_open(&g->buffer[r], cap);
}

void sparse_gather_close(struct sparse_gather *g) {
    for (int r = 0; r < g->comm->size; r++) sparse_close(&g->buffer[r]);
    mem_free(g->buffer);
    mem_free(g->part);
    mem_free(g->rank);
    mem_free(g->each);
    mem_free(g->heads);
    mem_free(g->message);
}

static void read_dense(const struct sparse_gather *g, int r, const void *message, size_t bytes, size_t range) {
    if (bytes != range * sizeof(float)) die("rank %d sent %zu bytes in place of %zu values", g->rank[r], bytes, range);
    g->part[r] = g->buffer[r];
    g->part[r].nnz = 0;
    dense_read(g->x, message, 0, range, g->rank[r], &g->part[r]);
}

/* This rank's message into its own buffer of the wire, at the beginning of g->message. Returns its head. */
static uint64_t pack(struct sparse_gather *g, const struct sparse *mine, size_t range, bool known) {
    if (mine->nnz > g->cap) die("%zu entries where at most %zu fit", mine->nnz, g->cap);
    if (mine->nnz <= range / 2 || known) return exchange_encode(g->x, mine, 0, range, g->message);
    dense_write(g->x, mine, 0, range, g->message);
    return range * sizeof(float) | DENSE;
}

/* g->each from all ranks' heads; returns where this rank's message belongs. */
static unsigned char *find_places(struct sparse_gather *g) {
    unsigned char *at = g->message, *mine = NULL;
    for (int r = 0; r < g->comm->size; r++) {
        g->each[r] = (size_t)(g->heads[r] & ~DENSE);
        if (g->each[r] > g->room)
            die("rank %d has a message of %zu bytes, not up to %zu", g->rank[r], g->each[r], g->room);
        if (r == g->comm->rank) mine = at;
        at += g->each[r];
    }
    return mine;
}

static void unpack(struct sparse_gather *g, const size_t *range) {
    unsigned char *at = g->message;
    for (int r = 0; r < g->comm->size; at += g->each[r++]) {
        if (g->heads[r] & DENSE)
            read_dense(g, r, at, g->each[r], range[r]);
        else
            exchange_read(g->x, at, g->each[r], 0, range[r], g->rank[r], &g->buffer[r], &g->part[r]);
    }
}

void sparse_gather_run(struct sparse_gather *g, const struct sparse *mine, const size_t *range, bool known) {
    struct comm *c = g->comm;
    known = known && g->x->setup.wire->fixed;
    uint64_t head = pack(g, mine, range[c->rank], known);
    for (int r = 0; r < c->size; r++) g->heads[r] = head;
    if (!known) comm_allgather(c, &g->heads[c->rank], sizeof *g->heads, g->heads);
    unsigned char *place = find_places(g);
    memmove(place, g->message, g->each[c->rank]);
    if (known)
        comm_allgather(c, place, g->each[c->rank], g->message);
    else
        comm_allgatherv(c, place, g->each[c->rank], g->message, g->each);
    unpack(g, range);
}
