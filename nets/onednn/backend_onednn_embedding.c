/* backend_onednn_embedding.c: rows of a table by token, on the CPU. Threads share the columns when gradients are added
 * up: so every entry is summed in the order of the rows, and no two threads meet. */
#include <string.h>

#include "base/mem.h"
#include "base/simd.h"
#include "nets/onednn/backend_onednn.h"

enum { COLUMNS = 64 }; /* of a piece of work: whole cache lines */

struct embedding {
    size_t rows, features, vocabulary;
    bool shared;
};

static void *open_embedding(void *backend, const struct layer_spec *spec, const struct tensor *x,
                            const struct tensor *add, struct tensor *y) {
    (void)backend;
    if (x->layout != LAYOUT_TOKENS) die("an embedding needs tokens");
    if (add && add->layout != LAYOUT_CANONICAL) die("an embedding is added to rows in the canonical layout");
    struct embedding *l = mem_zalloc(1, sizeof *l, "an embedding");
    *l = (struct embedding){(size_t)x->n, (size_t)y->c, (size_t)spec->embedding.vocabulary, spec->embedding.shared};
    (void)onednn_lay_out(y, LAYOUT_CANONICAL);
    return l;
}

SIMD_CLONES static void add_columns(float *to, const float *from, size_t n) {
    for (size_t i = 0; i < n; i++) to[i] += from[i];
}

static void forward(void *layer, const struct layer_call *call, bool training) {
    (void)training;
    const struct embedding *l = layer;
    const int32_t *token = layer_tokens(call);
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < l->rows; i++) {
        float *y = call->y + i * l->features;
        memcpy(y, call->param + (size_t)token[i] * l->features, l->features * sizeof *y);
        if (call->add) add_columns(y, call->add + i * l->features, l->features);
    }
}

static void clear(const struct embedding *l, float *dw) {
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < l->vocabulary; i++) memset(dw + i * l->features, 0, l->features * sizeof(float));
}

/* The gradient of `add` is dy itself. */
static void backward(void *layer, const struct layer_call *call) {
    const struct embedding *l = layer;
    const int32_t *token = layer_tokens(call);
    if (!call->adds && !l->shared) clear(l, call->dparam);
#pragma omp parallel for schedule(static)
    for (size_t column = 0; column < l->features; column += COLUMNS) {
        size_t width = column + COLUMNS < l->features ? COLUMNS : l->features - column;
        for (size_t i = 0; i < l->rows; i++)
            add_columns(call->dparam + (size_t)token[i] * l->features + column, call->dy + i * l->features + column,
                        width);
    }
}

const struct layer_ops onednn_embedding = {open_embedding, forward, backward, mem_free};
