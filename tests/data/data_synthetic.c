/* The synthetic set: the same bytes on every machine, balanced, and a problem as it should be: a linear classifier on
 * the pixels stays near chance, the same classifier on a feature that sees textures does not. */
#include "tests/lib/data_support.h"

#include <math.h>

#include "base/rng.h"

enum { TRAIN = 4000, TEST = 1000, CLASSES = 10, LAG = 5, FEATURES = (LAG + 1) * (2 * LAG + 1) };

static void sizes(void **state) {
    (void)state;
    static const char *const wrong[] = {
        "2000",      "x500",      "2000x", "2000x500x", "2000x0", "0x500", "-5x5",
        "1000001x5", "5x1000001", "a",     " 5x5",      "5x-5",   "5x5 ",  "99999999999999999999x5"};
    struct err e = {0};
    struct dataset d;
    assert_true(dataset_find(&dataset_synthetic, NULL, 1, &d, &e));
    assert_int_equal(d.bytes, 64 + 24000 * (IMAGE + 4));
    assert_true(dataset_find(&dataset_synthetic, "", 1, &d, &e));
    assert_int_equal(d.bytes, 64 + 24000 * (IMAGE + 4));
    assert_true(dataset_find(&dataset_synthetic, "2000x500", 1, &d, &e));
    assert_int_equal(d.bytes, 64 + 2500 * (IMAGE + 4));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        memset(&e, 0, sizeof e);
        assert_false(dataset_find(&dataset_synthetic, wrong[i], 1, &d, &e));
        assert_says(&e, "TRAINxTEST");
    }
}

/* Integer arithmetic alone: these checksums hold on every machine and for every compiler. */
static void same_bytes_everywhere(void **state) {
    (void)state;
    static const uint32_t crc[2] = {0x896e3e31, 0x4188e721};
    for (uint64_t seed = 1; seed <= 2; seed++) {
        struct err e = {0};
        struct dataset d;
        void *memory = load_set(&dataset_synthetic, "300x100", seed, &d, &e);
        assert_non_null(memory);
        assert_int_equal(dataset_checksum(&d), crc[seed - 1]);
        mem_free(memory);
    }
}

static void larger_holds_smaller(void **state) {
    (void)state;
    struct err e = {0};
    struct dataset a, b;
    void *small = load_set(&dataset_synthetic, "50x20", 3, &a, &e);
    void *large = load_set(&dataset_synthetic, "80x60", 3, &b, &e);
    assert_memory_equal(a.train.pixels, b.train.pixels, 50 * IMAGE);
    assert_memory_equal(a.test.pixels, b.test.pixels, 20 * IMAGE);
    assert_memory_equal(a.test.labels, b.test.labels, 20 * sizeof *a.test.labels);
    for (size_t i = 0; i < 20; i++) /* no training picture is a test picture */
        for (size_t j = 0; j < 80; j++)
            assert_memory_not_equal(b.test.pixels + i * IMAGE, b.train.pixels + j * IMAGE, IMAGE);
    mem_free(small);
    mem_free(large);
}

static void balanced(void **state) {
    const struct dataset *d = *state;
    int count[2][CLASSES] = {{0}};
    for (size_t i = 0; i < TRAIN; i++) count[0][d->train.labels[i]]++;
    for (size_t i = 0; i < TEST; i++) count[1][d->test.labels[i]]++;
    for (int c = 0; c < CLASSES; c++) {
        assert_int_equal(count[0][c], TRAIN / CLASSES);
        assert_int_equal(count[1][c], TEST / CLASSES);
    }
}

/* The mean image is the same for all classes: per pixel, class means differ from the overall mean by their standard
 * error and no more; and the declared mean and std are those of the set. */
static void equal_means(void **state) {
    const struct dataset *d = *state;
    double *mean = mem_zalloc(CLASSES * IMAGE, sizeof *mean, "means");
    double worst = 0, squares = 0, sum = 0, sum2 = 0;
    const double n = TRAIN / CLASSES;
    for (size_t i = 0; i < TRAIN; i++)
        for (size_t p = 0; p < IMAGE; p++) {
            double v = d->train.pixels[i * IMAGE + p] / 255.0;
            mean[(size_t)d->train.labels[i] * IMAGE + p] += v / n;
            sum += v / TRAIN / IMAGE;
            sum2 += v * v / TRAIN / IMAGE;
        }
    double std = sqrt(sum2 - sum * sum);
    for (size_t p = 0; p < IMAGE; p++) {
        double all = 0;
        for (size_t c = 0; c < CLASSES; c++) all += mean[c * IMAGE + p] / CLASSES;
        for (size_t c = 0; c < CLASSES; c++) {
            double z = (mean[c * IMAGE + p] - all) / (std / sqrt(n));
            squares += z * z / (CLASSES - 1) / IMAGE;
            if (fabs(z) > worst) worst = fabs(z);
        }
    }
    mem_free(mean);
    assert_true(fabs(sum - (double)d->mean[0]) < 0.02 && fabs(std - (double)d->std[0]) < 0.02);
    assert_true(squares > 0.6 && squares < 1.4); /* 1 is expected; neighbouring pixels are not independent */
    assert_true(worst < 6);
}

/* -- classifiers --------------------------------------------------------------------------------------------------- */

/* Softmax regression by plain stochastic gradient descent; x: [count][features] with mean 0 and variance 1. Returns the
 * share of correct answers in the last `test` of them, after training on the others. */
static double linear_accuracy(const float *x, const int *y, int count, int test, int features, int classes, int epochs,
                              float rate) {
    size_t n = (size_t)features;
    float *w = mem_zalloc((size_t)classes * (n + 1), sizeof *w, "weights");
    int correct = 0;
    for (int pass = 0; pass <= epochs; pass++)
        for (int i = pass < epochs ? 0 : count - test; i < (pass < epochs ? count - test : count); i++) {
            const float *in = x + (size_t)i * n;
            float logit[CLASSES], total = 0;
            int best = 0;
            for (int c = 0; c < classes; c++) {
                const float *row = w + (size_t)c * (n + 1);
                logit[c] = row[n];
                for (size_t k = 0; k < n; k++) logit[c] += row[k] * in[k];
                if (logit[c] > logit[best]) best = c;
            }
            if (pass == epochs) {
                correct += best == y[i];
                continue;
            }
            float top = logit[best];
            for (int c = 0; c < classes; c++) total += logit[c] = expf(logit[c] - top);
            for (int c = 0; c < classes; c++) {
                float *row = w + (size_t)c * (n + 1), delta = rate * ((c == y[i] ? 1.0f : 0.0f) - logit[c] / total);
                for (size_t k = 0; k < n; k++) row[k] += delta * in[k];
                row[n] += delta;
            }
        }
    mem_free(w);
    return (double)correct / test;
}

static void standardise(float *x, size_t count, size_t features) {
    for (size_t k = 0; k < features; k++) {
        double sum = 0, sum2 = 0;
        for (size_t i = 0; i < count; i++) sum += (double)x[i * features + k];
        for (size_t i = 0; i < count; i++) sum2 += pow((double)x[i * features + k] - sum / (double)count, 2);
        for (size_t i = 0; i < count; i++)
            x[i * features + k] =
                (float)(((double)x[i * features + k] - sum / (double)count) / sqrt(sum2 / (double)count + 1e-12));
    }
}

/* The structure function of the grey picture, log mean (g(y + v, x + u) - g(y, x))^2 over the lags 0 <= u <= LAG,
 * -LAG <= v <= LAG: blind to place, phase and colour, it sees direction and wavelength. */
static void structure(const uint8_t *pixels, float *out) {
    int g[32][32];
    for (int i = 0; i < 1024; i++) g[i / 32][i % 32] = pixels[i] + pixels[1024 + i] + pixels[2048 + i];
    for (int u = 0; u <= LAG; u++)
        for (int v = -LAG; v <= LAG; v++) {
            double sum = 1;
            for (int y = v < 0 ? -v : 0; y < (v > 0 ? 32 - v : 32); y++)
                for (int x = 0; x < 32 - u; x++) sum += (g[y + v][x + u] - g[y][x]) * (g[y + v][x + u] - g[y][x]);
            *out++ = (float)log(sum / ((32 - u) * (32 - abs(v))));
        }
}

static const uint8_t *picture(const struct dataset *d, size_t i) {
    return i < TRAIN ? d->train.pixels + i * IMAGE : d->test.pixels + (i - TRAIN) * IMAGE;
}

static void not_linear(void **state) {
    const struct dataset *d = *state;
    size_t count = TRAIN + TEST;
    float *x = mem_alloc(count * IMAGE, sizeof *x, "pictures"), *s = mem_alloc(count * FEATURES, sizeof *s, "features");
    int *y = mem_alloc(count, sizeof *y, "classes"), *half = mem_alloc(count, sizeof *half, "a separable rule");
    for (size_t i = 0; i < count; i++) {
        const uint8_t *pixels = picture(d, i);
        int left = 0;
        y[i] = i < TRAIN ? d->train.labels[i] : d->test.labels[i - TRAIN];
        for (int p = 0; p < IMAGE; p++) {
            x[i * IMAGE + (size_t)p] = ((float)pixels[p] / 255 - d->mean[0]) / d->std[0];
            left += p % 32 < 16 ? pixels[p] : -pixels[p];
        }
        half[i] = left > 0;
        structure(pixels, s + i * FEATURES);
    }
    standardise(s, count, FEATURES);
    /* The classifier can learn what is linear: which half of the picture is the lighter one. */
    double control = linear_accuracy(x, half, (int)count, TEST, IMAGE, 2, 2, 1e-4f);
    double pixels = linear_accuracy(x, y, (int)count, TEST, IMAGE, CLASSES, 3, 1e-4f);
    double textures = linear_accuracy(s, y, (int)count, TEST, FEATURES, CLASSES, 8, 2e-3f);
    print_message("# linear: %.3f on the lighter half, %.3f on the classes; with textures %.3f\n", control, pixels,
                  textures);
    assert_true(control > 0.85);
    assert_true(pixels < 0.25);
    assert_true(textures > 0.40);
    mem_free(x);
    mem_free(s);
    mem_free(y);
    mem_free(half);
}

/* -- the set that the last three share ----------------------------------------------------------------------------- */

static struct dataset shared;
static void *shared_memory;

static int open_set(void **state) {
    struct err e = {0};
    shared_memory = load_set(&dataset_synthetic, "4000x1000", 1, &shared, &e);
    *state = &shared;
    return shared_memory ? 0 : -1;
}

static int close_set(void **state) {
    (void)state;
    mem_free(shared_memory);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),    cmocka_unit_test(same_bytes_everywhere), cmocka_unit_test(larger_holds_smaller),
        cmocka_unit_test(balanced), cmocka_unit_test(equal_means),           cmocka_unit_test(not_linear),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, open_set, close_set);
}
