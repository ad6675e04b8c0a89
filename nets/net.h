/* net.h: a network that can be trained: what the loop sees of a model. Knows no communication.
 *
 *        struct net *net = net_open(&model_resnet20, &setup, &e);
 *        net_forward(net, x, y, &r);      // training mode
 *        net_backward(net);               // net->arena.grad = gradient of the batch's mean loss
 *        net_evaluate(net, x, y, valid, &r);
 *        net_close(net);
 */
#ifndef ST_NETS_NET_H
#define ST_NETS_NET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/image.h"
#include "nets/arena.h"

struct net;

/* In which a network computes; its parameters and their gradients are f32 in all of them. */
enum precision {
    PRECISION_F32,
    PRECISION_F32_WINOGRAD, /* f32; convolutions may be computed by Winograd's algorithm over tiles of 4 x 4, which
                             * loses a decimal digit of a float's seven (Lavin & Gray, CVPR 2016): where it is the
                             * faster one, and there is one */
    PRECISION_TF32,         /* products of 10-bit mantissas, summed in f32 */
    PRECISION_BF16          /* activations, and weights as they are multiplied, in bf16; sums in f32 */
};
extern const char *const net_precision_names[]; /* by enum precision, NULL-terminated */
/* Factors and sums in float. */
static inline bool net_precision_is_f32(enum precision precision) {
    return precision == PRECISION_F32 || precision == PRECISION_F32_WINOGRAD;
}
bool net_precision_parse(const char *name, enum precision *precision);

/* A device may record the calls of a pass and repeat them at once. */
enum net_graphs {
    NET_GRAPHS_NONE,  /* this one knows no such thing */
    NET_GRAPHS_USED,  /* they are recorded, or will be */
    NET_GRAPHS_OFF,   /* the user does not want it */
    NET_GRAPHS_FAILED /* it could not be done; every pass runs call by call */
};

struct net_setup {
    int batch;                   /* images, or streams, a step on this rank, >= 1 */
    int channels, height, width; /* of an input image; of speech 1, features of a frame, the most frames of a pass */
    int classes;
    int threads;   /* of the backend on this rank, >= 1 */
    uint64_t seed; /* of the initial parameters */
    const struct device_ops *device;
    enum precision precision;
    int sequence;          /* steps in time of a window of each stream, whose rows are net_rows; 0 or 1: images */
    uint64_t dropout_seed; /* of the masks; ranks that shall drop different elements have different ones */
    int hidden;            /* features of a word and of a state; of models with reference.hidden */
    int layers, heads;     /* of models with reference.layers */
    const struct model_reference *reference; /* of a preset; NULL: the model's. The three before: 0 as it has them */
    double dropout;                          /* of models with a `dropout`: 0 <= p < 1 */
    int chosen;     /* rows of a window that loss 0 is about, of models with reference.chosen */
    int accumulate; /* batches that make a step together: see net_backward_with; 0 or 1: each is one */
};

/* A net has one loss, or two: what BERT predicts of words that are masked, and of the next sentence. */
enum { NET_LOSSES_MAX = 2 };

/* Whole numbers that some models take besides tokens. */
enum net_numbers {
    NUMBERS_TYPES,   /* [rows] of the token */
    NUMBERS_LENGTHS, /* [batch] rows of each window that are not padding; of speech: frames of each utterance */
    NUMBERS_CHOSEN,  /* [batch][setup.chosen] rows of each window, counted in it from 0, that loss 0 is about */
    NET_NUMBERS
};

/* What comes in with a pass; all of it host memory. */
struct net_input {
    const float *x;                      /* [rows][channels][height][width], normalised; or NULL, and: */
    int frames;                          /* of speech: the width of x, 1 to setup.width; what is beyond an
                                          * utterance's own frames is not read */
    const struct image_bytes *bytes;     /* where net_takes_bytes says yes; or */
    const int32_t *token;                /* [rows], of a net that begins with build_tokens; and */
    const int32_t *numbers[NET_NUMBERS]; /* those that the model takes, others NULL */
    /* Of each loss, a label for each row of its logits; below 0: the row does not count. Of build_ctc's: [batch]
     * [label_stride], those of an utterance from 1 to classes - 1, and -1 behind them. */
    const int32_t *label[NET_LOSSES_MAX];
    int label_stride;
    int valid; /* rows, or utterances, of loss 0 that count, the first ones; 0: all, below 0: none */
    /* What the gradient of loss 0 is the sum over, in place of its own rows that count: their mean over several passes,
     * on other ranks say, that have unlike numbers of them; 0: those. */
    double mean_over;
    /* Set by net.c. */
    int counts[NET_NUMBERS];     /* how many numbers of each kind */
    int labels[NET_LOSSES_MAX];  /* how many */
    double over[NET_LOSSES_MAX]; /* what gradients of each loss are divided by */
    uint64_t step;               /* training passes before this one, for dropout */
};

struct net_result {
    double loss; /* sum over the rows of the softmax cross-entropy, or over the utterances of CTC's loss [nats] */
    int correct; /* rows whose largest logit is the label's (ties: the lower class wins); 0 of CTC */
    int count;   /* rows, or utterances (nets/ctc.h), that count */
};

/* How a paper trains a model: the defaults of its options. */
struct model_reference {
    const char *data; /* what --data takes */
    int batch;        /* images, or streams, per rank */
    double lr, momentum, weight_decay;
    double clip_norm; /* of the mean gradient; 0: it is not clipped */
    const char *lr_schedule;
    double lr_warmup, epochs;
    double density; /* of the sparse exchanges */
    int sequence;   /* words of a window; 0: the model takes images */
    int hidden;     /* 0: its size cannot be chosen */
    /* Of transformers; 0 or NULL elsewhere. */
    int layers, heads;
    double dropout;
    bool bias, gelu_tanh;
    const char *optimiser; /* which lr, weight decay and beta2 are for; NULL: sgd */
    double sgd_lr;         /* where that is none: for sgd, which then has no weight decay */
    double beta2;
    int64_t steps;              /* the length of the run, in place of epochs */
    int lr_warmup_steps;        /* in place of lr_warmup, of which one at most is above 0 */
    int samples;                /* windows of a sampled evaluation */
    int chosen;                 /* rows of a window that loss 0 is about */
    const char *density_warmup; /* NULL: gTop-k's, which is in epochs */
};

/* A size of a model, with what goes with it. */
struct model_preset {
    const char *name;
    size_t parameters; /* for so many classes */
    int classes;
    struct model_reference reference;
};

/* CIFAR-10 in the gTop-k paper (Table III), the same for its two networks. It does not say where the rate falls. */
#define MODEL_REFERENCE_CIFAR10                                                                                        \
    {                                                                                                                  \
        .data = "cifar10", .batch = 128, .lr = 0.1, .momentum = 0.9, .weight_decay = 1e-4,                             \
        .lr_schedule = "step:50%,75%", .lr_warmup = 4, .epochs = 140, .density = 0.001                                 \
    }

/* What a model takes in. */
enum model_input { MODEL_IMAGES, MODEL_TOKENS, MODEL_PAIRS, MODEL_SPEECH };
extern const char *const model_input_names[]; /* by enum model_input: "images", "text", "pairs of texts", "speech" */

struct model_ops {
    const char *name; /* what --model takes */
    const char *summary;
    const char *paper;
    enum model_input input;
    size_t parameters; /* for 10 classes and 3 x 32 x 32 images; for 10,000 words and reference.hidden */
    int classes;       /* of that number: 10 or 10,000 */
    struct model_reference reference;
    const struct model_preset *presets; /* ended by one without a name, the first is that reference; NULL: none */
    bool windows; /* rows are windows from anywhere in a text, one after the other ([batch][sequence]), which carry
                   * nothing; else steps of time of streams ([sequence][batch]) */
    /* The dropout that goes with this many hidden features. NULL: the model has none. */
    double (*dropout)(const struct model_reference *reference, int hidden);
    /* Builds the layers (net_build.h). False: this input cannot be taken, *e says why. */
    bool (*build)(struct net *net, struct err *e);
};

extern const struct model_ops *const models[]; /* every row, NULL-terminated */
const char *model_name(size_t i);              /* the i-th row's, NULL past the end */

struct net {
    const struct model_ops *model;
    struct net_setup setup;
    struct arena arena;
    void *impl; /* layers, activations, backend: net.c's own */
};

/* The preset of this name, or NULL; where the model has none at all, NULL, too. */
const struct model_preset *model_preset(const struct model_ops *model, const char *name);
void model_preset_names(const struct model_ops *model, char *text, size_t size); /* "a, b"; "none" */
/* What goes with this setup: a preset's, or the model's own. */
static inline const struct model_reference *net_reference(const struct model_ops *model, const struct net_setup *s) {
    return s->reference ? s->reference : &model->reference;
}

/* Rows of x, labels and logits: images; or, step of time by step of time, a row of each stream: sequence * batch; or
 * those of one window after the other (model->windows). */
int net_rows(const struct net_setup *setup);

/* Parameters are initialised (a function of setup.seed alone: He-normal weights, BN scale 1 and shift 0, LSTMs uniform
 * in +-1 / sqrt(hidden), biases 0, transformers as gpt.c says), running means 0 and variances 1, carry 0. NULL on a
 * user's mistake. */
struct net *net_open(const struct model_ops *model, const struct net_setup *setup, struct err *e);
void net_close(struct net *net);

/* Are passes recorded now? why: in words, of NET_GRAPHS_FAILED, which comes in the first passes if it does; as long as
 * the net is open. */
enum net_graphs net_graphs(const struct net *net, const char **why);

/* Was it to compute in f32-winograd, and computes all as in f32, as the library has no such algorithm here or it pays
 * for no layer? False where the backend does not say. */
bool net_lacks_winograd(const struct net *net);

/* Floats that a net takes, before it has any: parameters (and as many gradients), running statistics, states of the
 * streams, activations. What a backend keeps besides is not in it. False on a user's mistake. */
struct net_size {
    size_t n, n_state, n_carry, activations;
};
bool net_measure(const struct model_ops *model, const struct net_setup *setup, struct net_size *size, struct err *e);

/* The number of the next training pass, which dropout draws its masks from: 0 in a fresh net, and net_forward* counts
 * on. For runs that are resumed. */
void net_set_step(struct net *net, uint64_t step);

/* The streams begin anew: net->arena.carry becomes 0. */
void net_carry_reset(struct net *net);

/* x: host, [rows][channels][height][width] float, normalised; y: host, [rows], 0 <= y < classes. Where a device works
 * beside the host, these return while it is still at work, unless they have something to bring (result not NULL). */
void net_forward(struct net *net, const float *x, const int32_t *y, struct net_result *result);
/* The same from bytes, augmented and normalised on the device; only where net_takes_bytes says yes. */
void net_forward_bytes(struct net *net, const struct image_bytes *bytes, const int32_t *y, struct net_result *result);
bool net_takes_bytes(const struct net *net);
/* The same from tokens, host, [rows], for a net that begins with build_tokens. One outside the vocabulary ends the
 * job. */
void net_forward_tokens(struct net *net, const int32_t *token, const int32_t *y, struct net_result *result);
/* The same from all that a model takes. */
void net_forward_input(struct net *net, const struct net_input *input, struct net_result *result);
/* Of the last forward pass; for a caller that gave no result then. Of loss `which`; the others: of the first. */
void net_result(struct net *net, struct net_result *result);
void net_result_of(struct net *net, int which, struct net_result *result);
/* Of the last forward pass of a net with CTC's loss: the class of the largest logit in each step of each utterance
 * (ties: the lower class wins), [batch][*steps], -1 behind its end. Which steps repeat a class, and which are the blank
 * 0, is the caller's to see. Valid until the next pass. */
const int32_t *net_best_path(struct net *net, int *steps);
/* After net_forward: arena.grad = the gradient of the batch's mean loss, or of the sum of the means of both, each over
 * the rows that count, divided by setup.accumulate. */
void net_backward(struct net *net);
/* The same; or with `adds`, which wants an accumulate of 2 at least, that gradient is added to what the last backward
 * pass has left in arena.grad. ready: NULL, or called after each layer that has parameters, from the last to the first:
 * ready(context, from) where arena.grad[from..n-1] is final now. The mean gradient of N batches, N = setup.accumulate:
 *
 *        for (int i = 0; i < N; i++) {
 *            net_forward(net, x[i], y[i], &r);
 *            net_backward_with(net, i > 0, NULL, NULL);
 *        }
 *
 * Their rows count alike, as those of one batch of N times the size would, where as many rows count in each batch or
 * input->mean_over says over how many the mean is to be; batch normalisation takes the statistics of each batch by
 * itself, and moves the running ones N times. Nothing is multiplied afterwards, no pass over the gradients is made
 * besides: the loss of each batch has the factor 1 / N. */
void net_backward_with(struct net *net, bool adds, void (*ready)(void *context, size_t from), void *context);

/* Inference mode (running statistics); the streams' carry moves on all the same. Only the first `valid` rows of the
 * batch count; the rest of x and y is still read. */
void net_evaluate(struct net *net, const float *x, const int32_t *y, int valid, struct net_result *result);
void net_evaluate_tokens(struct net *net, const int32_t *token, const int32_t *y, int valid, struct net_result *result);
void net_evaluate_input(struct net *net, const struct net_input *input, struct net_result *result);

/* Bytes on the device: parameters, gradients, statistics, carry, activations and their gradients; not what the
 * backend's library takes for itself. */
size_t net_device_bytes(const struct net *net);

/* "oneDNN 2.6.3": the library that computes on this device, for --version and logs. */
const char *net_backend_version(const struct device_ops *device);

#endif
