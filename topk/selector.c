/* selector.c: what all selectors share, and their table, see selector.h. */
#include "topk/selector.h"

#include <float.h>

#include "base/mem.h"
#include "base/table.h"
#include "topk/candidates.h"
#include "topk/normal.h"

#define SELECTOR(name) extern const struct selector_ops selector_##name;
#include "topk/selectors/selectors.def"
#undef SELECTOR
#define SELECTOR(name) &selector_##name,
const struct selector_ops *const selectors[] = {
#include "topk/selectors/selectors.def"
    NULL};

const char *selector_name(size_t i) {
    const struct selector_ops *row;
    TABLE_AT(selectors, i, row);
    return row ? row->name : NULL;
}

const char *const reuse_rule_names[] = {
    [REUSE_GUARDED] = "guarded",     [REUSE_PAPER] = "paper",         [REUSE_CODE_VGG] = "code-vgg",
    [REUSE_CODE_LSTM] = "code-lstm", [REUSE_CODE_BERT] = "code-bert", [REUSE_RULES] = NULL};

struct selector *selector_open(const struct selector_ops *ops, struct store *store, size_t k_max,
                               const struct selector_settings *settings) {
    if (k_max < 1 || k_max > store->n) die("selector %s: k = %zu is not in 1..%zu", ops->name, k_max, store->n);
    struct selector *s = mem_zalloc(1, sizeof *s, "a selector");
    s->ops = ops;
    s->store = store;
    s->k_max = k_max;
    s->n_max = store->n;
    s->room = selector_capacity(ops, store->n, k_max);
    s->most = ops->exact_count ? k_max : s->room;
    s->covered = store->n;
    if (settings) s->settings = *settings;
    ops->open(s);
    return s;
}

void selector_close(struct selector *s) {
    if (!s) return;
    s->ops->close(s);
    mem_free(s);
}

/* acc is complete and nothing has been taken out of it. */
static void audit(struct selector *s, size_t k) {
    PHASE_SCOPE(s->store->phases, PHASE_OTHER);
    uint32_t key = s->store->ops->kth_key(s->store, k);
    s->stats.exact = key_value(key);
    s->stats.exact_passes = s->store->ops->count(s->store, key);
    struct moments m;
    s->store->ops->moments(s->store, 0, &m);
    s->stats.normal_passes = s->store->ops->count(s->store, key_not_zero(key_above(normal_threshold(&m, k))));
    s->stats.audited = true;
}

/* What the caller must have made room for. */
static size_t room_for(const struct selector *s) {
    if (s->slice) return s->room;
    return selector_capacity(s->ops, s->store->n, s->k_max < s->store->n ? s->k_max : s->store->n);
}

/* Ends the program where the caller broke the contract. Returns the room. */
static size_t check_call(const struct selector *s, size_t k, const struct sparse *out) {
    const char *name = s->ops->name;
    if (k < 1 || k > s->k_max) die("selector %s: k = %zu is not in 1..%zu", name, k, s->k_max);
    if (s->store->n > s->n_max || k > s->store->n)
        die("selector %s: k = %zu of a store that went from %zu to %zu entries", name, k, s->n_max, s->store->n);
    size_t room = room_for(s);
    if (out->cap < room) die("selector %s: room for %zu entries, but it needs %zu", name, out->cap, room);
    return room;
}

bool selector_run(struct selector *s, const float *grad, size_t k, struct sparse *out, size_t *bad) {
    PHASE_SCOPE(s->store->phases, PHASE_SELECT);
    size_t room = check_call(s, k, out), cap = out->cap;
    s->stats = (struct selector_stats){.asked = k};
    out->cap = room; /* what a row's own scratch is made for */
    bool good = s->ops->run(s, grad, k, out, bad);
    out->cap = cap;
    s->stats.found = out->nnz;
    if (good && s->audit && !s->slice) audit(s, k); /* slices are audited each for itself */
    return good;
}

bool selector_run_top(struct selector *s, const float *grad, size_t k, struct sparse *out, uint32_t *keys,
                      size_t *bad) {
    PHASE_SCOPE(s->store->phases, PHASE_SELECT);
    if (!selector_run(s, grad, k, out, bad)) return false;
    sparse_keep_top(out, k, NULL, keys);
    return true;
}

bool selector_saved(struct selector *s, size_t piece, void **memory, size_t *bytes) {
    return s->ops->saved ? s->ops->saved(s, piece, memory, bytes) : selector_saved_block(NULL, 0, piece, memory, bytes);
}

bool selector_saved_block(void *block, size_t size, size_t piece, void **memory, size_t *bytes) {
    *memory = piece == 0 ? block : NULL;
    *bytes = piece == 0 ? size : 0;
    return piece == 0;
}

bool selector_check(const struct selector *s, struct err *e) {
    return !s->ops->check || s->ops->check(s, e);
}

size_t selector_capacity(const struct selector_ops *ops, size_t n, size_t k_max) {
    return ops && ops->capacity ? ops->capacity(n, k_max) : selector_capacity_common(n, k_max);
}

size_t density_to_k(double density, size_t n) {
    /* density and the product are each off by half a unit in the last place: 0.29 * 100 gives 28.999999999999996 */
    double k = density * (double)n * (1 + 2 * DBL_EPSILON);
    if (!(k >= 1)) return 1;
    return k >= (double)n ? n : (size_t)k;
}

void selector_stats_add(struct selector_stats *all, const struct selector_stats *part) {
    if (part->asked == 0) return; /* of no slices */
    bool first = all->asked == 0;
    all->audited = first ? part->audited : all->audited && part->audited;
    all->threshold = first || part->threshold < all->threshold ? part->threshold : all->threshold;
    all->exact = first || part->exact < all->exact ? part->exact : all->exact;
    all->asked += part->asked;
    all->found += part->found;
    all->evaluated |= part->evaluated;
    all->exact_passes += part->exact_passes;
    all->normal_passes += part->normal_passes;
}
