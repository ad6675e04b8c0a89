/* topkdsa.c: TopKDSA: SparCML's dynamic sparse allreduce: each rank adds up one region of [0,n), then all gather.
 *
 * Idea: [0,n) is cut into P equal regions. Every rank sends the entries of each region to the rank that owns it (a
 * direct exchange, destinations rotated); the owner adds them up in rank order; the sums of all regions are gathered.
 * A message carries entries, or all values of its region where that is not longer. The result is topka's, bit for bit.
 *
 * Source: Renggli et al., "SparCML: High-Performance Sparse Communication for Machine Learning", SC 2019, the split
 * all-gather with switch to dense; cost line in Li and Hoefler, PPoPP 2022 (arXiv 2201.07598), Table 1.
 *
 * Cost per rank: (P + 2 log2(P)) alpha + [4k, 2k + n] (P-1)/P beta: 4k when all ranks select the same indices, spread
 * evenly; 2k + n when the sums are dense. max_words bounds any input; it is the upper end and a little, but where most
 * ranks' entries crowd in one region and k > n/P^2 it may reach 2n (P-1)/P.
 * Residual: acc without the entries that were sent; there is one index set for both.
 * Restrictions: none; any P, any selector, any wire format. A format that rounds does so twice: before the direct
 * exchange and, by the owner, before the gathering; whoever rounds keeps the error, and counts it back in what is its
 * own of u (sum.sent).
 *
 * Deviations: the form of a message shows in its length (a dense one has 4 bytes per index of its region, a sparse one
 * is shorter), so the size exchange before the all-gather says which; the direct exchange knows dense messages too; an
 * index that no rank selected travels in a dense message as a certain NaN (no sum of finite numbers is one), so that
 * what was selected with the value 0 stays an entry. */
#include "base/mem.h"
#include "comm/exchange.h"
#include "comm/parts/own_part.h"
#include "comm/parts/peers.h"
#include "comm/parts/regions.h"

enum { TAG = 500 };

struct topkdsa {
    struct sparse local;          /* [selector.room]: what this rank sends */
    struct sparse error;          /* [selector.room]: what rounding cut off it (formats that round) */
    struct sparse reduced;        /* [owned]: the sums of this rank's region */
    struct sparse owner_error;    /* [owned] (formats that round) */
    struct sparse u;              /* [min(n, P selector.room)] */
    struct own_part mine;         /* the same: this rank's, where it is wanted (formats that round) */
    size_t region;                /* entries of the longest region */
    size_t part_cap, owned;       /* most entries of one rank in a region, of all ranks */
    size_t slot, gather_slot;     /* bytes of one of these messages */
    struct outbox outbox;         /* of both phases */
    unsigned char *inbox;         /* [P slot] */
    unsigned char *gathered;      /* [P gather_slot] */
    struct sparse *buffer;        /* [P], each [part_cap]: parts that do not lie in their messages; else NULL */
    struct sparse *part;          /* [P]: every rank's entries in this region */
    struct comm_request *receive; /* [P] by sender */
    struct comm_request *send;    /* [P] by step */
    size_t *each;                 /* [P] bytes */
    void *scratch;
};

static size_t begin_of(const struct exchange *x, int rank) {
    return (size_t)even_cut(x->setup.n, x->setup.comm->size, rank);
}

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

static void open_parts(struct exchange *x) {
    struct topkdsa *t = x->state;
    int P = x->setup.comm->size;
    bool dense = wire_capacity(x->setup.wire, t->part_cap) >= sizeof(float) * (x->setup.n / (size_t)P);
    if (!x->setup.wire->in_place || dense) {
        t->buffer = mem_alloc((size_t)P, sizeof *t->buffer, "received entries");
        for (int r = 0; r < P; r++) sparse_open(&t->buffer[r], t->part_cap);
    }
    t->part = mem_alloc((size_t)P, sizeof *t->part, "views of messages");
    t->receive = mem_alloc((size_t)P, sizeof *t->receive, "receives under way");
    t->send = mem_alloc((size_t)P, sizeof *t->send, "sends under way");
    t->each = mem_alloc((size_t)P, sizeof *t->each, "message sizes");
    t->scratch = mem_alloc(1, sparse_sum_scratch((size_t)P), "scratch of a sparse sum");
}

static void topkdsa_open(struct exchange *x) {
    struct topkdsa *t = x->state = mem_zalloc(1, sizeof *t, "topkdsa");
    const struct wire_ops *w = x->setup.wire;
    size_t P = (size_t)x->setup.comm->size, n = x->setup.n;
    size_t cap = x->setup.selector->room;
    size_t all = sparse_sum_capacity(n, P, cap);
    t->region = (n + P - 1) / P;
    t->part_cap = least(cap, t->region);
    t->owned = least(all, t->region);
    t->slot = least(wire_capacity(w, t->part_cap), sizeof(float) * t->region);
    t->gather_slot = least(wire_capacity(w, t->owned), sizeof(float) * t->region);
    sparse_open(&t->local, cap);
    sparse_open(&t->reduced, t->owned);
    sparse_open(&t->error, w->rounds ? cap : 0);
    sparse_open(&t->owner_error, w->rounds ? t->owned : 0);
    sparse_open(&t->u, all);
    if (w->rounds && x->setup.wants_sent) own_part_open(&t->mine, all);
    outbox_open(&t->outbox, regions_room(w, cap, (int)P) + wire_capacity(w, t->owned));
    t->inbox = mem_alloc(P, t->slot, "received entries");
    t->gathered = mem_alloc(P, t->gather_slot, "the messages of all ranks");
    open_parts(x);
}

static void topkdsa_close(struct exchange *x) {
    struct topkdsa *t = x->state;
    for (int r = 0; t->buffer && r < x->setup.comm->size; r++) sparse_close(&t->buffer[r]);
    mem_free(t->buffer);
    mem_free(t->scratch);
    mem_free(t->each);
    mem_free(t->send);
    mem_free(t->receive);
    mem_free(t->part);
    mem_free(t->gathered);
    mem_free(t->inbox);
    outbox_close(&t->outbox);
    own_part_close(&t->mine);
    sparse_close(&t->u);
    sparse_close(&t->owner_error);
    sparse_close(&t->error);
    sparse_close(&t->reduced);
    sparse_close(&t->local);
    mem_free(t);
}

/* -- messages ------------------------------------------------------------------------------------------ */
/* The shorter message of s, all of whose indices lie in this rank's region. Returns its bytes. */
static size_t write_message(struct exchange *x, const struct sparse *s, int region, void *message) {
    const struct wire_ops *w = x->setup.wire;
    size_t from = begin_of(x, region), to = begin_of(x, region + 1), dense = sizeof(float) * (to - from);
    size_t bytes = w->fixed && wire_capacity(w, s->nnz) >= dense ? dense : exchange_encode(x, s, from, to, message);
    if (bytes < dense) return bytes;
    dense_write(x, s, from, to, message);
    return dense;
}

/* A message of entries in this rank's own region. */
static void read_part(struct exchange *x, int sender, size_t bytes) {
    struct topkdsa *t = x->state;
    int rank = x->setup.comm->rank;
    size_t from = begin_of(x, rank), to = begin_of(x, rank + 1);
    unsigned char *message = t->inbox + (size_t)sender * t->slot;
    if (bytes == sizeof(float) * (to - from)) {
        t->part[sender] = t->buffer ? t->buffer[sender] : (struct sparse){0};
        t->part[sender].nnz = 0;
        dense_read(x, message, from, to, sender, &t->part[sender]);
        return;
    }
    exchange_read(x, message, bytes, from, to, sender, t->buffer ? &t->buffer[sender] : NULL, &t->part[sender]);
}

/* -- the two phases ------------------------------------------------------------------------------------ */
static void send_regions(struct exchange *x) {
    struct topkdsa *t = x->state;
    struct comm *c = x->setup.comm;
    for (int step = 1; step < c->size; step++) {
        int source = rotate_from(c->size, c->rank, step);
        comm_irecv(c, source, TAG, t->inbox + (size_t)source * t->slot, t->slot, &t->receive[source]);
    }
    for (int step = 0; step < c->size; step++) {
        int owner = rotate_to(c->size, c->rank, step);
        struct sparse part = sparse_between(&t->local, begin_of(x, owner), begin_of(x, owner + 1));
        if (step == 0) {
            t->part[owner] = part;
            continue;
        }
        void *message = outbox_next(&t->outbox, wire_capacity(x->setup.wire, part.nnz));
        size_t bytes = write_message(x, &part, owner, message);
        outbox_add(&t->outbox, bytes);
        comm_isend(c, owner, TAG, message, bytes, &t->send[step]);
    }
}

/* t->reduced = the sum of this rank's region, in rank order. */
static void reduce(struct exchange *x) {
    struct topkdsa *t = x->state;
    struct comm *c = x->setup.comm;
    for (int step = 1; step < c->size; step++) {
        int source = rotate_from(c->size, c->rank, step);
        size_t bytes = comm_wait(c, &t->receive[source]);
        read_part(x, source, bytes);
    }
    sparse_sum(t->part, (size_t)c->size, x->setup.n, &t->reduced, t->scratch);
    exchange_round(x, &t->reduced, &t->owner_error);
}

static void gather(struct exchange *x) {
    struct topkdsa *t = x->state;
    struct comm *c = x->setup.comm;
    void *message = outbox_next(&t->outbox, wire_capacity(x->setup.wire, t->reduced.nnz));
    size_t bytes = write_message(x, &t->reduced, c->rank, message);
    comm_allgather_sizes(c, bytes, t->gather_slot, t->each);
    comm_allgatherv(c, message, bytes, t->gathered, t->each);
    for (int step = 1; step < c->size; step++) comm_wait(c, &t->send[step]);
    unsigned char *at = t->gathered;
    t->u.nnz = 0;
    for (int r = 0; r < c->size; at += t->each[r++]) {
        size_t from = begin_of(x, r), to = begin_of(x, r + 1);
        if (t->each[r] == sizeof(float) * (to - from))
            dense_read(x, at, from, to, r, &t->u);
        else
            regions_append(x, at, t->each[r], from, to, r, &t->u);
    }
}

/* This rank's part of u: what it sent, less what it cut off the sums of its region. */
static void tell_sent(struct exchange *x, struct exchange_sum *sum) {
    struct topkdsa *t = x->state;
    sum->sent = sum->delivered = &t->local;
    if (!x->setup.wire->rounds || !x->setup.wants_sent) return;
    own_part_begin(&t->mine, &t->u);
    own_part_add(&t->mine, &t->local);
    own_part_take(&t->mine, &t->owner_error);
    sum->sent = own_part_end(&t->mine);
}

static bool topkdsa_run(struct exchange *x, float *grad, size_t k, struct exchange_sum *sum) {
    struct topkdsa *t = x->state;
    struct store *store = x->setup.store;
    if (!selector_run(x->setup.selector, grad, k, &t->local, &sum->bad)) return false;
    exchange_round(x, &t->local, &t->error);
    t->outbox.used = 0;
    send_regions(x);
    store_zero_at(store, &t->local); /* while the messages are under way */
    store_add_at(store, &t->error);
    reduce(x);
    store_add_at(store, &t->owner_error);
    gather(x);
    sum->sparse = &t->u;
    tell_sent(x, sum);
    sum->local_nnz = t->local.nnz;
    return true;
}

/* -- costs --------------------------------------------------------------------------------------------- */
/* For any input. m = ceil(n/P). A rank sends at most 2k words directly and its region to the others; it receives up to
 * x <= min(2k, m) words from each rank, and in the gathering what the rest of all entries can make of other regions:
 *        max over x of x (P-1) + min((2k - x) P, n - m), whose best x is where the two ends of the min meet;
 * and 2 words with the size of each message. */
static double topkdsa_max_words(const struct cost_case *c) {
    double P = c->P, n = (double)c->n, k2 = 2 * (double)c->k, m = (double)((c->n + (size_t)c->P - 1) / (size_t)c->P);
    double direct = k2 < m ? k2 : m, owned = k2 * P < m ? k2 * P : m, others = n - (double)(c->n / (size_t)c->P);
    double best = k2 - others / P;
    best = best < 0 ? 0 : best > direct ? direct : best;
    double rest = (k2 - best) * P < others ? (k2 - best) * P : others;
    double sends = k2 + (P - 1) * owned, receives = best * (P - 1) + rest;
    return c->P == 1 ? 0 : (sends > receives ? sends : receives) + 2 * (P - 1);
}

/* The upper end of the interval: what is gathered is dense. */
static void topkdsa_cost(const struct cost_case *c, struct cost *cost) {
    double P = c->P, k = (double)c->k, n = (double)c->n;
    *cost = (struct cost){.alphas = c->P == 1 ? 0 : P + 2.0 * ceil_log2(c->P),
                          .words = (2 * k + n) * (P - 1) / P,
                          .sparse = {P - 1, k / P, k / n, .packed = P - 1, .unpacked = P - 1}};
}

extern const struct exchange_ops exchange_topkdsa;
const struct exchange_ops exchange_topkdsa = {
    .name = "topkdsa",
    .summary = "each rank adds up one of P equal regions, then all gather; dense where that is shorter",
    .paper = "SparCML (Renggli et al., SC 2019); TopkDSA in Ok-Topk, Table 1",
    .default_select = "exact",
    .sparse = true,
    .selects = true,
    .sends_all = true,
    .conserves = true,
    .line_off =
        "the line is its upper end (all of n gathered); and messages to all ranks wait together for their start-up",
    .simulation = {.rank = 2e-3, .peer = 0.05e-3, .entry_peer = 0.05e-6, .held_arrays = 16, .held_lists = 55},
    .open = topkdsa_open,
    .run = topkdsa_run,
    .close = topkdsa_close,
    .max_words = topkdsa_max_words,
    .cost = topkdsa_cost,
};
