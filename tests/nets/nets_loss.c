/* nets_loss.c: the loss on the device's backend against its definition, at its edges; passes that are repeated from a
 * recording.
 * devices: cuda */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "tests/lib/nets_reference.h"
#include "tests/lib/test_device.h"

enum { CLASSES = 5, ROWS = 3 };

/* The loss of logits z [rows][classes] on the device; dz: host, likewise, may be NULL, and keeps its rows that do not
 * count; it is the gradient of the sum of losses divided by `over`. */
static void loss_of_part(const struct device_ops *device, int rows, int classes, const float *z, const int32_t *label,
                         int valid, double over, float *dz, struct net_result *result) {
    const size_t n = (size_t)rows, bytes = n * (size_t)classes * sizeof *z;
    const struct tensor shape = {.n = rows, .c = 1, .h = 1, .w = 1, .floats = n};
    const struct backend_ops *backend = backend_for(device);
    float *image = mem_zalloc(n, sizeof *image, "images"), *x = device->alloc(n * sizeof *x, "images");
    float *logits = device->alloc(bytes, "logits"), *gradient = device->alloc(bytes, "their gradient");
    device->to_device(logits, z, bytes);
    if (dz) device->to_device(gradient, dz, bytes);
    void *opened = backend->open(&(struct backend_setup){.threads = 1});
    backend->feed(opened, &(struct net_input){.x = image, .label = {label}, .labels = {rows}, .valid = valid}, &shape,
                  x);
    backend->begin(opened, PASS_TRAIN, false);
    backend->loss(opened, 0, logits, rows, classes, over, dz ? gradient : NULL);
    backend->end(opened);
    backend->result(opened, 0, result);
    backend->close(opened);
    if (dz) device->to_host(dz, gradient, bytes);
    device->release(x);
    device->release(logits);
    device->release(gradient);
    mem_free(image);
}

static void loss_of_many(const struct device_ops *device, int rows, int classes, const float *z, const int32_t *label,
                         int valid, float *dz, struct net_result *result) {
    loss_of_part(device, rows, classes, z, label, valid, rows, dz, result);
}

static void loss_of(const struct device_ops *device, const float *z, const int32_t *label, int valid, float *dz,
                    struct net_result *result) {
    loss_of_many(device, ROWS, CLASSES, z, label, valid, dz, result);
}

static void loss_matches_its_definition(void **state) {
    (void)state;
    const struct device_ops *device = test_device();
    double *z = random_numbers(ROWS * CLASSES, 20), dz[ROWS * CLASSES];
    float logits[ROWS * CLASSES], gradient[ROWS * CLASSES] = {0};
    const int32_t label[ROWS] = {0, 4, 2};
    for (int i = 0; i < ROWS * CLASSES; i++) logits[i] = (float)z[i];
    struct net_result result;
    loss_of(device, logits, label, ROWS, gradient, &result);
    double loss = ref_loss(z, label, ROWS, CLASSES, dz);
    assert_true(fabs(result.loss - loss) < 1e-12);
    assert_int_equal(result.count, ROWS);
    for (int i = 0; i < ROWS * CLASSES; i++) {
        assert_true(fabs(gradient[i] - dz[i]) < 1e-7);
        double kept = z[i], unused[ROWS * CLASSES];
        z[i] = kept + 1e-6;
        double above = ref_loss(z, label, ROWS, CLASSES, unused);
        z[i] = kept - 1e-6;
        double difference = (above - ref_loss(z, label, ROWS, CLASSES, unused)) / 2e-6 / ROWS;
        z[i] = kept;
        assert_true(fabs(difference - dz[i]) < 1e-8);
    }
    mem_free(z);
}

static void huge_logits_neither_overflow_nor_vanish(void **state) {
    (void)state;
    const struct device_ops *device = test_device();
    float z[ROWS * CLASSES] = {1e30f, 0, 0, 0, 0, -3e38f, 3e38f, 0, 0, 0, 1000, 1001, 0, 0, 0};
    float dz[ROWS * CLASSES] = {0};
    struct net_result result;
    loss_of(device, z, (const int32_t[]){0, 1, 0}, ROWS, dz, &result);
    assert_true(fabs(result.loss - log1p(exp(1))) < 1e-12); /* only the third row has any */
    assert_int_equal(result.correct, 2);
    for (int i = 0; i < ROWS * CLASSES; i++) assert_true(isfinite(dz[i]));
    loss_of(device, z, (const int32_t[]){1, 1, 1}, ROWS, dz, &result);
    assert_true(isfinite(result.loss) && result.loss > 9e29);
}

static void ties_go_to_the_lower_class(void **state) {
    (void)state;
    const struct device_ops *device = test_device();
    const float z[ROWS * CLASSES] = {2, 2, 2, 2, 2, 0, 1, 7, 7, 1, -1, -1, -1, -1, 0};
    struct net_result result;
    loss_of(device, z, (const int32_t[]){0, 2, 4}, ROWS, NULL, &result);
    assert_int_equal(result.correct, 3);
    loss_of(device, z, (const int32_t[]){1, 3, 4}, ROWS, NULL, &result);
    assert_int_equal(result.correct, 1);
}

static void rows_that_do_not_count_do_not_count(void **state) {
    (void)state;
    const struct device_ops *device = test_device();
    const float z[ROWS * CLASSES] = {0, 0, 0, 0, 0, 9, 0, 0, 0, 0, NAN, 1, 1, 1, 1};
    struct net_result result;
    loss_of(device, z, (const int32_t[]){3, 0, 0}, 2, NULL, &result);
    assert_int_equal(result.count, 2);
    assert_int_equal(result.correct, 1);
    assert_true(fabs(result.loss - log(5) - log(1 + 4 * exp(-9))) < 1e-12);
    float dz[ROWS * CLASSES];
    for (int i = 0; i < ROWS * CLASSES; i++) dz[i] = 7;
    loss_of(device, z, (const int32_t[]){3, 0, 0}, 2, dz, &result);
    for (int i = 0; i < ROWS * CLASSES; i++) assert_int_equal(dz[i] == 7, i >= 2 * CLASSES); /* and are let alone */
    loss_of(device, z, (const int32_t[]){3, 0, 0}, 3, NULL, &result);
    assert_true(isnan(result.loss));
}

/* Many classes, which a GPU shares among the threads of a block: against the definition, with ties at the top. */
static void losses_of_many_classes_match_the_definition(void **state) {
    (void)state;
    enum { MANY = 1003, MANY_ROWS = 70 };
    const size_t n = (size_t)MANY * MANY_ROWS;
    double *z = random_numbers(n, 21), *dz = random_numbers(n, 22);
    float *logits = mem_alloc(n, sizeof *logits, "logits"), *gradient = mem_zalloc(n, sizeof *gradient, "gradients");
    int32_t label[MANY_ROWS];
    for (int i = 0; i < MANY_ROWS; i++) {
        label[i] = i * 331 % MANY;
        if (i % 2) z[i * MANY + label[i]] = 9;                     /* the largest */
        if (i % 4 == 1) z[i * MANY + (label[i] + 500) % MANY] = 9; /* and another one, sometimes before it */
    }
    int wanted = 0;
    for (int i = 0; i < MANY_ROWS; i++) {
        int best = 0;
        for (int c = 1; c < MANY; c++)
            if (z[i * MANY + c] > z[i * MANY + best]) best = c;
        wanted += best == label[i];
    }
    for (size_t i = 0; i < n; i++) logits[i] = (float)z[i];
    struct net_result result;
    loss_of_many(test_device(), MANY_ROWS, MANY, logits, label, MANY_ROWS, gradient, &result);
    double loss = ref_loss(z, label, MANY_ROWS, MANY, dz);
    assert_true(wanted > MANY_ROWS / 4 && wanted < MANY_ROWS / 2);
    assert_int_equal(result.correct, wanted);
    assert_true(fabs(result.loss - loss) < 1e-9);
    for (size_t i = 0; i < n; i++) assert_true(fabs(gradient[i] - dz[i]) < 1e-9);
    mem_free(logits);
    mem_free(gradient);
    mem_free(z);
    mem_free(dz);
}

/* Of a batch that is a part of a step: the gradient of its part of the step's mean, the loss as ever. Few classes and
 * many, which a GPU treats differently; 4 is a power of two, so that the gradients are exact multiples. */
static void a_part_of_a_step_has_its_part_of_the_gradient(void **state) {
    (void)state;
    enum { MANY = 301 };
    static const int classes[] = {CLASSES, MANY};
    const struct device_ops *device = test_device();
    double *z = random_numbers(ROWS * MANY, 25);
    float logits[ROWS * MANY], whole[ROWS * MANY], part[ROWS * MANY];
    const int32_t label[ROWS] = {0, 4, 2};
    for (int i = 0; i < ROWS * MANY; i++) logits[i] = (float)z[i];
    for (size_t c = 0; c < sizeof classes / sizeof *classes; c++) {
        struct net_result of_whole, of_part;
        loss_of_many(device, ROWS, classes[c], logits, label, ROWS, whole, &of_whole);
        loss_of_part(device, ROWS, classes[c], logits, label, ROWS, 4.0 * ROWS, part, &of_part);
        assert_true(of_whole.loss == of_part.loss && of_whole.count == of_part.count);
        for (int i = 0; i < ROWS * classes[c]; i++) assert_true(whole[i] == 4 * part[i] && whole[i] != 0);
    }
    mem_free(z);
}

/* A GPU computes a whole pass twice, the second time recording it, and then repeats it: with the labels and logits of
 * that time. A pass that is watched, and one of another kind, is computed all the same. */
static void whole_passes_are_recorded_and_repeated(void **state) {
    (void)state;
    const struct device_ops *device = test_device();
    if (device_is_host(device)) return; /* it computes every pass */
    unsetenv("SPARSETRAIN_CUDA_GRAPH");
    const struct backend_ops *backend = backend_for(device);
    const float image[ROWS] = {0};
    const struct tensor shape = {.n = ROWS, .c = 1, .h = 1, .w = 1, .floats = ROWS};
    float *x = device->alloc(sizeof image, "images"), z[ROWS * CLASSES];
    float *logits = device->alloc(sizeof z, "logits");
    void *opened = backend->open(&(struct backend_setup){.threads = 1});
    for (int pass = 0; pass < 6; pass++) {
        struct net_result found, wanted;
        const int32_t label[ROWS] = {pass % CLASSES, 2, 4};
        const int valid = 1 + pass % ROWS;
        const bool whole = pass != 4;
        for (int i = 0; i < ROWS * CLASSES; i++) z[i] = (float)((i * 7 + pass * 3) % 11) / 4;
        device->to_device(logits, z, sizeof z);
        backend->feed(opened, &(struct net_input){.x = image, .label = {label}, .labels = {ROWS}, .valid = valid},
                      &shape, x);
        bool computes = backend->begin(opened, PASS_INFER, whole);
        assert_int_equal(computes, pass < 2 || !whole);
        if (computes) {
            backend->loss(opened, 0, logits, ROWS, CLASSES, ROWS, NULL);
            backend->end(opened);
        }
        backend->result(opened, 0, &found);
        loss_of(device, z, label, valid, NULL, &wanted);
        assert_memory_equal(&found.loss, &wanted.loss, sizeof found.loss);
        assert_int_equal(found.correct, wanted.correct);
        assert_int_equal(found.count, valid);
    }
    assert_true(backend->begin(opened, PASS_TRAIN, true));
    backend->loss(opened, 0, logits, ROWS, CLASSES, ROWS, NULL);
    backend->end(opened);
    backend->close(opened);
    device->release(x);
    device->release(logits);
}

int main(void) {
    cmocka_set_message_output(CM_OUTPUT_TAP);
    test_device(); /* says if it is not there */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loss_matches_its_definition),
        cmocka_unit_test(huge_logits_neither_overflow_nor_vanish),
        cmocka_unit_test(ties_go_to_the_lower_class),
        cmocka_unit_test(rows_that_do_not_count_do_not_count),
        cmocka_unit_test(losses_of_many_classes_match_the_definition),
        cmocka_unit_test(a_part_of_a_step_has_its_part_of_the_gradient),
        cmocka_unit_test(whole_passes_are_recorded_and_repeated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
