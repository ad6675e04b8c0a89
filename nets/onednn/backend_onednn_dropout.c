/* backend_onednn_dropout.c: dropout on the CPU (nets/dropout.h), which does not need oneDNN but for the layout of its
 * tensors. Forward and backward are one and the same: what comes in, times the factors. */
#include <string.h>

#include "base/mem.h"
#include "nets/cpu/cpu_dropout.h"
#include "nets/onednn/backend_onednn.h"

enum { PIECE = CPU_DROPOUT_PIECE };

struct dropping {
    const struct onednn *backend;
    struct dropout how;
    struct cpu_view view;
};

static void *open_dropout(void *backend, const struct layer_spec *spec, const struct tensor *x,
                          const struct tensor *add, struct tensor *y) {
    (void)add;
    struct dropping *l = mem_zalloc(1, sizeof *l, "a dropout layer");
    l->backend = backend;
    l->how = dropout_of(l->backend->dropout_seed, spec->number, spec->dropout.drop);
    l->view = onednn_lay_out(y, x->layout);
    return l;
}

/* to = from times the factors of elements first ... first + n - 1 of the canonical order, which lie `step` floats
 * apart. */
static void drop_run(const struct dropping *l, size_t first, size_t n, const float *from, float *to, size_t step) {
    float factor[PIECE];
    for (size_t at = first / PIECE * PIECE; at < first + n; at += PIECE) {
        size_t begin = at < first ? first : at, end = at + PIECE < first + n ? at + PIECE : first + n;
        cpu_dropout_factors(&l->how, l->backend->step, (uint32_t)(at / 4), factor);
        for (size_t i = begin; i < end; i++) to[(i - first) * step] = from[(i - first) * step] * factor[i - at];
    }
}

/* One run, cut for the threads, where places follow the canonical order (step 1: NCHW, or one channel); else one for
 * each channel of each image. */
static void drop(const struct dropping *l, const float *from, float *to) {
    const struct cpu_view *v = &l->view;
    if (v->step == 1) {
        size_t all = v->images * v->image, cut = 64 * PIECE;
#pragma omp parallel for schedule(static)
        for (size_t at = 0; at < all; at += cut)
            drop_run(l, at, at + cut < all ? cut : all - at, from + at, to + at, 1);
        return;
    }
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < v->images * v->blocks * v->lanes; i++) {
        size_t n = i / (v->blocks * v->lanes), c = i % (v->blocks * v->lanes);
        size_t at = cpu_view_place(v, n, c, 0);
        if (c < v->channels)
            drop_run(l, (n * v->channels + c) * v->positions, v->positions, from + at, to + at, v->step);
        else
            for (size_t p = 0; p < v->positions; p++) to[at + p * v->step] = 0;
    }
}

static void forward(void *layer, const struct layer_call *call, bool training) {
    const struct dropping *l = layer;
    if (training)
        drop(l, call->x, call->y);
    else
        memcpy(call->y, call->x, cpu_view_floats(&l->view) * sizeof *call->y);
}

static void backward(void *layer, const struct layer_call *call) {
    if (call->dx) drop(layer, call->dy, call->dx);
}

const struct layer_ops onednn_dropout = {open_dropout, forward, backward, mem_free};
