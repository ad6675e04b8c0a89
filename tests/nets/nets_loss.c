/* nets_loss.c: the loss on the device's backend against its definition, at its edges; passes that are repeated from a
 * recording; two losses of a pass.
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
#include "nets/cuda/cuda_index.h"
#include "tests/lib/nets_reference.h"
#include "tests/lib/test_device.h"

enum { CLASSES = 5, ROWS = 3 };

/* How logits and their gradient lie in memory. shift: bytes of each array before its first row. */
struct way {
    int layout, pitch;
    size_t shift;
};

static size_t bytes_of(const struct way *way, int rows, int classes) {
    const size_t width = way->layout == LAYOUT_CANONICAL ? sizeof(float) : sizeof(struct bf16);
    return (size_t)rows * (size_t)(way->pitch ? way->pitch : classes) * width;
}

/* The loss of logits z [rows][classes] on the device; dz: host, likewise, may be NULL, and keeps its rows that do not
 * count; it is the gradient of the sum of losses divided by `over`. Where it is z the device has one array for both. */
static void loss_of_way(const struct device_ops *device, struct way way, int rows, int classes, const void *z,
                        const int32_t *label, int valid, double over, void *dz, struct net_result *result) {
    const struct tensor of_logits = {.n = rows, .c = classes, .h = 1, .w = 1, .layout = way.layout, .pitch = way.pitch};
    const size_t n = (size_t)rows, bytes = bytes_of(&way, rows, classes), floats = way.shift / sizeof(float);
    const struct tensor shape = {.n = rows, .c = 1, .h = 1, .w = 1, .floats = n};
    const struct backend_ops *backend = backend_for(device);
    float *image = mem_zalloc(n, sizeof *image, "images"), *x = device->alloc(n * sizeof *x, "images");
    float *of_z = device->alloc(way.shift + bytes, "logits"), *of_dz = device->alloc(way.shift + bytes, "gradients");
    float *logits = of_z + floats, *gradient = dz == z ? logits : of_dz + floats;
    if (dz) device->to_device(gradient, dz, bytes);
    device->to_device(logits, z, bytes);
    void *opened = backend->open(&(struct backend_setup){.threads = 1});
    backend->feed(opened,
                  &(struct net_input){.x = image, .label = {label}, .labels = {rows}, .valid = valid, .over = {over}},
                  &shape, x, NULL);
    backend->begin(opened, PASS_TRAIN, false);
    backend->loss(opened, 0, &of_logits, logits, dz ? gradient : NULL);
    backend->end(opened);
    backend->result(opened, 0, result);
    backend->close(opened);
    if (dz) device->to_host(dz, gradient, bytes);
    device->release(x);
    device->release(of_z);
    device->release(of_dz);
    mem_free(image);
}

static void loss_of_part(const struct device_ops *device, int rows, int classes, const float *z, const int32_t *label,
                         int valid, double over, float *dz, struct net_result *result) {
    loss_of_way(device, (struct way){.layout = LAYOUT_CANONICAL}, rows, classes, z, label, valid, over, dz, result);
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

/* Labels below 0, whatever the logits of their rows are: z [rows][classes] with NaN in those rows. The
 * reference sees the others alone. */
static void check_labelled(int rows, int classes, const double *z, const int32_t *label) {
    const size_t n = (size_t)rows * (size_t)classes, row = (size_t)classes;
    double *kept = mem_alloc(n, sizeof *kept, "logits"), *wanted = mem_zalloc(n, sizeof *wanted, "gradients");
    float *logits = mem_alloc(n, sizeof *logits, "logits"), *found = mem_alloc(n, sizeof *found, "gradients");
    int32_t *own = mem_alloc((size_t)rows, sizeof *own, "labels");
    int count = 0;
    for (int i = 0; i < rows; i++) {
        for (size_t c = 0; c < row; c++) {
            logits[(size_t)i * row + c] = label[i] < 0 ? NAN : (float)z[(size_t)i * row + c];
            found[(size_t)i * row + c] = 7;
        }
        if (label[i] < 0) continue;
        memcpy(kept + (size_t)count * row, z + (size_t)i * row, row * sizeof *z);
        own[count++] = label[i];
    }
    struct net_result result;
    loss_of_part(test_device(), rows, classes, logits, label, rows, 2.0 * count + 1, found, &result);
    const double loss = ref_loss(kept, own, count, classes, wanted);
    assert_int_equal(result.count, count);
    assert_true(fabs(result.loss - loss) < 1e-9);
    if (count == 0) assert_true(result.loss == 0 && result.correct == 0);
    for (int i = 0, k = 0; i < rows; k += label[i++] >= 0)
        for (size_t c = 0; c < row; c++) {
            const double here = found[(size_t)i * row + c];
            if (label[i] < 0)
                assert_true(here == 0);
            else
                assert_true(fabs(here - wanted[(size_t)k * row + c] * count / (2.0 * count + 1)) < 1e-8);
        }
    void *memory[] = {kept, wanted, logits, found, own};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) mem_free(memory[i]);
}

/* Few classes and many; all rows, some, none of them. */
static void rows_without_a_label_do_not_count(void **state) {
    (void)state;
    enum { MANY = 301, SOME_ROWS = 150 };
    double *z = random_numbers((size_t)SOME_ROWS * MANY, 26);
    for (int every = 0; every <= 3; every++) {
        int32_t few[SOME_ROWS], many[SOME_ROWS];
        for (int i = 0; i < SOME_ROWS; i++) {
            const bool counts = every > 0 && i % every == 0;
            few[i] = counts ? i * 7 % CLASSES : -1 - i % 3 * 50;
            many[i] = counts ? i * 7 % MANY : -1;
        }
        check_labelled(SOME_ROWS, CLASSES, z, few);
        check_labelled(SOME_ROWS, MANY, z, many);
    }
    mem_free(z);
}

/* -- rows of every width, in all ways that a GPU reads them -------------------------------------------------------- */

/* Rows, each of its kind. Vectors of 8 bf16 or 4 floats end before class 8; the thread that has that vector has the one
 * at 1032, too. FAR is the last class that there is. */
enum {
    PLAIN,
    TIE_FOUND,
    TIE_MISSED,
    TIE_FAR,
    TIE_OF_ONE_THREAD,
    LAST_IS_BEST,
    FIRST_IS_NAN,
    SOME_ARE_NAN,
    LAST_IS_NAN,
    ONE_IS_INFINITE,
    FIRST_IS_LEAST,
    ALL_BUT_ONE_ARE_LEAST,
    ALL_ARE_LEAST,
    HUGE_ONES,
    NOT_VALID,
    KINDS
};

static int label_of(int kind, int classes) {
    const int last = classes - 1;
    if (kind == LAST_IS_BEST || kind == LAST_IS_NAN) return last;
    if (kind == FIRST_IS_NAN) return 0;
    return (kind == TIE_MISSED ? 8 : 7) % classes;
}

static void fill_row(int kind, int classes, float *z) {
    const int last = classes - 1, one = 7 % classes, next = 8 % classes, later = 1032 < classes ? 1032 : last;
    switch (kind) {
    case TIE_FOUND:
    case TIE_MISSED:
        z[one] = z[next] = 20;
        break;
    case TIE_FAR:
        z[one] = z[last] = 20;
        break;
    case TIE_OF_ONE_THREAD:
        z[one] = z[later] = z[last] = 20;
        break;
    case LAST_IS_BEST:
        z[last] = 20;
        break;
    case FIRST_IS_NAN:
        z[0] = NAN;
        break;
    case SOME_ARE_NAN:
        z[one] = 20;
        z[next] = z[later] = NAN;
        break;
    case LAST_IS_NAN:
        z[last] = NAN;
        break;
    case ONE_IS_INFINITE:
        z[one] = INFINITY;
        break;
    case FIRST_IS_LEAST:
        z[0] = -INFINITY;
        break;
    case ALL_BUT_ONE_ARE_LEAST:
    case ALL_ARE_LEAST:
        for (int c = 0; c < classes; c++) z[c] = -INFINITY;
        if (kind == ALL_BUT_ONE_ARE_LEAST) z[one] = -1;
        break;
    case HUGE_ONES:
        for (int c = 0; c < classes; c++) z[c] *= 1e37f;
        z[one] = 3e38f;
        z[next] = -3e38f;
        break;
    default:
        break;
    }
}

/* As nets/cuda/cuda_loss.h and nets/cpu/cpu_layers.h say it, plainly. */
static double plain_loss(const float *z, int classes, int label, double over, double *dz, int *best) {
    double sum = 0;
    *best = 0;
    for (int c = 1; c < classes; c++)
        if (z[c] > z[*best]) *best = c;
    const double top = z[*best];
    for (int c = 0; c < classes; c++) sum += exp(z[c] - top);
    for (int c = 0; c < classes; c++) dz[c] = (exp(z[c] - top) / sum - (c == label)) / over;
    return log(sum) - (z[label] - top);
}

/* All kinds of rows; the host's arrays as they lie in memory. */
struct widths_case {
    struct way way;
    int classes, pitch;
    float *z;                   /* [KINDS][classes] */
    double *wanted, own[KINDS]; /* gradients, likewise; losses */
    bool best[KINDS];           /* the label is */
    void *logits, *found;
};

enum { OVER = 5 };

static float element(const struct widths_case *t, const void *array, int row, int c) {
    const size_t at = (size_t)row * (size_t)t->pitch + (size_t)c;
    return t->way.layout == LAYOUT_CANONICAL ? ((const float *)array)[at]
                                             : bf16_value(((const struct bf16 *)array)[at]);
}

static struct widths_case widths_open(struct way way, int classes) {
    const size_t n = (size_t)KINDS * (size_t)classes, bytes = bytes_of(&way, KINDS, classes);
    struct widths_case t = {.way = way, .classes = classes, .pitch = way.pitch ? way.pitch : classes};
    double *random = random_numbers(n, 23);
    t.z = mem_alloc(n, sizeof *t.z, "logits");
    t.wanted = mem_alloc(n, sizeof *t.wanted, "gradients");
    t.logits = mem_alloc(1, bytes, "logits");
    t.found = mem_alloc(1, bytes, "gradients");
    memset(t.logits, 0xff, bytes); /* NaN between the rows */
    for (int kind = 0; kind < KINDS; kind++) {
        float *z = t.z + (size_t)kind * (size_t)classes;
        for (int c = 0; c < classes; c++) z[c] = (float)(4 * random[(size_t)kind * (size_t)classes + (size_t)c]);
        fill_row(kind, classes, z);
        for (int c = 0; c < classes; c++) {
            const size_t at = (size_t)kind * (size_t)t.pitch + (size_t)c;
            if (way.layout == LAYOUT_CANONICAL) {
                ((float *)t.logits)[at] = z[c];
            } else {
                ((struct bf16 *)t.logits)[at] = bf16_of(z[c]);
                z[c] = bf16_value(((struct bf16 *)t.logits)[at]);
            }
        }
        int best;
        const int label = label_of(kind, classes);
        t.own[kind] = plain_loss(z, classes, label, OVER, t.wanted + (size_t)kind * (size_t)classes, &best);
        t.best[kind] = best == label;
    }
    mem_free(random);
    return t;
}

static void widths_close(struct widths_case *t) {
    void *memory[] = {t->z, t->wanted, t->logits, t->found};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) mem_free(memory[i]);
}

static void check_gradients(const struct widths_case *t, const int32_t *label) {
    const bool is_float = t->way.layout == LAYOUT_CANONICAL;
    const double relative = is_float ? 1e-7 : 1. / 250, least = is_float ? 1e-9 : 1e-7; /* bf16 has 8 bits */
    for (int i = 0; i < NOT_VALID; i++)
        for (int c = 0; c < t->pitch; c++) {
            const double found = element(t, t->found, i, c);
            const double wanted = c < t->classes && label[i] >= 0 ? t->wanted[i * t->classes + c] : 0;
            if (isnan(wanted) ? !isnan(found) : !(fabs(found - wanted) <= relative * fabs(wanted) + least))
                fail_msg("layout %d, %d classes, pitch %d, row %d: gradient %d is %g, not %g", t->way.layout,
                         t->classes, t->pitch, i, c, found, wanted);
        }
}

/* Those of its rows that have a loss, or those whose loss is NaN; the others have no label. The last is not valid. */
static void check_rows(const struct device_ops *device, struct widths_case *t, bool with_nan, bool in_place) {
    const size_t bytes = bytes_of(&t->way, KINDS, t->classes), last = bytes / KINDS * NOT_VALID;
    struct net_result wanted = {0}, found, alone;
    int32_t label[KINDS];
    for (int i = 0; i < KINDS; i++) {
        const bool counts = (isnan(t->own[i]) != 0) == with_nan;
        label[i] = counts ? label_of(i, t->classes) : -1;
        if (i == NOT_VALID || !counts) continue;
        wanted.loss += t->own[i];
        wanted.correct += t->best[i];
        wanted.count++;
    }
    assert_true(wanted.count >= 5 && wanted.correct > 0 && wanted.correct < wanted.count);
    if (in_place)
        memcpy(t->found, t->logits, bytes);
    else
        memset(t->found, 0x7f, bytes);
    char *kept = mem_alloc(1, bytes - last, "a row");
    memcpy(kept, (char *)t->found + last, bytes - last);
    loss_of_way(device, t->way, KINDS, t->classes, in_place ? t->found : t->logits, label, NOT_VALID, OVER, t->found,
                &found);
    loss_of_way(device, t->way, KINDS, t->classes, t->logits, label, NOT_VALID, OVER, NULL, &alone);
    assert_memory_equal(&found.loss, &alone.loss, sizeof found.loss);
    assert_int_equal(found.correct, alone.correct);
    assert_int_equal(found.correct, wanted.correct);
    assert_int_equal(found.count, wanted.count);
    const double tolerance = t->way.layout == LAYOUT_CANONICAL ? 1e-10 : 1e-6;
    if (with_nan)
        assert_true(isnan(found.loss));
    else
        assert_true(fabs(found.loss - wanted.loss) <= tolerance * wanted.loss);
    check_gradients(t, label);
    assert_memory_equal((char *)t->found + last, kept, bytes - last);
    mem_free(kept);
}

static void rows_of_any_width_match_the_definition(void **state) {
    (void)state;
    enum { WHOLE = 8, WAYS = 7 };
    static const int widths[] = {5, 64, 65, 67, 129, 136, 1001, 2057};
    const struct device_ops *device = test_device();
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
        const int classes = widths[w], pitch = (classes + WHOLE - 1) / WHOLE * WHOLE;
        const struct way ways[WAYS] = {{LAYOUT_CANONICAL, 0, 0},     {LAYOUT_CANONICAL, pitch, 0},
                                       {LAYOUT_CANONICAL, pitch, 4}, {CUDA_NHWC_BF16, 0, 0},
                                       {CUDA_NHWC_BF16, pitch, 0},   {CUDA_NHWC_BF16, pitch + WHOLE, 0},
                                       {CUDA_NHWC_BF16, pitch, 4}};
        for (int k = 0; k < (device_is_host(device) ? 1 : WAYS); k++) { /* the CPU has the first alone */
            struct widths_case t = widths_open(ways[k], classes);
            for (int with_nan = 0; with_nan < 2; with_nan++)
                for (int in_place = 0; in_place < (device_is_host(device) ? 1 : 2); in_place++)
                    check_rows(device, &t, with_nan, in_place);
            widths_close(&t);
        }
    }
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
    const struct tensor of_logits = {.n = ROWS, .c = CLASSES, .h = 1, .w = 1};
    void *opened = backend->open(&(struct backend_setup){.threads = 1});
    for (int pass = 0; pass < 6; pass++) {
        struct net_result found, wanted;
        const int32_t label[ROWS] = {pass % CLASSES, 2, 4};
        const int valid = 1 + pass % ROWS;
        const bool whole = pass != 4;
        for (int i = 0; i < ROWS * CLASSES; i++) z[i] = (float)((i * 7 + pass * 3) % 11) / 4;
        device->to_device(logits, z, sizeof z);
        backend->feed(opened, &(struct net_input){.x = image, .label = {label}, .labels = {ROWS}, .valid = valid},
                      &shape, x, NULL);
        bool computes = backend->begin(opened, PASS_INFER, whole);
        assert_int_equal(computes, pass < 2 || !whole);
        if (computes) {
            backend->loss(opened, 0, &of_logits, logits, NULL);
            backend->end(opened);
        }
        backend->result(opened, 0, &found);
        loss_of(device, z, label, valid, NULL, &wanted);
        assert_memory_equal(&found.loss, &wanted.loss, sizeof found.loss);
        assert_int_equal(found.correct, wanted.correct);
        assert_int_equal(found.count, valid);
    }
    assert_true(backend->begin(opened, PASS_TRAIN, true));
    backend->loss(opened, 0, &of_logits, logits, NULL);
    backend->end(opened);
    backend->close(opened);
    device->release(x);
    device->release(logits);
}

/* -- two losses of a pass ------------------------------------------------------------------------------------------ */

enum { WORDS = 301, ROWS_MAX = 4 * ROWS };
static const int rows_of[NET_LOSSES_MAX] = {ROWS, ROWS_MAX}, classes_of[NET_LOSSES_MAX] = {WORDS, CLASSES};

static size_t floats_of(int which) {
    return (size_t)rows_of[which] * (size_t)classes_of[which];
}

/* A backend, with what both losses read and write there. */
struct both {
    void *opened;
    float *x, *logits[NET_LOSSES_MAX], *gradient[NET_LOSSES_MAX];
};

static struct both both_open(const struct device_ops *device) {
    struct both b = {.opened = backend_for(device)->open(&(struct backend_setup){.threads = 1}),
                     .x = device->alloc(sizeof(float), "an image")};
    for (int k = 0; k < NET_LOSSES_MAX; k++) {
        b.logits[k] = device->alloc(floats_of(k) * sizeof(float), "logits");
        b.gradient[k] = device->alloc(floats_of(k) * sizeof(float), "their gradient");
    }
    return b;
}

static void both_close(const struct device_ops *device, struct both *b) {
    backend_for(device)->close(b->opened);
    device->release(b->x);
    for (int k = 0; k < NET_LOSSES_MAX; k++) device->release(b->logits[k]);
    for (int k = 0; k < NET_LOSSES_MAX; k++) device->release(b->gradient[k]);
}

/* What comes in with a pass: other labels each time, of which others count, in some passes none. */
struct coming {
    float *z[NET_LOSSES_MAX];
    int32_t label[NET_LOSSES_MAX][ROWS_MAX];
    int valid[NET_LOSSES_MAX], count[NET_LOSSES_MAX];
    double over[NET_LOSSES_MAX];
};

static struct coming coming_of(int pass) {
    struct coming c = {.valid = {1 + pass % ROWS, ROWS_MAX}};
    for (int k = 0; k < NET_LOSSES_MAX; k++) {
        c.z[k] = mem_alloc(floats_of(k), sizeof *c.z[k], "logits");
        for (size_t i = 0; i < floats_of(k); i++) c.z[k][i] = (float)((i * 7 + (size_t)(pass * 3 + k)) % 11) / 4;
        for (int i = 0; i < rows_of[k]; i++) {
            const bool counts = pass % 4 != 2 && (i + pass) % 3 != 0;
            c.label[k][i] = counts ? (i * 5 + pass) % classes_of[k] : -1;
            c.count[k] += counts && i < c.valid[k];
        }
        c.over[k] = 3 * c.count[k] + 1;
    }
    return c;
}

static void both_pass(const struct device_ops *device, const struct both *b, const struct coming *c,
                      struct net_result result[NET_LOSSES_MAX]) {
    const struct backend_ops *backend = backend_for(device);
    const struct tensor shape = {.n = 1, .c = 1, .h = 1, .w = 1, .floats = 1};
    const float image = 0;
    struct net_input input = {.x = &image, .valid = c->valid[0]};
    for (int k = 0; k < NET_LOSSES_MAX; k++) {
        input.label[k] = c->label[k];
        input.labels[k] = rows_of[k];
        input.over[k] = c->over[k];
        device->to_device(b->logits[k], c->z[k], floats_of(k) * sizeof *c->z[k]);
    }
    backend->feed(b->opened, &input, &shape, b->x, NULL);
    if (backend->begin(b->opened, PASS_TRAIN, true)) {
        for (int k = 0; k < NET_LOSSES_MAX; k++)
            backend->loss(b->opened, k, &(struct tensor){.n = rows_of[k], .c = classes_of[k], .h = 1, .w = 1},
                          b->logits[k], b->gradient[k]);
        backend->end(b->opened);
    }
    for (int k = NET_LOSSES_MAX; k-- > 0;) backend->result(b->opened, k, &result[k]);
}

/* Each as it is by itself, to the bit: repeated from a recording, too, though other numbers of rows count. */
static void two_losses_are_each_as_alone(void **state) {
    (void)state;
    const struct device_ops *device = test_device();
    unsetenv("SPARSETRAIN_CUDA_GRAPH");
    struct both b = both_open(device);
    for (int pass = 0; pass < 8; pass++) {
        struct net_result found[NET_LOSSES_MAX], wanted;
        struct coming c = coming_of(pass);
        both_pass(device, &b, &c, found);
        for (int k = 0; k < NET_LOSSES_MAX; k++) {
            float *dz = mem_zalloc(floats_of(k), sizeof *dz, "gradients"),
                  *here = device_copy_to_host(device, b.gradient[k], floats_of(k), "gradients");
            loss_of_part(device, rows_of[k], classes_of[k], c.z[k], c.label[k], c.valid[k], c.over[k], dz, &wanted);
            assert_memory_equal(&found[k].loss, &wanted.loss, sizeof wanted.loss);
            assert_int_equal(found[k].correct, wanted.correct);
            assert_int_equal(found[k].count, c.count[k]);
            assert_memory_equal(here, dz, (size_t)(c.valid[k] * classes_of[k]) * sizeof *dz);
            mem_free(dz);
            mem_free(here);
            mem_free(c.z[k]);
        }
    }
    both_close(device, &b);
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
        cmocka_unit_test(rows_without_a_label_do_not_count),
        cmocka_unit_test(rows_of_any_width_match_the_definition),
        cmocka_unit_test(whole_passes_are_recorded_and_repeated),
        cmocka_unit_test(two_losses_are_each_as_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
