/* reuse.c: the threshold of an earlier step, as long as it serves.
 *
 * Idea: the distribution of acc changes slowly from step to step, so the exact k-th magnitude is found every tau'
 * steps only (settings.period; 32 where it is 0) and used in the steps between; all entries at or above it leave.
 * Such a step is one pass: add, compare, compact.
 * Li and Hoefler, "Near-Optimal Sparse Allreduce for Distributed Deep Learning", PPoPP 2022, section 3.1.3 and
 * Algorithm 1, lines 2-4 (tau' = 32 for VGG-16 and LSTM, 128 for BERT).
 *
 * Returns: all >= threshold, k/4 to 2k of them unless ties forbid. Zeros never leave.
 * Cost: 12 bytes per entry, the floor for any error feedback; a step that finds its threshold costs as much as `exact`.
 *
 * Deviations from the paper, which says nothing of thresholds that no longer serve:
 * - when the count has left [3k/4, 5k/4], the next step's threshold is multiplied by (count/k)^(1/16). So little
 * because error feedback takes the tail away at the threshold: what is left ends in a cliff, and a few percent up or
 * down let through next to nothing or several k in the very next step, though in the long run the count goes as
 * threshold^-2.
 * - when more than 2k entries pass, fewer than k/4, or k has left [3k/4, 5k/4] of the k that the threshold was found
 * for (a density schedule), the exact threshold is found in that same step: among those that passed, or by one more
 * read when they are too few.
 * - when so many are equal that even the exact threshold lets more pass than there is room for, k of them leave. */
#include <math.h>

#include "base/mem.h"
#include "topk/candidates.h"
#include "topk/selector.h"

/* What a checkpoint keeps. */
struct memory {
    uint64_t k;    /* what the threshold was found for */
    uint32_t key;  /* the threshold; 0: none yet */
    uint32_t uses; /* steps that it served */
};

struct reuse {
    struct memory memory;
    struct cut cut;
};

static void reuse_open(struct selector *s) {
    struct reuse *r = s->state = mem_zalloc(1, sizeof *r, "the reusing selector");
    cut_open(&r->cut, selector_capacity(s->ops, s->store->n, s->k_max), s->k_max);
}

static void reuse_close(struct selector *s) {
    struct reuse *r = s->state;
    cut_close(&r->cut);
    mem_free(r);
}

static void *reuse_saved(struct selector *s, size_t *bytes) {
    struct reuse *r = s->state;
    *bytes = sizeof r->memory;
    return &r->memory;
}

/* From now on the threshold is `key`, found for k. */
static void renew(struct selector *s, size_t k, uint32_t key) {
    struct reuse *r = s->state;
    r->memory = (struct memory){.k = k, .key = key};
    s->stats.reevaluated = true;
}

/* out holds candidates, k at least: the exact threshold is among them. */
static void renew_among(struct selector *s, size_t k, struct sparse *out) {
    struct reuse *r = s->state;
    uint32_t key = key_not_zero(sparse_kth_key(out, k, r->cut.keys));
    candidates_filter(out, key);
    renew(s, k, key);
}

/* As `exact`, but all that reach the k-th magnitude stay. grad: NULL when acc is complete. */
static bool evaluate(struct selector *s, const float *grad, size_t k, struct sparse *out, size_t *bad) {
    struct reuse *r = s->state;
    struct store *store = s->store;
    uint32_t key = key_at_most_infinite(store->ops->guess_key(store, grad, k));
    size_t count = grad ? store->ops->accumulate_select(store, grad, key, out) : store->ops->select(store, key, out);
    if (!candidates_finite(out, bad)) return false;
    if (k <= count && count <= out->cap) {
        renew_among(s, k, out);
        return true;
    }
    key = key_not_zero(key_at_most_infinite(store->ops->kth_key(store, k)));
    count = store->ops->select(store, key, out);
    if (!candidates_finite(out, bad)) return false;
    renew(s, k, key);
    return count <= out->cap || cut_ties(store, key, k, &r->cut, out, bad);
}

/* With the threshold there is. Sets the next step's. */
static bool reuse_threshold(struct selector *s, const float *grad, size_t k, struct sparse *out, size_t *bad) {
    struct memory *m = &((struct reuse *)s->state)->memory;
    size_t count = s->store->ops->accumulate_select(s->store, grad, m->key, out);
    if (!candidates_finite(out, bad)) return false;
    if (count > out->cap || 4 * count < k) return evaluate(s, NULL, k, out, bad);
    if (count > 2 * k) {
        renew_among(s, k, out);
    } else if (4 * count < 3 * k || 4 * count > 5 * k) {
        double root = sqrt(sqrt(sqrt(sqrt((double)count / (double)k))));
        m->key = key_not_zero(key_reaching((double)key_value(m->key) * root));
    }
    return true;
}

static bool reuse_run(struct selector *s, const float *grad, size_t k, struct sparse *out, size_t *bad) {
    struct memory *m = &((struct reuse *)s->state)->memory;
    uint32_t period = s->settings.period > 0 ? (uint32_t)s->settings.period : 32, key = m->key;
    bool other_k = 4 * k < 3 * m->k || 4 * k > 5 * m->k, due = key == 0 || m->uses >= period || other_k;
    if (!(due ? evaluate : reuse_threshold)(s, grad, k, out, bad)) return false;
    s->stats.threshold = key_value(s->stats.reevaluated ? m->key : key);
    m->uses++;
    return true;
}

extern const struct selector_ops selector_reuse;
const struct selector_ops selector_reuse = {
    .name = "reuse",
    .summary = "all at or above an exact threshold that is found every 32 steps",
    .paper = "Li & Hoefler, PPoPP 2022 (Ok-Topk), section 3.1.3",
    .open = reuse_open,
    .run = reuse_run,
    .close = reuse_close,
    .saved = reuse_saved,
};
