/* cudnn_pool.c: pooling of the stand-in for cuDNN. Stricter than the library: tensors are fully packed and all in one
 * format, NCHW or NHWC, and the padding is smaller than the window, so that no window is empty. Among equal largest
 * values the gradient goes to the first. Source: the cuDNN 9 API documentation and cudnn_ops_v9.h. */
#include "tests/hostcuda/cudnn/cudnn_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct pooling {
    struct cudnnPoolingStruct how;
    struct cudnnTensorStruct x, y; /* dx like x, dy like y */
    const void *x_at, *dy_at;
    void *out; /* y or dx */
    float alpha, beta;
    bool disturbed;
};

CREATE_AND_DESTROY(Pooling)

cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t poolingDesc, cudnnPoolingMode_t mode,
                                          cudnnNanPropagation_t maxpoolingNanOpt, int windowHeight, int windowWidth,
                                          int verticalPadding, int horizontalPadding, int verticalStride,
                                          int horizontalStride) {
    BAD_UNLESS(poolingDesc);
    BAD_UNLESS((unsigned)mode <= (unsigned)CUDNN_POOLING_MAX_DETERMINISTIC);
    BAD_UNLESS(maxpoolingNanOpt == CUDNN_NOT_PROPAGATE_NAN || maxpoolingNanOpt == CUDNN_PROPAGATE_NAN);
    BAD_UNLESS(windowHeight > 0 && windowWidth > 0);
    BAD_UNLESS(verticalStride > 0 && horizontalStride > 0);
    BAD_UNLESS(verticalPadding >= 0 && horizontalPadding >= 0);
    SUPPORTED_IF(verticalPadding < windowHeight && horizontalPadding < windowWidth);
    *poolingDesc = (struct cudnnPoolingStruct){true,
                                               mode,
                                               maxpoolingNanOpt,
                                               {windowHeight, windowWidth},
                                               {verticalPadding, horizontalPadding},
                                               {verticalStride, horizontalStride}};
    return CUDNN_STATUS_SUCCESS;
}

/* out = 1 + (in + 2 pad - window) / stride, 0 when the window does not fit. */
static int output_size(const struct cudnnPoolingStruct *how, int axis, int in) {
    int room = in + 2 * how->pad[axis] - how->window[axis];
    return room < 0 ? 0 : 1 + room / how->stride[axis];
}

cudnnStatus_t cudnnGetPooling2dForwardOutputDim(const cudnnPoolingDescriptor_t poolingDesc,
                                                const cudnnTensorDescriptor_t inputTensorDesc, int *n, int *c, int *h,
                                                int *w) {
    BAD_UNLESS(poolingDesc && poolingDesc->set && inputTensorDesc && n && c && h && w);
    BAD_UNLESS(inputTensorDesc->dims == 4);
    *n = inputTensorDesc->size[0];
    *c = inputTensorDesc->size[1];
    *h = output_size(poolingDesc, 0, inputTensorDesc->size[2]);
    *w = output_size(poolingDesc, 1, inputTensorDesc->size[3]);
    BAD_UNLESS(*h > 0 && *w > 0);
    return CUDNN_STATUS_SUCCESS;
}

/* -- the computation: one channel of one image at a time, copied to floats ---------------------------------------- */

/* Channel c of image n between its tensor and a plane [h][w]. */
static void fetch(float *plane, const void *at, const struct cudnnTensorStruct *t, int n, int c) {
    size_t width = hostcudnn_width(t->type);
    for (int h = 0; h < t->size[2]; h++)
        for (int w = 0; w < t->size[3]; w++) {
            hostcuda_widen(plane++, (const char *)at + hostcudnn_at(t, n, c, h, w) * width,
                           t->type == CUDNN_DATA_BFLOAT16, 1, ROUND_NOT);
        }
}

static void store(const float *plane, void *at, const struct cudnnTensorStruct *t, int n, int c, float alpha,
                  float beta) {
    size_t width = hostcudnn_width(t->type);
    for (int h = 0; h < t->size[2]; h++)
        for (int w = 0; w < t->size[3]; w++) {
            hostcuda_blend((char *)at + hostcudnn_at(t, n, c, h, w) * width, t->type == CUDNN_DATA_BFLOAT16, plane++, 1,
                           alpha, beta);
        }
}

/* The part of a window that lies on the image: rows [top, bottom), columns [left, right). */
struct window {
    int top, bottom, left, right;
    float divisor; /* of an average */
};

static struct window window_of(const struct pooling *p, int oy, int ox) {
    const struct cudnnPoolingStruct *how = &p->how;
    int top = oy * how->stride[0] - how->pad[0], left = ox * how->stride[1] - how->pad[1];
    int bottom = top + how->window[0], right = left + how->window[1];
    struct window v = {top > 0 ? top : 0, bottom < p->x.size[2] ? bottom : p->x.size[2], left > 0 ? left : 0,
                       right < p->x.size[3] ? right : p->x.size[3], 0};
    v.divisor = how->mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING
                    ? (float)(how->window[0] * how->window[1])
                    : (float)((v.bottom - v.top) * (v.right - v.left));
    return v;
}

static bool is_max(const struct pooling *p) {
    return p->how.mode == CUDNN_POOLING_MAX || p->how.mode == CUDNN_POOLING_MAX_DETERMINISTIC;
}

/* Where the largest value of the window stands; a NaN counts as the largest if it is to be propagated. */
static int argmax(const struct pooling *p, const float *x, struct window v) {
    int best = -1;
    for (int iy = v.top; iy < v.bottom; iy++)
        for (int ix = v.left; ix < v.right; ix++) {
            int i = iy * p->x.size[3] + ix;
            if (isnan(x[i])) {
                if (p->how.nan == CUDNN_PROPAGATE_NAN) return i;
            } else if (best < 0 || x[i] > x[best])
                best = i;
        }
    return best; /* -1: nothing but NaNs */
}

static void pool_plane(const struct pooling *p, const float *x, float *y) {
    for (int oy = 0; oy < p->y.size[2]; oy++)
        for (int ox = 0; ox < p->y.size[3]; ox++, y++) {
            struct window v = window_of(p, oy, ox);
            float sum = 0;
            if (is_max(p)) {
                int best = argmax(p, x, v);
                *y = best < 0 ? -INFINITY : x[best];
                continue;
            }
            for (int iy = v.top; iy < v.bottom; iy++)
                for (int ix = v.left; ix < v.right; ix++) sum += x[iy * p->x.size[3] + ix];
            *y = sum / v.divisor;
        }
}

static void unpool_plane(const struct pooling *p, const float *x, const float *dy, float *dx) {
    memset(dx, 0, (size_t)p->x.size[2] * (size_t)p->x.size[3] * sizeof *dx);
    for (int oy = 0; oy < p->y.size[2]; oy++)
        for (int ox = 0; ox < p->y.size[3]; ox++, dy++) {
            struct window v = window_of(p, oy, ox);
            if (is_max(p)) {
                int best = argmax(p, x, v);
                if (best >= 0) dx[best] += *dy;
                continue;
            }
            for (int iy = v.top; iy < v.bottom; iy++)
                for (int ix = v.left; ix < v.right; ix++) dx[iy * p->x.size[3] + ix] += *dy / v.divisor;
        }
}

static void run(const struct pooling *p, bool back) {
    size_t x_count = (size_t)p->x.size[2] * (size_t)p->x.size[3], y_count = (size_t)p->y.size[2] * (size_t)p->y.size[3];
    float *x = hostcuda_scratch(x_count * sizeof *x), *dx = hostcuda_scratch(x_count * sizeof *dx);
    float *y = hostcuda_scratch(y_count * sizeof *y);
    for (int n = 0; n < p->x.size[0]; n++)
        for (int c = 0; c < p->x.size[1]; c++) {
            fetch(x, p->x_at, &p->x, n, c);
            if (back) {
                fetch(y, p->dy_at, &p->y, n, c);
                unpool_plane(p, x, y, dx);
                if (p->disturbed) hostcudnn_disturb(dx, x_count);
                store(dx, p->out, &p->x, n, c, p->alpha, p->beta);
            } else {
                pool_plane(p, x, y);
                store(y, p->out, &p->y, n, c, p->alpha, p->beta);
            }
        }
    free(x);
    free(dx);
    free(y);
}

static void forward(const void *argument) {
    run(argument, false);
}
static void backward(const void *argument) {
    run(argument, true);
}

/* -- the calls --------------------------------------------------------------------------------------------------- */

static cudnnStatus_t check(const struct cudnnPoolingStruct *how, const struct cudnnTensorStruct *x,
                           const struct cudnnTensorStruct *y) {
    BAD_UNLESS(how && how->set && x && y);
    BAD_UNLESS(x->dims > 0 && y->dims > 0);
    SUPPORTED_IF(x->dims == 4 && y->dims == 4);
    BAD_UNLESS(x->size[0] == y->size[0] && x->size[1] == y->size[1]);
    BAD_UNLESS(y->size[2] == output_size(how, 0, x->size[2]));
    BAD_UNLESS(y->size[3] == output_size(how, 1, x->size[3]));
    BAD_UNLESS(x->type == y->type);
    SUPPORTED_IF(hostcudnn_is_real(x->type));
    SUPPORTED_IF((hostcudnn_packed(x, CUDNN_TENSOR_NCHW) && hostcudnn_packed(y, CUDNN_TENSOR_NCHW)) ||
                 (hostcudnn_packed(x, CUDNN_TENSOR_NHWC) && hostcudnn_packed(y, CUDNN_TENSOR_NHWC)));
    return CUDNN_STATUS_SUCCESS;
}

static bool same(const struct cudnnTensorStruct *a, const struct cudnnTensorStruct *b) {
    return a->type == b->type && a->dims == b->dims && !memcmp(a->size, b->size, (size_t)a->dims * sizeof a->size[0]) &&
           !memcmp(a->stride, b->stride, (size_t)a->dims * sizeof a->stride[0]);
}

cudnnStatus_t cudnnPoolingForward(cudnnHandle_t handle, const cudnnPoolingDescriptor_t poolingDesc, const void *alpha,
                                  const cudnnTensorDescriptor_t xDesc, const void *x, const void *beta,
                                  const cudnnTensorDescriptor_t yDesc, void *y) {
    BAD_UNLESS(handle && alpha && beta && x && y);
    PASS_ON(check(poolingDesc, xDesc, yDesc));
    hostcudnn_need(__func__, "x", x, hostcudnn_bytes(xDesc));
    hostcudnn_need(__func__, "y", y, hostcudnn_bytes(yDesc));
    hostcuda_apart(__func__, y, hostcudnn_bytes(yDesc), "x", x, hostcudnn_bytes(xDesc));
    struct pooling p = {.how = *poolingDesc, .x = *xDesc, .y = *yDesc, .x_at = x, .out = y};
    memcpy(&p.alpha, alpha, sizeof p.alpha);
    memcpy(&p.beta, beta, sizeof p.beta);
    hostcuda_enqueue(handle->stream, forward, &p, sizeof p);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnPoolingBackward(cudnnHandle_t handle, const cudnnPoolingDescriptor_t poolingDesc, const void *alpha,
                                   const cudnnTensorDescriptor_t yDesc, const void *y,
                                   const cudnnTensorDescriptor_t dyDesc, const void *dy,
                                   const cudnnTensorDescriptor_t xDesc, const void *x, const void *beta,
                                   const cudnnTensorDescriptor_t dxDesc, void *dx) {
    BAD_UNLESS(handle && alpha && beta && y && dy && x && dx && dyDesc && dxDesc);
    PASS_ON(check(poolingDesc, xDesc, yDesc));
    BAD_UNLESS(same(yDesc, dyDesc)); /* so documented: same dimensions, strides and types */
    BAD_UNLESS(same(xDesc, dxDesc));
    size_t x_bytes = hostcudnn_bytes(xDesc), y_bytes = hostcudnn_bytes(yDesc);
    hostcudnn_need(__func__, "y", y, y_bytes);
    hostcudnn_need(__func__, "dy", dy, y_bytes);
    hostcudnn_need(__func__, "x", x, x_bytes);
    hostcudnn_need(__func__, "dx", dx, x_bytes);
    hostcuda_apart(__func__, dx, x_bytes, "y", y, y_bytes);
    hostcuda_apart(__func__, dx, x_bytes, "dy", dy, y_bytes);
    hostcuda_apart(__func__, dx, x_bytes, "x", x, x_bytes);
    struct pooling p = {.how = *poolingDesc, .x = *xDesc, .y = *yDesc, .x_at = x, .dy_at = dy, .out = dx};
    /* Where windows overlap, the plain maximum adds their gradients in any order. */
    p.disturbed =
        p.how.mode == CUDNN_POOLING_MAX && (p.how.stride[0] < p.how.window[0] || p.how.stride[1] < p.how.window[1]);
    memcpy(&p.alpha, alpha, sizeof p.alpha);
    memcpy(&p.beta, beta, sizeof p.beta);
    hostcuda_enqueue(handle->stream, backward, &p, sizeof p);
    return CUDNN_STATUS_SUCCESS;
}
