/* block_select.h: a selector for every block of the vector, so that each block gives its own share of k, whatever the
 * others hold. Block b of P is [even_cut(n, P, b), even_cut(n, P, b + 1)); it may be empty (n < P) and has no selector
 * then.
 *
 *        block_select_open(&s, setup.selector, setup.store, P, k_max);
 *        sparse_open(&out, block_select_capacity(&s));
 *        if (!block_select_run(&s, grad, k, &out, &bad)) ...    // acc[bad] is NaN or infinite
 *        block_select_close(&s);
 */
#ifndef ST_COMM_BLOCK_SELECT_H
#define ST_COMM_BLOCK_SELECT_H

#include "topk/by_slice.h"

/* Entries that block b is asked for in a step with k: its share even_part(k, P, b), at least
 * one, so that no block is forgotten where k < P, and at most its length. Shares are cut from k as blocks are from n:
 * with k = n every block gives all it has. */
size_t block_budget(size_t n, int P, size_t k, int b);

struct block_select {
    struct selector *whole; /* its row, its settings and its `audit` are those of all; never run, but its `stats` are
                             * set: counts added up, the smallest threshold */
    size_t n;
    int P;
    struct selector_part *block; /* [P] */
};

/* k_max: the largest k of any step. store: whole->store, or one over the same entries. */
void block_select_open(struct block_select *s, struct selector *whole, struct store *store, int P, size_t k_max);
void block_select_close(struct block_select *s);

/* Most entries that are selected in a step, and the room that `out` must have, which is a little more. */
size_t block_select_most(const struct block_select *s);
size_t block_select_capacity(const struct block_select *s);

/* As selector_run: acc += grad; out: what was selected in the blocks, end to end, indices of the whole vector. */
bool block_select_run(struct block_select *s, const float *grad, size_t k, struct sparse *out, size_t *bad);

/* What a checkpoint must hold: P pieces, as exchange_saved; those of empty blocks are empty. */
bool block_select_saved(struct block_select *s, size_t part, void **memory, size_t *bytes);
/* After they were read back: see selector_check. */
bool block_select_check(const struct block_select *s, struct err *e);

#endif
