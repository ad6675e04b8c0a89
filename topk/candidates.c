/* candidates.c: what the selectors share, see candidates.h. */
#include "topk/candidates.h"

#include <float.h>

#include "base/mem.h"
#include "base/simd.h"
#include "topk/cpu/kernels.h"
#include "topk/finite.h"
#include "topk/selector.h"

void cut_open(struct cut *c, size_t cap, size_t k_max) {
    c->keys = mem_alloc(cap, sizeof *c->keys, "keys of a selection");
    sparse_open(&c->larger, k_max);
}

void cut_close(struct cut *c) {
    sparse_close(&c->larger);
    mem_free(c->keys);
}

/* Magnitudes are ordered as their keys, so the next float up is the next key. */
uint32_t key_reaching(double t) {
    if (!(t > 0)) return 0;
    if (t > (double)FLT_MAX) return KEY_INFINITE;
    float nearest = (float)t;
    return magnitude_key(nearest) + ((double)nearest < t);
}

uint32_t key_above(double t) {
    if (t < 0) return 0;
    if (!(t < (double)FLT_MAX)) return KEY_INFINITE;
    float nearest = (float)t;
    return magnitude_key(nearest) + ((double)nearest <= t);
}

bool candidates_finite(const struct sparse *s, size_t *bad) {
    size_t first = first_nonfinite(s->val, s->nnz);
    if (first == s->nnz) return true;
    *bad = s->idx[first];
    return false;
}

void find_not_finite(struct store *store, struct sparse *out, size_t *bad) {
    store->ops->select(store, KEY_INFINITE, out);
    *bad = out->idx[0];
    out->nnz = 0;
}

SIMD_CLONES uint32_t candidates_least(const struct sparse *s) {
    const float *val = s->val;
    uint32_t least = UINT32_MAX;
    for (size_t i = 0; i < s->nnz; i++) {
        uint32_t key = magnitude_key(val[i]);
        least = key < least ? key : least;
    }
    return least;
}

bool selection_finite(const struct store *store, const struct sparse *s, size_t *bad) {
    const struct store_seen *seen = &store->seen;
    return (seen->known && seen->most < KEY_INFINITE) || candidates_finite(s, bad);
}

uint32_t selection_least(const struct store *store, const struct sparse *s) {
    return store->seen.known ? store->seen.least : candidates_least(s);
}

size_t selection_reaching(const struct store *store, const struct sparse *s) {
    return store->seen.known ? store->seen.reaching : candidates_count(s, store->probe);
}

size_t candidates_count(const struct sparse *s, uint32_t key) {
    return topk_kernels()->count(s->val, s->nnz, key);
}

struct moments candidates_tail(const struct sparse *s, uint32_t key) {
    struct moment_lanes lanes;
    topk_kernels()->moments(s->val, s->nnz, key, &lanes);
    struct moments m = {.count = lanes.count};
    for (size_t j = 0; j < MOMENT_LANES; j++) m.sum_abs += lanes.sum_abs[j];
    return m;
}

void candidates_filter(struct sparse *s, uint32_t key) {
    s->nnz = topk_kernels()->filter(s->idx, s->val, s->nnz, key);
}

size_t candidates_wide_capacity(size_t n, size_t k_max) {
    size_t common = selector_capacity(NULL, n, k_max);
    if (k_max > n / 8) return n;
    return 8 * k_max > common ? 8 * k_max : common;
}

/* `some` holds the first entries >= key of acc, at least k of them; `larger` all that are > key, fewer than k.
 * So `some` has all the ties that are wanted; what it lacks are larger entries behind its last index. */
static void keep_with_ties(struct sparse *some, const struct sparse *larger, uint32_t key, size_t k) {
    size_t ties = k - larger->nnz, kept = 0;
    uint32_t last = some->idx[some->nnz - 1];
    for (size_t i = 0; i < some->nnz; i++) {
        bool tie = magnitude_key(some->val[i]) == key;
        if (tie && ties == 0) continue;
        ties -= tie;
        some->idx[kept] = some->idx[i];
        some->val[kept++] = some->val[i];
    }
    for (size_t i = 0; i < larger->nnz; i++) {
        if (larger->idx[i] <= last) continue;
        some->idx[kept] = larger->idx[i];
        some->val[kept++] = larger->val[i];
    }
    some->nnz = kept;
}

bool cut_ties(struct store *store, uint32_t key, size_t k, struct cut *c, struct sparse *out, size_t *bad) {
    store->ops->select(store, key + 1, &c->larger);
    if (!candidates_finite(&c->larger, bad)) return false;
    keep_with_ties(out, &c->larger, key, k);
    return true;
}

bool select_top(struct store *store, size_t k, struct cut *c, struct sparse *out, size_t *bad) {
    uint32_t key = key_at_most_infinite(store->ops->kth_key(store, k));
    size_t count = store->ops->select(store, key, out);
    if (!candidates_finite(out, bad)) return false;
    if (count > out->cap) return cut_ties(store, key, k, c, out, bad);
    sparse_keep_top(out, k, NULL, c->keys);
    return true;
}
