/* backend_onednn_rows.c: rows of numbers on the CPU: what is added to them, another tensor or learned positions; some
 * of them. */
#include <string.h>

#include "base/mem.h"
#include "base/simd.h"
#include "nets/onednn/backend_onednn.h"

SIMD_CLONES static void sum(const float *a, const float *b, float *to, size_t n) {
    for (size_t i = 0; i < n; i++) to[i] = a[i] + b[i];
}

enum { PIECE = 16384 }; /* floats of a thread's turn */

static void sum_all(const float *a, const float *b, float *to, size_t n) {
#pragma omp parallel for schedule(static)
    for (size_t at = 0; at < n; at += PIECE) sum(a + at, b + at, to + at, at + PIECE < n ? PIECE : n - at);
}

static void copy_all(const float *from, float *to, size_t n) {
#pragma omp parallel for schedule(static)
    for (size_t at = 0; at < n; at += PIECE) memcpy(to + at, from + at, (at + PIECE < n ? PIECE : n - at) * sizeof *to);
}

/* -- y = x + add --------------------------------------------------------------------------------------------------- */

static void *add_open(void *backend, const struct layer_spec *spec, const struct tensor *x, const struct tensor *add,
                      struct tensor *y) {
    (void)backend, (void)spec;
    if (add->layout != x->layout) die("tensors of layouts %d and %d are added up", x->layout, add->layout);
    size_t *floats = mem_alloc(1, sizeof *floats, "an addition");
    const struct cpu_view view = onednn_lay_out(y, x->layout);
    *floats = cpu_view_floats(&view);
    return floats;
}
static void add_forward(void *layer, const struct layer_call *call, bool training) {
    (void)training;
    sum_all(call->x, call->add, call->y, *(const size_t *)layer);
}
/* The gradient of `add` is dy itself. */
static void add_backward(void *layer, const struct layer_call *call) {
    if (call->dx) copy_all(call->dy, call->dx, *(const size_t *)layer);
}
const struct layer_ops onednn_add = {add_open, add_forward, add_backward, mem_free};

/* -- y [row] = x [row] + w [row mod T] ----------------------------------------------------------------------------- */

struct position {
    size_t sequences, length; /* length: floats of a sequence, T c */
    size_t table;             /* of all positions, of which a sequence may not have the last */
};

static void *position_open(void *backend, const struct layer_spec *spec, const struct tensor *x,
                           const struct tensor *add, struct tensor *y) {
    (void)backend, (void)add;
    if (x->layout != CPU_NCHW) die("positions need rows in the canonical layout");
    const size_t row = cpu_view_of(x).image, T = (size_t)spec->position.sequence;
    struct position *l = mem_alloc(1, sizeof *l, "positions");
    *l = (struct position){(size_t)x->n / T, T * row, (size_t)spec->position.positions * row};
    (void)onednn_lay_out(y, CPU_NCHW);
    return l;
}

static void position_forward(void *layer, const struct layer_call *call, bool training) {
    (void)training;
    const struct position *l = layer;
#pragma omp parallel for schedule(static)
    for (size_t s = 0; s < l->sequences; s++)
        sum(call->x + s * l->length, call->param, call->y + s * l->length, l->length);
}

/* dw [+]= sum over the sequences, in their order; dx = dy. */
static void position_backward(void *layer, const struct layer_call *call) {
    const struct position *l = layer;
#pragma omp parallel for schedule(static)
    for (size_t at = 0; at < l->length; at += PIECE) {
        const size_t n = at + PIECE < l->length ? PIECE : l->length - at;
        float *dw = call->dparam + at;
        if (!call->adds) memset(dw, 0, n * sizeof *dw);
        for (size_t s = 0; s < l->sequences; s++) sum(dw, call->dy + s * l->length + at, dw, n);
    }
    if (!call->adds) memset(call->dparam + l->length, 0, (l->table - l->length) * sizeof *call->dparam);
    if (call->dx) copy_all(call->dy, call->dx, l->sequences * l->length);
}
const struct layer_ops onednn_position = {position_open, position_forward, position_backward, mem_free};

/* -- some rows of each sequence ------------------------------------------------------------------------------------ */

struct choose {
    size_t sequences, T, count, features;
};

static void *choose_open(void *backend, const struct layer_spec *spec, const struct tensor *x, const struct tensor *add,
                         struct tensor *y) {
    (void)backend;
    if (x->layout != CPU_NCHW) die("rows are chosen in the canonical layout");
    if (add && add->layout != LAYOUT_TOKENS) die("rows are chosen by whole numbers");
    struct choose *l = mem_alloc(1, sizeof *l, "chosen rows");
    const size_t T = (size_t)spec->choose.sequence;
    *l = (struct choose){(size_t)x->n / T, T, (size_t)spec->choose.count, cpu_view_of(x).image};
    (void)onednn_lay_out(y, CPU_NCHW);
    return l;
}

/* Where in x row i of y comes from. */
static size_t chosen_at(const struct choose *l, const struct layer_call *call, size_t i) {
    const int32_t *number = (const int32_t *)(const void *)call->add;
    return (i / l->count * l->T + (number ? (size_t)number[i] : i % l->count)) * l->features;
}

static void choose_forward(void *layer, const struct layer_call *call, bool training) {
    (void)training;
    const struct choose *l = layer;
    for (size_t i = 0; i < l->sequences * l->count; i++)
        memcpy(call->y + i * l->features, call->x + chosen_at(l, call, i), l->features * sizeof *call->y);
}

static void choose_backward(void *layer, const struct layer_call *call) {
    const struct choose *l = layer;
    if (!call->dx) return;
    memset(call->dx, 0, l->sequences * l->T * l->features * sizeof *call->dx);
    for (size_t i = 0; i < l->sequences * l->count; i++) {
        float *to = call->dx + chosen_at(l, call, i);
        sum(to, call->dy + i * l->features, to, l->features);
    }
}
const struct layer_ops onednn_choose = {choose_open, choose_forward, choose_backward, mem_free};
