/* oktopk_cut.c: Ok-Topk, section 3.1.3 for the global selection: which of the reduced entries stay. See oktopk.c.
 *
 * The exact threshold is the k-th largest magnitude of all regions together. Nobody gathers them: a radix selection
 * over 31 bits of the magnitudes adds up three small histograms over the ranks (2048, 1024 and 1024 bins), each of them
 * inside the bin of the one before that holds the k-th. Between evaluations the threshold is used again. */
#include <math.h>

#include "comm/oktopk.h"
#include "topk/candidates.h"

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
static uint32_t exact_key(struct exchange *x, const struct sparse *reduced, size_t k) {
    struct oktopk *t = x->state;
    static const struct { int low, bits; } round[] = {{20, 11}, {10, 10}, {0, 10}};
    uint64_t rest = k;
    uint32_t key = 0, bin;
    for (int i = 0; i < 3; i++) {
        phase_enter(x->setup.phases, PHASE_MERGE);
        count_keys(reduced, key, round[i].low, round[i].bits, t->histogram);
        phase_enter(x->setup.phases, PHASE_COMMUNICATE);
        comm_allreduce_u64(x->setup.comm, t->histogram, (size_t)1 << (round[i].bits - 1), COMM_SUM);
        t->extra += oktopk_allreduce_words(x, 1 << round[i].bits);
        if (!find_bin(t->histogram, round[i].bits, &rest, &bin)) return 0;
        key = key << round[i].bits | bin;
    }
    return key;
}

static void evaluate(struct exchange *x, const struct sparse *reduced, size_t k) {
    struct oktopk_saved *saved = ((struct oktopk *)x->state)->saved;
    saved->key = exact_key(x, reduced, k);
    saved->k = k;
    saved->uses = 0;
}

/* For a step that is audited: the exact threshold, though it is not used. Its words count as control traffic. */
static void audit(struct exchange *x, const struct sparse *reduced, size_t k) {
    struct oktopk *t = x->state;
    struct comm *c = x->setup.comm;
    enum traffic traffic = c->traffic;
    double extra = t->extra;
    c->traffic = TRAFFIC_CONTROL;
    t->exact = key_value(exact_key(x, reduced, k));
    c->traffic = traffic;
    t->extra = extra;
}

/* -- the counts ---------------------------------------------------------------------------------------- */
/* t->count, t->first, t->something: what every rank keeps at the threshold. Returns how many there are. */
static uint64_t gather_counts(struct exchange *x, const struct sparse *reduced) {
    struct oktopk *t = x->state;
    struct comm *c = x->setup.comm;
    phase_enter(x->setup.phases, PHASE_MERGE);
    uint32_t mine = (uint32_t)candidates_count(reduced, (uint32_t)t->saved->key);
    phase_enter(x->setup.phases, PHASE_COMMUNICATE);
    t->count[c->rank] = mine == 0 && reduced->nnz > 0 ? OKTOPK_BELOW : mine;
    comm_allgather(c, &t->count[c->rank], sizeof *t->count, t->count);
    t->something = false;
    for (int r = 0; r < c->size; r++) {
        t->something |= t->count[r] > 0;
        if (t->count[r] == OKTOPK_BELOW) t->count[r] = 0;
        t->first[r + 1] = t->first[r] + t->count[r];
    }
    return t->first[c->size];
}

/* threshold (count/k)^(1/8): like the local one (topk/reuse.c). Square roots give the same bits everywhere. */
static void nudge(struct oktopk_saved *saved, uint64_t count, size_t k) {
    double ratio = fmin(fmax((double)count / (double)k, 1.0 / 256), 256);
    if (ratio >= 0.75 && ratio <= 1.25) return;
    saved->key = key_reaching((double)key_value((uint32_t)saved->key) * sqrt(sqrt(sqrt(ratio))));
}

/* More than 3k/2 might break the bound on words; no threshold at all cannot be nudged; and an empty sum of something is
 * of no use. */
static bool serves(const struct oktopk *t, uint64_t count, size_t k) {
    if (count == 0) return !t->something;
    return 2 * count <= 3 * (uint64_t)k && (t->saved->key > 0 || 4 * count <= 5 * (uint64_t)k);
}

void oktopk_cut(struct exchange *x, struct sparse *reduced, size_t k) {
    struct oktopk *t = x->state;
    struct oktopk_saved *saved = t->saved;
    bool other_k = 4 * (uint64_t)k < 3 * saved->k || 4 * (uint64_t)k > 5 * saved->k;
    bool due = saved->uses >= (uint64_t)t->use.period || other_k;
    if (due) evaluate(x, reduced, k);
    uint64_t count = gather_counts(x, reduced);
    if (!due && !serves(t, count, k)) {
        evaluate(x, reduced, k);
        count = gather_counts(x, reduced);
        t->extra += x->setup.comm->size - 1;
        due = true;
    }
    saved->uses++;
    if (x->setup.selector->audit) audit(x, reduced, k);
    phase_enter(x->setup.phases, PHASE_MERGE);
    t->key = (uint32_t)saved->key;
    candidates_filter(reduced, t->key);
    if (!due && count > 0) nudge(saved, count, k);
}
