/* backend_cudnn.c: the CUDA backend: convolutions by cuDNN 9, matrix products by cuBLAS, what is bound by memory by the
 * kernels of cuda_*.cu. Here: the row, handles, passes, the loss. */
#include "nets/cudnn/backend_cudnn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "nets/cuda/cuda_bias.h"
#include "nets/cuda/cuda_ctc.h"
#include "nets/cudnn/backend_cudnn_cache.h"
#include "nets/cudnn/backend_cudnn_fused.h"

enum {
    CUBLAS_WORKSPACE_BYTES = 32 << 20, /* what NVIDIA recommends for Hopper; earlier GPUs take less of it */
    TENSOR_CORES = 8,                  /* compute capability from which on they take TF32 and bf16 */
    BF16_SIDE_BY_SIDE = 8,             /* in 16 bytes */
    ELEMENTS_MAX = 1 << 30             /* of a tensor, so that 32 bits hold any place in it and a grid's step beyond */
};

void cudnn_check(cudnnStatus_t status, const char *call, const char *file, int line) {
    char more[512] = "";
    if (status == CUDNN_STATUS_SUCCESS) {
        cuda_timer_mark(call);
        return;
    }
    cudnnGetLastErrorString(more, sizeof more);
    cuda_failed(
        file, line,
        "%s failed: %s%s%s (the messages of cuDNN, with CUDNN_LOGLEVEL_DBG=1 and CUDNN_LOGDEST_DBG=stderr in the "
        "environment, may say more)",
        call, cudnnGetErrorString(status), *more ? ": " : "", more);
}

void cublas_check(cublasStatus_t status, const char *call, const char *file, int line) {
    if (status == CUBLAS_STATUS_SUCCESS) {
        cuda_timer_mark(call);
        return;
    }
    cuda_failed(
        file, line,
        "%s failed: %s (CUBLAS_LOGINFO_DBG=1 and CUBLAS_LOGDEST_DBG=stderr in the environment make cuBLAS say more)",
        call, cublasGetStatusString(status));
}

/* -- tensors ------------------------------------------------------------------------------------------------------ */

enum cuda_layout cudnn_layout(enum precision precision) {
    switch (precision) {
    case PRECISION_BF16:
        return CUDA_NHWC_BF16;
    case PRECISION_TF32:
        return CUDA_NHWC;
    default:
        return CUDA_NCHW;
    }
}

bool cudnn_is_bf16(const struct tensor *t) {
    return t->layout == CUDA_NHWC_BF16;
}

int cudnn_row_layout(const struct cudnn_backend *b) {
    return b->precision == PRECISION_BF16 ? (int)CUDA_NHWC_BF16 : (int)CUDA_NCHW;
}

bool cudnn_are_rows(const struct tensor *t) {
    return t->layout == LAYOUT_CANONICAL || (cudnn_is_bf16(t) && t->h == 1 && t->w == 1);
}

static size_t elements_of(const struct tensor *t) {
    return (size_t)t->n * (size_t)t->c * (size_t)t->h * (size_t)t->w;
}

struct cuda_shape cudnn_shape(const struct tensor *t) {
    size_t n = elements_of(t);
    if (n > ELEMENTS_MAX)
        die("a tensor of %d x %d x %d x %d has more than %d elements; take a smaller batch", t->n, t->c, t->h, t->w,
            ELEMENTS_MAX);
    return (struct cuda_shape){.images = (uint32_t)t->n,
                               .channels = (uint32_t)t->c,
                               .height = (uint32_t)t->h,
                               .width = (uint32_t)t->w,
                               .positions = (uint32_t)t->h * (uint32_t)t->w,
                               .last = t->layout != CUDA_NCHW};
}

cudnnTensorDescriptor_t cudnn_describe(const struct tensor *t) {
    cudnnTensorDescriptor_t desc;
    CUDNN_CALL(cudnnCreateTensorDescriptor(&desc));
    CUDNN_CALL(cudnnSetTensor4dDescriptor(desc, t->layout == LAYOUT_CANONICAL ? CUDNN_TENSOR_NCHW : CUDNN_TENSOR_NHWC,
                                          cudnn_is_bf16(t) ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT, t->n, t->c, t->h,
                                          t->w));
    return desc;
}

void cudnn_lay_out(struct tensor *y, int layout) {
    y->layout = layout;
    y->floats = cudnn_is_bf16(y) ? (elements_of(y) + 1) / 2 : elements_of(y);
}

void cudnn_spread_rows(struct tensor *y) {
    const int even = (y->c + BF16_SIDE_BY_SIDE - 1) / BF16_SIDE_BY_SIDE * BF16_SIDE_BY_SIDE;
    if (!cudnn_is_bf16(y) || even == y->c) return;
    y->pitch = even;
    y->floats = (size_t)y->n * (size_t)even / 2;
}

int cudnn_pitch(const struct tensor *rows) {
    return rows->pitch ? rows->pitch : rows->c;
}

void cudnn_bias_memory(struct cuda_bias *bias) {
    const size_t sums = bias->walk.shape.channels * cuda_bias_parts(bias), slabs = bias->walk.slabs;
    const size_t bytes = sums * sizeof(double) + slabs * sizeof *bias->done;
    bias->partial = cuda_alloc(bytes, "the sums of a bias");
    bias->done = (unsigned *)(void *)(bias->partial + sums);
    CUDA_GIVE(cudaMemsetAsync(bias->done, 0, slabs * sizeof *bias->done, cuda_stream()));
}

void cudnn_need_workspace(struct cudnn_backend *b, size_t bytes) {
    if (bytes <= b->workspace_bytes) return;
    cuda_wait();
    cuda_free(b->workspace);
    b->workspace = cuda_alloc(bytes, "the workspace of the layers");
    b->workspace_bytes = bytes;
}

/* -- the row ------------------------------------------------------------------------------------------------------ */

static const char *version(void) {
    static char text[64];
    size_t v = cudnnGetVersion();
    snprintf(text, sizeof text, "cuDNN %zu.%zu.%zu", v / 10000, v / 100 % 100, v % 100);
    return text;
}

/* cuDNN's interface grows within a major version: a library as new as the headers, or newer, has what we call. */
static bool fits(struct err *why) {
    size_t found = cudnnGetVersion();
    if (found / 10000 == CUDNN_MAJOR && found >= CUDNN_VERSION) return true;
    return err_set(
        why,
        "%s is installed, but the plugin was built with cuDNN %d.%d.%d: install that or a later %d.x, or build again",
        version(), CUDNN_MAJOR, CUDNN_MINOR, CUDNN_PATCHLEVEL, CUDNN_MAJOR);
}

static bool serves(enum precision precision, struct err *why) {
    int device, major, minor;
    if (!fits(why)) return false;
    if (net_precision_is_f32(precision)) return true;
    cuda_stream(); /* makes this rank's GPU the current one */
    CUDA_CALL(cudaGetDevice(&device));
    CUDA_CALL(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
    CUDA_CALL(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
    if (major >= TENSOR_CORES) return true;
    return err_set(why, "--precision %s needs a GPU of compute capability %d.0 or later; %s has %d.%d: use f32",
                   precision == PRECISION_BF16 ? "bf16" : "tf32", TENSOR_CORES, cuda_device_name(), major, minor);
}

static void open_libraries(struct cudnn_backend *b) {
    /* cuDNN's recurrent networks have cuBLAS work on several streams, which then gives the same bits every time only
     * with workspaces of a fixed number and size (cuBLAS's manual, "Results reproducibility"). The user's own stays. */
    setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:2", 0);
    CUDNN_CALL(cudnnCreate(&b->cudnn));
    CUDNN_CALL(cudnnSetStream(b->cudnn, cuda_stream()));
    CUBLAS_CALL(cublasCreate(&b->cublas));
    CUBLAS_CALL(cublasSetStream(b->cublas, cuda_stream()));
    /* Parts of a sum of bf16 products are added up in float, too. */
    CUBLAS_CALL(cublasSetMathMode(b->cublas, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION));
    /* Its own workspace would come from an allocation in the middle of a recording. After the stream: setting that
     * gives the workspace up. */
    b->cublas_workspace = cuda_alloc(CUBLAS_WORKSPACE_BYTES, "cuBLAS's workspace");
    CUBLAS_CALL(cublasSetWorkspace(b->cublas, b->cublas_workspace, CUBLAS_WORKSPACE_BYTES));
}

static void *open_backend(const struct backend_setup *setup) {
    struct cudnn_backend *b = mem_zalloc(1, sizeof *b, "the CUDA backend");
    const char *graphs = getenv("SPARSETRAIN_CUDA_GRAPH");
    b->precision = setup->precision;
    b->dropout_seed = setup->dropout_seed;
    b->graphs = graphs && strcmp(graphs, "0") == 0 ? NET_GRAPHS_OFF : NET_GRAPHS_USED;
    open_libraries(b);
    b->measured = cudnn_cache_open();
    cudnn_feed_open(&b->feed);
    b->loss_done = cuda_alloc(sizeof *b->loss_done, "the loss");
    CUDA_GIVE(cudaMemsetAsync(b->loss_done, 0, sizeof *b->loss_done, cuda_stream()));
    b->result = cuda_host_alloc(NET_LOSSES_MAX * sizeof *b->result, "the loss");
    CUDA_CALL(cudaEventCreateWithFlags(&b->answered, cudaEventDisableTiming));
    return b;
}

static void release_scratch(struct cudnn_loss *s) {
    cuda_free(s->row_loss);
    cuda_free(s->row_correct);
}

static void close_backend(void *backend) {
    struct cudnn_backend *b = backend;
    cuda_wait();
    for (int i = 0; i < NET_PASSES; i++)
        if (b->recorded[i].graph) CUDA_CALL(cudaGraphExecDestroy(b->recorded[i].graph));
    cudnn_fused_close(b);
    CUBLAS_CALL(cublasDestroy(b->cublas));
    CUDNN_CALL(cudnnDestroy(b->cudnn));
    cudnn_cache_close(b->measured);
    cudnn_feed_close(&b->feed);
    cudnn_weights_close(b);
    CUDA_CALL(cudaEventDestroy(b->answered));
    for (int k = 0; k < NET_LOSSES_MAX; k++) release_scratch(&b->loss[k]);
    cuda_host_free(b->ctc.host_path);
    void *memory[] = {b->cublas_workspace, b->workspace,     b->loss_done, b->ctc.scratch,
                      b->ctc.row_loss,     b->ctc.row_count, b->ctc.path};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) cuda_free(memory[i]);
    cuda_host_free(b->result);
    mem_free(b);
}

/* -- passes ------------------------------------------------------------------------------------------------------- */

/* The host may read the loss of this pass, if it has one, once this event has come. */
static void pass_given(struct cudnn_backend *b) {
    if (b->pass == PASS_TRAIN || b->pass == PASS_INFER) CUDA_CALL(cudaEventRecord(b->answered, cuda_stream()));
}

/* What could not be recorded runs plainly from here on. */
static void give_graphs_up(struct cudnn_backend *b) {
    b->graphs = NET_GRAPHS_FAILED;
    b->recording = false;
}

static void begin_recording(struct cudnn_backend *b) {
    cuda_try_begin();
    CUDA_CALL(cudaStreamBeginCapture(cuda_stream(), cudaStreamCaptureModeThreadLocal));
    b->recording = cuda_try_end(&b->graphs_why);
    if (b->recording)
        cuda_try_begin(); /* the calls of the pass: some may do what a capture forbids */
    else
        give_graphs_up(b);
}

static bool begin(void *backend, enum net_pass pass, bool whole) {
    struct cudnn_backend *b = backend;
    struct cudnn_recording *r = &b->recorded[pass];
    b->pass = pass;
    b->recording = false;
    cudnn_weights_begin(b, whole);
    if (!whole || b->graphs != NET_GRAPHS_USED || cuda_timer_on()) return true;
    if (r->graph) {
        CUDA_CALL(cudaGraphLaunch(r->graph, cuda_stream()));
        pass_given(b);
        return false;
    }
    if (r->ran) begin_recording(b);
    r->ran = true;
    return true;
}

/* False: there is no recording. Nothing of the pass has been done then. */
static bool end_recording(struct cudnn_backend *b) {
    cudaGraph_t graph = NULL;
    cudaGraphExec_t made = NULL;
    CUDA_CALL(cudaStreamEndCapture(cuda_stream(), &graph));
    if (graph) CUDA_CALL(cudaGraphInstantiate(&made, graph, 0));
    if (graph) CUDA_CALL(cudaGraphDestroy(graph));
    if (cuda_try_end(&b->graphs_why)) {
        b->recorded[b->pass].graph = made;
        CUDA_CALL(cudaGraphLaunch(made, cuda_stream()));
        return true;
    }
    if (made) CUDA_CALL(cudaGraphExecDestroy(made)); /* of what a call that failed has left out */
    give_graphs_up(b);
    return false;
}

static bool end(void *backend) {
    struct cudnn_backend *b = backend;
    cudnn_weights_end(b);
    if (b->recording && !end_recording(b)) return false;
    pass_given(b);
    return true;
}

static enum net_graphs graphs_of(const void *backend, const char **why) {
    const struct cudnn_backend *b = backend;
    *why = b->graphs_why.text;
    return b->graphs;
}

static bool opened(const void *backend, struct err *why) {
    const struct cudnn_backend *b = backend;
    return !b->refused.text[0] || err_set(why, "%s", b->refused.text);
}

static void add(void *backend, const struct tensor *shape, const float *from, float *to) {
    (void)backend;
    cuda_add((uint32_t)elements_of(shape), from, to, cudnn_is_bf16(shape));
}

/* -- the loss ----------------------------------------------------------------------------------------------------- */

/* In the first pass of a net, which is never recorded. */
static void need_scratch(struct cudnn_loss *s, int rows) {
    if (s->rows >= rows) return;
    release_scratch(s);
    s->row_loss = cuda_alloc((size_t)rows * sizeof *s->row_loss, "the losses of the rows");
    s->row_correct = cuda_alloc((size_t)rows * sizeof *s->row_correct, "the hits of the rows");
    s->rows = rows;
}

static void loss(void *backend, int which, const struct tensor *shape, const float *logits, float *dlogits) {
    struct cudnn_backend *b = backend;
    struct cudnn_loss *s = &b->loss[which];
    const int n = shape->n;
    if (n != b->feed.labels[which]) die("a loss of %d rows, but %d labels were fed", n, b->feed.labels[which]);
    need_scratch(s, n);
    cuda_loss(&(struct cuda_loss_call){.n = n,
                                       .classes = shape->c,
                                       .pitch = cudnn_pitch(shape),
                                       .is_bf16 = cudnn_is_bf16(shape),
                                       .fed = &b->feed.fed->loss[which],
                                       .logits = logits,
                                       .label = b->feed.label[which],
                                       .dlogits = dlogits,
                                       .row_loss = s->row_loss,
                                       .row_correct = s->row_correct,
                                       .done = b->loss_done,
                                       .result = &b->result[which]});
}

/* Passes with CTC's loss are never recorded, so it may grow in any of them. */
static void need_ctc_scratch(struct cudnn_ctc *s, const struct ctc_call *call, int stride) {
    const size_t batch = (size_t)call->batch, steps = batch * (size_t)call->steps;
    const size_t doubles = batch * cuda_ctc_scratch(call->steps, call->classes, stride);
    if (s->rows >= call->batch && s->doubles >= doubles && s->steps >= steps) return;
    cuda_wait();
    void *memory[] = {s->scratch, s->row_loss, s->row_count, s->path};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) cuda_free(memory[i]);
    cuda_host_free(s->host_path);
    if (s->doubles < doubles) s->doubles = doubles;
    if (s->steps < steps) s->steps = steps;
    if (s->rows < call->batch) s->rows = call->batch;
    s->scratch = cuda_alloc(s->doubles * sizeof *s->scratch, "CTC's probabilities");
    s->row_loss = cuda_alloc((size_t)s->rows * sizeof *s->row_loss, "the losses of utterances");
    s->row_count = cuda_alloc((size_t)s->rows * sizeof *s->row_count, "the utterances that count");
    s->path = cuda_alloc(s->steps * sizeof *s->path, "the best path");
    s->host_path = cuda_host_alloc(s->steps * sizeof *s->host_path, "the best path");
}

static void ctc(void *backend, const struct ctc_call *call) {
    struct cudnn_backend *b = backend;
    struct cudnn_ctc *s = &b->ctc;
    const size_t path_bytes = (size_t)call->batch * (size_t)call->steps * sizeof *s->path;
    need_ctc_scratch(s, call, b->feed.label_stride);
    cuda_ctc(&(struct cuda_ctc_call){.call = *call,
                                     .fed = &b->feed.fed->loss[0],
                                     .label = b->feed.label[0],
                                     .stride = b->feed.label_stride,
                                     .path = s->path,
                                     .scratch = s->scratch,
                                     .row_loss = s->row_loss,
                                     .row_count = s->row_count,
                                     .done = b->loss_done,
                                     .result = &b->result[0]});
    CUDA_GIVE(cudaMemcpyAsync(s->host_path, s->path, path_bytes, cudaMemcpyDeviceToHost, cuda_stream()));
}

static const int32_t *best_path(void *backend) {
    const struct cudnn_backend *b = backend;
    cuda_stream();
    CUDA_CALL(cudaEventSynchronize(b->answered));
    return b->ctc.host_path;
}

static void last_result(void *backend, int which, struct net_result *result) {
    const struct cudnn_backend *b = backend;
    const struct cuda_loss_result *found = &b->result[which];
    cuda_stream();
    CUDA_CALL(cudaEventSynchronize(b->answered));
    *result = (struct net_result){found->loss, found->correct, found->count};
}

static const struct optimiser_ops *const cuda_optimisers[] = {&cuda_optimiser_sgd, &cuda_optimiser_adam,
                                                              &cuda_optimiser_adamw, NULL};

extern const struct backend_ops backend_cudnn;
const struct backend_ops backend_cudnn = {
    .name = "cudnn",
    .device = "cuda",
    .version = version,
    .takes_bytes = true,
    .folds_bias = true,
    .serves = serves,
    .open = open_backend,
    .opened = opened,
    .graphs = graphs_of,
    .close = close_backend,
    .feed = cudnn_feed,
    .begin = begin,
    .end = end,
    .layer =
        {
#define LAYER(KIND, name, onednn, cudnn) [LAYER_##KIND] = &cudnn,
#include "nets/layers/layers.def"
        },
    .add = add,
    .loss = loss,
    .ctc = ctc,
    .best_path = best_path,
    .result = last_result,
    .losses = NET_LOSSES_MAX,
    .optimisers = cuda_optimisers,
};
