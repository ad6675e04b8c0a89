/* candidates.h: what the selectors share. A selection begins with one pass that accumulates and compacts the entries
 * at or above a key, the candidates; most of what follows looks at these alone. */
#ifndef ST_TOPK_CANDIDATES_H
#define ST_TOPK_CANDIDATES_H

#include "topk/store.h"

/* Scratch of the functions below. */
struct cut {
    uint32_t *keys;       /* [cap]: as many as there are candidates at most */
    struct sparse larger; /* [k_max]: entries above a threshold that too many are equal to */
};

/* cap: room of the lists of candidates; k_max: most entries that select_top is asked for. */
void cut_open(struct cut *c, size_t cap, size_t k_max);
void cut_close(struct cut *c);

/* A threshold that every entry reaches which is not finite, so that these are always among the candidates. */
static inline uint32_t key_at_most_infinite(uint32_t key) {
    return key < KEY_INFINITE ? key : KEY_INFINITE;
}

/* A threshold that zeros do not reach. */
static inline uint32_t key_not_zero(uint32_t key) {
    return key > 0 ? key : 1;
}

/* The smallest key whose magnitude is >= t, and > t; KEY_INFINITE where no finite one is. Negative t: 0. */
uint32_t key_reaching(double t);
uint32_t key_above(double t);

/* False when an entry is NaN or infinite; the lowest such index to *bad. */
bool candidates_finite(const struct sparse *s, size_t *bad);

/* This one and the two below: the same for the pairs of the store's last selection. Where the store has gathered
 * these facts during the selection, the entries are not read again. */
bool selection_finite(const struct store *store, const struct sparse *s, size_t *bad);
uint32_t selection_least(const struct store *store, const struct sparse *s);
/* Of those that reach store->probe. */
size_t selection_reaching(const struct store *store, const struct sparse *s);

/* acc holds an entry that is not finite: the lowest index of one to *bad. out: scratch, emptied. */
void find_not_finite(struct store *store, struct sparse *out, size_t *bad);

/* The smallest key of s, UINT32_MAX when s is empty. */
uint32_t candidates_least(const struct sparse *s);
/* Entries with a key >= key: how many; keeping these alone, in order; count and sum_abs alone of their moments, added
 * up always in the same order. */
size_t candidates_count(const struct sparse *s, uint32_t key);
void candidates_filter(struct sparse *s, uint32_t key);
struct moments candidates_tail(const struct sparse *s, uint32_t key);

/* A capacity for rows whose count may be far from k: 8 k_max, or the common rule where that is more. */
size_t candidates_wide_capacity(size_t n, size_t k_max);

/* Exactly the k largest magnitudes of a complete acc to out, ties to the lower index, without a guess: two reads of
 * acc for the k-th magnitude and one or two for the entries. k <= out->cap. False: not finite, as above. */
bool select_top(struct store *store, size_t k, struct cut *c, struct sparse *out, size_t *bad);

/* Its last step, where so many entries of acc are equal to `key`, the k-th largest, that out has no room for all that
 * reach it and holds the first of them, k at least. */
bool cut_ties(struct store *store, uint32_t key, size_t k, struct cut *c, struct sparse *out, size_t *bad);

#endif
