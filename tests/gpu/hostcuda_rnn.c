/* hostcuda_rnn.c: the LSTM of the stand-in for cuDNN against the formulas in double, its gradients against finite
 * differences of those. */
#include "tests/hostcuda/libraries_rig.h"

#define TOLERANCE 1e-5
enum { MOST_LAYERS = 3, IDS = 8 };

struct trial {
    int layers, inputs, hidden, steps, batch;
    cudnnRNNBiasMode_t bias;
    cudnnRNNDataLayout_t layout;
    bool states; /* given, or NULL for zeros */
};

static const struct trial trials[] = {
    {1, 3, 4, 3, 2, CUDNN_RNN_DOUBLE_BIAS, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED, true},
    {2, 3, 4, 3, 2, CUDNN_RNN_DOUBLE_BIAS, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED, true},
    {3, 5, 2, 4, 3, CUDNN_RNN_SINGLE_INP_BIAS, CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED, true},
    {2, 2, 5, 1, 1, CUDNN_RNN_SINGLE_REC_BIAS, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED, false},
    {1, 4, 4, 5, 2, CUDNN_RNN_NO_BIAS, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED, false},
};

struct rig {
    struct trial t;
    cudnnRNNDescriptor_t net;
    cudnnDropoutDescriptor_t dropout;
    cudnnRNNDataDescriptor_t x_desc, y_desc;
    cudnnTensorDescriptor_t state_desc;
    ptrdiff_t matrix[MOST_LAYERS][IDS], bias[MOST_LAYERS][IDS]; /* in floats; bias -1: none */
    size_t weight_bytes, workspace_bytes, reserve_bytes;
    void *workspace, *reserve;
    struct numbers w, x, y, hx, hy, cx, cy;
    struct numbers dw, dx, dy, dhx, dhy, dcx, dcy;
};

static void *device(size_t bytes) {
    void *at = NULL;
    assert_int_equal(cudaMalloc(&at, bytes), 0);
    return at;
}

/* The weight space holds every matrix and bias once and nothing else. */
static void find_weights(struct rig *g) {
    const struct trial *t = &g->t;
    char *seen = calloc(g->w.count, 1);
    size_t total = 0;
    cudnnTensorDescriptor_t m_desc = NULL, b_desc = NULL;
    assert_int_equal(cudnnCreateTensorDescriptor(&m_desc) || cudnnCreateTensorDescriptor(&b_desc), 0);
    for (int layer = 0; layer < t->layers; layer++)
        for (int id = 0; id < IDS; id++) {
            void *m = NULL, *b = NULL;
            cudnnDataType_t type;
            int dims = 0, size[3] = {0}, stride[3] = {0};
            assert_int_equal(
                cudnnGetRNNWeightParams(dnn, g->net, layer, g->weight_bytes, g->w.device, id, m_desc, &m, b_desc, &b),
                0);
            assert_int_equal(cudnnGetTensorNdDescriptor(m_desc, 3, &type, &dims, size, stride), 0);
            assert_true(dims == 3 && size[0] == 1 && size[1] == t->hidden &&
                        size[2] == (id < 4 && layer == 0 ? t->inputs : t->hidden));
            g->matrix[layer][id] = (float *)m - (float *)g->w.device;
            for (int i = 0; i < size[1] * size[2]; i++, total++) assert_int_equal(seen[g->matrix[layer][id] + i]++, 0);
            assert_int_equal(cudnnGetTensorNdDescriptor(b_desc, 3, &type, &dims, size, stride), 0);
            bool there = t->bias == CUDNN_RNN_DOUBLE_BIAS ||
                         t->bias == (id < 4 ? CUDNN_RNN_SINGLE_INP_BIAS : CUDNN_RNN_SINGLE_REC_BIAS);
            assert_true(dims == (there ? 3 : 0) && (b != NULL) == there);
            g->bias[layer][id] = there ? (float *)b - (float *)g->w.device : -1;
            for (int i = 0; there && i < t->hidden; i++, total++) assert_int_equal(seen[g->bias[layer][id] + i]++, 0);
        }
    assert_int_equal(total, g->w.count);
    assert_int_equal(cudnnDestroyTensorDescriptor(m_desc) || cudnnDestroyTensorDescriptor(b_desc), 0);
    free(seen);
}

static void open_numbers(struct rig *g) {
    const struct trial *t = &g->t;
    size_t rows = (size_t)(t->steps * t->batch), states = (size_t)(t->layers * t->batch * t->hidden);
    struct numbers *const all[] = {&g->hx, &g->hy, &g->cx, &g->cy, &g->dhx, &g->dhy, &g->dcx, &g->dcy};
    for (int i = 0; i < 8; i++) *all[i] = rig_numbers(states, false, t->states ? 1 : 0);
    g->x = rig_numbers(rows * (size_t)t->inputs, false, 1);
    g->dx = rig_numbers(g->x.count, false, 1);
    g->y = rig_numbers(rows * (size_t)t->hidden, false, 1);
    g->dy = rig_numbers(g->y.count, false, 1);
    g->w = rig_numbers(g->weight_bytes / sizeof(float), false, 0.7);
    g->dw = rig_numbers(g->w.count, false, 1);
}

static void open_rig(struct rig *g, const struct trial *t, cudnnMathType_t math) {
    int lengths[8];
    for (int b = 0; b < 8; b++) lengths[b] = t->steps;
    *g = (struct rig){.t = *t};
    assert_int_equal(cudnnCreateRNNDescriptor(&g->net), 0);
    assert_int_equal(cudnnCreateDropoutDescriptor(&g->dropout), 0);
    assert_int_equal(cudnnCreateRNNDataDescriptor(&g->x_desc) || cudnnCreateRNNDataDescriptor(&g->y_desc), 0);
    assert_int_equal(cudnnCreateTensorDescriptor(&g->state_desc), 0);
    assert_int_equal(cudnnSetDropoutDescriptor(g->dropout, dnn, 0, NULL, 0, 1), 0);
    assert_int_equal(cudnnSetRNNDescriptor_v8(g->net, CUDNN_RNN_ALGO_STANDARD, CUDNN_LSTM, t->bias,
                                              CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT, CUDNN_DATA_FLOAT,
                                              CUDNN_DATA_FLOAT, math, t->inputs, t->hidden, t->hidden, t->layers,
                                              g->dropout, CUDNN_RNN_PADDED_IO_ENABLED),
                     0);
    assert_int_equal(
        cudnnSetRNNDataDescriptor(g->x_desc, CUDNN_DATA_FLOAT, t->layout, t->steps, t->batch, t->inputs, lengths, NULL),
        0);
    assert_int_equal(
        cudnnSetRNNDataDescriptor(g->y_desc, CUDNN_DATA_FLOAT, t->layout, t->steps, t->batch, t->hidden, lengths, NULL),
        0);
    assert_int_equal(cudnnSetTensorNdDescriptor(g->state_desc, CUDNN_DATA_FLOAT, 3,
                                                (int[]){t->layers, t->batch, t->hidden},
                                                (int[]){t->batch * t->hidden, t->hidden, 1}),
                     0);
    assert_int_equal(cudnnGetRNNWeightSpaceSize(dnn, g->net, &g->weight_bytes), 0);
    assert_int_equal(cudnnGetRNNTempSpaceSizes(dnn, g->net, CUDNN_FWD_MODE_TRAINING, g->x_desc, &g->workspace_bytes,
                                               &g->reserve_bytes),
                     0);
    g->workspace = device(g->workspace_bytes);
    g->reserve = device(g->reserve_bytes);
    open_numbers(g);
    find_weights(g);
}

static void close_rig(struct rig *g) {
    struct numbers *const all[] = {&g->w,  &g->x,  &g->y,  &g->hx,  &g->hy,  &g->cx,  &g->cy,
                                   &g->dw, &g->dx, &g->dy, &g->dhx, &g->dhy, &g->dcx, &g->dcy};
    for (int i = 0; i < 14; i++) rig_free(all[i]);
    assert_int_equal(cudaFree(g->workspace) || cudaFree(g->reserve), 0);
    assert_int_equal(cudnnDestroyRNNDataDescriptor(g->x_desc) || cudnnDestroyRNNDataDescriptor(g->y_desc), 0);
    assert_int_equal(cudnnDestroyRNNDescriptor(g->net) || cudnnDestroyDropoutDescriptor(g->dropout), 0);
    assert_int_equal(cudnnDestroyTensorDescriptor(g->state_desc), 0);
}

static size_t spot(const struct trial *t, int step, int b, int width) {
    bool batch_major = t->layout == CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED;
    return (size_t)((batch_major ? b * t->steps + step : step * t->batch + b) * width);
}

/* The sum of gate `gate` of unit j: W x + R h + bW + bR. */
static double gate_sum(const struct rig *g, int layer, int gate, int j, const double *x, int columns, const double *h) {
    double sum = 0;
    for (int i = 0; i < columns; i++) sum += g->w.host[g->matrix[layer][gate] + j * columns + i] * x[i];
    for (int i = 0; i < g->t.hidden; i++) sum += g->w.host[g->matrix[layer][4 + gate] + j * g->t.hidden + i] * h[i];
    for (int id = gate; id < IDS; id += 4)
        if (g->bias[layer][id] >= 0) sum += g->w.host[g->bias[layer][id] + j];
    return sum;
}

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

/* The formulas; fills y, hy, cy on the host and gives sum(dy y) + sum(dhy hy) + sum(dcy cy). */
static double define(struct rig *g) {
    const struct trial *t = &g->t;
    double h[8], c[8], in[8], loss = 0;
    for (int b = 0; b < t->batch; b++) {
        memcpy(g->hy.host, g->hx.host, b ? 0 : g->hy.count * sizeof(double));
        memcpy(g->cy.host, g->cx.host, b ? 0 : g->cy.count * sizeof(double));
        for (int step = 0; step < t->steps; step++) {
            memcpy(in, g->x.host + spot(t, step, b, t->inputs), (size_t)t->inputs * sizeof *in);
            for (int layer = 0; layer < t->layers; layer++) {
                double *h_at = g->hy.host + (layer * t->batch + b) * t->hidden;
                double *c_at = g->cy.host + (layer * t->batch + b) * t->hidden;
                int columns = layer ? t->hidden : t->inputs;
                for (int j = 0; j < t->hidden; j++) {
                    double i = sigmoid(gate_sum(g, layer, 0, j, in, columns, h_at));
                    double f = sigmoid(gate_sum(g, layer, 1, j, in, columns, h_at));
                    double n = tanh(gate_sum(g, layer, 2, j, in, columns, h_at));
                    double o = sigmoid(gate_sum(g, layer, 3, j, in, columns, h_at));
                    c[j] = f * c_at[j] + i * n;
                    h[j] = o * tanh(c[j]);
                }
                memcpy(h_at, h, (size_t)t->hidden * sizeof *h);
                memcpy(c_at, c, (size_t)t->hidden * sizeof *c);
                memcpy(in, h, (size_t)t->hidden * sizeof *h);
            }
            memcpy(g->y.host + spot(t, step, b, t->hidden), h, (size_t)t->hidden * sizeof *h);
        }
    }
    for (size_t i = 0; i < g->y.count; i++) loss += g->y.host[i] * g->dy.host[i];
    for (size_t i = 0; i < g->hy.count; i++) loss += g->hy.host[i] * g->dhy.host[i] + g->cy.host[i] * g->dcy.host[i];
    return loss;
}

/* to[] += the derivative of the loss by of[]. */
static void differentiate(struct rig *g, struct numbers *to, struct numbers *of) {
    const double step = 1e-5;
    for (size_t i = 0; i < of->count; i++) {
        double old = of->host[i];
        of->host[i] = old + step;
        double above = define(g);
        of->host[i] = old - step;
        to->host[i] += (above - define(g)) / (2 * step);
        of->host[i] = old;
    }
}

static const void *given(const struct rig *g, const struct numbers *x) {
    return g->t.states ? x->device : NULL;
}

static cudnnStatus_t forward(struct rig *g, cudnnForwardMode_t mode) {
    return cudnnRNNForward(dnn, g->net, mode, NULL, g->x_desc, g->x.device, g->y_desc, g->y.device, g->state_desc,
                           given(g, &g->hx), g->hy.device, g->state_desc, given(g, &g->cx), g->cy.device,
                           g->weight_bytes, g->w.device, g->workspace_bytes, g->workspace,
                           mode == CUDNN_FWD_MODE_TRAINING ? g->reserve_bytes : 0,
                           mode == CUDNN_FWD_MODE_TRAINING ? g->reserve : NULL);
}

static cudnnStatus_t backward_data(struct rig *g) {
    return cudnnRNNBackwardData_v8(dnn, g->net, NULL, g->y_desc, g->y.device, g->dy.device, g->x_desc, g->dx.device,
                                   g->state_desc, given(g, &g->hx), given(g, &g->dhy), g->dhx.device, g->state_desc,
                                   given(g, &g->cx), given(g, &g->dcy), g->dcx.device, g->weight_bytes, g->w.device,
                                   g->workspace_bytes, g->workspace, g->reserve_bytes, g->reserve);
}

static cudnnStatus_t backward_weights(struct rig *g, cudnnWgradMode_t mode) {
    return cudnnRNNBackwardWeights_v8(dnn, g->net, mode, NULL, g->x_desc, g->x.device, g->state_desc, given(g, &g->hx),
                                      g->y_desc, g->y.device, g->weight_bytes, g->dw.device, g->workspace_bytes,
                                      g->workspace, g->reserve_bytes, g->reserve);
}

static void lstm_learns(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++)
        for (int training = 0; training < 2; training++) {
            struct rig g;
            open_rig(&g, &trials[i], CUDNN_FMA_MATH);
            assert_int_equal(forward(&g, training ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE), 0);
            define(&g);
            rig_close(&g.y, TOLERANCE, "y");
            rig_close(&g.hy, TOLERANCE, "hy");
            rig_close(&g.cy, TOLERANCE, "cy");
            if (training) {
                memset(g.dx.host, 0, g.dx.count * sizeof(double));
                memset(g.dhx.host, 0, g.dhx.count * sizeof(double));
                memset(g.dcx.host, 0, g.dcx.count * sizeof(double));
                differentiate(&g, &g.dx, &g.x);
                differentiate(&g, &g.dhx, &g.hx);
                differentiate(&g, &g.dcx, &g.cx);
                differentiate(&g, &g.dw, &g.w); /* on top of what is there */
                assert_int_equal(backward_data(&g), 0);
                rig_close(&g.dx, TOLERANCE, "dx");
                rig_close(&g.dhx, TOLERANCE, "dhx");
                rig_close(&g.dcx, TOLERANCE, "dcx");
                assert_int_equal(backward_weights(&g, CUDNN_WGRAD_MODE_ADD), 0);
                rig_close(&g.dw, TOLERANCE, "dw");
            }
            close_rig(&g);
        }
}

static void lstm_rounds_unless_told(void **state) {
    (void)state;
    struct rig g;
    open_rig(&g, &trials[1], CUDNN_DEFAULT_MATH);
    assert_int_equal(forward(&g, CUDNN_FWD_MODE_TRAINING), 0);
    define(&g);
    rig_close(&g.y, 5e-3, "y");
    assert_true(rig_error(&g.y) > 2 * TOLERANCE);
    close_rig(&g);
}

static void weights_before_data(void *rig) {
    struct rig *g = rig;
    (void)forward(g, CUDNN_FWD_MODE_TRAINING);
    (void)backward_weights(g, CUDNN_WGRAD_MODE_ADD);
    (void)cudaDeviceSynchronize();
}

static void data_before_forward(void *rig) {
    (void)backward_data(rig);
    (void)cudaDeviceSynchronize();
}

static void y_overwritten(void *rig) {
    struct rig *g = rig;
    (void)forward(g, CUDNN_FWD_MODE_TRAINING);
    (void)cudaDeviceSynchronize();
    rig_send(&g->y);
    (void)backward_data(g);
    (void)cudaDeviceSynchronize();
}

static void in_host_memory(void *rig) {
    struct rig *g = rig;
    g->hx.device = g->hx.host;
    (void)forward(g, CUDNN_FWD_MODE_TRAINING);
}

static void lstm_refuses(void **state) {
    (void)state;
    struct rig g;
    open_rig(&g, &trials[1], CUDNN_FMA_MATH);
    rig_complains(data_before_forward, &g, "data before forward");
    rig_complains(weights_before_data, &g, "weights before data");
    rig_complains(y_overwritten, &g, "y overwritten");
    rig_complains(in_host_memory, &g, "hx in host memory");
    assert_int_equal(backward_weights(&g, CUDNN_WGRAD_MODE_SET), CUDNN_STATUS_NOT_SUPPORTED);
    g.workspace_bytes--;
    assert_int_equal(forward(&g, CUDNN_FWD_MODE_TRAINING), CUDNN_STATUS_BAD_PARAM);
    g.workspace_bytes++;
    g.reserve_bytes--;
    assert_int_equal(forward(&g, CUDNN_FWD_MODE_TRAINING), CUDNN_STATUS_BAD_PARAM);
    g.reserve_bytes++;
    assert_int_equal(forward(&g, CUDNN_FWD_MODE_TRAINING), CUDNN_STATUS_SUCCESS);
    int lengths[] = {3, 2};
    assert_int_equal(cudnnSetRNNDataDescriptor(g.x_desc, CUDNN_DATA_FLOAT, trials[1].layout, 3, 2, 3, lengths, NULL),
                     0);
    assert_int_equal(forward(&g, CUDNN_FWD_MODE_TRAINING), CUDNN_STATUS_NOT_SUPPORTED);
    lengths[1] = 4;
    assert_int_equal(cudnnSetRNNDataDescriptor(g.x_desc, CUDNN_DATA_FLOAT, trials[1].layout, 3, 2, 3, lengths, NULL),
                     CUDNN_STATUS_BAD_PARAM);
    lengths[1] = 3;
    assert_int_equal(cudnnSetRNNDataDescriptor(g.x_desc, CUDNN_DATA_FLOAT, trials[1].layout, 3, 2, 4, lengths, NULL),
                     0);
    assert_int_equal(forward(&g, CUDNN_FWD_MODE_TRAINING), CUDNN_STATUS_BAD_PARAM);
    assert_int_equal(cudnnSetRNNDescriptor_v8(g.net, CUDNN_RNN_ALGO_STANDARD, CUDNN_LSTM, CUDNN_RNN_DOUBLE_BIAS,
                                              CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT, CUDNN_DATA_FLOAT,
                                              CUDNN_DATA_FLOAT, CUDNN_FMA_MATH, 3, 4, 0, 2, g.dropout, 0),
                     CUDNN_STATUS_BAD_PARAM);
    close_rig(&g);
}

int main(void) {
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(lstm_learns),
        cmocka_unit_test(lstm_rounds_unless_told),
        cmocka_unit_test(lstm_refuses),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(cases, rig_open_cudnn, rig_close_cudnn);
}
