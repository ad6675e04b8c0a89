/* backend_onednn.h: what the files of the oneDNN backend share: the engine, primitives with their arguments. */
#ifndef ST_NETS_BACKEND_ONEDNN_H
#define ST_NETS_BACKEND_ONEDNN_H

#include "nets/backend.h"
#include "nets/cpu/cpu_view.h"
#include "nets/frames.h"
#include "nets/onednn/backend_onednn_shim.h"

struct onednn {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_attr_t attr; /* scratchpads are ours: primitives run one after the other and share one */
    void *scratch;
    size_t scratch_bytes;
    int threads;
    enum cpu_layout layout;            /* of all activations of this net */
    int32_t *label[NET_LOSSES_MAX];    /* [labels] each, as fed */
    int labels[NET_LOSSES_MAX], valid; /* of loss 0 the first `valid` count */
    double over[NET_LOSSES_MAX];       /* as fed */
    int label_stride;                  /* likewise */
    int32_t *path;                     /* CTC's best of the last pass, and room for how many steps */
    size_t path_room;
    uint64_t dropout_seed, step;              /* step: as fed */
    bool adds;                                /* of backend_setup */
    bool winograd, took_winograd;             /* convolutions may be computed by Winograd's algorithm; one is */
    struct net_result result[NET_LOSSES_MAX]; /* of the last pass */
};

/* The library's name for a layout of 4-dimensional activations. */
dnnl_format_tag_t onednn_tag(enum cpu_layout layout);

/* Which of our layouts a descriptor of these dimensions is; false when it is none of them. */
bool onednn_layout_of(shim_desc desc, const dnnl_dims_t size, enum cpu_layout *layout);

/* Gives y this layout, and its size; returns its view. */
struct cpu_view onednn_lay_out(struct tensor *y, int layout);

/* A primitive and its arguments. Their addresses are given at each run, but handed to the library only when they
 * change, for that can cost a pass over the padding. */
enum { ONEDNN_ARGS_MAX = 10 };
struct onednn_step {
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t arg[ONEDNN_ARGS_MAX];
    void *at[ONEDNN_ARGS_MAX];
    int args;
};

/* The library's name for what it has chosen: "jit:avx2", "gemm:jit", "ref:any" (plain loops). */
const char *onednn_name(dnnl_primitive_desc_t made);

/* `made` stays the caller's, for the descriptors asked of it live no longer than it does. */
void onednn_step_open(struct onednn *b, struct onednn_step *s, dnnl_primitive_desc_t made);
/* A copy from one layout to another; adds: += it. */
void onednn_reorder_open(struct onednn *b, struct onednn_step *s, shim_desc from, shim_desc to, bool adds);
/* The next argument: what it is for (DNNL_ARG_...) and how it lies. */
void onednn_step_arg(struct onednn *b, struct onednn_step *s, int what, shim_desc desc);
/* arg: one address for each onednn_step_arg, in that order. */
void onednn_step_run(struct onednn *b, struct onednn_step *s, const void *const *arg);
void onednn_step_close(struct onednn_step *s);

/* Memory that grows; what is in it does not move along. Freed by mem_free(at). */
struct onednn_buffer {
    float *at;
    size_t bytes;
};
void onednn_need(struct onednn_buffer *b, size_t bytes, const char *what);
void onednn_need_for(struct onednn_buffer *b, shim_desc desc, const char *what); /* as much as that takes */

/* Its layers, backend_onednn.c and a file for each of the larger ones. */
#define LAYER(KIND, name, onednn, cudnn) extern const struct layer_ops onednn;
#include "nets/layers/layers.def"

/* C [m][n] = op(A) op(B) + beta C over k, row-major; turn_...: op is the transpose. */
void onednn_product(bool turn_a, bool turn_b, size_t m, size_t n, size_t k, const float *A, const float *B, float beta,
                    float *C);
/* The same within larger arrays: ..._row, floats from a row of A, B, C as they lie to the next. */
void onednn_product_within(bool turn_a, bool turn_b, size_t m, size_t n, size_t k, const float *A, size_t a_row,
                           const float *B, size_t b_row, float beta, float *C, size_t c_row);

/* The same product for many A and one B, which is copied before into the layout that the library likes best for these
 * sizes: twice as fast where A has few rows. adds: beta = 1, else 0. */
struct onednn_packed {
    struct onednn_step take, product;
    size_t bytes; /* of the copy, which is the caller's memory */
};
void onednn_packed_open(struct onednn *b, struct onednn_packed *p, bool turn_b, size_t m, size_t n, size_t k,
                        bool adds);
void onednn_packed_take(struct onednn *b, struct onednn_packed *p, const float *B, float *copy);
void onednn_packed_run(struct onednn *b, struct onednn_packed *p, const float *A, const float *copy, float *C);
void onednn_packed_close(struct onednn_packed *p);

#endif
