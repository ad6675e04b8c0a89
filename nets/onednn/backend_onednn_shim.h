/* backend_onednn_shim.h: one set of names over the C interfaces of oneDNN 2.x and 3.x, for the few calls of ours.
 * What differs: a memory descriptor was a struct and became an owned, opaque handle; an operation was described by a
 * struct of its own before it became a primitive descriptor, and is now given to that directly; a dilation argument
 * is there in every convolution (0: none). */
#ifndef ST_NETS_BACKEND_ONEDNN_SHIM_H
#define ST_NETS_BACKEND_ONEDNN_SHIM_H

#include <oneapi/dnnl/dnnl.h>

#include "base/error.h"

/* Every call of the library goes through here: none of them can fail by a user's mistake. */
#define ONEDNN(call)                                                                                                   \
    do {                                                                                                               \
        dnnl_status_t status_ = (call);                                                                                \
        if (status_ != dnnl_success) die("oneDNN: %s failed with status %d", #call, (int)status_);                     \
    } while (0)

/* Where and how a convolution slides. */
struct shim_window {
    dnnl_dims_t stride, pad;
};

/* A convolution's passes: y of x, dx of dy, dw (and the bias's gradient) of x and dy. */
enum shim_pass { SHIM_FORWARD, SHIM_DATA, SHIM_WEIGHTS };
/* shim_convolution: x, w, bias, y are descriptors of these or, in their place, of the gradients that the pass is for.
 * bias: NULL where there is none, and for SHIM_DATA; forward: of this convolution's forward pass, NULL for that itself.
 * how: dnnl_convolution_direct, which the library always has, or another one: dnnl_unimplemented where it has none. */

#if DNNL_VERSION_MAJOR >= 3

typedef const_dnnl_memory_desc_t shim_desc; /* borrowed */
typedef dnnl_memory_desc_t shim_own_desc;   /* to be given back by shim_desc_close */

static const dnnl_dims_t shim_no_dilation = {0};

static inline shim_desc shim_desc_of(const shim_own_desc *own) {
    return *own;
}
static inline void shim_desc_open(shim_own_desc *own, int dims, const dnnl_dims_t size, dnnl_format_tag_t tag) {
    ONEDNN(dnnl_memory_desc_create_with_tag(own, dims, size, dnnl_f32, tag));
}
static inline void shim_desc_open_within(shim_own_desc *own, shim_desc whole, const dnnl_dims_t size,
                                         const dnnl_dims_t offset) {
    ONEDNN(dnnl_memory_desc_create_submemory(own, whole, size, offset));
}
static inline void shim_desc_close(shim_own_desc *own) {
    ONEDNN(dnnl_memory_desc_destroy(*own));
}
static inline dnnl_status_t shim_convolution(dnnl_primitive_desc_t *made, dnnl_engine_t engine, enum shim_pass pass,
                                             dnnl_alg_kind_t how, shim_desc x, shim_desc w, shim_desc bias, shim_desc y,
                                             const struct shim_window *at, const_dnnl_primitive_attr_t attr,
                                             const_dnnl_primitive_desc_t forward) {
    switch (pass) {
    case SHIM_FORWARD:
        return dnnl_convolution_forward_primitive_desc_create(made, engine, dnnl_forward_training, how, x, w, bias, y,
                                                              at->stride, shim_no_dilation, at->pad, at->pad, attr);
    case SHIM_DATA:
        return dnnl_convolution_backward_data_primitive_desc_create(made, engine, how, x, w, y, at->stride,
                                                                    shim_no_dilation, at->pad, at->pad, forward, attr);
    case SHIM_WEIGHTS:
        return dnnl_convolution_backward_weights_primitive_desc_create(
            made, engine, how, x, w, bias, y, at->stride, shim_no_dilation, at->pad, at->pad, forward, attr);
    }
    return dnnl_invalid_arguments;
}
static inline void shim_product(dnnl_primitive_desc_t *made, dnnl_engine_t engine, shim_desc a, shim_desc b,
                                shim_desc c, const_dnnl_primitive_attr_t attr) {
    ONEDNN(dnnl_matmul_primitive_desc_create(made, engine, a, b, NULL, c, attr));
}
/* x and y lie alike; flags: dnnl_use_scale, dnnl_use_shift. */
static inline void shim_layer_norm_forward(dnnl_primitive_desc_t *made, dnnl_engine_t engine, shim_desc x,
                                           shim_desc moments, float epsilon, unsigned flags,
                                           const_dnnl_primitive_attr_t attr) {
    ONEDNN(dnnl_layer_normalization_forward_primitive_desc_create(made, engine, dnnl_forward_training, x, x, moments,
                                                                  epsilon, flags, attr));
}
static inline void shim_layer_norm_backward(dnnl_primitive_desc_t *made, dnnl_engine_t engine, shim_desc x,
                                            shim_desc moments, float epsilon, unsigned flags,
                                            const_dnnl_primitive_attr_t attr, const_dnnl_primitive_desc_t forward) {
    ONEDNN(dnnl_layer_normalization_backward_primitive_desc_create(made, engine, dnnl_backward, x, x, x, moments,
                                                                   epsilon, flags, forward, attr));
}
static inline void shim_eltwise_forward(dnnl_primitive_desc_t *made, dnnl_engine_t engine, dnnl_alg_kind_t what,
                                        shim_desc x, const_dnnl_primitive_attr_t attr) {
    ONEDNN(dnnl_eltwise_forward_primitive_desc_create(made, engine, dnnl_forward_training, what, x, x, 0, 0, attr));
}
static inline void shim_eltwise_backward(dnnl_primitive_desc_t *made, dnnl_engine_t engine, dnnl_alg_kind_t what,
                                         shim_desc x, const_dnnl_primitive_attr_t attr,
                                         const_dnnl_primitive_desc_t forward) {
    ONEDNN(dnnl_eltwise_backward_primitive_desc_create(made, engine, what, x, x, x, 0, 0, forward, attr));
}
/* What a primitive computes is added to what is there. */
static inline void shim_append_sum(dnnl_post_ops_t after) {
    ONEDNN(dnnl_post_ops_append_sum(after, 1, 0, dnnl_data_type_undef));
}

#else

typedef const dnnl_memory_desc_t *shim_desc;
typedef dnnl_memory_desc_t shim_own_desc;

static inline shim_desc shim_desc_of(const shim_own_desc *own) {
    return own;
}
static inline void shim_desc_open(shim_own_desc *own, int dims, const dnnl_dims_t size, dnnl_format_tag_t tag) {
    ONEDNN(dnnl_memory_desc_init_by_tag(own, dims, size, dnnl_f32, tag));
}
static inline void shim_desc_open_within(shim_own_desc *own, shim_desc whole, const dnnl_dims_t size,
                                         const dnnl_dims_t offset) {
    ONEDNN(dnnl_memory_desc_init_submemory(own, whole, size, offset));
}
static inline void shim_desc_close(shim_own_desc *own) {
    (void)own;
}
static inline dnnl_status_t shim_convolution(dnnl_primitive_desc_t *made, dnnl_engine_t engine, enum shim_pass pass,
                                             dnnl_alg_kind_t how, shim_desc x, shim_desc w, shim_desc bias, shim_desc y,
                                             const struct shim_window *at, const_dnnl_primitive_attr_t attr,
                                             const_dnnl_primitive_desc_t forward) {
    dnnl_convolution_desc_t op;
    switch (pass) {
    case SHIM_FORWARD:
        ONEDNN(dnnl_convolution_forward_desc_init(&op, dnnl_forward_training, how, x, w, bias, y, at->stride, at->pad,
                                                  at->pad));
        break;
    case SHIM_DATA:
        ONEDNN(dnnl_convolution_backward_data_desc_init(&op, how, x, w, y, at->stride, at->pad, at->pad));
        break;
    case SHIM_WEIGHTS:
        ONEDNN(dnnl_convolution_backward_weights_desc_init(&op, how, x, w, bias, y, at->stride, at->pad, at->pad));
        break;
    }
    return dnnl_primitive_desc_create(made, &op, attr, engine, forward);
}
static inline void shim_product(dnnl_primitive_desc_t *made, dnnl_engine_t engine, shim_desc a, shim_desc b,
                                shim_desc c, const_dnnl_primitive_attr_t attr) {
    dnnl_matmul_desc_t op;
    ONEDNN(dnnl_matmul_desc_init(&op, a, b, NULL, c));
    ONEDNN(dnnl_primitive_desc_create(made, &op, attr, engine, NULL));
}
static inline void shim_layer_norm_forward(dnnl_primitive_desc_t *made, dnnl_engine_t engine, shim_desc x,
                                           shim_desc moments, float epsilon, unsigned flags,
                                           const_dnnl_primitive_attr_t attr) {
    dnnl_layer_normalization_desc_t op;
    ONEDNN(dnnl_layer_normalization_forward_desc_init(&op, dnnl_forward_training, x, moments, epsilon, flags));
    ONEDNN(dnnl_primitive_desc_create(made, &op, attr, engine, NULL));
}
static inline void shim_layer_norm_backward(dnnl_primitive_desc_t *made, dnnl_engine_t engine, shim_desc x,
                                            shim_desc moments, float epsilon, unsigned flags,
                                            const_dnnl_primitive_attr_t attr, const_dnnl_primitive_desc_t forward) {
    dnnl_layer_normalization_desc_t op;
    ONEDNN(dnnl_layer_normalization_backward_desc_init(&op, dnnl_backward, x, x, moments, epsilon, flags));
    ONEDNN(dnnl_primitive_desc_create(made, &op, attr, engine, forward));
}
static inline void shim_eltwise_forward(dnnl_primitive_desc_t *made, dnnl_engine_t engine, dnnl_alg_kind_t what,
                                        shim_desc x, const_dnnl_primitive_attr_t attr) {
    dnnl_eltwise_desc_t op;
    ONEDNN(dnnl_eltwise_forward_desc_init(&op, dnnl_forward_training, what, x, 0, 0));
    ONEDNN(dnnl_primitive_desc_create(made, &op, attr, engine, NULL));
}
static inline void shim_eltwise_backward(dnnl_primitive_desc_t *made, dnnl_engine_t engine, dnnl_alg_kind_t what,
                                         shim_desc x, const_dnnl_primitive_attr_t attr,
                                         const_dnnl_primitive_desc_t forward) {
    dnnl_eltwise_desc_t op;
    ONEDNN(dnnl_eltwise_backward_desc_init(&op, what, x, x, 0, 0));
    ONEDNN(dnnl_primitive_desc_create(made, &op, attr, engine, forward));
}
static inline void shim_append_sum(dnnl_post_ops_t after) {
    ONEDNN(dnnl_post_ops_append_sum(after, 1));
}

#endif

/* What a convolution's primitive takes and gives, in the layouts it chose; borrowed from it. */
static inline shim_desc shim_source_of(dnnl_primitive_desc_t made) {
    return dnnl_primitive_desc_query_md(made, dnnl_query_src_md, 0);
}
static inline shim_desc shim_weights_of(dnnl_primitive_desc_t made) {
    return dnnl_primitive_desc_query_md(made, dnnl_query_weights_md, 0);
}
static inline shim_desc shim_result_of(dnnl_primitive_desc_t made) {
    return dnnl_primitive_desc_query_md(made, dnnl_query_dst_md, 0);
}

#endif
