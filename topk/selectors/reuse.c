/* reuse.c: the threshold of an earlier step, as long as it serves.
 *
 * Idea: the distribution of acc changes slowly from step to step, so the exact k-th magnitude is found every tau'
 * steps only (--tau-prime) and used in the steps between; all entries at or above it leave.
 * Such a step is one pass: add, compare, compact.
 * Li and Hoefler, "Near-Optimal Sparse Allreduce for Distributed Deep Learning", PPoPP 2022, section 3.1.3 and
 * Algorithm 1, lines 2-4 (tau' = 32 for VGG-16 and LSTM, 128 for BERT).
 *
 * --oktopk-thresholds paper (REUSE_PAPER) is Algorithm 1 to the letter: in the steps between, the threshold stays,
 * whatever passes. REUSE_GUARDED, the default, returns k/2 to 3k/2 entries unless ties forbid:
 * - the threshold of the next step follows from the counts of this one (track.h). Many entries that were kept back lie
 *   just below the threshold, and they move from step to step; so one that stays soon lets through next to nothing or
 *   several times k.
 * - where fewer than k/2 or more than 3k/2 pass all the same, the exact threshold is found in that same step: among
 *   those that passed, or by one more read when they are too few.
 * REUSE_CODE_... are REUSE_PAPER with a threshold that moves by fixed factors, as in the code of its authors (nudge.h).
 * Under all rules it is found anew when k has left [3k/4, 5k/4] of the k that it was found for (a density schedule),
 * which the paper does not know, and zeros never leave.
 * Cost: 12 bytes per entry, the floor for any error feedback; a step that finds its threshold costs as much as `exact`.
 *
 * Capacity: 8 k_max entries and more. Where more pass (all but REUSE_GUARDED, or ties), the largest so many leave; of
 * ties alone k. */
#include "base/mem.h"
#include "topk/candidates.h"
#include "topk/nudge.h"

/* What a checkpoint keeps. */
struct memory {
    uint64_t k;         /* what the threshold was found for */
    struct track track; /* all but REUSE_GUARDED: its key alone */
    uint64_t uses;      /* steps that it served, the one that found it included */
};

struct reuse_use {
    int period; /* steps between exact thresholds */
    enum reuse_rule rule;
};
static const struct option_row reuse_options[] = {REUSE_OPTIONS(struct reuse_use, period, rule)};
static const struct option_part reuse_part = OPTION_PART(reuse_options);

struct reuse {
    struct reuse_use use;
    struct memory memory;
    struct cut cut;
};

static void reuse_open(struct selector *s) {
    struct reuse *r = s->state = mem_zalloc(1, sizeof *r, "the reusing selector");
    size_t cap = selector_capacity(s->ops, s->store->n, s->k_max);
    option_take(&reuse_part, &r->use, &s->settings.options);
    cut_open(&r->cut, cap, cap);
}

static void reuse_close(struct selector *s) {
    struct reuse *r = s->state;
    cut_close(&r->cut);
    mem_free(r);
}

static bool reuse_saved(struct selector *s, size_t piece, void **memory, size_t *bytes) {
    struct reuse *r = s->state;
    return selector_saved_block(&r->memory, sizeof r->memory, piece, memory, bytes);
}

static enum reuse_rule rule_of(const struct selector *s) {
    return ((const struct reuse *)s->state)->use.rule;
}

static uint64_t period_of(const struct selector *s) {
    return (uint64_t)((const struct reuse *)s->state)->use.period;
}

/* Either nothing is known yet, or there is a threshold, which zeros do not reach. */
static bool reuse_check(const struct selector *s, struct err *e) {
    const struct memory *m = &((const struct reuse *)s->state)->memory;
    const bool fresh = m->k == 0 && m->uses == 0 && m->track.key == 0;
    if (!track_possible(&m->track) || (!fresh && (m->k == 0 || m->track.key == 0)))
        return err_set(e, "the reuse selector's threshold is none");
    if (m->k > (s->settings.any_k ? s->n_max : s->k_max) || m->uses > period_of(s))
        return err_set(e, "the reuse selector's counters are none of its own");
    return true;
}

/* The exact threshold of this step is `key`. */
static void renew(struct selector *s, size_t k, uint32_t key, unsigned reason) {
    struct memory *m = &((struct reuse *)s->state)->memory;
    track_found(&m->track, key, (reason & EVALUATED_K) || m->k == 0);
    if (rule_of(s) != REUSE_GUARDED) m->track.key = key;
    m->k = k;
    m->uses = 1;
    s->stats.evaluated = reason;
    s->stats.threshold = key_value(key);
}

/* out holds candidates, k at least: the exact threshold is among them. */
static void renew_among(struct selector *s, size_t k, struct sparse *out, unsigned reason) {
    struct reuse *r = s->state;
    uint32_t key = key_not_zero(sparse_kth_key(out, k, r->cut.keys));
    candidates_filter(out, key);
    renew(s, k, key, reason);
}

/* As `exact`, but all that reach the k-th magnitude stay. grad: NULL when acc is complete. */
static bool evaluate(struct selector *s, const float *grad, size_t k, unsigned reason, struct sparse *out,
                     size_t *bad) {
    struct reuse *r = s->state;
    struct store *store = s->store;
    uint32_t key = key_at_most_infinite(store->ops->guess_key(store, grad, k));
    size_t count = grad ? store->ops->accumulate_select(store, grad, key, out) : store->ops->select(store, key, out);
    if (!selection_finite(store, out, bad)) return false;
    if (k <= count && count <= out->cap) {
        renew_among(s, k, out, reason);
        return true;
    }
    key = key_not_zero(key_at_most_infinite(store->ops->kth_key(store, k)));
    count = store->ops->select(store, key, out);
    if (!selection_finite(store, out, bad)) return false;
    renew(s, k, key, reason);
    return count <= out->cap || cut_ties(store, key, k, &r->cut, out, bad);
}

/* `count` entries reach the threshold, which moves up before it is used while too many do. Returns how many then do. */
static size_t nudge_before(struct selector *s, size_t k, size_t count, struct sparse *out) {
    const struct nudge *before = &reuse_nudges[rule_of(s)].before;
    uint32_t *key = &((struct reuse *)s->state)->memory.track.key;
    const bool complete = count <= out->cap;
    int moves = 0;
    for (; moves < NUDGES_BEFORE && nudge_beyond(before, k, count); moves++) {
        *key = nudge_key(*key, before->factor);
        count = complete ? candidates_count(out, *key) : s->store->ops->count(s->store, *key);
    }
    if (moves == 0) return count;
    s->stats.threshold = key_value(*key);
    if (!complete) return s->store->ops->select(s->store, *key, out);
    candidates_filter(out, *key);
    return count;
}

/* REUSE_PAPER and REUSE_CODE_...: with the threshold there is, whatever passes. */
static bool keep_threshold(struct selector *s, size_t k, size_t count, struct sparse *out, size_t *bad) {
    struct reuse *r = s->state;
    const struct nudges *nudges = &reuse_nudges[rule_of(s)];
    uint32_t *key = &r->memory.track.key;
    bool good = true;
    count = nudge_before(s, k, count, out);
    if (count > out->cap) {
        good = select_top(s->store, out->cap, &r->cut, out, bad);
        s->stats.threshold = key_value(candidates_least(out));
    }
    *key = nudge_next(&nudges->local_few, &nudges->local_many, *key, k, count);
    return good;
}

/* REUSE_GUARDED: where the threshold that there is does not serve, an exact one; else it leads to the next. */
static bool lead_threshold(struct selector *s, size_t k, size_t count, struct sparse *out, size_t *bad) {
    struct track *track = &((struct reuse *)s->state)->memory.track;
    if (count > out->cap) return evaluate(s, NULL, k, EVALUATED_MANY, out, bad);
    if (2 * count < k && track->key > 1) return evaluate(s, NULL, k, EVALUATED_FEW, out, bad);
    if (2 * count > 3 * k)
        renew_among(s, k, out, EVALUATED_MANY);
    else
        track_counted(track, k, count, selection_reaching(s->store, out));
    return true;
}

static bool with_threshold(struct selector *s, const float *grad, size_t k, struct sparse *out, size_t *bad) {
    struct memory *m = &((struct reuse *)s->state)->memory;
    m->uses++;
    if (m->k == 0 || m->uses > period_of(s)) return evaluate(s, grad, k, EVALUATED_DUE, out, bad);
    if (!track_serves_k(m->k, k)) return evaluate(s, grad, k, EVALUATED_K, out, bad);
    s->stats.threshold = key_value(m->track.key);
    s->store->probe = track_probe(&m->track);
    size_t count = s->store->ops->accumulate_select(s->store, grad, m->track.key, out);
    if (!selection_finite(s->store, out, bad)) return false;
    return rule_of(s) == REUSE_GUARDED ? lead_threshold(s, k, count, out, bad) : keep_threshold(s, k, count, out, bad);
}

static bool reuse_run(struct selector *s, const float *grad, size_t k, struct sparse *out, size_t *bad) {
    struct track *track = &((struct reuse *)s->state)->memory.track;
    if (!with_threshold(s, grad, k, out, bad)) return false;
    uint32_t above = track_above(track, magnitude_key(s->stats.threshold));
    if (s->stats.evaluated) track_spacing(track, out->nnz, candidates_count(out, above));
    return true;
}

extern const struct selector_ops selector_reuse;
const struct selector_ops selector_reuse = {
    .name = "reuse",
    .summary = "all at or above a threshold that is exact every 32 steps and led by counts between",
    .paper = "Li & Hoefler, PPoPP 2022 (Ok-Topk), section 3.1.3",
    .options = OPTION_PART(reuse_options),
    .evaluates = true,
    .capacity = candidates_wide_capacity,
    .open = reuse_open,
    .run = reuse_run,
    .close = reuse_close,
    .saved = reuse_saved,
    .check = reuse_check,
};
