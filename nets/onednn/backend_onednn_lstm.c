/* backend_onednn_lstm.c: one layer of an LSTM on the CPU. What does not depend on the step before is done for all steps
 * at once: the products with the inputs and all gradients of weights are one matrix product each. From step to step
 * there are a product with w_hh and one pass over the gates (cpu_lstm.c). Few streams make that product a reading of
 * w_hh, so each pass copies it once into the layout that is read fastest. */
#include <string.h>

#include "base/mem.h"
#include "nets/cpu/cpu_layers.h"
#include "nets/cpu/cpu_lstm.h"
#include "nets/cpu/cpu_steps.h"
#include "nets/onednn/backend_onednn.h"

enum { COLUMNS = 256 }; /* of a stream's row that a thread takes at once */

struct lstm {
    struct onednn *backend;
    struct onednn_packed forward, back; /* h w_hh^T, added; gates w_hh */
    float *w_hh;                        /* the copy of the pass */
    struct tensor x;
    bool padded;
    size_t *valid;                         /* [streams] steps of each, where padded */
    size_t steps, streams, inputs, hidden; /* steps: of the pass, at most those that it was opened for */
    float *gates;                          /* [steps streams][4 hidden]: values; going back, gradients of the sums */
    float *h, *c;   /* [(steps + 1) streams][hidden]: the states before the first step, and those of each */
    float *bias;    /* [4 hidden]: both together */
    float *dh, *dc; /* [streams][hidden]: from the step after */
};

/* Where the parameters lie, or their gradients. */
struct places {
    size_t w_hh, b_ih, b_hh; /* w_ih: 0 */
};
static struct places places_of(const struct lstm *l) {
    struct places p = {.w_hh = 4 * l->hidden * l->inputs};
    p.b_ih = p.w_hh + 4 * l->hidden * l->hidden;
    p.b_hh = p.b_ih + 4 * l->hidden;
    return p;
}

static void open_products(struct lstm *l) {
    const size_t B = l->streams, H = l->hidden;
    onednn_packed_open(l->backend, &l->forward, true, B, 4 * H, H, true);
    onednn_packed_open(l->backend, &l->back, false, B, H, 4 * H, false);
    const size_t bytes = l->forward.bytes > l->back.bytes ? l->forward.bytes : l->back.bytes;
    l->w_hh = mem_alloc(bytes, 1, "the recurrent weights of an LSTM");
}

static void *open_lstm(void *backend, const struct layer_spec *spec, const struct tensor *x, const struct tensor *add,
                       struct tensor *y) {
    (void)add;
    if (x->layout != LAYOUT_CANONICAL) die("an LSTM needs its input in the canonical layout");
    if (spec->lstm.sequence < 1 || x->n % spec->lstm.sequence != 0)
        die("an LSTM of %d rows, %d steps", x->n, spec->lstm.sequence);
    struct lstm *l = mem_zalloc(1, sizeof *l, "an LSTM");
    l->backend = backend;
    l->steps = (size_t)spec->lstm.sequence;
    l->streams = (size_t)x->n / l->steps;
    l->x = *x;
    l->padded = spec->lstm.padded;
    if (l->padded) l->valid = mem_alloc(l->streams, sizeof *l->valid, "the lengths of utterances");
    l->inputs = (size_t)x->c * (size_t)x->h * (size_t)x->w;
    l->hidden = (size_t)y->c;
    const size_t states = (l->steps + 1) * l->streams * l->hidden;
    l->gates = mem_alloc(4 * l->steps * l->streams * l->hidden, sizeof(float), "the gates of an LSTM");
    l->h = mem_alloc(states, sizeof(float), "the states of an LSTM");
    l->c = mem_alloc(states, sizeof(float), "the states of an LSTM");
    l->bias = mem_alloc(4 * l->hidden, sizeof(float), "the biases of an LSTM");
    l->dh = mem_alloc(l->streams * l->hidden, sizeof(float), "the gradients of an LSTM's states");
    l->dc = mem_alloc(l->streams * l->hidden, sizeof(float), "the gradients of an LSTM's states");
    open_products(l);
    (void)onednn_lay_out(y, LAYOUT_CANONICAL);
    return l;
}

static void close_lstm(void *layer) {
    struct lstm *l = layer;
    onednn_packed_close(&l->forward);
    onednn_packed_close(&l->back);
    void *memory[] = {l->w_hh, l->gates, l->h, l->c, l->bias, l->dh, l->dc, l->valid};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) mem_free(memory[i]);
    mem_free(l);
}

/* A step's work in pieces, of which no two touch the same memory: piece `i` of `pieces_of`. */
static size_t pieces_of(const struct lstm *l) {
    return l->streams * ((l->hidden + COLUMNS - 1) / COLUMNS);
}
static struct cpu_lstm_row piece(const struct lstm *l, size_t step, size_t i, size_t *stream) {
    const size_t each = (l->hidden + COLUMNS - 1) / COLUMNS, begin = i % each * COLUMNS;
    *stream = i / each;
    const size_t row = step * l->streams + *stream;
    return (struct cpu_lstm_row){.hidden = l->hidden,
                                 .begin = begin,
                                 .end = begin + COLUMNS < l->hidden ? begin + COLUMNS : l->hidden,
                                 .gates = l->gates + row * 4 * l->hidden,
                                 .c_before = l->c + row * l->hidden,
                                 .c = l->c + (row + l->streams) * l->hidden};
}

/* Is this step behind the end of the stream? */
static bool is_behind(const struct lstm *l, size_t step, size_t stream) {
    return l->padded && step >= l->valid[stream];
}

/* Of a step behind the end: values or gradients of the gates, and the state after it. */
static void clear(const struct cpu_lstm_row *row, float *h, float *c) {
    const size_t bytes = (row->end - row->begin) * sizeof(float);
    for (size_t gate = 0; gate < 4; gate++) memset(row->gates + gate * row->hidden + row->begin, 0, bytes);
    memset(h + row->begin, 0, bytes);
    memset(c + row->begin, 0, bytes);
}

static void forward_step(struct lstm *l, size_t step) {
    const size_t B = l->streams, H = l->hidden;
    float *h_before = l->h + step * B * H, *h = h_before + B * H;
    onednn_packed_run(l->backend, &l->forward, h_before, l->w_hh, l->gates + step * B * 4 * H);
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < pieces_of(l); i++) {
        size_t stream;
        struct cpu_lstm_row row = piece(l, step, i, &stream);
        if (is_behind(l, step, stream))
            clear(&row, h + stream * H, row.c);
        else
            cpu_lstm_forward(&row, l->bias, h + stream * H);
    }
}

/* The state before the first step, and how many steps there are. */
static void begin_pass(struct lstm *l, const struct layer_call *call) {
    const size_t state = l->streams * l->hidden, bytes = state * sizeof(float);
    if (!l->padded) {
        memcpy(l->h, call->carry, bytes);
        memcpy(l->c, call->carry + state, bytes);
        return;
    }
    l->steps = (size_t)tensor_in_pass(&l->x, call).n / l->streams;
    cpu_valid_steps(&l->x, call, l->valid);
    memset(l->h, 0, bytes);
    memset(l->c, 0, bytes);
}

static void forward(void *layer, const struct layer_call *call, bool training) {
    (void)training;
    struct lstm *l = layer;
    begin_pass(l, call);
    const size_t B = l->streams, H = l->hidden, rows = l->steps * B, state = B * H;
    const struct places at = places_of(l);
    for (size_t i = 0; i < 4 * H; i++) l->bias[i] = call->param[at.b_ih + i] + call->param[at.b_hh + i];
    onednn_product(false, true, rows, 4 * H, l->inputs, call->x, call->param, 0, l->gates);
    onednn_packed_take(l->backend, &l->forward, call->param + at.w_hh, l->w_hh);
    for (size_t step = 0; step < l->steps; step++) forward_step(l, step);
    memcpy(call->y, l->h + state, rows * H * sizeof(float));
    if (l->padded) return;
    memcpy(call->carry, l->h + l->steps * state, state * sizeof(float));
    memcpy(call->carry + state, l->c + l->steps * state, state * sizeof(float));
}

/* The gradients of a step's sums, and of the state before it. */
static void backward_step(struct lstm *l, size_t step, const float *dy) {
    const size_t B = l->streams, H = l->hidden;
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < pieces_of(l); i++) {
        size_t stream;
        struct cpu_lstm_row row = piece(l, step, i, &stream);
        if (is_behind(l, step, stream)) {
            clear(&row, l->dh + stream * H, l->dc + stream * H);
            continue;
        }
        cpu_lstm_backward(&row, dy + (step * B + stream) * H, l->dh + stream * H, l->dc + stream * H);
    }
    if (step > 0) onednn_packed_run(l->backend, &l->back, l->gates + step * B * 4 * H, l->w_hh, l->dh);
}

static void backward(void *layer, const struct layer_call *call) {
    struct lstm *l = layer;
    const size_t H = l->hidden, I = l->inputs, rows = l->steps * l->streams;
    const struct places at = places_of(l);
    memset(l->dh, 0, l->streams * H * sizeof(float));
    memset(l->dc, 0, l->streams * H * sizeof(float));
    onednn_packed_take(l->backend, &l->back, call->param + at.w_hh, l->w_hh);
    for (size_t step = l->steps; step-- > 0;) backward_step(l, step, call->dy);
    const float beta = call->adds ? 1 : 0;
    onednn_product(true, false, 4 * H, I, rows, l->gates, call->x, beta, call->dparam);
    onednn_product(true, false, 4 * H, H, rows, l->gates, l->h, beta, call->dparam + at.w_hh);
    cpu_column_sums(rows, 4 * H, l->gates, call->adds, call->dparam + at.b_ih);
    memcpy(call->dparam + at.b_hh, call->dparam + at.b_ih, 4 * H * sizeof(float));
    if (call->dx) onednn_product(false, false, rows, I, 4 * H, l->gates, call->param, 0, call->dx);
}

const struct layer_ops onednn_lstm = {open_lstm, forward, backward, close_lstm};
