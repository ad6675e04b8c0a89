/* nets_ctc.c: CTC's loss of the device's backend (nets/ctc.h): against the sum over all paths where they can be
 * counted, against golden values of PyTorch in double precision, its gradient against differences of itself; utterances
 * that do not count, what is behind their ends, and the best path. */
/* devices: cuda */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>
#include <stdio.h>

#include "tests/golden/speech.h"
#include "tests/lib/nets_reference_frames.h"
#include "tests/lib/test_device.h"

enum { BATCH_MAX = 6, STRIDE_MAX = 64 };

/* A batch, host memory. */
struct batch {
    int steps, batch, classes, stride, valid, frames; /* frames: of a step */
    float *logits;                                    /* [steps][batch][classes] */
    int32_t lengths[BATCH_MAX], label[BATCH_MAX * STRIDE_MAX];
    double over;
};

/* What the backend makes of it. */
struct outcome {
    struct net_result result;
    float *dlogits;
    int32_t *path; /* [batch][steps] */
};

static size_t floats_of(const struct batch *b) {
    return (size_t)b->steps * (size_t)b->batch * (size_t)b->classes;
}

static void feed(const struct backend_ops *backend, void *state, const struct batch *b) {
    const struct tensor shape = {.n = 1, .c = 1, .h = 1, .w = 1, .floats = 1};
    const float image = 0;
    float *x = test_device()->alloc(sizeof image, "an image");
    backend->feed(state,
                  &(struct net_input){.x = &image,
                                      .label = {b->label},
                                      .labels = {b->batch * b->stride},
                                      .label_stride = b->stride,
                                      .valid = b->valid,
                                      .over = {b->over}},
                  &shape, x, NULL);
    test_device()->release(x);
}

static struct outcome run(const struct batch *b, bool training) {
    const struct device_ops *device = test_device();
    const struct backend_ops *backend = backend_for(device);
    void *state = backend->open(&(struct backend_setup){.threads = 1});
    struct outcome o = {.path = mem_alloc((size_t)(b->steps * b->batch), sizeof *o.path, "a path")};
    float *logits = device_upload(b->logits, floats_of(b)), *dlogits = device_upload(b->logits, floats_of(b));
    int32_t *lengths = device->alloc(sizeof b->lengths, "lengths");
    device->to_device(lengths, b->lengths, sizeof b->lengths);
    feed(backend, state, b);
    backend->begin(state, PASS_TRAIN, false);
    backend->ctc(state, &(struct ctc_call){.logits = logits,
                                           .dlogits = training ? dlogits : NULL,
                                           .lengths = lengths,
                                           .steps = b->steps,
                                           .batch = b->batch,
                                           .classes = b->classes,
                                           .frames = b->frames});
    backend->end(state);
    backend->result(state, 0, &o.result);
    memcpy(o.path, backend->best_path(state), (size_t)(b->steps * b->batch) * sizeof *o.path);
    o.dlogits = device_fetch(dlogits, floats_of(b));
    device->release(logits);
    device->release(dlogits);
    device->release(lengths);
    backend->close(state);
    return o;
}

static void outcome_close(struct outcome *o) {
    mem_free(o->dlogits);
    mem_free(o->path);
}

static double loss_of(const struct batch *b) {
    struct outcome o = run(b, false);
    const double loss = o.result.loss;
    outcome_close(&o);
    return loss;
}

static float *random_logits(size_t n, uint64_t number) {
    double *v = random_numbers(n, 100 + number);
    float *z = mem_alloc(n, sizeof *z, "logits");
    for (size_t i = 0; i < n; i++) z[i] = (float)(2 * v[i]);
    mem_free(v);
    return z;
}

/* One utterance. labels: ended by -1. */
static struct batch single(int steps, int classes, const int32_t *labels, uint64_t number) {
    struct batch b = {.steps = steps, .batch = 1, .classes = classes, .stride = STRIDE_MAX, .valid = 1, .over = 1};
    b.frames = 1;
    b.lengths[0] = steps;
    for (int i = 0; i < STRIDE_MAX; i++) b.label[i] = -1;
    for (int i = 0; labels[i] >= 0; i++) b.label[i] = labels[i];
    b.logits = random_logits(floats_of(&b), number);
    return b;
}

/* Steps, classes, labels. */
static const struct small {
    int steps, classes;
    int32_t labels[6];
} smalls[] = {{1, 2, {-1}},       {1, 3, {2, -1}},    {2, 3, {1, 2, -1}},       {3, 3, {1, 1, -1}},
              {4, 3, {1, 1, -1}}, {5, 4, {3, 1, -1}}, {6, 3, {2, 1, 2, -1}},    {6, 3, {1, 1, 1, -1}},
              {7, 2, {1, -1}},    {5, 3, {-1}},       {6, 4, {3, 3, 1, 2, -1}}, {5, 5, {1, 2, 3, 4, 1, -1}}};

static void the_loss_is_that_of_all_paths(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof smalls / sizeof *smalls; i++) {
        struct batch b = single(smalls[i].steps, smalls[i].classes, smalls[i].labels, i);
        double *z = mem_alloc(floats_of(&b), sizeof *z, "logits");
        for (size_t j = 0; j < floats_of(&b); j++) z[j] = b.logits[j];
        const double wanted = ref_ctc_all_paths(z, b.steps, b.classes, b.label, ctc_labels(b.label, b.stride));
        if (!(fabs(loss_of(&b) - wanted) <= 1e-9 * (1 + wanted)))
            fail_msg("case %zu: %.12g, all paths have %.12g", i, loss_of(&b), wanted);
        mem_free(z);
        mem_free(b.logits);
    }
}

static void the_gradient_is_the_difference_of_losses(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof smalls / sizeof *smalls; i++) {
        struct batch b = single(smalls[i].steps, smalls[i].classes, smalls[i].labels, i);
        b.over = 2.5;
        struct outcome o = run(&b, true);
        for (size_t j = 0; j < floats_of(&b); j++) {
            const float kept = b.logits[j], above = kept + 0x1p-10f, below = kept - 0x1p-10f;
            b.logits[j] = above;
            const double high = loss_of(&b);
            b.logits[j] = below;
            const double difference = (high - loss_of(&b)) / ((double)above - below) / b.over;
            b.logits[j] = kept;
            if (!(fabs(difference - o.dlogits[j]) <= 1e-6))
                fail_msg("case %zu, logit %zu: %.9g, differences say %.9g", i, j, (double)o.dlogits[j], difference);
        }
        outcome_close(&o);
        mem_free(b.logits);
    }
}

static void it_is_that_of_pytorch(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof golden_ctc / sizeof *golden_ctc; i++) {
        int32_t labels[STRIDE_MAX + 1];
        struct rng r = rng_open(GOLDEN_SEED, RNG_TEST, 3000 + i);
        for (int k = 0; k < golden_ctc[i].labels; k++)
            labels[k] = 1 + (int32_t)(rng_u32(&r) % (uint32_t)(golden_ctc[i].classes - 1));
        labels[golden_ctc[i].labels] = -1;
        struct batch b = single(golden_ctc[i].steps, golden_ctc[i].classes, labels, 0);
        r = rng_open(GOLDEN_SEED, RNG_TEST, 2000 + i);
        for (size_t j = 0; j < floats_of(&b); j++) b.logits[j] = 2 * (float)rng_normal(&r);
        struct outcome o = run(&b, true);
        golden_near(o.result.loss, golden_ctc[i].loss, 1e-9 * golden_ctc[i].loss, "loss", (int)i);
        golden_check(o.dlogits, floats_of(&b), &golden_ctc[i].gradient, 1e-7, "gradient", (int)i);
        outcome_close(&o);
        mem_free(b.logits);
    }
}

/* -- batches ------------------------------------------------------------------------------------------------------- */

/* Utterances of 9, 0, 4, 9, 5 and 2 steps of two frames; the label of the fourth needs 10 steps, the last is not valid.
 */
static struct batch several(void) {
    static const int32_t labels[BATCH_MAX][6] = {{1, 2, 2, 3, 1, -1}, {1, -1, -1, -1, -1, -1}, {-1, 5, 5, 5, 5, 5},
                                                 {1, 1, 1, 1, 1, -1}, {4, 3, 2, 1, 2, -1},     {1, -1, -1, -1, -1, -1}};
    static const int32_t lengths[BATCH_MAX] = {18, 0, 7, 17, 10, 4};
    struct batch b = {.steps = 9, .batch = BATCH_MAX, .classes = 6, .stride = 6, .valid = 5, .frames = 2, .over = 3};
    memcpy(b.lengths, lengths, sizeof lengths);
    memcpy(b.label, labels, sizeof labels);
    b.label[3 * 6 + 5] = 1; /* six equal ones */
    b.logits = random_logits(floats_of(&b), 50);
    return b;
}

static int steps_in(const struct batch *b, int u) {
    return steps_of(b->lengths[u], b->frames);
}

/* Each as if it were alone. */
static void utterances_of_a_batch_are_their_own(void **state) {
    (void)state;
    struct batch b = several();
    struct outcome all = run(&b, true);
    static const bool counts[BATCH_MAX] = {true, false, true, false, true, false};
    double loss = 0;
    for (int u = 0; u < b.batch; u++) {
        struct batch one = b;
        one.batch = one.valid = 1;
        one.lengths[0] = b.lengths[u];
        memcpy(one.label, b.label + u * b.stride, (size_t)b.stride * sizeof *b.label);
        one.logits = random_logits(floats_of(&one), 0);
        for (int t = 0; t < b.steps; t++)
            memcpy(one.logits + t * b.classes, b.logits + (t * b.batch + u) * b.classes, 6 * sizeof *b.logits);
        struct outcome o = run(&one, true);
        if (counts[u]) loss += o.result.loss;
        if (u < b.valid) assert_int_equal(o.result.count, counts[u]);
        for (int t = 0; t < b.steps; t++)
            for (int k = 0; k < b.classes; k++) {
                const float found = all.dlogits[(t * b.batch + u) * b.classes + k];
                const bool zero = !counts[u] || t >= steps_in(&b, u);
                assert_true(found == (zero ? 0 : o.dlogits[t * b.classes + k]));
            }
        assert_memory_equal(all.path + u * b.steps, o.path, (size_t)b.steps * sizeof *o.path);
        outcome_close(&o);
        mem_free(one.logits);
    }
    assert_int_equal(all.result.count, 3);
    assert_int_equal(all.result.correct, 0);
    assert_true(all.result.loss == loss);
    outcome_close(&all);
    mem_free(b.logits);
}

static void what_is_behind_the_end_does_not_matter(void **state) {
    (void)state;
    struct batch b = several();
    struct outcome before = run(&b, true);
    for (int t = 0; t < b.steps; t++)
        for (int u = 0; u < b.batch; u++)
            for (int k = 0; t >= steps_in(&b, u) && k < b.classes; k++)
                b.logits[(t * b.batch + u) * b.classes + k] = NAN;
    struct outcome after = run(&b, true);
    assert_memory_equal(&before.result.loss, &after.result.loss, sizeof before.result.loss);
    assert_memory_equal(before.dlogits, after.dlogits, floats_of(&b) * sizeof *before.dlogits);
    assert_memory_equal(before.path, after.path, (size_t)(b.steps * b.batch) * sizeof *before.path);
    outcome_close(&before);
    outcome_close(&after);
    mem_free(b.logits);
}

static void the_best_path_takes_the_lower_of_equal_classes(void **state) {
    (void)state;
    struct batch b = several();
    for (size_t i = 0; i < floats_of(&b); i++) b.logits[i] = (float)((i * 7 + i / 5) % 3); /* many are equal */
    struct outcome o = run(&b, false);
    for (int u = 0; u < b.batch; u++)
        for (int t = 0; t < b.steps; t++) {
            const float *z = b.logits + (t * b.batch + u) * b.classes;
            int best = 0;
            for (int k = 1; k < b.classes; k++)
                if (z[k] > z[best]) best = k;
            assert_int_equal(o.path[u * b.steps + t], t < steps_in(&b, u) ? best : -1);
        }
    outcome_close(&o);
    mem_free(b.logits);
}

/* Probabilities far below the least of a double, of labels that are nowhere likely. */
static void losses_of_a_thousand_are_finite(void **state) {
    (void)state;
    struct batch b = single(60, 3, (const int32_t[]){1, 2, 1, 2, 1, 1, 2, 2, 1, 2, -1}, 70);
    for (size_t i = 0; i < floats_of(&b); i++) b.logits[i] = i % 3 == 0 ? 200 : b.logits[i];
    struct outcome o = run(&b, true);
    assert_true(o.result.loss > 1900 && o.result.loss < 2100);
    for (size_t i = 0; i < floats_of(&b); i++) assert_true(isfinite(o.dlogits[i]));
    outcome_close(&o);
    mem_free(b.logits);
}

int main(void) {
    cmocka_set_message_output(CM_OUTPUT_TAP);
    test_device();
    if (!backend_for(test_device())->ctc) {
        printf("# SKIP nets_ctc: the backend of device %s does not compute this loss\n1..0\n", test_device()->name);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_loss_is_that_of_all_paths),
        cmocka_unit_test(the_gradient_is_the_difference_of_losses),
        cmocka_unit_test(it_is_that_of_pytorch),
        cmocka_unit_test(utterances_of_a_batch_are_their_own),
        cmocka_unit_test(what_is_behind_the_end_does_not_matter),
        cmocka_unit_test(the_best_path_takes_the_lower_of_equal_classes),
        cmocka_unit_test(losses_of_a_thousand_are_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
