/* cpu_layers.c: see cpu_layers.h. */
#include "nets/cpu/cpu_layers.h"

#include <string.h>

#include "base/simd.h"

/* How many channels from a multiple of this number on lie side by side in both views, after `before` channels. */
static size_t run_of(const struct cpu_view *x, const struct cpu_view *y, size_t before) {
    size_t run = x->lanes < y->lanes ? x->lanes : y->lanes; /* powers of two */
    while (before % run != 0 || x->channels % run != 0) run /= 2;
    return run;
}

enum { RUN = 8 }; /* floats: the run that stage 2 of a ResNet has; a constant lets the compiler use one move */

static void copy_run(float *to, const float *from, size_t run) {
    if (run % RUN == 0) {
        for (size_t i = 0; i < run; i += RUN) memcpy(to + i, from + i, RUN * sizeof(float));
    } else {
        for (size_t i = 0; i < run; i++) to[i] = from[i];
    }
}

/* One image: to(small) = from(big) or, backward, to(big) = from(small), at the positions and channels they share. */
static void shortcut_image(const struct cpu_view *x, const struct cpu_view *y, size_t stride, size_t image,
                           const float *from, float *to, bool backward) {
    size_t before = (y->channels - x->channels) / 2, run = run_of(x, y, before);
    for (size_t c = 0; c < x->channels; c += run) {
        for (size_t i = 0; i < y->height; i++) {
            size_t big = cpu_view_place(x, image, c, i * stride * x->width);
            size_t small = cpu_view_place(y, image, c + before, i * y->width);
            for (size_t j = 0; j < y->width; j++, big += stride * x->step, small += y->step)
                copy_run(to + (backward ? big : small), from + (backward ? small : big), run);
        }
    }
}

void cpu_shortcut_forward(const struct cpu_view *x, const struct cpu_view *y, size_t stride, const float *from,
                          float *to) {
#pragma omp parallel for schedule(static)
    for (size_t n = 0; n < x->images; n++) {
        memset(to + n * y->image, 0, y->image * sizeof(float));
        shortcut_image(x, y, stride, n, from, to, false);
    }
}

void cpu_shortcut_backward(const struct cpu_view *x, const struct cpu_view *y, size_t stride, const float *dy,
                           float *dx) {
#pragma omp parallel for schedule(static)
    for (size_t n = 0; n < x->images; n++) {
        memset(dx + n * x->image, 0, x->image * sizeof(float));
        shortcut_image(x, y, stride, n, dy, dx, true);
    }
}

void cpu_average_forward(const struct cpu_view *x, const float *from, float *y) {
    const float share = 1 / (float)x->positions;
#pragma omp parallel for schedule(static)
    for (size_t n = 0; n < x->images; n++) {
        for (size_t c = 0; c < x->channels; c++) {
            const float *at = from + cpu_view_place(x, n, c, 0);
            float sum = 0;
            for (size_t i = 0; i < x->positions; i++) sum += at[i * x->step];
            y[n * x->channels + c] = sum * share;
        }
    }
}

void cpu_average_backward(const struct cpu_view *x, const float *dy, float *dx) {
    const float share = 1 / (float)x->positions;
#pragma omp parallel for schedule(static)
    for (size_t n = 0; n < x->images; n++) {
        for (size_t c = 0; c < x->blocks * x->lanes; c++) {
            float *at = dx + cpu_view_place(x, n, c, 0), value = c < x->channels ? dy[n * x->channels + c] * share : 0;
            for (size_t i = 0; i < x->positions; i++) at[i * x->step] = value;
        }
    }
}

enum { COLUMNS = 256 };

SIMD_CLONES static void sum_some_columns(size_t rows, size_t columns, size_t width, const float *from, bool adds,
                                         float *to) {
    double sum[COLUMNS] = {0};
    for (size_t row = 0; row < rows; row++)
        for (size_t i = 0; i < width; i++) sum[i] += from[row * columns + i];
    for (size_t i = 0; i < width; i++) to[i] = adds ? to[i] + (float)sum[i] : (float)sum[i];
}

void cpu_column_sums(size_t rows, size_t columns, const float *from, bool adds, float *to) {
#pragma omp parallel for schedule(static)
    for (size_t at = 0; at < columns; at += COLUMNS)
        sum_some_columns(rows, columns, at + COLUMNS < columns ? COLUMNS : columns - at, from + at, adds, to + at);
}
