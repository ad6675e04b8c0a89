/* random_subset.h: k of n indices at random, the same on every rank that has the same random numbers, for exchanges
 * that send what no magnitude has chosen. All sets of k indices are equally likely, so each index is drawn with the
 * probability k/n, whatever the others are. (One index out of each of k intervals would not do: where k does not divide
 * n they differ in length, and their indices in probability. Indices in equal steps from a random start have that
 * probability, but then columns of a matrix leave together and others never.)
 *
 *        random_subset_open(&d, n, k_max);
 *        struct rng rng = rng_open(seed, RNG_SUBSET, step);
 *        random_subset_draw(&d, &rng, k, idx);         // idx: [k], strictly increasing
 *        random_subset_close(&d);
 */
#ifndef ST_COMM_RANDOM_SUBSET_H
#define ST_COMM_RANDOM_SUBSET_H

#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"

struct random_subset {
    size_t n, most; /* indices that a draw finds by random numbers, at most: those to take or those to leave out */
    uint32_t *slot; /* [3 most] scratch */
};

/* 1 <= k_max <= n < 2^32: the largest k that is drawn. */
void random_subset_open(struct random_subset *d, size_t n, size_t k_max);
void random_subset_close(struct random_subset *d);

/* k <= k_max. O(k) time and random numbers, whatever n is; a function of n, k and the state of rng alone, by integer
 * arithmetic. */
void random_subset_draw(struct random_subset *d, struct rng *rng, size_t k, uint32_t *idx);

#endif
