/* topk_select.c: the selectors against sorting, over inputs that are hard for selections.
 *
 * devices: cuda sparse
 */
#include "tests/lib/topk_reference.h"

#include <math.h>

#include "base/mem.h"
#include "topk/selector.h"

extern const struct selector_ops selector_exact;

/* One selection and all that it promises. */
struct fixture {
    struct store store;
    struct store_ops ops; /* a copy, so that a test can replace the guess */
    struct selector *selector;
    struct sparse out;
    float *residual, *grad, *sum; /* [n] */
    float *device_grad;           /* device, [n]: grad itself on the CPU */
    struct ranked *pick;
    size_t n;
};

/* Another k_max, the data stays. */
static void fixture_select(struct fixture *f, const struct selector_ops *ops, size_t k_max) {
    selector_close(f->selector);
    sparse_close(&f->out);
    f->selector = selector_open(ops, &f->store, k_max, NULL);
    sparse_open(&f->out, selector_capacity(ops, f->n, k_max));
}

static void fixture_open(struct fixture *f, const struct selector_ops *ops, size_t n, size_t k_max) {
    *f = (struct fixture){.n = n};
    store_open(&f->store, n, test_device());
    f->ops = *f->store.ops;
    f->store.ops = &f->ops;
    fixture_select(f, ops, k_max);
    f->residual = mem_alloc(n, sizeof(float), "residual");
    f->grad = mem_alloc(n, sizeof(float), "grad");
    f->sum = mem_alloc(n, sizeof(float), "sum");
    f->pick = mem_alloc(n, sizeof *f->pick, "reference");
    f->device_grad = device_twin(f->grad, n);
}

static void fixture_close(struct fixture *f) {
    selector_close(f->selector);
    store_close(&f->store);
    sparse_close(&f->out);
    device_twin_free(f->device_grad, f->grad);
    mem_free(f->residual), mem_free(f->grad), mem_free(f->sum), mem_free(f->pick);
}

static void rank_sum(struct fixture *f) {
    for (size_t i = 0; i < f->n; i++) {
        f->sum[i] = f->residual[i] + f->grad[i];
        f->pick[i] = (struct ranked){magnitude_key(f->sum[i]), (uint32_t)i};
    }
    sort_by_rank(f->pick, f->n);
}

/* acc = residual, then one run over the gradient. */
static bool run_from_residual(struct fixture *f, size_t k, size_t *bad) {
    f->ops.write(&f->store, 0, f->n, f->residual);
    device_fill(f->device_grad, f->grad, f->n);
    return selector_run(f->selector, f->device_grad, k, &f->out, bad);
}

/* Is acc the sum? */
static bool acc_is_sum(struct fixture *f) {
    if (device_is_host(f->store.device)) return memcmp(f->store.acc, f->sum, f->n * sizeof(float)) == 0;
    float *acc = device_copy_to_host(f->store.device, f->store.acc, f->n, "acc");
    bool same = memcmp(acc, f->sum, f->n * sizeof(float)) == 0;
    mem_free(acc);
    return same;
}

/* f->pick is in order of rank: k different entries, none of them behind the k-th, are the k first. */
static void check_run(struct fixture *f, size_t k, const char *what) {
    size_t bad = 12345;
    CHECK(run_from_residual(f, k, &bad), "%s n %zu k %zu: bad %zu", what, f->n, k, bad);
    CHECK(acc_is_sum(f), "%s n %zu k %zu: acc", what, f->n, k);
    CHECK(f->out.nnz == k && sparse_valid(&f->out, f->n), "%s n %zu k %zu: %zu entries", what, f->n, k, f->out.nnz);
    for (size_t i = 0; i < k; i++) {
        struct ranked found = {magnitude_key(f->out.val[i]), f->out.idx[i]};
        CHECK(by_rank(&found, &f->pick[k - 1]) <= 0 && same_bits(f->out.val[i], f->sum[found.idx]),
              "%s n %zu k %zu: entry %u", what, f->n, k, found.idx);
    }
}

static void name_of(char text[48], const char *what, enum pattern p, enum pattern q) {
    snprintf(text, 48, "%s, patterns %d + %d", what, (int)p, (int)q);
}

/* Every n up to 80, every k. */
static void small_body(const void *unused) {
    (void)unused;
    char text[48];
    size_t more = test_device_is_host() ? 1 : 13;
    for (size_t n = 1; n <= 80; n += more) {
        struct fixture f;
        fixture_open(&f, &selector_exact, n, n);
        for (enum pattern p = 0; p < PATTERNS; p++) {
            pattern_fill(p, f.residual, n, n);
            pattern_fill(SIGNED_ZEROS, f.grad, n, n);
            rank_sum(&f);
            name_of(text, "small", p, SIGNED_ZEROS);
            for (size_t k = 1; k <= n; k += n < 30 ? more : 7 * more) check_run(&f, k, text);
            check_run(&f, n, text);
        }
        fixture_close(&f);
    }
}

static uint32_t take_all(struct store *s, const float *grad, size_t k) {
    (void)s, (void)grad, (void)k;
    return 0;
}
static uint32_t take_nothing(struct store *s, const float *grad, size_t k) {
    (void)s, (void)grad, (void)k;
    return UINT32_MAX;
}
static uint32_t take_large(struct store *s, const float *grad, size_t k) {
    (void)s, (void)grad, (void)k;
    return magnitude_key(1);
}

/* The real guess, and wrong ones of each kind: the result must not depend on it. */
static void check_with_all_guesses(struct fixture *f, size_t k, const char *what) {
    char text[64];
    uint32_t (*real)(struct store *, const float *, size_t) = f->ops.guess_key;
    uint32_t (*guesses[])(struct store *, const float *, size_t) = {real, take_all, take_nothing, take_large};
    for (size_t g = 0; g < 4; g++) {
        snprintf(text, sizeof text, "guess %zu, %s", g, what);
        f->ops.guess_key = guesses[g];
        check_run(f, k, text);
        if (k > 2) check_run(f, k / 2, text); /* less than k_max */
    }
    f->ops.guess_key = real;
}

static void large_body(const void *unused) {
    (void)unused;
    const size_t sizes[] = {4097, 8192, 20011};
    char text[48];
    for (size_t size = test_device_is_host() ? 0 : 2; size < 3; size++) {
        size_t n = sizes[size], ks[] = {1, n / 1000 + 1, n / 50, n / 4, n - 1, n};
        struct fixture f;
        fixture_open(&f, &selector_exact, n, 1);
        for (enum pattern p = 0; p < PATTERNS; p++) {
            enum pattern q = (size + p) % 3 ? SIGNED_ZEROS : p == WIDE ? NORMAL : p;
            name_of(text, "large", p, q);
            pattern_fill(p, f.residual, n, 3);
            pattern_fill(q, f.grad, n, 4);
            rank_sum(&f);
            for (size_t i = 0; i < sizeof ks / sizeof ks[0]; i++) {
                fixture_select(&f, &selector_exact, ks[i]);
                check_with_all_guesses(&f, ks[i], text);
            }
        }
        fixture_close(&f);
    }
}

/* So many that a GPU looks for the k-th key, and cuts, with all its multiprocessors (ONE_BLOCK_MOST): among the
 * candidates of a guess, and among all where none is made. */
static void huge_body(const void *unused) {
    (void)unused;
    const size_t n = 150001, ks[] = {100, 32000, n / 2 + 5, n - 1};
    const enum pattern patterns[] = {NORMAL, FEW_VALUES, ALL_EQUAL, RAMP_DOWN, WIDE};
    char text[48];
    for (size_t p = 0; p < sizeof patterns / sizeof patterns[0]; p++) {
        struct fixture f;
        fixture_open(&f, &selector_exact, n, 1);
        pattern_fill(patterns[p], f.residual, n, 7);
        pattern_fill(SIGNED_ZEROS, f.grad, n, 8);
        rank_sum(&f);
        name_of(text, "huge", patterns[p], SIGNED_ZEROS);
        for (size_t i = 0; i < sizeof ks / sizeof ks[0]; i++) {
            fixture_select(&f, &selector_exact, ks[i]);
            check_run(&f, ks[i], text);
        }
        fixture_close(&f);
    }
}

/* Many random cases in steps, as in training: what is selected is zeroed, the rest is the next residual. */
static void fuzz_body(const void *unused) {
    (void)unused;
    struct rng r = rng_open(20, RNG_TEST, 0);
    for (int round = 0; round < (test_device_is_host() ? 60 : 12); round++) {
        size_t n = 1 + rng_below(&r, round % 6 ? 3000 : 40000), k_max = 1 + rng_below(&r, (uint32_t)n);
        struct fixture f;
        fixture_open(&f, &selector_exact, n, k_max);
        pattern_fill((enum pattern)rng_below(&r, WIDE), f.residual, n, (uint64_t)round);
        for (int step = 0; step < 4; step++) {
            pattern_fill((enum pattern)rng_below(&r, WIDE), f.grad, n, (uint64_t)step);
            rank_sum(&f);
            check_run(&f, 1 + rng_below(&r, (uint32_t)k_max), "fuzz");
            f.ops.zero_at(&f.store, f.out.idx, f.out.nnz);
            f.ops.read(&f.store, 0, n, f.residual);
        }
        fixture_close(&f);
    }
}

static void check_bad(struct fixture *f, size_t k, size_t wanted) {
    size_t bad = 12345;
    CHECK(!run_from_residual(f, k, &bad), "n %zu k %zu: not noticed at %zu", f->n, k, wanted);
    CHECK(bad == wanted, "n %zu k %zu: %zu instead of %zu", f->n, k, bad, wanted);
}

static void not_finite_body(const void *unused) {
    (void)unused;
    const size_t sizes[] = {1, 15, 16, 17, 1000, 30000};
    const float kinds[] = {INFINITY, -INFINITY, NAN, -NAN};
    for (size_t size = 0; size < sizeof sizes / sizeof sizes[0]; size += test_device_is_host() ? 1 : 5) {
        size_t n = sizes[size], k = n / 100 + 1;
        struct fixture f;
        fixture_open(&f, &selector_exact, n, k);
        uint32_t (*guesses[])(struct store *, const float *, size_t) = {f.ops.guess_key, take_all, take_nothing};
        for (size_t g = 0; g < 3; g++) {
            f.ops.guess_key = guesses[g];
            for (size_t kind = 0; kind < 4; kind++)
                for (size_t at = 0; at < n; at += n / 7 + 1) {
                    pattern_fill(NORMAL, f.residual, n, 1);
                    pattern_fill(ALL_ZERO, f.grad, n, 1);
                    f.grad[at] = kinds[kind];
                    if (at + 1 < n) f.residual[n - 1] = NAN; /* a larger key behind it */
                    check_bad(&f, k, at);
                }
            for (size_t i = 0; i < n; i++) f.residual[i] = f.grad[i] = 3e38f; /* the sum overflows everywhere */
            check_bad(&f, k, 0);
            for (size_t i = 0; i < n; i++) f.residual[i] = i ? NAN : INFINITY;
            check_bad(&f, k, 0);
            pattern_fill(ALL_EQUAL, f.residual, n, 1); /* ties everywhere, and one infinity at the end */
            pattern_fill(ALL_ZERO, f.grad, n, 1);
            f.residual[n - 1] = INFINITY;
            check_bad(&f, k, n - 1);
        }
        fixture_close(&f);
    }
}

IN_EVERY_SET(exact_small, small_body, NULL)
IN_EVERY_SET(exact_large, large_body, NULL)
IN_EVERY_SET(exact_huge, huge_body, NULL)
IN_EVERY_SET(exact_fuzz, fuzz_body, NULL)
IN_EVERY_SET(not_finite, not_finite_body, NULL)

/* All are equal but a few larger ones, at the places where the list of candidates begins and ends. */
static void ties_body(const void *unused) {
    (void)unused;
    const size_t n = 20000, k = 6, cap = selector_capacity(&selector_exact, n, k);
    const size_t places[] = {0, k, cap - 2, cap - 1, cap, cap + 1, n - 1};
    struct fixture f;
    CHECK(cap < n - 2, "more ties than there is room for");
    fixture_open(&f, &selector_exact, n, k);
    pattern_fill(ALL_ZERO, f.grad, n, 1);
    for (unsigned chosen = 0; chosen < 1u << 7; chosen += test_device_is_host() ? 1 : 9) {
        pattern_fill(EQUAL_SIGNS, f.residual, n, chosen);
        for (size_t i = 0; i < 7; i++)
            if (chosen >> i & 1) f.residual[places[i]] = i % 2 ? -2.0f : 3.0f;
        rank_sum(&f);
        for (size_t fewer = 1; fewer <= k; fewer += 2) check_run(&f, fewer, "ties");
        check_run(&f, k, "ties");
    }
    fixture_close(&f);
}

static void ties(void **state) {
    (void)state;
    assert_int_equal(status_of(ties_body, NULL, true), 0);
}

/* The guess is only about time; that it is a good one where data is harmless can be counted. */
static void guess_is_useful_body(const void *unused) {
    (void)unused;
    const size_t n = 300000, ks[] = {1, 300, 6000, 75000};
    const enum pattern patterns[] = {NORMAL, CLUSTER, PERIOD_16, RAMP_UP, RAMP_DOWN};
    for (size_t i = 0; i < 4; i++)
        for (size_t p = 0; p < 5; p++) {
            struct fixture f;
            fixture_open(&f, &selector_exact, n, ks[i]);
            pattern_fill(patterns[p], f.residual, n, i);
            pattern_fill(NORMAL, f.grad, n, i + 100);
            f.ops.write(&f.store, 0, n, f.residual);
            device_fill(f.device_grad, f.grad, n);
            uint32_t key = f.ops.guess_key(&f.store, f.device_grad, ks[i]);
            f.ops.accumulate(&f.store, f.device_grad);
            CHECK(f.ops.guess_key(&f.store, NULL, ks[i]) == key, "without a gradient, of the same sum");
            size_t count = f.ops.select(&f.store, key, &f.out);
            CHECK(count >= ks[i] && count <= f.out.cap, "pattern %d k %zu: %zu candidates, room for %zu",
                  (int)patterns[p], ks[i], count, f.out.cap);
            fixture_close(&f);
        }
}

/* Where the sample no longer grows with n. */
static void guess_in_a_large_store(const void *unused) {
    (void)unused;
    const size_t n = 2200000, k = 2000;
    struct fixture f;
    fixture_open(&f, &selector_exact, n, k);
    for (size_t i = 0; i < n; i++) f.grad[i] = (float)((i * 2654435761u & 0xffffff) + 1); /* scrambled, 1 to 2^24 */
    device_fill(f.device_grad, f.grad, n);
    uint32_t key = f.ops.guess_key(&f.store, f.device_grad, k);
    size_t count = f.ops.accumulate_select(&f.store, f.device_grad, key, &f.out);
    CHECK(count >= k && count <= f.out.cap, "%zu candidates, room for %zu", count, f.out.cap);
    fixture_close(&f);
}

static void guess_is_useful(void **state) {
    (void)state;
    assert_int_equal(status_of(guess_is_useful_body, NULL, true), 0);
    assert_int_equal(status_of(guess_in_a_large_store, NULL, true), 0);
}

static void kth_key_body(const void *unused) {
    (void)unused;
    for (enum pattern p = 0; p < PATTERNS; p++)
        for (size_t n = 1; n < 2000; n = n * 3 + 1) {
            struct fixture f;
            fixture_open(&f, &selector_exact, n, n);
            pattern_fill(p, f.residual, n, 7), pattern_fill(ALL_ZERO, f.grad, n, 7);
            f.ops.write(&f.store, 0, n, f.residual);
            rank_sum(&f);
            for (size_t k = 1; k <= n; k += n / 20 + 1)
                CHECK(f.ops.kth_key(&f.store, k) == f.pick[k - 1].key, "pattern %d n %zu k %zu", (int)p, n, k);
            fixture_close(&f);
        }
}

static void kth_key(void **state) {
    (void)state;
    assert_int_equal(status_of(kth_key_body, NULL, true), 0);
}

/* -- what must end the program, cleanly ------------------------------------------------------------------- */

static void open_selector(const void *k_max) {
    struct fixture f;
    fixture_open(&f, &selector_exact, 100, *(const size_t *)k_max);
    fixture_close(&f);
}

static void run_selector(const void *k) {
    struct fixture f;
    size_t bad;
    fixture_open(&f, &selector_exact, 100, 10);
    memset(f.grad, 0, 100 * sizeof *f.grad);
    device_fill(f.device_grad, f.grad, 100);
    selector_run(f.selector, f.device_grad, *(const size_t *)k, &f.out, &bad);
    fixture_close(&f);
}

static void run_without_room(const void *unused) {
    (void)unused;
    struct fixture f;
    size_t bad;
    fixture_open(&f, &selector_exact, 100, 10);
    memset(f.grad, 0, 100 * sizeof *f.grad);
    device_fill(f.device_grad, f.grad, 100);
    f.out.cap = 9;
    selector_run(f.selector, f.device_grad, 10, &f.out, &bad);
}

static void k_out_of_range_is_refused(void **state) {
    (void)state;
    const size_t ks[] = {0, 1, 10, 11, 100, 101};
    const int opening[] = {EXIT_SYSTEM, 0, 0, 0, 0, EXIT_SYSTEM};
    const int running[] = {EXIT_SYSTEM, 0, 0, EXIT_SYSTEM, EXIT_SYSTEM, EXIT_SYSTEM};
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(status_of(open_selector, &ks[i], false), opening[i]);
        assert_int_equal(status_of(run_selector, &ks[i], false), running[i]);
    }
    assert_int_equal(status_of(run_without_room, NULL, false), EXIT_SYSTEM);
}

static void open_both(const void *fail_at) {
    struct store s;
    mem_fail_at(*(const long *)fail_at);
    store_open(&s, 10000, test_device());
    struct selector *selector = selector_open(&selector_exact, &s, 10, NULL);
    mem_fail_at(0);
    selector_close(selector);
    store_close(&s);
    _exit(77); /* no allocation was left to fail */
}

static void memory_that_runs_out(void **state) {
    (void)state;
    long nth = 1;
    for (;; nth++) {
        int status = status_of(open_both, &nth, false);
        if (status == 77) break;
        assert_int_equal(status, EXIT_SYSTEM);
        assert_true(nth < 50);
    }
    assert_true(nth > 4);
}

static void tables(void **state) {
    (void)state;
    size_t rows = 0;
    for (; selectors[rows]; rows++) {
        assert_non_null(selectors[rows]->summary);
        assert_non_null(selectors[rows]->paper);
        for (size_t other = 0; other < rows; other++)
            assert_string_not_equal(selectors[rows]->name, selectors[other]->name);
        assert_true(selector_capacity(selectors[rows], 100, 7) >= 7);
        assert_int_equal(selector_capacity(selectors[rows], UINT32_MAX, UINT32_MAX), UINT32_MAX);
    }
    assert_true(rows > 0);
    assert_non_null(stores[0]);
}

int main(void) {
    test_device_in_children();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables),
        cmocka_unit_test(exact_small),
        cmocka_unit_test(exact_large),
        cmocka_unit_test(exact_huge),
        cmocka_unit_test(exact_fuzz),
        cmocka_unit_test(not_finite),
        cmocka_unit_test(guess_is_useful),
        cmocka_unit_test(ties),
        cmocka_unit_test(kth_key),

        cmocka_unit_test(k_out_of_range_is_refused),

        cmocka_unit_test(memory_that_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
