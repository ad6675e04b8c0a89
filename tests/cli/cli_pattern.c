/* cli_pattern.c: the bench's gradients: the same whenever they are asked for, other ones for another step, rank or
 * seed, distributed as their names say; and every mistake in a name.
 * ranks: 1 3 */
#include "tests/lib/mpi_harness.h"

#include <math.h>

#include "base/hash.h"
#include "cli/gradients/pattern.h"
#include "nets/net.h"

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

/* Of every model: as `list` has it, with the sizes of its paper. */
static void as_long_as_the_model(struct comm *c) {
    if (c->size > 1) return; /* rank 0 alone opens it */
    for (size_t i = 0; models[i]; i++) {
        char name[64];
        snprintf(name, sizeof name, "layers:%s", models[i]->name);
        struct pattern p = opened(c, name, 1);
        size_t n = 0;
        for (size_t s = 0; s < p.slices; s++) n += p.slice[s].size;
        if (p.n != models[i]->parameters || n != p.n)
            fail_msg("%s: %zu entries in slices of %zu, %zu parameters", name, p.n, n, models[i]->parameters);
        pattern_close(&p);
    }
}

/* -- drawn from a profile ------------------------------------------------------------------------------------------ */

enum { FITTED_N = 70000 };

#define TEN_TIMES(x) x x x x x x x x x x
#define TAIL "tail 0 1 2" TEN_TIMES(" 3") TEN_TIMES(" 4") TEN_TIMES(" 5")
/* A profile in a file of rank 0's; `line` replaces the first line that begins with its first word. */
static char profile_path[64];
static void write_profile(struct comm *c, const char *line) {
    static const char *const lines[] = {"sparsetrain-profile 1",
                                        "model m",
                                        "data d:e",
                                        "n 70000",
                                        "ranks 2",
                                        "steps 3",
                                        "distance 4",
                                        "k 700",
                                        "density 0.01",
                                        "q 0.5",
                                        "h 0.8",
                                        "fixed h",
                                        "sign_agreement 0.8",
                                        "persistence 0.6",
                                        TAIL,
                                        "union 1 700 700",
                                        "union 2 1200 1201.5",
                                        "slice 60000 0.5 a b",
                                        "slice 9990 0.49 c",
                                        "slice 10 0.01 d"};
    mpi_test_path(c, "profile", profile_path);
    if (c->rank == 0) {
        FILE *f = fopen(profile_path, "w");
        assert_non_null(f);
        for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
            size_t word = strcspn(lines[i], " ") + 1;
            bool here = line && strncmp(lines[i], line, word) == 0;
            fprintf(f, "%s\n", here ? line : lines[i]);
            if (here) line = NULL;
        }
        fclose(f);
    }
    comm_barrier(c);
}

static struct pattern opened_profile(struct comm *c, uint64_t seed) {
    char text[96];
    snprintf(text, sizeof text, "fitted:%s", profile_path);
    return opened(c, text, seed);
}

static void drawn_is_a_function_of_seed_rank_and_step(struct comm *c) {
    write_profile(c, NULL);
    struct pattern p = opened_profile(c, 1), again = opened_profile(c, 1), seeded = opened_profile(c, 2);
    struct sparse a, b;
    struct err e = {0};
    assert_int_equal(p.n, FITTED_N);
    assert_true(p.scales && p.density == 0.01);
    pattern_case(&p, FITTED_N, 700);
    pattern_case(&again, 500, 5);
    pattern_case(&again, FITTED_N, 700);
    pattern_case(&seeded, FITTED_N, 700);
    sparse_open(&a, p.room);
    sparse_open(&b, p.room);
    assert_true(pattern_entries(&p, 3, FITTED_N, &a, &e));
    assert_true(sparse_valid(&a, FITTED_N));
    assert_true(a.nnz > 700 && a.nnz < 1050); /* 875 and 5 deviations */
    fill(&p, 3, FITTED_N, grad);
    for (size_t i = 0, next = 0; i < FITTED_N; i++) {
        bool in = next < a.nnz && a.idx[next] == i;
        assert_true(grad[i] == (in ? a.val[next] : 0));
        next += in;
    }
    assert_true(pattern_entries(&again, 3, FITTED_N, &b, &e));
    assert_int_equal(a.nnz, b.nnz);
    assert_memory_equal(a.idx, b.idx, a.nnz * sizeof *a.idx);
    assert_memory_equal(a.val, b.val, a.nnz * sizeof *a.val);
    assert_true(pattern_entries(&again, 4, FITTED_N, &b, &e));
    assert_true(a.nnz != b.nnz || memcmp(a.idx, b.idx, a.nnz * sizeof *a.idx) != 0);
    assert_true(pattern_entries(&seeded, 3, FITTED_N, &b, &e));
    assert_true(a.nnz != b.nnz || memcmp(a.idx, b.idx, a.nnz * sizeof *a.idx) != 0);
    uint64_t hash = hash64(0, a.idx, a.nnz * sizeof *a.idx), all[8] = {0};
    comm_allgather(c, &hash, sizeof hash, all);
    for (int r = 0; r < c->size; r++) assert_true(r == c->rank || all[r] != hash);
    draw_entries(&p.draw, (uint64_t)(c->rank + 1) % (uint64_t)c->size, 3, &b); /* any rank draws for any other */
    assert_true(hash64(0, b.idx, b.nnz * sizeof *b.idx) == all[(c->rank + 1) % c->size]);
    sparse_close(&a);
    sparse_close(&b);
    pattern_close(&p);
    pattern_close(&again);
    pattern_close(&seeded);
    comm_barrier(c);
    if (c->rank == 0) remove(profile_path);
}

/* Every line of a profile, damaged in one way or another. The same on all ranks, which see the file through rank 0. */
static void damaged_profiles_are_told(struct comm *c) {
    static const char *const cases[][2] = {
        {"sparsetrain-profile 2", "line 1: this program reads profiles of version 1"},
        {"n x", "line 4: what stands behind n makes no sense"},
        {"n 70001", "do not add up to n"},
        {"ranks 1", "behind ranks"},
        {"ranks 3", "a line union for each number of ranks"},
        {"steps 0", "behind steps"},
        {"distance -1", "behind distance"},
        {"k 0", "behind k"},
        {"k 70001", "behind k"},
        {"density 1.5", "behind density"},
        {"q nan", "behind q"},
        {"q 1.1", "behind q"},
        {"h 0.4", "behind h"},
        {"fixed q", "behind fixed"},
        {"sign_agreement 2", "behind sign_agreement"},
        {"persistence ", "behind persistence"},
        {"tail 0 1 2", "behind tail"},
        {"union 3 1 1", "behind union"},
        {"slice 60000", "behind slice"},
        {"slice 60000 0.9 a", "shares of the slices do not add up to 1"},
        {"slice 300 0.5 a", "behind slice"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pattern p;
        struct err e = {0};
        char text[96];
        write_profile(c, cases[i][0]);
        snprintf(text, sizeof text, "fitted:%s", profile_path);
        assert_false(pattern_open(&p, c, text, 1, &e));
        if (!strstr(e.text, cases[i][1])) fail_msg("%s: \"%s\"", cases[i][0], e.text);
        assert_null(strchr(e.text, '\n'));
        pattern_close(&p);
        comm_barrier(c);
        if (c->rank == 0) remove(profile_path);
    }
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
                                           {"real:/tmp", "it is a directory"},
                                           {"real:/dev/null", "it is a device"},
                                           {"real:Makefile", "recorded gradie"},
                                           {"selected", "selected:FILE"},
                                           {"selected:/nowhere/x", "/nowhere/x"},
                                           {"selected:Makefile", "recorded selections"},
                                           {"fitted", "fitted:PROFILE"},
                                           {"fitted:/nowhere/x", "cannot read the profile /nowhere/x"},
                                           {"fitted:/tmp", "it is a directory"},
                                           {"fitted:Makefile", "is no profile"},
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
    const struct mpi_case cases[] = {
        {"is_a_function_of_seed_rank_and_step", is_a_function_of_seed_rank_and_step},
        {"uniform_is_normally_distributed", uniform_is_normally_distributed},
        {"clustered_is_shared_by_the_ranks", clustered_is_shared_by_the_ranks},
        {"layers_are_those_of_the_model", layers_are_those_of_the_model},
        {"as_long_as_the_model", as_long_as_the_model},
        {"drawn_is_a_function_of_seed_rank_and_step", drawn_is_a_function_of_seed_rank_and_step},
        {"damaged_profiles_are_told", damaged_profiles_are_told},
        {"mistakes_are_told", mistakes_are_told}};
    return mpi_test_main(argc, argv, "cli_pattern", cases, sizeof cases / sizeof *cases);
}
