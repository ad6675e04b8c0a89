/* nets_dropout.c: what a dropout layer drops: as many as it should, and no pattern: neighbours, steps, layers and seeds
 * have nothing to do with each other. tests/nets/nets_layers.c has the layouts and gradients. */
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
#include "nets/backend.h"
#include "tests/lib/test_device.h"

enum { N = 1 << 16 };
/* Means of N numbers with deviation 1 lie within this of what they should be, all but once in 10^6. */
#define FAR (5 / sqrt(N))

struct place {
    uint64_t seed, step;
    int layer;
    double drop;
};

/* The factors of N elements, as the layer of the device applies them to ones. */
static float *factors_at(struct place at) {
    const struct device_ops *device = test_device();
    const struct backend_ops *backend = backend_for(device);
    const struct layer_ops *ops = backend->layer[LAYER_DROPOUT];
    const struct layer_spec spec = {.kind = LAYER_DROPOUT, .dropout = {at.drop}, .number = at.layer};
    const struct tensor x = {.n = N / 64, .c = 64, .h = 1, .w = 1, .floats = N};
    struct tensor y = x;
    int32_t label[N / 64] = {0};
    float *host = mem_alloc(N, sizeof *host, "ones");
    float *one = device->alloc(N * sizeof *one, "ones"), *out = device->alloc(N * sizeof *out, "factors");
    for (size_t i = 0; i < N; i++) host[i] = 1;
    void *state = backend->open(&(struct backend_setup){.threads = 1, .dropout_seed = at.seed});
    void *layer = ops->open(state, &spec, &x, NULL, &y);
    backend->feed(state, &(struct net_input){.x = host, .label = {label}, .labels = {1}, .valid = 1, .step = at.step},
                  &x, one, NULL);
    backend->begin(state, PASS_TRAIN, false);
    ops->forward(layer, &(struct layer_call){.x = one, .y = out}, true);
    backend->end(state);
    device->to_host(host, out, N * sizeof *host);
    ops->close(layer);
    backend->close(state);
    device->release(one);
    device->release(out);
    return host;
}

/* The correlation of kept or dropped between a[i] and b[i + lag]. */
static double correlation(const float *a, const float *b, size_t lag, double drop) {
    double sum = 0, kept = 1 - drop;
    for (size_t i = 0; i + lag < N; i++) sum += ((a[i] != 0) - kept) * ((b[i + lag] != 0) - kept);
    return sum / (double)(N - lag) / (drop * kept);
}

static void as_many_as_asked_for_are_dropped(void **state) {
    (void)state;
    static const double drops[] = {0.5, 0.2, 0.35, 0.65, 0.9};
    for (size_t k = 0; k < sizeof drops / sizeof *drops; k++) {
        double drop = drops[k], scale = 1 / (1 - drop), mean = 0, squares = 0;
        float *factor = factors_at((struct place){3, 8, 2, drop});
        for (size_t i = 0; i < N; i++) {
            assert_true(factor[i] == 0 || factor[i] == (float)scale);
            mean += factor[i] / (double)N;
            squares += (double)factor[i] * factor[i] / N;
        }
        double variance = drop / (1 - drop); /* of a factor; their squares: scale^2 times as far */
        assert_true(fabs(mean - 1) < FAR * sqrt(variance));
        assert_true(fabs(squares - mean * mean - variance) < FAR * scale * sqrt(variance) * 2);
        mem_free(factor);
    }
}

static void nothing_is_dropped_with_probability_0(void **state) {
    (void)state;
    float *factor = factors_at((struct place){3, 8, 2, 0});
    for (size_t i = 0; i < N; i++) assert_true(factor[i] == 1);
    mem_free(factor);
}

static void neighbours_are_independent(void **state) {
    (void)state;
    float *factor = factors_at((struct place){3, 8, 2, 0.35});
    for (size_t lag = 1; lag <= 300; lag++) assert_true(fabs(correlation(factor, factor, lag, 0.35)) < FAR);
    mem_free(factor);
}

/* Also where only the upper half of a number differs, and at a distance. */
static void steps_layers_and_seeds_are_independent(void **state) {
    (void)state;
    static const struct place places[] = {
        {3, 8, 2, 0.5}, {3, 9, 2, 0.5}, {3, 10, 2, 0.5}, {3, 8 + (1ull << 32), 2, 0.5}, {3, 8, 3, 0.5},
        {3, 8, 4, 0.5}, {3, 9, 3, 0.5}, {4, 8, 2, 0.5},  {3 + (1ull << 32), 8, 2, 0.5}, {8, 3, 2, 0.5}};
    enum { PLACES = sizeof places / sizeof *places };
    float *factor[PLACES];
    for (size_t i = 0; i < PLACES; i++) factor[i] = factors_at(places[i]);
    for (size_t i = 0; i < PLACES; i++)
        for (size_t j = 0; j < i; j++)
            for (size_t lag = 0; lag < 9; lag++) {
                assert_true(fabs(correlation(factor[i], factor[j], lag, 0.5)) < FAR);
                assert_true(fabs(correlation(factor[j], factor[i], lag, 0.5)) < FAR);
            }
    for (size_t i = 0; i < PLACES; i++) mem_free(factor[i]);
}

/* A mask is a function of its place alone. */
static void a_place_has_one_mask(void **state) {
    (void)state;
    float *a = factors_at((struct place){3, 8, 2, 0.5}), *b = factors_at((struct place){3, 8, 2, 0.5});
    assert_memory_equal(a, b, N * sizeof *a);
    mem_free(a);
    mem_free(b);
}

int main(void) {
    cmocka_set_message_output(CM_OUTPUT_TAP);
    test_device();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_many_as_asked_for_are_dropped),
        cmocka_unit_test(nothing_is_dropped_with_probability_0),
        cmocka_unit_test(neighbours_are_independent),
        cmocka_unit_test(steps_layers_and_seeds_are_independent),
        cmocka_unit_test(a_place_has_one_mask),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
