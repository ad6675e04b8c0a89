/* micro.c: partitions of the vector that take turns, thresholds that follow k, an allreduce at the chosen indices:
 * MiCRO.
 *
 * Idea: [0, n) is cut into P exclusive partitions, each of which belongs to one rank in every step and moves on by one
 * rank from step to step. A rank chooses entries in its own partition only, by a threshold; so the chosen indices of
 * different ranks never meet (no "build-up" of the union) and selecting is work over n/P. All ranks then learn all
 * chosen indices and add up what they hold there, whether large or small.
 *
 * Source: Yoon and Oh, "MiCRO: Near-Zero Cost Gradient Sparsification for Scaling and Accelerating Distributed DNN
 * Training", HiPC 2023 (arXiv 2310.00967).
 *
 * Cost: 3 log2(P) alpha + 3k(P-1)/P beta: an all-gather of k/P indices of each rank, and an allreduce of k values, as a
 * reduce-scatter and an all-gather. All three are comm.h's, in log2(P) rounds each; at these lengths MPI's own are
 * rings of P - 1 messages. The indices come in blocks of one size, a count and a threshold first, so that one
 * all-gather will do; the blocks have room for c/32 entries more than the share c = ceil(k/P). So no step has more than
 * 33/32 of 3k(P-1)/P words and about 5P on top, which is within 3.2k(P-1)/P for k >= 50 P.
 *
 * Wire formats: indices and values travel apart, so the first all-gather has a format's indices alone (wire.h), blocks
 * of the lengths that they take where those vary, which another all-gather tells in log2(P) start-ups; the values are
 * at indices that all know. Where a format rounds, sums are rounded by who sends them (rounded_sums.h), and the error
 * stays in that rank's residual; else they are those of coo32, bit for bit.
 *
 * Threshold: each partition has one, which goes with it from rank to rank. It is multiplied by 1.005 when more than the
 * rank's share of k have reached it, by 0.995 when fewer. It is set to the exact magnitude of that rank in the
 * partition when that is chosen from for the first time, and again where fewer than half the share or more than twice
 * as many pass. At most 1/32 more than the share is sent, the largest of what has passed. Zeros are never chosen,
 * except where a rank's share is its whole partition.
 *
 * Residual: acc, with zeros at u's indices, or what was rounded off there, on every rank. Conserves.
 *
 * NaN and infinities: in the partitions of other ranks the pass that accumulates selects what is not finite, which
 * costs nothing where there is nothing; in the own partition such entries reach every threshold.
 *
 * Restrictions: none. Each value is summed on one rank, in the order of comm_reduce_scatter_f32 or of rounded_sums.c.
 * Deviations: the starting points of the threshold and the limit of what is sent, as above; counts and indices are
 * gathered at once. In the paper a rank keeps its threshold when its partition changes; but partitions of different
 * layers have different scales, and a factor of 1.005 would take hundreds of steps from one to the other. With k < P
 * some ranks have a share of 0; the partitions take turns at the others. */
#include <math.h>

#include "base/hash.h"
#include "base/mem.h"
#include "comm/exchange.h"
#include "comm/parts/peers.h"
#include "comm/parts/rounded_sums.h"
#include "topk/candidates.h"
#include "topk/finite.h"

enum { ROOM = 4 };

/* What survives a checkpoint. */
struct turns {
    uint64_t step;
    float threshold[]; /* [P]: of the partitions */
};

/* What comes from each rank before its indices. */
struct head {
    uint32_t bytes; /* of the indices */
    float threshold;
};

struct micro {
    struct turns *turns;
    struct store view;   /* of the part of the store that is being worked on */
    int mine;            /* this rank's partition in this step, */
    size_t begin, end;   /* [begin, end) */
    struct sparse local; /* [ROOM largest_block]: what this rank has chosen; until packed, indices from `begin` on */
    struct sparse wrong; /* [1]: the first entry of another partition that is not finite */
    struct sparse u;     /* [P largest_block] */
    struct sparse sent;  /* [P largest_block]: this rank's part of u, where it is wanted */
    unsigned char *mine_packed; /* [block_bytes]: this rank's block, a struct head and a message of indices; */
    unsigned char *blocks;      /* [P block_bytes]: all ranks', end to end */
    size_t *each;               /* [P]: bytes of the blocks, or of the parts of u's values that the ranks sum */
    size_t *parts;              /* [P]: entries of these parts; where the blocks begin */
    float *sums;                /* scratch of the reduce-scatter; NULL where the format rounds, which has */
    struct rounded_sums rounded;
    float *cut;     /* [P largest_block]: what this rank rounded off u's values; else NULL */
    uint32_t *keys; /* [ROOM largest_block] */
};

/* Indices of one rank in one step, at most. */
static size_t largest_block(size_t k, int P) {
    size_t share = (k + (size_t)P - 1) / (size_t)P;
    return share + share / 32;
}

/* Bytes of such a rank's block, at most; where the format has a fixed length, those of every block. */
static size_t block_bytes(const struct exchange *x, size_t k) {
    return sizeof(struct head) + wire_capacity(x->setup.wire->indices, largest_block(k, x->setup.comm->size));
}

/* Sets `parts` and `each` for nnz values; where this rank's part begins. */
static size_t set_parts(struct micro *t, const struct comm *c, size_t nnz) {
    for (int r = 0; r < c->size; r++) {
        t->parts[r] = even_part(nnz, c->size, r);
        t->each[r] = t->parts[r] * sizeof(float);
    }
    return even_cut(nnz, c->size, c->rank);
}

static size_t turns_bytes(const struct exchange *x) {
    return sizeof(struct turns) + (size_t)x->setup.comm->size * sizeof(float);
}

static void open_sums(struct exchange *x, size_t all) {
    struct micro *t = x->state;
    if (x->setup.wire->rounds) {
        rounded_sums_open(&t->rounded, x, all);
        t->cut = mem_alloc(all, sizeof *t->cut, "what rounding cuts off");
    } else {
        t->sums = mem_alloc(comm_reduce_scatter_scratch_even(x->setup.comm, all), sizeof *t->sums, "sums of values");
    }
}

static void micro_open(struct exchange *x) {
    struct micro *t = x->state = mem_zalloc(1, sizeof *t, "micro");
    size_t P = (size_t)x->setup.comm->size, n = x->setup.n;
    size_t most = largest_block(x->setup.k_max, x->setup.comm->size), all = sparse_sum_capacity(n, P, most);
    t->turns = mem_zalloc(1, turns_bytes(x), "thresholds");
    for (size_t p = 0; p < P; p++) t->turns->threshold[p] = INFINITY; /* nothing passes: its first step looks for it */
    store_view_open(&t->view, x->setup.store, 0, n);
    sparse_open(&t->local, ROOM * most);
    sparse_open(&t->wrong, 1);
    sparse_open(&t->u, all);
    if (x->setup.wants_sent) sparse_open(&t->sent, all);
    t->mine_packed = mem_zalloc(1, block_bytes(x, x->setup.k_max), "indices");
    t->blocks = mem_alloc(P, block_bytes(x, x->setup.k_max), "indices of all ranks");
    t->keys = mem_alloc(ROOM * most, sizeof *t->keys, "keys of a selection");
    t->each = mem_alloc(P, sizeof *t->each, "lengths of messages");
    t->parts = mem_alloc(P, sizeof *t->parts, "lengths of messages");
    open_sums(x, all);
}

static void micro_close(struct exchange *x) {
    struct micro *t = x->state;
    if (x->setup.wire->rounds) rounded_sums_close(&t->rounded);
    mem_free(t->cut);
    mem_free(t->sums);
    mem_free(t->parts);
    mem_free(t->each);
    mem_free(t->keys);
    mem_free(t->blocks);
    mem_free(t->mine_packed);
    sparse_close(&t->sent);
    sparse_close(&t->u);
    sparse_close(&t->wrong);
    sparse_close(&t->local);
    store_view_close(&t->view);
    mem_free(t->turns);
    mem_free(t);
}

/* -- choosing ------------------------------------------------------------------------------------------- */
/* acc += grad in [from, to), entries >= key to out, indices counted from `from`; how many there are. */
static size_t accumulate(struct exchange *x, const float *grad, size_t from, size_t to, uint32_t key,
                         struct sparse *out) {
    struct micro *t = x->state;
    out->nnz = 0;
    if (from == to) return 0;
    store_view_move(&t->view, x->setup.store, from, to - from);
    return t->view.ops->accumulate_select(&t->view, grad + from, key, out);
}

/* The same where other ranks choose: false when an entry is not finite, the first one in *bad. */
static bool accumulate_other(struct exchange *x, const float *grad, size_t from, size_t to, size_t *bad) {
    struct micro *t = x->state;
    if (accumulate(x, grad, from, to, KEY_INFINITE, &t->wrong) == 0) return true;
    *bad = from + t->wrong.idx[0];
    return false;
}

/* The same where this rank chooses, entries >= key. When more pass than there is room for, the largest may be lacking
 * among those that were stored. */
static bool accumulate_own(struct exchange *x, const float *grad, uint32_t key, size_t *count, size_t *bad) {
    struct micro *t = x->state;
    *count = accumulate(x, grad, t->begin, t->end, key, &t->local);
    struct sparse *suspects = &t->local;
    if (*count > t->local.cap) {
        suspects = &t->wrong;
        t->view.ops->select(&t->view, KEY_INFINITE, suspects);
    }
    size_t at = first_nonfinite(suspects->val, suspects->nnz);
    if (at == suspects->nnz) return true;
    *bad = t->begin + suspects->idx[at];
    return false;
}

static float *own_threshold(struct micro *t) {
    return &t->turns->threshold[t->mine];
}

/* To t->local the partition's entries from its share-th largest on, 1 <= share < its length, and that magnitude as the
 * new threshold. Where so many are equal to it that they find no room, those above it; where there are none, the first.
 */
static void start_again(struct exchange *x, size_t share) {
    struct micro *t = x->state;
    const struct store_ops *ops = t->view.ops;
    store_view_move(&t->view, x->setup.store, t->begin, t->end - t->begin);
    uint32_t key = key_not_zero(ops->kth_key(&t->view, share));
    *own_threshold(t) = key_value(key);
    if (ops->select(&t->view, key, &t->local) <= t->local.cap) return;
    if (ops->select(&t->view, key + 1, &t->local) > 0) return;
    ops->select(&t->view, key, &t->local);
    t->local.nnz = share;
}

/* How many of k this rank may choose: ranks with equal shares, up to one; all where k is n. */
static size_t share_of(const struct exchange *x, size_t k) {
    const struct micro *t = x->state;
    const struct comm *c = x->setup.comm;
    size_t share = even_part(k, c->size, c->rank), length = t->end - t->begin;
    return k == x->setup.n || share > length ? length : share;
}

/* The magnitude of the share-th largest as the new threshold, where all that passed the old one are in t->local. */
static void raise_threshold(struct exchange *x, size_t share) {
    struct micro *t = x->state;
    *own_threshold(t) = key_value(sparse_kth_key(&t->local, share, t->keys));
}

/* threshold = threshold * 1.005 where count > share, * 0.995 where count < share; afresh where it is far off, and not
 * already so low that all but zeros have passed. */
static void follow(struct exchange *x, uint32_t key, size_t count, size_t share) {
    struct micro *t = x->state;
    bool far_below = 2 * count < share && key > key_not_zero(0);
    if (far_below || count > t->local.cap)
        start_again(x, share);
    else if (count > 2 * share)
        raise_threshold(x, share);
    else if (count != share)
        *own_threshold(t) *= count > share ? 1.005f : 0.995f;
}

static uint32_t key_of_threshold(float threshold) {
    return key_not_zero(key_at_most_infinite(magnitude_key(threshold)));
}

/* acc += grad, and t->local: the selection of this row, which takes no selector. */
static bool choose(struct exchange *x, const float *grad, size_t k, size_t *bad) {
    PHASE_SCOPE(x->setup.phases, PHASE_SELECT);
    struct micro *t = x->state;
    const struct comm *c = x->setup.comm;
    t->mine = (int)((t->turns->step + (uint64_t)c->rank) % (uint64_t)c->size);
    t->begin = even_cut(x->setup.n, c->size, t->mine);
    t->end = even_cut(x->setup.n, c->size, t->mine + 1);
    size_t share = share_of(x, k), count;
    bool all = share == t->end - t->begin, none = share == 0;
    uint32_t key = none ? KEY_INFINITE : all ? 0 : key_of_threshold(*own_threshold(t));
    if (!accumulate_other(x, grad, 0, t->begin, bad)) return false;
    if (!accumulate_own(x, grad, key, &count, bad)) return false;
    if (!accumulate_other(x, grad, t->end, x->setup.n, bad)) return false;
    if (!all && !none) follow(x, key, count, share);
    sparse_keep_top(&t->local, share + share / 32, NULL, t->keys);
    return true;
}

/* -- all indices, all values -------------------------------------------------------------------------------- */
/* This rank's block; returns its bytes. */
static size_t pack_block(struct exchange *x) {
    PHASE_SCOPE(x->setup.phases, PHASE_PACK);
    struct micro *t = x->state;
    for (size_t i = 0; i < t->local.nnz; i++) t->local.idx[i] += (uint32_t)t->begin;
    size_t bytes = x->setup.wire->indices->encode(&t->local, t->begin, t->end, t->mine_packed + sizeof(struct head));
    const struct head head = {(uint32_t)bytes, *own_threshold(t)};
    memcpy(t->mine_packed, &head, sizeof head);
    return sizeof head + bytes;
}

static void gather_blocks(struct exchange *x, size_t k, struct exchange_sum *sum) {
    struct micro *t = x->state;
    struct comm *c = x->setup.comm;
    size_t bytes = pack_block(x);
    if (x->setup.wire->indices->fixed) {
        for (int r = 0; r < c->size; r++) t->each[r] = block_bytes(x, k);
    } else {
        comm_allgather_sizes(c, bytes, block_bytes(x, x->setup.k_max), t->each);
        sum->extra_words = (double)sizeof *t->each / 4 * (c->size - 1);
    }
    comm_allgatherv(c, t->mine_packed, t->each[c->rank], t->blocks, t->each);
}

/* The block of `owner`, whose partition this is, to the end of u. */
static void join_block(struct exchange *x, int owner, int part) {
    PHASE_SCOPE(x->setup.phases, PHASE_PACK);
    struct micro *t = x->state;
    int P = x->setup.comm->size;
    unsigned char *block = t->blocks + t->parts[owner];
    struct sparse tail = sparse_tail(&t->u), came;
    struct head head;
    if (t->each[owner] < sizeof head) die("rank %d sent %zu bytes of indices", owner, t->each[owner]);
    memcpy(&head, block, sizeof head);
    if (head.bytes > t->each[owner] - sizeof head)
        die("rank %d sent %zu bytes of %u", owner, t->each[owner], head.bytes);
    wire_read(x->setup.wire->indices, block + sizeof head, head.bytes, even_cut(x->setup.n, P, part),
              even_cut(x->setup.n, P, part + 1), owner, &tail, &came);
    if (came.nnz > tail.cap) die("rank %d sent %zu indices where %zu fit", owner, came.nnz, tail.cap);
    if (came.idx != tail.idx && came.nnz > 0) memcpy(tail.idx, came.idx, came.nnz * sizeof *came.idx);
    t->u.nnz += came.nnz;
    t->turns->threshold[part] = head.threshold;
}

/* The indices of all blocks in order, into u, and the partitions' thresholds. The partitions are taken in order,
 * whoever owns them in this step. */
static void join_blocks(struct exchange *x) {
    struct micro *t = x->state;
    int P = x->setup.comm->size, turns = (int)(t->turns->step % (uint64_t)P);
    size_t at = 0;
    for (int r = 0; r < P; at += t->each[r++]) t->parts[r] = at;
    t->u.nnz = 0;
    for (int part = 0; part < P; part++) join_block(x, (part + P - turns) % P, part);
}

/* The same in a format that rounds: what that cuts off here stays here, and is taken from what this rank has in u. */
static void sum_rounded(struct exchange *x) {
    struct micro *t = x->state;
    struct sparse cut = {.idx = t->u.idx, .val = t->cut, .nnz = t->u.nnz, .cap = t->u.nnz};
    set_parts(t, x->setup.comm, t->u.nnz);
    rounded_sums_run(&t->rounded, t->u.val, t->parts, t->cut);
    store_add_at(x->setup.store, &cut);
    for (size_t i = 0; i < t->sent.nnz; i++) t->sent.val[i] -= t->cut[i];
}

static void sum_whole(struct exchange *x) {
    struct micro *t = x->state;
    struct comm *c = x->setup.comm;
    float *mine = t->u.val + set_parts(t, c, t->u.nnz);
    COMM_SCOPE(c);
    comm_reduce_scatter_f32(c, t->u.val, t->parts, mine, t->sums);
    comm_allgatherv(c, mine, t->each[c->rank], t->u.val, t->each);
}

/* u[i] = sum over ranks of acc[i], which is then 0 everywhere, for all of u's indices. */
static void sum_values(struct exchange *x) {
    struct micro *t = x->state;
    store_gather_at(x->setup.store, &t->u);
    store_zero_at(x->setup.store, &t->u);
    t->sent.nnz = 0;
    if (x->setup.wants_sent) sparse_append(&t->sent, &t->u);
    (x->setup.wire->rounds ? sum_rounded : sum_whole)(x);
}

static bool micro_run(struct exchange *x, float *grad, size_t k, struct exchange_sum *sum) {
    struct micro *t = x->state;
    if (!choose(x, grad, k, &sum->bad)) return false;
    gather_blocks(x, k, sum);
    join_blocks(x);
    sum_values(x);
    t->turns->step++;
    sum->sparse = &t->u;
    sum->sent = sum->delivered = &t->sent;
    sum->local_nnz = t->u.nnz; /* a rank puts in what it holds at all the indices */
    return true;
}

static bool micro_saved(struct exchange *x, size_t piece, void **memory, size_t *bytes) {
    return exchange_saved_block(x, ((struct micro *)x->state)->turns, turns_bytes(x), piece, memory, bytes);
}

/* A threshold is infinite as long as nobody has looked for one. */
static bool micro_check(const struct exchange *x, uint64_t *alike, struct err *e) {
    const struct micro *t = x->state;
    if (t->turns->step > STEPS_MAX) return err_set(e, "micro's number of steps is none");
    for (int p = 0; p < x->setup.comm->size; p++)
        if (!(t->turns->threshold[p] >= 0)) return err_set(e, "micro's threshold of partition %d is none", p);
    *alike = hash64(*alike, t->turns, turns_bytes(x));
    return true;
}

/* P-1 blocks of c + c/32 indices, c = ceil(k/P), with lengths and thresholds; twice P-1 parts of k + k/32 values. */
static double micro_max_words(const struct cost_case *c) {
    double others = c->P - 1, part = ceil(floor((double)c->k * 33 / 32) / c->P);
    return others * (sizeof(struct head) / 4.0 + (double)largest_block(c->k, c->P) + 2 * part);
}

static void micro_cost(const struct cost_case *c, struct cost *cost) {
    double P = c->P, k = (double)c->k, others = P - 1;
    *cost = (struct cost){.alphas = 3.0 * ceil_log2(c->P),
                          .words = 3.0 * k * others / P,
                          .indices = {others, k / P, k / (double)c->n, .packed = others > 0, .unpacked = others},
                          .values = 2 * k * others / P,
                          .rounded = others > 0 ? k : 0,
                          .size_alphas = ceil_log2(c->P),
                          .size_words = 2 * others};
}

extern const struct exchange_ops exchange_micro;
const struct exchange_ops exchange_micro = {
    .name = "micro",
    .summary = "each rank chooses in a partition of its own; all add up what they hold at these indices",
    .paper = "MiCRO (Yoon and Oh, HiPC 2023)",
    .sparse = true,
    .conserves = true,
    .own_parts = true,
    .line_off = "all-gathers and a reduce-scatter of our own with log2(P) start-ups, as the line has it; blocks have "
                "room for a 32nd more",
    .simulation = {.rank = 3e-3, .entry = 0.5e-6, .held_arrays = 16},
    .open = micro_open,
    .run = micro_run,
    .close = micro_close,
    .max_words = micro_max_words,
    .cost = micro_cost,
    .saved = micro_saved,
    .check = micro_check,
};
