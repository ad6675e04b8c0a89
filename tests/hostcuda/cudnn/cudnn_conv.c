/* cudnn_conv.c: convolution descriptors, the checks of a convolution and the calls that run one, of the stand-in for
 * cuDNN. Stricter than the library: tensors are fully packed, NCHW with a KCRS filter or NHWC with a KRSC one.
 * Source: the cuDNN 9 API documentation and cudnn_cnn_v9.h. */
#include "tests/hostcuda/cudnn/cudnn_conv.h"

#include <stdlib.h>
#include <string.h>

/* -- descriptors --------------------------------------------------------------------------------------------- */

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t *convDesc) {
    BAD_UNLESS(convDesc);
    *convDesc = calloc(1, sizeof **convDesc);
    if (!*convDesc) return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    (*convDesc)->math = CUDNN_DEFAULT_MATH;
    (*convDesc)->groups = 1;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t convDesc) {
    free(convDesc);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t convDesc, cudnnMathType_t mathType) {
    BAD_UNLESS(convDesc);
    BAD_UNLESS((unsigned)mathType <= (unsigned)CUDNN_FMA_MATH);
    convDesc->math = mathType;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t convDesc, int groupCount) {
    BAD_UNLESS(convDesc && groupCount > 0);
    convDesc->groups = groupCount;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t convDesc, int pad_h, int pad_w, int u, int v,
                                              int dilation_h, int dilation_w, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t computeType) {
    BAD_UNLESS(convDesc);
    BAD_UNLESS(pad_h >= 0 && pad_w >= 0);
    BAD_UNLESS(u > 0 && v > 0);
    BAD_UNLESS(dilation_h > 0 && dilation_w > 0);
    BAD_UNLESS(mode == CUDNN_CONVOLUTION || mode == CUDNN_CROSS_CORRELATION);
    BAD_UNLESS(hostcudnn_width(computeType) > 0);
    convDesc->set = true;
    memcpy(convDesc->pad, (int[]){pad_h, pad_w}, sizeof convDesc->pad);
    memcpy(convDesc->stride, (int[]){u, v}, sizeof convDesc->stride);
    memcpy(convDesc->dilation, (int[]){dilation_h, dilation_w}, sizeof convDesc->dilation);
    convDesc->mode = mode;
    convDesc->compute = computeType;
    return CUDNN_STATUS_SUCCESS;
}

/* out = 1 + (in + 2 pad - ((window - 1) dilation + 1)) / stride, 0 when the window does not fit. */
static int output_size(const struct cudnnConvolutionStruct *how, int axis, int in, int window) {
    int room = in + 2 * how->pad[axis] - ((window - 1) * how->dilation[axis] + 1);
    return room < 0 ? 0 : 1 + room / how->stride[axis];
}

cudnnStatus_t cudnnGetConvolution2dForwardOutputDim(const cudnnConvolutionDescriptor_t convDesc,
                                                    const cudnnTensorDescriptor_t inputTensorDesc,
                                                    const cudnnFilterDescriptor_t filterDesc, int *n, int *c, int *h,
                                                    int *w) {
    BAD_UNLESS(convDesc && convDesc->set && inputTensorDesc && filterDesc && n && c && h && w);
    BAD_UNLESS(inputTensorDesc->dims == 4 && filterDesc->dims == 4);
    BAD_UNLESS(inputTensorDesc->size[1] == filterDesc->size[1] * convDesc->groups);
    *n = inputTensorDesc->size[0];
    *c = filterDesc->size[0];
    *h = output_size(convDesc, 0, inputTensorDesc->size[2], filterDesc->size[2]);
    *w = output_size(convDesc, 1, inputTensorDesc->size[3], filterDesc->size[3]);
    BAD_UNLESS(*h > 0 && *w > 0);
    return CUDNN_STATUS_SUCCESS;
}

/* -- checks -------------------------------------------------------------------------------------------------- */

static cudnnStatus_t check_types(const struct cudnnTensorStruct *x, const struct cudnnFilterStruct *w,
                                 const struct cudnnConvolutionStruct *how, const struct cudnnTensorStruct *y) {
    BAD_UNLESS(x->type == w->type && x->type == y->type);
    SUPPORTED_IF(hostcudnn_is_real(x->type));
    SUPPORTED_IF(how->compute == CUDNN_DATA_FLOAT);
    SUPPORTED_IF(hostcudnn_packed(x, w->format));
    SUPPORTED_IF(hostcudnn_packed(y, w->format));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hostcudnn_conv_check(struct convolution *conv, enum conv_pass pass, const struct cudnnTensorStruct *x,
                                   const struct cudnnFilterStruct *w, const struct cudnnConvolutionStruct *how,
                                   const struct cudnnTensorStruct *y) {
    BAD_UNLESS(x && w && how && y);
    BAD_UNLESS(x->dims > 0 && w->dims > 0 && y->dims > 0 && how->set);
    SUPPORTED_IF(x->dims == 4 && w->dims == 4 && y->dims == 4);
    BAD_UNLESS(x->size[1] == w->size[1] * how->groups);
    BAD_UNLESS(w->size[0] % how->groups == 0);
    BAD_UNLESS(y->size[0] == x->size[0] && y->size[1] == w->size[0]);
    BAD_UNLESS(y->size[2] == output_size(how, 0, x->size[2], w->size[2]));
    BAD_UNLESS(y->size[3] == output_size(how, 1, x->size[3], w->size[3]));
    PASS_ON(check_types(x, w, how, y));
    /* Float products run on tensor cores, as TF32, unless plain multiply-adds are asked for. */
    bool is_bf16 = x->type == CUDNN_DATA_BFLOAT16;
    *conv = (struct convolution){
        .pass = pass,
        .is_bf16 = is_bf16,
        .channels_last = w->format == CUDNN_TENSOR_NHWC,
        .flipped = how->mode == CUDNN_CONVOLUTION,
        .rounding = is_bf16 || how->math == CUDNN_FMA_MATH ? ROUND_NOT : ROUND_TF32,
        .math = how->math,
        .n = x->size[0],
        .c = x->size[1],
        .h = x->size[2],
        .w = x->size[3],
        .k = w->size[0],
        .r = w->size[2],
        .s = w->size[3],
        .p = y->size[2],
        .q = y->size[3],
        .groups = how->groups,
    };
    memcpy(conv->pad, how->pad, sizeof conv->pad);
    memcpy(conv->stride, how->stride, sizeof conv->stride);
    memcpy(conv->dilation, how->dilation, sizeof conv->dilation);
    return CUDNN_STATUS_SUCCESS;
}

size_t hostcudnn_conv_bytes(const struct convolution *v, char which) {
    size_t width = v->is_bf16 ? sizeof(uint16_t) : sizeof(float);
    if (which == 'x') return width * (size_t)v->n * (size_t)v->c * (size_t)v->h * (size_t)v->w;
    if (which == 'y') return width * (size_t)v->n * (size_t)v->k * (size_t)v->p * (size_t)v->q;
    return width * (size_t)v->k * (size_t)(v->c / v->groups) * (size_t)v->r * (size_t)v->s;
}

char hostcudnn_conv_out(const struct convolution *v) {
    return v->pass == CONV_FORWARD ? 'y' : v->pass == CONV_DATA ? 'x' : 'w';
}

void hostcudnn_conv_memory(struct convolution *conv, const void *x, const void *filter, const void *y, void *workspace,
                           size_t workspace_bytes) {
    char out = hostcudnn_conv_out(conv);
    conv->x = x;
    conv->filter = filter;
    conv->y = y;
    conv->out = (void *)(uintptr_t)(out == 'y' ? y : out == 'x' ? x : filter);
    conv->workspace = workspace;
    conv->workspace_bytes = workspace_bytes;
}

/* The three tensors by name. */
struct tensor {
    const char *name;
    const void *at;
    size_t bytes;
};

static void tensors_of(const struct convolution *v, struct tensor tensors[3]) {
    tensors[0] = (struct tensor){"x", v->x, hostcudnn_conv_bytes(v, 'x')};
    tensors[1] = (struct tensor){"w", v->filter, hostcudnn_conv_bytes(v, 'w')};
    tensors[2] = (struct tensor){"y", v->y, hostcudnn_conv_bytes(v, 'y')};
}

void hostcudnn_conv_need(const char *function, const struct convolution *v) {
    struct tensor tensors[3];
    tensors_of(v, tensors);
    for (int i = 0; i < 3; i++) {
        hostcudnn_need(function, tensors[i].name, tensors[i].at, tensors[i].bytes);
        hostcuda_apart(function, v->workspace, v->workspace_bytes, tensors[i].name, tensors[i].at, tensors[i].bytes);
    }
    if (v->workspace) hostcudnn_need(function, "workspace", v->workspace, v->workspace_bytes);
}

/* -- running ------------------------------------------------------------------------------------------------- */

/* Ends the program if the output overlaps one of the two inputs. */
static void output_apart(const char *function, const struct convolution *v) {
    struct tensor tensors[3];
    char out = hostcudnn_conv_out(v);
    tensors_of(v, tensors);
    for (int i = 0; i < 3; i++)
        if (*tensors[i].name != out)
            hostcuda_apart(function, v->out, hostcudnn_conv_bytes(v, out), tensors[i].name, tensors[i].at,
                           tensors[i].bytes);
}

void hostcudnn_conv_launch(const char *function, cudnnHandle_t handle, const struct convolution *conv) {
    hostcudnn_conv_need(function, conv);
    output_apart(function, conv);
    hostcuda_enqueue(handle->stream, hostcudnn_conv_run, conv, sizeof *conv);
}

/* The second half of the three calls; conv->workspace_bytes is what the caller offers. */
static cudnnStatus_t launch(const char *function, cudnnHandle_t handle, struct convolution *conv, int algorithm,
                            const void *alpha, const void *beta) {
    MAY_FAIL(function, handle);
    BAD_UNLESS(alpha && beta);
    BAD_UNLESS(conv->x && conv->filter && conv->y);
    struct conv_choice choice = hostcudnn_conv_choice(conv, algorithm);
    if (choice.status != CUDNN_STATUS_SUCCESS)
        return hostcudnn_fail(choice.status, "%s: algorithm %d is not there for this convolution", function, algorithm);
    BAD_UNLESS(conv->workspace_bytes >= choice.memory);
    BAD_UNLESS(conv->workspace || choice.memory == 0);
    conv->workspace_bytes = choice.memory; /* what is used of it */
    if (choice.memory == 0) conv->workspace = NULL;
    conv->disturbed = !choice.deterministic;
    conv->ms = choice.time;
    memcpy(&conv->alpha, alpha, sizeof conv->alpha); /* host memory: computing in float, they are floats */
    memcpy(&conv->beta, beta, sizeof conv->beta);
    hostcudnn_conv_launch(function, handle, conv);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void *alpha, const cudnnTensorDescriptor_t xDesc,
                                      const void *x, const cudnnFilterDescriptor_t wDesc, const void *w,
                                      const cudnnConvolutionDescriptor_t convDesc, cudnnConvolutionFwdAlgo_t algo,
                                      void *workSpace, size_t workSpaceSizeInBytes, const void *beta,
                                      const cudnnTensorDescriptor_t yDesc, void *y) {
    struct convolution conv;
    BAD_UNLESS(handle);
    PASS_ON(hostcudnn_conv_check(&conv, CONV_FORWARD, xDesc, wDesc, convDesc, yDesc));
    hostcudnn_conv_memory(&conv, x, w, y, workSpace, workSpaceSizeInBytes);
    return launch(__func__, handle, &conv, (int)algo, alpha, beta);
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void *alpha, const cudnnFilterDescriptor_t wDesc,
                                           const void *w, const cudnnTensorDescriptor_t dyDesc, const void *dy,
                                           const cudnnConvolutionDescriptor_t convDesc,
                                           cudnnConvolutionBwdDataAlgo_t algo, void *workSpace,
                                           size_t workSpaceSizeInBytes, const void *beta,
                                           const cudnnTensorDescriptor_t dxDesc, void *dx) {
    struct convolution conv;
    BAD_UNLESS(handle);
    PASS_ON(hostcudnn_conv_check(&conv, CONV_DATA, dxDesc, wDesc, convDesc, dyDesc));
    hostcudnn_conv_memory(&conv, dx, w, dy, workSpace, workSpaceSizeInBytes);
    return launch(__func__, handle, &conv, (int)algo, alpha, beta);
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void *alpha,
                                             const cudnnTensorDescriptor_t xDesc, const void *x,
                                             const cudnnTensorDescriptor_t dyDesc, const void *dy,
                                             const cudnnConvolutionDescriptor_t convDesc,
                                             cudnnConvolutionBwdFilterAlgo_t algo, void *workSpace,
                                             size_t workSpaceSizeInBytes, const void *beta,
                                             const cudnnFilterDescriptor_t dwDesc, void *dw) {
    struct convolution conv;
    BAD_UNLESS(handle);
    PASS_ON(hostcudnn_conv_check(&conv, CONV_FILTER, xDesc, dwDesc, convDesc, dyDesc));
    hostcudnn_conv_memory(&conv, x, dw, dy, workSpace, workSpaceSizeInBytes);
    return launch(__func__, handle, &conv, (int)algo, alpha, beta);
}

/* -- the gradient of a bias ---------------------------------------------------------------------------------- */

struct bias_gradient {
    struct cudnnTensorStruct dy;
    const void *from;
    void *to;
    float alpha, beta;
};

/* db[k] = alpha * sum over n, h, w of dy[n][k][h][w] + beta * db[k], any strides. */
static void sum_bias(const void *argument) {
    const struct bias_gradient *b = argument;
    const int *size = b->dy.size;
    bool is_bf16 = b->dy.type == CUDNN_DATA_BFLOAT16;
    size_t width = hostcudnn_width(b->dy.type);
    for (int k = 0; k < size[1]; k++) {
        float sum = 0;
        for (int n = 0; n < size[0]; n++)
            for (int h = 0; h < size[2]; h++)
                for (int w = 0; w < size[3]; w++) {
                    float value;
                    hostcuda_widen(&value, (const char *)b->from + hostcudnn_at(&b->dy, n, k, h, w) * width, is_bf16, 1,
                                   ROUND_NOT);
                    sum += value;
                }
        hostcuda_blend((char *)b->to + (size_t)k * width, is_bf16, &sum, 1, b->alpha, b->beta);
    }
}

cudnnStatus_t cudnnConvolutionBackwardBias(cudnnHandle_t handle, const void *alpha,
                                           const cudnnTensorDescriptor_t dyDesc, const void *dy, const void *beta,
                                           const cudnnTensorDescriptor_t dbDesc, void *db) {
    BAD_UNLESS(handle && alpha && beta && dyDesc && dbDesc && dy && db);
    BAD_UNLESS(dyDesc->dims == 4 && dbDesc->dims == 4);
    BAD_UNLESS(dbDesc->size[0] == 1 && dbDesc->size[2] == 1 && dbDesc->size[3] == 1);
    BAD_UNLESS(dbDesc->size[1] == dyDesc->size[1]);
    BAD_UNLESS(dyDesc->type == dbDesc->type);
    SUPPORTED_IF(hostcudnn_is_real(dyDesc->type));
    SUPPORTED_IF(dbDesc->size[1] == 1 || dbDesc->stride[1] == 1);
    hostcudnn_need(__func__, "dy", dy, hostcudnn_bytes(dyDesc));
    hostcudnn_need(__func__, "db", db, hostcudnn_bytes(dbDesc));
    hostcuda_apart(__func__, db, hostcudnn_bytes(dbDesc), "dy", dy, hostcudnn_bytes(dyDesc));
    struct bias_gradient b = {.dy = *dyDesc, .from = dy, .to = db};
    memcpy(&b.alpha, alpha, sizeof b.alpha);
    memcpy(&b.beta, beta, sizeof b.beta);
    hostcuda_enqueue(handle->stream, sum_bias, &b, sizeof b);
    return CUDNN_STATUS_SUCCESS;
}
