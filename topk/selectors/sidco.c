/* sidco.c: an exponential distribution fitted to the tail, in stages.
 *
 * Idea: if magnitudes were exponential with mean b, a share rho of them would exceed b ln(1/rho). They are not quite,
 * so the fit is repeated on what exceeds the last threshold, which is nearly exponential the further out it lies: stage
 * 1 aims at a share of 1/4, each later one at an equal factor of what remains,
 *
 *        eta_1 = mean(|x|) ln(1/delta_1)
 *        eta_m = eta_(m-1) + (mean(|x| : |x| > eta_(m-1)) - eta_(m-1)) ln(1/delta_m),   m = 2..M
 *        delta_1 = 1/4, delta_m = (rho/delta_1)^(1/(M-1));   M = 1 or rho >= 1/4: delta_1 = rho
 *
 * and M adapts: every 5 steps, one stage less if on average more than 1.2 k entries passed, one more if fewer than 0.8
 * k, within 1..ceil(log2(1/rho)), from M = 1. Abdelmoniem, Elzanaty, Alouini and Canini, "An Efficient
 * Statistical-based Gradient Compression Technique for Distributed Training Systems", MLSys 2021 (SIDCo-E; tolerance
 * 20%, Q = 5, delta_1 = 0.25).
 *
 * Returns: all whose magnitude is > eta_M, about k where the tail is exponential or gamma-like.
 * Cost: one pass that accumulates, sums and compacts the largest few percent as candidates: 12 bytes per entry; then 4
 * bytes per entry for each stage whose threshold lies below the candidates (the second, as a rule, and no other).
 *
 * Deviations: a stage that nothing exceeds is left out, and when nothing exceeds eta_M although acc is not zero, the
 * entries of largest magnitude leave: without that, equal magnitudes would stay for ever. At most selector_capacity
 * entries, 8 k_max and more, are returned: when more pass, the largest of them (M adapts to the count before that). */
#include <math.h>

#include "base/mem.h"
#include "topk/candidates.h"
#include "topk/selector.h"

enum { ADAPT_EVERY = 5, CANDIDATE_SHARE = 32, STAGES_MAX = 32 }; /* n < 2^32 */

static const double first_share = 0.25, tolerance = 0.2;

/* What a checkpoint keeps. */
struct memory {
    double ratios;           /* sum of count/k since the number of stages was last looked at, */
    uint32_t summed, stages; /* in so many steps; M */
};

struct sidco {
    struct memory memory;
    struct sparse some; /* candidates: more than `out` has room for, to spare reads of acc */
    struct cut cut;
};

/* Candidates are asked for by the number of entries that a stage of a few percent wants. */
static size_t candidates_wanted(size_t n, size_t k) {
    return k > n / CANDIDATE_SHARE ? k : n / CANDIDATE_SHARE;
}

static void sidco_open(struct selector *s) {
    size_t n = s->store->n, cap = selector_capacity(s->ops, n, s->k_max);
    size_t some = selector_capacity(NULL, n, candidates_wanted(n, s->k_max));
    struct sidco *x = s->state = mem_zalloc(1, sizeof *x, "the sidco selector");
    x->memory.stages = 1;
    sparse_open(&x->some, some);
    cut_open(&x->cut, some > cap ? some : cap, cap);
}

static void sidco_close(struct selector *s) {
    struct sidco *x = s->state;
    sparse_close(&x->some);
    cut_close(&x->cut);
    mem_free(x);
}

static bool sidco_saved(struct selector *s, size_t piece, void **memory, size_t *bytes) {
    struct sidco *x = s->state;
    return selector_saved_block(&x->memory, sizeof x->memory, piece, memory, bytes);
}

/* A ratio count/k is at most n; each stage at least halves the entries, which bounds the number of stages. */
static bool sidco_check(const struct selector *s, struct err *e) {
    const struct memory *m = &((const struct sidco *)s->state)->memory;
    if (m->summed >= ADAPT_EVERY || m->stages < 1 || m->stages > STAGES_MAX)
        return err_set(e, "the sidco selector's counters are none of its own");
    const double most = (double)s->n_max * (double)m->summed;
    return (m->ratios >= 0 && m->ratios <= most) || err_set(e, "the sidco selector's sum of ratios is none");
}

/* Count and sum of magnitudes of the entries that reach `key`. */
static struct moments tail(struct selector *s, uint32_t key, uint32_t guess, bool complete) {
    struct sidco *x = s->state;
    struct moments m;
    if (complete && key >= guess) return candidates_tail(&x->some, key);
    s->store->ops->moments(s->store, key, &m);
    return m;
}

/* eta_M; all: of the whole of acc. */
static double fitted(struct selector *s, size_t k, const struct moments *all, uint32_t guess, bool complete) {
    struct sidco *x = s->state;
    double share = (double)k / (double)all->count, mean = all->sum_abs / (double)all->count;
    if (x->memory.stages == 1 || share >= first_share) return -mean * log(share);
    double eta = -mean * log(first_share), log_delta = log(share / first_share) / (double)(x->memory.stages - 1);
    for (uint32_t stage = 2; stage <= x->memory.stages; stage++) {
        struct moments m = tail(s, key_above(eta), guess, complete);
        if (m.count == 0) break;
        eta -= (m.sum_abs / (double)m.count - eta) * log_delta;
    }
    return eta;
}

static void adapt(struct memory *m, size_t count, size_t k, size_t n) {
    m->ratios += (double)count / (double)k;
    if (++m->summed < ADAPT_EVERY) return;
    double average = m->ratios / (double)m->summed, most = fmax(1, ceil(log2((double)n / (double)k)));
    if (average > 1 + tolerance && m->stages > 1) m->stages--;
    if (average < 1 - tolerance) m->stages++;
    if (m->stages > (uint32_t)most) m->stages = (uint32_t)most;
    m->ratios = 0;
    m->summed = 0;
}

/* All that reach `key` to out; returns how many there are, more than out->cap when some had to stay. */
static size_t take(struct selector *s, uint32_t key, struct sparse *out, uint32_t guess, bool complete) {
    struct sidco *x = s->state;
    size_t bad, count;
    if (!complete || key < guess) {
        count = s->store->ops->select(s->store, key, out);
        if (count > out->cap) select_top(s->store, out->cap, &x->cut, out, &bad); /* acc is known to be finite */
        return count;
    }
    candidates_filter(&x->some, key);
    count = x->some.nnz;
    sparse_keep_top(&x->some, out->cap, NULL, x->cut.keys);
    out->nnz = 0;
    sparse_append(out, &x->some);
    return count;
}

static bool sidco_run(struct selector *s, const float *grad, size_t k, struct sparse *out, size_t *bad) {
    struct sidco *x = s->state;
    struct store *store = s->store;
    struct moments all;
    size_t wanted = candidates_wanted(store->n, k);
    uint32_t guess = key_at_most_infinite(store->ops->guess_key(store, grad, wanted));
    bool complete = store->ops->accumulate_select_moments(store, grad, guess, &x->some, &all) <= x->some.cap;
    if (all.max_key >= KEY_INFINITE) {
        find_not_finite(store, out, bad);
        return false;
    }
    uint32_t key = key_above(fitted(s, k, &all, guess, complete));
    bool none = key > all.max_key; /* then the largest leave; but zeros never do */
    if (none) key = key_not_zero(all.max_key);
    size_t count = take(s, key, out, guess, complete);
    if (all.max_key > 0) adapt(&x->memory, none ? 0 : count, k, store->n);
    s->stats.threshold = key_value(count > out->cap ? candidates_least(out) : key);
    return true;
}

extern const struct selector_ops selector_sidco;
const struct selector_ops selector_sidco = {
    .name = "sidco",
    .summary = "all above the threshold of an exponential fit of the tail, in stages",
    .paper = "Abdelmoniem et al., MLSys 2021 (SIDCo-E)",
    .capacity = candidates_wide_capacity,
    .open = sidco_open,
    .run = sidco_run,
    .close = sidco_close,
    .saved = sidco_saved,
    .check = sidco_check,
};
