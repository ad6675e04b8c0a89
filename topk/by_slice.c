/* by_slice.c: a selector for every slice of the vector, see by_slice.h.
 *
 * Source: Lin, Han, Mao, Wang and Dally, "Deep Gradient Compression", ICLR 2018, Algorithm 1: a threshold for each
 * parameter tensor; the code of most papers since does so. gTop-k and Ok-Topk select in the whole vector. */
#include "topk/by_slice.h"

#include "base/mem.h"

struct by_slice {
    struct selector_ops ops; /* the row's, with other functions */
    const struct selector_ops *row;
    struct selector_slice *slice; /* [slices] */
    struct selector_part *part;   /* [slices] */
    size_t slices;
};

/* -- budgets ----------------------------------------------------------------------------------------------- */
size_t slice_budget(size_t k, size_t count, size_t covered) {
    uint64_t share = (uint64_t)k * count / covered; /* all are below 2^32 */
    if (share < 1) return 1;
    return share < count ? (size_t)share : count;
}

size_t selector_asks(const struct selector *s, size_t k) {
    if (!s->slice) return k;
    size_t asks = 0;
    for (size_t i = 0; i < s->slices; i++) asks += slice_budget(k, s->slice[i].count, s->covered);
    return asks;
}

/* -- a part with a selector of its own ---------------------------------------------------------------------- */
void selector_part_open(struct selector_part *p, const struct selector_ops *row, struct store *store, size_t from,
                        size_t count, size_t k_max, const struct selector_settings *settings) {
    p->from = from;
    store_view_open(&p->view, store, from, count);
    p->selector = selector_open(row, &p->view, k_max, settings);
}

void selector_part_close(struct selector_part *p) {
    selector_close(p->selector);
    store_view_close(&p->view);
}

bool selector_part_run(struct selector_part *p, struct selector *whole, const float *grad, size_t k, struct sparse *out,
                       size_t *bad) {
    struct sparse part = sparse_tail(out);
    if (!p->selector) return true;
    p->selector->audit = whole->audit;
    if (!selector_run(p->selector, grad + p->from, k, &part, bad)) {
        *bad += p->from;
        return false;
    }
    for (size_t i = 0; i < part.nnz; i++) part.idx[i] += (uint32_t)p->from;
    out->nnz += part.nnz;
    selector_stats_add(&whole->stats, &p->selector->stats);
    return true;
}

/* -- a step ------------------------------------------------------------------------------------------------- */
static bool run(struct selector *s, const float *grad, size_t k, struct sparse *out, size_t *bad) {
    struct by_slice *b = s->state;
    if (s->store->n != s->n_max)
        die("selector %s by slices: its store went from %zu to %zu entries", s->ops->name, s->n_max, s->store->n);
    s->stats = (struct selector_stats){0};
    out->nnz = 0;
    for (size_t i = 0; i < b->slices; i++)
        if (!selector_part_run(&b->part[i], s, grad, slice_budget(k, b->slice[i].count, s->covered), out, bad))
            return false;
    return true;
}

static bool saved(struct selector *s, size_t piece, void **memory, size_t *bytes) {
    struct by_slice *b = s->state;
    *memory = NULL;
    *bytes = 0;
    return piece < b->slices && selector_saved(b->part[piece].selector, 0, memory, bytes);
}

static bool check(const struct selector *s, struct err *e) {
    const struct by_slice *b = s->state;
    for (size_t i = 0; i < b->slices; i++)
        if (!selector_check(b->part[i].selector, e)) return false;
    return true;
}

/* -- open and close ----------------------------------------------------------------------------------------- */
static void close_all(struct selector *s) {
    struct by_slice *b = s->state;
    for (size_t i = b->slices; i-- > 0;) selector_part_close(&b->part[i]);
    mem_free(b->part);
    mem_free(b->slice);
    mem_free(b);
}

static size_t check_slices(const struct selector_slice *slice, size_t slices, size_t n) {
    size_t end = 0, covered = 0;
    for (size_t i = 0; i < slices; i++) {
        const struct selector_slice *here = &slice[i];
        if (here->from < end || here->count < 1 || here->from > n || here->count > n - here->from)
            die("slice %zu of %zu is %zu entries from %zu on, of %zu, after one that ends at %zu", i, slices,
                here->count, here->from, n, end);
        end = here->from + here->count;
        covered += here->count;
    }
    return covered;
}

/* A slice's selector works in the part of `out` that the slices before it have left free. */
static void open_parts(struct selector *s) {
    struct by_slice *b = s->state;
    for (size_t i = 0; i < b->slices; i++) {
        struct selector_part *part = &b->part[i];
        size_t count = b->slice[i].count;
        selector_part_open(part, b->row, s->store, b->slice[i].from, count, slice_budget(s->k_max, count, s->covered),
                           &s->settings);
        if (s->most + part->selector->room > s->room) s->room = s->most + part->selector->room;
        s->most += part->selector->most;
    }
}

static struct selector_ops ops_by_slice(const struct selector_ops *row) {
    struct selector_ops own = *row;
    own.capacity = NULL;
    own.open = NULL; /* selector_open_slices alone opens it */
    own.run = run;
    own.close = close_all;
    own.saved = saved;
    own.check = check;
    return own;
}

struct selector *selector_open_slices(const struct selector_ops *row, struct store *store, size_t k_max,
                                      const struct selector_settings *settings, const struct selector_slice *slice,
                                      size_t slices) {
    if (k_max < 1 || k_max > store->n) die("selector %s: k = %zu is not in 1..%zu", row->name, k_max, store->n);
    struct selector *s = mem_zalloc(1, sizeof *s, "a selector");
    struct by_slice *b = s->state = mem_zalloc(1, sizeof *b, "a selector by slices");
    *s = (struct selector){.ops = &b->ops, .store = store, .k_max = k_max, .n_max = store->n, .state = b};
    if (settings) s->settings = *settings;
    b->row = row;
    b->ops = ops_by_slice(row);
    b->slices = slices;
    b->slice = mem_alloc(slices, sizeof *b->slice, "slices of the gradient");
    if (slices > 0) memcpy(b->slice, slice, slices * sizeof *slice);
    b->part = mem_zalloc(slices, sizeof *b->part, "selectors of slices");
    s->covered = check_slices(b->slice, slices, store->n);
    s->slice = b->slice;
    s->slices = slices;
    open_parts(s);
    return s;
}

/* -- a part --------------------------------------------------------------------------------------------- */
/* What of slice i lies in [from, from + count), counted from `from`; its count may be 0. */
static struct selector_slice cut_slice(const struct selector *s, size_t i, size_t from, size_t count) {
    size_t begin = s->slice[i].from, end = begin + s->slice[i].count;
    if (begin < from) begin = from;
    if (end > from + count) end = from + count;
    return begin < end ? (struct selector_slice){begin - from, end - begin} : (struct selector_slice){0};
}

size_t selector_covers(const struct selector *s, size_t from, size_t count) {
    if (!s->slice) return count;
    size_t covered = 0;
    for (size_t i = 0; i < s->slices; i++) covered += cut_slice(s, i, from, count).count;
    return covered;
}

struct selector *selector_open_part(const struct selector *whole, struct store *view, size_t from, size_t k_max) {
    if (!whole->slice) return selector_open(whole->ops, view, k_max, &whole->settings);
    const struct by_slice *b = whole->state;
    struct selector_slice *cut = mem_alloc(whole->slices, sizeof *cut, "slices of a part of the gradient");
    size_t slices = 0;
    for (size_t i = 0; i < whole->slices; i++) {
        cut[slices] = cut_slice(whole, i, from, view->n);
        slices += cut[slices].count > 0;
    }
    struct selector *s = selector_open_slices(b->row, view, k_max, &whole->settings, cut, slices);
    mem_free(cut);
    return s;
}
