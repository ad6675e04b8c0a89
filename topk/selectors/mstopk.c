/* mstopk.c: a binary search for the threshold, by counting.
 *
 * Idea: N = 30 times, count the magnitudes that reach a threshold between their mean and their maximum, and halve the
 * interval. Of the two nearest thresholds, all above the upper one leave; what is missing to k is a contiguous run,
 * from a random start, of the entries between the two. No sorting, nothing scattered. Shi et al., "Towards Scalable
 * Distributed Training of Deep Learning on Public Cloud Clusters", MLSys 2021, Algorithm 1.
 *
 * Returns: exactly k. These are the k largest but for the run, which may miss some of equal or nearly equal magnitude
 * (the paper: 99% agree); with one huge outlier the interval never closes and the run is most of the result.
 * Cost: one pass that accumulates, sums and compacts candidates by a guessed key: 12 bytes per entry. Counts at or
 * above that key are taken among the candidates, each time among those alone that the thresholds found so far leave
 * open; below it the answer "more than k" is known. Only when the guess was wrong, or the lower threshold stays below
 * it, is acc read again (30 counts, or the entries between the thresholds, at worst).
 *
 * Deviations: none in the result, except that before any threshold let k or fewer pass, the paper's upper threshold is
 * 0 (everything), here infinity (nothing), as its k1 = 0 means. The paper keeps a threshold only where the count got
 * nearer; the same set passes where it did not. */
#include "base/mem.h"
#include "base/rng.h"
#include "base/simd.h"
#include "topk/candidates.h"
#include "topk/cpu/kernels.h"
#include "topk/selector.h"

enum { COUNTS = 30, CHUNK = 65536 };

struct mstopk {
    uint64_t step;       /* what a checkpoint keeps: the run's start is drawn from (seed, step) */
    struct sparse chunk; /* [min(n, CHUNK)]: entries of a part of acc */
    uint32_t *key;       /* [capacity]: of the candidates that further counts may tell apart */
};

/* The thresholds that were found. */
struct interval {
    uint32_t guess;    /* out holds all that reach this, */
    bool complete;     /* if this is so */
    uint32_t from, to; /* more than k entries have a key >= from (or from is 0), k or fewer one >= to: */
    size_t above;      /* so many */
    size_t open;       /* of `key`: candidates in [from, to) */
};

/* Of the entries with a key in [from, to), in index order: the run that stays; how many of all of them were seen. */
struct run {
    size_t start, wanted, seen;
};

static void mstopk_open(struct selector *s) {
    struct mstopk *x = s->state = mem_zalloc(1, sizeof *x, "the mstopk selector");
    sparse_open(&x->chunk, s->store->n < CHUNK ? s->store->n : CHUNK);
    x->key = mem_alloc(selector_capacity(s->ops, s->store->n, s->k_max), sizeof *x->key, "keys of a selection");
}

static void mstopk_close(struct selector *s) {
    struct mstopk *x = s->state;
    sparse_close(&x->chunk);
    mem_free(x->key);
    mem_free(x);
}

static bool mstopk_saved(struct selector *s, size_t piece, void **memory, size_t *bytes) {
    struct mstopk *x = s->state;
    return selector_saved_block(&x->step, sizeof x->step, piece, memory, bytes);
}

static bool mstopk_check(const struct selector *s, struct err *e) {
    const struct mstopk *x = s->state;
    return x->step <= STEPS_MAX || err_set(e, "the mstopk selector's number of steps is none");
}

SIMD_CLONES static size_t keys_reaching(const uint32_t *key, size_t n, uint32_t least) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) count += key[i] >= least;
    return count;
}

/* How many entries reach `key`, which lies in [from, to]; where these are more than k, perhaps fewer than all of them,
 * but more than k. */
static size_t count_at(struct selector *s, size_t k, uint32_t key, const struct sparse *out, const struct interval *v) {
    const struct mstopk *x = s->state;
    if (key >= KEY_INFINITE) return 0;
    if (v->complete && key >= v->guess) return v->above + keys_reaching(x->key, v->open, key);
    if (v->complete && out->nnz > k) return out->nnz;
    return s->store->ops->count(s->store, key);
}

/* threshold = mean + ratio (max - mean), ratio halving its interval from [0, 1] */
static void search(struct selector *s, size_t k, const struct moments *m, const struct sparse *out,
                   struct interval *v) {
    uint32_t *open = ((struct mstopk *)s->state)->key;
    double mean = m->sum_abs / (double)m->count, span = (double)key_value(m->max_key) - mean, low = 0, high = 1;
    v->from = 0;
    v->to = KEY_INFINITE;
    v->above = 0;
    v->open = v->complete ? out->nnz : 0;
    for (size_t i = 0; i < v->open; i++) open[i] = magnitude_key(out->val[i]);
    for (int i = 0; i < COUNTS; i++) {
        double ratio = low + (high - low) / 2;
        uint32_t key = key_reaching(mean + ratio * span);
        size_t count = count_at(s, k, key, out, v);
        if (count > k) {
            low = ratio;
            v->from = key;
        } else {
            high = ratio;
            v->to = key;
            v->above = count;
        }
        v->open = topk_kernels()->filter_keys(open, v->open, v->from, v->to - v->from);
    }
}

/* lower: how many entries reach v->from. */
static struct run run_among(struct selector *s, size_t k, size_t lower, const struct interval *v) {
    struct mstopk *x = s->state;
    struct rng rng = rng_open(s->settings.seed, RNG_SELECT, x->step);
    struct run run = {.wanted = k - v->above};
    size_t between = lower - v->above;
    if (between > run.wanted) run.start = rng_below(&rng, (uint32_t)(between - run.wanted + 1));
    return run;
}

/* Of the next entries that reach v->from, with indices that count from `base`, those that reach v->to and those of the
 * run to the end of out, which may lie where they do. */
static void keep(const struct sparse *next, size_t base, const struct interval *v, struct run *run,
                 struct sparse *out) {
    size_t kept = out->nnz, seen = run->seen;
    uint32_t to = v->to;
    for (size_t i = 0; i < next->nnz; i++) {
        float value = next->val[i];
        bool upper = magnitude_key(value) >= to;
        bool in_run = !upper && seen >= run->start && seen < run->start + run->wanted;
        seen += !upper;
        out->idx[kept] = (uint32_t)(base + next->idx[i]);
        out->val[kept] = value;
        kept += upper || in_run;
    }
    out->nnz = kept;
    run->seen = seen;
}

/* out holds all that reach v->from. */
static void keep_from_candidates(struct selector *s, size_t k, const struct interval *v, struct sparse *out) {
    candidates_filter(out, v->from);
    struct run run = run_among(s, k, out->nnz, v);
    const struct sparse all = *out;
    out->nnz = 0;
    keep(&all, 0, v, &run, out);
}

/* The entries between the thresholds are not among the candidates. */
static void keep_from_all(struct selector *s, size_t k, const struct interval *v, struct sparse *out) {
    struct mstopk *x = s->state;
    struct store view;
    size_t n = s->store->n, lower = v->from ? s->store->ops->count(s->store, v->from) : n;
    struct run run = run_among(s, k, lower, v);
    store_view_open(&view, s->store, 0, 0);
    out->nnz = 0;
    for (size_t base = 0; base < n; base += x->chunk.cap) {
        store_view_move(&view, s->store, base, n - base < x->chunk.cap ? n - base : x->chunk.cap);
        view.ops->select(&view, v->from, &x->chunk);
        keep(&x->chunk, base, v, &run, out);
    }
    store_view_close(&view);
}

static bool mstopk_run(struct selector *s, const float *grad, size_t k, struct sparse *out, size_t *bad) {
    struct mstopk *x = s->state;
    struct store *store = s->store;
    struct moments m;
    struct interval v = {.guess = key_at_most_infinite(store->ops->guess_key(store, grad, k))};
    v.complete = store->ops->accumulate_select_moments(store, grad, v.guess, out, &m) <= out->cap;
    if (m.max_key >= KEY_INFINITE) {
        find_not_finite(store, out, bad);
        return false;
    }
    search(s, k, &m, out, &v);
    if (v.above == k) v.from = v.to;
    s->stats.threshold = key_value(v.from);
    if (v.complete && v.from >= v.guess)
        keep_from_candidates(s, k, &v, out);
    else
        keep_from_all(s, k, &v, out);
    x->step++;
    return true;
}

extern const struct selector_ops selector_mstopk;
const struct selector_ops selector_mstopk = {
    .name = "mstopk",
    .summary = "exactly k: all above one threshold, a run of those above the next, by 30 counts",
    .paper = "Shi et al., MLSys 2021 (MSTopK), Algorithm 1",
    .exact_count = true,
    .open = mstopk_open,
    .run = mstopk_run,
    .close = mstopk_close,
    .saved = mstopk_saved,
    .check = mstopk_check,
};
