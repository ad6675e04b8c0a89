/* cudnn.c: handles, tensor and filter descriptors, versions and texts of the stand-in for cuDNN, and the helpers of
 * cudnn_internal.h. Source: the cuDNN 9 API documentation and cudnn_ops_v9.h. */
#include "tests/hostcuda/cudnn/cudnn_internal.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static _Thread_local char last_error[512];

cudnnStatus_t hostcudnn_fail(cudnnStatus_t status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(last_error, sizeof last_error, format, arguments);
    va_end(arguments);
    return status;
}

void cudnnGetLastErrorString(char *message, size_t max_size) {
    if (!message || max_size == 0) return;
    snprintf(message, max_size, "%s", last_error);
    last_error[0] = 0;
}

/* -- library and handle -------------------------------------------------------------------------------------- */

size_t cudnnGetVersion(void) {
    const char *text = getenv("SPARSETRAIN_HOSTCUDA_CUDNN"); /* of a library that is not the one of the headers */
    return text ? (size_t)atoi(text) : CUDNN_VERSION;
}

#define TEXT_OF(status)                                                                                                \
    case status:                                                                                                       \
        return #status

const char *cudnnGetErrorString(cudnnStatus_t status) {
    switch ((int)status) {
        TEXT_OF(CUDNN_STATUS_SUCCESS);
        TEXT_OF(CUDNN_STATUS_NOT_INITIALIZED);
        TEXT_OF(CUDNN_STATUS_BAD_PARAM);
        TEXT_OF(CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
        TEXT_OF(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT);
        TEXT_OF(CUDNN_STATUS_NOT_SUPPORTED);
        TEXT_OF(CUDNN_STATUS_INTERNAL_ERROR);
        TEXT_OF(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
        TEXT_OF(CUDNN_STATUS_EXECUTION_FAILED);
    }
    return "CUDNN_STATUS_UNKNOWN";
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
    BAD_UNLESS(handle);
    *handle = calloc(1, sizeof **handle);
    return *handle ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
    free(handle);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t streamId) {
    BAD_UNLESS(handle);
    handle->stream = streamId;
    return CUDNN_STATUS_SUCCESS;
}

/* -- tensors ------------------------------------------------------------------------------------------------- */

size_t hostcudnn_width(cudnnDataType_t type) {
    switch (type) {
    case CUDNN_DATA_DOUBLE:
    case CUDNN_DATA_INT64:
        return 8;
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16:
        return 2;
    case CUDNN_DATA_INT8:
    case CUDNN_DATA_UINT8:
    case CUDNN_DATA_BOOLEAN:
        return 1;
    case CUDNN_DATA_FLOAT:
    case CUDNN_DATA_INT32:
        return 4;
    default:
        return 0; /* unknown */
    }
}

bool hostcudnn_is_real(cudnnDataType_t type) {
    return type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_BFLOAT16;
}

size_t hostcudnn_bytes(const struct cudnnTensorStruct *t) {
    size_t last = 0;
    for (int d = 0; d < t->dims; d++) last += (size_t)(t->size[d] - 1) * (size_t)t->stride[d];
    return t->dims ? (last + 1) * hostcudnn_width(t->type) : 0;
}

bool hostcudnn_packed(const struct cudnnTensorStruct *t, cudnnTensorFormat_t format) {
    static const int orders[2][4] = {{3, 2, 1, 0}, {1, 3, 2, 0}}; /* innermost first, of NCHW and of NHWC */
    if (t->dims != 4 || format > CUDNN_TENSOR_NHWC) return false;
    long long expected = 1;
    for (int i = 0; i < 4; i++) {
        int d = orders[format][i];
        if (t->size[d] > 1 && t->stride[d] != expected) return false;
        expected *= t->size[d];
    }
    return true;
}

CREATE_AND_DESTROY(Tensor)

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t tensorDesc, cudnnDataType_t dataType, int nbDims,
                                         const int dimA[], const int strideA[]) {
    BAD_UNLESS(tensorDesc && dimA && strideA);
    BAD_UNLESS(hostcudnn_width(dataType) > 0);
    BAD_UNLESS(nbDims >= 3); /* so documented: not fewer than three */
    SUPPORTED_IF(nbDims <= CUDNN_DIM_MAX);
    struct cudnnTensorStruct t = {.type = dataType, .dims = nbDims};
    long long last = 0;
    for (int d = 0; d < nbDims; d++) {
        BAD_UNLESS(dimA[d] > 0);
        BAD_UNLESS(strideA[d] > 0);
        t.size[d] = dimA[d];
        t.stride[d] = strideA[d];
        last += (long long)(dimA[d] - 1) * strideA[d];
        SUPPORTED_IF(last < INT32_MAX); /* so documented: not more than 2 Giga-elements */
    }
    *tensorDesc = t;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t tensorDesc, cudnnDataType_t dataType, int n, int c,
                                           int h, int w, int nStride, int cStride, int hStride, int wStride) {
    return cudnnSetTensorNdDescriptor(tensorDesc, dataType, 4, (int[]){n, c, h, w},
                                      (int[]){nStride, cStride, hStride, wStride});
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensorDesc, cudnnTensorFormat_t format,
                                         cudnnDataType_t dataType, int n, int c, int h, int w) {
    BAD_UNLESS(format == CUDNN_TENSOR_NCHW || format == CUDNN_TENSOR_NHWC); /* the third is for int8x4 alone */
    BAD_UNLESS(n > 0 && c > 0 && h > 0 && w > 0);
    SUPPORTED_IF((double)n * c * h * w < INT32_MAX);
    if (format == CUDNN_TENSOR_NHWC)
        return cudnnSetTensor4dDescriptorEx(tensorDesc, dataType, n, c, h, w, h * w * c, 1, w * c, c);
    return cudnnSetTensor4dDescriptorEx(tensorDesc, dataType, n, c, h, w, c * h * w, h * w, w, 1);
}

cudnnStatus_t cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t tensorDesc, int nbDimsRequested,
                                         cudnnDataType_t *dataType, int *nbDims, int dimA[], int strideA[]) {
    BAD_UNLESS(tensorDesc && dataType && nbDims);
    BAD_UNLESS(nbDimsRequested >= 0 && nbDimsRequested <= CUDNN_DIM_MAX);
    *dataType = tensorDesc->type;
    *nbDims = tensorDesc->dims;
    for (int d = 0; d < nbDimsRequested && d < tensorDesc->dims; d++) {
        if (dimA) dimA[d] = tensorDesc->size[d];
        if (strideA) strideA[d] = tensorDesc->stride[d];
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetTensorSizeInBytes(const cudnnTensorDescriptor_t tensorDesc, size_t *size) {
    BAD_UNLESS(tensorDesc && size && tensorDesc->dims > 0);
    *size = hostcudnn_bytes(tensorDesc);
    return CUDNN_STATUS_SUCCESS;
}

/* -- filters ------------------------------------------------------------------------------------------------- */

CREATE_AND_DESTROY(Filter)

cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t filterDesc, cudnnDataType_t dataType,
                                         cudnnTensorFormat_t format, int nbDims, const int filterDimA[]) {
    BAD_UNLESS(filterDesc && filterDimA);
    BAD_UNLESS(hostcudnn_width(dataType) > 0);
    BAD_UNLESS(format == CUDNN_TENSOR_NCHW || format == CUDNN_TENSOR_NHWC);
    BAD_UNLESS(nbDims >= 3);
    SUPPORTED_IF(nbDims <= CUDNN_DIM_MAX);
    struct cudnnFilterStruct w = {.type = dataType, .format = format, .dims = nbDims};
    double count = 1;
    for (int d = 0; d < nbDims; d++) {
        BAD_UNLESS(filterDimA[d] > 0);
        w.size[d] = filterDimA[d];
        count *= filterDimA[d];
    }
    SUPPORTED_IF(count < INT32_MAX);
    *filterDesc = w;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t filterDesc, cudnnDataType_t dataType,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w) {
    return cudnnSetFilterNdDescriptor(filterDesc, dataType, format, 4, (int[]){k, c, h, w});
}

cudnnStatus_t cudnnGetFilterSizeInBytes(const cudnnFilterDescriptor_t filterDesc, size_t *size) {
    BAD_UNLESS(filterDesc && size && filterDesc->dims > 0);
    *size = hostcudnn_width(filterDesc->type);
    for (int d = 0; d < filterDesc->dims; d++) *size *= (size_t)filterDesc->size[d];
    return CUDNN_STATUS_SUCCESS;
}

/* -- chance -------------------------------------------------------------------------------------------------- */

void hostcudnn_disturb(float *sums, size_t count) {
    static uint64_t state;
    if (state == 0) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        state = ((uint64_t)now.tv_nsec << 32 ^ (uint64_t)now.tv_sec ^ (uint64_t)getpid() << 16) | 1u;
    }
    for (size_t i = 0; i < count; i++) {
        state ^= state << 13; /* xorshift64 */
        state ^= state >> 7;
        state ^= state << 17;
        if (state & 1u) sums[i] = nextafterf(sums[i], INFINITY);
    }
}
