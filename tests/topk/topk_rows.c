/* topk_rows.c: what every selector of the table promises, whatever its idea: over shapes and inputs that are hard, in
 * steps with error feedback, for every kernel set. What each of them selects is the matter of topk_naive.c.
 *
 * devices: cuda sparse
 */
#include "tests/lib/topk_reference.h"

#include <math.h>
#include <sys/mman.h>

#include "base/hash.h"
#include "base/mem.h"
#include "tests/lib/in_child.h"
#include "topk/normal.h"
#include "topk/selector.h"

/* One selector, its store and what it gets. */
struct rig {
    const struct selector_ops *ops;
    struct store whole, store; /* store: a view of whole */
    struct selector *selector;
    struct sparse out;
    float *grad, *sum;  /* [n] */
    float *device_grad; /* device, [n]: grad itself on the CPU */
    float *acc;         /* [n]: what is in the store after a step */
    struct ranked *pick;
    size_t n;
};

static void rig_open_at(struct rig *r, const struct selector_ops *ops, size_t n, size_t k_max, size_t offset) {
    static const int period = 3;
    static const struct option_row period_row = {"tau-prime", "N", OPTION_INT, "32", "", .offset = 0};
    const struct selector_settings settings = {.options = {&period_row, 1, &period}, .seed = 9};
    *r = (struct rig){.ops = ops, .n = n};
    store_open(&r->whole, n + 2 * offset, test_device());
    store_view_open(&r->store, &r->whole, offset, n);
    r->selector = selector_open(ops, &r->store, k_max, &settings);
    sparse_open(&r->out, selector_capacity(ops, n, k_max) + 3);
    r->grad = mem_alloc(n, sizeof(float), "grad");
    r->sum = mem_alloc(n, sizeof(float), "sum");
    r->acc = mem_alloc(n, sizeof(float), "acc");
    r->pick = mem_alloc(n, sizeof *r->pick, "reference");
    r->device_grad = device_twin(r->grad, n);
}

static void rig_open(struct rig *r, const struct selector_ops *ops, size_t n, size_t k_max) {
    rig_open_at(r, ops, n, k_max, 0);
}

static void rig_close(struct rig *r) {
    selector_close(r->selector);
    store_view_close(&r->store);
    store_close(&r->whole);
    sparse_close(&r->out);
    device_twin_free(r->device_grad, r->grad);
    mem_free(r->grad), mem_free(r->sum), mem_free(r->acc), mem_free(r->pick);
}

/* acc + grad as one float addition each, ranked. Returns how many are not zero. */
static size_t rank_sum(struct rig *r) {
    size_t not_zero = 0;
    r->store.ops->read(&r->store, 0, r->n, r->sum);
    for (size_t i = 0; i < r->n; i++) {
        r->sum[i] += r->grad[i];
        not_zero += r->sum[i] != 0;
        r->pick[i] = (struct ranked){magnitude_key(r->sum[i]), (uint32_t)i};
    }
    sort_by_rank(r->pick, r->n);
    return not_zero;
}

static bool is(const struct rig *r, const char *name) {
    return strcmp(r->ops->name, name) == 0;
}

/* The entries beyond mean + z sigma, z for k of n on both sides, with room for sums in another order. */
static void check_normal_passes(const struct rig *r, size_t k, const char *what) {
    long double sum = 0, squares = 0, n = (long double)r->n;
    for (size_t i = 0; i < r->n; i++)
        sum += (long double)r->sum[i], squares += (long double)r->sum[i] * (long double)r->sum[i];
    const double mean = (double)(sum / n), variance = (double)(squares / n - (sum / n) * (sum / n));
    const double square = (double)(squares / n), off = 1e-12 * square;
    const double z = normal_upper_quantile((double)k / (double)r->n / 2);
    const double low = mean + z * sqrt(fmax(0, variance - off)) - 1e-12 * sqrt(square);
    const double high = mean + z * sqrt(fmax(0, variance + off)) + 1e-12 * sqrt(square);
    size_t most = 0, least = 0;
    for (size_t i = 0; i < r->n; i++) {
        double size = fabs((double)r->sum[i]);
        most += size > low && size > 0;
        least += size > high && size > 0;
    }
    const size_t passes = r->selector->stats.normal_passes;
    CHECK(least <= passes && passes <= most, "%s %s n %zu k %zu: %zu beyond Gaussiank's threshold, not %zu to %zu",
          r->ops->name, what, r->n, k, passes, least, most);
}

/* One step and what holds for all rows. The set that leaves is a beginning of the order by rank, but for mstopk's. */
static void step(struct rig *r, size_t k, const char *what) {
    size_t bad = 12345, not_zero = rank_sum(r), cap = r->out.cap;
    r->selector->audit = true;
    device_fill(r->device_grad, r->grad, r->n);
    mem_fail_at(1); /* run allocates nothing */
    bool good = selector_run(r->selector, r->device_grad, k, &r->out, &bad);
    mem_fail_at(0);
    const char *name = r->ops->name;
    struct selector_stats *stats = &r->selector->stats;
    CHECK(good, "%s %s n %zu k %zu: bad %zu", name, what, r->n, k, bad);
    r->store.ops->read(&r->store, 0, r->n, r->acc);
    CHECK(memcmp(r->acc, r->sum, r->n * sizeof(float)) == 0, "%s %s n %zu k %zu: acc", name, what, r->n, k);
    size_t found = r->out.nnz;
    CHECK(sparse_valid(&r->out, r->n) && r->out.cap == cap, "%s %s n %zu k %zu: order", name, what, r->n, k);
    CHECK(found <= selector_capacity(r->ops, r->n, r->selector->k_max), "%s %s: %zu", name, what, found);
    CHECK(stats->asked == k && stats->found == found, "%s %s n %zu k %zu: stats", name, what, r->n, k);
    CHECK(!r->ops->exact_count || found == k, "%s %s n %zu k %zu: %zu", name, what, r->n, k, found);
    CHECK(found > 0 || not_zero == 0, "%s %s n %zu k %zu: none", name, what, r->n, k);
    for (size_t i = 0; i < found; i++) {
        struct ranked entry = {magnitude_key(r->out.val[i]), r->out.idx[i]};
        CHECK(same_bits(r->out.val[i], r->sum[entry.idx]), "%s %s: value at %u", name, what, entry.idx);
        CHECK(entry.key >= magnitude_key(stats->threshold), "%s %s n %zu k %zu: below %g", name, what, r->n, k,
              (double)stats->threshold);
        CHECK(is(r, "mstopk") || by_rank(&entry, &r->pick[found - 1]) <= 0, "%s %s n %zu k %zu: entry %u of %zu", name,
              what, r->n, k, entry.idx, found);
    }
    CHECK(stats->audited && magnitude_key(stats->exact) == r->pick[k - 1].key, "%s %s: audit", name, what);
    size_t passes = 0;
    while (passes < r->n && r->pick[passes].key >= r->pick[k - 1].key) passes++;
    CHECK(stats->exact_passes == passes, "%s %s: audit: %zu, not %zu", name, what, stats->exact_passes, passes);
    check_normal_passes(r, k, what);
}

static void deliver(struct rig *r) {
    r->store.ops->zero_at(&r->store, r->out.idx, r->out.nnz);
}

static void start(struct rig *r, enum pattern p, uint64_t seed) {
    pattern_fill(p, r->sum, r->n, seed);
    r->store.ops->write(&r->store, 0, r->n, r->sum);
}

static void name_of(char text[48], const char *what, enum pattern p) {
    snprintf(text, 48, "%s, pattern %d", what, (int)p);
}

/* -- shapes and inputs -------------------------------------------------------------------------------------- */

static void all_patterns(const struct selector_ops *ops, size_t n, size_t k, int steps) {
    char text[48];
    struct rig r;
    rig_open(&r, ops, n, k);
    for (enum pattern p = 0; p < PATTERNS; p++) {
        name_of(text, "residual", p);
        start(&r, p, n + k);
        for (int s = 0; s < steps; s++) {
            pattern_fill(s % 2 || p == WIDE ? SIGNED_ZEROS : p, r.grad, n, (uint64_t)s);
            step(&r, k, text);
            deliver(&r);
        }
    }
    rig_close(&r);
}

static void shapes_body(const void *unused) {
    (void)unused;
    const size_t sizes[] = {1, 3, 17, 1027, 2, 16, 100}; /* four of them on the stand-in */
    bool fast = !test_device_is_emulated();
    for (size_t row = 0; selectors[row]; row++) {
        for (size_t i = 0; i < (fast ? sizeof sizes / sizeof sizes[0] : 4); i++) {
            size_t n = sizes[i], ks[] = {1, n / 50 + 1, n / 4 + 1, n};
            for (size_t j = 0; j < 4; j++)
                if (j == 0 || ks[j] != ks[j - 1]) all_patterns(selectors[row], n, ks[j], fast ? 5 : 3);
        }
        all_patterns(selectors[row], 5003, 11, 3); /* large enough for a sampled guess */
        all_patterns(selectors[row], 5003, 5003, 1);
        all_patterns(selectors[row], 20011, 40, 2);
        all_patterns(selectors[row], 20011, 5000, 2);
    }
}

/* k changes from step to step, as a density schedule does. */
static void schedules_body(const void *unused) {
    (void)unused;
    const size_t n = 9001, ks[] = {2250, 2250, 2000, 650, 130, 130, 30, 9, 9, 8, 10, 1, 2250};
    for (size_t row = 0; selectors[row]; row++) {
        struct rig r;
        rig_open(&r, selectors[row], n, 2250);
        start(&r, NORMAL, 1);
        for (size_t s = 0; s < sizeof ks / sizeof ks[0]; s++) {
            pattern_fill(NORMAL, r.grad, n, s);
            step(&r, ks[s], "schedule");
            deliver(&r);
        }
        rig_close(&r);
    }
}

/* Nothing for a while, then a lot, then nothing. */
static void silence_body(const void *unused) {
    (void)unused;
    const enum pattern gradients[] = {ALL_ZERO,   ALL_ZERO, NORMAL,   NORMAL,    ALL_ZERO, ONE_GIANT,
                                      FEW_GIANTS, ALL_ZERO, ALL_ZERO, DENORMALS, NORMAL};
    for (size_t row = 0; selectors[row]; row++)
        for (size_t n = 700; n < 10000; n += 8000) {
            struct rig r;
            rig_open(&r, selectors[row], n, n / 100);
            for (size_t s = 0; s < sizeof gradients / sizeof gradients[0]; s++) {
                pattern_fill(gradients[s], r.grad, n, s);
                step(&r, n / 100, "silence");
                deliver(&r);
            }
            rig_close(&r);
        }
}

IN_EVERY_SET(shapes, shapes_body, NULL)
IN_EVERY_SET(schedules, schedules_body, NULL)
IN_EVERY_SET(silence, silence_body, NULL)

/* -- what is not finite -------------------------------------------------------------------------------------- */

static void check_bad(struct rig *r, size_t k, size_t wanted, const char *what) {
    size_t bad = 12345;
    device_fill(r->device_grad, r->grad, r->n);
    CHECK(!selector_run(r->selector, r->device_grad, k, &r->out, &bad), "%s %s n %zu k %zu: not noticed at %zu",
          r->ops->name, what, r->n, k, wanted);
    CHECK(bad == wanted, "%s %s n %zu k %zu: %zu instead of %zu", r->ops->name, what, r->n, k, bad, wanted);
}

/* In the first step, and (good > 0) in one whose threshold is an older one. */
static void bad_entries(const struct selector_ops *ops, size_t n, size_t k, int good) {
    const float kinds[] = {INFINITY, -INFINITY, NAN, -NAN};
    for (size_t at = 0; at < n; at += n / 5 + 1)
        for (size_t kind = 0; kind < 4; kind++) {
            struct rig r;
            rig_open(&r, ops, n, k);
            for (int s = 0; s <= good; s++) {
                pattern_fill(NORMAL, r.grad, n, (uint64_t)s);
                if (s < good) step(&r, k, "before"), deliver(&r);
            }
            if (kind == 3) /* far more pass than before */
                for (size_t i = 0; i < n; i++) r.grad[i] *= 1000;
            r.grad[at] = kinds[kind];
            if (at + 1 < n) r.grad[n - 1] = NAN; /* a larger key behind it */
            check_bad(&r, k, at, "one");
            rig_close(&r);
        }
}

/* The sum overflows everywhere; all are equal and one is infinite. */
static void bad_everywhere(const struct selector_ops *ops, size_t n, size_t k) {
    struct rig r;
    rig_open(&r, ops, n, k);
    for (size_t i = 0; i < n; i++) r.grad[i] = r.sum[i] = 3e38f;
    r.store.ops->write(&r.store, 0, n, r.sum);
    check_bad(&r, k, 0, "all");
    start(&r, ALL_EQUAL, 1);
    pattern_fill(ALL_ZERO, r.grad, n, 1);
    r.grad[n - 1] = INFINITY;
    check_bad(&r, k, n - 1, "ties");
    start(&r, ALL_ZERO, 1);
    check_bad(&r, k, n - 1, "zeros");
    rig_close(&r);
    rig_open(&r, ops, n, k); /* the same where no threshold is known, and a sample sees zeros alone */
    pattern_fill(ALL_ZERO, r.grad, n, 1);
    r.grad[n - 1] = INFINITY;
    check_bad(&r, k, n - 1, "zeros at first");
    rig_close(&r);
}

static void not_finite_body(const void *unused) {
    (void)unused;
    const size_t sizes[] = {1, 2, 17, 1000, 20011};
    for (size_t row = 0; selectors[row]; row++)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            size_t n = sizes[i];
            bad_entries(selectors[row], n, n / 100 + 1, 0);
            if (n < 2000) bad_entries(selectors[row], n, n / 2 + 1, 0);
            if (n > 2) bad_entries(selectors[row], n, n / 100 + 1, 2);
            bad_everywhere(selectors[row], n, n / 100 + 1);
        }
}

IN_EVERY_SET(not_finite, not_finite_body, NULL)

/* -- the same bits ------------------------------------------------------------------------------------------- */

/* A step of the usual kind; returns what went out and the statistics, hashed. */
static uint64_t hashed_step(struct rig *r, size_t k, uint64_t seed) {
    pattern_fill(seed % 4 == 3 ? FEW_VALUES : NORMAL, r->grad, r->n, seed);
    step(r, k, "hashed");
    deliver(r);
    struct selector_stats *stats = &r->selector->stats;
    uint64_t hash = hash64(seed, r->out.idx, r->out.nnz * sizeof *r->out.idx);
    hash = hash64(hash, r->out.val, r->out.nnz * sizeof *r->out.val);
    hash = hash64(hash, &stats->threshold, sizeof stats->threshold);
    return hash64(hash, &stats->evaluated, sizeof stats->evaluated);
}

/* 2m steps at a stretch, and m steps, what `saved` names written to another selector, m steps. */
static void resume(const struct selector_ops *ops, size_t n, size_t k, uint64_t m) {
    struct rig a, b, c;
    uint64_t hash = 0;
    rig_open(&a, ops, n, k), rig_open(&b, ops, n, k), rig_open(&c, ops, n, k);
    for (uint64_t s = 0; s < m; s++) CHECK(hashed_step(&a, k, s) == hashed_step(&b, k, s), "%s: two runs", ops->name);
    b.store.ops->read(&b.store, 0, n, b.sum);
    c.store.ops->write(&c.store, 0, n, b.sum);
    if (ops->saved) {
        size_t from_bytes, to_bytes;
        void *from, *to;
        CHECK(selector_saved(b.selector, 0, &from, &from_bytes) && selector_saved(c.selector, 0, &to, &to_bytes) &&
                  from_bytes == to_bytes && from_bytes > 0,
              "%s: %zu and %zu bytes", ops->name, from_bytes, to_bytes);
        memcpy(to, from, from_bytes);
    }
    for (uint64_t s = m; s < 2 * m; s++) {
        hash = hashed_step(&a, k, s);
        CHECK(hash == hashed_step(&c, k, s), "%s: step %d of a run resumed at %d", ops->name, (int)s, (int)m);
    }
    rig_close(&a), rig_close(&b), rig_close(&c);
}

static void resumed_body(const void *unused) {
    (void)unused;
    for (size_t row = 0; selectors[row]; row++)
        for (uint64_t m = 1; m < 13; m += 3) {
            resume(selectors[row], 900, 20, m);
            resume(selectors[row], 9001, 90, m);
        }
}

IN_EVERY_SET(resumed_runs, resumed_body, NULL)

static void hash_body(const void *argument) {
    uint64_t *slot = *(uint64_t *const *)argument;
    for (size_t row = 0; selectors[row]; row++) {
        struct rig r;
        rig_open(&r, selectors[row], 20011, 300);
        for (uint64_t s = 0; s < 9; s++) *slot = *slot * 31 + hashed_step(&r, 300, s);
        rig_close(&r);
    }
}

static void kernel_sets_agree(void **state) {
    (void)state;
    uint64_t *hashes = mmap(NULL, 8 * sizeof *hashes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(hashes != MAP_FAILED);
    size_t sets = 0;
    if (!test_device_is_host()) { /* two runs on the device; its sums may differ from the CPU's in the last bits */
        for (uint64_t *slot = hashes; slot < hashes + 2; slot++) assert_int_equal(status_of(hash_body, &slot, true), 0);
        assert_true(hashes[0] != 0 && hashes[1] == hashes[0]);
    }
    for (const struct topk_kernels *const *set = topk_kernels_all(); *set && test_device_is_host(); set++, sets++) {
        uint64_t *slot = hashes + sets;
        setenv("SPARSETRAIN_SIMD", (*set)->name, 1);
        assert_int_equal(status_of(hash_body, &slot, true), 0);
        assert_true(hashes[sets] != 0 && hashes[sets] == hashes[0]);
    }
    unsetenv("SPARSETRAIN_SIMD");
    munmap(hashes, 8 * sizeof *hashes);
}

/* -- states from a file that may be anybody's ---------------------------------------------------------------- */

enum { STATE_N = 900, STATE_K = 20 };

/* Bytes of a saved state (all are numbers of the machine), and whether a run may have left them there. */
struct crafted {
    const char *row;
    size_t at, bytes;
    union {
        uint64_t u64;
        int64_t i64;
        uint32_t u32;
        double f64;
    } value;
    bool good;
};

#define U64(row, at, number, good)                                                                                     \
    { row, at, 8, {.u64 = (number)}, good }
#define I64(row, at, number, good)                                                                                     \
    { row, at, 8, {.i64 = (number)}, good }
#define U32(row, at, number, good)                                                                                     \
    { row, at, 4, {.u32 = (number)}, good }
#define F64(row, at, number, good)                                                                                     \
    { row, at, 8, {.f64 = (number)}, good }

/* dgc, mstopk: steps. sidco: sum of ratios, how many, stages. reuse: k, key, shift, trend, uses (period 3). */
static const struct crafted crafted[] = {
    U64("dgc", 0, STEPS_MAX, true),
    U64("dgc", 0, STEPS_MAX + 1, false),
    U64("mstopk", 0, STEPS_MAX, true),
    U64("mstopk", 0, STEPS_MAX + 1, false),
    F64("sidco", 0, 0, true),
    F64("sidco", 0, 4.0 * STATE_N, true), /* of 4 steps */
    F64("sidco", 0, 4.1 * STATE_N, false),
    F64("sidco", 0, -1e-9, false),
    F64("sidco", 0, (double)NAN, false),
    U32("sidco", 8, 4, true),
    U32("sidco", 8, 5, false),
    U32("sidco", 12, 0, false),
    U32("sidco", 12, 1, true),
    U32("sidco", 12, 32, true),
    U32("sidco", 12, 33, false),
    U64("reuse", 0, 0, false), /* a threshold that was found for nothing */
    U64("reuse", 0, 1, true),
    U64("reuse", 0, STATE_K, true),
    U64("reuse", 0, STATE_K + 1, false),
    U32("reuse", 8, 0, false), /* one that everything reaches */
    U32("reuse", 8, 1, true),
    U32("reuse", 8, KEY_INFINITE - 1, true),
    U32("reuse", 8, KEY_INFINITE, false),
    U32("reuse", 12, 22, true),
    U32("reuse", 12, 23, false),
    I64("reuse", 16, 1 << 22, true),
    I64("reuse", 16, (1 << 22) + 1, false),
    I64("reuse", 16, -(1 << 22), true),
    I64("reuse", 16, -(1 << 22) - 1, false),
    U64("reuse", 24, 3, true),
    U64("reuse", 24, 4, false),
};

/* In the place of what a run of 4 steps left there, which comes back. */
static void craft(struct rig *r, const struct crafted *c) {
    struct err e = {0};
    void *state;
    size_t bytes;
    CHECK(selector_saved(r->selector, 0, &state, &bytes) && c->at + c->bytes <= bytes, "%s: %zu bytes", c->row, bytes);
    uint8_t *at = (uint8_t *)state + c->at, was[8];
    memcpy(was, at, c->bytes);
    memcpy(at, &c->value, c->bytes);
    bool good = selector_check(r->selector, &e);
    CHECK(good == c->good && good == !e.text[0], "%s: %zu bytes at %zu: \"%s\"", c->row, c->bytes, c->at, e.text);
    CHECK(good || strstr(e.text, c->row), "%s: \"%s\"", c->row, e.text);
    memcpy(at, was, c->bytes);
}

/* What a run has left is good after each step, as is a fresh state; what no run can leave is not. */
static void crafted_body(const void *unused) {
    (void)unused;
    for (size_t row = 0; selectors[row]; row++) {
        struct rig r;
        struct err e = {0};
        void *state;
        size_t bytes, tried = 0;
        rig_open(&r, selectors[row], STATE_N, STATE_K);
        CHECK(selector_check(r.selector, &e), "%s: fresh: %s", r.ops->name, e.text);
        for (uint64_t s = 0; s < 4; s++) {
            hashed_step(&r, STATE_K, s);
            CHECK(selector_check(r.selector, &e), "%s: after step %d: %s", r.ops->name, (int)s, e.text);
        }
        for (size_t i = 0; i < sizeof crafted / sizeof *crafted; i++)
            if (is(&r, crafted[i].row)) craft(&r, &crafted[i]), tried++;
        CHECK((tried > 0) == (r.ops->saved != NULL), "%s: has a state, and no case here", r.ops->name);
        CHECK(selector_check(r.selector, &e), "%s: in the end: %s", r.ops->name, e.text);
        CHECK(selector_saved(r.selector, 0, &state, &bytes) && (bytes > 0) == (tried > 0), "%s", r.ops->name);
        CHECK(!selector_saved(r.selector, 1, &state, &bytes) && !state && bytes == 0, "%s: one piece", r.ops->name);
        rig_close(&r);
    }
}

/* No threshold, and counters all the same. */
static void reuse_without_a_threshold(const void *unused) {
    (void)unused;
    for (size_t row = 0; selectors[row]; row++) {
        struct rig r;
        struct err e = {0};
        void *state;
        size_t bytes;
        rig_open(&r, selectors[row], STATE_N, STATE_K);
        if (is(&r, "reuse")) {
            selector_saved(r.selector, 0, &state, &bytes);
            ((uint64_t *)state)[3] = 1;
            CHECK(!selector_check(r.selector, &e) && strstr(e.text, "threshold is none"), "\"%s\"", e.text);
        }
        rig_close(&r);
    }
}

static void crafted_states(void **state) {
    (void)state;
    assert_int_equal(status_of(crafted_body, NULL, true), 0);
    assert_int_equal(status_of(reuse_without_a_threshold, NULL, true), 0);
}

/* -- parts of a store ---------------------------------------------------------------------------------------- */

/* On a view as on a store of its own, wherever the view begins; what lies around it stays. */
static void one_view(const struct selector_ops *ops, size_t n, size_t offset) {
    struct rig own, part;
    size_t k = n / 100 + 1;
    rig_open(&own, ops, n, k), rig_open_at(&part, ops, n, k, offset);
    float *around = mem_alloc(part.whole.n, sizeof *around, "the whole store");
    for (size_t i = 0; i < part.whole.n; i++) around[i] = 1e30f;
    part.whole.ops->write(&part.whole, 0, part.whole.n, around);
    start(&own, NORMAL, 4), start(&part, NORMAL, 4);
    for (uint64_t s = 0; s < 4; s++)
        CHECK(hashed_step(&own, k, s) == hashed_step(&part, k, s), "%s: view of %zu from %zu, step %d", ops->name, n,
              offset, (int)s);
    part.whole.ops->read(&part.whole, 0, part.whole.n, around);
    for (size_t i = 0; i < offset; i++)
        CHECK(around[i] == 1e30f && around[offset + n + i] == 1e30f, "%s: outside", ops->name);
    rig_close(&own), rig_close(&part);
    mem_free(around);
}

/* A view that moves on with each step, the last place shorter than the others; one selector for all. */
static void moving_view(const struct selector_ops *ops, size_t n, size_t parts) {
    struct rig r;
    size_t width = (n + parts - 1) / parts, k = width / 60 + 1;
    float *all = mem_alloc(n, sizeof *all, "residual");
    rig_open(&r, ops, width, k);
    store_close(&r.whole);
    store_open(&r.whole, n, test_device());
    pattern_fill(NORMAL, all, n, 5);
    r.whole.ops->write(&r.whole, 0, n, all);
    r.store.state = r.whole.state;
    for (size_t s = 0; s < 3 * parts; s++) {
        size_t from = s * width % (n / width * width + width);
        if (from >= n) from = 0;
        r.n = n - from < width ? n - from : width;
        store_view_move(&r.store, &r.whole, from, r.n);
        hashed_step(&r, k < r.n ? k : r.n, s);
    }
    rig_close(&r);
    mem_free(all);
}

static void views_body(const void *unused) {
    (void)unused;
    const size_t sizes[] = {1, 2, 17, 4500, 9001};
    for (size_t row = 0; selectors[row]; row++) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            for (size_t offset = 1; offset < 18; offset += test_device_is_host() ? 1 + offset / 3 : 5)
                one_view(selectors[row], sizes[i], offset);
        moving_view(selectors[row], 20011, 4);
        moving_view(selectors[row], 31, 10);
    }
}

IN_EVERY_SET(views, views_body, NULL)

/* -- memory -------------------------------------------------------------------------------------------------- */

struct failing {
    const struct selector_ops *ops;
    long nth;
};

static void open_one(const void *argument) {
    const struct failing *f = argument;
    struct store s;
    store_open(&s, 10000, test_device());
    mem_fail_at(f->nth);
    struct selector *selector = selector_open(f->ops, &s, 10, NULL);
    mem_fail_at(0);
    selector_close(selector);
    store_close(&s);
    _exit(77); /* no allocation was left to fail */
}

static void memory_that_runs_out(void **state) {
    (void)state;
    for (size_t row = 0; selectors[row]; row++) {
        struct failing f = {selectors[row], 1};
        for (;; f.nth++) {
            int status = status_of(open_one, &f, false);
            if (status == 77) break;
            assert_int_equal(status, EXIT_SYSTEM);
            assert_true(f.nth < 50);
        }
        assert_true(f.nth > 2);
    }
}

static void longer_store(const void *argument) {
    struct rig r;
    rig_open(&r, *(const struct selector_ops *const *)argument, 100, 4);
    store_close(&r.whole);
    store_open(&r.whole, 200, test_device());
    store_view_move(&r.store, &r.whole, 0, 101);
    r.grad = mem_zalloc(101, sizeof(float), "grad");
    size_t bad;
    selector_run(r.selector, device_twin(r.grad, 101), 4, &r.out, &bad);
}

/* It may become as short as k. */
static void run_on_a_shorter_store(size_t count) {
    struct rig r;
    size_t bad;
    rig_open(&r, selectors[0], 100, 4);
    memset(r.grad, 0, r.n * sizeof *r.grad);
    device_fill(r.device_grad, r.grad, r.n);
    store_view_move(&r.store, &r.whole, 0, count);
    selector_run(r.selector, r.device_grad, 4, &r.out, &bad);
    rig_close(&r);
}

static void as_short_as_k(void) {
    run_on_a_shorter_store(4);
}
static void shorter_than_k(void) {
    run_on_a_shorter_store(3);
}

static void a_view_that_grew_is_refused(void **state) {
    (void)state;
    char text[512];
    for (size_t row = 0; selectors[row]; row++)
        assert_int_equal(status_of(longer_store, &selectors[row], false), EXIT_SYSTEM);
    assert_int_equal(in_child(as_short_as_k, text, sizeof text), IN_CHILD_RETURNED);
    assert_int_equal(in_child(shorter_than_k, text, sizeof text), EXIT_SYSTEM);
    assert_non_null(strstr(text, "k = 4 of a store that went from 100 to 3 entries"));
}

/* What an audit takes is charged to no part of the exchange. */
static void audits_are_not_selection(void **state) {
    (void)state;
    struct rig r;
    struct phases phases = {0};
    size_t bad;
    rig_open(&r, &selector_exact, 50021, 500);
    pattern_fill(0, r.grad, r.n, 3);
    device_fill(r.device_grad, r.grad, r.n);
    r.store.phases = &phases;
    for (int audit = 0; audit <= 1; audit++) {
        r.selector->audit = audit;
        phases_reset(&phases);
        phase_enter(&phases, PHASE_MERGE); /* what the caller is at */
        const double before = phases.seconds[PHASE_OTHER];
        CHECK(selector_run(r.selector, r.device_grad, 500, &r.out, &bad), "audit %d", audit);
        CHECK(phases.seconds[PHASE_SELECT] > 0 && phases.current == PHASE_MERGE, "audit %d: selection", audit);
        CHECK((phases.seconds[PHASE_OTHER] > before) == audit, "audit %d: charged elsewhere", audit);
    }
    rig_close(&r);
}

int main(void) {
    test_device_in_children();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes),
        cmocka_unit_test(schedules),
        cmocka_unit_test(silence),
        cmocka_unit_test(not_finite),
        cmocka_unit_test(resumed_runs),
        cmocka_unit_test(kernel_sets_agree),
        cmocka_unit_test(crafted_states),
        cmocka_unit_test(views),
        cmocka_unit_test(memory_that_runs_out),
        cmocka_unit_test(a_view_that_grew_is_refused),
        cmocka_unit_test(audits_are_not_selection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
