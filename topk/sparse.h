/* sparse.h: sparse vectors in host memory and the arithmetic that the exchanges need on them.
 *
 * A vector of length n < 2^32 is held as nnz pairs in coordinate form, idx strictly increasing. An entry
 * may have the value 0 (it was selected all the same). No function here allocates but sparse_open.
 *
 *        struct sparse s;
 *        sparse_open(&s, k);
 *        ...
 *        sparse_close(&s);
 */
#ifndef ST_TOPK_SPARSE_H
#define ST_TOPK_SPARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct sparse {
    uint32_t *idx; /* [cap], the first nnz strictly increasing, each < n */
    float *val;    /* [cap] */
    size_t nnz, cap;
};

/* Room for cap entries (both arrays are padded so that vector code may write 16 entries past cap). */
void sparse_open(struct sparse *s, size_t cap);
void sparse_close(struct sparse *s);

/* Are the indices strictly increasing and below n, and nnz <= cap? */
bool sparse_valid(const struct sparse *s, size_t n);

/* The order of magnitudes used everywhere: |value| as its IEEE bits without the sign. Finite numbers
 * have keys below KEY_INFINITE; infinities and NaN have keys >= KEY_INFINITE. -0 and +0 are equal. */
#define KEY_INFINITE 0x7f800000u
static inline uint32_t magnitude_key(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits & 0x7fffffffu;
}

/* The magnitude that has this key. */
static inline float key_value(uint32_t key) {
    float value;
    memcpy(&value, &key, sizeof value);
    return value;
}

/* The k-th largest of key[0..n-1], 1 <= k <= n; key is reordered. Worst case O(n) (radix falls in). */
uint32_t key_kth_largest(uint32_t *key, size_t n, size_t k);

/* The k-th largest key of s, k <= nnz; UINT32_MAX, which no entry reaches, for k = 0. keys: scratch, [s->nnz]. */
uint32_t sparse_kth_key(const struct sparse *s, size_t k, uint32_t *keys);

/* First position in idx[0..count-1], which increase, whose index is >= index (binary search); count when there is none.
 * The same of a vector. */
size_t index_lower_bound(const uint32_t *idx, size_t count, uint32_t index);
static inline size_t sparse_lower_bound(const struct sparse *s, uint32_t index) {
    return index_lower_bound(s->idx, s->nnz, index);
}

/* out = a + b over the union of their indices, equal indices added as a.val + b.val in this order.
 * out->cap >= a->nnz + b->nnz; out is neither a nor b. */
void sparse_merge(const struct sparse *a, const struct sparse *b, struct sparse *out);

/* out = part[0] + part[1] + ... in this order for every index (so that every rank gets the same bits),
 * over the union of the indices. Works through [0,n) in cache-sized blocks: O(sum nnz + n/64) time.
 * out->cap >= min(n, sum of nnz). scratch: sparse_sum_scratch(count) bytes. */
size_t sparse_sum_scratch(size_t count);
void sparse_sum(const struct sparse *part, size_t count, size_t n, struct sparse *out, void *scratch);

/* Keeps the k entries of largest magnitude of s in place and in order, ties to the lower index; nothing
 * happens when nnz <= k. What falls out goes to `dropped` in order when it is not NULL (dropped->cap >=
 * s->nnz - k; its old contents are lost; emptied when nothing falls out). keys: scratch, [s->nnz]. */
void sparse_keep_top(struct sparse *s, size_t k, struct sparse *dropped, uint32_t *keys);

/* Is there an entry of this index? For indices that ascend from call to call: *at, 0 at first, moves on with them. */
static inline bool sparse_has_next(const struct sparse *s, size_t *at, uint32_t index) {
    while (*at < s->nnz && s->idx[*at] < index) ++*at;
    return *at < s->nnz && s->idx[*at] == index;
}

/* Entries from..to-1 of s, where they lie; those with indices in [from, to); what is free behind them, as an empty
 * vector. */
static inline struct sparse sparse_slice(const struct sparse *s, size_t from, size_t to) {
    return (struct sparse){s->idx + from, s->val + from, to - from, to - from};
}
static inline struct sparse sparse_between(const struct sparse *s, size_t from, size_t to) {
    return sparse_slice(s, sparse_lower_bound(s, (uint32_t)from), sparse_lower_bound(s, (uint32_t)to));
}
static inline struct sparse sparse_tail(const struct sparse *s) {
    return (struct sparse){s->idx + s->nnz, s->val + s->nnz, 0, s->cap - s->nnz};
}

/* The entries of s, which must fit, behind those of `to`. */
static inline void sparse_append(struct sparse *to, const struct sparse *s) {
    if (s->nnz == 0) return;
    memcpy(to->idx + to->nnz, s->idx, s->nnz * sizeof *s->idx);
    memcpy(to->val + to->nnz, s->val, s->nnz * sizeof *s->val);
    to->nnz += s->nnz;
}

/* Most entries in the sum of so many vectors of length n with up to `each` entries: min(n, count each). */
static inline size_t sparse_sum_capacity(size_t n, size_t count, size_t each) {
    return n / count < each ? n : count * each;
}

/* Entries of a whose index also occurs in mask go to `in`, the others to `out`; either may be NULL. What lies behind
 * the last entry of each is written to, too: both are of sparse_open, or tails of such. */
void sparse_split(const struct sparse *a, const struct sparse *mask, struct sparse *in, struct sparse *out);

#endif
