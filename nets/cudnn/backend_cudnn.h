/* backend_cudnn.h: what the files of the CUDA backend share: its state, checked calls, how tensors lie. Part of the
 * plugin, not of the program.
 *
 *      precision    activations    convolutions, attention         linear layer    all else
 *      f32          NCHW float     float, no tensor cores          float           float, sums in double
 *      tf32         NHWC float     TF32 products, sums in float    the same        the same
 *      bf16         NHWC bf16      bf16 products, sums in float    as its input    the same
 *
 * In bf16 a convolution gives bf16, and so do the positions of a transformer, from where on all its rows are, logits
 * included. What comes out of an average, an embedding or an LSTM is float: there a linear layer has float inputs, and
 * TF32 products. The images that come in are canonical floats in every precision; layers but convolutions take any
 * tensor in the layout in which it lies.
 *
 * A pass of a training step is some hundred launches of small kernels, so passes that are the same every time are
 * recorded into a CUDA graph: the first pass runs plainly (libraries load kernels when they are first used), the second
 * is recorded, every later one is one launch. A library may do something that a capture forbids: then all passes stay
 * plain from there on. SPARSETRAIN_CUDA_GRAPH=0 in the environment keeps all passes plain, which
 * helps when one looks for a mistake with a debugger or a profiler. */
#ifndef ST_NETS_BACKEND_CUDNN_H
#define ST_NETS_BACKEND_CUDNN_H

#include <cublas_v2.h>
#include <cudnn.h>

#include "base/cuda/cuda_device.h"
#include "base/error.h"
#include "nets/backend.h"
#include "nets/cuda/cuda_frames.h"
#include "nets/cuda/cuda_index.h"
#include "nets/cuda/cuda_layers.h"
#include "nets/cuda/cuda_loss.h"

/* End the job where a call of cuDNN or cuBLAS failed, with the call, what the library says, and a hint. */
#define CUDNN_CALL(call) cudnn_check(call, #call, __FILE__, __LINE__)
void cudnn_check(cudnnStatus_t status, const char *call, const char *file, int line);
#define CUBLAS_CALL(call) cublas_check(call, #call, __FILE__, __LINE__)
void cublas_check(cublasStatus_t status, const char *call, const char *file, int line);

/* A pass of which a recording is made, or is there. */
struct cudnn_recording {
    bool ran;              /* plainly, once */
    cudaGraphExec_t graph; /* or NULL */
};

/* What comes in with a batch, in one piece of memory: struct cudnn_fed, labels, numbers, cuts, images. Two of them, so
 * that one is filled while the other is on its way. */
struct cudnn_staging {
    char *host, *device;
    cudaEvent_t uploaded, taken; /* the host's piece may be filled again; the device's likewise */
};

/* On the device, so that a recorded pass that is repeated reads what came in with it. */
struct cudnn_fed {
    struct cuda_loss_fed loss[NET_LOSSES_MAX];
    uint32_t step[2]; /* the lower half first */
};

struct cudnn_feed {
    cudaStream_t stream; /* of the uploads, which run beside the passes */
    struct cudnn_staging staging[2];
    unsigned next;
    size_t bytes;          /* of a piece */
    float *table;          /* device, [channels][256]: values of bytes */
    const float *uploaded; /* what the table was made from */
    /* Of this pass. */
    struct cudnn_fed *fed;          /* device; behind it: */
    int32_t *label[NET_LOSSES_MAX]; /* [labels] each */
    int labels[NET_LOSSES_MAX];
    int label_stride;
};

/* The weights of all convolutions that cuDNN does not take from the arena. */
enum { CUDNN_CASTS_MAX = 256 };
struct cudnn_weights {
    struct cuda_cast cast[CUDNN_CASTS_MAX], *device;
    int count;
    uint32_t most;       /* elements of the largest */
    int params, dparams; /* how many have said where these are */
    bool whole, taken;   /* of the pass under way: nobody waits for a layer; all weights are there */
    bool owed, adds;     /* gradients are to be copied at its end, and added to what is there */
};

struct cudnn_cache;
struct cudnn_fused;

struct cudnn_backend {
    enum precision precision;
    uint64_t dropout_seed;
    cudnnHandle_t cudnn;
    cublasHandle_t cublas;
    void *cublas_workspace;
    void *workspace; /* of all layers, which run one after the other; grown by their `open` */
    size_t workspace_bytes;
    struct cudnn_cache *measured; /* which algorithm computes a convolution fastest */
    struct cudnn_fused *fused;    /* plans of attention */
    struct cudnn_feed feed;
    struct cudnn_weights weights;

    struct err refused; /* why this precision cannot be had for a layer; empty: it can */
    enum net_graphs graphs;
    struct err graphs_why; /* of NET_GRAPHS_FAILED */
    enum net_pass pass;
    bool recording; /* the pass under way is being recorded */
    struct cudnn_recording recorded[NET_PASSES];

    struct cudnn_loss {
        int rows; /* of the scratch */
        double *row_loss;
        int32_t *row_correct;
    } loss[NET_LOSSES_MAX];
    struct cudnn_ctc {
        int rows;       /* utterances that row_loss and row_count have room for */
        size_t doubles; /* of the scratch */
        size_t steps;   /* of paths */
        double *scratch, *row_loss;
        int32_t *row_count, *path, *host_path; /* host_path: page-locked */
    } ctc;
    unsigned *loss_done;             /* the losses come one after the other */
    struct cuda_loss_result *result; /* page-locked, [NET_LOSSES_MAX] */
    cudaEvent_t answered;            /* the last pass has put it there */
};

/* The layout of activations in this precision, and whether a tensor's elements are bf16. */
enum cuda_layout cudnn_layout(enum precision precision);
bool cudnn_is_bf16(const struct tensor *t);
/* Of rows [n][c]: the layout where they may be bf16; are these rows, or another tensor in the canonical layout? */
int cudnn_row_layout(const struct cudnn_backend *b);
bool cudnn_are_rows(const struct tensor *t);
/* t as kernels see it; dies where it has too many elements for 32 bits. */
struct cuda_shape cudnn_shape(const struct tensor *t);
/* t as cuDNN sees it; the caller's to destroy. */
cudnnTensorDescriptor_t cudnn_describe(const struct tensor *t);
/* Gives y this layout, and its size. */
void cudnn_lay_out(struct tensor *y, int layout);
/* Gives y, rows that are laid out, where they are bf16 a pitch with which each begins at a multiple of 16 bytes: tensor
 * cores read others slowly. The elements from one row to the next. */
void cudnn_spread_rows(struct tensor *y);
int cudnn_pitch(const struct tensor *rows);
/* t, of a net whose passes differ in length, as it is in this pass; lengths: call->add. */
struct cuda_steps cudnn_steps(const struct tensor *t, const struct layer_call *call);
/* From here on the workspace has at least as many bytes. Where it lies may change: to be asked for at each use. */
void cudnn_need_workspace(struct cudnn_backend *b, size_t bytes);

/* Memory for a planned bias: all of it is freed with bias->partial. */
struct cuda_bias;
void cudnn_bias_memory(struct cuda_bias *bias);

/* backend_cudnn_feed.c */
void cudnn_feed_open(struct cudnn_feed *feed);
void cudnn_feed_close(struct cudnn_feed *feed);
void cudnn_feed(void *backend, const struct net_input *input, const struct tensor *shape, float *x,
                float *const numbers[NET_NUMBERS]);

/* Where the two halves of the step's number lie, on the device. */
static inline const uint32_t *cudnn_step(const struct cudnn_backend *b) {
    return b->feed.fed->step;
}

/* backend_cudnn_weights.c. A layer joins when it is opened, without param and dparam; returns its number. take: the
 * weights are in `w` for what comes next. give: the gradients, as they are in `dw` now, come to dparam by the end of
 * the pass, or at once; adds: to what is there, the same for all layers of a pass. */
int cudnn_weights_join(struct cudnn_backend *b, const struct cuda_cast *cast);
void cudnn_weights_begin(struct cudnn_backend *b, bool whole);
void cudnn_weights_take(struct cudnn_backend *b, int number, const float *param);
void cudnn_weights_give(struct cudnn_backend *b, int number, float *dparam, bool adds);
void cudnn_weights_end(struct cudnn_backend *b);
void cudnn_weights_close(struct cudnn_backend *b);

/* Its layers, backend_cudnn_layers.c and a file for each of the larger ones. */
#define LAYER(KIND, name, onednn, cudnn) extern const struct layer_ops cudnn;
#include "nets/layers/layers.def"

/* cuda_sgd.c, cuda_adam.c, cuda_adamw.c */
extern const struct optimiser_ops cuda_optimiser_sgd, cuda_optimiser_adam, cuda_optimiser_adamw;

#endif
