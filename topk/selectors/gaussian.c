/* gaussian.c: the threshold that a normal distribution of the same mean and deviation would have.
 *
 * Idea: if acc were normal, |acc| would exceed mean + z sigma in a share rho = k/n of the entries, for z the quantile
 * of 1 - rho/2. No selection is needed at all, only two moments.
 * Shi, Chu, Cheung and See, "Understanding Top-k Sparsification in Distributed Deep Learning", arXiv 1911.08772
 * (GaussianK-SGD). Adjusted, unless --gaussian-adjust is off, as in Li and Hoefler, PPoPP 2022, section 5.4: the
 * threshold is divided by 1.02 until more than 3k/4 entries pass; where acc has no more than that but zeros, all of
 * those do.
 *
 * Returns: all whose magnitude is > threshold, and never zeros. Known bias, to be seen in the counts and not hidden:
 * real gradients have a higher peak than a normal distribution, so that too many pass where tails are heavy (early in
 * training) and, unadjusted, an order of magnitude too few where they are short (later; Figures 4 and 6 of Li and
 * Hoefler), or none at all: a uniform distribution ends below mean + z sigma for any k < 0.08 n.
 * Cost: one pass that accumulates, sums and compacts candidates by a guessed key: 12 bytes per entry. As long as the
 * threshold stays above that key, counts and the result come from the candidates; below it one more read. The divisions
 * cost no passes: the entry of rank floor(3k/4) + 1, which the last threshold lets pass, is found among the candidates
 * (two more reads where they are too few).
 *
 * Deviations: mean and deviation of all n entries (the paper's code divides by n - 1). The first paper's own adjustment
 * is coarser (at most four steps of 0.5 or 1.5). At most selector_capacity entries, 8 k_max and more, are returned:
 * when more pass, the largest of them. */
#include "base/mem.h"
#include "topk/candidates.h"
#include "topk/normal.h"
#include "topk/selector.h"

enum { ADJUST_ON, ADJUST_OFF };
struct gaussian_use {
    int adjust;
};
static const struct option_row gaussian_options[] = {
    {"gaussian-adjust", "HOW", OPTION_CHOICE, "on",
     "selector gaussian: divide its threshold by 1.02 until more than 3k/4 entries pass it; off: as it is first found",
     OPTION_AT(struct gaussian_use, adjust), .names = (const char *const[]){"on", "off", NULL}},
};
static const struct option_part gaussian_part = OPTION_PART(gaussian_options);

struct gaussian {
    struct gaussian_use use;
    struct cut cut;
};

static void gaussian_open(struct selector *s) {
    size_t cap = selector_capacity(s->ops, s->store->n, s->k_max);
    struct gaussian *g = s->state = mem_zalloc(1, sizeof *g, "the gaussian selector");
    option_take(&gaussian_part, &g->use, &s->settings.options);
    cut_open(&g->cut, cap, cap);
}

static void gaussian_close(struct selector *s) {
    cut_close(&((struct gaussian *)s->state)->cut);
    mem_free(s->state);
}

/* Of the entries above t, which are not zero. */
static uint32_t key_of(double t) {
    return key_not_zero(key_above(t));
}

/* Do `wanted` entries reach `key`? out: the candidates, all that reach `guess` when `complete`. */
static bool enough(struct selector *s, uint32_t key, size_t wanted, const struct sparse *out, uint32_t guess,
                   bool complete) {
    if (complete && key >= guess) return candidates_count(out, key) >= wanted;
    if (complete && out->nnz >= wanted) return true;
    return s->store->ops->count(s->store, key) >= wanted;
}

/* The key of the first of t, t/1.02, t/1.02^2, ... that lets `wanted` entries pass; else, of all that are not zero. So
 * many pass as soon as the wanted-th largest does: from FLT_MAX to the least denormal in less than 10000 divisions. */
static uint32_t adjusted_key(struct selector *s, double t, size_t wanted, const struct sparse *out, bool complete) {
    struct cut *c = &((struct gaussian *)s->state)->cut;
    bool among = complete && out->nnz >= wanted;
    uint32_t last = among ? sparse_kth_key(out, wanted, c->keys) : s->store->ops->kth_key(s->store, wanted);
    if (last == 0) return 1;
    while (key_of(t) > last) t /= 1.02;
    return key_of(t);
}

static bool gaussian_run(struct selector *s, const float *grad, size_t k, struct sparse *out, size_t *bad) {
    struct gaussian *g = s->state;
    struct store *store = s->store;
    struct moments m;
    uint32_t guess = key_at_most_infinite(store->ops->guess_key(store, grad, k));
    bool complete = store->ops->accumulate_select_moments(store, grad, guess, out, &m) <= out->cap;
    if (m.max_key >= KEY_INFINITE) {
        find_not_finite(store, out, bad);
        return false;
    }
    double t = normal_threshold(&m, k);
    size_t wanted = 3 * k / 4 + 1;
    uint32_t key = key_of(t);
    if (g->use.adjust == ADJUST_ON && !enough(s, key, wanted, out, guess, complete))
        key = adjusted_key(s, t, wanted, out, complete);
    s->stats.threshold = key_value(key);
    if (complete && key >= guess) {
        candidates_filter(out, key);
        return true;
    }
    if (store->ops->select(store, key, out) <= out->cap) return true;
    bool good = select_top(store, out->cap, &g->cut, out, bad);
    s->stats.threshold = key_value(candidates_least(out));
    return good;
}

extern const struct selector_ops selector_gaussian;
const struct selector_ops selector_gaussian = {
    .name = "gaussian",
    .summary = "all above the threshold of a normal distribution with the same mean and deviation",
    .paper = "Shi et al., arXiv 1911.08772 (GaussianK); adjusted as in Li & Hoefler, PPoPP 2022",
    .options = OPTION_PART(gaussian_options),
    .capacity = candidates_wide_capacity,
    .open = gaussian_open,
    .run = gaussian_run,
    .close = gaussian_close,
};
