/* cudnn_rnn_run.c: the LSTM of the stand-in for cuDNN, with the formulas of its documentation:
 *     i = sigmoid(Wi x + Ri h' + bWi + bRi)    f = sigmoid(Wf x + Rf h' + bWf + bRf)
 *     g = tanh(Wg x + Rg h' + bWg + bRg)       o = sigmoid(Wo x + Ro h' + bWo + bRo)
 *     c = f c' + i g                           h = o tanh(c)
 * where h' and c' are those of the step before. The reserve keeps what going back needs:
 *     [HEADER] state of the calls and sizes, then per layer: gates [steps][batch][4 hidden], c and h, each
 *     [steps][batch][hidden]. Going back over the data replaces the gates by the gradients of their sums. */
#include "tests/hostcuda/cudnn/cudnn_rnn.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER = 16, GATES = 4 };

/* The first float of the reserve: which calls came so far. */
#define AFTER_FORWARD 1001.0f
#define AFTER_DATA 1002.0f

struct lstm_place hostcudnn_lstm_place(const struct lstm *net, int layer, int id) {
    ptrdiff_t hidden = net->hidden, square = hidden * hidden, at = 0, columns = layer == 0 ? net->inputs : hidden;
    ptrdiff_t all_matrices = GATES * hidden * net->inputs + GATES * square + (net->layers - 1) * 2 * GATES * square;
    if (layer > 0) at = GATES * hidden * net->inputs + GATES * square + (layer - 1) * 2 * GATES * square;
    bool recurrent = id >= GATES;
    ptrdiff_t matrix = recurrent ? at + GATES * hidden * columns + (id - GATES) * square : at + id * hidden * columns;
    int sets = net->has_input_bias + net->has_recurrent_bias;
    bool there = recurrent ? net->has_recurrent_bias : net->has_input_bias;
    ptrdiff_t set = (ptrdiff_t)layer * sets + (recurrent && net->has_input_bias);
    ptrdiff_t bias = there ? all_matrices + (set * GATES + id % GATES) * hidden : -1;
    return (struct lstm_place){matrix, bias, net->hidden, recurrent ? net->hidden : (int)columns};
}

size_t hostcudnn_lstm_weights(const struct lstm *net) {
    size_t hidden = (size_t)net->hidden, inputs = (size_t)net->inputs, layers = (size_t)net->layers;
    size_t sets = (size_t)net->has_input_bias + (size_t)net->has_recurrent_bias;
    return GATES * hidden * (inputs + hidden + (layers - 1) * 2 * hidden + layers * sets);
}

static size_t state_count(const struct lstm *net) {
    return (size_t)net->batch * (size_t)net->hidden;
}

size_t hostcudnn_lstm_reserve(const struct lstm *net) {
    return HEADER + (size_t)net->layers * (size_t)net->steps * state_count(net) * (GATES + 2);
}

/* The parts of the reserve of one layer. */
struct kept {
    float *gates, *c, *h;
};

static struct kept kept_of(const struct lstm *net, int layer) {
    size_t all = (size_t)net->steps * state_count(net);
    float *at = net->reserve + HEADER + (size_t)layer * all * (GATES + 2);
    return (struct kept){at, at + GATES * all, at + (GATES + 1) * all};
}

/* A rounded copy; the caller frees. */
static float *rounded(const struct lstm *net, const float *from, size_t count) {
    float *to = hostcuda_scratch(count * sizeof *to);
    hostcuda_widen(to, from, false, count, net->rounding);
    return to;
}

/* Step t, sequence b of data [steps][batch][width], or batch major. */
static size_t spot(const struct lstm *net, int t, int b, int width) {
    return (net->batch_major ? (size_t)b * (size_t)net->steps + (size_t)t
                             : (size_t)t * (size_t)net->batch + (size_t)b) *
           (size_t)width;
}

/* Between the caller's data and [steps][batch][width]. */
static void reorder(const struct lstm *net, float *ordered, float *data, int width, bool back) {
    for (int t = 0; t < net->steps; t++)
        for (int b = 0; b < net->batch; b++, ordered += width) {
            float *theirs = data + spot(net, t, b, width);
            memcpy(back ? theirs : ordered, back ? ordered : theirs, (size_t)width * sizeof *theirs);
        }
}

static void mark(const struct lstm *net, float state) {
    const float sizes[] = {
        state, (float)net->layers, (float)net->inputs, (float)net->hidden, (float)net->steps, (float)net->batch};
    memcpy(net->reserve, sizes, sizeof sizes);
}

/* The reserve must be that of the call before, of the same sizes, and y what went forward then. */
static void expect(const struct lstm *net, const char *function, float state) {
    const float *r = net->reserve;
    if (r[0] != state)
        hostcuda_complain("%s: the reserve space is not that of the call that must come before", function);
    if (r[1] != (float)net->layers || r[2] != (float)net->inputs || r[3] != (float)net->hidden ||
        r[4] != (float)net->steps || r[5] != (float)net->batch)
        hostcuda_complain("%s: the reserve space is of a network of other sizes", function);
}

static void expect_y(const struct lstm *net, const char *function) {
    const float *h = kept_of(net, net->layers - 1).h;
    for (int t = 0; t < net->steps; t++)
        for (int b = 0; b < net->batch; b++, h += net->hidden)
            if (memcmp(h, net->y + spot(net, t, b, net->hidden), (size_t)net->hidden * sizeof *h) != 0)
                hostcuda_complain("%s: y is not what cudnnRNNForward gave", function);
}

/* The four matrices of one kind stand one below the other: [4 hidden][columns]. */
static struct matrix stacked(const float *weights, struct lstm_place first) {
    return (struct matrix){(float *)(uintptr_t)weights + first.matrix, first.columns, 1};
}

static struct matrix rows_of(const float *at, int width) {
    return (struct matrix){(float *)(uintptr_t)at, width, 1};
}
static float sigmoid(float x) {
    return 1 / (1 + expf(-x));
}

/* gates [rows][4 hidden] = the biases. */
static void start_gates(const struct lstm *net, int layer, size_t rows, float *gates) {
    int hidden = net->hidden;
    for (size_t row = 0; row < rows; row++)
        for (int gate = 0; gate < GATES; gate++) {
            ptrdiff_t in = hostcudnn_lstm_place(net, layer, gate).bias;
            ptrdiff_t again = hostcudnn_lstm_place(net, layer, GATES + gate).bias;
            for (int j = 0; j < hidden; j++)
                *gates++ = (in < 0 ? 0 : net->weights[in + j]) + (again < 0 ? 0 : net->weights[again + j]);
        }
}

/* The sums of one step become gates; c and h follow. All of one step: gates [batch][4 hidden], c and h [batch][hidden].
 */
static void cell(const struct lstm *net, float *gates, const float *c_before, float *c, float *h) {
    int hidden = net->hidden;
    for (int b = 0; b < net->batch; b++, gates += GATES * hidden)
        for (int j = 0; j < hidden; j++) {
            int at = b * hidden + j;
            float *i = &gates[j], *f = &gates[hidden + j], *g = &gates[2 * hidden + j], *o = &gates[3 * hidden + j];
            *i = sigmoid(*i);
            *f = sigmoid(*f);
            *g = tanhf(*g);
            *o = sigmoid(*o);
            c[at] = *f * c_before[at] + *i * *g;
            h[at] = *o * tanhf(c[at]);
        }
}

/* A layer's state before the first step, [batch][hidden]; the caller frees. */
static float *first_state(const struct lstm *net, const float *states, int layer) {
    size_t count = state_count(net);
    float *state = hostcuda_scratch(count * sizeof *state);
    if (states)
        memcpy(state, states + (size_t)layer * count, count * sizeof *state);
    else
        memset(state, 0, count * sizeof *state);
    return state;
}

/* One layer over all steps; x: [steps][batch][columns of W], rounded here; weights: all, rounded. */
static void layer_forward(const struct lstm *net, int layer, const float *x, const float *weights) {
    struct kept k = kept_of(net, layer);
    struct lstm_place w = hostcudnn_lstm_place(net, layer, 0), r = hostcudnn_lstm_place(net, layer, GATES);
    size_t count = state_count(net), rows = (size_t)net->steps * (size_t)net->batch,
           width = GATES * (size_t)net->hidden;
    float *in = rounded(net, x, rows * (size_t)w.columns);
    float *h0 = first_state(net, net->hx, layer), *c0 = first_state(net, net->cx, layer);
    start_gates(net, layer, rows, k.gates);
    hostcuda_gemm(rows, width, (size_t)w.columns, rows_of(in, w.columns), hostcuda_turned(stacked(weights, w)),
                  rows_of(k.gates, (int)width));
    for (int t = 0; t < net->steps; t++) {
        size_t at = (size_t)t * count;
        float *before = rounded(net, t ? k.h + at - count : h0, count), *gates = k.gates + at * GATES;
        hostcuda_gemm((size_t)net->batch, width, (size_t)net->hidden, rows_of(before, net->hidden),
                      hostcuda_turned(stacked(weights, r)), rows_of(gates, (int)width));
        cell(net, gates, t ? k.c + at - count : c0, k.c + at, k.h + at);
        free(before);
    }
    size_t last = (size_t)(net->steps - 1) * count;
    if (net->out_h) memcpy(net->out_h + (size_t)layer * count, k.h + last, count * sizeof *k.h);
    if (net->out_c) memcpy(net->out_c + (size_t)layer * count, k.c + last, count * sizeof *k.c);
    free(in);
    free(h0);
    free(c0);
}

void hostcudnn_lstm_forward(const void *argument) {
    struct lstm net = *(const struct lstm *)argument;
    bool training = net.reserve;
    size_t rows = (size_t)net.steps * (size_t)net.batch;
    hostcuda_overwrite_workspace(net.workspace, net.workspace_bytes);
    if (!training) net.reserve = hostcuda_scratch(hostcudnn_lstm_reserve(&net) * sizeof *net.reserve);
    float *weights = rounded(&net, net.weights, hostcudnn_lstm_weights(&net));
    float *x = hostcuda_scratch(rows * (size_t)net.inputs * sizeof *x);
    reorder(&net, x, (float *)(uintptr_t)net.x, net.inputs, false);
    for (int layer = 0; layer < net.layers; layer++)
        layer_forward(&net, layer, layer ? kept_of(&net, layer - 1).h : x, weights);
    reorder(&net, kept_of(&net, net.layers - 1).h, net.out_y, net.hidden, true);
    if (training)
        mark(&net, AFTER_FORWARD);
    else
        free(net.reserve);
    free(weights);
    free(x);
}

/* Gradients of one step. In: dh, dc [batch][hidden] of this step's h and c. Out: the gates become the gradients of
 * their sums, dc that of the c before. */
static void cell_back(const struct lstm *net, float *gates, const float *c_before, const float *c, const float *dh,
                      float *dc) {
    int hidden = net->hidden;
    for (int b = 0; b < net->batch; b++, gates += GATES * hidden)
        for (int j = 0; j < hidden; j++) {
            int at = b * hidden + j;
            float *pi = &gates[j], *pf = &gates[hidden + j], *pg = &gates[2 * hidden + j], *po = &gates[3 * hidden + j];
            float i = *pi, f = *pf, g = *pg, o = *po, tc = tanhf(c[at]);
            float d = dc[at] + dh[at] * o * (1 - tc * tc);
            *pi = d * g * i * (1 - i);
            *pf = d * c_before[at] * f * (1 - f);
            *pg = d * i * (1 - g * g);
            *po = dh[at] * tc * o * (1 - o);
            dc[at] = d * f;
        }
}

/* dy: [steps][batch][hidden], of this layer's h; gives dx: [steps][batch][columns of W]. */
static void layer_back(const struct lstm *net, int layer, const float *dy, float *dx, const float *weights) {
    struct kept k = kept_of(net, layer);
    struct lstm_place w = hostcudnn_lstm_place(net, layer, 0), r = hostcudnn_lstm_place(net, layer, GATES);
    size_t count = state_count(net), rows = (size_t)net->steps * (size_t)net->batch,
           width = GATES * (size_t)net->hidden;
    float *c0 = first_state(net, net->cx, layer);
    float *dh = first_state(net, net->dhy, layer), *dc = first_state(net, net->dcy, layer);
    for (int t = net->steps - 1; t >= 0; t--) {
        size_t at = (size_t)t * count;
        for (size_t i = 0; i < count; i++) dh[i] += dy[at + i];
        cell_back(net, k.gates + at * GATES, t ? k.c + at - count : c0, k.c + at, dh, dc);
        float *sums = rounded(net, k.gates + at * GATES, count * GATES);
        memset(dh, 0, count * sizeof *dh);
        hostcuda_gemm((size_t)net->batch, (size_t)net->hidden, width, rows_of(sums, (int)width), stacked(weights, r),
                      rows_of(dh, net->hidden));
        free(sums);
    }
    if (net->out_h) memcpy(net->out_h + (size_t)layer * count, dh, count * sizeof *dh);
    if (net->out_c) memcpy(net->out_c + (size_t)layer * count, dc, count * sizeof *dc);
    float *sums = rounded(net, k.gates, rows * width);
    memset(dx, 0, rows * (size_t)w.columns * sizeof *dx);
    hostcuda_gemm(rows, (size_t)w.columns, width, rows_of(sums, (int)width), stacked(weights, w),
                  rows_of(dx, w.columns));
    free(sums);
    free(c0);
    free(dh);
    free(dc);
}

void hostcudnn_lstm_backward_data(const void *argument) {
    const struct lstm *net = argument;
    size_t rows = (size_t)net->steps * (size_t)net->batch;
    size_t widest = (size_t)(net->inputs > net->hidden ? net->inputs : net->hidden);
    expect(net, "cudnnRNNBackwardData_v8", AFTER_FORWARD);
    expect_y(net, "cudnnRNNBackwardData_v8");
    hostcuda_overwrite_workspace(net->workspace, net->workspace_bytes);
    float *weights = rounded(net, net->weights, hostcudnn_lstm_weights(net));
    float *dy = hostcuda_scratch(rows * widest * sizeof *dy), *dx = hostcuda_scratch(rows * widest * sizeof *dx);
    reorder(net, dy, (float *)(uintptr_t)net->dy, net->hidden, false);
    for (int layer = net->layers - 1; layer >= 0; layer--) {
        layer_back(net, layer, dy, dx, weights);
        float *other = dy; /* what a layer gives is what the one below gets */
        dy = dx;
        dx = other;
    }
    reorder(net, dy, net->out_y, net->inputs, true);
    mark(net, AFTER_DATA);
    free(weights);
    free(dy);
    free(dx);
}

/* dW += sums^T x,  dR += sums^T h',  each bias += the sums of its gate. x: [steps][batch][columns of W]. */
static void layer_weights(const struct lstm *net, int layer, const float *x) {
    struct kept k = kept_of(net, layer);
    struct lstm_place w = hostcudnn_lstm_place(net, layer, 0), r = hostcudnn_lstm_place(net, layer, GATES);
    size_t count = state_count(net), rows = (size_t)net->steps * (size_t)net->batch,
           width = GATES * (size_t)net->hidden;
    float *before = hostcuda_scratch(rows * (size_t)net->hidden * sizeof *before),
          *h0 = first_state(net, net->hx, layer);
    memcpy(before, h0, count * sizeof *before);
    memcpy(before + count, k.h, (size_t)(net->steps - 1) * count * sizeof *before);
    float *sums = rounded(net, k.gates, rows * width), *in = rounded(net, x, rows * (size_t)w.columns);
    float *last = rounded(net, before, rows * (size_t)net->hidden);
    hostcuda_gemm(width, (size_t)w.columns, rows, hostcuda_turned(rows_of(sums, (int)width)), rows_of(in, w.columns),
                  stacked(net->dweights, w));
    hostcuda_gemm(width, (size_t)net->hidden, rows, hostcuda_turned(rows_of(sums, (int)width)),
                  rows_of(last, net->hidden), stacked(net->dweights, r));
    for (int id = 0; id < 2 * GATES; id++) {
        ptrdiff_t bias = hostcudnn_lstm_place(net, layer, id).bias;
        for (int j = 0; bias >= 0 && j < net->hidden; j++) {
            float sum = 0;
            for (size_t row = 0; row < rows; row++)
                sum += k.gates[row * width + (size_t)(id % GATES * net->hidden + j)];
            net->dweights[bias + j] += sum;
        }
    }
    free(before);
    free(h0);
    free(sums);
    free(in);
    free(last);
}

void hostcudnn_lstm_backward_weights(const void *argument) {
    const struct lstm *net = argument;
    size_t rows = (size_t)net->steps * (size_t)net->batch;
    expect(net, "cudnnRNNBackwardWeights_v8", AFTER_DATA);
    expect_y(net, "cudnnRNNBackwardWeights_v8");
    hostcuda_overwrite_workspace(net->workspace, net->workspace_bytes);
    float *x = hostcuda_scratch(rows * (size_t)net->inputs * sizeof *x);
    reorder(net, x, (float *)(uintptr_t)net->x, net->inputs, false);
    for (int layer = 0; layer < net->layers; layer++) layer_weights(net, layer, layer ? kept_of(net, layer - 1).h : x);
    free(x);
}
