/* cudnn_conv_find.c: the algorithms that the stand-in for cuDNN claims to have, and the calls that rank them. All give
 * the result of cudnn_conv_run.c; they differ as those of the library do, in what they are there for, in workspace, in
 * the time they claim (fixed numbers: nothing is measured) and in whether they give the same bits every time. The
 * fastest of each pass does not, so that a program that wants reproducible runs has to look.
 * Source: the cuDNN 9 API documentation, cudnnConvolutionFwdAlgo_t and its siblings. */
#include "tests/hostcuda/cudnn/cudnn_conv.h"

#include <stdlib.h>
#include <string.h>

/* What an algorithm is there for. */
enum {
    ANYTHING = 0,
    NEVER = 1,
    PLANAR_FLOAT = 2, /* NCHW, float, one group, no dilation */
    UNIT_STRIDE = 4,
    WINDOW_3 = 8,
    WINDOW_3_OR_5 = 16,
};
/* What workspace it needs. */
enum space { NO_SPACE, ONE_IMAGE, FILTERS, SPECTRA };

struct algorithm {
    int id;
    unsigned limits;
    enum space space;
    bool deterministic;
    float time; /* relative */
};

enum { PER_PASS = 8, LISTED = PER_PASS + 1 };

/* id -1: the pass has no more */
static const struct algorithm algorithms[3][PER_PASS] = {
    [CONV_FORWARD] = {{CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, ANYTHING, NO_SPACE, true, 3.0f},
                      {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, ANYTHING, FILTERS, true, 1.5f},
                      {CUDNN_CONVOLUTION_FWD_ALGO_GEMM, ANYTHING, ONE_IMAGE, false, 1.0f},
                      {CUDNN_CONVOLUTION_FWD_ALGO_DIRECT, NEVER, NO_SPACE, true, 1.0f},
                      {CUDNN_CONVOLUTION_FWD_ALGO_FFT, PLANAR_FLOAT | UNIT_STRIDE, SPECTRA, true, 4.0f},
                      {CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING, PLANAR_FLOAT | UNIT_STRIDE, SPECTRA, true, 5.0f},
                      {CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD, PLANAR_FLOAT | UNIT_STRIDE | WINDOW_3, FILTERS, true, 1.2f},
                      {CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED, PLANAR_FLOAT | UNIT_STRIDE | WINDOW_3_OR_5,
                       SPECTRA, true, 1.1f}},
    [CONV_DATA] = {{CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, ANYTHING, NO_SPACE, false, 1.0f},
                   {CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, ANYTHING, FILTERS, true, 1.4f},
                   {CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT, PLANAR_FLOAT | UNIT_STRIDE, SPECTRA, true, 4.0f},
                   {CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING, PLANAR_FLOAT | UNIT_STRIDE, SPECTRA, true, 5.0f},
                   {CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD, PLANAR_FLOAT | UNIT_STRIDE | WINDOW_3, FILTERS, true,
                    1.2f},
                   {CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED, PLANAR_FLOAT | UNIT_STRIDE | WINDOW_3_OR_5,
                    SPECTRA, true, 1.1f},
                   {-1, NEVER, NO_SPACE, true, 0},
                   {-1, NEVER, NO_SPACE, true, 0}},
    [CONV_FILTER] = {{CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, ANYTHING, NO_SPACE, false, 1.0f},
                     {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, ANYTHING, ONE_IMAGE, true, 1.5f},
                     {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT, PLANAR_FLOAT | UNIT_STRIDE, SPECTRA, true, 4.0f},
                     {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3, ANYTHING, FILTERS, false, 1.1f},
                     {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD, NEVER, NO_SPACE, true, 1.0f},
                     {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED, PLANAR_FLOAT | UNIT_STRIDE | WINDOW_3_OR_5,
                      SPECTRA, true, 1.2f},
                     {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING, PLANAR_FLOAT | UNIT_STRIDE, SPECTRA, true, 5.0f},
                     {-1, NEVER, NO_SPACE, true, 0}},
};
enum { ALGORITHM_AGAIN = 1 }; /* number 1 of every pass is also listed in plain float, where the caller allows TF32 */

static bool there_for(const struct convolution *v, unsigned limits) {
    bool plain = !v->channels_last && !v->is_bf16 && v->groups == 1 && v->dilation[0] == 1 && v->dilation[1] == 1;
    bool square = v->r == v->s;
    if (limits & NEVER) return false;
    if ((limits & PLANAR_FLOAT) && !plain) return false;
    if ((limits & UNIT_STRIDE) && (v->stride[0] != 1 || v->stride[1] != 1)) return false;
    if ((limits & WINDOW_3) && !(square && v->r == 3)) return false;
    return !(limits & WINDOW_3_OR_5) || (square && (v->r == 3 || v->r == 5));
}

/* Bytes: about what such an algorithm keeps. */
static size_t space_of(const struct convolution *v, enum space space) {
    size_t taps = (size_t)(v->c / v->groups) * (size_t)v->r * (size_t)v->s, pixels = (size_t)v->p * (size_t)v->q;
    size_t plane = (size_t)(v->h + v->r) * (size_t)(v->w + v->s), c = (size_t)v->c, k = (size_t)v->k;
    switch (space) {
    case NO_SPACE:
        return 0;
    case ONE_IMAGE:
        return taps * pixels * sizeof(float); /* its columns */
    case FILTERS: /* them, in another order; without tensor cores twice: what is needed depends on the products, too */
        return k * taps * sizeof(float) * (v->math == CUDNN_TENSOR_OP_MATH ? 1 : 2) + 256;
    case SPECTRA:
        return plane * 2 * sizeof(float) * (c * k + (size_t)v->n * (c + k)); /* of x, w and y */
    }
    return 0;
}

float hostcudnn_conv_ms(const struct convolution *v, float time) {
    double products = (double)v->n * v->k * v->p * v->q * (v->c / v->groups) * v->r * v->s;
    return time * (float)(0.5 + products / 5e9);
}

static struct conv_choice choice_of(const struct convolution *v, const struct algorithm *a) {
    bool there = there_for(v, a->limits);
    return (struct conv_choice){
        .algorithm = a->id,
        .status = there ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED,
        .time = there ? hostcudnn_conv_ms(v, a->time) : -1,
        .memory = there ? space_of(v, a->space) : 0,
        .deterministic = a->deterministic,
        .math = v->math,
    };
}

struct conv_choice hostcudnn_conv_choice(const struct convolution *conv, int algorithm) {
    for (int i = 0; i < PER_PASS; i++)
        if (algorithms[conv->pass][i].id == algorithm && algorithm >= 0)
            return choice_of(conv, &algorithms[conv->pass][i]);
    return (struct conv_choice){.algorithm = algorithm, .status = CUDNN_STATUS_BAD_PARAM, .time = -1};
}

/* By time; those that failed last. */
static int by_time(const void *p, const void *q) {
    const struct conv_choice *a = p, *b = q;
    if (a->time < 0 || b->time < 0) return (a->time < 0) - (b->time < 0);
    return (a->time > b->time) - (a->time < b->time);
}

/* The algorithm with products of this kind and a workspace of this size. */
static struct conv_choice tried(const struct convolution *v, const struct algorithm *a, cudnnMathType_t math,
                                size_t workspace) {
    struct convolution how = *v;
    how.math = math;
    struct conv_choice c = choice_of(&how, a);
    if (c.status == CUDNN_STATUS_SUCCESS && c.memory > workspace) {
        c.status = CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED; /* by its old name ALLOC_FAILED, as told */
        c.time = -1;
    }
    return c;
}

/* All choices with a workspace of this size, ranked; how many. */
static int list(const struct convolution *v, size_t workspace, struct conv_choice choices[LISTED]) {
    int count = 0;
    for (int i = 0; i < PER_PASS && algorithms[v->pass][i].id >= 0; i++) {
        const struct algorithm *a = &algorithms[v->pass][i];
        choices[count++] = tried(v, a, v->math, workspace);
        if (i == ALGORITHM_AGAIN && v->math != CUDNN_FMA_MATH && !v->is_bf16) {
            struct conv_choice *again = &choices[count++];
            *again = tried(v, a, CUDNN_FMA_MATH, workspace);
            if (again->time > 0) again->time *= 1.3f;
        }
    }
    qsort(choices, (size_t)count, sizeof *choices, by_time);
    return count;
}

static int listed(enum conv_pass pass) {
    int count = 0;
    while (count < PER_PASS && algorithms[pass][count].id >= 0) count++;
    return count + 1;
}

struct filling {
    void *at[2];
    size_t bytes[2];
};

static void fill(const void *argument) {
    const struct filling *f = argument;
    for (int i = 0; i < 2; i++)
        if (f->at[i]) memset(f->at[i], 0xff, f->bytes[i]);
}

/* Trying the algorithms leaves garbage, here NaNs, in the output and in the workspace. */
static cudnnStatus_t try_all(const char *function, cudnnHandle_t handle, const struct convolution *v) {
    MAY_FAIL(function, handle);
    BAD_UNLESS(v->x && v->filter && v->y);
    BAD_UNLESS(v->workspace || v->workspace_bytes == 0);
    SUPPORTED_IF(!hostcuda_capturing(handle->stream));
    hostcudnn_conv_need(function, v);
    struct filling f = {{v->out, v->workspace}, {hostcudnn_conv_bytes(v, hostcudnn_conv_out(v)), v->workspace_bytes}};
    hostcuda_enqueue(handle->stream, fill, &f, sizeof f);
    return CUDNN_STATUS_SUCCESS;
}

/* The three passes have results of three types with the same fields. */
#define GIVE(type, algorithm_type)                                                                                     \
    do {                                                                                                               \
        BAD_UNLESS(returnedAlgoCount != NULL && perfResults != NULL);                                                  \
        BAD_UNLESS(requestedAlgoCount > 0);                                                                            \
        struct conv_choice choices[LISTED] = {{0}};                                                                    \
        int count = list(&conv, conv.workspace_bytes, choices);                                                        \
        if (count > requestedAlgoCount) count = requestedAlgoCount;                                                    \
        for (int i = 0; i < count; i++)                                                                                \
            perfResults[i] =                                                                                           \
                (type){.algo = (algorithm_type)choices[i].algorithm,                                                   \
                       .status = choices[i].status,                                                                    \
                       .time = choices[i].time,                                                                        \
                       .memory = choices[i].memory,                                                                    \
                       .determinism = choices[i].deterministic ? CUDNN_DETERMINISTIC : CUDNN_NON_DETERMINISTIC,        \
                       .mathType = choices[i].math};                                                                   \
        *returnedAlgoCount = count;                                                                                    \
        return CUDNN_STATUS_SUCCESS;                                                                                   \
    } while (0)

#define GIVE_SPACE()                                                                                                   \
    do {                                                                                                               \
        BAD_UNLESS(sizeInBytes);                                                                                       \
        struct conv_choice choice = hostcudnn_conv_choice(&conv, (int)algo);                                           \
        if (choice.status != CUDNN_STATUS_SUCCESS)                                                                     \
            return hostcudnn_fail(choice.status, "%s: algorithm %d is not there for it", __func__, (int)algo);         \
        *sizeInBytes = choice.memory;                                                                                  \
        return CUDNN_STATUS_SUCCESS;                                                                                   \
    } while (0)

cudnnStatus_t cudnnGetConvolutionForwardAlgorithmMaxCount(cudnnHandle_t handle, int *count) {
    BAD_UNLESS(handle && count);
    *count = listed(CONV_FORWARD);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithmMaxCount(cudnnHandle_t handle, int *count) {
    BAD_UNLESS(handle && count);
    *count = listed(CONV_DATA);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithmMaxCount(cudnnHandle_t handle, int *count) {
    BAD_UNLESS(handle && count);
    *count = listed(CONV_FILTER);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t handle, const cudnnTensorDescriptor_t srcDesc,
                                                     const cudnnFilterDescriptor_t filterDesc,
                                                     const cudnnConvolutionDescriptor_t convDesc,
                                                     const cudnnTensorDescriptor_t destDesc,
                                                     const int requestedAlgoCount, int *returnedAlgoCount,
                                                     cudnnConvolutionFwdAlgoPerf_t *perfResults) {
    struct convolution conv;
    BAD_UNLESS(handle);
    PASS_ON(hostcudnn_conv_check(&conv, CONV_FORWARD, srcDesc, filterDesc, convDesc, destDesc));
    conv.workspace_bytes = SIZE_MAX;
    GIVE(cudnnConvolutionFwdAlgoPerf_t, cudnnConvolutionFwdAlgo_t);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t filterDesc, const cudnnTensorDescriptor_t diffDesc,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnTensorDescriptor_t gradDesc, const int requestedAlgoCount,
    int *returnedAlgoCount, cudnnConvolutionBwdDataAlgoPerf_t *perfResults) {
    struct convolution conv;
    BAD_UNLESS(handle);
    PASS_ON(hostcudnn_conv_check(&conv, CONV_DATA, gradDesc, filterDesc, convDesc, diffDesc));
    conv.workspace_bytes = SIZE_MAX;
    GIVE(cudnnConvolutionBwdDataAlgoPerf_t, cudnnConvolutionBwdDataAlgo_t);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t handle, const cudnnTensorDescriptor_t srcDesc,
                                                            const cudnnTensorDescriptor_t diffDesc,
                                                            const cudnnConvolutionDescriptor_t convDesc,
                                                            const cudnnFilterDescriptor_t gradDesc,
                                                            const int requestedAlgoCount, int *returnedAlgoCount,
                                                            cudnnConvolutionBwdFilterAlgoPerf_t *perfResults) {
    struct convolution conv;
    BAD_UNLESS(handle);
    PASS_ON(hostcudnn_conv_check(&conv, CONV_FILTER, srcDesc, gradDesc, convDesc, diffDesc));
    conv.workspace_bytes = SIZE_MAX;
    GIVE(cudnnConvolutionBwdFilterAlgoPerf_t, cudnnConvolutionBwdFilterAlgo_t);
}

cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc,
                                                     const void *x, const cudnnFilterDescriptor_t wDesc, const void *w,
                                                     const cudnnConvolutionDescriptor_t convDesc,
                                                     const cudnnTensorDescriptor_t yDesc, void *y,
                                                     const int requestedAlgoCount, int *returnedAlgoCount,
                                                     cudnnConvolutionFwdAlgoPerf_t *perfResults, void *workSpace,
                                                     size_t workSpaceSizeInBytes) {
    struct convolution conv;
    BAD_UNLESS(handle);
    PASS_ON(hostcudnn_conv_check(&conv, CONV_FORWARD, xDesc, wDesc, convDesc, yDesc));
    hostcudnn_conv_memory(&conv, x, w, y, workSpace, workSpaceSizeInBytes);
    PASS_ON(try_all(__func__, handle, &conv));
    GIVE(cudnnConvolutionFwdAlgoPerf_t, cudnnConvolutionFwdAlgo_t);
}

cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithmEx(cudnnHandle_t handle, const cudnnFilterDescriptor_t wDesc,
                                                          const void *w, const cudnnTensorDescriptor_t dyDesc,
                                                          const void *dy, const cudnnConvolutionDescriptor_t convDesc,
                                                          const cudnnTensorDescriptor_t dxDesc, void *dx,
                                                          const int requestedAlgoCount, int *returnedAlgoCount,
                                                          cudnnConvolutionBwdDataAlgoPerf_t *perfResults,
                                                          void *workSpace, size_t workSpaceSizeInBytes) {
    struct convolution conv;
    BAD_UNLESS(handle);
    PASS_ON(hostcudnn_conv_check(&conv, CONV_DATA, dxDesc, wDesc, convDesc, dyDesc));
    hostcudnn_conv_memory(&conv, dx, w, dy, workSpace, workSpaceSizeInBytes);
    PASS_ON(try_all(__func__, handle, &conv));
    GIVE(cudnnConvolutionBwdDataAlgoPerf_t, cudnnConvolutionBwdDataAlgo_t);
}

cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithmEx(cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc,
                                                            const void *x, const cudnnTensorDescriptor_t dyDesc,
                                                            const void *y, const cudnnConvolutionDescriptor_t convDesc,
                                                            const cudnnFilterDescriptor_t dwDesc, void *dw,
                                                            const int requestedAlgoCount, int *returnedAlgoCount,
                                                            cudnnConvolutionBwdFilterAlgoPerf_t *perfResults,
                                                            void *workSpace, size_t workSpaceSizeInBytes) {
    struct convolution conv;
    BAD_UNLESS(handle);
    PASS_ON(hostcudnn_conv_check(&conv, CONV_FILTER, xDesc, dwDesc, convDesc, dyDesc));
    hostcudnn_conv_memory(&conv, x, dw, y, workSpace, workSpaceSizeInBytes);
    PASS_ON(try_all(__func__, handle, &conv));
    GIVE(cudnnConvolutionBwdFilterAlgoPerf_t, cudnnConvolutionBwdFilterAlgo_t);
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc,
                                                      const cudnnFilterDescriptor_t wDesc,
                                                      const cudnnConvolutionDescriptor_t convDesc,
                                                      const cudnnTensorDescriptor_t yDesc,
                                                      cudnnConvolutionFwdAlgo_t algo, size_t *sizeInBytes) {
    struct convolution conv;
    BAD_UNLESS(handle);
    PASS_ON(hostcudnn_conv_check(&conv, CONV_FORWARD, xDesc, wDesc, convDesc, yDesc));
    GIVE_SPACE();
}

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t handle, const cudnnFilterDescriptor_t wDesc,
                                                           const cudnnTensorDescriptor_t dyDesc,
                                                           const cudnnConvolutionDescriptor_t convDesc,
                                                           const cudnnTensorDescriptor_t dxDesc,
                                                           cudnnConvolutionBwdDataAlgo_t algo, size_t *sizeInBytes) {
    struct convolution conv;
    BAD_UNLESS(handle);
    PASS_ON(hostcudnn_conv_check(&conv, CONV_DATA, dxDesc, wDesc, convDesc, dyDesc));
    GIVE_SPACE();
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc,
                                                             const cudnnTensorDescriptor_t dyDesc,
                                                             const cudnnConvolutionDescriptor_t convDesc,
                                                             const cudnnFilterDescriptor_t gradDesc,
                                                             cudnnConvolutionBwdFilterAlgo_t algo,
                                                             size_t *sizeInBytes) {
    struct convolution conv;
    BAD_UNLESS(handle);
    PASS_ON(hostcudnn_conv_check(&conv, CONV_FILTER, xDesc, gradDesc, convDesc, dyDesc));
    GIVE_SPACE();
}
