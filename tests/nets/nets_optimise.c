/* nets_optimise.c: every optimiser against its formula, in double and with the roundings that all devices have; Adam
 * against PyTorch, too. */
/* devices: cuda */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/table.h"
#include "nets/optimisers/adam.h"
#include "nets/optimisers/optimiser.h"
#include "tests/golden/adam.h"
#include "tests/lib/in_child.h"
#include "tests/lib/stored.h"
#include "tests/lib/test_device.h"

enum { N = 10007, STATES_MAX = 2 };

/* -- the formulas, naively: step t (from 1 on) on w [n] and state [states][n] ------------------------------------- */

static void sgd_in_double(double *w, double *v, const float *g, size_t n, const struct optimiser_setup *s, int t,
                          double lr) {
    (void)t;
    const double own = s->gradient_has_momentum ? 0 : 1; /* of g in v */
    for (size_t i = 0; i < n; i++) {
        v[i] = s->momentum * v[i] + (own * g[i] + s->weight_decay * w[i]);
        w[i] -= lr * (v[i] + (1 - own) * g[i]);
    }
}

static void sgd_as_written(float *w, float *v, const float *g, size_t n, const struct optimiser_setup *s, int t,
                           double lr) {
    (void)t;
    const float mu = (float)s->momentum, wd = (float)s->weight_decay, rate = (float)lr;
    for (size_t i = 0; i < n; i++) {
        v[i] = stored(s->gradient_has_momentum ? mu * v[i] + wd * w[i] : mu * v[i] + (g[i] + wd * w[i]));
        w[i] = w[i] - rate * (s->gradient_has_momentum ? g[i] + v[i] : v[i]);
    }
}

/* v takes gradients in up to this step: all of them, or the first variance_steps. */
static int taken_until(const struct optimiser_setup *s, int t) {
    return s->variance_steps > 0 && t > (int)s->variance_steps ? (int)s->variance_steps : t;
}

/* Algorithm 1 of the paper, line by line. */
static void adam_in_double(double *w, double *state, const float *gradient, size_t n, const struct optimiser_setup *s,
                           int t, double lr) {
    double *m = state, *v = state + n;
    for (size_t i = 0; i < n; i++) {
        double g = gradient[i] + s->weight_decay * w[i];
        m[i] = s->beta1 * m[i] + (1 - s->beta1) * g;
        if (taken_until(s, t) == t) v[i] = s->beta2 * v[i] + (1 - s->beta2) * g * g;
        double corrected_m = m[i] / (1 - pow(s->beta1, t));
        double corrected_v = v[i] / (1 - pow(s->beta2, taken_until(s, t)));
        w[i] -= lr * corrected_m / (sqrt(corrected_v) + s->epsilon);
    }
}

static void adam_as_written(float *w, float *state, const float *gradient, size_t n, const struct optimiser_setup *s,
                            int t, double lr) {
    const float beta1 = (float)s->beta1, beta2 = (float)s->beta2, wd = (float)s->weight_decay;
    const float rest1 = (float)(1 - (double)beta1), rest2 = (float)(1 - (double)beta2);
    const double root = sqrt(1 - pow(beta2, taken_until(s, t)));
    const float rate = (float)(lr * root / (1 - pow(beta1, t))), epsilon = (float)(s->epsilon * root);
    float *m = state, *v = state + n;
    for (size_t i = 0; i < n; i++) {
        float g = gradient[i] + wd * w[i];
        m[i] = stored(beta1 * m[i] + rest1 * g);
        if (taken_until(s, t) == t) v[i] = stored(beta2 * v[i] + rest2 * g * g);
        w[i] = w[i] - rate * (m[i] / (sqrtf(v[i]) + epsilon));
    }
}

/* Every test has two slices, a weight and then a bias of half as many. */
static size_t weights_of(size_t n) {
    return n - n / 3;
}

/* Algorithm 2 of the paper, line by line; biases do not decay. */
static void adamw_in_double(double *w, double *state, const float *g, size_t n, const struct optimiser_setup *s, int t,
                            double lr) {
    double *m = state, *v = state + n;
    for (size_t i = 0; i < n; i++) {
        m[i] = s->beta1 * m[i] + (1 - s->beta1) * g[i];
        if (taken_until(s, t) == t) v[i] = s->beta2 * v[i] + (1 - s->beta2) * g[i] * g[i];
        double corrected_m = m[i] / (1 - pow(s->beta1, t));
        double corrected_v = v[i] / (1 - pow(s->beta2, taken_until(s, t)));
        w[i] -=
            lr * (corrected_m / (sqrt(corrected_v) + s->epsilon) + (i < weights_of(n) ? s->weight_decay : 0) * w[i]);
    }
}

static void adamw_as_written(float *w, float *state, const float *g, size_t n, const struct optimiser_setup *s, int t,
                             double lr) {
    struct optimiser_setup plain = *s;
    plain.weight_decay = 0;
    for (size_t i = 0; i < n; i++) {
        float of_one[2] = {state[i], state[n + i]}, change = 0;
        adam_as_written(&change, of_one, g + i, 1, &plain, t, lr); /* from 0 on: what Adam takes away */
        w[i] = w[i] - ((i < weights_of(n) ? (float)(lr * s->weight_decay) : 0) * w[i] - change);
        state[i] = of_one[0];
        state[n + i] = of_one[1];
    }
}

#define ADAM_USUAL .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8
enum { SETUPS = 5 };

static const struct method {
    const char *name;
    size_t states;
    struct optimiser_setup setup[SETUPS]; /* the first one: as it is mostly used, without weight decay */
    double state_tolerance;
    void (*in_double)(double *w, double *state, const float *g, size_t n, const struct optimiser_setup *s, int t,
                      double lr);
    void (*as_written)(float *w, float *state, const float *g, size_t n, const struct optimiser_setup *s, int t,
                       double lr);
} methods[] = {
    {"sgd",
     1,
     {{.momentum = 0.9},
      {.momentum = 0.9, .weight_decay = 1e-2},
      {.weight_decay = 5e-4},
      {.momentum = 0.9, .weight_decay = 1e-2, .gradient_has_momentum = true},
      {.momentum = 0}},
     3e-6,
     sgd_in_double,
     sgd_as_written},
    {"adam",
     2,
     {{ADAM_USUAL},
      {ADAM_USUAL, .weight_decay = 1e-2},
      {.beta1 = 0, .beta2 = 0.9998779296875, .epsilon = 1e-3, .weight_decay = 5e-4},
      {.beta1 = 0.5, .beta2 = 0.75, .epsilon = 1e-8, .weight_decay = 1e-3},
      {ADAM_USUAL, .weight_decay = 1e-3, .variance_steps = 2}},
     2e-5, /* 1 - beta2, when beta2 = 0.999 has been rounded, is 1.3e-5 off: the steps are not, but the state is */
     adam_in_double,
     adam_as_written},
    {"adamw",
     2,
     {{ADAM_USUAL},
      {ADAM_USUAL, .weight_decay = 1e-1},
      {.beta1 = 0, .beta2 = 0.9998779296875, .epsilon = 1e-3, .weight_decay = 5e-4},
      {.beta1 = 0.5, .beta2 = 0.75, .epsilon = 1e-8, .weight_decay = 1e-2},
      {ADAM_USUAL, .weight_decay = 1e-3, .variance_steps = 2}},
     2e-5,
     adamw_in_double,
     adamw_as_written},
};
#define EACH_METHOD(m)                                                                                                 \
    const struct method *m = methods;                                                                                  \
    m < methods + sizeof methods / sizeof *methods;                                                                    \
    m++

static struct optimiser opened(const char *name, const struct optimiser_setup *setup, size_t n) {
    const struct optimiser_ops *ops;
    TABLE_FIND(optimisers, name, ops);
    static struct slice slice[2];
    slice[0] = (struct slice){.name = "weight", .size = weights_of(n), .dims = 2};
    slice[1] = (struct slice){.name = "bias", .offset = weights_of(n), .size = n / 3, .dims = 1};
    struct optimiser o;
    optimiser_open(
        &o, ops, &(struct arena){.device = test_device(), .n = n, .slice = slice, .slices = n / 3 > 0 ? 2 : 1}, setup);
    return o;
}

/* One step on w and g of the host, by way of the device's memory. */
static size_t step(struct optimiser *o, float *w, const float *g, double lr) {
    float *param = device_upload(w, o->n), *grad = device_upload(g, o->n);
    optimiser_step(o, param, grad, lr);
    const size_t first = optimiser_settle(o);
    device_download(w, param, o->n);
    test_device()->release(param);
    test_device()->release(grad);
    return first;
}

/* -- every row ---------------------------------------------------------------------------------------------------- */

static void every_row_has_its_formula_here(void **state) {
    (void)state;
    size_t rows = 0;
    while (optimisers[rows]) rows++;
    assert_int_equal(rows, sizeof methods / sizeof *methods);
    for (EACH_METHOD(m)) {
        struct optimiser o = opened(m->name, &m->setup[0], 3);
        assert_int_equal(optimiser_moments(o.ops), m->states);
        assert_int_equal(o.n_state, 3 * m->states);
        assert_int_equal(o.steps, 0);
        assert_true(strlen(o.ops->summary) > 10);
        optimiser_close(&o);
    }
}

static void compare(const struct method *m, const char *what, const float *found, const double *wanted, size_t n,
                    double tolerance) {
    for (size_t i = 0; i < n; i++)
        if (!(fabs(found[i] - wanted[i]) <= tolerance * (1 + fabs(wanted[i]))))
            fail_msg("%s, %s %zu: %.9g, not %.17g", m->name, what, i, found[i], wanted[i]);
}

static void rows_are_their_formulas(void **state) {
    (void)state;
    static float w[N], g[N];
    static double w64[N], state64[STATES_MAX * N];
    const int steps = test_device_is_host() ? 300 : 30;
    for (EACH_METHOD(m))
        for (int k = 0; k < SETUPS; k++) {
            struct rng r = rng_open(1, RNG_TEST, 1);
            rng_normals(&r, 1, w, N);
            for (size_t i = 0; i < N; i++) w64[i] = w[i];
            memset(state64, 0, sizeof state64);
            struct optimiser o = opened(m->name, &m->setup[k], N);
            for (int t = 1; t <= steps; t++) {
                double lr = t < 4 ? 0.01 : 0.001;
                rng_normals(&r, 1, g, N);
                m->in_double(w64, state64, g, N, &m->setup[k], t, lr);
                assert_int_equal(step(&o, w, g, lr), N);
                assert_int_equal(o.steps, t);
            }
            float *kept = device_fetch(o.state, o.n_state);
            compare(m, "parameter", w, w64, N, 3e-6);
            compare(m, "state", kept, state64, o.n_state, m->state_tolerance);
            mem_free(kept);
            optimiser_close(&o);
        }
}

/* Every device rounds each operation by itself, so all give the bits of the formula in C. Gradients of all sizes: small
 * ones have squares that no normal float holds. Both lengths: only in one of them all arrays are aligned. */
static void rows_round_as_written(void **state) {
    (void)state;
    static float w[N + 1], kept[STATES_MAX * (N + 1)], g[N + 1], found[N + 1];
    for (EACH_METHOD(m))
        for (int k = 0; k < SETUPS * 2; k++) {
            const size_t n = k < SETUPS ? N : N + 1;
            const struct optimiser_setup *setup = &m->setup[k % SETUPS];
            struct rng r = rng_open(1, RNG_TEST, 2);
            rng_normals(&r, 1, w, n);
            memcpy(found, w, sizeof w);
            memset(kept, 0, sizeof kept);
            struct optimiser o = opened(m->name, setup, n);
            for (int t = 1; t <= 4; t++) {
                rng_normals(&r, 1, g, n);
                for (size_t i = 0; i < n; i++) g[i] = i % 7 == 6 ? 0 : ldexpf(g[i], (int)(i % 80) - 75);
                m->as_written(w, kept, g, n, setup, t, 0.1);
                assert_int_equal(step(&o, found, g, 0.1), n);
                float *there = device_fetch(o.state, o.n_state);
                assert_memory_equal(w, found, n * sizeof *w);
                assert_memory_equal(kept, there, o.n_state * sizeof *kept);
                mem_free(there);
            }
            optimiser_close(&o);
        }
}

/* A state that has decayed ends as 0, and is not carried on as a subnormal for ever. */
static void states_decay_to_zero(void **state) {
    (void)state;
    static float w[N], g[N], kept[STATES_MAX * N];
    for (EACH_METHOD(m))
        for (int k = 0; k < SETUPS; k++) {
            struct optimiser_setup setup = m->setup[k];
            setup.weight_decay = 0;
            struct optimiser o = opened(m->name, &setup, N);
            const bool squares = m->states > 1; /* in the second one */
            for (size_t i = 0; i < o.n_state; i++)
                kept[i] = ldexpf(i % 2 && !(squares && i >= N) ? -1.5f : 1.5f, -115 - (int)(i % 35));
            for (size_t i = 0; i < N; i++) w[i] = (float)i, g[i] = 0;
            test_device()->to_device(o.state, kept, o.n_state * sizeof *kept);
            for (int t = 1; t <= 40; t++) {
                assert_int_equal(step(&o, w, g, 0.1), N);
                float *there = device_fetch(o.state, o.n_state);
                const size_t moving = taken_until(&setup, t) == t ? o.n_state : N; /* the rest is frozen */
                for (size_t i = 0; i < moving; i++)
                    if (fpclassify(there[i]) == FP_SUBNORMAL || there[i] * (kept[i] < 0 ? -1 : 1) < 0)
                        fail_msg("%s, step %d, state %zu: %.9g from %.9g", m->name, t, i, there[i], kept[i]);
                mem_free(there);
            }
            optimiser_close(&o);
        }
}

/* A bad parameter, a bad gradient, and a large one: 10 * 3e38 overflows, and so does its square. */
static void rows_name_the_first_bad_parameter(void **state) {
    (void)state;
    static float w[N], g[N];
    const struct {
        float *where;
        float value;
    } bad[] = {{w, NAN}, {w, INFINITY}, {g, NAN}, {g, INFINITY}, {g, -INFINITY}, {g, 3e38f}};
    const size_t places[] = {0, 1, 4095, 4096, 9999, N - 1};
    for (EACH_METHOD(m))
        for (size_t b = 0; b < sizeof bad / sizeof *bad; b++)
            for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
                struct optimiser o = opened(m->name, &m->setup[0], N);
                memset(w, 0, sizeof w);
                memset(g, 0, sizeof g);
                bad[b].where[places[p]] = bad[b].where[N - 1] = bad[b].value;
                size_t first = step(&o, w, g, 10);
                if (first != places[p]) fail_msg("%s, case %zu: %zu, not %zu", m->name, b, first, places[p]);
                optimiser_close(&o);
            }
}

/* Arrays of any length that begin where no wide access may. */
static void rows_take_any_length_and_place(void **state) {
    (void)state;
    enum { MOST = 9, ALL = 4 + MOST + 1 };
    for (EACH_METHOD(m))
        for (size_t n = 1; n <= MOST; n++)
            for (size_t shift = 0; shift < 4; shift++) {
                float w[ALL], g[ALL], wanted[ALL], kept[STATES_MAX * MOST] = {0};
                for (size_t i = 0; i < ALL; i++) w[i] = wanted[i] = (float)(i + 1), g[i] = 0.5f + 0.25f * (float)i;
                const size_t grad_shift = 3 - shift % 2;
                m->as_written(wanted + shift, kept, g + grad_shift, n, &m->setup[1], 1, 2);
                struct optimiser o = opened(m->name, &m->setup[1], n);
                float *param = device_upload(w, ALL), *grad = device_upload(g, ALL);
                optimiser_step(&o, param + shift, grad + grad_shift, 2);
                assert_int_equal(optimiser_settle(&o), n);
                device_download(w, param, ALL);
                assert_memory_equal(w, wanted, sizeof w);
                float *there = device_fetch(o.state, o.n_state);
                assert_memory_equal(kept, there, o.n_state * sizeof *kept);
                mem_free(there);
                optimiser_close(&o);
                test_device()->release(param);
                test_device()->release(grad);
            }
}

/* Steps from..to-1 of a run; gradients are those of the step's number. */
static void run_steps(struct optimiser *o, float *w, int from, int to) {
    static float g[N];
    for (int t = from; t < to; t++) {
        struct rng r = rng_open(1, RNG_TEST, 100 + (uint64_t)t);
        rng_normals(&r, 1, g, o->n);
        assert_int_equal(step(o, w, g, 0.01), o->n);
    }
}

static void resumed_runs_go_on_with_the_same_bits(void **state) {
    (void)state;
    enum { STOP = 3, END = 7 };
    static float whole[N], parts[N];
    for (EACH_METHOD(m)) {
        struct rng r = rng_open(1, RNG_TEST, 3);
        rng_normals(&r, 1, whole, N);
        memcpy(parts, whole, sizeof parts);
        struct optimiser o = opened(m->name, &m->setup[1], N), resumed = opened(m->name, &m->setup[1], N);
        run_steps(&o, whole, 0, STOP);
        memcpy(parts, whole, sizeof parts);
        test_device()->copy(resumed.state, o.state, o.n_state * sizeof(float));
        optimiser_set_steps(&resumed, o.steps);
        run_steps(&o, whole, STOP, END);
        run_steps(&resumed, parts, STOP, END);
        assert_int_equal(resumed.steps, END);
        assert_memory_equal(whole, parts, sizeof whole);
        assert_true(device_same_bits(o.state, resumed.state, o.n_state));
        optimiser_close(&o);
        optimiser_close(&resumed);
    }
}

static void sgd_without_momentum_and_decay(void **state) {
    (void)state;
    float w[3] = {1, 2, 3}, g[3] = {4, -8, 0};
    struct optimiser o = opened("sgd", &(struct optimiser_setup){0}, 3);
    for (int i = 0; i < 2; i++) assert_int_equal(step(&o, w, g, 0.25), 3);
    assert_true(w[0] == -1 && w[1] == 6 && w[2] == 3);
    optimiser_close(&o);
}

/* -- Adam --------------------------------------------------------------------------------------------------------- */

static void check_golden(const char *name, const double golden[GOLDEN_DECAYS][GOLDEN_LOOKS][GOLDEN_N]) {
    for (int d = 0; d < GOLDEN_DECAYS; d++) {
        const struct optimiser_setup setup = {
            .beta1 = GOLDEN_BETA1, .beta2 = GOLDEN_BETA2, .epsilon = GOLDEN_EPSILON, .weight_decay = golden_decay[d]};
        float w[GOLDEN_N], g[GOLDEN_N];
        struct rng r = rng_open(GOLDEN_SEED, RNG_TEST, 0);
        rng_normals(&r, 1, w, GOLDEN_N);
        struct optimiser o = opened(name, &setup, GOLDEN_N);
        for (int t = 1, look = 0; look < GOLDEN_LOOKS; t++) {
            r = rng_open(GOLDEN_SEED, RNG_TEST, (uint64_t)t);
            rng_normals(&r, 1, g, GOLDEN_N);
            for (int i = 0; i < GOLDEN_N; i++) g[i] = ldexpf(g[i], 6 * i - 36);
            assert_int_equal(step(&o, w, g, GOLDEN_RATE), GOLDEN_N);
            if (t != golden_look[look]) continue;
            for (int i = 0; i < GOLDEN_N; i++) {
                double apart = fabs(w[i] - golden[d][look][i]) / (GOLDEN_RATE * t);
                if (!(apart < 2 * golden_range))
                    fail_msg("%s, decay %g, step %d, parameter %d: %.9g, not %.17g", name, golden_decay[d], t, i, w[i],
                             golden[d][look][i]);
            }
            look++;
        }
        optimiser_close(&o);
    }
}

static void adam_and_adamw_are_those_of_pytorch(void **state) {
    (void)state;
    check_golden("adam", golden_adam);
    check_golden("adamw", golden_adamw);
}

/* Whatever the gradient, the first step has the length of the rate, while epsilon counts for nothing. */
static void first_step_of_adam_has_the_length_of_the_rate(void **state) {
    (void)state;
    enum { SCALES = 101 };
    const struct optimiser_setup setups[] = {{.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-30},
                                             {.beta1 = 0.5, .beta2 = 0.9999, .epsilon = 1e-30},
                                             {.beta1 = 0, .beta2 = 0, .epsilon = 1e-30}};
    for (size_t k = 0; k < sizeof setups / sizeof *setups; k++) {
        float w[SCALES] = {0}, g[SCALES];
        for (int i = 0; i < SCALES; i++) g[i] = ldexpf(i % 2 ? -1.25f : 1.25f, i - 50);
        struct optimiser o = opened("adam", &setups[k], SCALES);
        assert_int_equal(step(&o, w, g, 0.125), SCALES);
        for (int i = 0; i < SCALES; i++)
            if (!(fabs(w[i] - (i % 2 ? 0.125 : -0.125)) < 0.125 * 1e-6)) fail_msg("2^%d: %.9g", i - 50, w[i]);
        optimiser_close(&o);
    }
}

/* Gradients that are all the same number of times as large make the same steps: it is no matter to Adam whether those
 * of the ranks are summed or averaged, nor, where every rank updates on its own, in which unit it sends them. */
static void adam_does_not_see_the_scale_of_gradients(void **state) {
    (void)state;
    static float one[N], other[N], g[N];
    const struct optimiser_setup setup = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-30};
    const int scales[] = {20, -20};
    for (size_t k = 0; k < sizeof scales / sizeof *scales; k++) {
        struct rng r = rng_open(1, RNG_TEST, 4);
        rng_normals(&r, 1, one, N);
        memcpy(other, one, sizeof other);
        struct optimiser a = opened("adam", &setup, N), b = opened("adam", &setup, N);
        for (int t = 0; t < 5; t++) {
            rng_normals(&r, 1, g, N);
            assert_int_equal(step(&a, one, g, 0.01), N);
            for (size_t i = 0; i < N; i++) g[i] = ldexpf(g[i], scales[k]);
            assert_int_equal(step(&b, other, g, 0.01), N);
        }
        assert_memory_equal(one, other, sizeof one);
        optimiser_close(&a);
        optimiser_close(&b);
    }
}

/* t counts: forgotten, the first steps of a resumed run would be corrected again. Very late it counts no more. */
static void adam_knows_the_number_of_its_step(void **state) {
    (void)state;
    const struct optimiser_setup setup = {ADAM_USUAL};
    const uint64_t steps[] = {0, 1, 999, (uint64_t)1 << 40, UINT64_MAX - 1};
    float moved[sizeof steps / sizeof *steps];
    for (size_t k = 0; k < sizeof steps / sizeof *steps; k++) {
        float w = 0, g = 1;
        struct optimiser o = opened("adam", &setup, 1);
        optimiser_set_steps(&o, steps[k]);
        assert_int_equal(step(&o, &w, &g, 1), 1);
        assert_true(o.steps == steps[k] + 1);
        const double t = (double)steps[k] + 1;
        const double wanted = -0.1 / (1 - pow(0.9, t)) / (sqrt(0.001 / (1 - pow(0.999, t))) + 1e-8);
        if (!(fabs(w - wanted) < 2e-5 * fabs(wanted))) fail_msg("step %g: %.9g, not %.9g", t, w, wanted);
        moved[k] = w;
        optimiser_close(&o);
    }
    assert_true(moved[0] != moved[1] && moved[1] != moved[2] && moved[3] == moved[4]);
}

static struct optimiser_setup wrong;

static void ask_for_rates(void) {
    const struct optimiser o = {.setup = wrong};
    adam_rates_of(&o, 0.1);
}

static void adam_refuses_what_is_no_setup(void **state) {
    (void)state;
    const struct optimiser_setup right = {ADAM_USUAL};
    struct optimiser_setup setups[] = {right, right, right, right, right, right, {.momentum = 0.9}, right};
    setups[0].beta1 = 1;
    setups[1].beta1 = -0.1;
    setups[2].beta2 = 1;
    setups[3].beta2 = 0.99999999; /* 1 as a float */
    setups[4].beta2 = NAN;
    setups[5].epsilon = 0;
    const size_t count = sizeof setups / sizeof *setups;
    char text[512];
    for (size_t k = 0; k < count; k++) {
        wrong = setups[k];
        int status = in_child(ask_for_rates, text, sizeof text);
        assert_int_equal(status == IN_CHILD_RETURNED, k == count - 1); /* the last one is right */
        if (k < count - 1 && !strstr(text, "beta1")) fail_msg("setup %zu: \"%s\"", k, text);
    }
}

/* Momentum on the gradient before the optimiser, and on its weight decay in it, is momentum on both in it: exactly,
 * where every number is a short sum of powers of two. */
static void momentum_may_come_with_the_gradient(void **state) {
    (void)state;
    enum { FEW = 3, STEPS = 3 };
    const struct optimiser_setup within = {.momentum = 0.5, .weight_decay = 0.25};
    struct optimiser_setup before = within;
    before.gradient_has_momentum = true;
    struct optimiser one = opened("sgd", &within, FEW), other = opened("sgd", &before, FEW);
    float w[FEW] = {1, -2, 4}, same[FEW] = {1, -2, 4}, u[FEW] = {0};
    for (int t = 0; t < STEPS; t++) {
        const float g[FEW] = {(float)t - 1, 3, (float)(t % 2)};
        for (int i = 0; i < FEW; i++) u[i] = 0.5f * u[i] + g[i];
        assert_int_equal(step(&one, w, g, 0.5), FEW);
        assert_int_equal(step(&other, same, u, 0.5), FEW);
        for (int i = 0; i < FEW; i++) assert_true(w[i] == same[i]);
    }
    assert_true(w[0] != 1);
    optimiser_close(&one);
    optimiser_close(&other);
}

int main(void) {
    cmocka_set_message_output(CM_OUTPUT_TAP);
    test_device(); /* says so and ends where there is none */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adam_refuses_what_is_no_setup),
        cmocka_unit_test(every_row_has_its_formula_here),
        cmocka_unit_test(momentum_may_come_with_the_gradient),
        cmocka_unit_test(rows_are_their_formulas),
        cmocka_unit_test(rows_round_as_written),
        cmocka_unit_test(states_decay_to_zero),
        cmocka_unit_test(rows_name_the_first_bad_parameter),
        cmocka_unit_test(rows_take_any_length_and_place),
        cmocka_unit_test(resumed_runs_go_on_with_the_same_bits),
        cmocka_unit_test(sgd_without_momentum_and_decay),
        cmocka_unit_test(adam_and_adamw_are_those_of_pytorch),
        cmocka_unit_test(first_step_of_adam_has_the_length_of_the_rate),
        cmocka_unit_test(adam_does_not_see_the_scale_of_gradients),
        cmocka_unit_test(adam_knows_the_number_of_its_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
