/* gtopk.c: the global top k by a tree: gTopKAllReduce.
 *
 * Idea: ceil(log2 P) rounds of a binomial tree; in each, the receiving rank merges the two index-sorted vectors,
 * adds equal indices and keeps the k largest magnitudes, so that no message ever has more than k entries. The
 * result is at rank 0 and goes down the same tree. Ranks beyond the largest power of two fold in first.
 *
 * Source: Shi et al., "A Distributed Synchronous SGD Algorithm with Global Top-k Sparsification for Low Bandwidth
 * Networks", ICDCS 2019 (arXiv 1901.04359), Algorithms 3 and 4.
 *
 * Cost: the longest path, through rank 0, is 2 log2(P) alpha + 4k log2(P) beta; a rank sends and receives at most
 * 2k ceil(log2 P) words each.
 *
 * Residual. As published (GTOPK_PAPER) what is sent and in the final set counts as delivered. That loses mass once
 * there is an inner merge (P >= 3): an entry dropped there whose index reaches the final set through another
 * subtree is neither applied nor kept; mass_lost says how much. The default (GTOPK_CONSERVE) takes everything that
 * was selected out of the residual and puts what a merge drops into the residual of the rank that merged.
 *
 * What a rank has in u (sum.sent): a rank cannot know where another one's merge has dropped an entry of its own. So
 * such an entry, at an index of u, counts as the sender's, and the rank that merged counts it back, by either rule. (An
 * entry that is dropped at an index outside u moves to the residual of the rank that merged, and counts as that rank's
 * when it is delivered later. With local updates its first owner then applies it twice and the rank that merged never,
 * which evens out over the ranks.)
 *
 * A wire format that rounds does so once more at every hop: what a rank cuts off its own entries, and off the sum it
 * passes on, stays in its residual. Rank 0 rounds the final set before it goes down, so that all ranks hold the same.
 *
 * Restrictions: none. A selector that returns more than k has its selection cut to k before anything is sent.
 * Deviations: any P; no barrier per round; one message per hop in any format; the receives are posted before they are
 * needed; the residual is written while the messages are under way. */
#include "comm/algorithms/gtopk.h"

#include <math.h>

#include "base/mem.h"
#include "comm/exchange.h"
#include "comm/parts/own_part.h"
#include "comm/parts/peers.h"
#include "comm/wire/wire.h"

enum { TAG_UP = 300, TAG_DOWN = 400 };

struct gtopk_use {
    int residual; /* enum gtopk_residual */
};
static const struct option_row gtopk_options[] = {
    {"gtopk-residual", "RULE", OPTION_CHOICE, "conserve",
     "what gtopk keeps: conserve loses no gradient; paper follows the publication, which does for P >= 3, and logs how "
     "much",
     OPTION_AT(struct gtopk_use, residual),
     .names = (const char *const[]){[GTOPK_CONSERVE] = "conserve", [GTOPK_PAPER] = "paper", NULL}},
};
static const struct option_part gtopk_part = OPTION_PART(gtopk_options);

static const char *gtopk_loses(const struct option_values *options) {
    struct gtopk_use use;
    option_take(&gtopk_part, &use, options);
    return use.residual == GTOPK_PAPER ? "--gtopk-residual paper" : NULL;
}

struct gtopk {
    struct gtopk_use use;
    struct sparse local;      /* [selector.room]: what this rank selected */
    struct sparse merged[2];  /* [2 k_max]: written in turns */
    struct sparse *dropped;   /* [merges], each [k_max]: what this rank's merges cut off */
    struct sparse overlap;    /* [k_max]: the part of a vector that is in the final set */
    struct sparse delivered;  /* [k_max]: that of local */
    struct sparse rounded[2]; /* [k_max, 0 where nothing rounds]: what the format cut off local; off the merged sum */
    struct sparse unpacked;   /* [k_max, 0 where a message is used where it lies] */
    struct sparse result;     /* view of the final set where it came by message */
    size_t outbox_bytes;      /* of the message in outbox */
    int merges;               /* how many messages this rank receives on the way up */
    int rounds;               /* [0, rounds): those in which it receives or has nothing to do */
    unsigned char *inbox[2];  /* [wire_capacity(k_max)]: received into in turns */
    unsigned char *outbox;    /* [wire_capacity(k_max)] */
    uint32_t *keys;           /* [selector.room, at least 2 k_max] */
    struct own_part mine;     /* [k_max]: of u, where it is wanted */
    struct comm_request next; /* the receive that was posted last */
};

static struct tree_step up(const struct exchange *x, int round) {
    return tree_reduce_step(x->setup.comm->size, x->setup.comm->rank, round);
}

static void gtopk_open(struct exchange *x) {
    struct gtopk *t = x->state = mem_zalloc(1, sizeof *t, "gtopk");
    size_t k = x->setup.k_max, cap = x->setup.selector->room;
    option_take(&gtopk_part, &t->use, &x->setup.options);
    for (; t->rounds < tree_rounds(x->setup.comm->size) && up(x, t->rounds).role != TREE_SEND; t->rounds++)
        t->merges += up(x, t->rounds).role == TREE_RECEIVE;
    sparse_open(&t->local, cap);
    sparse_open(&t->overlap, k);
    sparse_open(&t->delivered, k);
    if (x->setup.wants_sent) own_part_open(&t->mine, k);
    sparse_open(&t->unpacked, x->setup.wire->in_place ? 0 : k);
    for (int i = 0; i < 2; i++) {
        sparse_open(&t->merged[i], 2 * k);
        sparse_open(&t->rounded[i], x->setup.wire->rounds ? k : 0);
        t->inbox[i] = mem_alloc(1, wire_capacity(x->setup.wire, k), "received entries");
    }
    t->outbox = mem_alloc(1, wire_capacity(x->setup.wire, k), "entries to send");
    t->keys = mem_alloc(cap > 2 * k ? cap : 2 * k, sizeof *t->keys, "keys of a selection");
    t->dropped = mem_alloc((size_t)t->merges, sizeof *t->dropped, "what merges cut off");
    for (int m = 0; m < t->merges; m++) sparse_open(&t->dropped[m], k);
}

static void gtopk_close(struct exchange *x) {
    struct gtopk *t = x->state;
    for (int m = 0; m < t->merges; m++) sparse_close(&t->dropped[m]);
    mem_free(t->dropped);
    mem_free(t->keys);
    mem_free(t->outbox);
    for (int i = 0; i < 2; i++) {
        mem_free(t->inbox[i]);
        sparse_close(&t->rounded[i]);
        sparse_close(&t->merged[i]);
    }
    sparse_close(&t->unpacked);
    own_part_close(&t->mine);
    sparse_close(&t->delivered);
    sparse_close(&t->overlap);
    sparse_close(&t->local);
    mem_free(t);
}

/* Posts the receive of the first round from `round` on in which this rank has one; returns that round, or
 * t->rounds. */
static int post_receive(struct exchange *x, int round, size_t k, unsigned char *inbox) {
    struct gtopk *t = x->state;
    while (round < t->rounds && up(x, round).role != TREE_RECEIVE) round++;
    if (round < t->rounds)
        comm_irecv(x->setup.comm, up(x, round).peer, TAG_UP + round, inbox, wire_capacity(x->setup.wire, k), &t->next);
    return round;
}

/* The message that was waited for with t->next, while the receive of the next round, from *round + 1 on, is posted into
 * `inbox`. Returns its bytes. */
static size_t take_message(struct exchange *x, int *round, size_t k, unsigned char *inbox) {
    COMM_SCOPE(x->setup.comm);
    size_t bytes = comm_wait(x->setup.comm, &((struct gtopk *)x->state)->next);
    *round = post_receive(x, *round + 1, k, inbox);
    return bytes;
}

/* Algorithm 3, the way up: returns the sum of this rank's subtree, cut to k at every merge. `round`: the first
 * in which this rank receives, its receive already posted into inbox[0]. */
static struct sparse *reduce(struct exchange *x, int round, size_t k) {
    struct gtopk *t = x->state;
    struct sparse *sum = &t->local;
    for (int m = 0; round < t->rounds; m++) {
        struct sparse theirs, *to = &t->merged[m % 2];
        int peer = up(x, round).peer;
        size_t bytes = take_message(x, &round, k, t->inbox[(m + 1) % 2]);
        exchange_read(x, t->inbox[m % 2], bytes, 0, x->setup.n, peer, &t->unpacked, &theirs);
        sparse_merge(sum, &theirs, to);
        sparse_keep_top(to, k, &t->dropped[m], t->keys);
        sum = to;
    }
    return sum;
}

/* Rounds this rank's sum, sends it up (unless it is rank 0) and posts the receive of the result. Where nothing was
 * merged the sum is local, which rounding again does not change. */
static void send_up(struct exchange *x, struct sparse *sum, size_t k) {
    struct gtopk *t = x->state;
    struct comm *c = x->setup.comm;
    exchange_round(x, sum, &t->rounded[1]);
    t->outbox_bytes = exchange_encode(x, sum, 0, x->setup.n, t->outbox);
    if (c->rank == 0) return;
    int peer = up(x, t->rounds).peer;
    comm_irecv(c, peer, TAG_DOWN, t->inbox[0], wire_capacity(x->setup.wire, k), &t->next);
    comm_send(c, peer, TAG_UP + t->rounds, t->outbox, t->outbox_bytes);
}

/* Passes the result on to all ranks that this rank received from (all but rank 0 receive it first). One send after
 * the other, the largest subtree first: it has the most hops to go, and sends at the same time would share this
 * rank's link and all end late. Returns whether the last send is still under way. */
static bool send_down(struct exchange *x, const void *message, size_t *bytes, struct comm_request *last) {
    COMM_SCOPE(x->setup.comm);
    struct gtopk *t = x->state;
    bool sending = false;
    if (x->setup.comm->rank > 0) *bytes = comm_wait(x->setup.comm, &t->next);
    for (int round = t->rounds - 1; round >= 0; round--) {
        struct tree_step step = tree_bcast_step(x->setup.comm->size, x->setup.comm->rank, round);
        if (step.role != TREE_SEND) continue;
        if (sending) comm_wait(x->setup.comm, last);
        comm_isend(x->setup.comm, step.peer, TAG_DOWN, message, *bytes, last);
        sending = true;
    }
    return sending;
}

/* GTOPK_CONSERVE: all that was selected has left this rank, what its merges and the format cut off stays here. */
static void keep_dropped(struct exchange *x) {
    struct gtopk *t = x->state;
    struct store *store = x->setup.store;
    store_zero_at(store, &t->local);
    for (int m = 0; m < t->merges; m++) store_add_at(store, &t->dropped[m]);
    for (int i = 0; i < 2; i++) store_add_at(store, &t->rounded[i]);
}

/* GTOPK_PAPER, Algorithm 4: what is in the final set has left, but for what the format cut off it. Returns sum |v| over
 * this rank's dropped entries whose index is in the final set: nobody applies them and nobody has kept them. */
static double keep_as_published(struct exchange *x, const struct sparse *u) {
    struct gtopk *t = x->state;
    struct store *store = x->setup.store;
    double lost = 0;
    sparse_split(&t->local, u, &t->delivered, NULL);
    store_zero_at(store, &t->delivered);
    for (int i = 0; i < 2; i++) {
        sparse_split(&t->rounded[i], u, &t->overlap, NULL);
        store_add_at(store, &t->overlap);
    }
    for (int m = 0; m < t->merges; m++) {
        sparse_split(&t->dropped[m], u, &t->overlap, NULL);
        for (size_t i = 0; i < t->overlap.nnz; i++) lost += fabs((double)t->overlap.val[i]);
    }
    return lost;
}

/* This rank's part of u, by either rule: its own entries, less what its merges have dropped and the format has cut off
 * what it passed on. */
static void tell_sent(struct exchange *x, const struct sparse *u, struct exchange_sum *out) {
    struct gtopk *t = x->state;
    if (!x->setup.wants_sent) return;
    sparse_split(&t->local, u, &t->delivered, NULL);
    own_part_begin(&t->mine, u);
    own_part_add(&t->mine, &t->delivered);
    for (int m = 0; m < t->merges; m++) own_part_take(&t->mine, &t->dropped[m]);
    own_part_take(&t->mine, &t->rounded[1]);
    out->delivered = &t->delivered;
    out->sent = own_part_end(&t->mine);
}

/* The final set, on every rank. The residual is written while the result is under way. */
static const struct sparse *finish(struct exchange *x, const struct sparse *sum, struct exchange_sum *out) {
    struct gtopk *t = x->state;
    struct comm *c = x->setup.comm;
    struct comm_request last;
    bool conserve = t->use.residual == GTOPK_CONSERVE, waits = c->rank > 0;
    unsigned char *message = waits ? t->inbox[0] : t->outbox;
    size_t bytes = t->outbox_bytes;
    if (waits && conserve) keep_dropped(x);
    bool sending = send_down(x, message, &bytes, &last);
    if (!waits && conserve) keep_dropped(x);
    if (waits) {
        exchange_read(x, message, bytes, 0, x->setup.n, 0, &t->unpacked, &t->result);
        sum = &t->result;
    }
    if (!conserve) out->mass_lost = keep_as_published(x, sum);
    tell_sent(x, sum, out);
    if (sending) comm_wait(c, &last);
    return sum;
}

static bool gtopk_run(struct exchange *x, float *grad, size_t k, struct exchange_sum *sum) {
    struct gtopk *t = x->state;
    if (!selector_run_top(x->setup.selector, grad, k, &t->local, t->keys, &sum->bad)) return false;
    /* Not before: a bad entry would leave it posted. A message that comes meanwhile loses nothing, since MPI looks for
     * it within calls only. */
    int first = post_receive(x, 0, k, t->inbox[0]);
    sum->local_nnz = t->local.nnz;
    exchange_round(x, &t->local, &t->rounded[0]);
    struct sparse *subtree = reduce(x, first, k);
    send_up(x, subtree, k);
    sum->sparse = finish(x, subtree, sum);
    return true;
}

/* Rank 0 receives k entries in every round and sends k in every round of the broadcast; no rank does more. */
static double gtopk_max_words(const struct cost_case *c) {
    return 2.0 * (double)c->k * ceil_log2(c->P);
}

/* On the way up every rank of the path unpacks, merges and packs; on the way down the message is passed on as it is. */
static void gtopk_cost(const struct cost_case *c, struct cost *cost) {
    double rounds = ceil_log2(c->P), worked = rounds > 0 ? rounds + 1 : 0, k = (double)c->k;
    *cost = (struct cost){.alphas = 2 * rounds,
                          .words = 4 * k * rounds,
                          .sparse = {2 * rounds, k, k / (double)c->n, .packed = worked, .unpacked = worked}};
}

extern const struct exchange_ops exchange_gtopk;
const struct exchange_ops exchange_gtopk = {
    .name = "gtopk",
    .summary = "global top k by a tree of merges that keep k entries each",
    .paper = "gTop-k Algorithms 3 and 4 (Shi et al., ICDCS 2019)",
    .default_select = "exact",
    .sparse = true,
    .selects = true,
    .conserves = true,
    .options = OPTION_PART(gtopk_options),
    .loses = gtopk_loses,
    .line_off = "messages of up to 64 KiB leave together and share the link of the rank that passes the result on",
    .simulation = {.rank = 2.5e-3, .entry = 0.4e-6, .held_arrays = 16, .undivided = true},
    .open = gtopk_open,
    .run = gtopk_run,
    .close = gtopk_close,
    .max_words = gtopk_max_words,
    .cost = gtopk_cost,
};
