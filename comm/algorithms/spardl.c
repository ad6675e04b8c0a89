/* spardl.c: sparse reduce-scatter and all-gather in a logarithmic number of messages: SparDL.
 *
 * Idea: [0, n) is cut into P blocks; block b belongs to rank b and has a budget of its share of k. A rank selects that
 * many entries of each block, so that no budget lies idle where gradients cluster. Spar-Reduce-Scatter: in each of
 * ceil(log2 P) rounds a rank sends a bag of blocks, each cut to its budget, and adds up the bag that comes;
 * the bags halve from round to round, so that every rank is left with the sum of its own block, which it cuts too. Then
 * Bruck's all-gather puts the P blocks together, in as many rounds. What is cut off goes to the residual of the rank
 * that cuts: the paper's global residual collection. It serves any P, because the rounds are not recursive: rank r
 * sends to r + 2^i, not to a partner (peers.h).
 *
 * Source: Zhao et al., "SparDL: Distributed Deep Learning Training with Efficient Sparse Communication", ICDE 2024
 * (arXiv 2304.00737).
 *
 * Cost: 2 ceil(log2 P) alpha + 4k(P-1)/P beta. A bag is one vector and one message: the blocks of an entry follow from
 * its index and the length comes with the message, so nothing else is sent. The bound on words, see max_words, is at
 * most 4.5k for k >= P. With k < P every block still has a budget of one entry, so that none is forgotten: the
 * result has up to P entries, and the bound is that of k = P.
 *
 * Residual: acc without what was selected, plus what this rank cut off or rounded. Every block is cut once at each
 * rank, just before it leaves, so that between two rounds nothing is lost that may yet grow.
 * Conserves: an entry is in one place at any time. What a rank has in u (sum.sent): its selection, less all that it
 * has cut off or rounded, its own and others', where that is at u's indices.
 *
 * Restrictions: budgets go by all entries of a block. Where most of one are exempt (exempt.h) its share of k is spent
 * on zeros, and less than k of what competes travels.
 * Deviations: with a selector whose counts vary, a block may begin with more entries than its budget, or fewer; what is
 * over is cut when the block leaves, of the rank's own block when others have added to it. The paper's teams (several
 * reduce-scatters side by side, joined by Spar-All-Gather, d > 1) are not included: this is d = 1. */
#include "base/mem.h"
#include "comm/exchange.h"
#include "comm/parts/block_select.h"
#include "comm/parts/own_part.h"
#include "comm/parts/peers.h"

enum { TAG = 500 };

/* One message each way. */
struct round {
    struct bag_round bag;
    unsigned char *inbox; /* [wire_capacity(room of the bag)] */
    struct sparse buffer; /* [room of the bag], what wire_read may need */
    struct comm_request receive;
};

struct spardl {
    size_t k;            /* of this step */
    int rounds;          /* of the scatter, and again of the gather */
    struct round *round; /* [2 rounds] */
    struct block_select select;
    struct sparse local;     /* [block_select_capacity]: what this rank selected */
    struct sparse held[2];   /* [block_select_most + room of all]: sums, written in turns */
    struct sparse *block;    /* [P] views: what this rank has of each block */
    struct sparse bag;       /* [as held]: what goes out next */
    struct sparse dropped;   /* [as held]: what this rank has cut off in this step */
    struct sparse *gone;     /* [P] views: of each block */
    struct sparse error;     /* [as held]: what rounding has cut off in this step (formats that round) */
    struct sparse *off;      /* [P] views: of each block */
    struct sparse own;       /* [room of one block] */
    struct sparse sum;       /* [room of all] */
    struct sparse delivered; /* [block_select_most], here and below where it is wanted: own entries in u */
    struct sparse inside;    /* [block_select_most]: those whose index is in u, of one block */
    struct own_part mine;    /* [room of all]: this rank's of u */
    unsigned char *outbox;   /* [wire_capacity(room of all)] */
    uint32_t *keys;          /* [as held] */
};

/* -- blocks, budgets ------------------------------------------------------------------------------------ */
static size_t begin_of(const struct exchange *x, int block) {
    return even_cut(x->setup.n, x->setup.comm->size, block);
}

static size_t budget(const struct exchange *x, size_t k, int block) {
    return block_budget(x->setup.n, x->setup.comm->size, k, block);
}

static size_t bag_budget(const struct exchange *x, size_t k, int first, int count) {
    int P = x->setup.comm->size;
    size_t most = 0;
    for (int i = 0; i < count; i++) most += budget(x, k, (first + i) % P);
    return most;
}

/* Entries of `count` blocks at most, whatever the step's k. */
static size_t room(const struct exchange *x, int count) {
    size_t P = (size_t)x->setup.comm->size, most = (size_t)count * ((x->setup.k_max + P - 1) / P);
    return most < x->setup.n ? most : x->setup.n;
}

/* Indices of a bag lie in [*from, *to); where it wraps around, that is everything. */
static void range_of(const struct exchange *x, int first, int count, size_t *from, size_t *to) {
    bool wraps = first + count > x->setup.comm->size;
    *from = wraps ? 0 : begin_of(x, first);
    *to = wraps ? x->setup.n : begin_of(x, first + count);
}

/* The entries of s in this block, as a view. */
static struct sparse slice(const struct exchange *x, const struct sparse *s, int block) {
    return sparse_between(s, begin_of(x, block), begin_of(x, block + 1));
}

/* -- opening, closing ------------------------------------------------------------------------------------ */
static void open_rounds(struct exchange *x) {
    struct spardl *t = x->state;
    struct comm *c = x->setup.comm;
    t->rounds = ceil_log2(c->size);
    t->round = mem_zalloc(2 * (size_t)t->rounds, sizeof *t->round, "rounds of an exchange");
    for (int i = 0; i < 2 * t->rounds; i++) {
        struct round *round = &t->round[i];
        round->bag =
            i < t->rounds ? bag_scatter_round(c->size, c->rank, i) : bag_gather_round(c->size, c->rank, i - t->rounds);
        size_t most = room(x, round->bag.count);
        round->inbox = mem_alloc(1, wire_capacity(x->setup.wire, most), "received entries");
        if (!x->setup.wire->in_place) sparse_open(&round->buffer, most);
    }
}

static void spardl_open(struct exchange *x) {
    struct spardl *t = x->state = mem_zalloc(1, sizeof *t, "spardl");
    size_t P = (size_t)x->setup.comm->size, all = room(x, x->setup.comm->size);
    open_rounds(x);
    block_select_open(&t->select, x->setup.selector, x->setup.store, x->setup.comm->size, x->setup.k_max);
    size_t cap = block_select_most(&t->select);
    sparse_open(&t->local, block_select_capacity(&t->select));
    for (int i = 0; i < 2; i++) sparse_open(&t->held[i], cap + all);
    t->block = mem_zalloc(P, sizeof *t->block, "blocks of a vector");
    t->gone = mem_zalloc(P, sizeof *t->gone, "what was cut off blocks");
    t->off = mem_zalloc(P, sizeof *t->off, "what was cut off blocks");
    sparse_open(&t->bag, cap + all);
    sparse_open(&t->dropped, cap + all);
    if (x->setup.wire->rounds) sparse_open(&t->error, cap + all);
    sparse_open(&t->own, room(x, 1));
    sparse_open(&t->sum, all);
    if (x->setup.wants_sent) {
        sparse_open(&t->delivered, cap);
        sparse_open(&t->inside, cap);
        own_part_open(&t->mine, all);
    }
    t->outbox = mem_alloc(1, wire_capacity(x->setup.wire, all), "entries to send");
    t->keys = mem_alloc(cap + all, sizeof *t->keys, "keys of a selection");
}

static void spardl_close(struct exchange *x) {
    struct spardl *t = x->state;
    for (int i = 0; i < 2 * t->rounds; i++) {
        mem_free(t->round[i].inbox);
        sparse_close(&t->round[i].buffer);
    }
    mem_free(t->round);
    mem_free(t->block);
    mem_free(t->gone);
    mem_free(t->off);
    own_part_close(&t->mine);
    for (int i = 0; i < 2; i++) sparse_close(&t->held[i]);
    struct sparse *each[] = {&t->local, &t->bag, &t->dropped, &t->error, &t->own, &t->sum, &t->delivered, &t->inside};
    for (size_t i = 0; i < sizeof each / sizeof each[0]; i++) sparse_close(each[i]);
    mem_free(t->outbox);
    mem_free(t->keys);
    block_select_close(&t->select);
    mem_free(t);
}

/* -- one message ------------------------------------------------------------------------------------------ */
/* Posts the receive of round i. Only after the receive of the round before is done: otherwise a rank that is ahead
 * (bags differ in length with some formats) would send at the same time and slow down the message that is waited for.
 */
static void post_receive(struct exchange *x, int i) {
    struct spardl *t = x->state;
    if (i == 2 * t->rounds) return;
    struct round *round = &t->round[i];
    size_t most = bag_budget(x, t->k, round->bag.receive, round->bag.count);
    comm_irecv(x->setup.comm, round->bag.from, TAG + i, round->inbox, wire_capacity(x->setup.wire, most),
               &round->receive);
}

static void send_bag(struct exchange *x, int i, struct comm_request *request) {
    struct spardl *t = x->state;
    const struct bag_round *bag = &t->round[i].bag;
    size_t from, to;
    range_of(x, bag->send, bag->count, &from, &to);
    size_t bytes = exchange_encode(x, &t->bag, from, to, t->outbox);
    comm_isend(x->setup.comm, bag->to, TAG + i, t->outbox, bytes, request);
}

/* The bytes of the message of round i. */
static size_t take_message(struct exchange *x, int i) {
    COMM_SCOPE(x->setup.comm);
    size_t bytes = comm_wait(x->setup.comm, &((struct spardl *)x->state)->round[i].receive);
    post_receive(x, i + 1);
    return bytes;
}

/* The bag that comes in round i, block by block: part[b] is handed to `take` for each. */
static void receive_bag(struct exchange *x, int i, void (*take)(struct exchange *x, int i, int b, struct sparse part)) {
    struct spardl *t = x->state;
    struct round *round = &t->round[i];
    const struct bag_round *bag = &round->bag;
    struct sparse theirs, buffer = round->buffer;
    size_t from, to, count = 0;
    size_t bytes = take_message(x, i);
    range_of(x, bag->receive, bag->count, &from, &to);
    buffer.cap = bag_budget(x, t->k, bag->receive, bag->count);
    exchange_read(x, round->inbox, bytes, from, to, bag->from, &buffer, &theirs);
    for (int b = 0; b < x->setup.comm->size; b++) {
        if (!bag_has(x->setup.comm->size, bag->receive, bag->count, b)) continue;
        struct sparse part = slice(x, &theirs, b);
        count += part.nnz;
        take(x, i, b, part);
    }
    if (count != theirs.nnz) die("rank %d sent entries of blocks that were not its to send", bag->from);
}

/* -- Spar-Reduce-Scatter ------------------------------------------------------------------------------------ */
/* To the end of the bag what this rank has of the block, cut to its budget. */
static void pack_block(struct exchange *x, int b) {
    struct spardl *t = x->state;
    struct sparse kept = sparse_tail(&t->bag), gone = sparse_tail(&t->dropped);
    sparse_append(&kept, &t->block[b]);
    sparse_keep_top(&kept, budget(x, t->k, b), &gone, t->keys);
    t->bag.nnz += kept.nnz;
    t->dropped.nnz += gone.nnz;
    t->gone[b] = gone;
}

/* The blocks of a bag, in the order of their indices, as the wire can carry them. */
static void fill_bag(struct exchange *x, int first, int count) {
    struct spardl *t = x->state;
    int P = x->setup.comm->size;
    t->bag.nnz = 0;
    for (int b = 0; b < P; b++)
        if (bag_has(P, first, count, b)) pack_block(x, b);
    if (!x->setup.wire->rounds) return;
    struct sparse error = sparse_tail(&t->error);
    exchange_round(x, &t->bag, &error);
    t->error.nnz += error.nnz;
    for (int b = 0; x->setup.wants_sent && b < P; b++)
        if (bag_has(P, first, count, b)) t->off[b] = slice(x, &error, b);
}

/* Adds to the residual what was cut off since `dropped` and `rounded` had so many entries. */
static void keep_rest(struct exchange *x, size_t dropped, size_t rounded) {
    struct spardl *t = x->state;
    struct store *store = x->setup.store;
    const struct sparse rest = sparse_slice(&t->dropped, dropped, t->dropped.nnz);
    if (rest.nnz > 0) store_add_at(store, &rest);
    if (t->error.nnz == rounded) return;
    const struct sparse error = sparse_slice(&t->error, rounded, t->error.nnz);
    store_add_at(store, &error);
}

/* Sums are written to the two arrays in turns. What is added to in round i was left alone since round i - 1 or is in
 * `local`: from the second round on all blocks that remain are added to in every round. */
static void add_block(struct exchange *x, int i, int b, struct sparse part) {
    struct spardl *t = x->state;
    struct sparse *to = &t->held[i % 2], sum = sparse_tail(to);
    sparse_merge(&t->block[b], &part, &sum);
    to->nnz += sum.nnz;
    t->block[b] = sum;
}

static void scatter_round(struct exchange *x, int i) {
    struct spardl *t = x->state;
    struct comm_request send;
    size_t dropped = t->dropped.nnz, rounded = t->error.nnz;
    fill_bag(x, t->round[i].bag.send, t->round[i].bag.count);
    send_bag(x, i, &send);
    keep_rest(x, dropped, rounded); /* while the messages are under way */
    t->held[i % 2].nnz = 0;
    receive_bag(x, i, add_block);
    comm_wait(x->setup.comm, &send);
}

/* The rank's own block is summed: what it keeps of it is final. */
static void finish_block(struct exchange *x) {
    struct spardl *t = x->state;
    size_t dropped = t->dropped.nnz, rounded = t->error.nnz;
    fill_bag(x, x->setup.comm->rank, 1);
    t->own.nnz = 0;
    sparse_append(&t->own, &t->bag);
    t->block[x->setup.comm->rank] = t->own;
    keep_rest(x, dropped, rounded);
}

/* -- all-gather ----------------------------------------------------------------------------------------------- */
static void place_block(struct exchange *x, int i, int b, struct sparse part) {
    (void)i;
    ((struct spardl *)x->state)->block[b] = part;
}

static void gather_round(struct exchange *x, int i) {
    struct spardl *t = x->state;
    const struct bag_round *bag = &t->round[i].bag;
    int P = x->setup.comm->size;
    struct comm_request send;
    t->bag.nnz = 0;
    for (int b = 0; b < P; b++)
        if (bag_has(P, bag->send, bag->count, b)) sparse_append(&t->bag, &t->block[b]);
    send_bag(x, i, &send);
    receive_bag(x, i, place_block);
    comm_wait(x->setup.comm, &send);
}

/* -- the step --------------------------------------------------------------------------------------------------- */
/* Which of this rank's selected entries are in u: those that were not cut off here and whose index is in u. Another
 * rank may have cut such an entry off while the same index came through from others; this rank cannot know. So a
 * rank's part of u is what it selected, less everything it cut off itself, whoever had sent that. Over the ranks
 * these parts add up to u. */
static void tell_sent(struct exchange *x, struct exchange_sum *sum) {
    struct spardl *t = x->state;
    if (!x->setup.wants_sent) return;
    t->delivered.nnz = 0;
    own_part_begin(&t->mine, &t->sum);
    own_part_add(&t->mine, &t->local);
    for (int b = 0; b < x->setup.comm->size; b++) {
        struct sparse mine = slice(x, &t->local, b), left = sparse_tail(&t->delivered);
        sparse_split(&mine, &t->block[b], &t->inside, NULL);
        sparse_split(&t->inside, &t->gone[b], NULL, &left);
        t->delivered.nnz += left.nnz;
        own_part_take(&t->mine, &t->gone[b]);
        own_part_take(&t->mine, &t->off[b]);
    }
    sum->delivered = &t->delivered;
    sum->sent = own_part_end(&t->mine);
}

static bool spardl_run(struct exchange *x, float *grad, size_t k, struct exchange_sum *sum) {
    struct spardl *t = x->state;
    struct store *store = x->setup.store;
    int P = x->setup.comm->size;
    t->k = k;
    if (!block_select_run(&t->select, grad, k, &t->local, &sum->bad)) return false;
    post_receive(x, 0);
    store_zero_at(store, &t->local);
    t->dropped.nnz = t->error.nnz = 0;
    for (int b = 0; b < P; b++) t->block[b] = slice(x, &t->local, b);
    for (int i = 0; i < t->rounds; i++) scatter_round(x, i);
    finish_block(x);
    for (int i = t->rounds; i < 2 * t->rounds; i++) gather_round(x, i);
    t->sum.nnz = 0;
    for (int b = 0; b < P; b++) sparse_append(&t->sum, &t->block[b]);
    tell_sent(x, sum);
    sum->sparse = &t->sum;
    sum->local_nnz = t->local.nnz;
    return true;
}

static bool spardl_saved(struct exchange *x, size_t piece, void **memory, size_t *bytes) {
    return block_select_saved(&((struct spardl *)x->state)->select, piece, memory, bytes);
}

static bool spardl_check(const struct exchange *x, uint64_t *alike, struct err *e) {
    (void)alike; /* each rank's blocks have thresholds of their own */
    return block_select_check(&((const struct spardl *)x->state)->select, e);
}

/* With K = max(k, P) the budgets add up to K, and x blocks in a row have at most ceil(x K / P). The bags of the scatter
 * that a rank sends are all blocks but its own; those that it sends in the gather have x = 1, 2, 4, ..., P - 2^(l-1)
 * blocks. What it receives is the same the other way round. So
 *
 *        words <= 2 (K - floor(K/P)) + 2 sum over the rounds of ceil(x K / P)        [= 4k(P-1)/P where P divides k]
 *
 * which is at most 4.5 k for every k >= P. */
static double spardl_max_words(const struct cost_case *c) {
    size_t P = (size_t)c->P, K = c->k > P ? c->k : P, entries = K - K / P;
    for (int i = 0; i < ceil_log2(c->P); i++) entries += ((size_t)bag_gather_round(c->P, 0, i).count * K + P - 1) / P;
    return 2.0 * (double)entries;
}

static void spardl_cost(const struct cost_case *c, struct cost *cost) {
    double messages = 2.0 * ceil_log2(c->P), k = (double)c->k, entries = 2 * k * (c->P - 1) / c->P;
    *cost = (struct cost){.alphas = messages, .words = 2 * entries};
    if (c->P == 1) return;
    cost->sparse =
        (struct cost_entries){messages, entries / messages, k / (double)c->n, .packed = messages, .unpacked = messages};
}

extern const struct exchange_ops exchange_spardl;
const struct exchange_ops exchange_spardl = {
    .name = "spardl",
    .summary = "sparse reduce-scatter in log2 P rounds, cut to k/P per block, and Bruck's all-gather",
    .paper = "SparDL (Zhao et al., ICDE 2024)",
    .default_select = "exact",
    .sparse = true,
    .selects = true,
    .conserves = true,
    .own_parts = true,
    .line_off = "as gtopk-rd; blocks are whole entries",
    .simulation = {.rank = 4e-3, .entry = 0.4e-6, .held_arrays = 16},
    .open = spardl_open,
    .run = spardl_run,
    .close = spardl_close,
    .max_words = spardl_max_words,
    .cost = spardl_cost,
    .saved = spardl_saved,
    .check = spardl_check,
};
