/* by_slice.h: a selector that selects in each of several slices of the vector by itself, as DGC and most published code
 * do in each layer: a slice of small gradients gives its share, whatever the others hold.
 *
 * Slice i has a selector of the same row and settings of its own, over its part of the store, with the budget
 *
 *        k_i = min(n_i, max(1, floor(k n_i / N))),   n_i its entries, N those of all slices
 *
 * so the budgets may add up to more than k where many slices get the minimum of 1. selector_asks gives their sum;
 * selector.most and selector.room allow for it. With k = floor(density N) a budget is floor(density n_i), or one less
 * where density n_i is less than n_i/N above a whole number; exactly that where density N is a whole number.
 *
 * What leaves is what the slices' selectors return, end to end, with indices of the whole vector. Entries in no slice
 * are exempt: nothing is accumulated there and nothing selected, so that the caller must bring their gradient to the
 * others in another way. A row of exactly k entries returns exactly selector_asks(s, k) here. Statistics are those of
 * all slices (selector_stats_add), an audit is one of each slice, and what a checkpoint holds is one piece for each.
 *
 * One slice that is the whole vector gives what the plain selector gives, bit for bit. Everything goes through the
 * operations of the store, on any device; on a GPU every slice costs the start of a few kernels and a transfer, which
 * for small slices is most of the time.
 *
 *        const struct selector_slice slice[] = {{0, 800}, {810, 190}};     // of 1000 entries; 800..809 are exempt
 *        struct selector *s = selector_open_slices(&selector_dgc, &store, k_max, NULL, slice, 2);
 *        sparse_open(&out, s->room);
 *        if (!selector_run(s, grad, k, &out, &bad)) ...
 *        selector_close(s); */
#ifndef ST_TOPK_BY_SLICE_H
#define ST_TOPK_BY_SLICE_H

#include "topk/selector.h"

/* -- a part of the vector with a selector of its own: a slice here, a block of comm/parts/block_select.h ----------- */
struct selector_part {
    size_t from; /* it begins here */
    struct store view;
    struct selector *selector; /* NULL: of an empty part */
};

/* A selector of this row over entries [from, from + count) of the store, count >= 1. */
void selector_part_open(struct selector_part *p, const struct selector_ops *row, struct store *store, size_t from,
                        size_t count, size_t k_max, const struct selector_settings *settings);
void selector_part_close(struct selector_part *p);
/* As selector_run, of the part's entries of the whole gradient: what it selects goes behind what `out` has, with
 * indices of the whole vector, and its statistics to those of `whole`, whose audit it shares. Nothing of an empty part.
 */
bool selector_part_run(struct selector_part *p, struct selector *whole, const float *grad, size_t k, struct sparse *out,
                       size_t *bad);

/* -- the slices --------------------------------------------------------------------------------------------------- */
/* The k_i above, of a slice of `count` entries, where `covered` lie in all slices. */
size_t slice_budget(size_t k, size_t count, size_t covered);

/* How many entries a run with this k asks for: k; of a selector by slices the sum of its slices' budgets. An
 * exact_count row returns so many. */
size_t selector_asks(const struct selector *s, size_t k);

/* How many of the entries [from, from + count) the selector selects from (those in its slices). */
size_t selector_covers(const struct selector *s, size_t from, size_t count);

/* slice: [slices], ascending, apart from each other, none of them empty, all in the store; they are copied. slices = 0:
 * all entries are exempt, and runs select nothing. The store stays as long as it is at opening. */
struct selector *selector_open_slices(const struct selector_ops *row, struct store *store, size_t k_max,
                                      const struct selector_settings *settings, const struct selector_slice *slice,
                                      size_t slices);

/* A selector like this one (its row, its settings, its slices) over entries [from, from + view->n) of the vector that
 * it selects in, which are those of `view`. Slices that do not lie in it stay out; one that lies in it with a part of
 * its entries is that part. Of a plain selector: a plain one. */
struct selector *selector_open_part(const struct selector *whole, struct store *view, size_t from, size_t k_max);

#endif
