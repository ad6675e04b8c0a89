/* oktopk.c: Ok-Topk: Topk(sum over ranks of Topk(acc)) by estimated thresholds, in less than 6k words.
 *
 * Idea: [0,n) is cut into P regions with about equal numbers of selected entries. Split and reduce: every rank sends
 * the entries of each region to its owner, who adds them up. Of the sums those that reach a global threshold stay; they
 * are evened out over the ranks where one has most of them, and gathered by all. Thresholds and regions change slowly,
 * so they are found anew only now and then.
 *
 * Source: Li and Hoefler, "Near-Optimal Sparse Allreduce for Distributed Deep Learning", PPoPP 2022 (arXiv 2201.07598),
 * Algorithms 1 and 2. The steps are in oktopk_split.c, oktopk_cut.c and oktopk_gather.c.
 *
 * Cost per rank: (2P + 2 log2(P)) alpha + 6k (P-1)/P beta at most, and about 4k (P-1)/P where nothing has to be evened
 * out. Like the paper's, the bound leaves out the gathering of the counts (11 (P-1) words) and takes the regions to be
 * balanced. extra_words says what a step may need beyond it: for new thresholds and regions, and where entries crowd in
 * regions that are out of date, or tie at the threshold.
 * Residual: acc without the entries that were sent and whose index is in u. Conserves: an index that stays is delivered
 * by every rank that sent it, one that does not by none; so what an owner cuts off has never left its senders.
 * With a format that rounds, a sender's error stays with it for the entries in u; the owner rounds the sums that it
 * keeps and takes their errors; of what is its own in u (sum.sent) it counts them back.
 * Restrictions: none; any P, any selector, any wire format.
 *
 * Thresholds: --oktopk-thresholds, and the selector's rule of the same name for the local
 * one. REUSE_PAPER is Algorithm 1 to the letter: exact every tau' steps, else the last one, and what passes is sent, be
 * it more than the bound on words allows (extra_words says by how much). REUSE_CODE_... are the same with thresholds
 * that the counts move, as in the code of its authors (topk/nudge.h). With REUSE_GUARDED, the default,
 * - the thresholds are led by the counts, to k/2..3k/2, and found anew in the same step where that fails
 * (oktopk_cut.c, topk/selectors/reuse.c);
 * - a selection of more than k entries is cut to its k largest;
 * - of the global thresholds one is taken, or found anew, with which no rank sends or receives more than the bound;
 * data are evened out then, too, not only at 4 times the mean; where a region got more than 3/2 of the mean, the next
 * step makes new ones (all from k = 16 P on). Under all, thresholds are found anew when k has changed by more than a
 * quarter (a density schedule).
 *
 * Deviations from the paper, besides:
 * - the exact global threshold comes from a distributed radix selection instead of gathering all sums at all ranks,
 * which costs more than the bound. All entries equal to the threshold stay.
 * - the learning rate is not folded into acc, unless the caller's gradient has it (--fold-lr). A rank that selected
 *   fewer entries than there are ranks votes for equal regions. Sums have one order, whatever the switches for rotation
 *   and buckets.
 * - data are not moved where that would not make the largest share smaller. */
#include "comm/algorithms/oktopk.h"

#include "base/hash.h"
#include "base/mem.h"
#include "topk/candidates.h"

/* The paper's values are the defaults. In the order of OKTOPK_NO_...: */
static const char *const techniques[] = {"regions", "rotation", "overlap", "balance", NULL};

static const struct option_row oktopk_options[] = {
    REUSE_OPTIONS(struct oktopk_use, period, thresholds),
    {"tau", "N", OPTION_INT, "64", "oktopk: steps between new region boundaries",
     OPTION_AT(struct oktopk_use, balance_period), .min = 1, .max = 1e9},
    {"oktopk-bucket", "N", OPTION_INT, "4", "oktopk: messages in flight at once while regions are reduced",
     OPTION_AT(struct oktopk_use, bucket), .min = 1, .max = 4096},
    {"oktopk-off", "LIST", OPTION_SET, "none",
     "oktopk: techniques to leave out, for ablations, with commas between them", OPTION_AT(struct oktopk_use, off),
     .names = techniques},
};
static const struct option_part oktopk_part = OPTION_PART(oktopk_options);

static size_t saved_bytes(const struct exchange *x) {
    return sizeof(struct oktopk_saved) + ((size_t)x->setup.comm->size + 1) * sizeof(uint64_t);
}

static bool oktopk_saved(struct exchange *x, size_t piece, void **memory, size_t *bytes) {
    return exchange_saved_block(x, ((struct oktopk *)x->state)->saved, saved_bytes(x), piece, memory, bytes);
}

/* All ranks take the same turns, go by the same threshold and know whose region is where. */
static bool oktopk_check(const struct exchange *x, uint64_t *alike, struct err *e) {
    const struct oktopk *t = x->state;
    const struct oktopk_saved *saved = t->saved;
    const size_t P = (size_t)x->setup.comm->size;
    const size_t k_max = x->setup.any_k ? x->setup.n : x->setup.k_max;
    if (saved->step > STEPS_MAX || saved->k > k_max || saved->uses > (uint64_t)t->use.period || saved->stale > 1)
        return err_set(e, "oktopk's counters are none of its own");
    if (!track_possible(&saved->track) || (saved->k == 0 && saved->track.key != 0))
        return err_set(e, "oktopk's threshold is none");
    bool ascending = saved->bound[0] == 0 && saved->bound[P] == x->setup.n;
    for (size_t r = 0; r < P; r++) ascending &= saved->bound[r] <= saved->bound[r + 1];
    if (!ascending) return err_set(e, "oktopk's regions do not follow one another");
    *alike = hash64(*alike, saved, saved_bytes(x));
    return true;
}

static void open_vectors(struct exchange *x, size_t cap, size_t most) {
    struct oktopk *t = x->state;
    bool rounds = x->setup.wire->rounds;
    sparse_open(&t->local, cap);
    sparse_open(&t->delivered, cap);
    sparse_open(&t->error, rounds ? cap : 0);
    sparse_open(&t->kept_error, rounds ? cap : 0);
    sparse_open(&t->owner_error, rounds ? most : 0);
    for (int i = 0; i < 2; i++) sparse_open(&t->split.reduced[i], most);
    sparse_open(&t->gather.slice, most / (size_t)x->setup.comm->size + 1);
    sparse_open(&t->u, most);
    if (rounds && x->setup.wants_sent) own_part_open(&t->mine, most);
}

static void open_messages(struct exchange *x, size_t cap, size_t most) {
    struct oktopk *t = x->state;
    const struct wire_ops *w = x->setup.wire;
    int P = x->setup.comm->size, both = P / 2 < t->use.bucket ? P : 2 * t->use.bucket;
    int slots = both < P ? both : P;
    t->split.slots = slots;
    t->split.slot_bytes = wire_capacity(w, cap);
    t->split.inbox = mem_alloc((size_t)slots, t->split.slot_bytes, "received entries");
    if (!w->in_place) {
        t->split.buffer = mem_alloc((size_t)slots, sizeof *t->split.buffer, "received entries");
        for (int i = 0; i < slots; i++) sparse_open(&t->split.buffer[i], cap);
    }
    t->split.part = mem_alloc((size_t)slots + 1, sizeof *t->split.part, "views of messages");
    t->split.scratch = mem_alloc(1, sparse_sum_scratch((size_t)slots + 1), "scratch of a sparse sum");
    t->split.at = mem_alloc((size_t)P + 1, sizeof *t->split.at, "places of regions");
    size_t gather = regions_room(w, most, P), split = regions_room(w, cap, P);
    outbox_open(&t->outbox, (split > gather ? split : gather) + wire_capacity(w, most / (size_t)P + 1));
    t->receive = mem_alloc((size_t)P, sizeof *t->receive, "receives under way");
    t->send = mem_alloc((size_t)P, sizeof *t->send, "sends under way");
    t->gather.all = mem_alloc(1, gather, "the messages of all ranks");
    t->gather.room = gather;
    t->gather.each = mem_alloc((size_t)P, sizeof *t->gather.each, "message sizes");
}

static void oktopk_open(struct exchange *x) {
    struct oktopk *t = x->state = mem_zalloc(1, sizeof *t, "oktopk");
    size_t P = (size_t)x->setup.comm->size, n = x->setup.n;
    size_t cap = x->setup.selector->room;
    size_t most = sparse_sum_capacity(n, P, cap);
    option_take(&oktopk_part, &t->use, &x->setup.options);
    t->saved = mem_zalloc(1, saved_bytes(x), "thresholds and regions");
    for (size_t r = 0; r <= P; r++) t->saved->bound[r] = even_cut(n, (int)P, (int)r);
    open_vectors(x, cap, most);
    open_messages(x, cap, most);
    t->load = mem_alloc(P, OKTOPK_LOAD * sizeof *t->load, "entry counts");
    t->first = mem_zalloc(P + 1, sizeof *t->first, "places of entries");
    t->histogram = mem_alloc(1024, sizeof *t->histogram, "a histogram of magnitudes");
}

static void oktopk_close(struct exchange *x) {
    struct oktopk *t = x->state;
    for (int i = 0; t->split.buffer && i < t->split.slots; i++) sparse_close(&t->split.buffer[i]);
    struct sparse *vectors[] = {&t->local,       &t->error, &t->delivered,        &t->kept_error,
                                &t->owner_error, &t->u,     &t->split.reduced[0], &t->split.reduced[1],
                                &t->gather.slice};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) sparse_close(vectors[i]);
    own_part_close(&t->mine);
    outbox_close(&t->outbox);
    void *blocks[] = {t->histogram,   t->load,     t->first,         t->gather.each, t->gather.all,
                      t->send,        t->receive,  t->split.scratch, t->split.part,  t->split.buffer,
                      t->split.inbox, t->split.at, t->saved};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) mem_free(blocks[i]);
    mem_free(t);
}

/* Algorithm 1, line 14, and Algorithm 2, line 6: the residual loses what is in u, see the head; this rank's part of u.
 */
static void deliver(struct exchange *x, struct exchange_sum *sum) {
    struct oktopk *t = x->state;
    struct store *store = x->setup.store;
    sparse_split(&t->local, &t->u, &t->delivered, NULL);
    if (x->setup.wire->rounds) sparse_split(&t->error, &t->u, &t->kept_error, NULL);
    store_zero_at(store, &t->delivered);
    sum->sent = sum->delivered = &t->delivered;
    if (!x->setup.wire->rounds) return;
    store_add_at(store, &t->kept_error);
    store_add_at(store, &t->owner_error);
    if (!x->setup.wants_sent) return;
    own_part_begin(&t->mine, &t->u);
    own_part_add(&t->mine, &t->delivered);
    own_part_take(&t->mine, &t->owner_error);
    sum->sent = own_part_end(&t->mine);
}

static double oktopk_max_words(const struct cost_case *c) {
    return 6.0 * (double)c->k * (c->P - 1) / c->P;
}

/* What this step may move more than max_words. */
static double extra_words(const struct exchange *x, const struct oktopk_step *s) {
    const struct comm *c = x->setup.comm;
    double most = s->sent > s->received ? s->sent : s->received, counts = oktopk_count_words(x);
    double bound = oktopk_max_words(
        &(struct cost_case){.n = x->setup.n, .k = s->k, .P = c->size, .ranks_per_node = c->local_size});
    return s->extra + (most + counts > bound ? most + counts - bound : 0);
}

/* Algorithm 1, whose lines are named, within lines 4-6 of Algorithm 2. */
static bool oktopk_run(struct exchange *x, float *grad, size_t k, struct exchange_sum *sum) {
    struct oktopk *t = x->state;
    struct oktopk_step s = {.k = k};
    /* Lines 2-4, by the selector: acc = residual + gradient, and its entries above the local threshold. */
    bool selected = oktopk_literal(x) ? selector_run(x->setup.selector, grad, k, &t->local, &sum->bad)
                                      : selector_run_top(x->setup.selector, grad, k, &t->local, t->u.idx, &sum->bad);
    if (!selected) return false;
    exchange_round(x, &t->local, &t->error);
    oktopk_regions(x, &s);          /* lines 5-7 */
    oktopk_split_and_reduce(x, &s); /* line 8 */
    oktopk_cut(x, &s);              /* lines 9-12 */
    exchange_round(x, s.reduced, &t->owner_error);
    oktopk_gather(x, &s); /* line 13 */
    deliver(x, sum);      /* line 14 */
    t->saved->step++;
    sum->sparse = &t->u;
    sum->local_nnz = t->local.nnz;
    sum->threshold = key_value(s.key);
    sum->evaluated = s.evaluated;
    if (x->setup.selector->audit) sum->exact_threshold = s.exact;
    sum->extra_words = extra_words(x, &s);
    return true;
}

/* The three parts of the bound are P-1 messages each, of a region's share of k. With a format of varying lengths the
 * sizes of the last ones are gathered. What is gathered is packed once. */
static void oktopk_cost(const struct cost_case *c, struct cost *cost) {
    double k = (double)c->k, others = c->P - 1;
    *cost = (struct cost){.alphas = c->P == 1 ? 0 : 2.0 * c->P + 2.0 * ceil_log2(c->P),
                          .words = oktopk_max_words(c),
                          .sparse = {3 * others, k / c->P, k / (double)c->n, .packed = c->P > 1 ? 2 * others + 1 : 0,
                                     .unpacked = 3 * others},
                          .size_alphas = ceil_log2(c->P),
                          .size_words = 2 * others};
}

extern const struct exchange_ops exchange_oktopk;
const struct exchange_ops exchange_oktopk = {
    .name = "oktopk",
    .summary = "global top k by reused thresholds, balanced regions and an even all-gather: 6k words",
    .paper = "Ok-Topk Algorithms 1 and 2 (Li & Hoefler, PPoPP 2022)",
    .default_select = "reuse",
    .sparse = true,
    .selects = true,
    .conserves = true,
    .options = OPTION_PART(oktopk_options),
    .evaluates = true,
    .line_off = "the line has 6k words, its bound, of which about 4k are sent, and 2P start-ups, which here pass at "
                "the same time; every step gathers counts of 11 words a rank, which the line, as the paper's, leaves "
                "out, and which weigh S times too much where a cell is scaled; new thresholds and regions, every 32 "
                "and 64 steps, are not in these steps",
    .simulation = {.rank = 2e-3, .peer = 0.15e-3, .entry = 1e-6, .held_arrays = 32, .held_lists = 25},
    .open = oktopk_open,
    .run = oktopk_run,
    .close = oktopk_close,
    .max_words = oktopk_max_words,
    .cost = oktopk_cost,
    .saved = oktopk_saved,
    .check = oktopk_check,
};
