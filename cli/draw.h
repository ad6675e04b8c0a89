/* draw.h: sparse gradients drawn from a profile (profile.h): any rank's of any step, as a pure function of (seed, rank,
 * step), in time and memory of O(k + slices), without a word to any other rank.
 *
 *        struct draw d;
 *        draw_open(&d, &profile, n, k, seed);
 *        sparse_open(&s, d.room);
 *        draw_entries(&d, rank, step, &s);
 *        draw_close(&d);
 *
 * n and k may be others than the profile's: slices are scaled to n in proportion, and get their shares of k, up to what
 * fits in; q and h stay.
 *
 * What comes out is a gradient after the selection of its k largest: k entries on average, the smallest of which is 1,
 * overlap as the model says (overlap.h) and are as large as the profile says; k/4 more lie below 1 at places drawn
 * alike (fewer where slices are full), so that an exact selection finds the k, and one that is not has something to err
 * with. Both numbers vary from rank to rank and step to step by about their roots.
 *
 * The hot set of a slice: it is cut into as many equal parts as there are hot entries (rounded up), each of which has
 * one, at a random place, in a random part of the time where it was rounded; it moves at a time of its own, once in
 * distance / (1 - persistence) steps. What so has an order is then scattered over the slice by a random permutation. */
#ifndef ST_CLI_DRAW_H
#define ST_CLI_DRAW_H

#include "cli/gradients/profile.h"
#include "topk/sparse.h"

struct draw_slice {
    uint64_t from, size;      /* entries */
    struct overlap_slice all; /* size, and what a rank selects of it */
    struct overlap_part part;
    uint64_t slots; /* hot entries, rounded up */
    double active;  /* part of the time that a slot has one */
    uint64_t key;   /* of its random numbers */
    int bits;       /* of an index in it */
};

struct draw {
    struct overlap overlap;
    uint64_t seed;
    size_t n, slices, room; /* room: entries of the largest draw */
    struct draw_slice *slice;
    double life;               /* steps that a hot entry stays where it is */
    double same;               /* a rank's value at a hot entry has the sign that all share, with this probability */
    double tail[PROFILE_TAIL]; /* as in the profile */
    uint64_t *entry, *scratch; /* [room] */
};

/* 1 <= k <= n < 2^32. The profile may be closed afterwards. */
void draw_open(struct draw *d, const struct profile *p, size_t n, size_t k, uint64_t seed);
void draw_close(struct draw *d);
void draw_entries(struct draw *d, uint64_t rank, uint64_t step, struct sparse *out);

/* The expected number of different indices of the entries of P ranks that are 1 or larger. */
double draw_union(const struct draw *d, double P);

#endif
