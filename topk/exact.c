/* exact.c: exactly the k entries of largest magnitude; of equal magnitudes the lower index wins.
 *
 * Idea: a sample of acc + grad gives a threshold that a few more than k entries reach; the pass that accumulates
 * also compacts those candidates; the exact k-th magnitude is found among them, not among n. So the cost is that
 * of the accumulation and little more. When the guess was wrong (fewer than k candidates, or more than there is
 * room for), the k-th magnitude of all n entries is found with two reads and used as the threshold of a third.
 *
 * O(n) time for any input. No deviation from the definition: the sample decides the time, never the result. */
#include "base/mem.h"
#include "topk/selector.h"

struct exact {
    uint32_t *keys;       /* [selector_capacity]: scratch of sparse_keep_top */
    struct sparse larger; /* [k_max]: entries above a threshold that too many are equal to */
};

static void exact_open(struct selector *s) {
    struct exact *x = s->state = mem_zalloc(1, sizeof *x, "the exact selector");
    x->keys = mem_alloc(selector_capacity(s->ops, s->store->n, s->k_max), sizeof *x->keys, "keys of a selection");
    sparse_open(&x->larger, s->k_max);
}

static void exact_close(struct selector *s) {
    struct exact *x = s->state;
    sparse_close(&x->larger);
    mem_free(x->keys);
    mem_free(x);
}

/* A threshold that every entry reaches which is not finite, so that these are always among the candidates. */
static uint32_t at_most_infinite(uint32_t key) {
    return key < KEY_INFINITE ? key : KEY_INFINITE;
}

/* The lowest index of a NaN or an infinity to *bad. */
static bool all_finite(const struct sparse *s, size_t *bad) {
    uint32_t most = 0;
    for (size_t i = 0; i < s->nnz; i++) {
        uint32_t key = magnitude_key(s->val[i]);
        most = key > most ? key : most;
    }
    if (most < KEY_INFINITE) return true;
    size_t first = 0;
    while (magnitude_key(s->val[first]) < KEY_INFINITE) first++;
    *bad = s->idx[first];
    return false;
}

/* `some` holds the first entries >= key of acc, at least 2k of them; `larger` all that are > key, fewer than k.
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

/* Without a guess; acc is complete. */
static bool select_from_all(struct selector *s, size_t k, struct sparse *out, size_t *bad) {
    struct exact *x = s->state;
    uint32_t key = at_most_infinite(s->store->ops->kth_key(s->store, k));
    size_t count = s->store->ops->select(s->store, key, out);
    if (!all_finite(out, bad)) return false;
    if (count <= out->cap) {
        sparse_keep_top(out, k, NULL, x->keys);
        return true;
    }
    s->store->ops->select(s->store, key + 1, &x->larger);
    if (!all_finite(&x->larger, bad)) return false;
    keep_with_ties(out, &x->larger, key, k);
    return true;
}

static bool exact_run(struct selector *s, const float *grad, size_t k, struct sparse *out, size_t *bad) {
    struct exact *x = s->state;
    uint32_t key = at_most_infinite(s->store->ops->guess_key(s->store, grad, k));
    size_t count = s->store->ops->accumulate_select(s->store, grad, key, out);
    if (!all_finite(out, bad)) return false;
    if (count < k || count > out->cap) return select_from_all(s, k, out, bad);
    sparse_keep_top(out, k, NULL, x->keys);
    return true;
}

extern const struct selector_ops selector_exact;
const struct selector_ops selector_exact = {
    .name = "exact",
    .summary = "the k largest magnitudes, exactly; ties to the lower index",
    .paper = "the definition of Top-k; selection by sampled threshold, then radix",
    .exact_count = true,
    .open = exact_open,
    .run = exact_run,
    .close = exact_close,
};
