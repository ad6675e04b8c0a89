/* omnireduce.c: blocks of consecutive entries in place of single ones: OmniReduce with Block Top-k.
 *
 * Idea: the gradient is cut into blocks of 256 consecutive entries. Every rank sends the blocks of the largest l2 norm,
 * as a number and all their values: no index for an entry, and memory is read in stretches. The blocks are cut into P
 * equal ranges, each of which belongs to one rank: to it go the others' blocks of its range (a direct exchange,
 * destinations rotated); it adds them up in rank order, and the sums of all ranges, over the union of the blocks, are
 * gathered.
 *
 * Source: Fei, Ho, Sahu, Canini and Sapio, "Efficient Sparse Collective Communication and its application to Accelerate
 * Distributed Deep Learning", SIGCOMM 2021: blocks of 256, of which only those travel that are not zero; Block Top-k as
 * the sparsification that makes them so, with error feedback.
 *
 * Cost per rank, s = ceil(k/256) blocks of B = 256 + 1 words: (P + 2 log2(P)) alpha + [2s, s + min(sP, n/256)] B
 * (P-1)/P beta: 2s when all ranks choose the same blocks, spread evenly; the upper end, which is the cost line, when no
 * two choose the same. max_words bounds any input: where most ranks' blocks crowd in one range it may reach 2n (P-1)/P.
 * With --omnireduce-block both are of blocks of that length.
 * k: is rounded up to whole blocks. So a rank sends up to 255 entries more than k, by layers so many in each group.
 * Residual: acc without the blocks that were sent. Conserves.
 * Choosing: one pass adds the gradient to the residual and sums squares of each block (store.h); the s largest of these
 * n/256 numbers, of equal ones the lower block. They are double, and only they come to the host. Whatever is not finite
 * shows in its block's number. An entry of a block that is sent may be zero, and it is one of u then.
 *
 * Restrictions: the wire formats do not apply: indices of entries do not travel, and values are f32. Exempt entries
 * (exempt.h) travel as zeros in the blocks that have any.
 * Deviations: in the paper blocks are streamed to aggregators, processes of their own, which ask in turn for the next
 * block that any worker has, so that the union is found on the way; here every rank is the aggregator of its range, and
 * numbers go with the blocks. The paper sends all blocks that are not zero and sparsifies before; here choosing and
 * sending are one, and a block that is chosen is sent, be it of zeros. */
#include <math.h>

#include "base/mem.h"
#include "comm/exchange.h"
#include "comm/parts/blocks.h"
#include "comm/parts/peers.h"
#include "comm/parts/regions.h"
#include "topk/finite.h"

enum { TAG = 600 };

struct omnireduce_use {
    int block; /* entries */
};

static const struct option_row omnireduce_options[] = {
    {"omnireduce-block", "N", OPTION_INT, "256", "omnireduce: entries of a block",
     OPTION_AT(struct omnireduce_use, block), .min = 1, .max = 1e9},
};
static const struct option_part omnireduce_part = OPTION_PART(omnireduce_options);

static size_t block_of(const struct option_values *options) {
    struct omnireduce_use use;
    option_take(&omnireduce_part, &use, options);
    return (size_t)use.block;
}

struct omnireduce {
    struct blocks blocks;
    size_t most, owned;           /* blocks that a rank sends, that a range may have in a sum, at most */
    double *square;               /* [blocks]: sums of squares */
    uint32_t *keys;               /* [blocks] */
    uint32_t *chosen;             /* [most]: their numbers */
    float *block;                 /* [block]: one that is not finite, to be looked through */
    struct sparse local;          /* [entries of most]: what this rank sends, as entries */
    struct sparse u;              /* [entries of P most, n at most] */
    struct outbox outbox;         /* of both phases */
    size_t slot, gather_slot;     /* bytes of one of their messages, at most */
    unsigned char *inbox;         /* [P slot] */
    unsigned char *gathered;      /* [P gather_slot] */
    struct block_list *part;      /* [P]: every rank's blocks in this range */
    uint32_t *place;              /* [blocks of this range] */
    struct comm_request *receive; /* [P] by sender */
    struct comm_request *send;    /* [P] by step */
    size_t *each;                 /* [P] bytes */
};

/* -- who owns what --------------------------------------------------------------------------------------- */
static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* The first block of a rank's range. */
static size_t begin_of(const struct exchange *x, int rank) {
    const struct omnireduce *t = x->state;
    return (size_t)even_cut(t->blocks.count, x->setup.comm->size, rank);
}

static void open_messages(struct exchange *x) {
    struct omnireduce *t = x->state;
    size_t P = (size_t)x->setup.comm->size, range = (t->blocks.count - 1) / P + 1;
    t->owned = least(range, P * t->most);
    t->slot = blocks_capacity(&t->blocks, least(range, t->most));
    t->gather_slot = blocks_capacity(&t->blocks, t->owned);
    outbox_open(&t->outbox, blocks_capacity(&t->blocks, t->most) + t->gather_slot);
    t->inbox = mem_alloc(P, t->slot, "received blocks");
    t->gathered = mem_alloc(P, t->gather_slot, "the messages of all ranks");
    t->part = mem_alloc(P, sizeof *t->part, "views of messages");
    t->place = mem_alloc(range, sizeof *t->place, "places of blocks in a sum");
    t->receive = mem_alloc(P, sizeof *t->receive, "receives under way");
    t->send = mem_alloc(P, sizeof *t->send, "sends under way");
    t->each = mem_alloc(P, sizeof *t->each, "message sizes");
}

static void omnireduce_open(struct exchange *x) {
    struct omnireduce *t = x->state = mem_zalloc(1, sizeof *t, "omnireduce");
    size_t P = (size_t)x->setup.comm->size;
    t->blocks = blocks_of(x->setup.n, block_of(&x->setup.options));
    t->most = blocks_for(&t->blocks, x->setup.k_max);
    t->square = mem_alloc(t->blocks.count, sizeof *t->square, "sums of squares of blocks");
    t->keys = mem_alloc(t->blocks.count, sizeof *t->keys, "keys of blocks");
    t->chosen = mem_alloc(t->most, sizeof *t->chosen, "numbers of blocks");
    t->block = mem_alloc(least(t->blocks.size, t->blocks.n), sizeof *t->block, "a block");
    sparse_open(&t->local, blocks_entries(&t->blocks, t->most));
    sparse_open(&t->u, blocks_entries(&t->blocks, sparse_sum_capacity(t->blocks.count, P, t->most)));
    open_messages(x);
}

static void omnireduce_close(struct exchange *x) {
    struct omnireduce *t = x->state;
    mem_free(t->each);
    mem_free(t->send);
    mem_free(t->receive);
    mem_free(t->place);
    mem_free(t->part);
    mem_free(t->gathered);
    mem_free(t->inbox);
    outbox_close(&t->outbox);
    sparse_close(&t->u);
    sparse_close(&t->local);
    mem_free(t->block);
    mem_free(t->chosen);
    mem_free(t->keys);
    mem_free(t->square);
    mem_free(t);
}

/* -- choosing ---------------------------------------------------------------------------------------------- */
/* Where acc is not finite for the first time; n: nowhere. */
static size_t find_bad(const struct exchange *x) {
    const struct omnireduce *t = x->state;
    struct store *store = x->setup.store;
    for (size_t b = 0; b < t->blocks.count; b++) {
        if (isfinite(t->square[b])) continue;
        size_t from = b * t->blocks.size, length = blocks_length(&t->blocks, b);
        store->ops->read(store, from, length, t->block);
        return from + first_nonfinite(t->block, length);
    }
    return t->blocks.n;
}

/* acc += grad; of acc the entries of the largest blocks for k to t->local. False: acc[*bad] is not finite. */
static bool choose(struct exchange *x, const float *grad, size_t k, size_t *bad) {
    PHASE_SCOPE(x->setup.phases, PHASE_SELECT);
    struct omnireduce *t = x->state;
    struct store *store = x->setup.store;
    size_t count = blocks_for(&t->blocks, k);
    store->ops->accumulate_squares(store, grad, t->blocks.size, t->square);
    *bad = find_bad(x);
    if (*bad < t->blocks.n) return false;
    blocks_largest(t->square, t->blocks.count, count, t->keys, t->chosen);
    blocks_indices(&t->blocks, t->chosen, count, &t->local);
    store_gather_at(store, &t->local);
    return true;
}

/* -- the two phases ---------------------------------------------------------------------------------------- */
static size_t write_blocks(struct exchange *x, const struct block_list *list, void *message) {
    PHASE_SCOPE(x->setup.phases, PHASE_PACK);
    return blocks_write(list, message);
}

static void read_blocks(struct exchange *x, const void *message, size_t bytes, int range, int sender,
                        struct block_list *view) {
    PHASE_SCOPE(x->setup.phases, PHASE_PACK);
    struct omnireduce *t = x->state;
    blocks_read(&t->blocks, message, bytes, begin_of(x, range), begin_of(x, range + 1), sender, view);
}

static void send_blocks(struct exchange *x, size_t k) {
    struct omnireduce *t = x->state;
    struct comm *c = x->setup.comm;
    const struct block_list all = {t->chosen, t->local.val, blocks_for(&t->blocks, k), t->local.nnz};
    for (int step = 1; step < c->size; step++) {
        int source = rotate_from(c->size, c->rank, step);
        comm_irecv(c, source, TAG, t->inbox + (size_t)source * t->slot, t->slot, &t->receive[source]);
    }
    for (int step = 0; step < c->size; step++) {
        int owner = rotate_to(c->size, c->rank, step);
        struct block_list part = blocks_between(&t->blocks, &all, begin_of(x, owner), begin_of(x, owner + 1));
        if (step == 0) {
            t->part[owner] = part;
            continue;
        }
        void *message = outbox_next(&t->outbox, (part.count + part.entries) * sizeof(float));
        size_t bytes = write_blocks(x, &part, message);
        outbox_add(&t->outbox, bytes);
        comm_isend(c, owner, TAG, message, bytes, &t->send[step]);
    }
}

/* The sum of this rank's range as a message, in rank order. Returns its bytes. */
static size_t reduce(struct exchange *x, void **message) {
    struct omnireduce *t = x->state;
    struct comm *c = x->setup.comm;
    for (int step = 1; step < c->size; step++) {
        int source = rotate_from(c->size, c->rank, step);
        size_t bytes = comm_wait(c, &t->receive[source]);
        read_blocks(x, t->inbox + (size_t)source * t->slot, bytes, c->rank, source, &t->part[source]);
    }
    *message = outbox_next(&t->outbox, t->gather_slot);
    return blocks_sum(&t->blocks, t->part, (size_t)c->size, begin_of(x, c->rank), begin_of(x, c->rank + 1), t->place,
                      *message);
}

static void gather(struct exchange *x, const void *message, size_t bytes) {
    struct omnireduce *t = x->state;
    struct comm *c = x->setup.comm;
    comm_allgather_sizes(c, bytes, t->gather_slot, t->each);
    comm_allgatherv(c, message, bytes, t->gathered, t->each);
    for (int step = 1; step < c->size; step++) comm_wait(c, &t->send[step]);
    const unsigned char *at = t->gathered;
    t->u.nnz = 0;
    for (int r = 0; r < c->size; at += t->each[r++]) {
        struct block_list sums;
        read_blocks(x, at, t->each[r], r, r, &sums);
        blocks_append(&t->blocks, &sums, &t->u);
    }
}

/* -- costs ------------------------------------------------------------------------------------------------- */
/* For any input, in blocks: m of them, M = ceil(m/P), s a rank's. A rank sends at most s directly and its range to the
 * others; it receives up to x <= min(s, M) from each rank, and in the gathering what the rest can make of other ranges:
 *        max over x of x (P-1) + min((s - x) P, m - floor(m/P)), whose best x is where the two ends of the min meet;
 * and 2 words with the size of each message. */
static double words_at_most(const struct cost_case *c, size_t block) {
    const struct blocks b = blocks_of(c->n, block);
    double P = c->P, s = (double)blocks_for(&b, c->k), M = (double)((b.count - 1) / (size_t)c->P + 1);
    double direct = fmin(s, M), owned = fmin(s * P, M), others = (double)(b.count - b.count / (size_t)c->P);
    double best = fmin(fmax(s - others / P, 0), direct);
    double sends = s + (P - 1) * owned, receives = best * (P - 1) + fmin((s - best) * P, others);
    return c->P == 1 ? 0 : fmax(sends, receives) * (1 + (double)least(block, c->n)) + 2 * (P - 1);
}

static double omnireduce_max_words(const struct cost_case *c) {
    return words_at_most(c, block_of(&c->options));
}

static double omnireduce_own_max_words(const struct exchange *x, size_t k) {
    const struct omnireduce *t = x->state;
    const struct cost_case step = {.n = x->setup.n, .k = k, .P = x->setup.comm->size};
    return words_at_most(&step, t->blocks.size);
}

/* The upper end of the interval: no two ranks choose the same block. */
static void omnireduce_cost(const struct cost_case *c, struct cost *cost) {
    const size_t block = block_of(&c->options);
    const struct blocks b = blocks_of(c->n, block);
    double P = c->P, s = (double)blocks_for(&b, c->k), all = fmin(s * P, (double)b.count);
    *cost = (struct cost){.alphas = c->P == 1 ? 0 : P + 2.0 * ceil_log2(c->P),
                          .words = (s + all) * (1 + (double)least(block, c->n)) * (P - 1) / P};
}

/* -- a step ------------------------------------------------------------------------------------------------ */
static bool omnireduce_run(struct exchange *x, float *grad, size_t k, struct exchange_sum *sum) {
    struct omnireduce *t = x->state;
    void *message;
    if (!choose(x, grad, k, &sum->bad)) return false;
    t->outbox.used = 0;
    send_blocks(x, k);
    store_zero_at(x->setup.store, &t->local); /* while the messages are under way */
    size_t bytes = reduce(x, &message);
    gather(x, message, bytes);
    sum->sparse = &t->u;
    sum->sent = sum->delivered = &t->local;
    sum->local_nnz = t->local.nnz;
    return true;
}

extern const struct exchange_ops exchange_omnireduce;
const struct exchange_ops exchange_omnireduce = {
    .name = "omnireduce",
    .summary = "blocks of 256 entries of the largest norm, without indices, to the owner of their range, then to all",
    .paper = "OmniReduce with Block Top-k (Fei et al., SIGCOMM 2021)",
    .sparse = true,
    .conserves = true,
    .blind = true,
    .options = OPTION_PART(omnireduce_options),
    .line_off =
        "the line is its upper end (no two ranks choose the same block); and messages to all ranks wait together "
        "for their start-up",
    .open = omnireduce_open,
    .run = omnireduce_run,
    .close = omnireduce_close,
    .max_words = omnireduce_max_words,
    .own_max_words = omnireduce_own_max_words,
    .cost = omnireduce_cost,
};
