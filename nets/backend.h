/* backend.h: the layers a model can be built of, behind a table: one row per library that computes them (backends.def).
 *
 * net.c owns all tensors and calls the layers in order; a backend knows how one layer is computed. Memory is that of
 * the backend's device. Every layer takes one tensor x (a joining one a second, `add`) and writes one tensor y. In
 * the backward pass it is given dy, the gradient of the loss with respect to y, and writes dx and the gradients of
 * its parameters, or adds them to those of the batches before (layer_call.adds). A layer may keep from its forward pass
 * what its backward pass needs; x, add and y themselves stay as they were.
 *
 *      kind              forward                                     parameters             state
 *      LAYER_CONV        y = w * x [+ b], square window              w [c_y][c_x][k][k]     -
 *                                                                    [, b [c_y]]
 *      LAYER_NORM_RELU   y = max(0, norm(x) [+ add])                 scale [c], shift [c]   mean [c], variance [c]
 *      LAYER_SHORTCUT    y = x at every stride-th row and column,    -                      -
 *                        as many zero channels before as after
 *      LAYER_AVERAGE     y = mean of x over its positions            -                      -
 *      LAYER_LINEAR      y = w x + b                                 w [c_y][c_x], b [c_y]  -
 *      LAYER_POOL        y = max of x over each square window        -                      -
 *      LAYER_DROPOUT     y = x m / (1 - p), m 0 or 1; inference: x   -                      -
 *      LAYER_EMBEDDING   y [row] = w [token of the row]              w [tokens][c_y]        -
 *      LAYER_LSTM        y [step] = h of the step                    see below              -
 *
 * LAYER_CONV with a bias before LAYER_NORM_RELU: the norm takes away again what the bias adds, but for the running
 * mean. So a backend that folds_bias has the convolution leave it out (spec.folded) and the norm reckon with it
 * (layer_call.bias); its gradient is 0.
 *
 * LAYER_POOL: padding never wins, so that every window must hold a pixel; NaN does. The gradient of a window goes to
 * its largest element: of several equal ones to one of them, on the CPU the first by rows, on a GPU the one that
 * cuDNN's deterministic pooling takes, which its manual does not name.
 *
 * LAYER_DROPOUT: the mask m is a function of seed, step, layer and canonical index alone (dropout.h), so every device
 * drops the same elements, and nothing is kept for the backward pass.
 *
 * LAYER_EMBEDDING: x holds tokens (LAYOUT_TOKENS), each less than the vocabulary, as net.c has made sure. dw is dense;
 * the rows of equal tokens are added up in their order.
 *
 * LAYER_LSTM: rows are steps of time, each a row of every stream (spec.sequence steps, B streams, H = c_y):
 *      i, f, o = sigmoid(sum), g = tanh(sum), sum = w_ih x + b_ih + w_hh h' + b_hh       gates in the order i, f, g, o
 *      c = f c' + i g,  y = h = o tanh(c)                                            h', c': those of the step before
 * Parameters w_ih [4 H][c_x], w_hh [4 H][H], b_ih [4 H], b_hh [4 H]. Before the first step h' and c' are the layer's
 * carry, hidden [B][H] and cell [B][H], which every forward pass, also of inference, leaves as they are after the last.
 * No gradient goes into them: backpropagation through time ends with the window. Backward comes once after a forward
 * pass of training.
 *
 * Two users of one tensor each write a gradient of it. Only the layer LAYER_NORM_RELU adds them up, inside its own
 * pass over dy; so only its y may have two users (net_build.c watches over that).
 */
#ifndef ST_NETS_BACKEND_H
#define ST_NETS_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/image.h"
#include "nets/net.h"

/* In every backend; other codes are the backend's own. */
enum {
    LAYOUT_CANONICAL = 0, /* [n][c][h][w], row-major */
    LAYOUT_TOKENS = -1    /* [n] int32_t in place of floats: an input of LAYER_EMBEDDING */
};

struct tensor {
    int n, c, h, w; /* images or rows, channels, height, width (after LAYER_AVERAGE and of rows h = w = 1) */
    int layout;     /* set by the `open` of the layer that writes it; the input of the net is canonical
                     * or tokens */
    size_t floats;  /* of memory, with padding; likewise */
};

enum layer_kind {
    LAYER_CONV,
    LAYER_NORM_RELU,
    LAYER_SHORTCUT,
    LAYER_AVERAGE,
    LAYER_LINEAR,
    LAYER_POOL,
    LAYER_DROPOUT,
    LAYER_EMBEDDING,
    LAYER_LSTM,
    LAYER_KINDS
};

struct layer_spec {
    enum layer_kind kind;
    int kernel, stride, pad; /* of a window, in pixels; LAYER_SHORTCUT: stride */
    bool wants_dx;           /* somebody asks for the gradient of x */
    bool bias;               /* LAYER_CONV: has one */
    bool folded;             /* ... and leaves it to the norm behind it */
    double drop;             /* LAYER_DROPOUT: p, 0 <= p < 1 */
    int vocabulary;          /* LAYER_EMBEDDING: tokens */
    int sequence;            /* LAYER_LSTM: steps of time, >= 1; x.n is a multiple of it */
    int number;              /* of the layer in its net, from 0: no two LAYER_DROPOUT have the same masks */
};

/* What comes in with a pass. */
struct net_input {
    const float *x;                  /* host, [n][c][h][w], normalised; or NULL, and: */
    const struct image_bytes *bytes; /* of a backend that takes_bytes; or */
    const int32_t *token;            /* host, [n], where the input is of LAYOUT_TOKENS */
    const int32_t *label;            /* host, [n] */
    int valid;                       /* images or rows that count, the first ones */
    uint64_t step;                   /* training passes before this one: LAYER_DROPOUT */
};

/* PASS_BACKWARD overwrites the gradients of parameters, PASS_BACKWARD_ADD adds to them. */
enum net_pass { PASS_TRAIN, PASS_BACKWARD, PASS_BACKWARD_ADD, PASS_INFER, NET_PASSES };

struct backend_setup {
    int threads;
    enum precision precision;
    uint64_t dropout_seed;
    bool adds; /* PASS_BACKWARD_ADD may come */
};

/* The arrays of one call, all on the device. */
struct layer_call {
    const float *x, *add; /* add: NULL where nothing joins */
    float *y;
    const float *param; /* the layer's slices, one after the other */
    float *dparam;      /* backward overwrites it or, where it `adds`, adds to it */
    const float *bias;  /* LAYER_NORM_RELU: x is to be seen as x + bias [c]; NULL: as it is */
    float *state;       /* the layer's slices; training updates it */
    float *carry;       /* likewise; every forward pass updates it */
    /* Backward: dy is overwritten. LAYER_NORM_RELU leaves the gradient of `add` in it, and its dx is dy itself
     * where nothing joins (each element is read before it is written). */
    float *dy;
    const float *dy2; /* the second user's gradient of y, or NULL */
    float *dx;        /* NULL unless spec.wants_dx */
    /* Backward: dparam is as this layer's last backward pass left it, so that a layer may add to a copy of its own. */
    bool adds;
};

/* x of LAYOUT_TOKENS. */
static inline const int32_t *layer_tokens(const struct layer_call *call) {
    return (const int32_t *)(const void *)call->x;
}

struct optimiser_ops;

struct layer_ops {
    /* Chooses layout and size of *y, whose shape is set. x, add: tensors already opened; add may be NULL. */
    void *(*open)(void *backend, const struct layer_spec *spec, const struct tensor *x, const struct tensor *add,
                  struct tensor *y);
    void (*forward)(void *layer, const struct layer_call *call, bool training);
    void (*backward)(void *layer, const struct layer_call *call);
    void (*close)(void *layer);
};

struct backend_ops {
    const char *name;
    const char *device; /* name of the row of base/device/devices.def whose memory it works on */
    const char *(*version)(void);
    bool takes_bytes; /* net_input.bytes: augments and normalises by itself */
    bool folds_bias;  /* see above */
    /* Can it compute in this precision here? If not, *why says so. */
    bool (*serves)(enum precision precision, struct err *why);
    void *(*open)(const struct backend_setup *setup);
    /* After the layers were opened: can all of them be computed? If not, *why says so. NULL: they can. */
    bool (*opened)(const void *backend, struct err *why);
    void (*close)(void *backend);
    /* Takes the input of the next pass: images or tokens to x (device), whose layout and shape is given; labels and
     * valid are kept for loss, step for dropout. The host memory may be used again. */
    void (*feed)(void *backend, const struct net_input *input, const struct tensor *shape, float *x);
    /* Around the calls of a pass: this thread now works for this net. False: the backend has just repeated the same
     * pass of earlier, which it recorded; the layers are not to be called, nor `end`. whole: nobody needs to know when
     * a layer is done; the calls are the same each time. */
    bool (*begin)(void *backend, enum net_pass pass, bool whole);
    /* False: it could not be recorded, and nothing of it was done: the same pass is begun once more. */
    bool (*end)(void *backend);
    /* Are passes recorded? why: of NET_GRAPHS_FAILED. NULL: there is no such thing here. */
    enum net_graphs (*graphs)(const void *backend, const char **why);
    const struct layer_ops *layer[LAYER_KINDS];
    /* Softmax cross-entropy and top-1 over the first `valid` rows (of feed) of logits [n][classes].
     * dlogits: [n][classes], the gradient of their sum divided by `over`: n where the mean over the n rows is meant, a
     * multiple of it where other passes add their part to that; NULL where it is not asked for. */
    void (*loss)(void *backend, const float *logits, int n, int classes, double over, float *dlogits);
    /* What the last loss was; waits for it. */
    void (*result)(void *backend, struct net_result *result);
    const struct optimiser_ops *const *optimisers; /* for memory of this device, by the names of optimisers.def,
                                                    * NULL-terminated; NULL: optimisers.def's own */
};

extern const struct backend_ops *const backends[]; /* every row but those of plugins, NULL-terminated */

/* The row that works on the memory of this device, or NULL. */
const struct backend_ops *backend_for(const struct device_ops *device);

#endif
