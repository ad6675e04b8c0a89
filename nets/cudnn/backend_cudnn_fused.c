/* backend_cudnn_fused.c: see backend_cudnn_fused.h. */
#include "nets/cudnn/backend_cudnn_fused.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/philox.h"

/* How far plans may be off, relative to the norm of what the layer computes. Both round what is multiplied to bf16, by
 * 2^-9 of itself at most, but not at the same places. */
#define TOLERANCE 2e-2

struct cudnn_fused {
    struct cudnn_sdpa_shape shape;
    struct cudnn_sdpa *forward, *backward; /* NULL: not taken */
    struct cudnn_fused *next;
};

static void run(const struct cudnn_backend *b, const struct cudnn_sdpa *plan, struct cudnn_sdpa_arrays a) {
    a.workspace = b->workspace;
    CUDNN_CALL(cudnn_sdpa_run(b->cudnn, plan, &a));
}

void cudnn_fused_forward(const struct cudnn_backend *b, const struct cudnn_fused *f, const struct layer_call *call,
                         float *stats) {
    run(b, f->forward, (struct cudnn_sdpa_arrays){.x = call->x, .out = call->y, .stats = stats});
}

void cudnn_fused_backward(const struct cudnn_backend *b, const struct cudnn_fused *f, const struct layer_call *call,
                          float *stats) {
    if (!call->dx) return;
    run(b, f->backward,
        (struct cudnn_sdpa_arrays){.x = call->x, .y = call->y, .dy = call->dy, .out = call->dx, .stats = stats});
}

/* -- the trial ---------------------------------------------------------------------------------------------------- */

static size_t elements(const struct cudnn_sdpa_shape *s) {
    return (size_t)(s->batch * s->T * s->heads * s->d);
}

/* Between -2 and 2, about as large as normalised ones. */
static struct bf16 *random_rows(size_t n, uint32_t stream) {
    struct bf16 *made = mem_alloc(n, sizeof *made, "random rows");
    for (size_t i = 0; i < n; i += 4) {
        const struct philox_block random = philox_block_of((uint32_t)(i / 4), stream, 0, 0, 0, 0);
        for (size_t k = 0; k < 4 && i + k < n; k++)
            made[i + k] = bf16_of((float)random.word[k] * (float)(4.0 / 4294967296.0) - 2);
    }
    return made;
}

static struct bf16 *fetched(const void *from, size_t n) {
    struct bf16 *made = mem_alloc(n, sizeof *made, "rows to compare");
    CUDA_CALL(cudaMemcpyAsync(made, from, n * sizeof *made, cudaMemcpyDeviceToHost, cuda_stream()));
    cuda_wait();
    return made;
}

/* NaN anywhere is no agreement. */
static bool near(const struct bf16 *found, const struct bf16 *wanted, size_t n) {
    double far = 0, size = 0;
    for (size_t i = 0; i < n; i++) {
        const double w = bf16_value(wanted[i]), apart = bf16_value(found[i]) - w;
        far += apart * apart;
        size += w * w;
    }
    return far <= TOLERANCE * TOLERANCE * size;
}

/* What both passes come to on the arrays of a trial. */
struct outcome {
    struct bf16 *y, *dx;
};

static struct outcome outcome_of(const struct cudnn_sdpa_shape *s, const struct layer_call *call) {
    return (struct outcome){fetched(call->y, elements(s)), fetched(call->dx, 3 * elements(s))};
}
static void drop(struct outcome *o) {
    mem_free(o->y);
    mem_free(o->dx);
}

static struct outcome fused_outcome(const struct cudnn_backend *b, const struct cudnn_fused *f,
                                    const struct layer_call *call, float *stats) {
    cudnn_fused_forward(b, f, call, stats);
    cudnn_fused_backward(b, f, call, stats);
    return outcome_of(&f->shape, call);
}

static bool is_right(const struct cudnn_backend *b, const struct cudnn_fused *f, const struct cudnn_fused_own *own,
                     const struct layer_call *call, float *stats) {
    const size_t y = elements(&f->shape), dx = 3 * y;
    own->forward(own->layer, call, true);
    own->backward(own->layer, call);
    struct outcome wanted = outcome_of(&f->shape, call), once = fused_outcome(b, f, call, stats),
                   again = fused_outcome(b, f, call, stats);
    const bool right = near(once.y, wanted.y, y) && near(once.dx, wanted.dx, dx) &&
                       memcmp(once.y, again.y, y * sizeof *once.y) == 0 &&
                       memcmp(once.dx, again.dx, dx * sizeof *once.dx) == 0;
    drop(&wanted);
    drop(&once);
    drop(&again);
    return right;
}

/* Plans that do not run are none. */
static bool tried(const struct cudnn_backend *b, const struct cudnn_fused *f, const struct cudnn_fused_own *own) {
    const size_t rows = elements(&f->shape), bytes = rows * sizeof(struct bf16);
    char *block = cuda_alloc(8 * bytes, "the trial of an attention layer"); /* x 3, dx 3, y, dy */
    float *stats = cuda_alloc(rows / (size_t)f->shape.d * sizeof *stats, "the trial of an attention layer");
    void *at[] = {block, block + 3 * bytes, block + 6 * bytes, block + 7 * bytes};
    const struct layer_call call = {.x = at[0], .dx = at[1], .y = at[2], .dy = at[3]};
    struct bf16 *x = random_rows(3 * rows, 1), *dy = random_rows(rows, 2);
    cuda_upload(at[0], x, 3 * bytes);
    cuda_upload(at[3], dy, bytes);
    struct err why;
    cuda_try_begin();
    const bool right = is_right(b, f, own, &call, stats), ran = cuda_try_end(&why);
    mem_free(x);
    mem_free(dy);
    cuda_free(block);
    cuda_free(stats);
    return ran && right;
}

/* -- plans of a backend ------------------------------------------------------------------------------------------- */

static bool same(const struct cudnn_sdpa_shape *a, const struct cudnn_sdpa_shape *b) {
    return a->batch == b->batch && a->heads == b->heads && a->T == b->T && a->d == b->d && a->causal == b->causal;
}

static void give_up(struct cudnn_fused *f) {
    cudnn_sdpa_close(f->forward);
    cudnn_sdpa_close(f->backward);
    f->forward = f->backward = NULL;
}

static struct cudnn_fused *made_for(struct cudnn_backend *b, const struct cudnn_sdpa_shape *shape,
                                    const struct cudnn_fused_own *own) {
    const struct cudnn_plan_gpu gpu = {.handle = b->cudnn};
    size_t forward = 0, backward = 0;
    struct cudnn_fused *f = mem_zalloc(1, sizeof *f, "attention by cuDNN");
    f->shape = *shape;
    f->forward = cudnn_sdpa_open(&gpu, shape, false, &forward);
    if (f->forward) f->backward = cudnn_sdpa_open(&gpu, shape, true, &backward);
    if (f->forward && f->backward) {
        cudnn_need_workspace(b, forward > backward ? forward : backward);
        if (tried(b, f, own)) return f;
    }
    give_up(f);
    return f;
}

const struct cudnn_fused *cudnn_fused_of(struct cudnn_backend *b, const struct cudnn_sdpa_shape *shape,
                                         const struct cudnn_fused_own *own) {
    const char *plans = getenv("SPARSETRAIN_CUDNN_PLANS");
    if (plans && strcmp(plans, "0") == 0) return NULL;
    struct cudnn_fused *f = b->fused;
    while (f && !same(&f->shape, shape)) f = f->next;
    if (!f) {
        f = made_for(b, shape, own);
        f->next = b->fused;
        b->fused = f;
    }
    return f->forward ? f : NULL;
}

void cudnn_fused_close(struct cudnn_backend *b) {
    while (b->fused) {
        struct cudnn_fused *f = b->fused;
        b->fused = f->next;
        give_up(f);
        mem_free(f);
    }
}
