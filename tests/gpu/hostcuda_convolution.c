/* hostcuda_convolution.c: the convolutions and other operations on tensors of the stand-in for cuDNN against plain
 * loops in double, their refusals and their complaints. */
#include "tests/hostcuda/libraries_rig.h"

/* Sums of up to 500 products of numbers near 1: float errs by 500^0.5 * 2^-24 of a typical sum, 1e-6; a factor of ten.
 * A result rounded to bf16 errs by 2^-9. */
#define TOLERANCE 1.5e-5
#define TOLERANCE_BF16 (1.0 / 256)

static cudaStream_t stream;

/* -- convolutions ---------------------------------------------------------------------------------------------- */

struct conv_trial {
    int n, c, h, w, k, r, s, stride, pad, dilation, groups;
    bool flipped;
};

static const struct conv_trial conv_trials[] = {
    /* n  c  h  w   k  r  s  st p  d  g */
    {2, 3, 9, 7, 16, 3, 3, 1, 1, 1, 1, false},   {1, 16, 8, 8, 16, 3, 3, 1, 1, 1, 1, false},
    {3, 16, 7, 9, 32, 3, 3, 2, 1, 1, 1, false},  {2, 16, 5, 5, 20, 1, 1, 1, 0, 1, 1, false},
    {2, 5, 6, 8, 7, 1, 1, 2, 0, 1, 1, false},    {1, 4, 11, 11, 8, 5, 5, 2, 2, 1, 1, false},
    {1, 3, 12, 10, 4, 7, 7, 2, 3, 1, 1, false},  {1, 1, 5, 4, 1, 3, 2, 1, 0, 1, 1, false},
    {2, 6, 8, 7, 9, 3, 3, 1, 2, 2, 3, true},     {1, 4, 1, 1, 6, 1, 1, 1, 0, 1, 1, false},
    {1, 70, 20, 70, 4, 3, 3, 1, 1, 1, 1, false},
};

/* A convolution on both sides. Everything is stored as `format` says. */
struct conv_rig {
    struct conv_trial t;
    bool last; /* channels last */
    int p, q;
    cudnnTensorDescriptor_t x_desc, y_desc;
    cudnnFilterDescriptor_t w_desc;
    cudnnConvolutionDescriptor_t how;
    struct numbers x, w, y;
    void *workspace;
    size_t workspace_bytes;
};

static size_t place(bool last, int b, int c, int h, int w, int channels, int height, int width) {
    return last ? (size_t)(((b * height + h) * width + w) * channels + c)
                : (size_t)(((b * channels + c) * height + h) * width + w);
}

static void open_conv(struct conv_rig *g, const struct conv_trial *t, bool last, bool is_bf16, cudnnMathType_t math) {
    cudnnDataType_t type = is_bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
    cudnnTensorFormat_t format = last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
    int n = 0, k = 0;
    *g = (struct conv_rig){.t = *t, .last = last, .workspace_bytes = 4 << 20};
    assert_int_equal(cudnnCreateTensorDescriptor(&g->x_desc), 0);
    assert_int_equal(cudnnCreateTensorDescriptor(&g->y_desc), 0);
    assert_int_equal(cudnnCreateFilterDescriptor(&g->w_desc), 0);
    assert_int_equal(cudnnCreateConvolutionDescriptor(&g->how), 0);
    assert_int_equal(cudnnSetTensor4dDescriptor(g->x_desc, format, type, t->n, t->c, t->h, t->w), 0);
    assert_int_equal(cudnnSetFilter4dDescriptor(g->w_desc, type, format, t->k, t->c / t->groups, t->r, t->s), 0);
    assert_int_equal(
        cudnnSetConvolution2dDescriptor(g->how, t->pad, t->pad, t->stride, t->stride, t->dilation, t->dilation,
                                        t->flipped ? CUDNN_CONVOLUTION : CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
        0);
    assert_int_equal(cudnnSetConvolutionMathType(g->how, math), 0);
    assert_int_equal(cudnnSetConvolutionGroupCount(g->how, t->groups), 0);
    assert_int_equal(cudnnGetConvolution2dForwardOutputDim(g->how, g->x_desc, g->w_desc, &n, &k, &g->p, &g->q), 0);
    assert_true(n == t->n && k == t->k);
    assert_int_equal(cudnnSetTensor4dDescriptor(g->y_desc, format, type, n, k, g->p, g->q), 0);
    g->x = rig_numbers((size_t)(t->n * t->c * t->h * t->w), is_bf16, 1);
    g->w = rig_numbers((size_t)(t->k * (t->c / t->groups) * t->r * t->s), is_bf16, 1);
    g->y = rig_numbers((size_t)(n * k * g->p * g->q), is_bf16, 1);
    assert_int_equal(cudaMalloc(&g->workspace, g->workspace_bytes), 0);
}

static void close_conv(struct conv_rig *g) {
    rig_free(&g->x);
    rig_free(&g->w);
    rig_free(&g->y);
    assert_int_equal(cudaFree(g->workspace), 0);
    assert_int_equal(cudnnDestroyTensorDescriptor(g->x_desc), 0);
    assert_int_equal(cudnnDestroyTensorDescriptor(g->y_desc), 0);
    assert_int_equal(cudnnDestroyFilterDescriptor(g->w_desc), 0);
    assert_int_equal(cudnnDestroyConvolutionDescriptor(g->how), 0);
}

/* One product of the definition: which entries of x, w and y meet. */
struct triple {
    size_t x, w, y;
};

/* All triples of pixel (b, k, oy, ox) and tap (c, r, s), or false where the tap lies in the padding. */
static bool meet(const struct conv_rig *g, int b, int k, int oy, int ox, int c, int r, int s, struct triple *at) {
    const struct conv_trial *t = &g->t;
    int group = k / (t->k / t->groups), channels = t->c / t->groups;
    int iy = oy * t->stride - t->pad + (t->flipped ? t->r - 1 - r : r) * t->dilation;
    int ix = ox * t->stride - t->pad + (t->flipped ? t->s - 1 - s : s) * t->dilation;
    if (iy < 0 || iy >= t->h || ix < 0 || ix >= t->w) return false;
    at->x = place(g->last, b, group * channels + c, iy, ix, t->c, t->h, t->w);
    at->w = place(g->last, k, c, r, s, channels, t->r, t->s);
    at->y = place(g->last, b, k, oy, ox, t->k, g->p, g->q);
    return true;
}

/* out = alpha * sum of one[] * two[] + beta * out, by the definition: pass 0 gives y, 1 dx, 2 dw. */
static void define(struct conv_rig *g, int pass, double alpha, double beta) {
    struct numbers *out = pass == 0 ? &g->y : pass == 1 ? &g->x : &g->w;
    double *sums = calloc(out->count, sizeof *sums);
    struct triple at;
    for (int b = 0; b < g->t.n; b++)
        for (int k = 0; k < g->t.k; k++)
            for (int oy = 0; oy < g->p; oy++)
                for (int ox = 0; ox < g->q; ox++)
                    for (int c = 0; c < g->t.c / g->t.groups; c++)
                        for (int r = 0; r < g->t.r; r++)
                            for (int s = 0; s < g->t.s; s++) {
                                if (!meet(g, b, k, oy, ox, c, r, s, &at)) continue;
                                if (pass == 0) sums[at.y] += g->x.host[at.x] * g->w.host[at.w];
                                if (pass == 1) sums[at.x] += g->y.host[at.y] * g->w.host[at.w];
                                if (pass == 2) sums[at.w] += g->x.host[at.x] * g->y.host[at.y];
                            }
    for (size_t i = 0; i < out->count; i++) out->host[i] = alpha * sums[i] + beta * out->host[i];
    free(sums);
}

static cudnnStatus_t run_conv(struct conv_rig *g, int pass, int algorithm, float alpha, float beta) {
    if (pass == 0)
        return cudnnConvolutionForward(dnn, &alpha, g->x_desc, g->x.device, g->w_desc, g->w.device, g->how,
                                       (cudnnConvolutionFwdAlgo_t)algorithm, g->workspace, g->workspace_bytes, &beta,
                                       g->y_desc, g->y.device);
    if (pass == 1)
        return cudnnConvolutionBackwardData(dnn, &alpha, g->w_desc, g->w.device, g->y_desc, g->y.device, g->how,
                                            (cudnnConvolutionBwdDataAlgo_t)algorithm, g->workspace, g->workspace_bytes,
                                            &beta, g->x_desc, g->x.device);
    return cudnnConvolutionBackwardFilter(dnn, &alpha, g->x_desc, g->x.device, g->y_desc, g->y.device, g->how,
                                          (cudnnConvolutionBwdFilterAlgo_t)algorithm, g->workspace, g->workspace_bytes,
                                          &beta, g->w_desc, g->w.device);
}

static struct numbers *result_of(struct conv_rig *g, int pass) {
    return pass == 0 ? &g->y : pass == 1 ? &g->x : &g->w;
}

static void conv_convolves(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof conv_trials / sizeof *conv_trials; i++)
        for (int kind = 0; kind < 8; kind++)
            for (int pass = 0; pass < 3; pass++) {
                bool is_bf16 = kind & 2;
                float alpha = kind & 4 ? 0.5f : 1, beta = kind & 4 ? -2 : 0;
                char what[64];
                snprintf(what, sizeof what, "trial %zu, kind %d, pass %d", i, kind, pass);
                struct conv_rig g;
                open_conv(&g, &conv_trials[i], kind & 1, is_bf16, CUDNN_FMA_MATH);
                define(&g, pass, (double)alpha, (double)beta);
                assert_int_equal(run_conv(&g, pass, 1, alpha, beta), CUDNN_STATUS_SUCCESS);
                rig_close(result_of(&g, pass), is_bf16 ? TOLERANCE_BF16 : TOLERANCE, what);
                close_conv(&g);
            }
}

/* Without FMA math float operands lose mantissa; the result is close, but not to float accuracy. */
static void conv_rounds_unless_told(void **state) {
    (void)state;
    const cudnnMathType_t rough[] = {CUDNN_DEFAULT_MATH, CUDNN_TENSOR_OP_MATH, CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION};
    for (int i = 0; i < 3; i++)
        for (int pass = 0; pass < 3; pass++) {
            struct conv_rig g;
            open_conv(&g, &conv_trials[1], i & 1, false, rough[i]);
            define(&g, pass, 1, 0);
            assert_int_equal(run_conv(&g, pass, 1, 1, 0), CUDNN_STATUS_SUCCESS);
            rig_close(result_of(&g, pass), 1e-3, "TF32");
            assert_true(rig_error(result_of(&g, pass)) > 2 * TOLERANCE);
            close_conv(&g);
        }
}

struct ranked {
    int algorithm, status, deterministic;
    double time;
    size_t memory;
};

/* The Find function of the pass; what[] gets how many results it returns. */
static int find(struct conv_rig *g, int pass, size_t workspace, struct ranked what[16]) {
    int count = 0, most = 0;
#define COPY_RESULTS()                                                                                                 \
    for (int i = 0; i < count; i++) what[i] = (struct ranked) {                                                        \
            (int)perf[i].algo, (int)perf[i].status, (int)perf[i].determinism, (double)perf[i].time, perf[i].memory     \
        }
    if (pass == 0) {
        cudnnConvolutionFwdAlgoPerf_t perf[16];
        assert_int_equal(cudnnGetConvolutionForwardAlgorithmMaxCount(dnn, &most), 0);
        assert_int_equal(cudnnFindConvolutionForwardAlgorithmEx(dnn, g->x_desc, g->x.device, g->w_desc, g->w.device,
                                                                g->how, g->y_desc, g->y.device, 16, &count, perf,
                                                                g->workspace, workspace),
                         0);
        COPY_RESULTS();
    } else if (pass == 1) {
        cudnnConvolutionBwdDataAlgoPerf_t perf[16];
        assert_int_equal(cudnnGetConvolutionBackwardDataAlgorithmMaxCount(dnn, &most), 0);
        assert_int_equal(cudnnFindConvolutionBackwardDataAlgorithmEx(dnn, g->w_desc, g->w.device, g->y_desc,
                                                                     g->y.device, g->how, g->x_desc, g->x.device, 16,
                                                                     &count, perf, g->workspace, workspace),
                         0);
        COPY_RESULTS();
    } else {
        cudnnConvolutionBwdFilterAlgoPerf_t perf[16];
        assert_int_equal(cudnnGetConvolutionBackwardFilterAlgorithmMaxCount(dnn, &most), 0);
        assert_int_equal(cudnnFindConvolutionBackwardFilterAlgorithmEx(dnn, g->x_desc, g->x.device, g->y_desc,
                                                                       g->y.device, g->how, g->w_desc, g->w.device, 16,
                                                                       &count, perf, g->workspace, workspace),
                         0);
        COPY_RESULTS();
    }
    assert_true(count > 0 && count <= most);
    return count;
}

static void find_ranks(void **state) {
    (void)state;
    struct ranked what[16];
    for (int pass = 0; pass < 3; pass++) {
        struct conv_rig g;
        open_conv(&g, &conv_trials[1], false, false, CUDNN_DEFAULT_MATH);
        int count = find(&g, pass, g.workspace_bytes, what), refused = 0;
        assert_true(isinf(rig_error(result_of(&g, pass)))); /* garbage is left */
        assert_int_equal(what[0].status, CUDNN_STATUS_SUCCESS);
        assert_int_equal(what[0].deterministic, CUDNN_NON_DETERMINISTIC);
        for (int i = 0; i < count; i++) {
            bool fine = what[i].status == CUDNN_STATUS_SUCCESS;
            refused += !fine;
            assert_true(fine ? what[i].time > 0 && what[i].memory <= g.workspace_bytes : what[i].time < 0);
            if (i > 0 && fine) assert_true(what[i].time > what[i - 1].time && what[i - 1].time > 0);
            rig_send(&g.x);
            rig_send(&g.y);
            assert_int_equal(run_conv(&g, pass, what[i].algorithm, 1, 0), what[i].status);
        }
        assert_int_equal(refused, pass == 1 ? 0 : 1);
        count = find(&g, pass, 0, what); /* without a workspace: those that need one fail, and say what they need */
        for (int i = 0; i < count; i++)
            assert_true(what[i].memory == 0 || what[i].status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
        assert_int_equal(what[0].status, CUDNN_STATUS_SUCCESS);
        close_conv(&g);
    }
}

/* The non-deterministic algorithm stays within rounding of the others and gives other bits the second time. */
static void chance_shows(void **state) {
    (void)state;
    const int by_chance[3] = {CUDNN_CONVOLUTION_FWD_ALGO_GEMM, CUDNN_CONVOLUTION_BWD_DATA_ALGO_0,
                              CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0};
    for (int pass = 0; pass < 3; pass++) {
        struct conv_rig g;
        open_conv(&g, &conv_trials[1], false, false, CUDNN_FMA_MATH);
        struct numbers *out = result_of(&g, pass);
        size_t bytes = out->count * sizeof(float);
        float *runs[4];
        define(&g, pass, 1, 0);
        for (int i = 0; i < 4; i++) {
            runs[i] = malloc(bytes);
            assert_int_equal(run_conv(&g, pass, i < 2 ? by_chance[pass] : 1, 1, 0), 0);
            rig_close(out, TOLERANCE, "by chance");
            assert_int_equal(cudaMemcpy(runs[i], out->device, bytes, cudaMemcpyDeviceToHost), 0);
        }
        assert_int_not_equal(memcmp(runs[0], runs[1], bytes), 0);
        assert_int_equal(memcmp(runs[2], runs[3], bytes), 0);
        for (int i = 0; i < 4; i++) free(runs[i]);
        close_conv(&g);
    }
}

/* A convolution goes into a graph and runs with it; Find does not. */
static void find_not_while_capturing(void **state) {
    (void)state;
    struct conv_rig g;
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    cudnnConvolutionFwdAlgoPerf_t perf;
    int count = 0;
    open_conv(&g, &conv_trials[1], false, false, CUDNN_FMA_MATH);
    assert_int_equal(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), 0);
    assert_int_equal(cudnnFindConvolutionForwardAlgorithmEx(dnn, g.x_desc, g.x.device, g.w_desc, g.w.device, g.how,
                                                            g.y_desc, g.y.device, 1, &count, &perf, g.workspace,
                                                            g.workspace_bytes),
                     CUDNN_STATUS_NOT_SUPPORTED);
    assert_int_equal(cudnnGetConvolutionForwardAlgorithm_v7(dnn, g.x_desc, g.w_desc, g.how, g.y_desc, 1, &count, &perf),
                     0);
    assert_int_equal(run_conv(&g, 0, 1, 1, 0), CUDNN_STATUS_SUCCESS);
    assert_int_equal(cudaStreamEndCapture(stream, &graph), 0);
    assert_int_equal(cudaGraphInstantiate(&ready, graph, 0), 0);
    assert_true(rig_error(&g.y) == 0); /* nothing ran so far */
    assert_int_equal(cudaGraphLaunch(ready, stream), 0);
    assert_int_equal(cudaStreamSynchronize(stream), 0);
    define(&g, 0, 1, 0);
    rig_close(&g.y, TOLERANCE, "from a graph");
    assert_int_equal(cudaGraphExecDestroy(ready) || cudaGraphDestroy(graph), 0);
    close_conv(&g);
}

static void conv_host_memory(void *rig) {
    struct conv_rig g = *(struct conv_rig *)rig;
    g.x.device = g.x.host;
    (void)run_conv(&g, 0, 0, 1, 0);
}

static void conv_in_place(void *rig) {
    struct conv_rig g = *(struct conv_rig *)rig;
    g.y.device = g.x.device;
    (void)run_conv(&g, 0, 0, 1, 0);
}

static void conv_misaligned(void *rig) {
    struct conv_rig g = *(struct conv_rig *)rig;
    g.workspace = (char *)g.workspace + 4;
    g.workspace_bytes -= 4;
    (void)run_conv(&g, 0, 1, 1, 0);
}

static void conv_refuses(void **state) {
    (void)state;
    struct conv_rig g;
    size_t bytes = 0;
    open_conv(&g, &conv_trials[1], false, false, CUDNN_FMA_MATH);
    rig_complains(conv_host_memory, &g, "x in host memory");
    rig_complains(conv_in_place, &g, "y on x");
    rig_complains(conv_misaligned, &g, "workspace misaligned");
    assert_int_equal(cudnnGetConvolutionForwardWorkspaceSize(dnn, g.x_desc, g.w_desc, g.how, g.y_desc,
                                                             CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, &bytes),
                     0);
    assert_true(bytes > 1024);
    g.workspace_bytes = bytes - 1;
    assert_int_equal(run_conv(&g, 0, 1, 1, 0), CUDNN_STATUS_BAD_PARAM);
    g.workspace_bytes = bytes;
    assert_int_equal(run_conv(&g, 0, 1, 1, 0), CUDNN_STATUS_SUCCESS);
    assert_int_equal(run_conv(&g, 0, 99, 1, 0), CUDNN_STATUS_BAD_PARAM);
    assert_int_equal(run_conv(&g, 0, CUDNN_CONVOLUTION_FWD_ALGO_DIRECT, 1, 0), CUDNN_STATUS_NOT_SUPPORTED);
    assert_int_equal(cudnnSetTensor4dDescriptor(g.y_desc, CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, 1, 16, 8, 8), 0);
    assert_int_equal(run_conv(&g, 0, 0, 1, 0), CUDNN_STATUS_NOT_SUPPORTED);
    assert_int_equal(cudnnSetTensor4dDescriptor(g.y_desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 16, 8, 7), 0);
    assert_int_equal(run_conv(&g, 0, 0, 1, 0), CUDNN_STATUS_BAD_PARAM);
    char text[256] = "";
    cudnnGetLastErrorString(text, sizeof text);
    assert_non_null(strstr(text, "hostcudnn_conv_check"));
    assert_int_equal(cudnnSetTensor4dDescriptor(g.y_desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_BFLOAT16, 1, 16, 8, 8), 0);
    assert_int_equal(run_conv(&g, 0, 0, 1, 0), CUDNN_STATUS_BAD_PARAM);
    assert_int_equal(cudnnSetTensor4dDescriptor(g.y_desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 16, 8, 0),
                     CUDNN_STATUS_BAD_PARAM);
    assert_int_equal(cudnnSetConvolutionMathType(g.how, (cudnnMathType_t)9), CUDNN_STATUS_BAD_PARAM);
    assert_string_equal(cudnnGetErrorString(CUDNN_STATUS_BAD_PARAM), "CUDNN_STATUS_BAD_PARAM");
    close_conv(&g);
}

/* -- what else tensors can do ------------------------------------------------------------------------------------ */

static void bias_both_ways(void **state) {
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        bool last = kind & 1, is_bf16 = kind & 2;
        int n = 2, c = 5, h = 3, w = 4;
        float alpha = 0.5f, beta = -2;
        cudnnTensorFormat_t format = last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
        cudnnDataType_t type = is_bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
        cudnnTensorDescriptor_t y_desc = NULL, b_desc = NULL;
        assert_int_equal(cudnnCreateTensorDescriptor(&y_desc) || cudnnCreateTensorDescriptor(&b_desc), 0);
        assert_int_equal(cudnnSetTensor4dDescriptor(y_desc, format, type, n, c, h, w), 0);
        assert_int_equal(cudnnSetTensor4dDescriptor(b_desc, format, type, 1, c, 1, 1), 0);
        struct numbers y = rig_numbers((size_t)(n * c * h * w), is_bf16, 1), b = rig_numbers((size_t)c, is_bf16, 1);
        double *old = malloc(b.count * sizeof *old);
        memcpy(old, b.host, b.count * sizeof *old);
        assert_int_equal(cudnnConvolutionBackwardBias(dnn, &alpha, y_desc, y.device, &beta, b_desc, b.device), 0);
        for (int k = 0; k < c; k++) {
            double sum = 0;
            for (int i = 0; i < n * h * w; i++) sum += y.host[place(last, i / (h * w), k, i / w % h, i % w, c, h, w)];
            b.host[k] = (double)alpha * sum + (double)beta * b.host[k];
        }
        rig_close(&b, is_bf16 ? TOLERANCE_BF16 : TOLERANCE, "bias backward");
        memcpy(b.host, old, b.count * sizeof *old);
        rig_send(&b);
        assert_int_equal(cudnnAddTensor(dnn, &alpha, b_desc, b.device, &beta, y_desc, y.device), 0);
        for (int k = 0; k < c; k++)
            for (int i = 0; i < n * h * w; i++) {
                double *at = &y.host[place(last, i / (h * w), k, i / w % h, i % w, c, h, w)];
                *at = (double)alpha * b.host[k] + (double)beta * *at;
            }
        rig_close(&y, is_bf16 ? TOLERANCE_BF16 : TOLERANCE, "bias forward");
        free(old);
        rig_free(&y);
        rig_free(&b);
        assert_int_equal(cudnnDestroyTensorDescriptor(y_desc) || cudnnDestroyTensorDescriptor(b_desc), 0);
    }
}

static void transform_changes_the_format(void **state) {
    (void)state;
    int n = 2, c = 5, h = 3, w = 4;
    float one = 1, zero = 0;
    cudnnTensorDescriptor_t from = NULL, to = NULL;
    size_t bytes = 0;
    assert_int_equal(cudnnCreateTensorDescriptor(&from) || cudnnCreateTensorDescriptor(&to), 0);
    assert_int_equal(cudnnSetTensor4dDescriptor(from, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, n, c, h, w), 0);
    assert_int_equal(cudnnSetTensor4dDescriptor(to, CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, n, c, h, w), 0);
    assert_int_equal(cudnnGetTensorSizeInBytes(to, &bytes), 0);
    assert_int_equal(bytes, n * c * h * w * 4);
    struct numbers x = rig_numbers((size_t)(n * c * h * w), false, 1), y = rig_numbers(x.count, false, 1);
    assert_int_equal(cudnnTransformTensor(dnn, &one, from, x.device, &zero, to, y.device), 0);
    for (int i = 0; i < n * c * h * w; i++)
        y.host[place(true, i / (c * h * w), i / (h * w) % c, i / w % h, i % w, c, h, w)] = x.host[i];
    rig_close(&y, 0, "transform");
    rig_free(&x);
    rig_free(&y);
    assert_int_equal(cudnnDestroyTensorDescriptor(from) || cudnnDestroyTensorDescriptor(to), 0);
}

static int open_libraries(void **state) {
    return cudaStreamCreate(&stream) || rig_open_cudnn(state) || cudnnSetStream(dnn, stream);
}

static int close_libraries(void **state) {
    return rig_close_cudnn(state) || cudaStreamDestroy(stream);
}

int main(void) {
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(conv_convolves), cmocka_unit_test(conv_rounds_unless_told),
        cmocka_unit_test(find_ranks),     cmocka_unit_test(find_not_while_capturing),
        cmocka_unit_test(chance_shows),   cmocka_unit_test(conv_refuses),
        cmocka_unit_test(bias_both_ways), cmocka_unit_test(transform_changes_the_format),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(cases, open_libraries, close_libraries);
}
