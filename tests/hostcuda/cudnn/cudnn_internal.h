/* cudnn_internal.h: what the files of the stand-in for cuDNN share: the descriptors' contents, how a refusal is told,
 * how memory is checked.
 *
 * Every compute function does its checks when it is called, in the order of the real library: first what the library
 * itself answers with a status (hostcudnn_fail), then what it would leave undefined (hostcudnn_need, which ends the
 * program); then it enqueues the computation. Nothing computes at the call. */
#ifndef ST_TESTS_HOSTCUDA_CUDNN_INTERNAL_H
#define ST_TESTS_HOSTCUDA_CUDNN_INTERNAL_H

#include <cudnn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "tests/hostcuda/gemm.h"
#include "tests/hostcuda/hostcuda.h"

/* Tensors and workspaces: what vector loads of the real kernels want. */
enum { HOSTCUDNN_ALIGNMENT = 16 };

struct cudnnContext {
    cudaStream_t stream;
};

struct cudnnTensorStruct {
    cudnnDataType_t type;
    int dims; /* 0: never set, or "does not exist" (cudnnGetRNNWeightParams) */
    int size[CUDNN_DIM_MAX], stride[CUDNN_DIM_MAX];
};

struct cudnnFilterStruct {
    cudnnDataType_t type;
    cudnnTensorFormat_t format;
    int dims;                /* 0: never set */
    int size[CUDNN_DIM_MAX]; /* K, C, R, S whatever the format */
};

struct cudnnConvolutionStruct {
    bool set;
    int pad[2], stride[2], dilation[2]; /* vertical, horizontal */
    cudnnConvolutionMode_t mode;
    cudnnDataType_t compute;
    cudnnMathType_t math;
    int groups;
};

struct cudnnPoolingStruct {
    bool set;
    cudnnPoolingMode_t mode;
    cudnnNanPropagation_t nan;
    int window[2], pad[2], stride[2]; /* vertical, horizontal */
};

/* Remembers the text for cudnnGetLastErrorString and returns the status. */
cudnnStatus_t hostcudnn_fail(cudnnStatus_t status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Refusals, one line each at the place of the check; `function` is the C function of the library. */
#define BAD_UNLESS(condition)                                                                                          \
    do {                                                                                                               \
        if (!(condition)) return hostcudnn_fail(CUDNN_STATUS_BAD_PARAM, "%s: not true: %s", __func__, #condition);     \
    } while (0)
#define SUPPORTED_IF(condition)                                                                                        \
    do {                                                                                                               \
        if (!(condition)) return hostcudnn_fail(CUDNN_STATUS_NOT_SUPPORTED, "%s: not true: %s", __func__, #condition); \
    } while (0)
/* Where a test has ordered it, the call fails, after something that no capture survives. */
#define MAY_FAIL(function, handle)                                                                                     \
    do {                                                                                                               \
        if (!hostcuda_fails(function)) break;                                                                          \
        (void)cudaStreamSynchronize((handle)->stream);                                                                 \
        return hostcudnn_fail(CUDNN_STATUS_EXECUTION_FAILED, "%s: as it was told to", function);                       \
    } while (0)
#define PASS_ON(call)                                                                                                  \
    do {                                                                                                               \
        cudnnStatus_t status_ = (call);                                                                                \
        if (status_ != CUDNN_STATUS_SUCCESS) return status_;                                                           \
    } while (0)

/* cudnnCreate<name>Descriptor, which sets nothing yet, and cudnnDestroy<name>Descriptor. */
#define CREATE_AND_DESTROY(name)                                                                                       \
    cudnnStatus_t cudnnCreate##name##Descriptor(cudnn##name##Descriptor_t *descriptor) {                               \
        BAD_UNLESS(descriptor);                                                                                        \
        *descriptor = calloc(1, sizeof **descriptor);                                                                  \
        return *descriptor ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;                \
    }                                                                                                                  \
    cudnnStatus_t cudnnDestroy##name##Descriptor(cudnn##name##Descriptor_t descriptor) {                               \
        free(descriptor);                                                                                              \
        return CUDNN_STATUS_SUCCESS;                                                                                   \
    }

/* Ends the program unless [p, p + bytes) is device memory, aligned. */
static inline void hostcudnn_need(const char *function, const char *argument, const void *p, size_t bytes) {
    hostcuda_need(function, argument, p, bytes, HOSTCUDNN_ALIGNMENT);
}

size_t hostcudnn_width(cudnnDataType_t type);              /* bytes of one number */
size_t hostcudnn_bytes(const struct cudnnTensorStruct *t); /* from the first to the last number */
bool hostcudnn_is_real(cudnnDataType_t type);              /* float or bf16: what the computations here know */

/* Where entry (n, c, h, w) of a 4-d tensor stands, in numbers. */
static inline size_t hostcudnn_at(const struct cudnnTensorStruct *t, int n, int c, int h, int w) {
    return (size_t)n * (size_t)t->stride[0] + (size_t)c * (size_t)t->stride[1] + (size_t)h * (size_t)t->stride[2] +
           (size_t)w * (size_t)t->stride[3];
}

/* Is the 4-d tensor fully packed in this format? Strides of dimensions of size 1 do not count. */
bool hostcudnn_packed(const struct cudnnTensorStruct *t, cudnnTensorFormat_t format);

/* What a non-deterministic algorithm does to its sums: every one may be one unit in the last place larger, another
 * choice at every call and in every process. */
void hostcudnn_disturb(float *sums, size_t count);

#endif
