/* nets_rig.h: a net of any row of the table of models, small enough for a test, with batches of what it takes in.
 *
 *        struct net *net = open_model(model, small_setup(model, 2, 1));
 *        struct batch b = batch_open(net, 1);       // the same for the same number
 *        batch_forward(net, &b, &r);                // training, from the first step and states of 0
 *        batch_close(&b), net_close(net);
 */
#ifndef ST_TESTS_NETS_RIG_H
#define ST_TESTS_NETS_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/table.h"
#include "nets/backend.h"
#include "nets/net.h"
#include "tests/lib/test_device.h"

static inline const struct model_ops *model_named(const char *name) {
    const struct model_ops *model;
    TABLE_FIND(models, name, model);
    assert_non_null(model);
    return model;
}

/* Has the device's backend all that this model is made of? */
static inline bool model_is_served(const struct model_ops *model) {
    return model->input != MODEL_SPEECH || test_device_is_host() || backend_for(test_device())->ctc;
}

static inline struct net_setup image_setup(int batch, int side, int threads) {
    return (struct net_setup){.batch = batch,
                              .channels = 3,
                              .height = side,
                              .width = side,
                              .classes = 10,
                              .threads = threads,
                              .seed = 3,
                              .device = test_device()};
}

static inline struct net_setup text_setup(int streams, int threads) {
    return (struct net_setup){.batch = streams,
                              .sequence = 3,
                              .classes = 11,
                              .hidden = 6,
                              .layers = 2, /* of those that have several */
                              .heads = 3,
                              .dropout = 0.3,
                              .dropout_seed = 8,
                              .threads = threads,
                              .seed = 3,
                              .device = test_device()};
}

/* Few frequencies, and frames that are no multiple of what passes are rounded to. */
static inline struct net_setup speech_setup(int batch, int threads) {
    struct net_setup s = text_setup(batch, threads);
    s.sequence = 0, s.heads = 0, s.dropout = 0;
    s.channels = 1, s.height = 23, s.width = 38;
    return s;
}

/* For a model of any kind: a small vocabulary and hidden size; few pixels, and an odd number, where it takes that. */
static inline struct net_setup small_setup(const struct model_ops *model, int batch, int threads) {
    struct net_setup text = text_setup(batch, threads);
    if (model->input == MODEL_PAIRS) text.sequence = 6, text.chosen = 2;
    if (model->input == MODEL_SPEECH) return speech_setup(batch, threads);
    if (model->input != MODEL_IMAGES) return text;
    return image_setup(batch, strcmp(model->name, "resnet20") == 0 ? 9 : 32, threads);
}

static inline struct net *open_model(const struct model_ops *model, struct net_setup setup) {
    struct err e = {0};
    struct net *net = net_open(model, &setup, &e);
    if (!net) fail_msg("%s", e.text);
    return net;
}

/* Random images, utterances or tokens, and labels, for a net. */
struct batch {
    float *x;       /* NULL where the net takes tokens */
    int32_t *token; /* NULL where it takes images */
    int32_t *y;
    int32_t *length;               /* NULL where it takes neither pairs nor utterances */
    int32_t *type, *chosen, *next; /* NULL where it takes no pairs */
    int frames, label_stride;      /* of utterances */
    size_t values;                 /* of x or token */
};

static inline int32_t *batch_numbers(struct rng *r, size_t n, int least, int limit) {
    int32_t *number = mem_alloc(n, sizeof *number, "test numbers");
    for (size_t i = 0; i < n; i++) number[i] = least + (int32_t)rng_below(r, (uint32_t)(limit - least));
    return number;
}

/* Pairs: windows padded, some of the chosen rows without a label. */
static inline void batch_open_pairs(struct batch *b, const struct net_setup *s, struct rng *r) {
    const size_t batch = (size_t)s->batch, rows = batch * (size_t)s->sequence, places = batch * (size_t)s->chosen;
    b->type = batch_numbers(r, rows, 0, 2);
    b->length = batch_numbers(r, batch, 1, s->sequence + 1);
    b->chosen = batch_numbers(r, places, 0, s->sequence);
    b->next = batch_numbers(r, batch, 0, 2);
    b->y = batch_numbers(r, places, -1, s->classes);
    b->y[0] = 0; /* one counts in any case */
}

/* Utterances of all the frames that the net takes, of half of them, ...; labels few enough for each. */
static inline void batch_open_speech(struct batch *b, const struct net_setup *s, struct rng *r) {
    const size_t batch = (size_t)s->batch;
    b->frames = s->width;
    b->label_stride = 4;
    b->x = mem_alloc(b->values, sizeof *b->x, "test utterances");
    b->length = mem_alloc(batch, sizeof *b->length, "test lengths");
    b->y = batch_numbers(r, batch * (size_t)b->label_stride, 1, s->classes);
    rng_normals(r, 1, b->x, b->values);
    for (size_t i = 0; i < batch; i++) b->length[i] = i % 2 ? s->width / 2 : s->width;
    for (size_t i = 0; i < batch; i++) b->y[(i + 1) * (size_t)b->label_stride - 1] = -1;
}

static inline struct batch batch_open(const struct net *net, uint64_t number) {
    const struct net_setup *s = &net->setup;
    const size_t rows = (size_t)net_rows(s);
    const bool text = net->model->input == MODEL_TOKENS || net->model->input == MODEL_PAIRS;
    struct rng r = rng_open(17, RNG_TEST, number);
    struct batch b = {.values = text ? rows : rows * (size_t)s->channels * (size_t)s->height * (size_t)s->width};
    if (net->model->input == MODEL_SPEECH) {
        batch_open_speech(&b, s, &r);
        return b;
    }
    if (net->model->input == MODEL_PAIRS) {
        b.token = batch_numbers(&r, b.values, 0, s->classes);
        batch_open_pairs(&b, s, &r);
        return b;
    }
    b.y = mem_alloc(rows, sizeof *b.y, "test labels");
    if (text)
        b.token = mem_alloc(b.values, sizeof *b.token, "test tokens");
    else
        b.x = mem_alloc(b.values, sizeof *b.x, "test images");
    for (size_t i = 0; text && i < b.values; i++) b.token[i] = (int32_t)rng_below(&r, (uint32_t)s->classes);
    if (!text) rng_normals(&r, 1, b.x, b.values);
    for (size_t i = 0; i < rows; i++) b.y[i] = (int32_t)rng_below(&r, (uint32_t)s->classes);
    return b;
}

static inline void batch_close(struct batch *b) {
    mem_free(b->x);
    mem_free(b->token);
    mem_free(b->y);
    mem_free(b->type);
    mem_free(b->length);
    mem_free(b->chosen);
    mem_free(b->next);
}

static inline struct net_input batch_input(const struct batch *b) {
    return (struct net_input){.x = b->x,
                              .token = b->token,
                              .numbers = {b->type, b->length, b->chosen},
                              .label = {b->y, b->next},
                              .frames = b->frames,
                              .label_stride = b->label_stride};
}

/* The mean loss of the last forward pass, or the sum of both means. */
static inline double batch_loss(struct net *net) {
    struct net_result r;
    net_result(net, &r);
    double loss = r.loss / r.count;
    if (net->model->input != MODEL_PAIRS) return loss;
    net_result_of(net, 1, &r);
    return loss + r.loss / r.count;
}

/* A pass of training; the streams and the count of steps go on. */
static inline void batch_forward_on(struct net *net, const struct batch *b, struct net_result *r) {
    const struct net_input input = batch_input(b);
    if (b->length)
        net_forward_input(net, &input, r);
    else if (b->token)
        net_forward_tokens(net, b->token, b->y, r);
    else
        net_forward(net, b->x, b->y, r);
}

/* The same where everything begins: what a model carries and drops is that of the first step. */
static inline void batch_forward(struct net *net, const struct batch *b, struct net_result *r) {
    net_carry_reset(net);
    net_set_step(net, 0);
    batch_forward_on(net, b, r);
}

static inline void batch_evaluate(struct net *net, const struct batch *b, struct net_result *r) {
    const int rows = net_rows(&net->setup);
    const struct net_input input = batch_input(b);
    if (b->length)
        net_evaluate_input(net, &input, r);
    else if (b->token)
        net_evaluate_tokens(net, b->token, b->y, rows, r);
    else
        net_evaluate(net, b->x, b->y, rows, r);
}

#endif
