/* backend_cudnn_lstm.c: one layer of an LSTM by cuDNN's recurrent networks (the functions of version 8 and later).
 *
 * Data are floats in every precision. f32 forbids tensor cores (CUDNN_FMA_MATH); tf32 and bf16 let products be TF32
 * (CUDNN_DEFAULT_MATH). CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION is not asked for: it may turn floats into halves, in
 * which gradients vanish.
 *
 * cuDNN keeps parameters in a weight space whose order is its own: they are copied there from the arena's slices before
 * every forward pass, and their gradients back. Which places follow each other on both sides is found out once, so that
 * in the best case all of them are one copy. The carry is copied, too: the backward pass needs the states with which
 * the forward pass began, and slices may begin at any multiple of 4 bytes. */
#include "base/mem.h"
#include "nets/cudnn/backend_cudnn.h"
#include "nets/frames.h"

enum { GATES = 4, MATRICES = 2 * GATES, PARTS = 2 * MATRICES, ALIGNMENT = 64 /* floats */ };

/* A run of floats that is the same in the arena's slices and in the weight space. */
struct part {
    size_t arena, space, size; /* floats */
};

struct lstm {
    struct cudnn_backend *backend;
    struct tensor rows; /* x */
    bool padded;
    size_t steps, streams, inputs, hidden; /* steps: of the last pass */
    cudnnRNNDescriptor_t net;
    cudnnDropoutDescriptor_t dropout; /* none, but the library wants one */
    cudnnRNNDataDescriptor_t x, y;
    cudnnTensorDescriptor_t state;
    struct part part[PARTS];
    int parts;
    size_t weight_bytes, workspace_bytes, reserve_bytes;
    float *weights, *dweights; /* weight spaces */
    float *reserve;            /* from a forward pass of training to its backward pass */
    float *states;             /* [4][state_floats]: hidden and cell before the window, and after it */
    size_t state_floats;
    float *whole; /* where padded: y as the library has made it, which it wants again to go back */
    float *dx;    /* where nobody asks for it: the library writes it all the same */
};

/* -- opening ------------------------------------------------------------------------------------------------------ */

/* All streams have as many steps as the pass: what is behind an utterance's end comes after all that is before it, so
 * that nothing there hears of it, and no gradient comes from there. */
static void describe_data(const struct lstm *l, cudnnRNNDataDescriptor_t desc, size_t width) {
    const int steps = (int)l->steps, streams = (int)l->streams;
    int *length = mem_alloc(l->streams, sizeof *length, "lengths of sequences");
    for (size_t i = 0; i < l->streams; i++) length[i] = steps;
    CUDNN_CALL(cudnnSetRNNDataDescriptor(desc, CUDNN_DATA_FLOAT, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED, steps, streams,
                                         (int)width, length, NULL));
    mem_free(length);
}

static void describe(struct lstm *l) {
    const int hidden = (int)l->hidden, streams = (int)l->streams;
    const cudnnMathType_t math = net_precision_is_f32(l->backend->precision) ? CUDNN_FMA_MATH : CUDNN_DEFAULT_MATH;
    CUDNN_CALL(cudnnCreateDropoutDescriptor(&l->dropout));
    CUDNN_CALL(cudnnSetDropoutDescriptor(l->dropout, l->backend->cudnn, 0, NULL, 0, 0));
    CUDNN_CALL(cudnnCreateRNNDescriptor(&l->net));
    CUDNN_CALL(cudnnSetRNNDescriptor_v8(l->net, CUDNN_RNN_ALGO_STANDARD, CUDNN_LSTM, CUDNN_RNN_DOUBLE_BIAS,
                                        CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT,
                                        math, (int)l->inputs, hidden, hidden, 1, l->dropout,
                                        CUDNN_RNN_PADDED_IO_DISABLED));
    CUDNN_CALL(cudnnCreateRNNDataDescriptor(&l->x));
    CUDNN_CALL(cudnnCreateRNNDataDescriptor(&l->y));
    describe_data(l, l->x, l->inputs);
    describe_data(l, l->y, l->hidden);
    CUDNN_CALL(cudnnCreateTensorDescriptor(&l->state));
    CUDNN_CALL(cudnnSetTensorNdDescriptor(l->state, CUDNN_DATA_FLOAT, 3, (int[]){1, streams, hidden},
                                          (int[]){streams * hidden, hidden, 1}));
}

/* The next run of the arena's floats, and where it lies in the weight space; joined to the one before where it can
 * be. */
static void add_part(struct lstm *l, size_t arena, const void *at, size_t size) {
    const size_t space = (size_t)((const float *)at - l->weights);
    struct part *last = l->parts ? &l->part[l->parts - 1] : NULL;
    if (last && last->arena + last->size == arena && last->space + last->size == space)
        last->size += size;
    else
        l->part[l->parts++] = (struct part){arena, space, size};
}

/* Matrices and biases 0..3 belong to the input, 4..7 to the step before, each in the order i, f, g, o. */
static void find_weights(struct lstm *l) {
    void *matrix[MATRICES], *bias[MATRICES];
    cudnnTensorDescriptor_t matrix_desc, bias_desc;
    CUDNN_CALL(cudnnCreateTensorDescriptor(&matrix_desc));
    CUDNN_CALL(cudnnCreateTensorDescriptor(&bias_desc));
    for (int id = 0; id < MATRICES; id++) {
        CUDNN_CALL(cudnnGetRNNWeightParams(l->backend->cudnn, l->net, 0, l->weight_bytes, l->weights, id, matrix_desc,
                                           &matrix[id], bias_desc, &bias[id]));
        if (!matrix[id] || !bias[id]) die("cuDNN has no place for a weight of an LSTM");
    }
    CUDNN_CALL(cudnnDestroyTensorDescriptor(matrix_desc));
    CUDNN_CALL(cudnnDestroyTensorDescriptor(bias_desc));
    size_t arena = 0;
    for (int id = 0; id < MATRICES; id++) {
        size_t size = l->hidden * (id < GATES ? l->inputs : l->hidden);
        add_part(l, arena, matrix[id], size);
        arena += size;
    }
    for (int id = 0; id < MATRICES; id++, arena += l->hidden) add_part(l, arena, bias[id], l->hidden);
}

static void make_room(struct lstm *l, bool wants_dx) {
    size_t inference_bytes, unused;
    cudnnHandle_t cudnn = l->backend->cudnn;
    CUDNN_CALL(cudnnGetRNNWeightSpaceSize(cudnn, l->net, &l->weight_bytes));
    CUDNN_CALL(cudnnGetRNNTempSpaceSizes(cudnn, l->net, CUDNN_FWD_MODE_INFERENCE, l->x, &inference_bytes, &unused));
    CUDNN_CALL(cudnnGetRNNTempSpaceSizes(cudnn, l->net, CUDNN_FWD_MODE_TRAINING, l->x, &l->workspace_bytes,
                                         &l->reserve_bytes));
    if (l->workspace_bytes < inference_bytes) l->workspace_bytes = inference_bytes;
    l->state_floats = (l->streams * l->hidden + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    l->weights = cuda_alloc(l->weight_bytes, "the weights of an LSTM");
    l->dweights = cuda_alloc(l->weight_bytes, "the gradients of an LSTM's weights");
    cudnn_need_workspace(l->backend, l->workspace_bytes);
    l->reserve = cuda_alloc(l->reserve_bytes, "what an LSTM keeps for its gradients");
    l->states = cuda_alloc(4 * l->state_floats * sizeof *l->states, "the states of an LSTM");
    if (l->padded)
        l->whole = cuda_alloc(l->steps * l->streams * l->hidden * sizeof *l->whole, "the outputs of an LSTM");
    if (!wants_dx)
        l->dx = cuda_alloc(l->steps * l->streams * l->inputs * sizeof *l->dx, "the gradients of an LSTM's input");
    /* Whatever lies between the parameters is 0. */
    CUDA_GIVE(cudaMemsetAsync(l->weights, 0, l->weight_bytes, cuda_stream()));
}

static void *open_lstm(void *backend, const struct layer_spec *spec, const struct tensor *x, const struct tensor *add,
                       struct tensor *y) {
    (void)add;
    if (x->layout != LAYOUT_CANONICAL) die("an LSTM needs its input in the canonical layout");
    if (spec->lstm.sequence < 1 || x->n % spec->lstm.sequence != 0)
        die("an LSTM of %d rows, %d steps", x->n, spec->lstm.sequence);
    struct lstm *l = mem_zalloc(1, sizeof *l, "an LSTM");
    l->backend = backend;
    l->steps = (size_t)spec->lstm.sequence;
    l->streams = (size_t)x->n / l->steps;
    l->rows = *x;
    l->padded = spec->lstm.padded;
    l->inputs = (size_t)x->c * (size_t)x->h * (size_t)x->w;
    l->hidden = (size_t)y->c;
    cudnn_lay_out(y, LAYOUT_CANONICAL);
    (void)cudnn_shape(x), (void)cudnn_shape(y); /* neither is too large */
    describe(l);
    make_room(l, spec->wants_dx);
    find_weights(l);
    return l;
}

static void close_lstm(void *layer) {
    struct lstm *l = layer;
    CUDNN_CALL(cudnnDestroyRNNDataDescriptor(l->x));
    CUDNN_CALL(cudnnDestroyRNNDataDescriptor(l->y));
    CUDNN_CALL(cudnnDestroyTensorDescriptor(l->state));
    CUDNN_CALL(cudnnDestroyRNNDescriptor(l->net));
    CUDNN_CALL(cudnnDestroyDropoutDescriptor(l->dropout));
    float *memory[] = {l->weights, l->dweights, l->reserve, l->states, l->whole, l->dx};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) cuda_free(memory[i]);
    mem_free(l);
}

/* -- passes ------------------------------------------------------------------------------------------------------- */

static void copy(float *to, const float *from, size_t floats) {
    CUDA_GIVE(cudaMemcpyAsync(to, from, floats * sizeof *to, cudaMemcpyDeviceToDevice, cuda_stream()));
}

static float *state_of(const struct lstm *l, int which) {
    return l->states + (size_t)which * l->state_floats;
}

/* The state before the first step, and how many steps there are. */
static void begin_pass(struct lstm *l, const struct layer_call *call) {
    const size_t state = l->streams * l->hidden;
    if (!l->padded) {
        copy(state_of(l, 0), call->carry, state);
        copy(state_of(l, 1), call->carry + state, state);
        return;
    }
    const size_t steps = (size_t)tensor_in_pass(&l->rows, call).n / l->streams;
    CUDA_GIVE(cudaMemsetAsync(l->states, 0, 2 * l->state_floats * sizeof *l->states, cuda_stream()));
    if (steps == l->steps) return;
    l->steps = steps;
    describe_data(l, l->x, l->inputs);
    describe_data(l, l->y, l->hidden);
}

/* A copy of rows of y, or dy, in which what is behind the ends of utterances is 0. */
static void mask(const struct lstm *l, const struct layer_call *call, const float *from, float *to) {
    struct tensor y = l->rows;
    y.c = (int)l->hidden;
    const struct cuda_steps s = cudnn_steps(&y, call);
    cuda_mask_rows(&s, from, to);
}

static void forward(void *layer, const struct layer_call *call, bool training) {
    struct lstm *l = layer;
    const size_t state = l->streams * l->hidden;
    float *hidden = state_of(l, 0), *cell = state_of(l, 1), *hidden_after = state_of(l, 2),
          *cell_after = state_of(l, 3);
    for (int i = 0; i < l->parts; i++)
        copy(l->weights + l->part[i].space, call->param + l->part[i].arena, l->part[i].size);
    begin_pass(l, call);
    CUDNN_CALL(cudnnRNNForward(l->backend->cudnn, l->net, training ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE,
                               NULL, l->x, call->x, l->y, l->padded ? l->whole : call->y, l->state, hidden,
                               hidden_after, l->state, cell, cell_after, l->weight_bytes, l->weights,
                               l->workspace_bytes, l->backend->workspace, training ? l->reserve_bytes : 0,
                               training ? l->reserve : NULL));
    if (l->padded) {
        mask(l, call, l->whole, call->y);
        return;
    }
    copy(call->carry, hidden_after, state);
    copy(call->carry + state, cell_after, state);
}

/* The library wants the gradient of the data first. It adds to that of the weights, which its own copy collects where
 * the pass adds. */
static void backward(void *layer, const struct layer_call *call) {
    const struct lstm *l = layer;
    const float *hidden = state_of(l, 0), *cell = state_of(l, 1);
    const float *y = l->padded ? l->whole : call->y;
    if (l->padded) mask(l, call, call->dy, call->dy);
    CUDNN_CALL(cudnnRNNBackwardData_v8(l->backend->cudnn, l->net, NULL, l->y, y, call->dy, l->x,
                                       l->dx ? l->dx : call->dx, l->state, hidden, NULL, NULL, l->state, cell, NULL,
                                       NULL, l->weight_bytes, l->weights, l->workspace_bytes, l->backend->workspace,
                                       l->reserve_bytes, l->reserve));
    if (!call->adds) CUDA_GIVE(cudaMemsetAsync(l->dweights, 0, l->weight_bytes, cuda_stream()));
    CUDNN_CALL(cudnnRNNBackwardWeights_v8(l->backend->cudnn, l->net, CUDNN_WGRAD_MODE_ADD, NULL, l->x, call->x,
                                          l->state, hidden, l->y, y, l->weight_bytes, l->dweights, l->workspace_bytes,
                                          l->backend->workspace, l->reserve_bytes, l->reserve));
    for (int i = 0; i < l->parts; i++)
        copy(call->dparam + l->part[i].arena, l->dweights + l->part[i].space, l->part[i].size);
}

const struct layer_ops cudnn_lstm = {open_lstm, forward, backward, close_lstm};
