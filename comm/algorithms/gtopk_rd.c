/* gtopk_rd.c: the global top k by recursive doubling: gTop-k's merges, done by all ranks at once.
 *
 * Idea: gTop-k's tree leaves half of the ranks idle in every round and then sends the result all the way down again.
 * Here the two ranks of a pair send each other what they have and both merge, so that after log2(P) rounds every rank
 * holds the result: half the start-ups and half the words on the longest path, which decides where a message's start-up
 * is dear (Ethernet) and k small. Ranks beyond the largest power of two fold in first and get the result at the end.
 *
 * Sources: the merges are those of Shi et al., ICDCS 2019 (gTop-k), Algorithm 3; the schedule is the recursive doubling
 * of Renggli et al., SC 2019 (SparCML, SSAR_Recursive_double), there without a cut to k. The combination is ours.
 *
 * Cost: log2(Q) + 2 [P > Q] messages in a row, Q the largest power of two up to P, each of k entries: as many alpha and
 * 2k words each; a rank sends and receives at most log2(Q) + [P > Q] of them.
 *
 * All ranks hold the same bits: both ranks of a pair add the lower one's vector and the higher one's, in this order.
 *
 * Residual. Entries of a rank whose indices did not reach the final set stay with that rank, as they were. Where an
 * index did, but a merge on the way cut off a part of its sum, or a wire format rounded it, all ranks that made this
 * merge know that part: one of them keeps it, by its index, so that no rank keeps more than its share, and counts it
 * back in what is its own of u (sum.sent).
 *
 * Restrictions: none. A selector that returns more than k has its selection cut to k before anything is sent. */
#include "base/mem.h"
#include "comm/exchange.h"
#include "comm/parts/own_part.h"
#include "comm/parts/peers.h"
#include "comm/wire/wire.h"

enum { TAG_FOLD = 800, TAG_RESULT = 801, TAG_ROUND = 810, ROUNDS_MAX = 32 };

/* What a merge or rounding cut off a sum that `holders` ranks computed alike. */
struct cut_off {
    struct sparse part; /* [k_max] */
    uint32_t holders;   /* a power of two */
};

struct doubling {
    struct sparse local;     /* [selector.room]: what this rank selected */
    struct sparse merged[2]; /* [2 k_max]: written in turns */
    struct sparse own_error; /* [k_max, 0 where nothing rounds]: what the format cut off local */
    struct cut_off *cut;     /* [cuts]: by merges and by rounding, in the order of the step */
    int cuts;                /* how many there can be */
    int used;                /* in this step */
    struct sparse delivered; /* [k_max]: the part of local that is in the final set */
    struct sparse overlap;   /* [k_max]: that of something cut off */
    struct own_part mine;    /* [k_max]: this rank's of u, where it is wanted */
    struct sparse unpacked;  /* [k_max, 0 where a message is used where it lies] */
    struct sparse theirs;    /* view of a message */
    unsigned char *inbox;    /* [wire_capacity(k_max)] */
    unsigned char *outbox;   /* [wire_capacity(k_max)] */
    uint32_t *keys;          /* [selector.room, at least 2 k_max] */
};

/* -- whom a rank works with ------------------------------------------------------------------------------------- */
/* Q: the ranks that double; rank Q + i is folded into rank i. */
static int doubling_ranks(const struct exchange *x) {
    return floor_power_of_two(x->setup.comm->size);
}

/* The rank that is folded into this one, or that this one is folded into; -1: neither. */
static int fold_partner(const struct exchange *x) {
    int Q = doubling_ranks(x), rank = x->setup.comm->rank;
    if (rank >= Q) return rank - Q;
    return rank + Q < x->setup.comm->size ? rank + Q : -1;
}

static bool is_folded(const struct exchange *x) {
    return x->setup.comm->rank >= doubling_ranks(x);
}

/* -- opening ---------------------------------------------------------------------------------------------------- */
static void doubling_open(struct exchange *x) {
    struct doubling *t = x->state = mem_zalloc(1, sizeof *t, "gtopk-rd");
    size_t k = x->setup.k_max, room = x->setup.selector->room;
    const struct wire_ops *wire = x->setup.wire;
    sparse_open(&t->local, room);
    sparse_open(&t->own_error, wire->rounds ? k : 0);
    sparse_open(&t->delivered, k);
    sparse_open(&t->overlap, k);
    if (x->setup.wants_sent) own_part_open(&t->mine, k);
    sparse_open(&t->unpacked, wire->in_place ? 0 : k);
    for (int i = 0; i < 2; i++) sparse_open(&t->merged[i], 2 * k);
    int merges = ceil_log2(doubling_ranks(x)) + 1;
    t->cuts = wire->rounds ? 2 * merges : merges;
    t->cut = mem_zalloc((size_t)t->cuts, sizeof *t->cut, "what merges cut off");
    for (int i = 0; i < t->cuts; i++) sparse_open(&t->cut[i].part, k);
    t->inbox = mem_alloc(1, wire_capacity(wire, k), "received entries");
    t->outbox = mem_alloc(1, wire_capacity(wire, k), "entries to send");
    t->keys = mem_alloc(room > 2 * k ? room : 2 * k, sizeof *t->keys, "keys of a selection");
}

static void doubling_close(struct exchange *x) {
    struct doubling *t = x->state;
    mem_free(t->keys);
    mem_free(t->outbox);
    mem_free(t->inbox);
    for (int i = 0; i < t->cuts; i++) sparse_close(&t->cut[i].part);
    mem_free(t->cut);
    for (int i = 0; i < 2; i++) sparse_close(&t->merged[i]);
    sparse_close(&t->unpacked);
    own_part_close(&t->mine);
    sparse_close(&t->overlap);
    sparse_close(&t->delivered);
    sparse_close(&t->own_error);
    sparse_close(&t->local);
    mem_free(t);
}

/* -- one step --------------------------------------------------------------------------------------------------- */
static struct sparse *next_cut(struct doubling *t, int holders) {
    struct cut_off *cut = &t->cut[t->used++];
    cut->holders = (uint32_t)holders;
    return &cut->part;
}

/* Rounds a sum that so many ranks hold to what the wire carries. local was rounded as soon as it was selected. */
static void round_sum(struct exchange *x, struct sparse *sum, int holders) {
    struct doubling *t = x->state;
    if (!x->setup.wire->rounds || sum == &t->local) return;
    exchange_round(x, sum, next_cut(t, holders));
}

static size_t pack(struct exchange *x, const struct sparse *sum) {
    return exchange_encode(x, sum, 0, x->setup.n, ((struct doubling *)x->state)->outbox);
}

/* What came into the inbox, to t->theirs. */
static void unpack(struct exchange *x, size_t bytes, int sender) {
    struct doubling *t = x->state;
    exchange_read(x, t->inbox, bytes, 0, x->setup.n, sender, &t->unpacked, &t->theirs);
}

/* The k largest of sum + theirs, the lower rank's first, which then so many ranks hold. */
static struct sparse *merge(struct exchange *x, const struct sparse *sum, int peer, size_t k, int holders) {
    struct doubling *t = x->state;
    struct sparse *to = &t->merged[sum == &t->merged[0]];
    bool lower = x->setup.comm->rank < peer;
    sparse_merge(lower ? sum : &t->theirs, lower ? &t->theirs : sum, to);
    sparse_keep_top(to, k, next_cut(t, holders), t->keys);
    return to;
}

/* The rounds of the ranks below Q: the final set. */
static struct sparse *double_up(struct exchange *x, struct sparse *sum, size_t k) {
    struct doubling *t = x->state;
    struct comm *c = x->setup.comm;
    size_t room = wire_capacity(x->setup.wire, k), bytes;
    int fold = fold_partner(x);
    if (fold >= 0) {
        bytes = comm_recv(c, fold, TAG_FOLD, t->inbox, room);
        unpack(x, bytes, fold);
        sum = merge(x, sum, fold, k, 1);
    }
    for (int reach = 1, tag = TAG_ROUND; reach < doubling_ranks(x); reach *= 2, tag++) {
        int peer = c->rank ^ reach;
        round_sum(x, sum, reach);
        bytes = pack(x, sum);
        bytes = comm_sendrecv(c, peer, t->outbox, bytes, peer, t->inbox, room, tag);
        unpack(x, bytes, peer);
        sum = merge(x, sum, peer, k, 2 * reach);
    }
    return sum;
}

/* The final set, on every rank. Ranks that are folded get it by a message, so all round it where there are any. */
static const struct sparse *all_ranks(struct exchange *x, size_t k) {
    struct doubling *t = x->state;
    struct comm *c = x->setup.comm;
    int fold = fold_partner(x), Q = doubling_ranks(x);
    if (is_folded(x)) {
        size_t bytes = pack(x, &t->local);
        comm_send(c, fold, TAG_FOLD, t->outbox, bytes);
        bytes = comm_recv(c, fold, TAG_RESULT, t->inbox, wire_capacity(x->setup.wire, k));
        unpack(x, bytes, fold);
        return &t->theirs;
    }
    struct sparse *sum = double_up(x, &t->local, k);
    if (Q < c->size) round_sum(x, sum, Q);
    if (fold >= 0) {
        size_t bytes = pack(x, sum);
        comm_send(c, fold, TAG_RESULT, t->outbox, bytes);
    }
    return sum;
}

/* -- the residual ----------------------------------------------------------------------------------------------- */
/* This rank's share of what was cut off entries of the final set. All `holders` ranks know the same cut; each entry
 * of it is kept by one of them, chosen by index modulo holders. */
static void keep_share(struct exchange *x, const struct cut_off *cut, const struct sparse *u) {
    struct doubling *t = x->state;
    struct sparse *own = &t->overlap;
    uint32_t mask = cut->holders - 1, mine = (uint32_t)x->setup.comm->rank & mask;
    size_t kept = 0;
    sparse_split(&cut->part, u, own, NULL);
    for (size_t i = 0; i < own->nnz; i++) {
        if ((own->idx[i] & mask) != mine) continue;
        own->idx[kept] = own->idx[i];
        own->val[kept++] = own->val[i];
    }
    own->nnz = kept;
    store_add_at(x->setup.store, own);
    if (x->setup.wants_sent) own_part_take(&t->mine, own);
}

/* And this rank's part of u: what it delivered, less what it keeps of the sums. */
static void update_residual(struct exchange *x, const struct sparse *u, struct exchange_sum *out) {
    struct doubling *t = x->state;
    struct store *store = x->setup.store;
    sparse_split(&t->local, u, &t->delivered, NULL);
    store_zero_at(store, &t->delivered);
    sparse_split(&t->own_error, u, &t->overlap, NULL);
    store_add_at(store, &t->overlap);
    if (x->setup.wants_sent) {
        own_part_begin(&t->mine, u);
        own_part_add(&t->mine, &t->delivered);
    }
    for (int i = 0; i < t->used; i++) keep_share(x, &t->cut[i], u);
    out->delivered = &t->delivered;
    if (x->setup.wants_sent) out->sent = own_part_end(&t->mine);
}

static bool doubling_run(struct exchange *x, float *grad, size_t k, struct exchange_sum *sum) {
    struct doubling *t = x->state;
    t->used = 0;
    if (!selector_run_top(x->setup.selector, grad, k, &t->local, t->keys, &sum->bad)) return false;
    sum->local_nnz = t->local.nnz;
    exchange_round(x, &t->local, &t->own_error);
    sum->sparse = all_ranks(x, k);
    update_residual(x, sum->sparse, sum);
    return true;
}

/* -- cost ------------------------------------------------------------------------------------------------------- */
static double doubling_max_words(const struct cost_case *c) {
    int Q = floor_power_of_two(c->P);
    return 2.0 * (double)c->k * (ceil_log2(Q) + (Q < c->P));
}

static void doubling_cost(const struct cost_case *c, struct cost *cost) {
    int Q = floor_power_of_two(c->P);
    double messages = ceil_log2(Q) + 2 * (Q < c->P), k = (double)c->k;
    *cost = (struct cost){.alphas = messages,
                          .words = 2 * k * messages,
                          .sparse = {messages, k, k / (double)c->n, .packed = messages, .unpacked = messages}};
}

extern const struct exchange_ops exchange_gtopk_rd;
const struct exchange_ops exchange_gtopk_rd = {
    .name = "gtopk-rd",
    .summary = "global top k by recursive doubling: all ranks merge, half the rounds of gtopk",
    .paper = "gTop-k (Shi et al., ICDCS 2019) by the recursive doubling of SparCML (Renggli et al., SC 2019)",
    .default_select = "exact",
    .sparse = true,
    .selects = true,
    .conserves = true,
    .ours = true,
    .line_off = "one message after the other, both ways at once: what the line says",
    .simulation = {.rank = 2.5e-3, .entry_round = 0.08e-6, .held_arrays = 16, .undivided = true},
    .open = doubling_open,
    .run = doubling_run,
    .close = doubling_close,
    .max_words = doubling_max_words,
    .cost = doubling_cost,
};
