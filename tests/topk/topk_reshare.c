/* Residuals for another number of ranks: sums and means over the ranks are kept, from any P to any other and on to a
 * third. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "topk/reshare.h"

static const int sizes[] = {1, 2, 3, 4, 5, 7, 8, 16};
enum { SIZES = 8, P_MAX = 16, N = 500 };
static const enum reshare rules[] = {RESHARE_MEAN, RESHARE_SUM};

/* The residuals of all ranks, [P_MAX][N]. */
typedef float residuals[P_MAX][N];

static void reshare_all(enum reshare how, int P, residuals from, int Q, residuals to) {
    double *sum = mem_alloc(N, sizeof *sum, "a sum");
    for (int s = 0; s < Q; s++) {
        memset(sum, 0, N * sizeof *sum);
        for (int r = 0; r < P; r++) {
            const int64_t weight = reshare_weight(how, P, Q, s, r);
            if (weight > 0) reshare_add(sum, from[r], N, weight);
        }
        reshare_take(to[s], sum, N, reshare_divisor(how, P));
    }
    mem_free(sum);
}

/* Whole numbers up to a million times `unit`, both signs, a third of them 0. */
static void draw(int P, int unit, residuals v) {
    struct rng r = rng_open(3, RNG_SHUFFLE, (uint64_t)P);
    for (int p = 0; p < P; p++)
        for (int i = 0; i < N; i++)
            v[p][i] = rng_below(&r, 3) == 0 ? 0 : (float)(((int)rng_below(&r, 4001) - 2000) * unit);
}

/* By the definitions: shares of an interval that is cut into P pieces and into Q, counted in P Q parts. */
static int64_t naive_weight(enum reshare how, int P, int Q, int s, int r) {
    int64_t parts = 0;
    if (how == RESHARE_SUM) return r % Q == s;
    for (int i = 0; i < P * Q; i++) parts += i / P == s && i / Q == r;
    return parts;
}

static void weights(void **state) {
    (void)state;
    for (int P = 1; P <= 40; P++)
        for (int Q = 1; Q <= 40; Q++) {
            int64_t of_old[40] = {0};
            for (int s = 0; s < Q; s++) {
                int64_t of_new = 0;
                int with_any = 0;
                for (int r = 0; r < P; r++) {
                    const int64_t w = reshare_weight(RESHARE_MEAN, P, Q, s, r);
                    assert_true(w == naive_weight(RESHARE_MEAN, P, Q, s, r));
                    assert_true(reshare_weight(RESHARE_SUM, P, Q, s, r) == naive_weight(RESHARE_SUM, P, Q, s, r));
                    of_new += w;
                    of_old[r] += w;
                    with_any += w > 0;
                }
                assert_int_equal(of_new, P);
                assert_true(with_any <= (P + Q - 1) / Q + 1);
            }
            for (int r = 0; r < P; r++) assert_int_equal(of_old[r], Q);
        }
}

/* The sum over the ranks of each entry, exact for the numbers that are drawn here. */
static double sum_at(residuals v, int P, int i) {
    double sum = 0;
    for (int p = 0; p < P; p++) sum += (double)v[p][i];
    return sum;
}

static void check_kept(enum reshare how, int P, residuals from, int Q, residuals to) {
    for (int i = 0; i < N; i++) {
        const double before = sum_at(from, P, i), after = sum_at(to, Q, i);
        if (how == RESHARE_SUM ? after == before : P * after == Q * before) continue;
        fail_msg("entry %d from %d to %d ranks: %.17g became %.17g", i, P, Q, before, after);
    }
}

/* Whole numbers whose quotients are whole: not a bit of a sum or a mean is lost, from P to Q and on to R. */
static void exactly_kept(void **state) {
    static residuals a, b, c;
    (void)state;
    for (size_t h = 0; h < 2; h++)
        for (int i = 0; i < SIZES; i++)
            for (int j = 0; j < SIZES; j++)
                for (int k = 0; k < SIZES; k++) {
                    draw(sizes[i], rules[h] == RESHARE_MEAN ? sizes[i] * sizes[j] : 1, a);
                    reshare_all(rules[h], sizes[i], a, sizes[j], b);
                    check_kept(rules[h], sizes[i], a, sizes[j], b);
                    reshare_all(rules[h], sizes[j], b, sizes[k], c);
                    check_kept(rules[h], sizes[j], b, sizes[k], c);
                }
}

static void nothing_changes_at_the_same_size(void **state) {
    static residuals a, b;
    (void)state;
    for (size_t h = 0; h < 2; h++)
        for (int i = 0; i < SIZES; i++) {
            draw(sizes[i], 1, a);
            for (int p = 0; p < sizes[i]; p++)
                for (int n = 0; n < N; n++) a[p][n] /= 3; /* of all 24 bits */
            reshare_all(rules[h], sizes[i], a, sizes[i], b);
            for (int p = 0; p < sizes[i]; p++)
                for (int n = 0; n < N; n++) assert_true(a[p][n] == b[p][n]);
        }
}

/* Any numbers: each new one is rounded once, and so the sum is as far off as that makes it. */
static void rounded_once(void **state) {
    static residuals a, b;
    (void)state;
    for (size_t h = 0; h < 2; h++)
        for (int i = 0; i < SIZES; i++)
            for (int j = 0; j < SIZES; j++) {
                const int P = sizes[i], Q = sizes[j];
                const double factor = rules[h] == RESHARE_MEAN ? (double)Q / P : 1;
                draw(P, 1, a);
                for (int p = 0; p < P; p++)
                    for (int n = 0; n < N; n++) a[p][n] = (float)((double)a[p][n] * 1e-3 / (7 + p));
                reshare_all(rules[h], P, a, Q, b);
                for (int n = 0; n < N; n++) {
                    double room = 1e-15;
                    for (int q = 0; q < Q; q++) room += fabs((double)b[q][n]) * 0x1p-24;
                    assert_true(fabs(sum_at(b, Q, n) - factor * sum_at(a, P, n)) <= room);
                }
            }
}

/* What a new rank keeps is between the smallest and the largest of what the old ones kept. */
static void no_larger_than_before(void **state) {
    static residuals a, b;
    (void)state;
    for (int i = 0; i < SIZES; i++)
        for (int j = 0; j < SIZES; j++) {
            draw(sizes[i], 1, a);
            reshare_all(RESHARE_MEAN, sizes[i], a, sizes[j], b);
            for (int n = 0; n < N; n++) {
                float least = a[0][n], most = a[0][n];
                for (int p = 1; p < sizes[i]; p++) {
                    if (a[p][n] < least) least = a[p][n];
                    if (a[p][n] > most) most = a[p][n];
                }
                for (int q = 0; q < sizes[j]; q++) assert_true(b[q][n] >= least && b[q][n] <= most);
            }
        }
}

/* The examples of reshare.h. */
static void by_hand(void **state) {
    static residuals four = {{4}, {8}, {-2}, {6}}, two = {{4}, {8}};
    static residuals to;
    (void)state;
    reshare_all(RESHARE_MEAN, 4, four, 2, to);
    assert_true(to[0][0] == 6 && to[1][0] == 2);
    reshare_all(RESHARE_MEAN, 2, two, 4, to);
    assert_true(to[0][0] == 4 && to[1][0] == 4 && to[2][0] == 8 && to[3][0] == 8);
    reshare_all(RESHARE_MEAN, 2, two, 3, to);
    assert_true(to[0][0] == 4 && to[1][0] == 6 && to[2][0] == 8);
    reshare_all(RESHARE_SUM, 4, four, 3, to);
    assert_true(to[0][0] == 10 && to[1][0] == 8 && to[2][0] == -2);
    reshare_all(RESHARE_SUM, 2, two, 3, to);
    assert_true(to[0][0] == 4 && to[1][0] == 8 && to[2][0] == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights),
        cmocka_unit_test(exactly_kept),
        cmocka_unit_test(nothing_changes_at_the_same_size),
        cmocka_unit_test(rounded_once),
        cmocka_unit_test(no_larger_than_before),
        cmocka_unit_test(by_hand),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
