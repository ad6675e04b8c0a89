/* draw.c: see draw.h. */
#include "cli/draw.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/rng.h"
#include "cli/gradients/radix.h"

#define BELOW 0.25 /* entries below 1, to those above */
enum { ROUNDS = 6 };

/* -- places -------------------------------------------------------------------------------------------------------- */

/* A permutation of [0, size): a Feistel network of as many bits as its indices have, gone through again while it leaves
 * the slice (cycle walking: Black and Rogaway, CT-RSA 2002). */
static uint64_t scatter(const struct draw_slice *s, uint64_t x) {
    int low_bits = s->bits / 2, high_bits = s->bits - low_bits;
    uint64_t low_mask = ((uint64_t)1 << low_bits) - 1, high_mask = ((uint64_t)1 << high_bits) - 1;
    do {
        uint64_t low = x & low_mask, high = x >> low_bits;
        for (uint64_t round = 0; round < ROUNDS; round += 2) {
            high ^= hash_word(s->key + round, low) >> 32 & high_mask;
            low ^= hash_word(s->key + round + 1, high) >> 32 & low_mask;
        }
        x = high << low_bits | low;
    } while (x >= s->size);
    return x;
}

/* The hot entry of a slot in this step. */
struct hot {
    bool active;
    bool negative; /* the sign that the ranks share */
    uint64_t at;   /* before scattering */
};

static double unit(uint64_t word) {
    return (double)(word >> 11) * 0x1p-53;
}

/* floor((step + phase) / life), with a phase in [0, life) of each slot's own, counts how often it has moved. */
static struct hot hot_of(const struct draw *d, const struct draw_slice *s, uint64_t slot, uint64_t step) {
    uint64_t moved = (uint64_t)((double)step / d->life + unit(hash_word(s->key + ROUNDS, slot)));
    uint64_t key = hash_word(hash_word(s->key + ROUNDS + 1, slot), moved);
    uint64_t begin = slot * s->size / s->slots, end = (slot + 1) * s->size / s->slots;
    return (struct hot){.active = unit(hash_word(key, 0)) < s->active,
                        .negative = hash_word(key, 1) >> 63,
                        .at = begin + (uint64_t)(unit(hash_word(key, 2)) * (double)(end - begin))};
}

/* Is entry x of the slice, before scattering, hot? Part b begins at floor(b size / slots). */
static bool is_hot(const struct draw *d, const struct draw_slice *s, uint64_t x, uint64_t step) {
    if (s->slots == 0) return false;
    struct hot hot = hot_of(d, s, ((x + 1) * s->slots - 1) / s->size, step);
    return hot.active && hot.at == x;
}

/* -- one rank's draw ----------------------------------------------------------------------------------------------- */

struct drawing {
    struct draw *d;
    const struct draw_slice *slice;
    uint64_t step;
    struct rng rng;
    size_t length;
};

/* |v| >= 1 with the tail of the profile, or in [1/2, 1). */
static float magnitude(struct drawing *g, bool below) {
    double u = rng_uniform(&g->rng);
    if (below) return (float)(0.5 + 0.499 * u);
    double at = -2 * log2(1 - u); /* 2^(-at/2) = 1 - u, which is in (0, 1] */
    int i = (int)fmin(at, PROFILE_TAIL - 1);
    const double *tail = g->d->tail;
    double more = i + 1 < PROFILE_TAIL ? (at - i) * (tail[i + 1] - tail[i]) : 0;
    return (float)exp(tail[i] + more);
}

static void put(struct drawing *g, uint64_t at, bool negative, bool below) {
    float value = magnitude(g, below);
    uint32_t bits;
    if (g->length == g->d->room) return;
    value = negative ? -value : value;
    memcpy(&bits, &value, sizeof bits);
    g->d->entry[g->length++] = (uint64_t)bits << 32 | (g->slice->from + scatter(g->slice, at));
}

/* From *at, which was drawn (or is -1), to the next of a row of independent draws of this probability: the gap has a
 * geometric distribution. False: the next is at `end` or behind. log_miss: ln(1 - probability) */
static bool next_drawn(struct drawing *g, double log_miss, uint64_t end, uint64_t *at) {
    double gap = floor(log(1 - rng_uniform(&g->rng)) / log_miss);
    uint64_t left = end - (*at + 1);
    if (!(gap < (double)left)) return false;
    *at += 1 + (uint64_t)gap;
    return true;
}

/* The probability of an entry of the draw whose entries from 1 on have probability p. */
static double with_below(double p) {
    return fmin(1, (1 + BELOW) * p);
}

static void draw_hot(struct drawing *g) {
    const struct draw_slice *s = g->slice;
    double all = with_below(s->part.p), large = s->part.p / all, log_miss = log1p(-all);
    for (uint64_t slot = UINT64_MAX; next_drawn(g, log_miss, s->slots, &slot);) {
        struct hot hot = hot_of(g->d, s, slot, g->step);
        bool below = rng_uniform(&g->rng) >= large, agrees = rng_uniform(&g->rng) < g->d->same;
        if (hot.active) put(g, hot.at, hot.negative == agrees, below);
    }
}

static void draw_own(struct drawing *g) {
    const struct draw_slice *s = g->slice;
    double all = with_below(s->part.c), large = s->part.c / all, log_miss = log1p(-all);
    for (uint64_t x = UINT64_MAX; next_drawn(g, log_miss, s->size, &x);) {
        bool below = rng_uniform(&g->rng) >= large, negative = rng_u32(&g->rng) & 1;
        if (!is_hot(g->d, s, x, g->step)) put(g, x, negative, below);
    }
}

void draw_entries(struct draw *d, uint64_t rank, uint64_t step, struct sparse *out) {
    const uint64_t who[2] = {rank, step};
    struct drawing g = {.d = d, .step = step, .rng = rng_open(d->seed, RNG_DRAW, hash64(0, who, sizeof who))};
    for (size_t j = 0; j < d->slices; j++) {
        g.slice = &d->slice[j];
        if (g.slice->slots > 0) draw_hot(&g);
        if (g.slice->part.c > 0) draw_own(&g);
    }
    if (out->cap < g.length) die("%zu entries in room for %zu", g.length, out->cap);
    radix_sort(d->entry, d->scratch, g.length, d->n);
    out->nnz = g.length;
    for (size_t i = 0; i < g.length; i++) {
        uint32_t bits = (uint32_t)(d->entry[i] >> 32);
        out->idx[i] = (uint32_t)d->entry[i];
        memcpy(&out->val[i], &bits, sizeof bits);
    }
}

/* -- opening ------------------------------------------------------------------------------------------------------- */

/* Slices of n entries in all, in proportion to the profile's. */
static void scale_slices(struct draw *d, const struct profile *p) {
    uint64_t before = 0, from = 0;
    for (size_t j = 0; j < d->slices; j++) {
        struct draw_slice *s = &d->slice[j];
        before += p->slice[j].size;
        uint64_t end = (uint64_t)floor((double)before * (double)d->n / (double)p->n + 0.5);
        if (j + 1 == d->slices) end = d->n;
        *s = (struct draw_slice){.from = from, .size = end - from, .key = hash64(d->seed, &j, sizeof j), .bits = 1};
        while ((uint64_t)1 << s->bits < s->size) s->bits++;
        s->all.n = (double)s->size;
        from = end;
    }
}

/* Their parts of k: in proportion to the shares, but never more than a slice has; what does not fit in goes to the
 * others, to all in proportion to their free entries once those with a share are full. */
static void share_k(struct draw *d, const struct profile *p, double k) {
    double left = k;
    for (size_t round = 0; round <= d->slices && left > 1e-9 * k; round++) {
        double shares = 0, given = 0, free_entries = 0;
        for (size_t j = 0; j < d->slices; j++) {
            const struct overlap_slice *s = &d->slice[j].all;
            if (s->k < s->n) shares += p->slice[j].share;
            free_entries += s->n - s->k;
        }
        for (size_t j = 0; j < d->slices; j++) {
            struct overlap_slice *s = &d->slice[j].all;
            double part = shares > 0 ? p->slice[j].share / shares : (s->n - s->k) / free_entries;
            double more = fmin(left * part, s->n - s->k);
            s->k += more;
            given += more;
        }
        left -= given;
    }
}

/* A part `shared` of two ranks' common entries is hot, where they agree with probability same^2 + (1 - same)^2; at the
 * others in one of two cases. */
static double shared_sign(const struct profile *p) {
    double hot = 0, all = 0;
    for (uint64_t j = 0; j < p->slices; j++) {
        struct overlap_slice s = profile_overlap_slice(&p->slice[j], p->k);
        double part;
        all += overlap_pair(&p->overlap, &s, 1, &part);
        hot += part;
    }
    if (!(hot > 0)) return 0.5;
    double agree = 0.5 + (p->sign_agreement - 0.5) * all / hot;
    return 0.5 + 0.5 * sqrt(fmin(fmax(2 * agree - 1, 0), 1));
}

void draw_open(struct draw *d, const struct profile *p, size_t n, size_t k, uint64_t seed) {
    double mean = 0;
    *d = (struct draw){.overlap = p->overlap, .seed = seed, .n = n, .slices = (size_t)p->slices};
    d->slice = mem_zalloc(d->slices, sizeof *d->slice, "the slices of drawn gradients");
    memcpy(d->tail, p->tail, sizeof d->tail);
    d->life = p->persistence < 1 ? fmax(p->distance, 1) / (1 - p->persistence) : INFINITY;
    d->same = shared_sign(p);
    scale_slices(d, p);
    share_k(d, p, (double)k);
    for (size_t j = 0; j < d->slices; j++) {
        struct draw_slice *s = &d->slice[j];
        if (s->all.k > 0) s->part = overlap_part(&d->overlap, &s->all);
        s->slots = (uint64_t)ceil(s->part.hot);
        s->active = s->slots > 0 ? s->part.hot / (double)s->slots : 0;
        mean += s->part.hot * with_below(s->part.p) + (s->all.n - s->part.hot) * with_below(s->part.c);
    }
    d->room = (size_t)fmin(ceil(mean + 8 * sqrt(mean) + 64), (double)n); /* nobody ever meets a draw of 8 deviations */
    d->entry = mem_alloc(d->room, sizeof *d->entry, "a drawn gradient");
    d->scratch = mem_alloc(d->room, sizeof *d->scratch, "a drawn gradient");
}

void draw_close(struct draw *d) {
    mem_free(d->slice);
    mem_free(d->entry);
    mem_free(d->scratch);
    *d = (struct draw){0};
}

double draw_union(const struct draw *d, double P) {
    double sum = 0;
    for (size_t j = 0; j < d->slices; j++) sum += overlap_union(&d->overlap, &d->slice[j].all, 1, P);
    return sum;
}
