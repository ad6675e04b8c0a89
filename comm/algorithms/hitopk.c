/* hitopk.c: the top k in two levels: dense inside a node, sparse between nodes: HiTopKComm.
 *
 * Idea: inside a node the links are fast, so its m ranks first sum their gradients there, dense: a reduce-scatter
 * leaves each with the node's sum of one shard, n/m entries. It selects k/m of them, and the owners of the same shard
 * on all N nodes exchange what they selected: only 2k/m words of a rank cross the network for each other node, and
 * every rank selects in n/m entries, not in n. The shards' sums then come to all ranks of the node.
 *
 * Source: Shi et al., "Towards Scalable Distributed Training of Deep Learning on Public Cloud Clusters", MLSys 2021
 * (arXiv 2010.10458), Algorithm 2.
 *
 * Cost per rank, N nodes of m ranks: between the nodes log2(N) alpha + 2(k/m)(N-1) beta; inside 3 log2(m) node-alpha +
 * [n + min(2kN, n)](m-1)/m + 2(m-1) node-beta. With a selector or a wire format of varying lengths another log2(N)
 * alpha + 2(N-1) beta. (The paper's equations 7, 9 and 10 count values only, and a ring inside the node.)
 * Residual: of the node's sum, with the rank that owns the shard, in its part of the store. Conserves: what a rank
 * gives is in the node's sum, and that is delivered or in the owner's residual. The rest of a rank's store, of the
 * shards of others, is added to what it gives them; it is zero but for what --wire bf16 or fp16 has cut off, and after
 * a resume of another run: of other ranks, say. Local-gradient combination goes by nodes, as in its paper, whose nodes
 * of several GPUs sum inside: the owner of a shard has its node's L and knows S, and L - S is gathered, dense, inside
 * the node: another log2(m) node-alpha + n(m-1)/m node-beta. So all ranks of a node get the same bits. (There a node
 * selects the K largest of all; here each shard k/m.) Restrictions: all nodes have as many ranks (--ranks-per-node can
 * emulate that). A shard's share of k goes by all of its entries, exempt ones (exempt.h) with them, so that one that is
 * mostly exempt spends it on zeros. What a single rank has in u cannot be told (sum.sent is NULL), since its gradient
 * is added to others before the selection. Sums are made in host memory: a gradient on another device is staged through
 * a host buffer of n, in chunks that are looked through while the next one comes.
 *
 * Shards: the first n mod m have one entry more. k likewise, so that the shares add up to k and k = n takes everything;
 * but where k < m each shard that has entries may send one, or some would never be heard.
 * Deviations: the last step gathers the shards' sums as sparse vectors (their lengths first), or dense where more than
 * half of a shard is there, not always dense as in Algorithm 2: that is what the paper's own cost of this step assumes,
 * and u is sparse at once. One message holds indices and values. With a format that rounds, the sums of a shard are
 * rounded once more for the last step, on all nodes alike; one owner, on node (shard mod N), keeps the difference.
 *
 * With --wire bf16 or fp16 the reduce-scatter, too, sends 2 bytes a value, and takes m - 1 node-alpha in place of
 * log2(m) (coded_sum.h). What that rounds off stays with the sender, in its store, or is dropped with --feedback off.
 * The node's L of a local update is then what its rounded gradients add up to; it is gathered in f32.
 *
 * A NaN or an infinity in the gradient is found before it is summed. A node's sum that overflows is sent on in place of
 * a selection, so that all ranks find it. */
#include <math.h>

#include "base/mem.h"
#include "comm/parts/coded_sum.h"
#include "comm/parts/peers.h"
#include "comm/parts/shards.h"
#include "comm/transport/host_stage.h"

struct hitopk {
    struct shards shards;
    struct host_stage stage; /* not opened where a node has one rank */
    float *mine;             /* [shard] host: the node's sum of this rank's shard */
    float *mine_there;       /* the same on the device; `mine` where that is the host */

    /* of the other shards */
    bool coded; /* they travel in 16 bits, */
    struct coded_sum halves;
    bool keeps;     /* and what that cuts off is kept */
    bool began;     /* a step has been made */
    float *waiting; /* [n] host: what the store has of them; NULL: it is host memory itself */

    /* of this rank's shard, indices from 0; not opened where it is empty (n < m) */
    struct store view;
    struct selector *selector;
    struct sparse local; /* [selector.room]: what was selected */
    struct sparse error; /* [largest of the two]: what a format cuts off */
    struct sparse total; /* [min(n/m, N selector_capacity)]: sum over the nodes */
    void *scratch;
    struct sparse_gather across;
    size_t *range; /* [N] the shard's size, N times */

    struct sparse_gather inside;
    struct sparse sum; /* [min(n, sum of the totals)] u */
};

static size_t share_of(const struct shards *s, size_t k, int j) {
    size_t share = front_part(k, s->inside->size, j);
    return share == 0 && s->each[j] > 0 ? 1 : share;
}

/* Most entries in a shard's sum over the nodes. */
static size_t most_entries(const struct exchange *x, int j) {
    const struct hitopk *t = x->state;
    size_t n = t->shards.each[j], N = (size_t)t->shards.across->size;
    if (n == 0) return 0;
    size_t each = selector_capacity(x->setup.selector->ops, n, share_of(&t->shards, x->setup.k_max, j));
    return sparse_sum_capacity(n, N, each);
}

static void open_shard(struct exchange *x) {
    struct hitopk *t = x->state;
    const struct selector *whole = x->setup.selector;
    size_t n = t->shards.count, N = (size_t)t->shards.across->size;
    size_t k = share_of(&t->shards, x->setup.k_max, t->shards.inside->rank);
    size_t most = most_entries(x, t->shards.inside->rank);
    store_view_open(&t->view, x->setup.store, t->shards.from, n);
    t->selector = selector_open(whole->ops, &t->view, k, &whole->settings);
    size_t cap = t->selector->room;
    sparse_open(&t->local, cap);
    sparse_open(&t->error, cap > most ? cap : most);
    sparse_open(&t->total, most);
    t->scratch = mem_alloc(1, sparse_sum_scratch(N), "scratch of a sparse sum");
    t->range = mem_alloc(N, sizeof *t->range, "sizes of shards");
    for (size_t i = 0; i < N; i++) t->range[i] = n;
    sparse_gather_open(&t->across, x, t->shards.across, t->selector->most);
}

/* What sums inside a node need. */
static void open_inside(struct exchange *x) {
    struct hitopk *t = x->state;
    host_stage_open(&t->stage, &x->setup, false);
    t->mine = mem_pinned_alloc(t->shards.count, sizeof *t->mine, "the node's sum of a shard");
    t->mine_there = t->mine;
    if (t->stage.device) {
        t->mine_there = t->stage.device->alloc(t->shards.count * sizeof *t->mine, "the node's sum of a shard");
        t->waiting = mem_pinned_alloc(x->setup.n, sizeof *t->waiting, "residuals on their way");
    }
    t->coded = x->setup.wire->pack != NULL;
    t->keeps = feedback_keeps_halves(&x->setup.options, x->setup.wire);
    if (!t->coded) return;
    const struct coder coder = coder_of_wire(x->setup.wire);
    coded_sum_open(&t->halves, x, t->shards.inside, x->setup.n, t->shards.each, &coder);
}

static void close_inside(struct hitopk *t) {
    if (t->coded) coded_sum_close(&t->halves);
    mem_pinned_free(t->waiting);
    if (t->stage.device) t->stage.device->release(t->mine_there);
    mem_pinned_free(t->mine);
    host_stage_close(&t->stage);
}

static void hitopk_open(struct exchange *x) {
    struct hitopk *t = x->state = mem_zalloc(1, sizeof *t, "hitopk");
    shards_open(&t->shards, x->setup.comm, x->setup.n);
    int m = t->shards.inside->size;
    size_t most = 0, all = 0;
    if (m > 1) open_inside(x);
    if (t->shards.count > 0) open_shard(x);
    for (int j = 0; j < m; j++) {
        size_t there = most_entries(x, j);
        most = there > most ? there : most;
        all += there;
    }
    sparse_gather_open(&t->inside, x, t->shards.inside, most);
    sparse_open(&t->sum, all);
}

static void close_shard(struct hitopk *t) {
    sparse_gather_close(&t->across);
    mem_free(t->range);
    mem_free(t->scratch);
    sparse_close(&t->total);
    sparse_close(&t->error);
    sparse_close(&t->local);
    selector_close(t->selector);
    store_view_close(&t->view);
}

static void hitopk_close(struct exchange *x) {
    struct hitopk *t = x->state;
    sparse_close(&t->sum);
    sparse_gather_close(&t->inside);
    if (t->shards.count > 0) close_shard(t);
    if (t->shards.inside->size > 1) close_inside(t);
    shards_close(&t->shards);
    mem_free(t);
}

/* The shards of the node's other ranks, two pieces of the vector: entries [from[i], from[i] + count[i]). */
enum { PIECES = 2 };
static void pieces_of_others(const struct exchange *x, size_t from[PIECES], size_t count[PIECES]) {
    const struct shards *s = &((const struct hitopk *)x->state)->shards;
    from[0] = 0;
    count[0] = s->from;
    from[1] = s->from + s->count;
    count[1] = x->setup.n - from[1];
}

/* host += what the store has of the shards of others; *any: there was something. False: host[*bad] is not a number. */
static bool add_what_waits(struct exchange *x, float *host, bool *any, size_t *bad) {
    struct hitopk *t = x->state;
    struct store *store = x->setup.store;
    size_t from[PIECES], count[PIECES];
    pieces_of_others(x, from, count);
    *any = false;
    for (int i = 0; i < PIECES; i++) {
        const float *there = t->waiting ? t->waiting : store->acc + from[i];
        float *to = host + from[i];
        size_t first = 0, at = count[i];
        PHASE_SCOPE(x->setup.phases, PHASE_SELECT);
        if (t->waiting) {
            PHASE_SCOPE(x->setup.phases, PHASE_PACK);
            store->ops->read(store, from[i], count[i], t->waiting);
        }
        while (first < count[i] && there[first] == 0) first++;
        for (size_t j = first; j < count[i]; j++) to[j] += there[j];
        if (first < count[i]) {
            *any = true;
            at = host_stage_nonfinite_own(&t->stage, x, to, count[i]);
        }
        *bad = from[i] + at;
        if (at < count[i]) return false;
    }
    return true;
}

/* What is left of it: where rounding errors are kept, those, which coded_sum_reduce has put into host; else nothing. */
static void leave_what_waits(struct exchange *x, float *host) {
    struct hitopk *t = x->state;
    struct store *store = x->setup.store;
    size_t from[PIECES], count[PIECES];
    pieces_of_others(x, from, count);
    PHASE_SCOPE(x->setup.phases, PHASE_PACK);
    for (int i = 0; i < PIECES; i++) {
        if (!t->keeps) memset(host + from[i], 0, count[i] * sizeof *host);
        store->ops->write(store, from[i], count[i], host + from[i]);
    }
}

/* Step 1: the node's sum of this rank's shard, which is then at *there on the device (nowhere, if the shard is empty).
 * False: grad[*bad] is not a number. */
static bool sum_on_node(struct exchange *x, float *grad, const float **there, size_t *bad) {
    struct hitopk *t = x->state;
    size_t n = x->setup.n;
    *there = t->shards.inside->size == 1 ? grad : t->mine_there;
    if (t->shards.inside->size == 1) return true;
    float *host = host_stage_at(&t->stage, grad);
    bool waits = false;
    *bad = host_stage_fetch(&t->stage, x, grad);
    if (*bad < n) return false;
    if ((t->keeps || !t->began) && !add_what_waits(x, host, &waits, bad)) return false;
    if (t->coded)
        coded_sum_reduce(&t->halves, host, t->keeps, t->mine);
    else
        comm_reduce_scatter_f32(t->shards.inside, host, t->shards.each, t->mine, t->shards.scratch);
    if (t->keeps || waits) leave_what_waits(x, host);
    t->began = true;
    host_stage_put(&t->stage, x, t->mine_there, t->mine, t->shards.count);
    return true;
}

/* k entries, all zero but an infinity at `bad`: sent in place of a selection, so that every rank finds the error. */
static void select_infinity(struct sparse *s, size_t k, size_t bad) {
    for (size_t i = 0; i < k; i++) {
        s->idx[i] = (uint32_t)i;
        s->val[i] = 0;
    }
    size_t at = bad < k ? bad : k - 1;
    s->idx[at] = (uint32_t)bad;
    s->val[at] = INFINITY;
    s->nnz = k;
}

/* Step 2: what leaves the node, rounded, into t->local, and out of the residual. */
static bool select_in_shard(struct exchange *x, const float *gradient, size_t k, size_t *bad) {
    struct hitopk *t = x->state;
    store_view_move(&t->view, x->setup.store, t->shards.from, t->shards.count); /* charged as that one is now */
    t->selector->audit = x->setup.selector->audit;
    bool good = selector_run(t->selector, gradient, k, &t->local, bad);
    x->setup.selector->stats = t->selector->stats;
    if (!good && t->shards.inside->size == 1) return false; /* it was in this rank's own gradient */
    if (!good) {
        select_infinity(&t->local, k, *bad);
        return true;
    }
    exchange_round(x, &t->local, &t->error);
    store_zero_at(&t->view, &t->local);
    store_add_at(&t->view, &t->error);
    return true;
}

/* Step 3: the sum over the nodes of this rank's shard, in the order of the nodes, rounded as the last step needs it. */
static const struct sparse *sum_of_nodes(struct exchange *x) {
    struct hitopk *t = x->state;
    const struct comm *across = t->shards.across;
    if (t->shards.count == 0 || across->size == 1) return &t->local;
    sparse_gather_run(&t->across, &t->local, t->range, t->selector->ops->exact_count);
    sparse_sum(t->across.part, (size_t)across->size, t->shards.count, &t->total, t->scratch);
    if (t->shards.inside->size == 1) return &t->total;
    exchange_round(x, &t->total, &t->error);
    if (across->rank == t->shards.inside->rank % across->size) store_add_at(&t->view, &t->error);
    return &t->total;
}

/* Step 4: u from the shards of all ranks of the node. */
static const struct sparse *all_shards(struct exchange *x, const struct sparse *own) {
    struct hitopk *t = x->state;
    if (t->shards.inside->size == 1) return own;
    sparse_gather_run(&t->inside, own, t->shards.each, false);
    size_t from = 0, nnz = 0;
    for (int j = 0; j < t->shards.inside->size; from += t->shards.each[j++]) {
        const struct sparse *part = &t->inside.part[j];
        if (part->nnz > t->sum.cap - nnz) die("the shards of a node have more than %zu entries", t->sum.cap);
        for (size_t i = 0; i < part->nnz; i++) t->sum.idx[nnz + i] = part->idx[i] + (uint32_t)from;
        if (part->nnz > 0) memcpy(t->sum.val + nnz, part->val, part->nnz * sizeof *part->val);
        nnz += part->nnz;
    }
    t->sum.nnz = nnz;
    return &t->sum;
}

static bool hitopk_run(struct exchange *x, float *grad, size_t k, struct exchange_sum *sum) {
    struct hitopk *t = x->state;
    const float *gradient;
    if (!sum_on_node(x, grad, &gradient, &sum->bad)) return false;
    bool known = x->setup.selector->ops->exact_count && x->setup.wire->fixed;
    if (!known) sum->extra_words = 2 * (t->shards.across->size - 1); /* lengths go first */
    if (t->shards.count > 0) {
        if (!select_in_shard(x, gradient, share_of(&t->shards, k, t->shards.inside->rank), &sum->bad)) return false;
        sum->local_nnz = t->local.nnz;
    }
    sum->sparse = all_shards(x, sum_of_nodes(x));
    return true;
}

/* L - S of this rank's shard, in the place of L. S is what the node has in u: where the sum of all nodes was rounded,
 * the error is the part of the one that keeps it. */
static void take_sent_away(struct hitopk *t) {
    const struct comm *across = t->shards.across;
    for (size_t i = 0; i < t->local.nnz; i++) t->mine[t->local.idx[i]] -= t->local.val[i];
    if (t->shards.count == 0 || across->size == 1 || across->rank != t->shards.inside->rank % across->size) return;
    for (size_t i = 0; i < t->error.nnz; i++) t->mine[t->error.idx[i]] += t->error.val[i];
}

/* grad = (u - S + L) / P. L, of this rank's shard, is where run has left it. */
static void hitopk_combine(struct exchange *x, const struct exchange_sum *sum, float *grad) {
    struct hitopk *t = x->state;
    struct store *store = x->setup.store;
    const float scale = 1.0f / (float)x->setup.comm->size;
    const bool alone = t->shards.inside->size == 1; /* then grad is L */
    if (!alone) {
        float *all = host_stage_at(&t->stage, grad);
        take_sent_away(t);
        comm_allgatherv(t->shards.inside, t->mine, t->shards.count * sizeof *all, all, t->shards.bytes);
        host_stage_put(&t->stage, x, grad, all, x->setup.n);
    }
    store->ops->scale(store, grad, scale);
    store->ops->scatter_add(store, sum->sparse, scale, grad);
    if (alone) store->ops->scatter_add(store, &t->local, -scale, grad);
}

/* With shards of up to ceil(n/m) entries. */
static void hitopk_combine_cost(const struct cost_case *c, struct cost *cost) {
    int m = c->ranks_per_node;
    cost->node_alphas += ceil_log2(m);
    cost->node_words += (double)front_part(c->n, m, 0) * (m - 1);
}

static bool hitopk_saved(struct exchange *x, size_t piece, void **memory, size_t *bytes) {
    struct selector *s = ((struct hitopk *)x->state)->selector;
    void *block = NULL;
    size_t size = 0;
    if (s) selector_saved(s, 0, &block, &size);
    return exchange_saved_block(x, block, size, piece, memory, bytes);
}

static bool hitopk_check(const struct exchange *x, uint64_t *alike, struct err *e) {
    const struct selector *s = ((const struct hitopk *)x->state)->selector;
    (void)alike; /* each shard has a threshold of its own */
    return !s || selector_check(s, e);
}

/* With shards of up to ceil(n/m) entries, of which up to max(1, ceil(k/m)) are selected. */
static void hitopk_cost(const struct cost_case *c, struct cost *cost) {
    int m = c->ranks_per_node, N = c->P / m;
    double shard = (double)front_part(c->n, m, 0), k = (double)front_part(c->k, m, 0);
    *cost = (struct cost){.alphas = ceil_log2(N),
                          .words = 2 * k * (N - 1),
                          .node_alphas = 3.0 * ceil_log2(m),
                          .node_words = (shard + fmin(2 * k * N, shard) + 2) * (m - 1),
                          .sparse = {N - 1, k, k / shard, .packed = N > 1, .unpacked = N - 1},
                          .size_alphas = ceil_log2(N),
                          .size_words = 2.0 * (N - 1),
                          .node_dense = {shard * (m - 1), m - 1 - ceil_log2(m), shard * (m - 1), shard * (m - 1)}};
    if (2 * k * N >= shard) return;
    cost->node_sparse = (struct cost_entries){m - 1, k * N, k * N / shard, .packed = m > 1, .unpacked = m - 1};
}

static double hitopk_max_words(const struct cost_case *c) {
    struct cost cost;
    hitopk_cost(c, &cost);
    return cost.words + cost.node_words;
}

extern const struct exchange_ops exchange_hitopk;
const struct exchange_ops exchange_hitopk = {
    .name = "hitopk",
    .summary = "dense sums inside the nodes, the top k of each shard between them",
    .paper = "HiTopKComm (Shi et al., MLSys 2021; arXiv 2010.10458)",
    .default_select = "mstopk",
    .options = OPTION_PART(feedback_option),
    .sparse = true,
    .selects = true,
    .conserves = true,
    .own_parts = true,
    .by_node = true,
    .halves = true,
    .loses = feedback_loses,
    .serves = shards_serve,
    .moves_as = "topka",
    .open = hitopk_open,
    .run = hitopk_run,
    .close = hitopk_close,
    .max_words = hitopk_max_words,
    .cost = hitopk_cost,
    .saved = hitopk_saved,
    .check = hitopk_check,
    .combine = hitopk_combine,
    .combine_cost = hitopk_combine_cost,
};
