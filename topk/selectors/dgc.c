/* dgc.c: the threshold of a sample, and an exact selection among what passes when that is too much.
 *
 * Idea: 1% of the entries, at a fixed stride from a random start, estimate the k-th magnitude. If more than 1.3 k
 * entries reach it, the k largest of these are found exactly (the hierarchical step); if fewer than 0.8 k do, the
 * threshold is multiplied by 0.8, at most ten times.
 * Lin, Han, Mao, Wang and Dally, "Deep Gradient Compression", ICLR 2018, section 5 and the authors' code (sample of 1%
 * and at least 2n/k entries, bounds 0.8 and 1.3, ten adaptations).
 *
 * Returns: all that reach the threshold, 0.8 k to 1.3 k of them unless ties or zeros forbid; exactly k, ties to the
 * lower index, after the hierarchical step. Zeros never leave but after it.
 * Cost: 12 bytes per entry, n/100 scattered reads, and 4 bytes per entry for each adaptation.
 *
 * Deviations: the authors' code cuts what passed to k by index, which drops large entries at the end of the vector each
 * step; nothing is cut here between 0.8 k and 1.3 k. The sample grows beyond 1% only up to 65536 entries (with k of a
 * few it would be all of n): fewer samples mean more for the hierarchical step. Momentum correction and clipping of
 * the paper belong to the optimiser. */
#include "base/mem.h"
#include "base/rng.h"
#include "topk/candidates.h"
#include "topk/selector.h"

enum { ADAPTATIONS_MAX = 10, ENLARGED_MAX = 65536 };

struct dgc {
    uint64_t step;    /* what a checkpoint keeps: the sample's start is drawn from (seed, step) */
    uint32_t *sample; /* [samples of the smallest stride there is for n] */
    struct cut cut;
};

/* Of a sample of at least max(n/100, min(2n/k, 65536)) entries; odd, so as to be out of step with layers' widths. */
static size_t stride_for(size_t n, size_t k) {
    size_t wanted = (n + 99) / 100, enough = (2 * n + k - 1) / k;
    if (enough > ENLARGED_MAX) enough = ENLARGED_MAX;
    if (enough > wanted) wanted = enough;
    size_t stride = wanted < n ? n / wanted : 1;
    return stride % 2 ? stride : stride - 1;
}

static void dgc_open(struct selector *s) {
    size_t n = s->store->n;
    struct dgc *d = s->state = mem_zalloc(1, sizeof *d, "the dgc selector");
    /* a smaller n, of a view that moved, has a stride that is smaller at most in proportion */
    size_t most = n / stride_for(n, 1) + 1, enlarged = n < 3 * ENLARGED_MAX ? n : 3 * ENLARGED_MAX;
    d->sample = mem_alloc(most > enlarged ? most : enlarged, sizeof *d->sample, "a sample of the gradient");
    cut_open(&d->cut, selector_capacity(s->ops, n, s->k_max), s->k_max);
}

static void dgc_close(struct selector *s) {
    struct dgc *d = s->state;
    cut_close(&d->cut);
    mem_free(d->sample);
    mem_free(d);
}

static bool dgc_saved(struct selector *s, size_t piece, void **memory, size_t *bytes) {
    struct dgc *d = s->state;
    return selector_saved_block(&d->step, sizeof d->step, piece, memory, bytes);
}

static bool dgc_check(const struct selector *s, struct err *e) {
    const struct dgc *d = s->state;
    return d->step <= STEPS_MAX || err_set(e, "the dgc selector's number of steps is none");
}

/* The k-th of n in proportion, of a strided sample of acc + grad; never 0. */
static uint32_t sampled_key(struct selector *s, const float *grad, size_t k) {
    struct dgc *d = s->state;
    size_t n = s->store->n, stride = stride_for(n, k);
    struct rng rng = rng_open(s->settings.seed, RNG_SELECT, d->step++);
    size_t first = rng_below(&rng, (uint32_t)stride), samples = (n - 1 - first) / stride + 1;
    size_t rank = (samples * k + n - 1) / n;
    uint32_t key = s->store->ops->sample_kth_key(s->store, grad, first, stride, samples, rank, d->sample);
    return key_not_zero(key_at_most_infinite(key));
}

static bool dgc_run(struct selector *s, const float *grad, size_t k, struct sparse *out, size_t *bad) {
    struct dgc *d = s->state;
    struct store *store = s->store;
    uint32_t key = sampled_key(s, grad, k);
    size_t count = store->ops->accumulate_select(store, grad, key, out);
    if (!candidates_finite(out, bad)) return false;
    for (int i = 0; i < ADAPTATIONS_MAX && 10 * count < 8 * k && key > 1; i++) {
        key = key_reaching(0.8 * (double)key_value(key));
        count = store->ops->select(store, key, out);
    }
    s->stats.threshold = key_value(key);
    if (10 * count <= 13 * k) return true;
    if (count <= out->cap)
        sparse_keep_top(out, k, NULL, d->cut.keys);
    else if (!select_top(store, k, &d->cut, out, bad))
        return false;
    s->stats.threshold = key_value(candidates_least(out));
    return true;
}

extern const struct selector_ops selector_dgc;
const struct selector_ops selector_dgc = {
    .name = "dgc",
    .summary = "all at or above the threshold of a 1% sample; exact among them when too many",
    .paper = "Lin et al., ICLR 2018 (Deep Gradient Compression)",
    .open = dgc_open,
    .run = dgc_run,
    .close = dgc_close,
    .saved = dgc_saved,
    .check = dgc_check,
};
