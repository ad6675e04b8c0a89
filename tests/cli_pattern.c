/* cli_pattern.c: the bench's gradients: the same whenever they are asked for, other ones for another step, rank or
 * seed, distributed as their names say; and every mistake in a name.
 * ranks: 1 3 */
#include "tests/mpi_harness.h"

#include <math.h>

#include "base/hash.h"
#include "cli/pattern.h"

enum { N = 200000 };
static float grad[N], other[N];

static struct pattern opened(struct comm *c, const char *text, uint64_t seed) {
    struct pattern p;
    struct err e = {0};
    if (!pattern_open(&p, c, text, seed, &e)) fail_msg("%s", e.text);
    return p;
}

static void fill(struct pattern *p, size_t step, size_t n, float *out) {
    struct err e = {0};
    assert_true(pattern_gradient(p, step, n, out, &e));
}

static void is_a_function_of_seed_rank_and_step(struct comm *c) {
    static const char *const names[] = {"uniform", "clustered"};
    for (int k = 0; k < 2; k++) {
        struct pattern p = opened(c, names[k], 1), again = opened(c, names[k], 1), seeded = opened(c, names[k], 2);
        fill(&p, 3, N, grad);
        fill(&p, 4, N, other);
        assert_true(memcmp(grad, other, sizeof grad) != 0);
        fill(&again, 3, N, other);
        assert_memory_equal(grad, other, sizeof grad);
        fill(&again, 3, 77, other);
        assert_memory_equal(grad, other, 77 * sizeof *grad);
        fill(&seeded, 3, N, other);
        assert_true(memcmp(grad, other, sizeof grad) != 0);
        uint64_t hash = hash64(0, grad, sizeof grad), all[8] = {0};
        comm_allgather(c, &hash, sizeof hash, all);
        for (int r = 0; r < c->size; r++) assert_true(r == c->rank || all[r] != hash);
        pattern_close(&p);
        pattern_close(&again);
        pattern_close(&seeded);
    }
}

/* Share of the numbers whose magnitude is above a limit. */
static double above(const float *x, size_t n, double limit) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) count += fabs((double)x[i]) > limit;
    return (double)count / (double)n;
}

/* The bounds are five deviations of the sample wide. */
static void uniform_is_normally_distributed(struct comm *c) {
    static const double limit[] = {0.125661, 0.67449, 1.644854, 2.575829, 3.290527},
                        share[] = {0.9, 0.5, 0.1, 0.01, 0.001};
    struct pattern p = opened(c, "uniform", 5);
    fill(&p, 0, N, grad);
    double sum = 0, square = 0;
    for (size_t i = 0; i < N; i++) {
        sum += (double)grad[i];
        square += (double)grad[i] * (double)grad[i];
    }
    assert_true(fabs(sum / N) < 5 / sqrt(N));
    assert_true(fabs(square / N - 1) < 5 * sqrt(2.0 / N));
    for (int i = 0; i < 5; i++)
        assert_true(fabs(above(grad, N, limit[i]) - share[i]) < 5 * sqrt(share[i] * (1 - share[i]) / N));
    pattern_close(&p);
}

/* Most of the large entries of one rank have large neighbours, at places that are rank 0's too. */
static void clustered_is_shared_by_the_ranks(struct comm *c) {
    struct pattern p = opened(c, "clustered", 1);
    fill(&p, 0, N, grad);
    memcpy(other, grad, sizeof grad);
    comm_bcast(c, 0, other, sizeof other);
    double scale = 0, mine = 0, both = 0;
    for (size_t i = 0; i < N; i += 64) {
        double own = 0, first = 0;
        for (size_t j = i; j < i + 64 && j < N; j++) own += fabs((double)grad[j]), first += fabs((double)other[j]);
        scale = exp(2.0 * (double)(i >> 14 & 63) / 64.0) * 64 * 4;
        mine += own > scale;
        both += own > scale && first > scale;
    }
    assert_true(mine > N / 64 / 40 && mine < N / 64 / 20); /* about one run in 32 */
    assert_true(both > 0.7 * mine);
    pattern_close(&p);
}

static void layers_are_those_of_the_model(struct comm *c) {
    struct pattern p = opened(c, "layers:resnet20", 1);
    assert_int_equal(p.n, 269722);
    float *x = calloc(p.n, sizeof *x);
    assert_non_null(x);
    fill(&p, 0, p.n, x);
    /* First the 3x3 convolution of 3 channels to 16; at the end the linear layer's biases. The mean of z^2 is 1. */
    double first = 0, last = 0, heavy = 0;
    for (size_t i = 0; i < 432; i++) first += fabs((double)x[i]) / 432;
    for (size_t i = p.n - 10; i < p.n; i++) last += fabs((double)x[i]) / 10;
    assert_true(fabs(first * sqrt(27.0) - 1) < 0.5);
    assert_true(last > 0.2 && last < 5);
    for (size_t i = 0; i < p.n; i++) heavy += fabs((double)x[i]) > 0;
    assert_true(heavy > 0.99 * (double)p.n);
    free(x);
    pattern_close(&p);
}

static void mistakes_are_told(struct comm *c) {
    static const char *const cases[][2] = {{"", "there are: uniform"},
                                           {"uni", "there are: uniform"},
                                           {"uniform:2", "there are: uniform"},
                                           {"layers", "layers:MODEL"},
                                           {"layers:", "layers:MODEL"},
                                           {"layers:none", "no model \"none\""},
                                           {"real", "real:FILE"},
                                           {"real:/nowhere/x", "/nowhere/x"},
                                           {"real:/tmp", "not a regular file"},
                                           {"real:/dev/null", "not a regular"},
                                           {"real:Makefile", "recorded gradie"},
                                           {"clustered:", "there are:"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pattern p;
        struct err e = {0};
        assert_false(pattern_open(&p, c, cases[i][0], 1, &e));
        if (!strstr(e.text, cases[i][1])) fail_msg("%s: \"%s\"", cases[i][0], e.text);
        pattern_close(&p);
    }
}

int main(int argc, char **argv) {
    const struct mpi_case cases[] = {{"is_a_function_of_seed_rank_and_step", is_a_function_of_seed_rank_and_step},
                                     {"uniform_is_normally_distributed", uniform_is_normally_distributed},
                                     {"clustered_is_shared_by_the_ranks", clustered_is_shared_by_the_ranks},
                                     {"layers_are_those_of_the_model", layers_are_those_of_the_model},
                                     {"mistakes_are_told", mistakes_are_told}};
    return mpi_test_main(argc, argv, "cli_pattern", cases, sizeof cases / sizeof *cases);
}
