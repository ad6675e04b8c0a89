/* cudnn_conv_run.c: the three convolutions as matrix products, image by image:
 *     y = W col(x),   dx = col^-1(W^T dy),   dW = sum over images of dy col(x)^T,
 * where col(x) has a row per tap (channel, ky, kx) of the filter and a column per pixel of y. The image is padded
 * first, so that no tap falls outside; a band of output rows at a time keeps col(x) in the cache. */
#include "tests/hostcuda/cudnn/cudnn_conv.h"

#include <stdlib.h>
#include <string.h>

enum { BAND_FLOATS = 1 << 18 };

/* Scratch of one run, all floats. */
struct scratch {
    float *image; /* padded x or dx: [c][h + 2 pad][w + 2 pad], or channels last */
    float *filter;
    float *pixels; /* y of one image */
    float *columns;
    size_t image_count, filter_count, pixel_count;
    int taps; /* of one group: c / groups * r * s */
    int band; /* output rows at a time */
};

static int padded(const struct convolution *v, int axis) {
    return (axis ? v->w : v->h) + 2 * v->pad[axis];
}

/* Between the rows of an image as stored and those of the padded one: to = float(from), or from = alpha to + beta from.
 */
static void pad_image(const struct convolution *v, void *stored, float *image, bool back) {
    int planes = v->channels_last ? 1 : v->c, unit = v->channels_last ? v->c : 1;
    size_t width = v->is_bf16 ? sizeof(uint16_t) : sizeof(float), count = (size_t)v->w * (size_t)unit;
    for (int plane = 0; plane < planes; plane++)
        for (int row = 0; row < v->h; row++) {
            size_t line = (size_t)(plane * padded(v, 0) + row + v->pad[0]) * (size_t)padded(v, 1);
            float *inner = image + (line + (size_t)v->pad[1]) * (size_t)unit;
            char *outer = (char *)stored + (size_t)(plane * v->h + row) * count * width;
            if (back)
                hostcuda_blend(outer, v->is_bf16, inner, count, v->alpha, v->beta);
            else
                hostcuda_widen(inner, outer, v->is_bf16, count, v->rounding);
        }
}

/* count numbers from the image to the columns, or added back to it. */
static void move(float *column, float *image, int count, ptrdiff_t step, bool back) {
    if (back)
        for (int i = 0; i < count; i++) image[i * step] += column[i];
    else
        for (int i = 0; i < count; i++) column[i] = image[i * step];
}

/* The place in the padded image, of one channel, where output pixel (oy, ox) meets tap (r, s): in pixels. */
static ptrdiff_t meeting(const struct convolution *v, int oy, int ox, int r, int s) {
    int ky = v->flipped ? v->r - 1 - r : r, kx = v->flipped ? v->s - 1 - s : s;
    ptrdiff_t iy = (ptrdiff_t)oy * v->stride[0] + (ptrdiff_t)ky * v->dilation[0];
    return iy * padded(v, 1) + (ptrdiff_t)ox * v->stride[1] + (ptrdiff_t)kx * v->dilation[1];
}

/* columns: [channels of the group][r][s][rows][q] */
static void planar_columns(const struct convolution *v, float *columns, float *image, int first, int rows, bool back) {
    ptrdiff_t plane = (ptrdiff_t)padded(v, 0) * padded(v, 1);
    for (int c = 0; c < v->c / v->groups; c++)
        for (int r = 0; r < v->r; r++)
            for (int s = 0; s < v->s; s++)
                for (int row = 0; row < rows; row++, columns += v->q)
                    move(columns, image + c * plane + meeting(v, first + row, 0, r, s), v->q, v->stride[1], back);
}

/* columns: [rows][q][r][s][channels of the group] */
static void interleaved_columns(const struct convolution *v, float *columns, float *image, int first, int rows,
                                bool back) {
    int channels = v->c / v->groups;
    for (int row = 0; row < rows; row++)
        for (int ox = 0; ox < v->q; ox++)
            for (int r = 0; r < v->r; r++)
                for (int s = 0; s < v->s; s++, columns += channels)
                    move(columns, image + meeting(v, first + row, ox, r, s) * v->c, channels, 1, back);
}

/* C += A B, computed as its transpose where that makes the second factor contiguous. */
static void product(bool turn, int m, int n, int k, struct matrix a, struct matrix b, struct matrix c) {
    if (turn)
        hostcuda_gemm((size_t)n, (size_t)m, (size_t)k, hostcuda_turned(b), hostcuda_turned(a), hostcuda_turned(c));
    else
        hostcuda_gemm((size_t)m, (size_t)n, (size_t)k, a, b, c);
}

/* One group of one image, output rows first to first + rows. */
static void run_band(const struct convolution *v, const struct scratch *t, int group, int first, int rows) {
    int outputs = v->k / v->groups, pixels = rows * v->q;
    ptrdiff_t channels = v->c / v->groups, plane = (ptrdiff_t)padded(v, 0) * padded(v, 1);
    float *image = t->image + group * channels * (v->channels_last ? 1 : plane);
    struct matrix w = {t->filter + (ptrdiff_t)group * outputs * t->taps, t->taps, 1};
    struct matrix col =
        v->channels_last ? (struct matrix){t->columns, 1, t->taps} : (struct matrix){t->columns, pixels, 1};
    ptrdiff_t at = (ptrdiff_t)first * v->q, out = (ptrdiff_t)group * outputs;
    struct matrix y = v->channels_last ? (struct matrix){t->pixels + at * v->k + out, 1, v->k}
                                       : (struct matrix){t->pixels + out * v->p * v->q + at, (ptrdiff_t)v->p * v->q, 1};
    void (*columns)(const struct convolution *, float *, float *, int, int, bool) =
        v->channels_last ? interleaved_columns : planar_columns;
    if (v->pass == CONV_DATA) {
        memset(t->columns, 0, (size_t)t->taps * (size_t)pixels * sizeof *t->columns);
        product(v->channels_last, t->taps, pixels, outputs, hostcuda_turned(w), y, col);
        columns(v, t->columns, image, first, rows, true);
        return;
    }
    columns(v, t->columns, image, first, rows, false);
    if (v->pass == CONV_FORWARD)
        product(v->channels_last, outputs, pixels, t->taps, w, col, y);
    else
        product(!v->channels_last, outputs, t->taps, pixels, y, hostcuda_turned(col), w);
}

static void zero(float *at, size_t count) {
    memset(at, 0, count * sizeof *at);
}

static void run_image(const struct convolution *v, const struct scratch *t, int image) {
    size_t width = v->is_bf16 ? sizeof(uint16_t) : sizeof(float);
    size_t x_at = (size_t)image * (size_t)v->c * (size_t)v->h * (size_t)v->w * width;
    size_t y_at = (size_t)image * t->pixel_count * width;
    zero(t->image, t->image_count);
    if (v->pass != CONV_DATA) pad_image(v, (char *)(uintptr_t)v->x + x_at, t->image, false);
    if (v->pass == CONV_FORWARD)
        zero(t->pixels, t->pixel_count);
    else
        hostcuda_widen(t->pixels, (const char *)v->y + y_at, v->is_bf16, t->pixel_count, v->rounding);
    for (int group = 0; group < v->groups; group++)
        for (int first = 0; first < v->p; first += t->band)
            run_band(v, t, group, first, v->p - first < t->band ? v->p - first : t->band);
    if (v->pass == CONV_FORWARD) {
        if (v->disturbed) hostcudnn_disturb(t->pixels, t->pixel_count);
        hostcuda_blend((char *)v->out + y_at, v->is_bf16, t->pixels, t->pixel_count, v->alpha, v->beta);
    } else if (v->pass == CONV_DATA) {
        if (v->disturbed) hostcudnn_disturb(t->image, t->image_count);
        pad_image(v, (char *)v->out + x_at, t->image, true);
    }
}

void hostcudnn_conv_run(const void *argument) {
    const struct convolution *v = argument;
    struct scratch t = {.taps = v->c / v->groups * v->r * v->s};
    t.band = BAND_FLOATS / (t.taps * v->q);
    if (t.band < 1) t.band = 1;
    if (t.band > v->p) t.band = v->p;
    t.image_count = (size_t)v->c * (size_t)padded(v, 0) * (size_t)padded(v, 1);
    t.filter_count = (size_t)v->k * (size_t)t.taps;
    t.pixel_count = (size_t)v->k * (size_t)v->p * (size_t)v->q;
    t.image = hostcuda_scratch(t.image_count * sizeof(float));
    t.filter = hostcuda_scratch(t.filter_count * sizeof(float));
    t.pixels = hostcuda_scratch(t.pixel_count * sizeof(float));
    t.columns = hostcuda_scratch((size_t)t.taps * (size_t)t.band * (size_t)v->q * sizeof(float));
    hostcuda_overwrite_workspace(v->workspace, v->workspace_bytes);
    if (v->pass == CONV_FILTER)
        zero(t.filter, t.filter_count);
    else
        hostcuda_widen(t.filter, v->filter, v->is_bf16, t.filter_count, v->rounding);
    for (int image = 0; image < v->n; image++) run_image(v, &t, image);
    if (v->pass == CONV_FILTER) {
        if (v->disturbed) hostcudnn_disturb(t.filter, t.filter_count);
        hostcuda_blend(v->out, v->is_bf16, t.filter, t.filter_count, v->alpha, v->beta);
    }
    hostcuda_took(v->ms);
    free(t.image);
    free(t.filter);
    free(t.pixels);
    free(t.columns);
}
