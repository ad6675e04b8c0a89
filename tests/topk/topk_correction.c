/* topk_correction.c: momentum correction and masking on one device, against plain loops. (On all ranks, with an
 * exchange behind them: comm_correction.c.)
 *
 * devices: cuda sparse
 */
#include "tests/lib/stored.h"
#include "tests/lib/topk_reference.h"

#include "topk/correction.h"

enum {
    LARGEST = 12301,
    STEPS = 12,
    MISFIT = 3 /* places by which a gradient may begin off the velocity's alignment */
};

/* -- a rank's velocity, entry by entry ----------------------------------------------------------------------------- */

struct naive {
    float u[LARGEST], grad[LARGEST]; /* grad: what goes in; after naive_step, what should come out */
    double exact[LARGEST], off[LARGEST];
};
static struct naive naive;

/* Sums of a few of the widest stay finite. */
static void step_gradient(size_t n, int step) {
    pattern_fill(step % 5 == 4 ? WIDE : step % 5 == 3 ? SIGNED_ZEROS : NORMAL, naive.grad, n, 100 * n + (size_t)step);
    for (size_t i = 0; i < n; i++) naive.grad[i] *= 0.0625f;
}

/* u in float, each operation rounded once and what is subnormal 0; in double; and how far the two may be apart: of a
 * step two roundings. */
static void naive_step(size_t n, float mu) {
    for (size_t i = 0; i < n; i++) {
        float product = mu * naive.u[i];
        double g = (double)naive.grad[i], scaled = (double)mu * naive.exact[i];
        naive.exact[i] = scaled + g;
        naive.off[i] = (double)mu * naive.off[i] + ldexp(fabs(scaled) + fabs(naive.exact[i]), -23) + ldexp(1, -126);
        naive.u[i] = naive.grad[i] = stored(product + naive.grad[i]);
    }
}

static void check_velocity(struct correction *c, const float *device_grad, const char *what) {
    static float u[LARGEST], grad[LARGEST];
    size_t n = c->velocity.n;
    c->velocity.ops->read(&c->velocity, 0, n, u);
    test_device()->to_host(grad, device_grad, n * sizeof *grad);
    CHECK(memcmp(u, naive.u, n * sizeof *u) == 0, "%s: the velocity of %zu", what, n);
    CHECK(memcmp(grad, naive.grad, n * sizeof *grad) == 0, "%s: the gradient of %zu", what, n);
    for (size_t i = 0; i < n; i++)
        CHECK(fabs((double)u[i] - naive.exact[i]) <= naive.off[i], "%s: entry %zu of %zu strays", what, i, n);
}

static const size_t sizes[] = {1, 3, 16, 17, 100, 4096, 5003, LARGEST};
static const float factors[] = {0, 0.5f, 0.9f, 1};
enum { SIZES = sizeof sizes / sizeof sizes[0], FACTORS = sizeof factors / sizeof factors[0] };

/* The whole gradient at once, which begins at any place, with something before and behind it that is not its. */
static void formula_case(size_t n, float mu, size_t shift) {
    static float around[LARGEST + 2 * MISFIT];
    struct correction c;
    float *block = test_device()->alloc((n + 2 * MISFIT) * sizeof *block, "a gradient and its surroundings");
    correction_open(&c, n, test_device(), mu, false);
    memset(&naive, 0, sizeof naive);
    for (int step = 0; step < STEPS; step++) {
        step_gradient(n, step);
        for (size_t i = 0; i < n + 2 * MISFIT; i++) around[i] = 42;
        memcpy(around + shift, naive.grad, n * sizeof *around);
        test_device()->to_device(block, around, (n + 2 * MISFIT) * sizeof *block);
        correction_apply(&c, block + shift, 0, n);
        naive_step(n, mu);
        check_velocity(&c, block + shift, "formula");
        test_device()->to_host(around, block, (n + 2 * MISFIT) * sizeof *block);
        for (size_t i = 0; i < n + 2 * MISFIT; i++)
            CHECK((i >= shift && i < shift + n) || around[i] == 42, "place %zu is not of the gradient", i);
    }
    correction_close(&c);
    test_device()->release(block);
}

static void formula_body(const void *unused) {
    (void)unused;
    for (int s = 0; s < SIZES; s++)
        for (int f = 0; f < FACTORS; f++)
            for (size_t shift = 0; shift <= MISFIT; shift++)
                if (test_device_is_host() || (f == 2 && shift % 2 == 0) || s == 3)
                    formula_case(sizes[s], factors[f], shift);
}
IN_EVERY_SET(velocities_are_those_of_the_formula, formula_body, NULL)

/* -- part by part ----------------------------------------------------------------------------------------------- */

/* Parts of random length, empty ones among them, as backward completes them. What is in front of a part, in gradient
 * and velocity, stays as it is. */
static void step_by_parts(struct correction *c, float *device_grad, struct rng *r, float mu) {
    static float before[LARGEST], now[LARGEST], given[LARGEST];
    size_t n = c->velocity.n, from = n;
    memcpy(before, naive.u, n * sizeof *before);
    memcpy(given, naive.grad, n * sizeof *given);
    test_device()->to_device(device_grad, naive.grad, n * sizeof *given);
    naive_step(n, mu);
    while (from > 0) {
        size_t to = from, length = rng_below(r, (uint32_t)(n / 3 + 2));
        from = length < to ? to - length : 0;
        correction_apply(c, device_grad, from, to);
        c->velocity.ops->read(&c->velocity, 0, n, now);
        CHECK(memcmp(now, before, from * sizeof *now) == 0, "a velocity in front of the part");
        CHECK(memcmp(now + from, naive.u + from, (n - from) * sizeof *now) == 0, "a velocity that is done");
        test_device()->to_host(now, device_grad, n * sizeof *now);
        CHECK(memcmp(now, given, from * sizeof *now) == 0, "a gradient in front of the part");
    }
}

static void parts_body(const void *unused) {
    (void)unused;
    struct rng r = rng_open(3, RNG_TEST, 1);
    for (int s = 0; s < SIZES; s++) {
        struct correction c;
        float *device_grad = test_device()->alloc(sizes[s] * sizeof *device_grad, "a gradient");
        correction_open(&c, sizes[s], test_device(), 0.9f, false);
        memset(&naive, 0, sizeof naive);
        for (int step = 0; step < STEPS; step++) {
            step_gradient(sizes[s], step);
            step_by_parts(&c, device_grad, &r, 0.9f);
            check_velocity(&c, device_grad, "parts");
        }
        correction_close(&c);
        correction_close(&c); /* harmless */
        test_device()->release(device_grad);
    }
}
IN_EVERY_SET(parts_give_the_bits_of_the_whole, parts_body, NULL)

/* Calls of one or two steps over 100 entries: good ones, then such as have a gap, repeat a part, run backwards, or mask
 * too early or with nothing. */
static const struct calls {
    size_t part[3][2];
    size_t parts;
    bool masks, without; /* without: there is no `sent` */
    int status;
} orders[] = {{{{0, 100}}, 1, true, false, 0},
              {{{40, 100}, {40, 40}, {0, 40}}, 3, true, false, 0},
              {{{0, 100}, {0, 100}}, 2, true, false, 0},
              {{{40, 100}, {0, 40}, {70, 100}}, 3, false, false, 0},
              {{{40, 100}, {40, 100}}, 2, false, false, EXIT_SYSTEM},
              {{{40, 100}, {0, 39}}, 2, false, false, EXIT_SYSTEM},
              {{{0, 50}}, 1, false, false, EXIT_SYSTEM},
              {{{40, 100}, {50, 40}}, 2, false, false, EXIT_SYSTEM},
              {{{0, 101}}, 1, false, false, EXIT_SYSTEM},
              {{{40, 100}}, 1, true, false, EXIT_SYSTEM},
              {{{0, 100}}, 1, true, true, EXIT_SYSTEM}};

static void run_calls(const void *argument) {
    const struct calls *calls = argument;
    struct correction c;
    struct sparse sent;
    float host[100] = {1};
    float *device_grad = device_upload(host, 100);
    sparse_open(&sent, 1);
    correction_open(&c, 100, test_device(), 0.9f, calls->masks);
    for (size_t p = 0; p < calls->parts; p++) correction_apply(&c, device_grad, calls->part[p][0], calls->part[p][1]);
    correction_mask(&c, calls->without ? NULL : &sent, NULL);
    correction_close(&c);
    sparse_close(&sent);
    test_device()->release(device_grad);
}

static void each_entry_once_a_step(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++)
        assert_int_equal(status_of(run_calls, &orders[i], false), orders[i].status);
}

/* -- masking, checkpoints, what is not finite ---------------------------------------------------------------------- */

/* A random part of the indices, with values that do not matter. */
static void draw_sent(struct sparse *sent, size_t n, struct rng *r, uint32_t one_of) {
    sent->nnz = 0;
    for (size_t i = 0; i < n; i++) {
        if (rng_below(r, one_of) != 0) continue;
        sent->idx[sent->nnz] = (uint32_t)i;
        sent->val[sent->nnz++] = NAN;
    }
}

/* From step to step: masked entries begin anew. Every fourth step delivers nothing, every fifth one all. */
static void masking_case(size_t n, bool masking, bool exempts) {
    struct correction c;
    struct sparse sent, exempt;
    struct rng r = rng_open(5, RNG_TEST, n);
    float *device_grad = test_device()->alloc(n * sizeof *device_grad, "a gradient");
    sparse_open(&sent, n);
    sparse_open(&exempt, n);
    correction_open(&c, n, test_device(), 0.9f, masking);
    memset(&naive, 0, sizeof naive);
    for (int step = 0; step < STEPS; step++) {
        step_gradient(n, step);
        test_device()->to_device(device_grad, naive.grad, n * sizeof *device_grad);
        correction_apply(&c, device_grad, 0, n);
        naive_step(n, 0.9f);
        draw_sent(&sent, n, &r, step % 4 == 3 ? UINT32_MAX : step % 5 == 4 ? 1 : 3);
        if (exempts) draw_sent(&exempt, n, &r, step % 4 == 2 ? 1 : 5);
        correction_mask(&c, &sent, exempts ? &exempt : NULL);
        for (size_t i = 0, j = 0; masking && i < sent.nnz; i++) {
            while (j < exempt.nnz && exempt.idx[j] < sent.idx[i]) j++;
            if (j < exempt.nnz && exempt.idx[j] == sent.idx[i]) continue;
            naive.u[sent.idx[i]] = 0, naive.exact[sent.idx[i]] = naive.off[sent.idx[i]] = 0;
        }
        check_velocity(&c, device_grad, masking ? "masking" : "no masking");
    }
    correction_close(&c);
    sparse_close(&exempt);
    sparse_close(&sent);
    test_device()->release(device_grad);
}

static void masking_body(const void *unused) {
    (void)unused;
    for (int s = 0; s < SIZES; s++)
        for (int how = 0; how < 3; how++) masking_case(sizes[s], how > 0, how > 1);
}
IN_EVERY_SET(masking_zeroes_what_was_sent_and_nothing_else, masking_body, NULL)

/* A velocity that is read out, and written into a fresh one, goes on as if nothing had been. */
static void checkpoint_body(const void *unused) {
    (void)unused;
    enum { N = 5003, HALF = N / 2 };
    static float kept[N];
    struct correction c;
    float *device_grad = test_device()->alloc(N * sizeof *device_grad, "a gradient");
    correction_open(&c, N, test_device(), 0.9f, true);
    memset(&naive, 0, sizeof naive);
    for (int step = 0; step < STEPS; step++) {
        step_gradient(N, step);
        test_device()->to_device(device_grad, naive.grad, N * sizeof *device_grad);
        correction_apply(&c, device_grad, 0, N);
        naive_step(N, 0.9f);
        check_velocity(&c, device_grad, "checkpoints");
        c.velocity.ops->read(&c.velocity, 0, HALF, kept);
        c.velocity.ops->read(&c.velocity, HALF, N - HALF, kept + HALF);
        correction_close(&c);
        correction_open(&c, N, test_device(), 0.9f, true);
        c.velocity.ops->write(&c.velocity, 0, HALF, kept);
        c.velocity.ops->write(&c.velocity, HALF, N - HALF, kept + HALF);
    }
    correction_close(&c);
    test_device()->release(device_grad);
}
IN_EVERY_SET(a_velocity_outlives_its_program, checkpoint_body, NULL)

/* What is not finite goes on to the selector, which says so. */
static void not_finite_body(const void *unused) {
    (void)unused;
    enum { N = 300 };
    static const float kinds[] = {INFINITY, -INFINITY, NAN};
    for (int kind = 0; kind < 3; kind++)
        for (size_t at = 0; at < N; at += 37) {
            struct correction c;
            float grad[N] = {0};
            grad[at] = kinds[kind];
            float *device_grad = device_upload(grad, N);
            correction_open(&c, N, test_device(), 0.9f, false);
            correction_apply(&c, device_grad, 0, N);
            CHECK(c.velocity.ops->first_nonfinite(&c.velocity, device_grad, N) == at, "%zu is not finite", at);
            correction_close(&c);
            test_device()->release(device_grad);
        }
}
IN_EVERY_SET(what_is_not_finite_is_not_hidden, not_finite_body, NULL)

int main(void) {
    test_device_in_children();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(velocities_are_those_of_the_formula),
        cmocka_unit_test(parts_give_the_bits_of_the_whole),
        cmocka_unit_test(each_entry_once_a_step),
        cmocka_unit_test(masking_zeroes_what_was_sent_and_nothing_else),
        cmocka_unit_test(a_velocity_outlives_its_program),
        cmocka_unit_test(what_is_not_finite_is_not_hidden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
