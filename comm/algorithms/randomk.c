/* randomk.c: random k with memory: all ranks send what they have at the same k random entries.
 *
 * Idea: in every step k of the n entries are drawn from a seed and the step's number, which all ranks have: so no index
 * travels, and what the ranks hold at these entries is summed densely, as k floats. The rest waits in the residuals. It
 * is the control for what claims to gain by sending the largest entries: the same k at half the words of an entry,
 * without selecting.
 *
 * Source: Stich, Cordonnier and Jaggi, "Sparsified SGD with Memory", NeurIPS 2018 (arXiv 1809.07599): rand-k in
 * MEM-SGD, Algorithm 1.
 *
 * Cost per rank: 2 log2(P) alpha + 2k(P-1)/P beta: MPI's allreduce of k floats, as dense's of n.
 * Drawing (comm/parts/random_subset.h): all sets of k entries are equally likely, so that each entry leaves with the
 * probability k/n, independently of the steps before. O(k) time.
 * Residual: acc, with zeros at u's indices, on every rank. Conserves.
 *
 * NaN and infinities: the pass that accumulates selects what is not finite, wherever it is.
 * Restrictions: the wire formats do not apply: no index travels, and values are f32, because they are added up on the
 * way. With entries that are exempt (exempt.h) some of the k are drawn among these, and are zeros.
 * By layers each group draws by itself, from a seed of its own.
 * Deviation: the paper's workers choose each for itself; here all draw the same entries, so that no index travels and
 * the sum has k entries. (As there, values are not multiplied by n/k, as an unbiased choice without memory would have
 * it: what waits is delivered in full later.) */
#include "base/hash.h"
#include "base/mem.h"
#include "comm/exchange.h"
#include "comm/parts/peers.h"
#include "comm/parts/random_subset.h"

/* What survives a checkpoint. */
struct drawn {
    uint64_t step; /* the next one's number: its entries are drawn from (seed, step) */
};

struct randomk {
    struct drawn drawn;
    struct random_subset subset;
    struct sparse wrong; /* [1]: the first entry that is not finite */
    struct sparse u;     /* [k_max] */
    struct sparse sent;  /* [k_max]: this rank's values at u's indices, where they are wanted */
};

static void randomk_open(struct exchange *x) {
    struct randomk *t = x->state = mem_zalloc(1, sizeof *t, "randomk");
    size_t k_max = x->setup.k_max;
    random_subset_open(&t->subset, x->setup.n, k_max);
    sparse_open(&t->wrong, 1);
    sparse_open(&t->u, k_max);
    if (x->setup.wants_sent) sparse_open(&t->sent, k_max);
}

static void randomk_close(struct exchange *x) {
    struct randomk *t = x->state;
    sparse_close(&t->sent);
    sparse_close(&t->u);
    sparse_close(&t->wrong);
    random_subset_close(&t->subset);
    mem_free(t);
}

/* acc += grad. False when an entry is not finite, the first one in *bad. */
static bool accumulate(struct exchange *x, const float *grad, size_t *bad) {
    PHASE_SCOPE(x->setup.phases, PHASE_SELECT);
    struct randomk *t = x->state;
    struct store *store = x->setup.store;
    if (store->ops->accumulate_select(store, grad, KEY_INFINITE, &t->wrong) == 0) return true;
    *bad = t->wrong.idx[0];
    return false;
}

/* This step's k indices to u. */
static void draw(struct exchange *x, size_t k) {
    PHASE_SCOPE(x->setup.phases, PHASE_SELECT);
    struct randomk *t = x->state;
    struct rng rng = rng_open(x->setup.seed, RNG_SUBSET, t->drawn.step++);
    random_subset_draw(&t->subset, &rng, k, t->u.idx);
    t->u.nnz = k;
}

static bool randomk_run(struct exchange *x, float *grad, size_t k, struct exchange_sum *sum) {
    struct randomk *t = x->state;
    struct store *store = x->setup.store;
    if (!accumulate(x, grad, &sum->bad)) return false;
    draw(x, k);
    store_gather_at(store, &t->u);
    store_zero_at(store, &t->u);
    t->sent.nnz = 0;
    if (x->setup.wants_sent) sparse_append(&t->sent, &t->u);
    comm_allreduce_f32(x->setup.comm, t->u.val, k, COMM_SUM);
    sum->sparse = &t->u;
    sum->sent = sum->delivered = &t->sent;
    sum->local_nnz = k;
    return true;
}

static bool randomk_saved(struct exchange *x, size_t piece, void **memory, size_t *bytes) {
    struct randomk *t = x->state;
    return exchange_saved_block(x, &t->drawn, sizeof t->drawn, piece, memory, bytes);
}

static bool randomk_check(const struct exchange *x, uint64_t *alike, struct err *e) {
    const struct randomk *t = x->state;
    if (t->drawn.step > STEPS_MAX) return err_set(e, "randomk's number of steps is none");
    *alike = hash64(*alike, &t->drawn, sizeof t->drawn);
    return true;
}

static void randomk_skip(struct exchange *x, uint64_t steps) {
    ((struct randomk *)x->state)->drawn.step = steps;
}

static double randomk_max_words(const struct cost_case *c) {
    return 2.0 * (double)c->k * (c->P - 1) / c->P;
}

static void randomk_cost(const struct cost_case *c, struct cost *cost) {
    *cost = (struct cost){.alphas = 2.0 * ceil_log2(c->P), .words = randomk_max_words(c)};
}

extern const struct exchange_ops exchange_randomk;
const struct exchange_ops exchange_randomk = {
    .name = "randomk",
    .summary = "the same k random entries of all ranks, without indices, by allreduce: the control",
    .paper = "rand-k with memory (Stich, Cordonnier and Jaggi, NeurIPS 2018)",
    .sparse = true,
    .conserves = true,
    .blind = true,
    .line_off = "MPI's sum of a short vector by recursive doubling: log2(P) start-ups, k log2(P) words",
    .simulation = {.rank = 0.7e-3, .entry = 0.04e-6, .held_arrays = 2, .undivided = true},
    .open = randomk_open,
    .run = randomk_run,
    .close = randomk_close,
    .max_words = randomk_max_words,
    .cost = randomk_cost,
    .saved = randomk_saved,
    .check = randomk_check,
    .skip = randomk_skip,
};
