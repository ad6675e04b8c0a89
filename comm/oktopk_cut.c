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
/* t->load, t->count, t->first, t->something: what every rank keeps at the threshold, and what it sent and received so
 * far. Returns how many are kept. */
static uint64_t gather_counts(struct exchange *x, const struct sparse *reduced) {
    struct oktopk *t = x->state;
    struct comm *c = x->setup.comm;
    phase_enter(x->setup.phases, PHASE_MERGE);
    uint32_t mine = (uint32_t)candidates_count(reduced, (uint32_t)t->saved->key);
    phase_enter(x->setup.phases, PHASE_COMMUNICATE);
    uint32_t *own = t->load + 3 * (size_t)c->rank;
    own[0] = mine == 0 && reduced->nnz > 0 ? OKTOPK_BELOW : mine;
    own[1] = (uint32_t)(t->sent / 2);
    own[2] = (uint32_t)(t->received / 2);
    comm_allgather(c, own, 3 * sizeof *own, t->load);
    t->something = false;
    for (int r = 0; r < c->size; r++) {
        t->count[r] = t->load[3 * (size_t)r];
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

/* Would some rank go beyond the bound if the `count` entries were gathered from where they are? (Not asked for small
 * k.) */
static bool beyond_bound(const struct oktopk *t, uint64_t count, size_t k, int P) {
    double most = 0, bound = 6.0 * (double)k * (P - 1) / P - 3.0 * (P - 1);
    for (int r = 0; r < P; r++) {
        const uint32_t *load = t->load + 3 * (size_t)r;
        double sent = 2.0 * load[1] + 2.0 * (double)bag_gather_sent(t->first, P, r);
        double received = 2.0 * load[2] + 2.0 * (double)(count - t->count[r]);
        most = fmax(most, fmax(sent, received));
    }
    return k >= OKTOPK_WORTH * (size_t)P && most > bound;
}

/* Did one region get more than 3/2 of the mean? */
static bool stale_regions(const struct oktopk *t, size_t k, int P) {
    uint64_t most = 0, all = 0;
    if (k < OKTOPK_WORTH * (size_t)P) return false;
    for (int r = 0; r < P; r++) {
        uint64_t load = t->load[3 * (size_t)r + 2];
        most = load > most ? load : most;
        all += load;
    }
    return 2 * most * (uint64_t)P > 3 * all;
}

/* More than 3k/2 might break the bound on words, and more than k where the loads are uneven; no threshold at all cannot
 * be nudged; an empty sum of something is of no use. And fewer than k/2 are too few to be left to nudges: early in the
 * training of a large model on many ranks what is left below the threshold is a cliff, where a percent less lets k
 * pass and ten percent several k, so that every second step would deliver a fraction of k. */
static bool serves(const struct oktopk *t, uint64_t count, size_t k, int P) {
    if (count == 0) return !t->something;
    if (2 * count < (uint64_t)k && t->saved->key > 0) return false;
    if (count > k && beyond_bound(t, count, k, P)) return false;
    return 2 * count <= 3 * (uint64_t)k && (t->saved->key > 0 || 4 * count <= 5 * (uint64_t)k);
}

void oktopk_cut(struct exchange *x, struct sparse *reduced, size_t k) {
    struct oktopk *t = x->state;
    struct oktopk_saved *saved = t->saved;
    bool other_k = 4 * (uint64_t)k < 3 * saved->k || 4 * (uint64_t)k > 5 * saved->k;
    bool due = saved->uses >= (uint64_t)t->use.period || other_k;
    if (due) evaluate(x, reduced, k);
    uint64_t count = gather_counts(x, reduced);
    saved->stale = stale_regions(t, k, x->setup.comm->size);
    if (!due && !serves(t, count, k, x->setup.comm->size)) {
        evaluate(x, reduced, k);
        count = gather_counts(x, reduced);
        t->extra += 3.0 * (x->setup.comm->size - 1);
        due = true;
    }
    t->beyond = beyond_bound(t, count, k, x->setup.comm->size);
    saved->uses++;
    if (x->setup.selector->audit) audit(x, reduced, k);
    phase_enter(x->setup.phases, PHASE_MERGE);
    t->key = (uint32_t)saved->key;
    candidates_filter(reduced, t->key);
    if (!due && count > 0) nudge(saved, count, k);
}
