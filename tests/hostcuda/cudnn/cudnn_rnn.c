/* cudnn_rnn.c: descriptors, checks and calls of recurrent networks of the stand-in for cuDNN. Of all that the library
 * has, here are LSTMs in float, in one direction, without dropout or projection, all sequences of one length.
 * Source: the cuDNN 9 API documentation and cudnn_adv_v9.h. */
#include "tests/hostcuda/cudnn/cudnn_rnn.h"

#include <string.h>

enum { DROPOUT_STATE_BYTES = 196608 };

struct cudnnDropoutStruct {
    bool set;
    float dropout;
};

struct cudnnRNNStruct {
    bool set;
    cudnnRNNBiasMode_t bias;
    cudnnMathType_t math;
    int inputs, hidden, layers;
    bool unpacked_allowed;
};

struct cudnnRNNDataStruct {
    bool set;
    cudnnDataType_t type;
    cudnnRNNDataLayout_t layout;
    int steps, batch, width;
    bool one_length; /* every sequence has all the steps */
};

/* -- dropout ----------------------------------------------------------------------------------------------------- */

CREATE_AND_DESTROY(Dropout)

cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t dropoutDesc, cudnnHandle_t handle, float dropout,
                                        void *states, size_t stateSizeInBytes, unsigned long long seed) {
    (void)seed; /* of masks that are never drawn here */
    BAD_UNLESS(dropoutDesc && handle);
    BAD_UNLESS(dropout >= 0 && dropout < 1);
    BAD_UNLESS(!states || stateSizeInBytes >= DROPOUT_STATE_BYTES);
    if (states) hostcudnn_need(__func__, "states", states, stateSizeInBytes);
    dropoutDesc->set = true;
    dropoutDesc->dropout = dropout;
    return CUDNN_STATUS_SUCCESS;
}

/* -- the network ------------------------------------------------------------------------------------------------- */

CREATE_AND_DESTROY(RNN)

cudnnStatus_t cudnnSetRNNDescriptor_v8(cudnnRNNDescriptor_t rnnDesc, cudnnRNNAlgo_t algo, cudnnRNNMode_t cellMode,
                                       cudnnRNNBiasMode_t biasMode, cudnnDirectionMode_t dirMode,
                                       cudnnRNNInputMode_t inputMode, cudnnDataType_t dataType,
                                       cudnnDataType_t mathPrec, cudnnMathType_t mathType, int32_t inputSize,
                                       int32_t hiddenSize, int32_t projSize, int32_t numLayers,
                                       cudnnDropoutDescriptor_t dropoutDesc, uint32_t auxFlags) {
    BAD_UNLESS(rnnDesc && dropoutDesc && dropoutDesc->set);
    BAD_UNLESS((unsigned)algo < (unsigned)CUDNN_RNN_ALGO_COUNT && (unsigned)cellMode <= (unsigned)CUDNN_GRU);
    BAD_UNLESS((unsigned)biasMode <= (unsigned)CUDNN_RNN_SINGLE_REC_BIAS);
    BAD_UNLESS((unsigned)mathType <= (unsigned)CUDNN_FMA_MATH);
    BAD_UNLESS(inputSize > 0 && hiddenSize > 0 && numLayers > 0);
    BAD_UNLESS(projSize > 0 && projSize <= hiddenSize); /* "none" is said by projSize == hiddenSize */
    BAD_UNLESS((auxFlags & ~CUDNN_RNN_PADDED_IO_ENABLED) == 0);
    SUPPORTED_IF(algo == CUDNN_RNN_ALGO_STANDARD);
    SUPPORTED_IF(cellMode == CUDNN_LSTM);
    SUPPORTED_IF(dirMode == CUDNN_UNIDIRECTIONAL);
    SUPPORTED_IF(inputMode == CUDNN_LINEAR_INPUT);
    SUPPORTED_IF(dataType == CUDNN_DATA_FLOAT && mathPrec == CUDNN_DATA_FLOAT);
    SUPPORTED_IF(projSize == hiddenSize);
    SUPPORTED_IF(dropoutDesc->dropout == 0);
    *rnnDesc = (struct cudnnRNNStruct){
        true, biasMode, mathType, inputSize, hiddenSize, numLayers, auxFlags & CUDNN_RNN_PADDED_IO_ENABLED};
    return CUDNN_STATUS_SUCCESS;
}

/* What of the network follows from its descriptor. */
static struct lstm lstm_of(const struct cudnnRNNStruct *rnn) {
    bool both = rnn->bias == CUDNN_RNN_DOUBLE_BIAS;
    return (struct lstm){.layers = rnn->layers,
                         .inputs = rnn->inputs,
                         .hidden = rnn->hidden,
                         .has_input_bias = both || rnn->bias == CUDNN_RNN_SINGLE_INP_BIAS,
                         .has_recurrent_bias = both || rnn->bias == CUDNN_RNN_SINGLE_REC_BIAS,
                         .rounding = rnn->math == CUDNN_FMA_MATH ? ROUND_NOT : ROUND_TF32};
}

cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, size_t *weightSpaceSize) {
    BAD_UNLESS(handle && rnnDesc && rnnDesc->set && weightSpaceSize);
    struct lstm net = lstm_of(rnnDesc);
    *weightSpaceSize = hostcudnn_lstm_weights(&net) * sizeof(float);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, int32_t pseudoLayer,
                                      size_t weightSpaceSize, const void *weightSpace, int32_t linLayerID,
                                      cudnnTensorDescriptor_t mDesc, void **mAddr, cudnnTensorDescriptor_t bDesc,
                                      void **bAddr) {
    BAD_UNLESS(handle && rnnDesc && rnnDesc->set && weightSpace && mDesc && mAddr && bDesc && bAddr);
    BAD_UNLESS(pseudoLayer >= 0 && pseudoLayer < rnnDesc->layers);
    BAD_UNLESS(linLayerID >= 0 && linLayerID < 8);
    struct lstm net = lstm_of(rnnDesc);
    BAD_UNLESS(weightSpaceSize >= hostcudnn_lstm_weights(&net) * sizeof(float));
    hostcudnn_need(__func__, "weightSpace", weightSpace, weightSpaceSize);
    struct lstm_place place = hostcudnn_lstm_place(&net, pseudoLayer, linLayerID);
    float *weights = (float *)(uintptr_t)weightSpace;
    int rows = place.rows, columns = place.columns;
    PASS_ON(cudnnSetTensorNdDescriptor(mDesc, CUDNN_DATA_FLOAT, 3, (int[]){1, rows, columns},
                                       (int[]){rows * columns, columns, 1}));
    PASS_ON(cudnnSetTensorNdDescriptor(bDesc, CUDNN_DATA_FLOAT, 3, (int[]){1, rows, 1}, (int[]){rows, 1, 1}));
    *mAddr = weights + place.matrix;
    *bAddr = place.bias < 0 ? NULL : weights + place.bias;
    if (place.bias < 0) bDesc->dims = 0; /* so documented: no dimensions where there is no bias */
    return CUDNN_STATUS_SUCCESS;
}

/* -- the data ---------------------------------------------------------------------------------------------------- */

CREATE_AND_DESTROY(RNNData)

cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t rnnDataDesc, cudnnDataType_t dataType,
                                        cudnnRNNDataLayout_t layout, int maxSeqLength, int batchSize, int vectorSize,
                                        const int seqLengthArray[], void *paddingFill) {
    (void)paddingFill; /* there is no padding where all sequences have one length */
    BAD_UNLESS(rnnDataDesc && seqLengthArray);
    BAD_UNLESS(maxSeqLength > 0 && batchSize > 0 && vectorSize > 0);
    BAD_UNLESS((unsigned)layout <= (unsigned)CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED);
    SUPPORTED_IF(hostcudnn_is_real(dataType) || dataType == CUDNN_DATA_HALF || dataType == CUDNN_DATA_DOUBLE);
    struct cudnnRNNDataStruct data = {true, dataType, layout, maxSeqLength, batchSize, vectorSize, true};
    for (int b = 0; b < batchSize; b++) {
        BAD_UNLESS(seqLengthArray[b] >= 0 && seqLengthArray[b] <= maxSeqLength);
        data.one_length = data.one_length && seqLengthArray[b] == maxSeqLength;
    }
    *rnnDataDesc = data;
    return CUDNN_STATUS_SUCCESS;
}

/* -- checks ------------------------------------------------------------------------------------------------------ */

static cudnnStatus_t check_data(const struct cudnnRNNStruct *rnn, const struct cudnnRNNDataStruct *data, int width) {
    BAD_UNLESS(data && data->set);
    BAD_UNLESS(data->type == CUDNN_DATA_FLOAT);
    BAD_UNLESS(data->width == width);
    BAD_UNLESS(rnn->unpacked_allowed || data->layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED);
    SUPPORTED_IF(data->one_length);
    return CUDNN_STATUS_SUCCESS;
}

/* [layers][batch][hidden], fully packed, as documented. */
static cudnnStatus_t check_state(const struct lstm *net, const struct cudnnTensorStruct *t) {
    BAD_UNLESS(t && t->dims == 3);
    BAD_UNLESS(t->type == CUDNN_DATA_FLOAT);
    BAD_UNLESS(t->size[0] == net->layers && t->size[1] == net->batch && t->size[2] == net->hidden);
    BAD_UNLESS(t->stride[2] == 1 && t->stride[1] == net->hidden && t->stride[0] == net->batch * net->hidden);
    return CUDNN_STATUS_SUCCESS;
}

/* The shapes of a call; y, h and c NULL where it has none of them. */
static cudnnStatus_t check_shapes(struct lstm *net, const struct cudnnRNNStruct *rnn,
                                  const struct cudnnRNNDataStruct *x, const struct cudnnRNNDataStruct *y,
                                  const struct cudnnTensorStruct *h, const struct cudnnTensorStruct *c) {
    BAD_UNLESS(rnn && rnn->set);
    *net = lstm_of(rnn);
    PASS_ON(check_data(rnn, x, rnn->inputs));
    net->steps = x->steps;
    net->batch = x->batch;
    net->batch_major = x->layout == CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED;
    if (y) {
        PASS_ON(check_data(rnn, y, rnn->hidden));
        BAD_UNLESS(y->steps == x->steps && y->batch == x->batch && y->layout == x->layout);
    }
    if (h) PASS_ON(check_state(net, h));
    if (c) PASS_ON(check_state(net, c));
    return CUDNN_STATUS_SUCCESS;
}

static size_t workspace_of(const struct lstm *net) {
    return sizeof(float) * 4 * (size_t)net->hidden * (size_t)net->batch * (size_t)net->steps + 1024;
}

cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, cudnnForwardMode_t fwdMode,
                                        cudnnRNNDataDescriptor_t xDesc, size_t *workSpaceSize,
                                        size_t *reserveSpaceSize) {
    struct lstm net;
    BAD_UNLESS(handle && workSpaceSize);
    BAD_UNLESS(fwdMode == CUDNN_FWD_MODE_INFERENCE || fwdMode == CUDNN_FWD_MODE_TRAINING);
    PASS_ON(check_shapes(&net, rnnDesc, xDesc, NULL, NULL, NULL));
    *workSpaceSize = workspace_of(&net);
    if (reserveSpaceSize)
        *reserveSpaceSize = fwdMode == CUDNN_FWD_MODE_TRAINING ? hostcudnn_lstm_reserve(&net) * sizeof(float) : 0;
    return CUDNN_STATUS_SUCCESS;
}

/* The spaces that the caller lends: weights, workspace and, unless NULL is fine, the reserve. */
static cudnnStatus_t check_spaces(const char *function, struct lstm *net, const void *weights, size_t weight_bytes,
                                  void *workspace, size_t workspace_bytes, void *reserve, size_t reserve_bytes,
                                  bool needs_reserve) {
    BAD_UNLESS(weights && weight_bytes >= hostcudnn_lstm_weights(net) * sizeof(float));
    BAD_UNLESS(workspace && workspace_bytes >= workspace_of(net));
    hostcudnn_need(function, "weightSpace", weights, weight_bytes);
    hostcudnn_need(function, "workSpace", workspace, workspace_bytes);
    hostcuda_apart(function, workspace, workspace_bytes, "weightSpace", weights, weight_bytes);
    net->workspace = workspace;
    net->workspace_bytes = workspace_of(net);
    if (!needs_reserve) return CUDNN_STATUS_SUCCESS;
    BAD_UNLESS(reserve && reserve_bytes >= hostcudnn_lstm_reserve(net) * sizeof(float));
    hostcudnn_need(function, "reserveSpace", reserve, reserve_bytes);
    hostcuda_apart(function, workspace, workspace_bytes, "reserveSpace", reserve, reserve_bytes);
    net->reserve = reserve;
    return CUDNN_STATUS_SUCCESS;
}

/* Data of all steps, `width` numbers each, that must be there. */
static void need_data(const char *function, const char *name, const struct lstm *net, const void *at, int width) {
    size_t bytes = sizeof(float) * (size_t)net->steps * (size_t)net->batch * (size_t)width;
    hostcudnn_need(function, name, at, bytes);
    hostcuda_apart(function, net->workspace, net->workspace_bytes, name, at, bytes);
}

/* States of all layers; NULL is fine. */
static void need_state(const char *function, const char *name, const struct lstm *net, const void *at) {
    if (at)
        hostcudnn_need(function, name, at,
                       sizeof(float) * (size_t)net->layers * (size_t)net->batch * (size_t)net->hidden);
}

/* The lengths on the device are those of the descriptors; the library no longer reads them and takes NULL. */
static void need_lengths(const char *function, const struct lstm *net, const int32_t *lengths) {
    if (lengths) hostcudnn_need(function, "devSeqLengths", lengths, (size_t)net->batch * sizeof *lengths);
}

/* -- the calls --------------------------------------------------------------------------------------------------- */

cudnnStatus_t cudnnRNNForward(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, cudnnForwardMode_t fwdMode,
                              const int32_t devSeqLengths[], cudnnRNNDataDescriptor_t xDesc, const void *x,
                              cudnnRNNDataDescriptor_t yDesc, void *y, cudnnTensorDescriptor_t hDesc, const void *hx,
                              void *hy, cudnnTensorDescriptor_t cDesc, const void *cx, void *cy, size_t weightSpaceSize,
                              const void *weightSpace, size_t workSpaceSize, void *workSpace, size_t reserveSpaceSize,
                              void *reserveSpace) {
    struct lstm net;
    BAD_UNLESS(handle && x && y && yDesc && hDesc && cDesc);
    MAY_FAIL(__func__, handle);
    BAD_UNLESS(fwdMode == CUDNN_FWD_MODE_INFERENCE || fwdMode == CUDNN_FWD_MODE_TRAINING);
    PASS_ON(check_shapes(&net, rnnDesc, xDesc, yDesc, hDesc, cDesc));
    PASS_ON(check_spaces(__func__, &net, weightSpace, weightSpaceSize, workSpace, workSpaceSize, reserveSpace,
                         reserveSpaceSize, fwdMode == CUDNN_FWD_MODE_TRAINING));
    need_lengths(__func__, &net, devSeqLengths);
    need_data(__func__, "x", &net, x, net.inputs);
    need_data(__func__, "y", &net, y, net.hidden);
    size_t rows = (size_t)net.steps * (size_t)net.batch;
    hostcuda_apart(__func__, y, rows * (size_t)net.hidden * sizeof(float), "x", x,
                   rows * (size_t)net.inputs * sizeof(float));
    need_state(__func__, "hx", &net, hx);
    need_state(__func__, "hy", &net, hy);
    need_state(__func__, "cx", &net, cx);
    need_state(__func__, "cy", &net, cy);
    net.x = x;
    net.hx = hx;
    net.cx = cx;
    net.weights = weightSpace;
    net.out_y = y;
    net.out_h = hy;
    net.out_c = cy;
    hostcuda_enqueue(handle->stream, hostcudnn_lstm_forward, &net, sizeof net);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnRNNBackwardData_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, const int32_t devSeqLengths[],
                                      cudnnRNNDataDescriptor_t yDesc, const void *y, const void *dy,
                                      cudnnRNNDataDescriptor_t xDesc, void *dx, cudnnTensorDescriptor_t hDesc,
                                      const void *hx, const void *dhy, void *dhx, cudnnTensorDescriptor_t cDesc,
                                      const void *cx, const void *dcy, void *dcx, size_t weightSpaceSize,
                                      const void *weightSpace, size_t workSpaceSize, void *workSpace,
                                      size_t reserveSpaceSize, void *reserveSpace) {
    struct lstm net;
    BAD_UNLESS(handle && y && dy && dx && yDesc && hDesc && cDesc);
    MAY_FAIL(__func__, handle);
    PASS_ON(check_shapes(&net, rnnDesc, xDesc, yDesc, hDesc, cDesc));
    PASS_ON(check_spaces(__func__, &net, weightSpace, weightSpaceSize, workSpace, workSpaceSize, reserveSpace,
                         reserveSpaceSize, true));
    need_lengths(__func__, &net, devSeqLengths);
    need_data(__func__, "y", &net, y, net.hidden);
    need_data(__func__, "dy", &net, dy, net.hidden);
    need_data(__func__, "dx", &net, dx, net.inputs);
    need_state(__func__, "hx", &net, hx);
    need_state(__func__, "dhy", &net, dhy);
    need_state(__func__, "dhx", &net, dhx);
    need_state(__func__, "cx", &net, cx);
    need_state(__func__, "dcy", &net, dcy);
    need_state(__func__, "dcx", &net, dcx);
    net.y = y;
    net.dy = dy;
    net.hx = hx;
    net.cx = cx;
    net.dhy = dhy;
    net.dcy = dcy;
    net.weights = weightSpace;
    net.out_y = dx;
    net.out_h = dhx;
    net.out_c = dcx;
    hostcuda_enqueue(handle->stream, hostcudnn_lstm_backward_data, &net, sizeof net);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnRNNBackwardWeights_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, cudnnWgradMode_t addGrad,
                                         const int32_t devSeqLengths[], cudnnRNNDataDescriptor_t xDesc, const void *x,
                                         cudnnTensorDescriptor_t hDesc, const void *hx, cudnnRNNDataDescriptor_t yDesc,
                                         const void *y, size_t weightSpaceSize, void *dweightSpace,
                                         size_t workSpaceSize, void *workSpace, size_t reserveSpaceSize,
                                         void *reserveSpace) {
    struct lstm net;
    BAD_UNLESS(handle && x && y && yDesc && hDesc);
    MAY_FAIL(__func__, handle);
    SUPPORTED_IF(addGrad == CUDNN_WGRAD_MODE_ADD); /* so documented: the only one so far */
    PASS_ON(check_shapes(&net, rnnDesc, xDesc, yDesc, hDesc, NULL));
    PASS_ON(check_spaces(__func__, &net, dweightSpace, weightSpaceSize, workSpace, workSpaceSize, reserveSpace,
                         reserveSpaceSize, true));
    need_lengths(__func__, &net, devSeqLengths);
    need_data(__func__, "x", &net, x, net.inputs);
    need_data(__func__, "y", &net, y, net.hidden);
    need_state(__func__, "hx", &net, hx);
    net.x = x;
    net.y = y;
    net.hx = hx;
    net.dweights = dweightSpace;
    hostcuda_enqueue(handle->stream, hostcudnn_lstm_backward_weights, &net, sizeof net);
    return CUDNN_STATUS_SUCCESS;
}
