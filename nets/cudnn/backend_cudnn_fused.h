/* backend_cudnn_fused.h: which attention layers are computed by plans of cuDNN (backend_cudnn_sdpa.h): those of rows in
 * bf16 that the library has plans for, after a trial: on the first layer of a shape its plans run on random arrays,
 * twice, and have to come to what the layer itself comes to, and to the same bits. Later layers of that shape share
 * them. SPARSETRAIN_CUDNN_PLANS=0 in the environment: none. */
#ifndef ST_NETS_BACKEND_CUDNN_FUSED_H
#define ST_NETS_BACKEND_CUDNN_FUSED_H

#include "nets/cudnn/backend_cudnn.h"
#include "nets/cudnn/backend_cudnn_sdpa.h"

/* The layer as it computes without plans. */
struct cudnn_fused_own {
    void *layer;
    void (*forward)(void *layer, const struct layer_call *call, bool training);
    void (*backward)(void *layer, const struct layer_call *call);
};

/* NULL: this shape has none. They are the backend's, which closes them. */
const struct cudnn_fused *cudnn_fused_of(struct cudnn_backend *b, const struct cudnn_sdpa_shape *shape,
                                         const struct cudnn_fused_own *own);
void cudnn_fused_close(struct cudnn_backend *b);

/* As the layer's passes; stats: of the layer, [batch][heads][T], from its forward pass to its backward pass. */
void cudnn_fused_forward(const struct cudnn_backend *b, const struct cudnn_fused *f, const struct layer_call *call,
                         float *stats);
void cudnn_fused_backward(const struct cudnn_backend *b, const struct cudnn_fused *f, const struct layer_call *call,
                          float *stats);

#endif
