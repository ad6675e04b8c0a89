/* backend_onednn_linear.c: the linear layer on the CPU: x [N][I], w [O][I], b [O], y [N][O]. */
#include "base/mem.h"
#include "nets/cpu/cpu_layers.h"
#include "nets/onednn/backend_onednn.h"

struct linear {
    struct tensor x;
    size_t inputs, outputs;
    bool bias;
};

static void *open_linear(void *backend, const struct layer_spec *spec, const struct tensor *x, const struct tensor *add,
                         struct tensor *y) {
    (void)backend, (void)add;
    if (x->layout != CPU_NCHW) die("a linear layer needs its input in the canonical layout");
    struct linear *l = mem_zalloc(1, sizeof *l, "a linear layer");
    const size_t inputs = cpu_view_of(x).image;
    *l = (struct linear){*x, inputs, (size_t)y->c, spec->linear.bias};
    (void)onednn_lay_out(y, CPU_NCHW);
    return l;
}

static size_t rows_of(const struct linear *l, const struct layer_call *call) {
    return (size_t)tensor_in_pass(&l->x, call).n;
}

static void add_bias(const struct linear *l, size_t rows, const float *b, float *y) {
#pragma omp parallel for schedule(static)
    for (size_t n = 0; n < rows; n++)
        for (size_t o = 0; o < l->outputs; o++) y[n * l->outputs + o] += b[o];
}

/* y = x w^T [+ b] */
static void forward(void *layer, const struct layer_call *call, bool training) {
    (void)training;
    const struct linear *l = layer;
    const size_t rows = rows_of(l, call);
    onednn_product(false, true, rows, l->outputs, l->inputs, call->x, call->param, 0, call->y);
    if (l->bias) add_bias(l, rows, call->param + l->outputs * l->inputs, call->y);
}

/* dw [+]= dy^T x,  db [+]= sum dy,  dx = dy w */
static void backward(void *layer, const struct layer_call *call) {
    const struct linear *l = layer;
    const size_t N = rows_of(l, call), I = l->inputs, O = l->outputs;
    onednn_product(true, false, O, I, N, call->dy, call->x, call->adds ? 1 : 0, call->dparam);
    if (l->bias) cpu_column_sums(N, O, call->dy, call->adds, call->dparam + O * I);
    if (call->dx) onednn_product(false, false, N, I, O, call->dy, call->param, 0, call->dx);
}

const struct layer_ops onednn_linear = {open_linear, forward, backward, mem_free};
