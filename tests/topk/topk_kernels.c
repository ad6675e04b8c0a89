/* topk_kernels.c: every kernel set that this processor runs against the plain definition, bit for bit. */
#include <math.h>

#include "tests/lib/topk_reference.h"

enum { GUARD = 16, N_MAX = 3000 };

struct lists {
    uint32_t idx[N_MAX + 2 * GUARD];
    float val[N_MAX + 2 * GUARD];
};

/* What is stored of `count` entries when `cap` places were given: all while 16 places are left. */
static size_t stored(size_t count, size_t cap) {
    size_t most = cap >= 16 ? cap - 15 : 0;
    return count < most ? count : most;
}

static size_t naive_compact(const float *x, size_t n, uint32_t base, uint32_t key, struct lists *out) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        if (magnitude_key(x[i]) < key) continue;
        out->idx[count] = base + (uint32_t)i;
        out->val[count++] = x[i];
    }
    return count;
}

static void compare(const char *set, size_t n, uint32_t key, size_t cap, size_t wanted_count, size_t count,
                    const struct lists *wanted, const struct lists *got) {
    size_t in_list = stored(wanted_count, cap);
    if (count != wanted_count || memcmp(got->idx, wanted->idx, in_list * sizeof got->idx[0]) != 0 ||
        memcmp(got->val, wanted->val, in_list * sizeof got->val[0]) != 0)
        fail_msg("%s kernels: n %zu key %08x cap %zu: %zu entries, %zu wanted, or other ones", set, n, key, cap, count,
                 wanted_count);
    for (size_t i = cap; i < cap + GUARD; i++)
        if (got->idx[i] != 0xabababab) fail_msg("%s kernels: n %zu cap %zu: wrote at %zu", set, n, cap, i);
}

/* acc and grad at an odd address, as slices of an arena are. */
static void one_case(const struct topk_kernels *set, enum pattern p, size_t n, uint32_t base, uint32_t key,
                     size_t cap) {
    static float acc[N_MAX + GUARD], grad[N_MAX + GUARD], sum[N_MAX + GUARD], plain[N_MAX + GUARD];
    static struct lists wanted, got;
    pattern_fill(p, acc + 1, n, 1);
    pattern_fill(NORMAL, grad + 3, n, 2);
    for (size_t i = 0; i < n; i++) sum[i] = acc[1 + i] + grad[3 + i];
    size_t count = naive_compact(sum, n, base, key, &wanted);

    memcpy(plain, acc, sizeof plain);
    plain[n + 1] = 42;
    set->accumulate(plain + 1, grad + 3, n);
    assert_memory_equal(plain + 1, sum, n * sizeof *sum);
    assert_true(plain[n + 1] == 42);

    memset(&got, 0xab, sizeof got);
    compare(set->name, n, key, cap, count, set->compact(plain + 1, n, base, key, got.idx, got.val, cap), &wanted, &got);
    assert_memory_equal(plain + 1, sum, n * sizeof *sum);

    memset(&got, 0xab, sizeof got);
    acc[n + 1] = 42;
    compare(set->name, n, key, cap, count,
            set->accumulate_compact(acc + 1, grad + 3, n, base, key, got.idx, got.val, cap), &wanted, &got);
    assert_memory_equal(acc + 1, sum, n * sizeof *sum);
    assert_true(acc[n + 1] == 42);
}

static uint32_t key_of(float x) {
    return magnitude_key(x);
}

static void small_sizes(void **state) {
    (void)state;
    const uint32_t keys[] = {0, 1, key_of(0.5f), key_of(2), KEY_INFINITE, 0x7fffffffu, 0x80000000u, UINT32_MAX};
    for (const struct topk_kernels *const *set = topk_kernels_all(); *set; set++)
        for (size_t n = 0; n <= 100; n++)
            for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++)
                for (enum pattern p = 0; p < PATTERNS; p++) one_case(*set, p, n, 0, keys[k], n + 16);
}

static void lists_that_are_too_short(void **state) {
    (void)state;
    for (const struct topk_kernels *const *set = topk_kernels_all(); *set; set++)
        for (size_t cap = 0; cap < 600; cap += cap < 40 ? 1 : 37) {
            one_case(*set, NORMAL, 500, 0, 0, cap);
            one_case(*set, NORMAL, 501, 0, key_of(1), cap);
            one_case(*set, NORMAL, N_MAX, 0, key_of(0.1f), cap);
        }
}

static void indices_near_the_end_of_32_bits(void **state) {
    (void)state;
    for (const struct topk_kernels *const *set = topk_kernels_all(); *set; set++)
        for (uint32_t n = 1; n < 200; n++) {
            one_case(*set, NORMAL, n, UINT32_MAX - n, 0, n + 16);      /* last index 2^32 - 2: the largest there is */
            one_case(*set, NORMAL, n, 0x80000000u - n / 2, 0, n + 16); /* across the sign bit */
        }
}

static void infinities_and_nan_pass_every_threshold(void **state) {
    (void)state;
    for (const struct topk_kernels *const *set = topk_kernels_all(); *set; set++) {
        float x[40] = {0};
        x[3] = HUGE_VALF;
        x[20] = -HUGE_VALF;
        x[39] = -NAN;
        uint32_t idx[64];
        float val[64];
        assert_int_equal((*set)->compact(x, 40, 0, KEY_INFINITE, idx, val, 64), 3);
        assert_int_equal(idx[0], 3);
        assert_int_equal(idx[1], 20);
        assert_int_equal(idx[2], 39);
    }
}

static void filters(void **state) {
    (void)state;
    static struct lists wanted, got;
    const uint32_t thresholds[] = {0, key_of(0.25f), key_of(1), KEY_INFINITE, UINT32_MAX};
    for (const struct topk_kernels *const *set = topk_kernels_all(); *set; set++)
        for (size_t n = 0; n < 120; n++)
            for (size_t t = 0; t < 5; t++)
                for (enum pattern p = 0; p < PATTERNS; p++) {
                    pattern_fill(p, got.val, n, n);
                    for (size_t i = 0; i < n; i++) got.idx[i] = (uint32_t)i;
                    got.idx[n] = 0xabababab;
                    size_t count = naive_compact(got.val, n, 0, thresholds[t], &wanted);
                    assert_int_equal((*set)->filter(got.idx, got.val, n, thresholds[t]), count);
                    assert_memory_equal(got.idx, wanted.idx, count * sizeof *got.idx);
                    assert_memory_equal(got.val, wanted.val, count * sizeof *got.val);
                    assert_int_equal(got.idx[n], 0xabababab);
                }
}

static void key_filters(void **state) {
    (void)state;
    static float x[120];
    static uint32_t keys[121], wanted[120];
    const uint32_t lows[] = {0, key_of(0.25f), key_of(1), KEY_INFINITE}, widths[] = {0, 1, 0x00400000, 0x7fffffff};
    for (const struct topk_kernels *const *set = topk_kernels_all(); *set; set++)
        for (size_t n = 0; n < 120; n++)
            for (size_t t = 0; t < 16; t++)
                for (enum pattern p = 0; p < PATTERNS; p++) {
                    uint32_t low = lows[t / 4], width = widths[t % 4];
                    size_t count = 0;
                    pattern_fill(p, x, n, n);
                    for (size_t i = 0; i < n; i++) {
                        keys[i] = magnitude_key(x[i]);
                        if (keys[i] >= low && keys[i] < (uint64_t)low + width) wanted[count++] = keys[i];
                    }
                    keys[n] = 0xabababab;
                    assert_int_equal((*set)->filter_keys(keys, n, low, width), count);
                    assert_memory_equal(keys, wanted, count * sizeof *keys);
                    assert_int_equal(keys[n], 0xabababab);
                }
}

/* Lane by lane, as kernels.h says. */
static void naive_moments(const float *x, size_t n, uint32_t key, struct moment_lanes *m) {
    memset(m, 0, sizeof *m);
    for (size_t i = 0; i < n; i++) {
        if (magnitude_key(x[i]) < key) continue;
        m->sum[i % 16] += (double)x[i];
        m->sum_abs[i % 16] += fabs((double)x[i]);
        m->sum_square[i % 16] += (double)x[i] * (double)x[i];
        m->count++;
        if (magnitude_key(x[i]) > m->max_key) m->max_key = magnitude_key(x[i]);
    }
}

static void same_moments(const char *set, size_t n, uint32_t key, const struct moment_lanes *wanted,
                         const struct moment_lanes *got) {
    if (got->count != wanted->count || got->max_key != wanted->max_key ||
        memcmp(got->sum, wanted->sum, sizeof got->sum) != 0 ||
        memcmp(got->sum_abs, wanted->sum_abs, sizeof got->sum_abs) != 0 ||
        memcmp(got->sum_square, wanted->sum_square, sizeof got->sum_square) != 0)
        fail_msg("%s kernels: moments of n %zu key %08x", set, n, key);
}

static void moments_case(const struct topk_kernels *set, enum pattern p, size_t n, uint32_t key, size_t cap) {
    static float acc[N_MAX + GUARD], grad[N_MAX + GUARD], sum[N_MAX + GUARD];
    static struct lists wanted, got;
    struct moment_lanes naive, lanes;
    pattern_fill(p, acc + 1, n, 1);
    pattern_fill(NORMAL, grad + 3, n, 2);
    for (size_t i = 0; i < n; i++) sum[i] = acc[1 + i] + grad[3 + i];
    size_t count = naive_compact(sum, n, 7, key, &wanted);
    acc[n + 1] = 42;
    memset(&got, 0xab, sizeof got);
    compare(set->name, n, key, cap, count,
            set->accumulate_compact_moments(acc + 1, grad + 3, n, 7, key, got.idx, got.val, cap, &lanes), &wanted,
            &got);
    assert_memory_equal(acc + 1, sum, n * sizeof *sum);
    assert_true(acc[n + 1] == 42);
    naive_moments(sum, n, 0, &naive);
    same_moments(set->name, n, key, &naive, &lanes);
    naive_moments(sum, n, key, &naive);
    set->moments(acc + 1, n, key, &lanes);
    same_moments(set->name, n, key, &naive, &lanes);
    assert_int_equal(set->count(acc + 1, n, key), count);
}

static void moments_and_counts(void **state) {
    (void)state;
    const uint32_t keys[] = {0, 1, key_of(0.5f), key_of(2), KEY_INFINITE, 0x7fffffffu, 0x80000000u, UINT32_MAX};
    for (const struct topk_kernels *const *set = topk_kernels_all(); *set; set++)
        for (enum pattern p = 0; p < PATTERNS; p++) {
            for (size_t n = 0; n <= 100; n++)
                for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) moments_case(*set, p, n, keys[k], n + 16);
            for (size_t cap = 0; cap < 400; cap += 57) moments_case(*set, p, N_MAX - cap, key_of(0.7f), cap);
        }
}

/* Where something is not finite, count and max_key still hold. */
static void moments_of_what_is_not_finite(void **state) {
    (void)state;
    const float kinds[] = {INFINITY, -INFINITY, NAN, -NAN};
    for (const struct topk_kernels *const *set = topk_kernels_all(); *set; set++)
        for (size_t n = 1; n < 70; n++)
            for (size_t at = 0; at < n; at++) {
                float x[70] = {0}, zero[70] = {0}, val[90];
                uint32_t idx[90];
                struct moment_lanes lanes;
                x[at] = kinds[at % 4];
                (*set)->moments(x, n, 0, &lanes);
                assert_true(lanes.count == n && lanes.max_key == magnitude_key(x[at]));
                (*set)->moments(x, n, 1, &lanes);
                assert_true(lanes.count == 1 && lanes.max_key == magnitude_key(x[at]));
                size_t count = (*set)->accumulate_compact_moments(x, zero, n, 0, KEY_INFINITE, idx, val, 90, &lanes);
                assert_true(count == 1 && idx[0] == at && lanes.count == n && lanes.max_key >= KEY_INFINITE);
            }
}

static void print_choice(const void *wanted) {
    setenv("SPARSETRAIN_SIMD", wanted, 1);
    CHECK(strcmp(topk_kernels()->name, wanted) == 0, "%s", topk_kernels()->name);
}

static void unknown_name(const void *unused) {
    (void)unused;
    setenv("SPARSETRAIN_SIMD", "mmx", 1);
    CHECK(strcmp(topk_kernels()->name, "generic") == 0, "%s", topk_kernels()->name);
}

/* An empty name is none: the fastest set. */
static void no_name(const void *unused) {
    (void)unused;
    size_t last = 0;
    while (topk_kernels_all()[last + 1]) last++;
    setenv("SPARSETRAIN_SIMD", "", 1);
    CHECK(topk_kernels() == topk_kernels_all()[last], "%s", topk_kernels()->name);
}

static void choice_by_name(void **state) {
    (void)state;
    const struct topk_kernels *const *all = topk_kernels_all();
    assert_string_equal(all[0]->name, "generic");
    for (size_t i = 0; all[i]; i++) assert_int_equal(status_of(print_choice, all[i]->name, true), 0);
    assert_int_equal(status_of(unknown_name, NULL, false), 0);
    assert_int_equal(status_of(no_name, NULL, true), 0);
}

/* Both vector sets count bits, so neither runs where a processor, or what pretends to be one, lacks that. */
static void sets_of_processors(void **state) {
    (void)state;
#if !defined(__x86_64__)
    skip();
#endif
    static const struct {
        bool popcnt, avx2, avx512;
        const char *names[KERNEL_SETS + 1];
    } cases[] = {{0, 0, 0, {"generic"}},           {0, 1, 1, {"generic"}},
                 {1, 0, 0, {"generic"}},           {1, 1, 0, {"generic", "avx2"}},
                 {1, 0, 1, {"generic", "avx512"}}, {1, 1, 1, {"generic", "avx2", "avx512"}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct topk_kernels *sets[KERNEL_SETS + 1] = {0};
        topk_kernels_with(cases[i].popcnt, cases[i].avx2, cases[i].avx512, sets);
        for (size_t j = 0; j <= KERNEL_SETS; j++) {
            assert_true(!sets[j] == !cases[i].names[j]);
            if (sets[j]) assert_string_equal(sets[j]->name, cases[i].names[j]);
        }
    }
}

int main(void) {
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(choice_by_name),
        cmocka_unit_test(sets_of_processors),
        cmocka_unit_test(small_sizes),
        cmocka_unit_test(lists_that_are_too_short),
        cmocka_unit_test(indices_near_the_end_of_32_bits),
        cmocka_unit_test(infinities_and_nan_pass_every_threshold),
        cmocka_unit_test(moments_and_counts),
        cmocka_unit_test(moments_of_what_is_not_finite),
        cmocka_unit_test(filters),
        cmocka_unit_test(key_filters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
