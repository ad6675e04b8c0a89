/* backend_cudnn_conv.c: convolutions by cuDNN: each pass by the algorithm of its functions of old
 * (cudnnConvolutionForward and its siblings) or by the plan of its graph API that backend_cudnn_algorithms.c chose. The
 * arena's weights are [out][in][window] floats. In NCHW they are that to cuDNN too; else they are copied to
 * [out][window][in] in the element type of the activations before the forward pass, whose copy the backward pass uses
 * again, and their gradients are copied back. Images in the canonical layout are copied to that of the backend where it
 * has another. A bias is added by a pass of its own, unless the norm behind takes it (backend.h).
 *
 * Where passes differ in length, each width that comes up has its own descriptors, algorithms and plans, found when it
 * first does: images have a multiple of some frames, so that there are few of them, and what was measured is
 * remembered.
 *
 * Where gradients are added up over passes, cuDNN adds to the arena, or to its own array where that holds floats; bf16
 * numbers would lose what is added late, so these are added to the arena's floats on their way there. */
#include "base/mem.h"
#include "nets/cuda/cuda_bias.h"
#include "nets/cuda/cuda_layers.h"
#include "nets/cudnn/backend_cudnn.h"
#include "nets/cudnn/backend_cudnn_algorithms.h"
#include "nets/frames.h"

enum { ALIGNMENT = 16 }; /* bytes: what cuDNN wants of the arrays it gets */

/* For images of one width. */
struct sized {
    struct sized *next;
    struct conv conv;
    struct conv_choice choice[CONV_PASSES];
    struct cuda_bias bias;
};

struct convolution {
    struct cudnn_backend *backend;
    struct conv conv;        /* of the longest pass; without descriptors */
    struct sized *all, *now; /* now: of the last forward pass */
    bool wants_dx, recast;   /* recast: x comes in the canonical layout, which is not the backend's */
    void *x, *dx;            /* where recast: copies in the backend's layout */
    void *w, *dw;            /* weights and their gradient as cuDNN wants them */
    size_t w_bytes;
    int cast;              /* where not canonical: its number among the backend's weights */
    bool has_bias, folded; /* folded: the norm behind it adds the bias, so that this has no effect on the loss */
    size_t weights_size;   /* floats: where the bias begins in the parameters */
};

static bool is_canonical(const struct convolution *c) {
    return c->conv.x.layout == LAYOUT_CANONICAL;
}

/* -- opening ------------------------------------------------------------------------------------------------------ */

static void describe(struct conv *c) {
    c->x_desc = cudnn_describe(&c->x);
    c->y_desc = cudnn_describe(&c->y);
    CUDNN_CALL(cudnnCreateFilterDescriptor(&c->w_desc));
    CUDNN_CALL(cudnnSetFilter4dDescriptor(c->w_desc, cudnn_is_bf16(&c->x) ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT,
                                          c->x.layout == LAYOUT_CANONICAL ? CUDNN_TENSOR_NCHW : CUDNN_TENSOR_NHWC,
                                          c->y.c, c->x.c, c->kernel[0], c->kernel[1]));
    for (int pass = 0; pass < CONV_PASSES; pass++) {
        CUDNN_CALL(cudnnCreateConvolutionDescriptor(&c->window[pass]));
        CUDNN_CALL(cudnnSetConvolution2dDescriptor(c->window[pass], c->pad[0], c->pad[1], c->stride[0], c->stride[1], 1,
                                                   1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
    }
}

static void choose(const struct convolution *c, struct sized *s) {
    for (int pass = 0; pass < CONV_PASSES; pass++) {
        if (pass == CONV_DATA && !c->wants_dx) continue;
        s->choice[pass] = cudnn_choose(c->backend, &s->conv, (enum conv_pass)pass);
        cudnn_need_workspace(c->backend, s->choice[pass].workspace);
        cudnn_need_workspace(c->backend, s->choice[pass].plan_workspace);
    }
}

/* Copies of the arrays that cuDNN cannot take as they lie. */
static void make_room(struct convolution *c) {
    CUDNN_CALL(cudnnGetFilterSizeInBytes(c->all->conv.w_desc, &c->w_bytes));
    c->w = cuda_alloc(c->w_bytes, "weights of a convolution");
    c->dw = cuda_alloc(c->w_bytes, "gradients of a convolution's weights");
    if (!is_canonical(c))
        c->cast = cudnn_weights_join(c->backend,
                                     &(struct cuda_cast){.out = (uint32_t)c->conv.y.c,
                                                         .in = (uint32_t)c->conv.x.c,
                                                         .window = (uint32_t)(c->conv.kernel[0] * c->conv.kernel[1]),
                                                         .w = c->w,
                                                         .dw = c->dw});
    if (c->recast) c->x = cuda_alloc(c->conv.x.floats * sizeof(float), "images in another layout");
    if (c->recast && c->wants_dx)
        c->dx = cuda_alloc(c->conv.x.floats * sizeof(float), "gradients of images in another layout");
}

static void open_bias(const struct convolution *c, struct sized *s) {
    const struct cuda_shape y = cudnn_shape(&s->conv.y);
    if (!c->has_bias || c->folded) return;
    cuda_bias_plan(&s->bias, &y, cudnn_is_bf16(&s->conv.y));
    cudnn_bias_memory(&s->bias);
}

/* What there is for images like x and y. */
static struct sized *sized_for(struct convolution *c, const struct tensor *x, const struct tensor *y) {
    for (struct sized *s = c->all; s; s = s->next)
        if (s->conv.x.w == x->w) return s;
    struct sized *made = mem_zalloc(1, sizeof *made, "a convolution");
    made->conv = c->conv;
    made->conv.x = *x;
    made->conv.y = *y;
    cudnn_lay_out(&made->conv.x, c->conv.x.layout);
    cudnn_lay_out(&made->conv.y, c->conv.y.layout);
    made->next = c->all;
    c->all = made;
    describe(&made->conv);
    choose(c, made);
    open_bias(c, made);
    return made;
}

static void *open_convolution(void *backend, const struct layer_spec *spec, const struct tensor *x,
                              const struct tensor *add, struct tensor *y) {
    (void)add;
    struct convolution *c = mem_zalloc(1, sizeof *c, "a convolution");
    c->backend = backend;
    const int layout = (int)cudnn_layout(c->backend->precision);
    if (x->layout != layout && x->layout != LAYOUT_CANONICAL) die("a convolution of a tensor of layout %d", x->layout);
    cudnn_lay_out(y, layout);
    c->recast = x->layout != layout;
    c->wants_dx = spec->wants_dx;
    c->conv = (struct conv){.x = *x, .y = *y};
    for (int i = 0; i < 2; i++) {
        c->conv.kernel[i] = spec->conv.kernel[i];
        c->conv.stride[i] = spec->conv.stride[i];
        c->conv.pad[i] = spec->conv.pad[i];
    }
    cudnn_lay_out(&c->conv.x, layout);
    (void)cudnn_shape(x), (void)cudnn_shape(y); /* neither is too large */
    c->has_bias = spec->conv.bias;
    c->folded = spec->conv.folded;
    c->weights_size = (size_t)y->c * (size_t)x->c * (size_t)spec->conv.kernel[0] * (size_t)spec->conv.kernel[1];
    c->now = sized_for(c, &c->conv.x, &c->conv.y);
    make_room(c);
    return c;
}

static void close_sized(struct sized *s) {
    CUDNN_CALL(cudnnDestroyTensorDescriptor(s->conv.x_desc));
    CUDNN_CALL(cudnnDestroyTensorDescriptor(s->conv.y_desc));
    CUDNN_CALL(cudnnDestroyFilterDescriptor(s->conv.w_desc));
    for (int pass = 0; pass < CONV_PASSES; pass++) {
        CUDNN_CALL(cudnnDestroyConvolutionDescriptor(s->conv.window[pass]));
        cudnn_choice_drop(&s->choice[pass]);
    }
    cuda_free(s->bias.partial);
    mem_free(s);
}

static void close_convolution(void *layer) {
    struct convolution *c = layer;
    for (struct sized *s = c->all, *next; s; s = next) {
        next = s->next;
        close_sized(s);
    }
    void *memory[] = {c->x, c->dx, c->w, c->dw};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) cuda_free(memory[i]);
    mem_free(c);
}

/* -- weights ------------------------------------------------------------------------------------------------------ */

/* May cuDNN work on the arena's weights themselves? A slice may begin at any multiple of 4 bytes. */
static bool in_place(const struct convolution *c, const float *slice) {
    return is_canonical(c) && (uintptr_t)slice % ALIGNMENT == 0;
}

/* The weights as cuDNN wants them; fresh: they may have changed. */
static const void *take_weights(const struct convolution *c, const float *param, bool fresh) {
    if (in_place(c, param)) return param;
    if (fresh && is_canonical(c))
        CUDA_GIVE(cudaMemcpyAsync(c->w, param, c->w_bytes, cudaMemcpyDeviceToDevice, cuda_stream()));
    else if (fresh)
        cudnn_weights_take(c->backend, c->cast, param);
    return c->w;
}

/* Does cuDNN itself add a pass's gradients to those before? */
static bool adds_by_itself(const struct convolution *c) {
    return !cudnn_is_bf16(&c->conv.x);
}

/* Their gradient from there to the arena. */
static void give_weights(const struct convolution *c, bool adds, float *dparam) {
    if (is_canonical(c))
        CUDA_GIVE(cudaMemcpyAsync(dparam, c->dw, c->w_bytes, cudaMemcpyDeviceToDevice, cuda_stream()));
    else
        cudnn_weights_give(c->backend, c->cast, dparam, adds && !adds_by_itself(c));
}

/* -- passes ------------------------------------------------------------------------------------------------------- */

/* The workspace may have moved since the last time. */
static void convolve(const struct convolution *c, enum conv_pass pass, float beta, const struct conv_arrays *arrays) {
    static const char *const calls[CONV_PASSES] = {"cudnnConvolutionForward", "cudnnConvolutionBackwardData",
                                                   "cudnnConvolutionBackwardFilter"};
    struct conv_arrays a = *arrays;
    a.workspace = c->backend->workspace;
    const struct sized *s = c->now;
    const char *call = s->choice[pass].plan && beta == 0 ? "cudnnBackendExecute" : calls[pass];
    cudnn_check(cudnn_convolve(c->backend, &s->conv, pass, &s->choice[pass], beta, &a), call, __FILE__, __LINE__);
}

/* What is there for images as wide as those of this pass. */
static void take_width(struct convolution *c, const struct layer_call *call) {
    if (!c->conv.x.frames) return;
    const struct tensor x = tensor_in_pass(&c->conv.x, call), y = tensor_in_pass(&c->conv.y, call);
    c->now = sized_for(c, &x, &y);
    if (c->backend->refused.text[0]) die("%s", c->backend->refused.text); /* wider ones were taken */
}

static void forward(void *layer, const struct layer_call *call, bool training) {
    (void)training;
    struct convolution *c = layer;
    take_width(c, call);
    const struct conv *v = &c->now->conv;
    struct conv_arrays a = {.x = call->x, .w = take_weights(c, call->param, true), .out = call->y};
    if (c->recast) {
        const struct cuda_shape shape = cudnn_shape(&v->x);
        cuda_to_last(&shape, call->x, c->x, cudnn_is_bf16(&v->x));
        a.x = c->x;
    }
    convolve(c, CONV_FORWARD, 0, &a);
    if (c->has_bias && !c->folded) cuda_bias_forward(&c->now->bias, call->param + c->weights_size, call->y);
}

static void backward_filter(struct convolution *c, const struct layer_call *call) {
    const float beta = call->adds && adds_by_itself(c) ? 1 : 0;
    const bool direct = in_place(c, call->dparam);
    convolve(
        c, CONV_FILTER, beta,
        &(struct conv_arrays){.x = c->recast ? c->x : call->x, .y = call->dy, .out = direct ? call->dparam : c->dw});
    if (!direct) give_weights(c, call->adds, call->dparam);
}

static void backward_data(struct convolution *c, const struct layer_call *call) {
    const struct conv *v = &c->now->conv;
    convolve(c, CONV_DATA, 0,
             &(struct conv_arrays){
                 .w = take_weights(c, call->param, false), .y = call->dy, .out = c->recast ? c->dx : call->dx});
    if (c->recast) {
        const struct cuda_shape shape = cudnn_shape(&v->x);
        cuda_from_last(&shape, c->dx, call->dx, cudnn_is_bf16(&v->x));
    }
}

static void backward_bias(const struct convolution *c, const struct layer_call *call) {
    float *db = call->dparam + c->weights_size;
    if (!c->folded)
        cuda_bias_backward(&c->now->bias, call->dy, call->adds, db);
    else if (!call->adds)
        CUDA_GIVE(cudaMemsetAsync(db, 0, (size_t)c->conv.y.c * sizeof *db, cuda_stream()));
}

static void backward(void *layer, const struct layer_call *call) {
    struct convolution *c = layer;
    backward_filter(c, call);
    if (c->has_bias) backward_bias(c, call);
    if (c->wants_dx) backward_data(c, call);
}

const struct layer_ops cudnn_convolution = {open_convolution, forward, backward, close_convolution};
