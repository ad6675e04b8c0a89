/* cuda_index.h: layouts of the CUDA backend's tensors and the index arithmetic of its kernels, as functions that a
 * plain C test (tests/nets/nets_cuda_index.c) runs too. Tensors have fewer than 2^31 elements, so 32 bits do. */
#ifndef ST_NETS_CUDA_INDEX_H
#define ST_NETS_CUDA_INDEX_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/cuda/cuda_hd.h"

/* tensor.layout; the first one is LAYOUT_CANONICAL. Nothing is padded, but a bf16 tensor of an odd size takes a whole
 * number of floats. */
enum cuda_layout { CUDA_NCHW = 0, CUDA_NHWC, CUDA_NHWC_BF16 };

/* -- bf16: the upper half of a float ------------------------------------------------------------------------------ */

struct bf16 {
    uint16_t bits;
};

/* To the nearest, ties to even; NaN stays NaN. */
ST_HD struct bf16 bf16_of(float value) {
    struct bf16 made;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        bits |= 0x400000u; /* cutting the lower half off must not make an infinity of it */
    else
        bits += 0x7fffu + (bits >> 16 & 1u);
    made.bits = (uint16_t)(bits >> 16);
    return made;
}

ST_HD float bf16_value(struct bf16 from) {
    const uint32_t bits = (uint32_t)from.bits << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* -- places ------------------------------------------------------------------------------------------------------- */

/* A tensor as the kernels see it. */
struct cuda_shape {
    uint32_t images, channels, height, width, positions; /* positions = height * width */
    bool last;                                           /* channels last: [n][h][w][c], else [n][c][h][w] */
};

ST_HD uint32_t cuda_elements(const struct cuda_shape *s) {
    return s->images * s->channels * s->positions;
}

struct cuda_element {
    uint32_t image, channel, position;
};

/* Which element lies at place `at`, and where an element lies. */
ST_HD struct cuda_element cuda_element_at(const struct cuda_shape *s, uint32_t at) {
    struct cuda_element e;
    const uint32_t inner = s->last ? s->channels : s->positions;
    const uint32_t outer = at / inner, rest = at - outer * inner;
    const uint32_t count = s->last ? s->positions : s->channels;
    e.image = outer / count;
    e.channel = s->last ? rest : outer - e.image * count;
    e.position = s->last ? outer - e.image * count : rest;
    return e;
}

ST_HD uint32_t cuda_place(const struct cuda_shape *s, struct cuda_element e) {
    return s->last ? (e.image * s->positions + e.position) * s->channels + e.channel
                   : (e.image * s->channels + e.channel) * s->positions + e.position;
}

/* Weights: where element `at` of [out][window][in] (as the library wants them where channels come last) lies in the
 * arena's [out][in][window]; window: kernel * kernel. */
ST_HD uint32_t cuda_weight_place(uint32_t at, uint32_t in, uint32_t window) {
    const uint32_t row = at / in, c = at - row * in, out = row / window;
    return (out * in + c) * window + (row - out * window);
}

/* -- augmentation ------------------------------------------------------------------------------------------------- */

/* Which pixel of a channel [height][width] becomes output pixel (y, x) of it (struct image_cut: shifted, then
 * mirrored); -1: black. */
ST_HD int32_t cuda_cut_source(int32_t height, int32_t width, int32_t down, int32_t right, int32_t flip, int32_t y,
                              int32_t x) {
    const int32_t row = y + down, column = (flip ? width - 1 - x : x) + right;
    if (row < 0 || row >= height || column < 0 || column >= width) return -1;
    return row * width + column;
}

/* -- shortcut: y (i, j) = x (stride i, stride j), `before` zero channels first ------------------------------------ */

/* The place in x that element e of y is copied from; false: none, it is zero. */
ST_HD bool cuda_shortcut_source(const struct cuda_shape *x, const struct cuda_shape *y, uint32_t stride,
                                struct cuda_element e, uint32_t *place) {
    const uint32_t before = (y->channels - x->channels) / 2;
    const uint32_t i = e.position / y->width, j = e.position - i * y->width;
    if (e.channel < before || e.channel >= before + x->channels) return false;
    e.channel -= before;
    e.position = stride * i * x->width + stride * j;
    *place = cuda_place(x, e);
    return true;
}

/* Backward: the place in dy that element e of dx takes its gradient from; false: none, it is zero. */
ST_HD bool cuda_shortcut_target(const struct cuda_shape *x, const struct cuda_shape *y, uint32_t stride,
                                struct cuda_element e, uint32_t *place) {
    const uint32_t row = e.position / x->width, column = e.position - row * x->width;
    const uint32_t i = row / stride, j = column / stride;
    if (i * stride != row || j * stride != column) return false;
    e.channel += (y->channels - x->channels) / 2;
    e.position = i * y->width + j;
    *place = cuda_place(y, e);
    return true;
}

/* -- walks over channels ------------------------------------------------------------------------------------------ */

/* A normalisation reads its tensor in vectors of `vector` elements and keeps a thread on the same channels all the way.
 *
 * Channels last: a vector holds as many channels of one position. `columns` vectors side by side are taken by the
 * threads of a row, all vectors of a position by `slabs` blocks in y; a step is a position.
 *
 * Else: a vector holds as many positions of one channel, which is the slab; a step is a vector of it.
 *
 * Thread t of block (part, slab) has column t % columns and takes steps part * rows + t / columns, + parts * rows, ...
 */

enum { CUDA_WALK_THREADS = 256 };

struct cuda_walk {
    struct cuda_shape shape;
    uint32_t vector;        /* elements read at once */
    uint32_t run;           /* vectors of a position (channels last), or of one channel of one image */
    uint32_t apart;         /* channels last: vectors from one position to the next, run where nothing is between */
    uint32_t columns, rows; /* of threads; columns * rows <= CUDA_WALK_THREADS */
    uint32_t steps, slabs;
};

ST_HD struct cuda_walk cuda_walk_of(const struct cuda_shape *shape, uint32_t widest) {
    struct cuda_walk w;
    const uint32_t inner = shape->last ? shape->channels : shape->positions;
    w.shape = *shape;
    w.vector = inner % widest == 0 ? widest : 1;
    w.run = w.apart = inner / w.vector;
    w.columns = 1;
    w.steps = shape->images * w.run;
    w.slabs = shape->channels;
    if (shape->last) {
        w.columns = w.run < (uint32_t)CUDA_WALK_THREADS ? w.run : (uint32_t)CUDA_WALK_THREADS;
        w.steps = shape->images * shape->positions;
        w.slabs = (w.run + w.columns - 1) / w.columns;
    }
    w.rows = CUDA_WALK_THREADS / w.columns;
    return w;
}

/* Has thread `thread` of a block of this slab anything to do? */
ST_HD bool cuda_walk_takes_part(const struct cuda_walk *w, uint32_t slab, uint32_t thread) {
    return thread < w->columns * w->rows && (!w->shape.last || slab * w->columns + thread % w->columns < w->run);
}

/* The vector, counted from the tensor's begin, that a thread of this slab and column reads in this step. */
ST_HD uint32_t cuda_walk_place(const struct cuda_walk *w, uint32_t slab, uint32_t column, uint32_t step) {
    if (w->shape.last) return step * w->apart + slab * w->columns + column;
    const uint32_t image = step / w->run;
    return (image * w->shape.channels + slab) * w->run + (step - image * w->run);
}

/* The channel of element `lane` of its vectors. */
ST_HD uint32_t cuda_walk_channel(const struct cuda_walk *w, uint32_t slab, uint32_t column, uint32_t lane) {
    return w->shape.last ? (slab * w->columns + column) * w->vector + lane : slab;
}

#endif
