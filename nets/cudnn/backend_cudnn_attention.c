/* backend_cudnn_attention.c: attention on the GPU. Where it serves, cuDNN's fused attention (backend_cudnn_fused.h):
 * for rows in bf16 without lengths and without dropout, whose bits are ours to say (nets/dropout.h). Else products by
 * cuBLAS, a batch of heads at a time, and what is between them by kernels of ours. Rows are floats, whose products are
 * TF32 where tf32 is asked for, or bf16: then so are the probabilities, and the gradients of scores, where they are
 * multiplied; scores and all sums are floats.
 *
 * The scores of all heads would be the largest tensor of a net, and are not kept: the heads are taken in turns whose
 * scores fit into some of the workspace, and the backward pass makes them again.
 *
 * Queries, keys and values stay where they are, in the rows of x, a row apart; where each head's matrices begin a
 * kernel writes down for cuBLAS, before the products of each pass: so that a pass is recorded like any other. Fast math
 * reads such matrices 16 bytes at once, which cuBLAS takes for granted where the inner length is a multiple of 4, of
 * bf16 of 8 (its manual, cublas<t>gemmBatched): heads of other lengths are left to plain products. */
#include <math.h>

#include "base/mem.h"
#include "nets/cuda/cuda_attention.h"
#include "nets/cudnn/backend_cudnn_fused.h"

enum { SCORE_BYTES = 64 << 20 /* of a turn, in both arrays; or those of one head */ };

struct attention {
    struct cudnn_backend *backend;
    struct cuda_attention shape;
    uint32_t chunk; /* heads of a turn */
    bool is_bf16;
    const struct cudnn_fused *fused; /* or NULL */
    cublasComputeType_t compute;
    struct cuda_attention_turn turn; /* what all turns have in common; without `length` and `step` */
    void **pointer;                  /* device, [ATTENTION_MATRICES][heads] */
};

static size_t score_floats(const struct attention *l) {
    return (size_t)l->chunk * l->shape.T * attention_pitch(&l->shape);
}

static cublasComputeType_t compute_of(const struct attention *l) {
    if (l->is_bf16) return l->shape.d % 8 == 0 ? CUBLAS_COMPUTE_32F : CUBLAS_COMPUTE_32F_PEDANTIC;
    return net_precision_is_f32(l->backend->precision) || l->shape.d % 4 != 0 ? CUBLAS_COMPUTE_32F
                                                                              : CUBLAS_COMPUTE_32F_FAST_TF32;
}

/* -- products ------------------------------------------------------------------------------------------------------ */

/* A matrix of each head, multiplied as it is or turned. */
struct operand {
    enum attention_matrix which;
    bool turned;
};

static bool is_score(enum attention_matrix which) {
    return which == ATTENTION_SCORE || which == ATTENTION_DSCORE;
}

/* Elements of this many bytes from one row to the next. */
static int row_of(const struct attention *l, enum attention_matrix which, size_t bytes) {
    const int C = (int)(l->shape.heads * l->shape.d);
    if (is_score(which)) return (int)(attention_pitch(&l->shape) * (sizeof(float) / bytes));
    return which == ATTENTION_Y ? C : 3 * C;
}

static void **pointers_of(const struct attention *l, enum attention_matrix which, uint32_t first) {
    return l->pointer + (size_t)which * attention_heads(&l->shape) + first;
}

/* C [T][n] = op(A) op(B) over k, row-major, of the heads of a turn; scores are made as floats. As in a linear layer,
 * cuBLAS is asked for C^T = op(B)^T op(A)^T. */
static void product(const struct attention *l, const struct cuda_attention_turn *turn, struct operand a,
                    struct operand b, enum attention_matrix c, uint32_t n, uint32_t k) {
    const float one = 1, zero = 0;
    const cudaDataType type = l->is_bf16 ? CUDA_R_16BF : CUDA_R_32F, made = is_score(c) ? CUDA_R_32F : type;
    const size_t bytes = l->is_bf16 ? sizeof(struct bf16) : sizeof(float);
    CUBLAS_CALL(cublasGemmBatchedEx(
        l->backend->cublas, b.turned ? CUBLAS_OP_T : CUBLAS_OP_N, a.turned ? CUBLAS_OP_T : CUBLAS_OP_N, (int)n,
        (int)l->shape.T, (int)k, &one, (const void *const *)pointers_of(l, b.which, turn->first), type,
        row_of(l, b.which, bytes), (const void *const *)pointers_of(l, a.which, turn->first), type,
        row_of(l, a.which, bytes), &zero, (void *const *)pointers_of(l, c, turn->first), made,
        row_of(l, c, is_score(c) ? sizeof(float) : bytes), (int)turn->count, l->compute, CUBLAS_GEMM_DEFAULT));
}

static struct operand plain(enum attention_matrix which) {
    return (struct operand){which, false};
}
static struct operand turned(enum attention_matrix which) {
    return (struct operand){which, true};
}

/* -- passes -------------------------------------------------------------------------------------------------------- */

static struct cuda_attention_arrays arrays_of(const struct attention *l, const struct layer_call *call, bool back) {
    float *score = l->backend->workspace;
    return (struct cuda_attention_arrays){.x = call->x,
                                          .y = back ? call->dy : call->y,
                                          .dx = back ? call->dx : NULL,
                                          .score = score,
                                          .dscore = score + score_floats(l),
                                          .is_bf16 = l->is_bf16};
}

/* The first turn of a pass; the next one, which is empty after the last. */
static struct cuda_attention_turn first_turn(const struct attention *l, const struct layer_call *call, bool drops) {
    struct cuda_attention_turn turn = l->turn;
    turn.count = l->chunk;
    turn.length = (const int32_t *)(const void *)call->add;
    if (!drops) turn.drop.scale = 1;
    if (turn.drop.scale > 1) turn.step = cudnn_step(l->backend);
    return turn;
}
static void next_turn(const struct attention *l, struct cuda_attention_turn *turn) {
    const uint32_t heads = attention_heads(&l->shape);
    turn->first += turn->count;
    if (turn->count > heads - turn->first) turn->count = heads - turn->first;
}

static void own_forward(void *layer, const struct layer_call *call, bool training) {
    const struct attention *l = layer;
    const uint32_t T = l->shape.T, d = l->shape.d;
    const struct cuda_attention_arrays arrays = arrays_of(l, call, false);
    cuda_attention_point(&l->shape, l->chunk, &arrays, l->pointer);
    for (struct cuda_attention_turn turn = first_turn(l, call, training); turn.count > 0; next_turn(l, &turn)) {
        product(l, &turn, plain(ATTENTION_Q), turned(ATTENTION_K), ATTENTION_SCORE, T, d);
        cuda_attention_forward(&l->shape, &turn, &arrays);
        product(l, &turn, plain(ATTENTION_SCORE), plain(ATTENTION_V), ATTENTION_Y, d, T);
    }
}

/* dv = (m p)^T dy,  dq = ds k,  dk = ds^T q */
static void own_backward(void *layer, const struct layer_call *call) {
    const struct attention *l = layer;
    const uint32_t T = l->shape.T, d = l->shape.d;
    const struct cuda_attention_arrays arrays = arrays_of(l, call, true);
    if (!call->dx) return;
    cuda_attention_point(&l->shape, l->chunk, &arrays, l->pointer);
    for (struct cuda_attention_turn turn = first_turn(l, call, true); turn.count > 0; next_turn(l, &turn)) {
        product(l, &turn, plain(ATTENTION_Q), turned(ATTENTION_K), ATTENTION_SCORE, T, d);
        product(l, &turn, plain(ATTENTION_Y), turned(ATTENTION_V), ATTENTION_DSCORE, T, d);
        cuda_attention_backward(&l->shape, &turn, &arrays, call->y);
        product(l, &turn, turned(ATTENTION_SCORE), plain(ATTENTION_Y), ATTENTION_DV, d, T);
        product(l, &turn, plain(ATTENTION_DSCORE), plain(ATTENTION_K), ATTENTION_DQ, d, T);
        product(l, &turn, turned(ATTENTION_DSCORE), plain(ATTENTION_Q), ATTENTION_DK, d, T);
    }
}

/* -- the layer ----------------------------------------------------------------------------------------------------- */

static void forward(void *layer, const struct layer_call *call, bool training) {
    const struct attention *l = layer;
    if (l->fused)
        cudnn_fused_forward(l->backend, l->fused, call, l->turn.log_sum);
    else
        own_forward(layer, call, training);
}

static void backward(void *layer, const struct layer_call *call) {
    const struct attention *l = layer;
    if (l->fused)
        cudnn_fused_backward(l->backend, l->fused, call, l->turn.log_sum);
    else
        own_backward(layer, call);
}

static const struct cudnn_fused *fused_of(struct attention *l, const struct layer_spec *spec, bool has_lengths) {
    const struct cudnn_sdpa_shape shape = {.batch = l->shape.sequences,
                                           .heads = l->shape.heads,
                                           .T = l->shape.T,
                                           .d = l->shape.d,
                                           .causal = l->shape.causal};
    const struct cudnn_fused_own own = {l, own_forward, own_backward};
    if (!l->is_bf16 || has_lengths || spec->attention.drop > 0) return NULL;
    return cudnn_fused_of(l->backend, &shape, &own);
}

static void *open_attention(void *backend, const struct layer_spec *spec, const struct tensor *x,
                            const struct tensor *add, struct tensor *y) {
    if (!cudnn_are_rows(x)) die("attention needs rows");
    if (add && add->layout != LAYOUT_TOKENS) die("attention needs lengths that are whole numbers");
    if (spec->attention.sequence > ATTENTION_T_MAX) die("attention over more than %d rows", ATTENTION_T_MAX);
    (void)cudnn_shape(x); /* not too large */
    struct attention *l = mem_zalloc(1, sizeof *l, "an attention layer");
    l->backend = backend;
    l->shape = (struct cuda_attention){.sequences = (uint32_t)(x->n / spec->attention.sequence),
                                       .T = (uint32_t)spec->attention.sequence,
                                       .heads = (uint32_t)spec->attention.heads,
                                       .d = (uint32_t)(y->c / spec->attention.heads),
                                       .causal = spec->attention.causal};
    const size_t heads = attention_heads(&l->shape);
    l->chunk = attention_chunk(&l->shape, SCORE_BYTES);
    l->is_bf16 = cudnn_is_bf16(x);
    l->compute = compute_of(l);
    l->turn.scale = (float)(1 / sqrt((double)l->shape.d));
    l->turn.drop = dropout_of(l->backend->dropout_seed, spec->number, spec->attention.drop);
    l->turn.log_sum = cuda_alloc(heads * l->shape.T * sizeof(float), "the sums of an attention layer");
    l->pointer = cuda_alloc(ATTENTION_MATRICES * heads * sizeof *l->pointer, "the places of an attention layer");
    cudnn_need_workspace(backend, 2 * score_floats(l) * sizeof(float));
    cudnn_lay_out(y, x->layout);
    l->fused = fused_of(l, spec, add != NULL);
    return l;
}

static void close_attention(void *layer) {
    struct attention *l = layer;
    cuda_free(l->turn.log_sum);
    cuda_free(l->pointer);
    mem_free(l);
}

const struct layer_ops cudnn_attention = {open_attention, forward, backward, close_attention};
