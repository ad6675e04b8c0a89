/* track.h: a threshold that is used again from step to step, adjusted by the number of entries that reached it.
 *
 * The statistics of a gradient change slowly (Ok-Topk, section 3.1.3), but a residual is not distributed like a
 * gradient: many entries that were kept back lie just below the threshold, where half a percent of threshold can change
 * the number of entries by a factor of two. So each step counts at two thresholds a little apart, which gives the slope
 * where it is needed; the distance of the two adapts to the slope; and the thresholds that would have been right in
 * earlier steps give a trend.
 *
 * Everything is in magnitude keys (sparse.h), integers in which a factor of two is 2^23 and one of 1.01 about 2^16, and
 * so the same bits on all ranks whatever their processors.
 *
 *        track_found(&t, exact, afresh);                    // in a step that evaluates the exact threshold
 *        ... count entries that reach t.key and track_probe(&t) ...
 *        track_counted(&t, k, count, above);                // in all others: t.key serves the next step
 *
 * or, where the threshold may still be chosen after counting (oktopk's global one):
 *
 *        ... count[i] entries reach track_rung(&t, i) ...
 *        int i = track_nearest(count, k);
 *        track_took(&t, i, count); */
#ifndef ST_TOPK_TRACK_H
#define ST_TOPK_TRACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Plain memory; zero: nothing is known. */
struct track {
    uint32_t key;   /* the threshold of the next step; 0: there is none */
    uint32_t shift; /* 2^shift keys further there is a half to 7/8 of the count */
    int64_t trend;  /* keys a step */
};

/* Why a step evaluated the exact threshold: flags, since several parts of a vector may have had several reasons. */
enum {
    EVALUATED_DUE = 1,   /* there was none, or it had served its steps (tau') */
    EVALUATED_K = 2,     /* it was found for another k */
    EVALUATED_FEW = 4,   /* it let too few pass */
    EVALUATED_MANY = 8,  /* it let too many pass */
    EVALUATED_WORDS = 16 /* with what it let pass some rank would have moved more words than the algorithm's bound */
};
enum { EVALUATED_REASONS = 5 };
extern const char *const evaluated_names[EVALUATED_REASONS]; /* of 1 << i */

/* Can these functions have made it? For one that comes from a file. */
bool track_possible(const struct track *t);

/* Is a threshold that was found for k_found still one for k? Within a quarter. */
static inline bool track_serves_k(uint64_t k_found, size_t k) {
    return 4 * (uint64_t)k >= 3 * k_found && 4 * (uint64_t)k <= 5 * k_found;
}

/* The exact threshold of this step. afresh: the steps before say nothing about it (the first, another k). key 0: fewer
 * than k entries are there at all; the next threshold is 0, too. */
void track_found(struct track *t, uint32_t key, bool afresh);

/* Where the second count is wanted: 2^shift keys above a key, above t->key. */
uint32_t track_above(const struct track *t, uint32_t key);
static inline uint32_t track_probe(const struct track *t) {
    return track_above(t, t->key);
}
/* count entries reached t->key, `above` of them the probe: the next threshold is a quarter of the way to where k would
 * have passed, by the slope between the two, and the trend. */
void track_counted(struct track *t, size_t k, size_t count, size_t above);
/* In a step that evaluated: the distance alone, by the counts at the exact key and at track_above of it. */
void track_spacing(struct track *t, size_t count, size_t above);

/* Rungs 0..TRACK_RUNGS-1, ascending, TRACK_CENTRE at t->key: the counts between 1/4 and 4 times k, about. */
enum { TRACK_RUNGS = 9, TRACK_CENTRE = TRACK_RUNGS / 2 };
uint32_t track_rung(const struct track *t, int rung);
/* The rung whose count is nearest to k; of equal ones that nearest to the centre, and of two such the upper. */
int track_nearest(const uint64_t *count, size_t k);
/* This rung was the threshold of this step; count: [TRACK_RUNGS]. */
void track_took(struct track *t, int rung, const uint64_t *count);

#endif
