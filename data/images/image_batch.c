/* image_batch.c: see image_batch.h, and loader.h for what is declared there. */
#include "data/images/image_batch.h"

#include "base/rng.h"
#include "data/loader.h"

enum { PADDING = 4 };

void image_normal_open(const struct dataset *d, struct image_normal *t) {
    for (int c = 0; c < d->channels; c++)
        for (int v = 0; v < 256; v++) t->value[c][v] = (float)((v / 255.0 - (double)d->mean[c]) / (double)d->std[c]);
}

struct image_cut image_cut_of(bool augment, uint64_t seed, size_t epoch, uint32_t sample) {
    struct image_cut cut = {0, 0, 0};
    if (!augment) return cut;
    struct rng r = rng_open(seed, RNG_AUGMENT, (uint64_t)epoch << 32 | sample);
    cut.down = (int)rng_below(&r, 2 * PADDING + 1) - PADDING;
    cut.right = (int)rng_below(&r, 2 * PADDING + 1) - PADDING;
    cut.flip = rng_below(&r, 2) == 1;
    return cut;
}

/* One row of one channel: from[x + right] through the table, black outside, then mirrored. */
static void row_out(const float *table, const uint8_t *from, int width, struct image_cut cut, float *to) {
    int first = cut.right < 0 ? -cut.right : 0, last = cut.right > 0 ? width - cut.right : width;
    if (first > width) first = width;
    if (last < first) last = first;
    int step = cut.flip ? -1 : 1;
    float *at = cut.flip ? to + width - 1 : to;
    for (int x = 0; x < first; x++, at += step) *at = table[0];
    for (int x = first; x < last; x++, at += step) *at = table[from[x + cut.right]];
    for (int x = last; x < width; x++, at += step) *at = table[0];
}

void image_out(const struct dataset *d, const struct image_normal *normal, const uint8_t *pixels, struct image_cut cut,
               float *x) {
    for (int c = 0; c < d->channels; c++) {
        const float *table = normal->value[c];
        for (int y = 0; y < d->height; y++, x += d->width) {
            int row = y + cut.down;
            if (row >= 0 && row < d->height)
                row_out(table, pixels + ((size_t)c * (size_t)d->height + (size_t)row) * (size_t)d->width, d->width, cut,
                        x);
            else
                for (int i = 0; i < d->width; i++) x[i] = table[0];
        }
    }
}

size_t image_size(const struct dataset *d) {
    return (size_t)d->channels * (size_t)d->height * (size_t)d->width;
}

void loader_sample(const struct dataset *d, const struct image_set *set, uint32_t sample, bool augment, uint64_t seed,
                   size_t epoch, float *x) {
    struct image_normal normal;
    image_normal_open(d, &normal);
    image_out(d, &normal, set->pixels + sample * image_size(d), image_cut_of(augment, seed, epoch, sample), x);
}

void loader_fill_test(const struct dataset *d, size_t from, int valid, int batch, float *x, int32_t *y) {
    struct image_normal normal;
    image_normal_open(d, &normal);
    for (int i = 0; i < batch; i++) {
        size_t sample = from + (size_t)(i < valid ? i : valid > 0 ? valid - 1 : 0);
        if (sample >= d->test.count) sample = d->test.count - 1; /* an empty share at the very end */
        image_out(d, &normal, d->test.pixels + sample * image_size(d), (struct image_cut){0, 0, 0}, x);
        x += image_size(d);
        y[i] = d->test.labels[sample];
    }
}
