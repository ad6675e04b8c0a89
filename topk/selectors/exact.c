/* exact.c: exactly the k entries of largest magnitude; of equal magnitudes the lower index wins.
 *
 * Idea: a sample of acc + grad gives a threshold that a few more than k entries reach; the pass that accumulates
 * also compacts those candidates; the exact k-th magnitude is found among them, not among n. So the cost is that
 * of the accumulation and little more. When the guess was wrong (fewer than k candidates, or more than there is
 * room for), the k-th magnitude of all n entries is found with two reads and used as the threshold of a third.
 *
 * Cost: 12 bytes per entry and the sample; O(n) time for any input.
 * No deviation from the definition: the sample decides the time, never the result. */
#include "base/mem.h"
#include "topk/candidates.h"
#include "topk/selector.h"

static void exact_open(struct selector *s) {
    struct cut *c = s->state = mem_zalloc(1, sizeof *c, "the exact selector");
    cut_open(c, selector_capacity(s->ops, s->store->n, s->k_max), s->k_max);
}

static void exact_close(struct selector *s) {
    cut_close(s->state);
    mem_free(s->state);
}

/* Where the store does it all. */
static bool exact_by_store(struct selector *s, const float *grad, size_t k, struct sparse *out, size_t *bad) {
    s->store->ops->accumulate_top(s->store, grad, k, out);
    if (!selection_finite(s->store, out, bad)) { /* perhaps not the lowest of them */
        find_not_finite(s->store, out, bad);
        return false;
    }
    s->stats.threshold = key_value(selection_least(s->store, out));
    return true;
}

static bool exact_run(struct selector *s, const float *grad, size_t k, struct sparse *out, size_t *bad) {
    struct cut *c = s->state;
    if (s->store->ops->accumulate_top) return exact_by_store(s, grad, k, out, bad);
    uint32_t key = key_at_most_infinite(s->store->ops->guess_key(s->store, grad, k));
    size_t count = s->store->ops->accumulate_select(s->store, grad, key, out);
    if (!candidates_finite(out, bad)) return false;
    if (k <= count && count <= out->cap)
        sparse_keep_top(out, k, NULL, c->keys);
    else if (!select_top(s->store, k, c, out, bad))
        return false;
    s->stats.threshold = key_value(candidates_least(out));
    return true;
}

const struct selector_ops selector_exact = {
    .name = "exact",
    .summary = "the k largest magnitudes, exactly; ties to the lower index",
    .paper = "the definition of Top-k; selection by sampled threshold, then radix",
    .exact_count = true,
    .exact = true,
    .open = exact_open,
    .run = exact_run,
    .close = exact_close,
};
