/* topk_clip.c: the norm of a gradient and clipping to a limit, against plain sums and against PyTorch.
 *
 * devices: cuda sparse
 */
#include "tests/lib/topk_reference.h"

#include <float.h>

#include "topk/clip.h"

enum { LARGEST = 12301 };
static const size_t sizes[] = {1, 3, 16, 17, 100, 4096, 5003, LARGEST};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static double naive_norm(const float *x, size_t n) {
    long double sum = 0;
    for (size_t i = n; i-- > 0;) sum += (long double)x[i] * (long double)x[i];
    return (double)sqrtl(sum);
}

/* Any store of the device serves, if it is long enough: the numbers do not depend on it, nor on what it holds. */
static void norm_case(enum pattern p, size_t n, float scale) {
    static float x[LARGEST], junk[LARGEST + 7];
    struct store longer, bare;
    pattern_fill(p, x, n, n);
    for (size_t i = 0; i < n; i++) x[i] *= scale;
    for (size_t i = 0; i < LARGEST + 7; i++) junk[i] = NAN;
    float *grad = device_upload(x, n);
    store_open(&longer, LARGEST + 7, test_device()), store_open_bare(&bare, n, test_device());
    longer.ops->write(&longer, 0, LARGEST + 7, junk);
    double norm = gradient_norm(&longer, grad, n), wanted = naive_norm(x, n);
    CHECK(fabs(norm - wanted) <= 1e-13 * wanted, "pattern %d n %zu: %.17g, %.17g wanted", (int)p, n, norm, wanted);
    CHECK(norm == gradient_norm(&longer, grad, n) && norm == gradient_norm(&bare, grad, n), "the norm varies");
    store_close(&longer), store_close(&bare);
    test_device()->release(grad);
}

static void norms_body(const void *unused) {
    (void)unused;
    for (int s = 0; s < SIZES; s++) {
        for (enum pattern p = 0; p < PATTERNS; p++)
            if (test_device_is_host() || p == NORMAL || p == WIDE || p == DENORMALS) norm_case(p, sizes[s], 1);
        norm_case(ALL_EQUAL, sizes[s], 1e37f);
        norm_case(NORMAL, sizes[s], 1e-30f);
    }
}
IN_EVERY_SET(norms_are_those_of_a_plain_sum, norms_body, NULL)

/* Squares beyond the range of float, at both ends. */
static void extreme_body(const void *unused) {
    (void)unused;
    enum { N = 10000 };
    static float x[N];
    static const struct {
        float entry;
        double norm;
    } cases[] = {{0, 0}, {FLT_MAX, 100 * (double)FLT_MAX}, {FLT_TRUE_MIN, 100 * (double)FLT_TRUE_MIN}};
    struct store s;
    store_open_bare(&s, N, test_device());
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        for (size_t i = 0; i < N; i++) x[i] = i % 2 ? cases[c].entry : -cases[c].entry;
        float *grad = device_upload(x, N);
        double norm = gradient_norm(&s, grad, N);
        CHECK(fabs(norm - cases[c].norm) <= 1e-13 * cases[c].norm, "%g gives %g", (double)cases[c].entry, norm);
        test_device()->release(grad);
    }
    store_close(&s);
}
IN_EVERY_SET(norms_do_not_overflow, extreme_body, NULL)

/* first: of a gradient with this norm, before and as clip_grad_norm_ of PyTorch 1.13 leaves it. */
static void factors_are_those_of_torch(void **state) {
    (void)state;
    static const struct {
        double norm, limit;
        float before, after;
    } cases[] = {{5, 1, 3, 0.599999905f},
                 {5, 5, 3, 2.99999928f},
                 {5, 5.0001, 3, 3},
                 {5, 0.25, 3, 0.149999976f},
                 {1e-4, 1e-4, 1e-4f, 9.90098997e-05f},
                 {31622.776601683792, 0.25, 1000, 0.00790569372f},
                 {2.2360679774997898e-07, 1e-8, 1e-7f, 8.17255985e-10f}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        float got = cases[c].before * clip_factor(cases[c].norm, cases[c].limit);
        assert_true(fabsf(got - cases[c].after) <= 3e-7f * cases[c].after);
    }
    assert_true(clip_factor(0, 1) == 1 && clip_factor(0, 1e-5) == 1);
    assert_true(clip_factor(1, 2) == 1 && clip_factor(2, 1) < 0.5f + FLT_EPSILON);
    assert_true(clip_factor((double)INFINITY, 1) == 0 && isnan(clip_factor((double)NAN, 1)));
    for (int P = 1; P < 100; P++) {
        double local = clip_local_limit(3, P);
        assert_true(fabs(local * local * P - 9) <= 1e-14 * 9);
    }
    assert_true(clip_local_limit(3, 1) == 3 && clip_local_limit(3, 4) == 1.5);
}

/* Below the limit nothing changes; above it all entries are scaled by one factor, to a norm that keeps the limit but
 * for the rounding of factor and entries. */
static void clip_case(size_t n, double part) {
    static float x[LARGEST], clipped[LARGEST];
    struct store s;
    pattern_fill(NORMAL, x, n, n);
    float *grad = device_upload(x, n);
    store_open_bare(&s, n, test_device());
    double before = gradient_norm(&s, grad, n), limit = part * before;
    CHECK(before > 0 && clip_gradient(&s, grad, n, limit) == before, "the norm before");
    float factor = clip_factor(before, limit);
    CHECK(part < 1 ? factor < 1 : factor == 1, "n %zu: factor %g", n, (double)factor);
    test_device()->to_host(clipped, grad, n * sizeof *clipped);
    for (size_t i = 0; i < n; i++) CHECK(same_bits(clipped[i], part < 1 ? x[i] * factor : x[i]), "entry %zu", i);
    double after = naive_norm(clipped, n);
    CHECK(after <= fmin(before, limit) * (1 + ldexp(1, -22)), "n %zu: %.17g beyond %.17g", n, after, limit);
    CHECK(after >= fmin(before, limit) * (1 - 1e-5), "n %zu: %.17g, but %.17g is allowed", n, after, limit);
    CHECK(clip_gradient(&s, grad, n, 2 * limit) <= after * (1 + 1e-13), "the norm after");
    store_close(&s);
    test_device()->release(grad);
}

static void clip_body(const void *unused) {
    (void)unused;
    static const double part[] = {1e-3, 0.1, 0.5, 0.99, 1.01, 3, 1e6};
    for (int s = 1; s < SIZES; s++)
        for (size_t p = 0; p < sizeof part / sizeof part[0]; p++) clip_case(sizes[s], part[p]);
}
IN_EVERY_SET(clipping_keeps_the_limit_and_the_direction, clip_body, NULL)

/* The norm says it, NaN before infinity, and the gradient stays for whoever names the entry. */
static void bad_clip_body(const void *unused) {
    (void)unused;
    enum { N = 100 };
    struct store s;
    store_open_bare(&s, N, test_device());
    for (int kind = 0; kind < 4; kind++) {
        float x[N], after[N];
        for (size_t i = 0; i < N; i++) x[i] = (float)i;
        if (kind != 0) x[42] = kind == 1 ? -INFINITY : INFINITY;
        if (kind == 0 || kind == 3) x[17] = NAN;
        float *grad = device_upload(x, N);
        double norm = clip_gradient(&s, grad, N, 1);
        CHECK(kind == 0 || kind == 3 ? isnan(norm) : isinf(norm) && norm > 0, "kind %d: norm %g", kind, norm);
        test_device()->to_host(after, grad, sizeof after);
        CHECK(memcmp(x, after, sizeof x) == 0, "the gradient was touched");
        test_device()->release(grad);
    }
    store_close(&s);
}
IN_EVERY_SET(a_bad_norm_is_said_and_nothing_scaled, bad_clip_body, NULL)

static void norm_by_a_short_store(const void *n) {
    float x[8] = {0};
    struct store s;
    float *grad = device_upload(x, 8);
    store_open_bare(&s, *(const size_t *)n, test_device());
    gradient_norm(&s, grad, 8);
    store_close(&s);
    test_device()->release(grad);
}

static void a_store_that_is_too_short_is_refused(void **state) {
    (void)state;
    const size_t lengths[] = {8, 9, 7};
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(status_of(norm_by_a_short_store, &lengths[i], false), i < 2 ? 0 : EXIT_SYSTEM);
}

int main(void) {
    test_device_in_children();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(norms_are_those_of_a_plain_sum),
        cmocka_unit_test(norms_do_not_overflow),
        cmocka_unit_test(factors_are_those_of_torch),
        cmocka_unit_test(clipping_keeps_the_limit_and_the_direction),
        cmocka_unit_test(a_bad_norm_is_said_and_nothing_scaled),
        cmocka_unit_test(a_store_that_is_too_short_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
