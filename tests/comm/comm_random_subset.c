/* comm_random_subset.c: random sets of indices, without MPI: against Floyd's algorithm over an array of marks; each
 * entry as often as k/n says, and every set as often as every other. All numbers of the generator are given, so what
 * passes once passes always. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "comm/parts/random_subset.h"

enum { N_MAX = 3000 };

static uint32_t drawn[N_MAX];

static void draw(struct random_subset *d, uint64_t seed, uint64_t step, size_t k) {
    struct rng rng = rng_open(seed, RNG_SUBSET, step);
    memset(drawn, 0xff, sizeof drawn);
    random_subset_draw(d, &rng, k, drawn);
}

/* Floyd's: d of n, or the other n - d of them. */
static void floyds(bool *in, size_t n, size_t k, uint64_t seed, uint64_t step) {
    struct rng rng = rng_open(seed, RNG_SUBSET, step);
    bool out = 2 * k > n;
    size_t d = out ? n - k : k;
    for (size_t i = 0; i < n; i++) in[i] = out;
    for (size_t j = n - d; j < n; j++) {
        uint32_t t = rng_below(&rng, (uint32_t)j + 1);
        size_t at = in[t] != out ? j : t;
        in[at] = !out;
    }
}

static void is_floyds(size_t n, size_t k, uint64_t seed, uint64_t step) {
    static bool in[N_MAX];
    size_t at = 0;
    floyds(in, n, k, seed, step);
    for (size_t i = 0; i < n; i++)
        if (in[i] && (at == k || drawn[at++] != i)) fail_msg("n = %zu, k = %zu: not %zu", n, k, i);
    assert_int_equal(at, k);
    if (k < N_MAX) assert_true(drawn[k] == UINT32_MAX); /* nothing was written behind them */
}

/* Every n and k of few, of many those around n/2 and the ends. */
static void against_floyd(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 31, 64, 100, 1009, N_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t n = sizes[i];
        struct random_subset d;
        random_subset_open(&d, n, n);
        for (size_t k = 1; k <= n; k++) {
            bool ends = k < 20 || k + 20 > n || (2 * k + 10 > n && 2 * k < n + 10);
            for (uint64_t step = 0; step < (n <= 9 ? 50 : 5); step++) {
                if (n > 100 && !ends && k % 97 != 0) continue;
                draw(&d, 3, step, k);
                is_floyds(n, k, 3, step);
            }
        }
        random_subset_close(&d);
    }
}

/* With a k_max of its own: what is opened for it is enough. (The memory's end is guarded where the sanitizers run.) */
static void room_for_the_largest(void **state) {
    (void)state;
    for (size_t n = 1; n <= 40; n++)
        for (size_t k_max = 1; k_max <= n; k_max++) {
            struct random_subset d;
            random_subset_open(&d, n, k_max);
            for (size_t k = 1; k <= k_max; k++) {
                draw(&d, 8, n, k);
                is_floyds(n, k, 8, n);
            }
            random_subset_close(&d);
        }
}

/* Opened and drawn from at the largest n there is: no overflow of 32 bits. */
static void the_largest_n(void **state) {
    (void)state;
    struct random_subset d;
    const size_t n = UINT32_MAX, k = 2000;
    uint64_t sum = 0;
    random_subset_open(&d, n, k);
    for (uint64_t step = 0; step < 50; step++) {
        draw(&d, 1, step, k);
        for (size_t i = 1; i < k; i++) assert_true(drawn[i] > drawn[i - 1]);
        assert_true(drawn[k - 1] < n);
        for (size_t i = 0; i < k; i++) sum += drawn[i];
    }
    /* the mean of 1e5 uniform numbers: n/2, with a deviation of n / sqrt(12e5) */
    assert_true(fabs((double)sum / (double)(50 * k) / (double)n - 0.5) < 5 / sqrt(12e5));
    random_subset_close(&d);
}

/* Each entry is drawn in T steps T k/n times, with a variance of T p (1 - p): of 1009 entries none is off by 5 standard
 * deviations, and the sum of squares over all is what it must be (n - 1 of them are free: mean n - 1, variance about
 * 2n). */
static void every_entry_with_the_same_probability(void **state) {
    (void)state;
    enum { N = 1009, STEPS = 4000 };
    static const size_t ks[] = {1, 37, 300, 504, 505, 700, 1008};
    for (size_t i = 0; i < sizeof ks / sizeof *ks; i++) {
        int count[N] = {0};
        double p = (double)ks[i] / N, mean = STEPS * p, variance = mean * (1 - p), squares = 0;
        struct random_subset d;
        random_subset_open(&d, N, ks[i]);
        for (uint64_t step = 0; step < STEPS; step++) {
            draw(&d, 1, step, ks[i]);
            for (size_t j = 0; j < ks[i]; j++) count[drawn[j]]++;
        }
        for (int j = 0; j < N; j++) {
            double off = count[j] - mean;
            if (off * off > 25 * variance + 16)
                fail_msg("k = %zu: entry %d %d times, not %g", ks[i], j, count[j], mean);
            squares += off * off / variance;
        }
        assert_true(fabs(squares * (N - 1) / N - (N - 1)) < 5 * sqrt(2 * N));
        random_subset_close(&d);
    }
}

/* Of 7 entries 3 or 4: each of the 35 sets as often as the others (chi-squared with 34 degrees of freedom: mean 34,
 * variance 68). */
static void every_set_with_the_same_probability(void **state) {
    (void)state;
    enum { N = 7, SETS = 35, EACH = 1000 };
    for (size_t k = 3; k <= 4; k++) {
        int count[1 << N] = {0}, sets = 0;
        double squares = 0;
        struct random_subset d;
        random_subset_open(&d, N, k);
        for (uint64_t step = 0; step < SETS * EACH; step++) {
            int set = 0;
            draw(&d, 2, step, k);
            for (size_t j = 0; j < k; j++) set |= 1 << drawn[j];
            count[set]++;
        }
        for (int set = 0; set < 1 << N; set++) {
            sets += count[set] > 0;
            if (count[set] > 0) squares += (count[set] - EACH) * (count[set] - EACH) / (double)EACH;
        }
        assert_int_equal(sets, SETS);
        assert_true(fabs(squares - 34) < 5 * sqrt(68));
        random_subset_close(&d);
    }
}

/* Another seed and another step draw other sets; the same draw the same. */
static void seeds_and_steps(void **state) {
    (void)state;
    enum { K = 50 };
    uint32_t first[K];
    struct random_subset d;
    random_subset_open(&d, 1000, K);
    draw(&d, 1, 1, K);
    memcpy(first, drawn, sizeof first);
    draw(&d, 1, 2, K);
    assert_memory_not_equal(first, drawn, sizeof first);
    draw(&d, 2, 1, K);
    assert_memory_not_equal(first, drawn, sizeof first);
    draw(&d, 1, 1, K);
    assert_memory_equal(first, drawn, sizeof first);
    random_subset_close(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(against_floyd),
        cmocka_unit_test(room_for_the_largest),
        cmocka_unit_test(the_largest_n),
        cmocka_unit_test(every_entry_with_the_same_probability),
        cmocka_unit_test(every_set_with_the_same_probability),
        cmocka_unit_test(seeds_and_steps),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("comm_random_subset", tests, NULL, NULL);
}
