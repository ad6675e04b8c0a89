/* backend_cudnn_weights.c: weights of convolutions on their way between the arena and arrays as cuDNN wants them, of
 * all layers in one launch each way: the first layer of a pass has all weights copied, and the end of a backward pass
 * all gradients, where nobody waits for one layer's. In the first pass of each kind, which says where the arena has
 * them, each layer's are copied by themselves. */
#include "base/mem.h"
#include "nets/cudnn/backend_cudnn.h"

static uint32_t elements(const struct cuda_cast *c) {
    return c->out * c->in * c->window;
}

int cudnn_weights_join(struct cudnn_backend *b, const struct cuda_cast *cast) {
    struct cudnn_weights *all = &b->weights;
    if (all->count == CUDNN_CASTS_MAX) die("more than %d convolutions", CUDNN_CASTS_MAX);
    all->cast[all->count] = *cast;
    if (elements(cast) > all->most) all->most = elements(cast);
    return all->count++;
}

/* The table that the kernels read, now that all layers have said where something is. */
static void upload(struct cudnn_weights *all) {
    const size_t bytes = (size_t)all->count * sizeof *all->cast;
    if (!all->device) all->device = cuda_alloc(bytes, "a table of weights");
    cuda_upload(all->device, all->cast, bytes);
}

void cudnn_weights_begin(struct cudnn_backend *b, bool whole) {
    b->weights.whole = whole;
    b->weights.taken = b->weights.owed = false;
}

void cudnn_weights_take(struct cudnn_backend *b, int number, const float *param) {
    struct cudnn_weights *all = &b->weights;
    struct cuda_cast *c = &all->cast[number];
    const bool is_bf16 = b->precision == PRECISION_BF16;
    if (all->taken) return;
    if (all->params == all->count) {
        cuda_weights_all_to_last(all->device, (uint32_t)all->count, all->most, is_bf16);
        all->taken = true;
        return;
    }
    cuda_weights_to_last(c->out, c->in, c->window, param, c->w, is_bf16);
    c->param = param;
    if (++all->params == all->count) upload(all), all->taken = true;
}

void cudnn_weights_give(struct cudnn_backend *b, int number, float *dparam, bool adds) {
    struct cudnn_weights *all = &b->weights;
    struct cuda_cast *c = &all->cast[number];
    if (all->dparams == all->count && all->whole) {
        all->owed = true, all->adds = adds;
        return;
    }
    cuda_weights_from_last(c->out, c->in, c->window, c->dw, dparam, adds, b->precision == PRECISION_BF16);
    if (all->dparams == all->count) return;
    c->dparam = dparam;
    if (++all->dparams == all->count) upload(all);
}

void cudnn_weights_end(struct cudnn_backend *b) {
    const struct cudnn_weights *all = &b->weights;
    if (all->owed)
        cuda_weights_all_from_last(all->device, (uint32_t)all->count, all->most, all->adds,
                                   b->precision == PRECISION_BF16);
}

void cudnn_weights_close(struct cudnn_backend *b) {
    cuda_free(b->weights.device);
}
