/* hostcuda_pooling.c: pooling of the stand-in for cuDNN against plain loops in double. */
#include "tests/hostcuda/libraries_rig.h"

struct trial {
    int n, c, h, w, window, stride, pad;
};
static const struct trial trials[] = {
    {2, 3, 8, 6, 2, 2, 0}, {1, 4, 7, 9, 3, 2, 1}, {2, 5, 4, 4, 4, 4, 0}, {1, 1, 5, 5, 3, 1, 1}, {3, 2, 6, 5, 3, 3, 2},
};

static size_t place(bool last, const struct trial *t, int b, int c, int y, int x, int height, int width) {
    return last ? (size_t)(((b * height + y) * width + x) * t->c + c)
                : (size_t)(((b * t->c + c) * height + y) * width + x);
}

/* What output (oy, ox) of an average takes from each pixel, or 1 at the largest pixel and 0 elsewhere. */
static double weight(const struct trial *t, cudnnPoolingMode_t mode, const double *x, bool last, const int at[6]) {
    int b = at[0], c = at[1], top = at[2] * t->stride - t->pad, left = at[3] * t->stride - t->pad, inside = 0;
    int best_y = -1, best_x = -1;
    for (int y = top; y < top + t->window; y++)
        for (int xx = left; xx < left + t->window; xx++) {
            if (y < 0 || y >= t->h || xx < 0 || xx >= t->w) continue;
            inside++;
            if (best_y < 0 ||
                x[place(last, t, b, c, y, xx, t->h, t->w)] > x[place(last, t, b, c, best_y, best_x, t->h, t->w)])
                best_y = y, best_x = xx;
        }
    if (at[4] < top || at[4] >= top + t->window || at[5] < left || at[5] >= left + t->window) return 0;
    if (mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING) return 1.0 / (t->window * t->window);
    if (mode == CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING) return 1.0 / inside;
    return at[4] == best_y && at[5] == best_x;
}

static void try_pooling(const struct trial *t, cudnnPoolingMode_t mode, bool last, bool is_bf16) {
    cudnnTensorFormat_t format = last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
    cudnnDataType_t type = is_bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
    cudnnTensorDescriptor_t x_desc = NULL, y_desc = NULL;
    cudnnPoolingDescriptor_t how;
    int n = 0, c = 0, p = 0, q = 0;
    float alpha = 0.5f, beta = -2;
    double tolerance = is_bf16 ? 1.0 / 256 : 1e-6;
    assert_int_equal(cudnnCreateTensorDescriptor(&x_desc) || cudnnCreateTensorDescriptor(&y_desc), 0);
    assert_int_equal(cudnnCreatePoolingDescriptor(&how), 0);
    assert_int_equal(cudnnSetTensor4dDescriptor(x_desc, format, type, t->n, t->c, t->h, t->w), 0);
    assert_int_equal(cudnnSetPooling2dDescriptor(how, mode, CUDNN_NOT_PROPAGATE_NAN, t->window, t->window, t->pad,
                                                 t->pad, t->stride, t->stride),
                     0);
    assert_int_equal(cudnnGetPooling2dForwardOutputDim(how, x_desc, &n, &c, &p, &q), 0);
    assert_true(n == t->n && c == t->c && p == (t->h + 2 * t->pad - t->window) / t->stride + 1);
    assert_int_equal(cudnnSetTensor4dDescriptor(y_desc, format, type, n, c, p, q), 0);
    size_t x_count = (size_t)(n * c * t->h * t->w), y_count = (size_t)(n * c * p * q);
    struct numbers x = rig_numbers(x_count, is_bf16, 1), dx = rig_numbers(x_count, is_bf16, 1);
    struct numbers y = rig_numbers(y_count, is_bf16, 1), dy = rig_numbers(y_count, is_bf16, 1);
    assert_int_equal(cudnnPoolingForward(dnn, how, &alpha, x_desc, x.device, &beta, y_desc, y.device), 0);
    for (size_t i = 0; i < y_count; i++) y.host[i] *= (double)beta;
    for (size_t i = 0; i < x_count; i++) dx.host[i] *= (double)beta;
    for (int b = 0; b < n; b++)
        for (int k = 0; k < c; k++)
            for (int oy = 0; oy < p; oy++)
                for (int ox = 0; ox < q; ox++)
                    for (int iy = 0; iy < t->h; iy++)
                        for (int ix = 0; ix < t->w; ix++) {
                            size_t from = place(last, t, b, k, iy, ix, t->h, t->w),
                                   to = place(last, t, b, k, oy, ox, p, q);
                            double part = (double)alpha * weight(t, mode, x.host, last, (int[]){b, k, oy, ox, iy, ix});
                            y.host[to] += part * x.host[from];
                            dx.host[from] += part * dy.host[to];
                        }
    rig_close(&y, tolerance, "forward");
    assert_int_equal(cudnnPoolingBackward(dnn, how, &alpha, y_desc, y.device, y_desc, dy.device, x_desc, x.device,
                                          &beta, x_desc, dx.device),
                     0);
    rig_close(&dx, tolerance, "backward");
    rig_free(&x);
    rig_free(&dx);
    rig_free(&y);
    rig_free(&dy);
    assert_int_equal(cudnnDestroyTensorDescriptor(x_desc) || cudnnDestroyTensorDescriptor(y_desc), 0);
    assert_int_equal(cudnnDestroyPoolingDescriptor(how), 0);
}

static void pooling_pools(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++)
        for (int mode = 0; mode < 4; mode++)
            for (int kind = 0; kind < 4; kind++) try_pooling(&trials[i], (cudnnPoolingMode_t)mode, kind & 1, kind & 2);
}

/* A NaN in the first window goes through if asked, else the largest number does. */
static void nan_goes_through_if_asked(void **state) {
    (void)state;
    for (int propagate = 0; propagate < 2; propagate++) {
        cudnnTensorDescriptor_t x_desc = NULL, y_desc = NULL;
        cudnnPoolingDescriptor_t how;
        float one = 1, zero = 0, y_host[2];
        assert_int_equal(cudnnCreateTensorDescriptor(&x_desc) || cudnnCreateTensorDescriptor(&y_desc), 0);
        assert_int_equal(cudnnCreatePoolingDescriptor(&how), 0);
        assert_int_equal(cudnnSetTensor4dDescriptor(x_desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 1, 4), 0);
        assert_int_equal(cudnnSetTensor4dDescriptor(y_desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 1, 2), 0);
        assert_int_equal(cudnnSetPooling2dDescriptor(how, CUDNN_POOLING_MAX_DETERMINISTIC,
                                                     propagate ? CUDNN_PROPAGATE_NAN : CUDNN_NOT_PROPAGATE_NAN, 1, 2, 0,
                                                     0, 1, 2),
                         0);
        struct numbers x = rig_numbers(4, false, 1), y = rig_numbers(2, false, 1);
        memcpy(x.host, (double[]){NAN, -3, 1, 2}, 4 * sizeof *x.host);
        rig_send(&x);
        assert_int_equal(cudnnPoolingForward(dnn, how, &one, x_desc, x.device, &zero, y_desc, y.device), 0);
        assert_int_equal(cudaMemcpy(y_host, y.device, sizeof y_host, cudaMemcpyDeviceToHost), 0);
        assert_true(propagate ? isnan(y_host[0]) : y_host[0] == -3);
        assert_true(y_host[1] == 2);
        rig_free(&x);
        rig_free(&y);
        assert_int_equal(cudnnDestroyTensorDescriptor(x_desc) || cudnnDestroyTensorDescriptor(y_desc), 0);
        assert_int_equal(cudnnDestroyPoolingDescriptor(how), 0);
    }
}

static void pooling_refuses(void **state) {
    (void)state;
    cudnnTensorDescriptor_t x_desc = NULL, y_desc = NULL;
    cudnnPoolingDescriptor_t how;
    float one = 1, zero = 0;
    struct numbers x = rig_numbers(32, false, 1), y = rig_numbers(32, false, 1);
    assert_int_equal(cudnnCreateTensorDescriptor(&x_desc) || cudnnCreateTensorDescriptor(&y_desc), 0);
    assert_int_equal(cudnnCreatePoolingDescriptor(&how), 0);
    assert_int_equal(cudnnSetTensor4dDescriptor(x_desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 2, 4, 4), 0);
    assert_int_equal(cudnnSetTensor4dDescriptor(y_desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 2, 2, 2), 0);
#define FORWARD() cudnnPoolingForward(dnn, how, &one, x_desc, x.device, &zero, y_desc, y.device)
    assert_int_equal(FORWARD(), CUDNN_STATUS_BAD_PARAM); /* the window was never set */
    assert_int_equal(cudnnSetPooling2dDescriptor(how, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN, 0, 2, 0, 0, 2, 2),
                     CUDNN_STATUS_BAD_PARAM);
    assert_int_equal(cudnnSetPooling2dDescriptor(how, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN, 2, 2, 0, 0, 2, 2), 0);
    assert_int_equal(FORWARD(), CUDNN_STATUS_SUCCESS);
    assert_int_equal(cudnnSetTensor4dDescriptor(y_desc, CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, 1, 2, 2, 2), 0);
    assert_int_equal(FORWARD(), CUDNN_STATUS_NOT_SUPPORTED);
    assert_int_equal(cudnnSetTensor4dDescriptor(y_desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 2, 2, 3), 0);
    assert_int_equal(FORWARD(), CUDNN_STATUS_BAD_PARAM);
    rig_free(&x);
    rig_free(&y);
    assert_int_equal(cudnnDestroyTensorDescriptor(x_desc) || cudnnDestroyTensorDescriptor(y_desc), 0);
    assert_int_equal(cudnnDestroyPoolingDescriptor(how), 0);
}

int main(void) {
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(pooling_pools),
        cmocka_unit_test(nan_goes_through_if_asked),
        cmocka_unit_test(pooling_refuses),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(cases, rig_open_cudnn, rig_close_cudnn);
}
