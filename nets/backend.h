/* backend.h: the layers a model can be built of, behind a table: one row per library that computes them (backends.def).
 *
 * net.c owns all tensors and calls the layers in order; a backend knows how one layer is computed. Memory is that of
 * the backend's device. Every layer takes one tensor x (a joining one a second, `add`) and writes one tensor y. In
 * the backward pass it is given dy, the gradient of the loss with respect to y, and writes dx and the gradients of
 * its parameters, or adds them to those of the batches before (layer_call.adds). A layer may keep from its forward pass
 * what its backward pass needs; x, add and y themselves stay as they were.
 *
 * The kinds of layers are rows of nets/layers/layers.def; the header of each says what it computes.
 *
 * Two users of one tensor each write a gradient of it. Some layers add two gradients of their y up in their own pass
 * over them (layer_spec.sums_two); what is more than that, net.c has the backend add up before.
 */
#ifndef ST_NETS_BACKEND_H
#define ST_NETS_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/image.h"
#include "nets/ctc.h"
#include "nets/net.h"

/* In every backend; other codes are the backend's own. */
enum {
    LAYOUT_CANONICAL = 0, /* [n][c][h][w], row-major */
    LAYOUT_TOKENS = -1    /* [n] int32_t in place of floats: tokens, and what else comes in as whole numbers */
};

struct tensor {
    int n, c, h, w; /* images or rows, channels, height, width (after LAYER_AVERAGE and of rows h = w = 1) */
    int layout;     /* set by the `open` of the layer that writes it; the input of the net is canonical
                     * or tokens */
    size_t floats;  /* of memory, with padding; likewise */
    /* Where passes differ in length: frames of the input for one step in time of this tensor, which is a column of
     * images, or batch rows one after the other (h = w = 1). w, n and floats are then those of the longest pass. 0: all
     * passes have the same size. */
    int frames;
    /* Of logits: elements from one row to the next, where that is more than c; else 0; likewise. Behind its c elements
     * a row of their gradient is 0. */
    int pitch;
};

enum layer_kind {
#define LAYER(KIND, name, onednn, cudnn) LAYER_##KIND,
#include "nets/layers/layers.def"
    LAYER_KINDS
};
extern const char *const layer_names[]; /* [LAYER_KINDS] */

struct layer_spec {
    enum layer_kind kind;
    bool takes_tokens; /* x is of LAYOUT_TOKENS */
    bool sums_two;     /* backward takes a second gradient of y, layer_call.dy2 */
    bool in_place;     /* backward's dx is dy where nothing joins */
    bool wants_dx;     /* somebody asks for the gradient of x */
    bool gives_logits; /* y goes to a loss, and to nobody else: it may have a pitch */
    int number;        /* of the layer in its net, from 0 */
    union {
#define OPTIONS(name, fields)                                                                                          \
    struct {                                                                                                           \
        fields                                                                                                         \
    } name;
#include "nets/layers/layers.def"
    };
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
    int frames, batch;  /* of the pass, where tensors have frames */
    /* Backward: dy may be overwritten. A layer that joins leaves the gradient of `add` in it. dx is dy itself where
     * nothing joins in a layer that works in_place (each element is read before it is written). */
    float *dy;
    const float *dy2; /* another gradient of y, which is their sum; or NULL */
    float *dx;        /* NULL unless spec.wants_dx */
    /* Backward: dparam is as this layer's last backward pass left it, so that a layer may add to a copy of its own. */
    bool adds;
};

/* x of LAYOUT_TOKENS. */
static inline const int32_t *layer_tokens(const struct layer_call *call) {
    return (const int32_t *)(const void *)call->x;
}

/* The numbers that came in with the pass, where `add` is of LAYOUT_TOKENS. */
static inline const int32_t *layer_numbers(const struct layer_call *call) {
    return (const int32_t *)(const void *)call->add;
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
extern const struct layer_ops layer_missing; /* all NULL; in the plugin, too */

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
    /* Takes the input of the next pass, and the host memory may be used again: images or tokens to x (device), whose
     * layout and shape is given (of utterances, by frames_of_input); the whole numbers that come in besides, each kind
     * to its own (device; of those that input has). labels, valid (of which nothing is special here) and over are kept
     * for loss, step for dropout. */
    void (*feed)(void *backend, const struct net_input *input, const struct tensor *shape, float *x,
                 float *const numbers[NET_NUMBERS]);
    /* Around the calls of a pass: this thread now works for this net. False: the backend has just repeated the same
     * pass of earlier, which it recorded; the layers are not to be called, nor `end`. whole: nobody needs to know when
     * a layer is done; the calls are the same each time. */
    bool (*begin)(void *backend, enum net_pass pass, bool whole);
    /* False: it could not be recorded, and nothing of it was done: the same pass is begun once more. */
    bool (*end)(void *backend);
    /* Are passes recorded? why: of NET_GRAPHS_FAILED. NULL: there is no such thing here. */
    enum net_graphs (*graphs)(const void *backend, const char **why);
    /* Of PRECISION_F32_WINOGRAD, after the layers were opened: is any convolution computed so? NULL: it is not said. */
    bool (*winograd)(const void *backend);
    const struct layer_ops *layer[LAYER_KINDS];
    /* to += from, gradients of a tensor of this shape and layout. */
    void (*add)(void *backend, const struct tensor *shape, const float *from, float *to);
    /* Softmax cross-entropy and top-1 of loss `which` over the rows of logits, a tensor [n][c] of this shape,
     * layout and pitch, that count: those of the first `valid` (of feed; in loss 0) whose label is not below 0.
     * dlogits: likewise, the gradient of their sum divided by `over` (of feed): their number where the mean is meant, a
     * multiple of it where other passes add their part to that; 0 in rows whose label is below 0; NULL where it is not
     * asked for. */
    void (*loss)(void *backend, int which, const struct tensor *shape, const float *logits, float *dlogits);
    /* CTC's loss (nets/ctc.h) in place of loss 0, and the best path; NULL: this backend has none. */
    void (*ctc)(void *backend, const struct ctc_call *call);
    /* [batch][steps] of the last pass, see net_best_path; waits for it. */
    const int32_t *(*best_path)(void *backend);
    /* What the last loss `which` was; waits for it. */
    void (*result)(void *backend, int which, struct net_result *result);
    int losses;                                    /* that a net may have here */
    const struct optimiser_ops *const *optimisers; /* for memory of this device, by the names of optimisers.def,
                                                    * NULL-terminated; NULL: optimisers.def's own */
};

extern const struct backend_ops *const backends[]; /* every row but those of plugins, NULL-terminated */

/* The row that works on the memory of this device, or NULL. */
const struct backend_ops *backend_for(const struct device_ops *device);

#endif
