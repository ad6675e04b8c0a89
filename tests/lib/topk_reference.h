/* topk_reference.h: what the tests of topk share: the definition of top-k by sorting, input patterns that are hard
 * for selections, and a way to run a case once for every kernel set, each in a process of its own (the choice of
 * the set is made once per process, and a device may be used in a forked process alone: test_device.h). */
#ifndef ST_TESTS_TOPK_REFERENCE_H
#define ST_TESTS_TOPK_REFERENCE_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/rng.h"
#include "tests/lib/test_device.h"
#include "topk/cpu/kernels.h"
#include "topk/sparse.h"

/* An assertion for code that runs in a forked process, where cmocka's must not be used. */
#define CHECK(condition, ...)                                                                                          \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "# %s:%d: %s: ", __FILE__, __LINE__, #condition);                                          \
            fprintf(stderr, __VA_ARGS__);                                                                              \
            fputc('\n', stderr);                                                                                       \
            _exit(99);                                                                                                 \
        }                                                                                                              \
    } while (0)

/* The exit status of body(argument) in a forked process, its stderr shown only when `show`. */
static inline int status_of(void (*body)(const void *), const void *argument, bool show) {
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (!show && !freopen("/dev/null", "w", stderr)) _exit(98);
        body(argument);
        exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Runs body(argument) once per kernel set, or once on a device that is not the CPU. The calling process must never
 * have called topk_kernels() nor test_device(). */
static inline void in_every_set(void (*body)(const void *), const void *argument) {
    if (!test_device_is_host()) {
        int status = status_of(body, argument, true);
        if (status) fail_msg("on %s: status %d", test_device_name(), status);
        return;
    }
    for (const struct topk_kernels *const *set = topk_kernels_all(); *set; set++) {
        setenv("SPARSETRAIN_SIMD", (*set)->name, 1);
        int status = status_of(body, argument, true);
        if (status) fail_msg("with the %s kernels: status %d", (*set)->name, status);
    }
    unsetenv("SPARSETRAIN_SIMD");
}

/* A test that is nothing but that. */
#define IN_EVERY_SET(test, body, argument)                                                                             \
    static void test(void **state) {                                                                                   \
        (void)state;                                                                                                   \
        in_every_set(body, argument);                                                                                  \
    }

struct ranked {
    uint32_t key, idx;
};

/* Larger magnitude first, then lower index. */
static inline int by_rank(const void *a, const void *b) {
    const struct ranked *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? 1 : -1;
    return (x->idx > y->idx) - (x->idx < y->idx);
}

static inline int by_index(const void *a, const void *b) {
    const struct ranked *x = a, *y = b;
    return (x->idx > y->idx) - (x->idx < y->idx);
}

/* The n pairs, which are in index order, by rank. Of many, eleven bits at a time, the lowest first, as qsort took most
 * of the time of tests. */
static inline void sort_by_rank(struct ranked *pair, size_t n) {
    enum { BITS = 11, BINS = 1 << BITS, MANY = 1000 };
    if (n < MANY) {
        qsort(pair, n, sizeof *pair, by_rank);
        return;
    }
    struct ranked *other = malloc(n * sizeof *other), *from = pair, *to = other;
    CHECK(other, "no memory for %zu pairs", n);
    for (int shift = 0; shift < 32; shift += BITS) {
        size_t place[BINS + 1] = {0};
        for (size_t i = 0; i < n; i++) place[(~from[i].key >> shift) % BINS + 1]++;
        for (size_t bin = 1; bin < BINS; bin++) place[bin] += place[bin - 1];
        for (size_t i = 0; i < n; i++) to[place[(~from[i].key >> shift) % BINS]++] = from[i];
        struct ranked *swap = from;
        from = to, to = swap;
    }
    memcpy(pair, other, n * sizeof *pair); /* where the third pass has left them */
    free(other);
}

/* The k first of the n pairs by rank, in index order, to pick[0..k-1]; pick: [n]. */
static inline void naive_top(const float *val, size_t n, size_t k, struct ranked *pick) {
    for (size_t i = 0; i < n; i++) pick[i] = (struct ranked){magnitude_key(val[i]), (uint32_t)i};
    sort_by_rank(pick, n);
    qsort(pick, k, sizeof *pick, by_index);
}

static inline bool same_bits(float a, float b) {
    return memcmp(&a, &b, sizeof a) == 0;
}

enum pattern {
    ALL_ZERO,
    SIGNED_ZEROS,
    ALL_EQUAL,
    EQUAL_SIGNS, /* one magnitude, both signs */
    DENORMALS,
    NORMAL,
    RAMP_UP,
    RAMP_DOWN,
    FEW_VALUES, /* heavy ties at any threshold */
    ONE_GIANT,
    FEW_GIANTS,
    CLUSTER,   /* all large entries side by side */
    PERIOD_16, /* one large entry in each cache line */
    PERIOD_512,
    MOSTLY_ONE, /* a few above a level that all the others share */
    UNIFORM,    /* ends below what a normal distribution of this deviation would reach */
    TRUNCATED,  /* a normal one that was cut */
    ONE_ENTRY,  /* all zero but one */
    FEW_SMALL,  /* all zero but some of very different size */
    WIDE,       /* every exponent there is */
    PATTERNS
};

static inline bool is_of_normal_ones(enum pattern p) {
    return p == NORMAL || p == ONE_GIANT || p == CLUSTER || p == PERIOD_16 || p == PERIOD_512 || p == TRUNCATED ||
           p == FEW_SMALL;
}

/* normal: of those that are made of normal numbers; bits: of the others */
static inline float pattern_value(enum pattern p, size_t i, size_t n, float normal, uint32_t bits) {
    switch (p) {
    case ALL_ZERO:
        return 0;
    case SIGNED_ZEROS:
        return i % 3 ? -0.0f : 0.0f;
    case ALL_EQUAL:
        return 0.25f;
    case EQUAL_SIGNS:
        return bits & 1 ? 0.25f : -0.25f;
    case DENORMALS:
        bits &= 0x807fffffu;
        break;
    case NORMAL:
        return normal;
    case RAMP_UP:
        return (float)i;
    case RAMP_DOWN:
        return (float)(n - i);
    case FEW_VALUES:
        return (float)(bits % 5) - 2;
    case ONE_GIANT:
        return i == n / 3 ? -1e38f : 1e-3f * normal;
    case FEW_GIANTS:
        return i % (n / 5 + 1) == n / 7 ? 1e30f : 1;
    case CLUSTER:
        return i >= n / 2 && i < n / 2 + n / 50 ? 100 + normal : normal;
    case PERIOD_16:
        return i % 16 == 5 ? 2 + normal : 0.5f * normal;
    case PERIOD_512:
        return i % 512 < 16 ? 10 + normal : normal;
    case MOSTLY_ONE:
        return bits % 4096 == 0 ? 7 : -1;
    case UNIFORM:
        return (float)(bits >> 8) * 0x1p-23f - 1;
    case TRUNCATED:
        return fmodf(normal, 1.5f);
    case ONE_ENTRY:
        return i == n / 3 ? -1e-3f : 0;
    case FEW_SMALL:
        return i % (n / 7 + 1) == n / 9 ? ldexpf(normal, -4 * (int)(i * 10 / n)) : 0;
    case WIDE:
        if ((bits & 0x7f800000u) == 0x7f800000u) bits ^= 0x40000000u;
        break;
    case PATTERNS:
        break;
    }
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline void pattern_fill(enum pattern p, float *x, size_t n, uint64_t seed) {
    struct rng r = rng_open(seed, RNG_TEST, (uint64_t)p);
    const bool normal = is_of_normal_ones(p);
    if (normal) rng_normals(&r, 1, x, n);
    for (size_t i = 0; i < n; i++) x[i] = pattern_value(p, i, n, normal ? x[i] : 0, normal ? 0 : rng_u32(&r));
}

/* -- distributions of gradients ------------------------------------------------------------------------------ */

enum shape {
    GAUSSIAN,
    LAPLACE,    /* exponential magnitudes */
    GAMMA_HALF, /* magnitudes of a gamma distribution of shape 1/2: more mass at zero, a longer tail */
    STUDENT,    /* of 3 degrees of freedom: a heavy tail, no fourth moment */
    REAL_LIKE,  /* layers of 1000 whose scale spans e^4, a fifth of the entries zero, biases ten times larger */
    SHAPES
};
static const char *const shape_names[SHAPES] = {"gaussian", "laplace", "gamma 1/2", "student 3", "real-like"};

static inline void shape_fill(enum shape shape, float *x, size_t n, uint64_t seed) {
    struct rng r = rng_open(seed, RNG_TEST, 100 + (uint64_t)shape);
    double scale = 0;
    if (shape != LAPLACE) rng_normals(&r, 1, x, n);
    for (size_t i = 0; i < n; i++) {
        const double normal = (double)x[i];
        switch (shape) {
        case LAPLACE:
            x[i] = (float)(log(1 - rng_uniform(&r)) * (rng_u32(&r) & 1 ? -1 : 1));
            break;
        case GAMMA_HALF:
            x[i] = (float)(normal * fabs(normal));
            break;
        case STUDENT: {
            const double a = rng_normal(&r), b = rng_normal(&r), c = rng_normal(&r);
            x[i] = (float)(normal / sqrt((a * a + b * b + c * c) / 3 + 1e-12));
            break;
        }
        case REAL_LIKE:
            if (i % 1000 == 0) {
                struct rng layer = rng_open(3, RNG_TEST, i / 1000);
                scale = exp(4 * rng_uniform(&layer)) * 1e-3;
            }
            x[i] = rng_u32(&r) % 5 == 0 ? 0 : (float)(normal * scale * (i % 1000 < 10 ? 10 : 1));
            break;
        default:
            break;
        }
    }
}

#endif
