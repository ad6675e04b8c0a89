/* overlap.h: how much the selections of P ranks have in common: a model of two numbers, its fit to measured sizes of
 * unions, and what it says of other P.
 *
 * The model. Of the k entries that a rank selects, k_j lie in slice j of n_j entries. Part q of them comes from a hot
 * set that all ranks share, which has h k_j members in slice j; each rank has each of these with probability
 *
 *        p = q k_j / (h k_j) = q / h
 *
 * and each of the others of the slice with probability c_j = (1 - q) k_j / (n_j - h k_j), independently. Where a slice
 * is so full that its hot entries would be no likelier than the others, k_j >= p n_j, all of its entries have the
 * probability k_j / n_j. The real selections are those of ranks that see different images of one distribution with the
 * same parameters: what is large for all of them is hot, what is large by the images of one rank is its own. */
#ifndef ST_CLI_OVERLAP_H
#define ST_CLI_OVERLAP_H

#include <stddef.h>

struct overlap {
    double q, h; /* 0 <= q <= 1, q <= h */
};

/* A slice of n entries, of which each rank selects k on average. */
struct overlap_slice {
    double n, k;
};

/* A slice by the model: so many hot entries, each selected with probability p, and n - hot others, each with c. */
struct overlap_part {
    double hot, p, c;
};
struct overlap_part overlap_part(const struct overlap *o, const struct overlap_slice *s);

/* The expected number of different entries that P ranks select, with k = sum of k_j at P = 1. */
double overlap_union(const struct overlap *o, const struct overlap_slice *s, size_t slices, double P);

/* The expected number of entries that two ranks both select; *hot: of them in the hot set. */
double overlap_pair(const struct overlap *o, const struct overlap_slice *s, size_t slices, double *hot);

/* Least squares of the unions of 2, 3, ..., ranks: measured: [ranks], that of P ranks at P - 1. ranks >= 2; where there
 * are 2, one number cannot give two: h is 1. */
struct overlap overlap_fit(const struct overlap_slice *s, size_t slices, const double *measured, size_t ranks);

#endif
