/* oktopk_cut.c: Ok-Topk, section 3.1.3 for the global selection: which of the reduced entries stay. See oktopk.c.
 *
 * The exact threshold is the k-th largest magnitude of all regions together. Nobody gathers them: a radix selection
 * over 31 bits of the magnitudes adds up three small histograms over the ranks (2048, 1024 and 1024 bins), each of them
 * inside the bin of the one before that holds the k-th.
 *
 * Between evaluations the threshold is used again. With REUSE_PAPER it stays, whatever passes. This goes wrong: what
 * a rank selected and the global threshold did not let pass stays in its residual, above the local threshold, and is
 * sent again in every step. So most sums lie in a narrow band between the local threshold and the global one. On
 * VGG-16 with 16 ranks the global threshold is 2% above the local one, and 15 times as many sums reach the local as
 * the global one. When that band moves down by a quarter of a percent, a global threshold that stays lets only half
 * of k pass in the next step, and soon a twentieth. With REUSE_GUARDED all ranks count what reaches each of some
 * thresholds about the expected one (track.h), in the message that tells the counts anyway, and take the one nearest
 * to k. With REUSE_CODE_... it moves by fixed factors (nudge.h). */
#include <math.h>

#include "comm/algorithms/oktopk.h"
#include "topk/candidates.h"
#include "topk/nudge.h"

/* -- the exact threshold ------------------------------------------------------------------------------- */
/* bin b += entries whose key has `prefix` above the lowest `low + bits` bits and b in the `bits` bits above the lowest
 * `low`. Two bins share a word: no count reaches 2^32, so the sums over ranks do not run into each other. */
static void count_keys(const struct sparse *s, uint32_t prefix, int low, int bits, uint64_t *histogram) {
    uint32_t mask = (1u << bits) - 1;
    memset(histogram, 0, sizeof *histogram << (bits - 1));
    for (size_t i = 0; i < s->nnz; i++) {
        uint32_t key = magnitude_key(s->val[i]), bin = key >> low & mask;
        uint64_t hit = key >> bits >> low == prefix;
        histogram[bin / 2] += hit << 32 * (bin % 2);
    }
}

static uint64_t count_of(const uint64_t *histogram, uint32_t bin) {
    return histogram[bin / 2] >> 32 * (bin % 2) & UINT32_MAX;
}

/* The bin that holds the *k-th largest, *k then counts inside it; false: there are fewer than *k in all. */
static bool find_bin(const uint64_t *histogram, int bits, uint64_t *k, uint32_t *bin) {
    for (uint32_t b = 1u << bits; b-- > 0; *k -= count_of(histogram, b)) {
        *bin = b;
        if (count_of(histogram, b) >= *k) return true;
    }
    return false;
}

/* The exact threshold's key; 0 (all of them) where there are fewer than k. */
static uint32_t exact_key(struct exchange *x, struct oktopk_step *s) {
    struct oktopk *t = x->state;
    static const struct { int low, bits; } round[] = {{20, 11}, {10, 10}, {0, 10}};
    uint64_t rest = s->k;
    uint32_t key = 0, bin;
    for (int i = 0; i < 3; i++) {
        count_keys(s->reduced, key, round[i].low, round[i].bits, t->histogram);
        comm_allreduce_u64(x->setup.comm, t->histogram, (size_t)1 << (round[i].bits - 1), COMM_SUM);
        s->extra += oktopk_allreduce_words(x, 1 << round[i].bits);
        if (!find_bin(t->histogram, round[i].bits, &rest, &bin)) return 0;
        key = key << round[i].bits | bin;
    }
    return key;
}

/* Lines 10 and 11. */
static void evaluate(struct exchange *x, struct oktopk_step *s, unsigned reason) {
    struct oktopk_saved *saved = ((struct oktopk *)x->state)->saved;
    bool afresh = saved->k == 0 || (reason & EVALUATED_K);
    s->key = exact_key(x, s);
    s->evaluated = reason;
    track_found(&saved->track, s->key, afresh);
    saved->k = s->k;
    saved->uses = 0;
}

/* For a step that is audited: the exact threshold, though it is not used. Its words count as control traffic. */
static void audit(struct exchange *x, struct oktopk_step *s) {
    struct comm *c = x->setup.comm;
    enum traffic traffic = c->traffic;
    double extra = s->extra;
    c->traffic = TRAFFIC_CONTROL;
    s->exact = key_value(exact_key(x, s));
    c->traffic = traffic;
    s->extra = extra;
}

/* -- the counts ---------------------------------------------------------------------------------------- */
/* The thresholds that are counted at, ascending; literally, and in a step that has evaluated, all are s->key. */
static uint32_t rung(const struct exchange *x, const struct oktopk_step *s, int i) {
    const struct oktopk *t = x->state;
    return oktopk_literal(x) || s->evaluated ? s->key : track_rung(&t->saved->track, i);
}

/* t->load: what every rank has at each rung, and what it sent and received so far. total: [TRACK_RUNGS], over the
 * ranks. Returns whether any rank has entries. */
static bool gather_counts(struct exchange *x, struct oktopk_step *s, uint64_t *total) {
    struct oktopk *t = x->state;
    struct comm *c = x->setup.comm;
    uint32_t *own = t->load + OKTOPK_LOAD * (size_t)c->rank;
    for (int i = 0; i < TRACK_RUNGS; i++) {
        bool same = i > 0 && rung(x, s, i) == rung(x, s, i - 1);
        own[i] = same ? own[i - 1] : (uint32_t)candidates_count(s->reduced, rung(x, s, i));
    }
    if (own[0] == 0 && s->reduced->nnz > 0) own[0] = OKTOPK_BELOW;
    own[OKTOPK_SENT] = (uint32_t)(s->sent / 2);
    own[OKTOPK_RECEIVED] = (uint32_t)(s->received / 2);
    comm_allgather(c, own, OKTOPK_LOAD * sizeof *own, t->load);
    bool any = false;
    memset(total, 0, TRACK_RUNGS * sizeof *total);
    for (int r = 0; r < c->size; r++) {
        uint32_t *load = t->load + OKTOPK_LOAD * (size_t)r;
        any |= load[0] > 0;
        if (load[0] == OKTOPK_BELOW) load[0] = 0;
        for (int i = 0; i < TRACK_RUNGS; i++) total[i] += load[i];
    }
    return any;
}

/* t->first for this rung as the threshold. Returns how many are kept. */
static uint64_t take_rung(struct exchange *x, int i) {
    struct oktopk *t = x->state;
    int P = x->setup.comm->size;
    for (int r = 0; r < P; r++) t->first[r + 1] = t->first[r] + t->load[OKTOPK_LOAD * (size_t)r + (size_t)i];
    return t->first[P];
}

/* Would some rank go beyond the bound if the kept entries were gathered from where they are? (Not asked for small k.)
 */
static bool beyond_bound(const struct exchange *x, size_t k) {
    const struct oktopk *t = x->state;
    int P = x->setup.comm->size;
    double most = 0, bound = 6.0 * (double)k * (P - 1) / P - oktopk_count_words(x);
    for (int r = 0; r < P; r++) {
        const uint32_t *load = t->load + OKTOPK_LOAD * (size_t)r;
        uint64_t others = t->first[P] - (t->first[r + 1] - t->first[r]);
        double sent = 2.0 * load[OKTOPK_SENT] + 2.0 * (double)bag_gather_sent(t->first, P, r);
        double received = 2.0 * load[OKTOPK_RECEIVED] + 2.0 * (double)others;
        most = fmax(most, fmax(sent, received));
    }
    return k >= OKTOPK_WORTH * (size_t)P && most > bound;
}

/* Did one region get more than 3/2 of the mean? */
static bool stale_regions(const struct oktopk *t, size_t k, int P) {
    uint64_t most = 0, all = 0;
    if (k < OKTOPK_WORTH * (size_t)P) return false;
    for (int r = 0; r < P; r++) {
        uint64_t load = t->load[OKTOPK_LOAD * (size_t)r + OKTOPK_RECEIVED];
        most = load > most ? load : most;
        all += load;
    }
    return 2 * most * (uint64_t)P > 3 * all;
}

/* -- the threshold ------------------------------------------------------------------------------------- */
/* REUSE_GUARDED: the rung whose count is nearest to k, or a higher one that keeps the bound on words. Returns why none
 * serves, or 0. No threshold at all (key 0) cannot be led; one that nothing reaches is of no use where there is any
 * entry. */
static unsigned choose(struct exchange *x, size_t k, const uint64_t *total, bool any, int *i) {
    const struct oktopk *t = x->state;
    *i = track_nearest(total, k);
    uint64_t count = take_rung(x, *i);
    if (total[0] == 0) return any ? EVALUATED_FEW : 0;
    if (t->saved->track.key == 0) return 4 * count > 5 * (uint64_t)k ? EVALUATED_MANY : 0;
    if (2 * count > 3 * (uint64_t)k) return EVALUATED_MANY;
    while (count > k && beyond_bound(x, k)) {
        if (*i == TRACK_RUNGS - 1) return EVALUATED_WORDS;
        count = take_rung(x, ++*i);
    }
    return 2 * count < (uint64_t)k ? EVALUATED_FEW : 0;
}

/* Why the time for an exact threshold has come before anything is counted, or 0. */
static unsigned due(const struct oktopk *t, size_t k) {
    const struct oktopk_saved *saved = t->saved;
    if (saved->k == 0 || saved->uses >= (uint64_t)t->use.period) return EVALUATED_DUE;
    return track_serves_k(saved->k, k) ? 0 : EVALUATED_K;
}

void oktopk_cut(struct exchange *x, struct oktopk_step *s) {
    struct oktopk *t = x->state;
    struct oktopk_saved *saved = t->saved;
    const bool literal = oktopk_literal(x);
    uint64_t total[TRACK_RUNGS];
    int i = TRACK_CENTRE;

    /* Lines 9-12. Guarded, the counts may show that the threshold does not serve. */
    unsigned reason = due(t, s->k);
    s->key = saved->track.key;
    if (reason) evaluate(x, s, reason);
    bool any = gather_counts(x, s, total);
    if (!literal && !reason && (reason = choose(x, s->k, total, any, &i))) {
        evaluate(x, s, reason);
        gather_counts(x, s, total);
        s->extra += oktopk_count_words(x);
        i = TRACK_CENTRE;
    }
    take_rung(x, i);
    if (!s->evaluated && !literal) s->key = track_rung(&saved->track, i);

    /* What the next step begins with. */
    const struct nudges *nudges = &reuse_nudges[t->use.thresholds];
    if (literal && s->evaluated)
        saved->track.key = s->key;
    else if (literal)
        saved->track.key = nudge_next(&nudges->global_few, &nudges->global_many, s->key, s->k, (size_t)total[i]);
    else if (!s->evaluated && total[0] > 0)
        track_took(&saved->track, i, total);
    saved->uses++;
    saved->stale = !literal && stale_regions(t, s->k, x->setup.comm->size);
    s->beyond = !literal && beyond_bound(x, s->k);

    if (x->setup.selector->audit) audit(x, s);
    candidates_filter(s->reduced, s->key);
}
