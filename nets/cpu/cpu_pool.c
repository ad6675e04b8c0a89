/* cpu_pool.c: see cpu_pool.h. A block's lanes are pooled side by side: 16 channels at once in the layouts that have as
 * many, one in NCHW. Which element won is not kept but found again: it is the first one that equals y. */
#include "nets/cpu/cpu_pool.h"

#include <string.h>

#include "base/simd.h"

enum { LANES_MAX = 16 };

/* A block of one image: planes of `lanes` channels. */
struct plane {
    const struct cpu_view *x, *y;
    const struct cpu_window *window;
};

/* The pixels of a window that exist: [top, bottom) x [left, right), never empty. */
struct part {
    size_t top, bottom, left, right;
};

static size_t clipped(long at, size_t end) {
    return at < 0 ? 0 : (size_t)at < end ? (size_t)at : end;
}

static struct part part_of(const struct plane *p, size_t i, size_t j) {
    const struct cpu_window *w = p->window;
    long row = (long)i * w->stride - w->pad, column = (long)j * w->stride - w->pad;
    return (struct part){clipped(row, p->x->height), clipped(row + w->kernel, p->x->height),
                         clipped(column, p->x->width), clipped(column + w->kernel, p->x->width)};
}

/* y[l] = max over the window; a NaN is larger than everything. */
static inline __attribute__((always_inline)) void pool(const struct plane *p, const float *x, float *y, size_t lanes) {
    for (size_t i = 0; i < p->y->height; i++) {
        for (size_t j = 0; j < p->y->width; j++, y += p->y->step) {
            struct part at = part_of(p, i, j);
            float most[LANES_MAX];
            const float *first = x + (at.top * p->x->width + at.left) * p->x->step;
            for (size_t l = 0; l < lanes; l++) most[l] = first[l];
            for (size_t row = at.top; row < at.bottom; row++) {
                for (size_t column = at.left; column < at.right; column++) {
                    const float *from = x + (row * p->x->width + column) * p->x->step;
#pragma omp simd /* else the loop is unrolled before it can become vectors */
                    for (size_t l = 0; l < lanes; l++) {
                        float value = from[l], larger = value > most[l] ? value : most[l];
                        most[l] = value == value ? larger : value;
                    }
                }
            }
            for (size_t l = 0; l < lanes; l++) y[l] = most[l];
        }
    }
}

/* dx[l] += dy[l] where x[l] is the first to equal y[l], or the first NaN. */
static inline __attribute__((always_inline)) void unpool(const struct plane *p, const float *x, const float *y,
                                                         const float *dy, float *dx, size_t lanes) {
    for (size_t i = 0; i < p->y->height; i++) {
        for (size_t j = 0; j < p->y->width; j++, y += p->y->step, dy += p->y->step) {
            struct part at = part_of(p, i, j);
            float left[LANES_MAX]; /* what still has to be given; 0 once it is */
            for (size_t l = 0; l < lanes; l++) left[l] = dy[l];
            for (size_t row = at.top; row < at.bottom; row++) {
                for (size_t column = at.left; column < at.right; column++) {
                    size_t place = (row * p->x->width + column) * p->x->step;
                    for (size_t l = 0; l < lanes; l++) {
                        float value = x[place + l], given = left[l];
                        bool won = (value == y[l]) | (value != value);
                        dx[place + l] += won ? given : 0;
                        left[l] = won ? 0 : given;
                    }
                }
            }
        }
    }
}

/* The number of lanes as a constant, so that the loops over them become vectors. */
SIMD_CLONES static void pool_block(const struct plane *p, const float *x, float *y) {
    if (p->x->lanes == LANES_MAX)
        pool(p, x, y, LANES_MAX);
    else if (p->x->lanes == LANES_MAX / 2)
        pool(p, x, y, LANES_MAX / 2);
    else if (p->x->lanes == 1)
        pool(p, x, y, 1);
    else
        pool(p, x, y, p->x->lanes);
}

SIMD_CLONES static void unpool_block(const struct plane *p, const float *x, const float *y, const float *dy,
                                     float *dx) {
    if (p->x->lanes == LANES_MAX)
        unpool(p, x, y, dy, dx, LANES_MAX);
    else if (p->x->lanes == LANES_MAX / 2)
        unpool(p, x, y, dy, dx, LANES_MAX / 2);
    else if (p->x->lanes == 1)
        unpool(p, x, y, dy, dx, 1);
    else
        unpool(p, x, y, dy, dx, p->x->lanes);
}

void cpu_pool_forward(const struct cpu_view *x, const struct cpu_view *y, const struct cpu_window *window,
                      const float *from, float *to) {
    const struct plane plane = {x, y, window};
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < x->images * x->blocks; i++) {
        size_t image = i / x->blocks, block = i % x->blocks;
        pool_block(&plane, from + image * x->image + block * x->block, to + image * y->image + block * y->block);
    }
}

void cpu_pool_backward(const struct cpu_view *x, const struct cpu_view *y, const struct cpu_window *window,
                       const struct layer_call *call) {
    const struct plane plane = {x, y, window};
#pragma omp parallel for schedule(static)
    for (size_t image = 0; image < x->images; image++) memset(call->dx + image * x->image, 0, x->image * sizeof(float));
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < x->images * x->blocks; i++) {
        size_t image = i / x->blocks, block = i % x->blocks;
        size_t in = image * x->image + block * x->block, out = image * y->image + block * y->block;
        unpool_block(&plane, call->x + in, call->y + out, call->dy + out, call->dx + in);
    }
}
