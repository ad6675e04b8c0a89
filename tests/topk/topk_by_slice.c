/* topk_by_slice.c: selectors by slices: for every row of the table, what comes out is what the row returns for each
 * slice alone, end to end; its sizes, statistics, errors and memory. In every kernel set.
 *
 * devices: cuda sparse
 */
#include "tests/lib/topk_reference.h"

#include "base/hash.h"
#include "base/mem.h"
#include "topk/by_slice.h"

enum { SLICES_MAX = 12 };

/* Of n entries, k of them, that many slices; gaps before, between and behind some. */
static const struct slicing {
    size_t n, k, count;
    struct selector_slice slice[SLICES_MAX];
} slicings[] = {
    {1, 1, 1, {{0, 1}}},
    {2, 1, 1, {{1, 1}}},
    {9, 3, 4, {{0, 1}, {2, 1}, {3, 3}, {8, 1}}},
    {40, 40, 3, {{0, 10}, {10, 1}, {20, 15}}},
    {1200,
     12,
     12,
     {{0, 900},
      {900, 1},
      {901, 1},
      {902, 5},
      {907, 100},
      {1007, 1},
      {1010, 10},
      {1020, 10},
      {1030, 10},
      {1040, 10},
      {1050, 100},
      {1199, 1}}},
    {6000, 60, 4, {{3, 4000}, {4003, 17}, {4500, 1400}, {5999, 1}}},
    {3000, 1, 5, {{0, 1000}, {1000, 500}, {1500, 500}, {2000, 999}, {2999, 1}}},
};
enum { SLICINGS = sizeof slicings / sizeof slicings[0] };

static const int period = 3;
static const struct option_row period_row = {"tau-prime", "N", OPTION_INT, "32", "", .offset = 0};
static const struct selector_settings settings = {.options = {&period_row, 1, &period}, .seed = 9};

/* max(1, floor(k n_i / N)), n_i at most, by counting up. */
static size_t naive_budget(const struct slicing *s, size_t k, size_t i) {
    size_t all = 0, budget = 1;
    for (size_t j = 0; j < s->count; j++) all += s->slice[j].count;
    while ((budget + 1) * all <= k * s->slice[i].count) budget++;
    return budget < s->slice[i].count ? budget : s->slice[i].count;
}

static size_t naive_asks(const struct slicing *s, size_t k) {
    size_t asks = 0;
    for (size_t i = 0; i < s->count; i++) asks += naive_budget(s, k, i);
    return asks;
}

/* -- one selector by slices -------------------------------------------------------------------------------- */
struct rig {
    const struct slicing *slicing;
    const struct selector_ops *ops;
    size_t n;
    struct store store;
    struct selector *selector;
    struct sparse out;
    float *grad, *acc; /* [n] */
    float *device_grad;
};

/* Room for what it asks for and not one entry more. */
static void rig_use(struct rig *r, struct selector *selector) {
    r->selector = selector;
    sparse_open(&r->out, selector->room);
}

static void rig_open_store(struct rig *r, const struct selector_ops *ops, const struct slicing *s) {
    *r = (struct rig){.slicing = s, .ops = ops, .n = s->n};
    store_open(&r->store, s->n, test_device());
    r->grad = mem_zalloc(s->n, sizeof(float), "grad");
    r->acc = mem_zalloc(s->n, sizeof(float), "acc");
    r->device_grad = device_twin(r->grad, s->n);
}

static void rig_open(struct rig *r, const struct selector_ops *ops, const struct slicing *s) {
    rig_open_store(r, ops, s);
    rig_use(r, selector_open_slices(ops, &r->store, s->k, &settings, s->slice, s->count));
}

static void rig_close(struct rig *r) {
    sparse_close(&r->out);
    selector_close(r->selector);
    store_close(&r->store);
    device_twin_free(r->device_grad, r->grad);
    mem_free(r->grad), mem_free(r->acc);
}

/* acc to r->acc; what is selected leaves the store. */
static bool rig_run(struct rig *r, size_t k, size_t *bad) {
    device_fill(r->device_grad, r->grad, r->n);
    r->selector->audit = true;
    mem_fail_at(1); /* run allocates nothing */
    bool good = selector_run(r->selector, r->device_grad, k, &r->out, bad);
    mem_fail_at(0);
    if (!good) return false;
    r->store.ops->read(&r->store, 0, r->n, r->acc);
    r->store.ops->zero_at(&r->store, r->out.idx, r->out.nnz);
    return true;
}

static void rig_step(struct rig *r, size_t k, enum pattern p, uint64_t seed) {
    size_t bad = 0;
    pattern_fill(p, r->grad, r->n, seed);
    CHECK(rig_run(r, k, &bad), "%s: bad %zu", r->ops->name, bad);
    CHECK(sparse_valid(&r->out, r->n), "%s: order", r->ops->name);
    CHECK(r->out.nnz <= r->selector->most && r->selector->most <= r->selector->room, "%s: most", r->ops->name);
}

/* -- the reference: the row, alone on each slice ------------------------------------------------------------ */
struct alone {
    struct rig slice[SLICES_MAX];
    struct slicing all[SLICES_MAX]; /* of one slice each */
};

static void alone_open(struct alone *a, const struct selector_ops *ops, const struct slicing *s) {
    for (size_t i = 0; i < s->count; i++) {
        a->all[i] = (struct slicing){.n = s->slice[i].count, .k = naive_budget(s, s->k, i)};
        rig_open_store(&a->slice[i], ops, &a->all[i]);
        rig_use(&a->slice[i], selector_open(ops, &a->slice[i].store, a->all[i].k, &settings));
    }
}

static void alone_close(struct alone *a, const struct slicing *s) {
    for (size_t i = 0; i < s->count; i++) rig_close(&a->slice[i]);
}

static float smaller(float a, float b) {
    return a < b ? a : b;
}

/* The same step slice by slice, and that it gave what `r` did. */
static void agrees_with_alone(struct alone *a, const struct rig *r, size_t k, const char *what) {
    const struct slicing *s = r->slicing;
    const struct selector_stats *all = &r->selector->stats;
    struct selector_stats sum = {.threshold = INFINITY, .exact = INFINITY};
    size_t at = 0;
    for (size_t i = 0; i < s->count; i++) {
        struct rig *own = &a->slice[i];
        size_t from = s->slice[i].from, bad;
        memcpy(own->grad, r->grad + from, own->n * sizeof(float));
        CHECK(rig_run(own, naive_budget(s, k, i), &bad), "%s %s: slice %zu", r->ops->name, what, i);
        CHECK(memcmp(own->acc, r->acc + from, own->n * sizeof(float)) == 0, "%s %s: acc of slice %zu", r->ops->name,
              what, i);
        for (size_t j = 0; j < own->out.nnz; j++, at++)
            CHECK(at < r->out.nnz && r->out.idx[at] == from + own->out.idx[j] &&
                      same_bits(r->out.val[at], own->out.val[j]),
                  "%s %s: entry %zu of slice %zu", r->ops->name, what, j, i);
        const struct selector_stats *part = &own->selector->stats;
        sum.asked += part->asked;
        sum.threshold = smaller(sum.threshold, part->threshold);
        sum.exact = smaller(sum.exact, part->exact);
        sum.exact_passes += part->exact_passes;
        sum.normal_passes += part->normal_passes;
        sum.evaluated |= part->evaluated;
    }
    CHECK(at == r->out.nnz && all->found == at, "%s %s: %zu entries, not %zu", r->ops->name, what, r->out.nnz, at);
    CHECK(!r->ops->exact_count || at == naive_asks(s, k), "%s %s: count", r->ops->name, what);
    CHECK(all->asked == sum.asked && all->asked == naive_asks(s, k), "%s %s: asked", r->ops->name, what);
    CHECK(all->audited && same_bits(all->exact, sum.exact) && all->exact_passes == sum.exact_passes &&
              all->normal_passes == sum.normal_passes && same_bits(all->threshold, sum.threshold) &&
              all->evaluated == sum.evaluated,
          "%s %s: statistics", r->ops->name, what);
}

/* In no slice: as it was at the beginning, 7. */
static void exempt_entries_stay(const struct rig *r) {
    size_t at = 0;
    for (size_t i = 0; i <= r->slicing->count; i++) {
        size_t end = i < r->slicing->count ? r->slicing->slice[i].from : r->n;
        for (; at < end; at++) CHECK(r->acc[at] == 7, "%s: entry %zu is in no slice", r->ops->name, at);
        if (i < r->slicing->count) at = end + r->slicing->slice[i].count;
    }
}

static void start_with_sevens(struct rig *r, struct alone *a) {
    const struct slicing *s = r->slicing;
    for (size_t i = 0; i < r->n; i++) r->acc[i] = 7;
    for (size_t i = 0; i < s->count; i++) {
        pattern_fill(NORMAL, r->acc + s->slice[i].from, s->slice[i].count, i);
        a->slice[i].store.ops->write(&a->slice[i].store, 0, a->slice[i].n, r->acc + s->slice[i].from);
    }
    r->store.ops->write(&r->store, 0, r->n, r->acc);
}

static void one_slicing(const struct selector_ops *ops, const struct slicing *s, enum pattern p) {
    static struct alone a;
    struct rig r;
    char what[64];
    rig_open(&r, ops, s), alone_open(&a, ops, s);
    start_with_sevens(&r, &a);
    for (uint64_t step = 0; step < 5; step++) {
        size_t k = step % 3 == 1 ? (s->k + 1) / 2 : s->k;
        snprintf(what, sizeof what, "n %zu, pattern %d, step %d", s->n, (int)p, (int)step);
        rig_step(&r, k, step == 3 ? NORMAL : p, step);
        agrees_with_alone(&a, &r, k, what);
        exempt_entries_stay(&r);
    }
    rig_close(&r), alone_close(&a, s);
}

static void alone_body(const void *unused) {
    (void)unused;
    for (size_t row = 0; selectors[row]; row++)
        for (size_t i = 0; i < SLICINGS; i++)
            for (enum pattern p = 0; p < PATTERNS; p++)
                if (p != WIDE && (test_device_is_host() || (i == 4 && (p == FEW_VALUES || p == NORMAL))))
                    one_slicing(selectors[row], &slicings[i], p);
}

IN_EVERY_SET(each_slice_by_itself, alone_body, NULL)

/* The definition of exact, by sorting each slice. */
static void sorted_body(const void *unused) {
    const struct slicing *s = &slicings[4];
    struct ranked *pick = mem_alloc(s->n, sizeof *pick, "reference");
    struct rig r;
    (void)unused;
    rig_open(&r, selectors[0], s);
    CHECK(strcmp(selectors[0]->name, "exact") == 0, "the first row is %s", selectors[0]->name);
    for (enum pattern p = 0; p < PATTERNS; p++) {
        size_t at = 0;
        memset(r.acc, 0, s->n * sizeof(float));
        r.store.ops->write(&r.store, 0, s->n, r.acc);
        rig_step(&r, s->k, p, 5);
        for (size_t i = 0; i < s->count; i++) {
            size_t k = naive_budget(s, s->k, i), from = s->slice[i].from;
            naive_top(r.grad + from, s->slice[i].count, k, pick);
            for (size_t j = 0; j < k; j++, at++)
                CHECK(r.out.idx[at] == from + pick[j].idx && r.out.val[at] == r.grad[from + pick[j].idx],
                      "pattern %d, slice %zu, entry %zu", (int)p, i, j);
        }
        CHECK(at == r.out.nnz, "%zu entries, not %zu", r.out.nnz, at);
    }
    rig_close(&r);
    mem_free(pick);
}

IN_EVERY_SET(exact_as_sorted, sorted_body, NULL)

/* -- one slice that is all ------------------------------------------------------------------------------------ */
static void whole_body(const void *unused) {
    static const struct slicing whole[] = {
        {1, 1, 1, {{0, 1}}}, {4099, 41, 1, {{0, 4099}}}, {20011, 3000, 1, {{0, 20011}}}};
    (void)unused;
    for (size_t row = 0; selectors[row]; row++)
        for (size_t i = 0; i < 3; i++) {
            struct rig by, plain;
            rig_open(&by, selectors[row], &whole[i]);
            rig_open_store(&plain, selectors[row], &whole[i]);
            rig_use(&plain, selector_open(selectors[row], &plain.store, whole[i].k, &settings));
            CHECK(by.selector->room == plain.selector->room && by.selector->most == plain.selector->most, "%s: room",
                  selectors[row]->name);
            for (uint64_t step = 0; step < 8; step++) {
                enum pattern p = step % 4 == 3 ? FEW_VALUES : NORMAL;
                rig_step(&by, whole[i].k, p, step), rig_step(&plain, whole[i].k, p, step);
                bool same = by.out.nnz == plain.out.nnz &&
                            memcmp(by.out.idx, plain.out.idx, by.out.nnz * sizeof *by.out.idx) == 0 &&
                            memcmp(by.out.val, plain.out.val, by.out.nnz * sizeof *by.out.val) == 0 &&
                            memcmp(by.acc, plain.acc, by.n * sizeof *by.acc) == 0;
                CHECK(same, "%s n %zu, step %d", selectors[row]->name, by.n, (int)step);
                const struct selector_stats *a = &by.selector->stats, *b = &plain.selector->stats;
                CHECK(a->asked == b->asked && a->found == b->found && same_bits(a->threshold, b->threshold) &&
                          same_bits(a->exact, b->exact) && a->exact_passes == b->exact_passes &&
                          a->normal_passes == b->normal_passes && a->evaluated == b->evaluated && a->audited &&
                          b->audited,
                      "%s: statistics", selectors[row]->name);
            }
            rig_close(&by), rig_close(&plain);
        }
}

IN_EVERY_SET(one_slice_is_the_plain_selector, whole_body, NULL)

/* -- what is not finite ----------------------------------------------------------------------------------------- */
static void not_finite_body(const void *unused) {
    const struct slicing *s = &slicings[5];
    const size_t places[] = {3, 4002, 4003, 4019, 4500, 5200, 5899, 5999}, exempt[] = {0, 2, 4020, 4499, 5900, 5998};
    const float kinds[] = {INFINITY, NAN};
    struct rig r;
    (void)unused;
    for (size_t row = 0; selectors[row]; row++) {
        for (size_t i = 0; i < sizeof places / sizeof *places; i++)
            for (size_t kind = 0; kind < 2; kind++) {
                size_t bad = 12345;
                rig_open(&r, selectors[row], s);
                rig_step(&r, s->k, NORMAL, 1);
                r.grad[places[i]] = r.grad[s->n - 1] = kinds[kind];
                CHECK(!rig_run(&r, s->k, &bad) && bad == places[i], "%s: %zu, not %zu", selectors[row]->name, bad,
                      places[i]);
                rig_close(&r);
            }
        size_t bad;
        rig_open(&r, selectors[row], s);
        for (size_t i = 0; i < sizeof exempt / sizeof *exempt; i++) r.grad[exempt[i]] = NAN;
        CHECK(rig_run(&r, s->k, &bad), "%s: entry %zu was looked at", selectors[row]->name, bad);
        rig_close(&r);
    }
}

IN_EVERY_SET(not_finite, not_finite_body, NULL)

/* -- resumed ------------------------------------------------------------------------------------------------------ */
static uint64_t hashed_step(struct rig *r, uint64_t step) {
    rig_step(r, r->slicing->k, step % 4 == 3 ? FEW_VALUES : NORMAL, step);
    uint64_t hash = hash64(step, r->out.idx, r->out.nnz * sizeof *r->out.idx);
    return hash64(hash, r->out.val, r->out.nnz * sizeof *r->out.val);
}

static void resume(const struct selector_ops *ops, uint64_t m) {
    struct rig a, b;
    void *from, *to;
    size_t bytes, to_bytes, piece = 0;
    rig_open(&a, ops, &slicings[5]), rig_open(&b, ops, &slicings[5]);
    for (uint64_t step = 0; step < m; step++) hashed_step(&a, step);
    a.store.ops->read(&a.store, 0, a.n, a.acc);
    b.store.ops->write(&b.store, 0, b.n, a.acc);
    for (; selector_saved(a.selector, piece, &from, &bytes); piece++) {
        CHECK(selector_saved(b.selector, piece, &to, &to_bytes) && to_bytes == bytes && (!from || to != from),
              "%s: piece %zu", ops->name, piece);
        CHECK((bytes > 0) == (ops->saved != NULL), "%s: %zu bytes", ops->name, bytes);
        if (bytes > 0) memcpy(to, from, bytes);
    }
    CHECK(piece == slicings[5].count && !selector_saved(b.selector, piece, &to, &to_bytes), "%zu pieces", piece);
    for (uint64_t step = m; step < 2 * m; step++)
        CHECK(hashed_step(&a, step) == hashed_step(&b, step), "%s: step %d of a run resumed at %d", ops->name,
              (int)step, (int)m);
    rig_close(&a), rig_close(&b);
}

/* A state that no run has left, in one slice's place alone. */
static void crafted_body(const void *unused) {
    (void)unused;
    for (size_t row = 0; selectors[row]; row++) {
        struct rig r;
        void *state;
        size_t bytes;
        rig_open(&r, selectors[row], &slicings[5]);
        hashed_step(&r, 0);
        for (size_t piece = 0; selector_saved(r.selector, piece, &state, &bytes); piece++) {
            struct err e = {0};
            char was[64];
            CHECK(selector_check(r.selector, &e), "%s: piece %zu: %s", selectors[row]->name, piece, e.text);
            if (bytes == 0) continue;
            CHECK(bytes <= sizeof was, "%zu bytes", bytes);
            memcpy(was, state, bytes);
            memset(state, 0xff, bytes);
            CHECK(!selector_check(r.selector, &e) && e.text[0], "%s: piece %zu", selectors[row]->name, piece);
            memcpy(state, was, bytes);
        }
        rig_close(&r);
    }
}

static void crafted_states(void **state) {
    (void)state;
    assert_int_equal(status_of(crafted_body, NULL, true), 0);
}

static void resumed_body(const void *unused) {
    (void)unused;
    for (size_t row = 0; selectors[row]; row++)
        for (uint64_t m = 1; m < 12; m += 3) resume(selectors[row], m);
}

IN_EVERY_SET(resumed_runs, resumed_body, NULL)

/* -- budgets ------------------------------------------------------------------------------------------------------ */
static void budgets(void **state) {
    (void)state;
    assert_int_equal(slice_budget(100, 500, 1000), 50);
    assert_int_equal(slice_budget(100, 509, 1000), 50);
    assert_int_equal(slice_budget(100, 9, 1000), 1);
    assert_int_equal(slice_budget(2000, 10, 1000), 10);
    assert_int_equal(slice_budget(UINT32_MAX, UINT32_MAX, UINT32_MAX), UINT32_MAX);
    for (size_t i = 0; i < SLICINGS; i++) {
        size_t covered = 0;
        for (size_t j = 0; j < slicings[i].count; j++) covered += slicings[i].slice[j].count;
        for (size_t k = 1; k <= slicings[i].n; k++)
            for (size_t j = 0; j < slicings[i].count; j++)
                assert_int_equal(slice_budget(k, slicings[i].slice[j].count, covered),
                                 naive_budget(&slicings[i], k, j));
    }
}

/* k = floor(density N): a slice gets what the density gives it alone, or one less. */
static void budgets_and_densities(void **state) {
    static const double densities[] = {0.25, 0.01, 0.001};
    (void)state;
    for (size_t d = 0; d < 3; d++)
        for (size_t all = 2000; all < 400000; all += 997) {
            size_t k = density_to_k(densities[d], all);
            for (size_t count = 1; count <= all; count += all / 61) {
                size_t own = density_to_k(densities[d], count), budget = slice_budget(k, count, all);
                assert_true(budget == own || budget + 1 == own);
                size_t round = all / 1000 * 1000; /* density N is a whole number */
                if (count <= round)
                    assert_int_equal(slice_budget(density_to_k(densities[d], round), count, round), own);
            }
        }
}

/* -- parts of it --------------------------------------------------------------------------------------------------- */
static void part_of(const struct selector_ops *ops, size_t from, size_t n, size_t k) {
    static const struct slicing cut = {1000, 10, 3, {{0, 103}, {103, 17}, {600, 400}}};
    struct rig whole, part, hand;
    struct store view;
    rig_open(&whole, ops, &slicings[5]);
    CHECK(selector_covers(whole.selector, from, n) == 520, "%zu", selector_covers(whole.selector, from, n));
    CHECK(selector_covers(whole.selector, 0, whole.n) == whole.selector->covered && whole.selector->covered == 5418,
          "%zu", whole.selector->covered);
    rig_open_store(&part, ops, &cut);
    store_view_open(&view, &part.store, 0, n);
    rig_use(&part, selector_open_part(whole.selector, &view, from, k));
    rig_open(&hand, ops, &cut);
    CHECK(part.selector->slices == 3 && selector_asks(part.selector, k) == naive_asks(&cut, k), "%zu slices",
          part.selector->slices);
    CHECK(part.selector->covered == 520 && part.selector->room == hand.selector->room, "%s: room", ops->name);
    for (uint64_t step = 0; step < 6; step++)
        CHECK(hashed_step(&part, step) == hashed_step(&hand, step), "%s: step %d", ops->name, (int)step);
    rig_close(&part), rig_close(&hand), rig_close(&whole);
}

static void parts_body(const void *unused) {
    (void)unused;
    for (size_t row = 0; selectors[row]; row++) part_of(selectors[row], 3900, 1000, 10);
    struct rig plain, none;
    rig_open_store(&plain, selectors[0], &slicings[5]);
    rig_use(&plain, selector_open(selectors[0], &plain.store, 9, NULL));
    CHECK(selector_covers(plain.selector, 10, 20) == 20 && selector_asks(plain.selector, 7) == 7, "plain");
    struct selector *part = selector_open_part(plain.selector, &plain.store, 0, 5);
    CHECK(!part->slice && part->ops == selectors[0] && part->covered == plain.n, "plain");
    selector_close(part);
    rig_close(&plain);
    rig_open_store(&none, selectors[0], &slicings[5]); /* no slices */
    rig_use(&none, selector_open_slices(selectors[0], &none.store, 9, NULL, NULL, 0));
    rig_step(&none, 9, NORMAL, 1);
    CHECK(none.out.nnz == 0 && none.selector->stats.asked == 0 && !none.selector->stats.audited, "none");
    for (size_t i = 0; i < none.n; i++) CHECK(none.acc[i] == 0, "none");
    struct selector_stats all = {0}, some = {.asked = 3, .found = 2, .threshold = 5, .audited = true, .exact = 4};
    selector_stats_add(&all, &some), selector_stats_add(&all, &none.selector->stats);
    CHECK(all.asked == 3 && all.threshold == 5 && all.exact == 4 && all.audited, "statistics of none");
    const struct selector_stats less = {.asked = 1, .found = 1, .threshold = 3, .audited = true, .exact = 7},
                                unaudited = {.asked = 2, .found = 4, .threshold = 6};
    selector_stats_add(&all, &less);
    CHECK(all.asked == 4 && all.found == 3 && all.threshold == 3 && all.exact == 4 && all.audited, "of two");
    selector_stats_add(&all, &unaudited);
    CHECK(all.asked == 6 && all.found == 7 && all.threshold == 3 && !all.audited, "one was not audited");
    selector_stats_add(&all, &less);
    CHECK(!all.audited, "one was not audited");
    rig_close(&none);
}

IN_EVERY_SET(parts, parts_body, NULL)

/* -- broken contracts, memory -------------------------------------------------------------------------------------- */
static void open_wrong(const void *argument) {
    const struct slicing *s = argument;
    struct rig r;
    rig_open(&r, selectors[0], s);
    rig_close(&r);
}

static void run_with_less_room(const void *unused) {
    struct rig r;
    size_t bad;
    (void)unused;
    rig_open(&r, selectors[0], &slicings[5]);
    r.out.cap--;
    selector_run(r.selector, r.device_grad, 60, &r.out, &bad);
}

static void run_on_less(const void *unused) {
    struct rig r;
    size_t bad;
    (void)unused;
    rig_open(&r, selectors[0], &slicings[5]);
    r.store.n--;
    selector_run(r.selector, r.device_grad, 60, &r.out, &bad);
}

static void broken_contracts(void **state) {
    static const struct slicing wrong[] = {
        {10, 0, 1, {{0, 10}}}, {10, 1, 2, {{0, 5}, {4, 2}}}, {10, 1, 2, {{5, 2}, {0, 2}}}, {10, 1, 1, {{3, 0}}},
        {10, 1, 1, {{3, 8}}},  {10, 1, 1, {{11, SIZE_MAX}}}, {10, 11, 1, {{0, 10}}},
    };
    static const struct slicing right = {10, 10, 2, {{0, 5}, {5, 5}}};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(status_of(open_wrong, &wrong[i], false), EXIT_SYSTEM);
    assert_int_equal(status_of(open_wrong, &right, true), 0);
    assert_int_equal(status_of(run_with_less_room, NULL, false), EXIT_SYSTEM);
    assert_int_equal(status_of(run_on_less, NULL, false), EXIT_SYSTEM);
}

struct failing {
    const struct selector_ops *ops;
    long nth;
};

static void open_one(const void *argument) {
    const struct failing *f = argument;
    const struct slicing *s = &slicings[2];
    struct store store;
    store_open(&store, s->n, test_device());
    long live = mem_live();
    mem_fail_at(f->nth);
    struct selector *selector = selector_open_slices(f->ops, &store, s->k, NULL, s->slice, s->count);
    mem_fail_at(0);
    selector_close(selector);
    _exit(mem_live() == live ? 77 : 78);
}

static void memory_that_runs_out(void **state) {
    (void)state;
    for (size_t row = 0; selectors[row]; row++) {
        struct failing f = {selectors[row], 1};
        int status;
        for (; (status = status_of(open_one, &f, false)) == EXIT_SYSTEM; f.nth++) assert_true(f.nth < 100);
        assert_int_equal(status, 77); /* no allocation was left to fail, and all was given back */
        assert_true(f.nth > 4 + 4);
    }
}

int main(void) {
    test_device_in_children();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(budgets),
        cmocka_unit_test(budgets_and_densities),
        cmocka_unit_test(each_slice_by_itself),
        cmocka_unit_test(exact_as_sorted),
        cmocka_unit_test(one_slice_is_the_plain_selector),
        cmocka_unit_test(not_finite),
        cmocka_unit_test(resumed_runs),
        cmocka_unit_test(crafted_states),
        cmocka_unit_test(parts),
        cmocka_unit_test(broken_contracts),
        cmocka_unit_test(memory_that_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
