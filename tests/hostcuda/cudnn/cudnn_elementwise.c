/* cudnn_elementwise.c: cudnnTransformTensor and cudnnAddTensor of the stand-in for cuDNN, for any strides. */
#include "tests/hostcuda/cudnn/cudnn_internal.h"

#include <string.h>

/* to = alpha * from + beta * to over the dimensions of `to`; `from` has stride 0 along what it is repeated over. */
struct sum_of_two {
    struct cudnnTensorStruct from, to;
    const void *a;
    void *c;
    float alpha, beta;
};

static float load(const void *at, cudnnDataType_t type, size_t i) {
    return type == CUDNN_DATA_BFLOAT16 ? hostcuda_from_bf16(((const uint16_t *)at)[i]) : ((const float *)at)[i];
}

/* One row along the last dimension, from offset `from` to offset `to` (numbers, not bytes). */
static void add_row(const struct sum_of_two *s, size_t from, size_t to) {
    int last = s->to.dims - 1;
    for (int i = 0; i < s->to.size[last]; i++) {
        float value = s->alpha * load(s->a, s->from.type, from);
        if (s->beta != 0) value += s->beta * load(s->c, s->to.type, to);
        if (s->to.type == CUDNN_DATA_BFLOAT16)
            ((uint16_t *)s->c)[to] = hostcuda_to_bf16(value);
        else
            ((float *)s->c)[to] = value;
        from += (size_t)s->from.stride[last];
        to += (size_t)s->to.stride[last];
    }
}

static void add(const void *argument) {
    const struct sum_of_two *s = argument;
    size_t rows = 1;
    for (int d = 0; d < s->to.dims - 1; d++) rows *= (size_t)s->to.size[d];
    for (size_t row = 0; row < rows; row++) {
        size_t rest = row, from = 0, to = 0;
        for (int d = s->to.dims - 2; d >= 0; d--) {
            size_t at = rest % (size_t)s->to.size[d];
            rest /= (size_t)s->to.size[d];
            from += at * (size_t)s->from.stride[d];
            to += at * (size_t)s->to.stride[d];
        }
        add_row(s, from, to);
    }
}

static void scales(struct sum_of_two *s, const void *alpha, const void *beta) {
    memcpy(&s->alpha, alpha, sizeof s->alpha);
    memcpy(&s->beta, beta, sizeof s->beta);
}

cudnnStatus_t cudnnTransformTensor(cudnnHandle_t handle, const void *alpha, const cudnnTensorDescriptor_t xDesc,
                                   const void *x, const void *beta, const cudnnTensorDescriptor_t yDesc, void *y) {
    BAD_UNLESS(handle && alpha && beta && xDesc && yDesc && x && y);
    BAD_UNLESS(xDesc->dims > 0 && xDesc->dims == yDesc->dims);
    BAD_UNLESS(xDesc->type == yDesc->type);
    for (int d = 0; d < xDesc->dims; d++) BAD_UNLESS(xDesc->size[d] == yDesc->size[d]);
    SUPPORTED_IF(hostcudnn_is_real(xDesc->type));
    hostcudnn_need(__func__, "x", x, hostcudnn_bytes(xDesc));
    hostcudnn_need(__func__, "y", y, hostcudnn_bytes(yDesc));
    hostcuda_apart(__func__, y, hostcudnn_bytes(yDesc), "x", x, hostcudnn_bytes(xDesc));
    struct sum_of_two s = {.from = *xDesc, .to = *yDesc, .a = x, .c = y};
    scales(&s, alpha, beta);
    hostcuda_enqueue(handle->stream, add, &s, sizeof s);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnAddTensor(cudnnHandle_t handle, const void *alpha, const cudnnTensorDescriptor_t aDesc,
                             const void *A, const void *beta, const cudnnTensorDescriptor_t cDesc, void *C) {
    BAD_UNLESS(handle && alpha && beta && aDesc && cDesc && A && C);
    BAD_UNLESS(aDesc->dims > 0 && aDesc->dims == cDesc->dims);
    SUPPORTED_IF(cDesc->dims <= 5);
    SUPPORTED_IF(aDesc->type == cDesc->type && hostcudnn_is_real(aDesc->type));
    hostcudnn_need(__func__, "A", A, hostcudnn_bytes(aDesc));
    hostcudnn_need(__func__, "C", C, hostcudnn_bytes(cDesc));
    hostcuda_apart(__func__, C, hostcudnn_bytes(cDesc), "A", A, hostcudnn_bytes(aDesc));
    struct sum_of_two s = {.from = *aDesc, .to = *cDesc, .a = A, .c = C};
    for (int d = 0; d < aDesc->dims; d++) {
        BAD_UNLESS(aDesc->size[d] == cDesc->size[d] || aDesc->size[d] == 1);
        if (aDesc->size[d] == 1) s.from.stride[d] = 0;
    }
    scales(&s, alpha, beta);
    hostcuda_enqueue(handle->stream, add, &s, sizeof s);
    return CUDNN_STATUS_SUCCESS;
}
