/* nets_layers.c: every layer of the device's backend, in every layout and precision that it has, forward and backward,
 * against the naive loops of nets_reference.h in double precision; the naive gradients against finite differences.
 * devices: cuda */
/* long: more than ten seconds at one P */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"
#include "tests/lib/nets_layouts.h"
#include "tests/lib/nets_reference.h"
#include "tests/lib/test_device.h"

/* Sums of up to 2048 products of numbers near 1 in float: their rounding errors, 2048^0.5 * 2^-24 of the size of a
 * typical sum, reach 3e-6; the tolerance, relative to the largest entry, leaves a factor of five. */
#define TOLERANCE 1.5e-5
/* A decimal digit more is lost, and another one for GPUs that have not been tried. */
#define TOLERANCE_WINOGRAD 3e-4
/* Factors are cut to 10 bits of mantissa, each wrong by up to 2^-10 of itself; of a sum's errors most cancel. */
#define TOLERANCE_TF32 3e-3
/* 7 bits, rounded: weights are wrong by up to 2^-9 of themselves, and so is what is written down. The other factors are
 * bf16 numbers on both sides. */
#define TOLERANCE_BF16 1.2e-2

struct trial {
    enum layer_kind kind;
    int n, c, h, w;          /* of x */
    int out;                 /* channels of y */
    int kernel, stride, pad; /* LAYER_EMBEDDING: kernel is the vocabulary */
    int across[3];           /* LAYER_CONV: kernel, stride and pad of columns, where not those of rows */
    bool joins, two_users, bias;
    double drop;
    int sequence; /* LAYER_LSTM: steps, n / sequence streams; LAYER_POSITION, LAYER_ATTENTION: rows */
    int heads;
    bool causal, padded, tanh, plain; /* plain: a linear layer without bias */
    bool logits;                      /* a linear layer whose y goes to a loss */
    int positions;                    /* LAYER_POSITION; 0: sequence */
    int count;                        /* LAYER_CHOOSE; numbered: which rows comes in as numbers */
    bool numbered;
};

/* Dropout's: of the net, of the layer, of the pass. The step has an upper half. */
enum { DROPOUT_SEED = 77, DROPOUT_LAYER = 5 };
static const uint64_t dropout_step = 3 + (2ull << 32);

static const struct trial trials[] = {
    /* kind          n  c  h  w  out */
    {LAYER_CONV, 2, 3, 9, 7, 16, .kernel = 3, .stride = 1, .pad = 1},
    {LAYER_CONV, 1, 16, 8, 8, 16, .kernel = 3, .stride = 1, .pad = 1},
    {LAYER_CONV, 3, 16, 7, 9, 32, .kernel = 3, .stride = 2, .pad = 1},
    {LAYER_CONV, 2, 32, 8, 8, 64, .kernel = 3, .stride = 2, .pad = 1},
    {LAYER_CONV, 2, 64, 5, 5, 64, .kernel = 3, .stride = 1, .pad = 1},
    {LAYER_CONV, 1, 5, 6, 4, 10, .kernel = 3, .stride = 1, .pad = 1},
    {LAYER_CONV, 2, 16, 5, 5, 20, .kernel = 1, .stride = 1},
    {LAYER_CONV, 1, 4, 11, 11, 8, .kernel = 5, .stride = 2, .pad = 2},
    {LAYER_CONV, 2, 3, 9, 7, 16, .kernel = 3, .stride = 1, .pad = 1, .bias = true},
    {LAYER_CONV, 3, 16, 7, 9, 32, .kernel = 3, .stride = 2, .pad = 1, .bias = true},
    {LAYER_CONV, 1, 5, 6, 4, 10, .kernel = 3, .stride = 1, .pad = 1, .bias = true},
    {LAYER_CONV, 5, 64, 11, 13, 24, .kernel = 3, .stride = 1, .pad = 1, .bias = true},
    {LAYER_CONV, 2, 3, 4, 4, 1, .kernel = 1, .stride = 1, .bias = true},
    /* Winograd's algorithm pays: whole tiles of 4 x 4, and not */
    {LAYER_CONV, 3, 32, 16, 16, 32, .kernel = 3, .stride = 1, .pad = 1},
    {LAYER_CONV, 3, 32, 15, 18, 48, .kernel = 3, .stride = 1, .pad = 1, .bias = true},
    /* VGG-16's largest and smallest images */
    {LAYER_CONV, 1, 3, 32, 32, 64, .kernel = 3, .stride = 1, .pad = 1, .bias = true},
    {LAYER_CONV, 2, 512, 2, 2, 512, .kernel = 3, .stride = 1, .pad = 1, .bias = true},
    /* windows that are no squares, those of the speech recogniser among them */
    {LAYER_CONV, 2, 1, 43, 16, 32, .kernel = 41, .stride = 2, .pad = 20, .across = {11, 2, 5}, .bias = true},
    {LAYER_CONV, 1, 32, 22, 8, 32, .kernel = 21, .stride = 2, .pad = 10, .across = {11, 1, 5}, .bias = true},
    {LAYER_CONV, 3, 5, 4, 9, 10, .kernel = 1, .stride = 1, .across = {3, 2, 1}},
    {LAYER_NORM_RELU, 4, 16, 8, 8, 16, .kernel = 0},
    {LAYER_NORM_RELU, 3, 16, 5, 7, 16, .joins = true},
    {LAYER_NORM_RELU, 2, 32, 4, 4, 32, .two_users = true},
    {LAYER_NORM_RELU, 2, 32, 20, 15, 32, .joins = true, .two_users = true},
    {LAYER_NORM_RELU, 1, 10, 3, 3, 10, .joins = true, .two_users = true},
    {LAYER_NORM_RELU, 5, 1, 1, 1, 1, .kernel = 0},
    {LAYER_NORM_RELU, 1, 6, 33, 31, 6, .two_users = true},
    {LAYER_NORM_RELU, 2, 512, 2, 2, 512, .kernel = 0},
    {LAYER_POOL, 2, 16, 8, 8, 16, .kernel = 2, .stride = 2},
    {LAYER_POOL, 3, 5, 7, 9, 5, .kernel = 2, .stride = 2},
    {LAYER_POOL, 2, 512, 2, 2, 512, .kernel = 2, .stride = 2},
    {LAYER_POOL, 1, 3, 3, 2, 3, .kernel = 2, .stride = 2},
    {LAYER_POOL, 1, 20, 9, 5, 20, .kernel = 3, .stride = 2, .pad = 1},
    {LAYER_POOL, 2, 3, 5, 6, 3, .kernel = 3, .stride = 1, .pad = 2},
    {LAYER_POOL, 2, 7, 1, 1, 7, .kernel = 1, .stride = 1},
    {LAYER_POOL, 1, 2, 11, 4, 2, .kernel = 4, .stride = 3, .pad = 3},
    {LAYER_DROPOUT, 2, 16, 5, 3, 16, .drop = 0.5},
    {LAYER_DROPOUT, 3, 5, 7, 1, 5, .drop = 0.2},
    {LAYER_DROPOUT, 1, 20, 9, 9, 20, .drop = 0.65},
    {LAYER_DROPOUT, 70, 33, 1, 1, 33, .drop = 0.35},
    {LAYER_DROPOUT, 1, 2, 1, 1, 2, .kernel = 0},
    {LAYER_EMBEDDING, 300, 1, 1, 1, 5, .kernel = 7},
    {LAYER_EMBEDDING, 37, 1, 1, 1, 301, .kernel = 50},
    {LAYER_EMBEDDING, 1, 1, 1, 1, 3, .kernel = 1},
    {LAYER_EMBEDDING, 40, 1, 1, 1, 21, .kernel = 10000},
    {LAYER_LSTM, 6, 5, 1, 1, 7, .sequence = 3},
    {LAYER_LSTM, 1, 1, 1, 1, 1, .sequence = 1},
    {LAYER_LSTM, 4, 33, 1, 1, 10, .sequence = 1},
    {LAYER_LSTM, 9, 3, 2, 1, 13, .sequence = 9},
    {LAYER_LSTM, 10, 20, 1, 1, 259, .sequence = 5},
    {LAYER_SHORTCUT, 2, 16, 8, 8, 32, .stride = 2},
    {LAYER_SHORTCUT, 1, 32, 7, 9, 64, .stride = 2},
    {LAYER_SHORTCUT, 3, 5, 5, 5, 9, .stride = 3},
    {LAYER_SHORTCUT, 2, 6, 4, 3, 6, .stride = 1},
    {LAYER_AVERAGE, 3, 64, 8, 8, 64, .kernel = 0},
    {LAYER_AVERAGE, 1, 10, 5, 3, 10, .kernel = 0},
    {LAYER_AVERAGE, 2, 512, 1, 1, 512, .kernel = 0},
    {LAYER_LINEAR, 4, 64, 1, 1, 10, .kernel = 0},
    {LAYER_LINEAR, 1, 3, 2, 5, 7, .kernel = 0},
    {LAYER_LINEAR, 2, 512, 1, 1, 10, .kernel = 0},
    {LAYER_LINEAR, 9, 21, 1, 1, 10000, .kernel = 0},
    {LAYER_LINEAR, 12, 33, 1, 1, 20, .plain = true},
    {LAYER_LINEAR, 9, 24, 1, 1, 65, .plain = true, .logits = true},
    {LAYER_LINEAR, 130, 16, 1, 1, 11, .logits = true},
    {LAYER_LINEAR, 5, 40, 1, 1, 1001, .plain = true, .logits = true},
    {LAYER_LINEAR, 3, 7, 1, 1, 129, .logits = true},
    {LAYER_LINEAR, 17, 72, 1, 1, 67, .plain = true, .logits = true},
    {LAYER_ADD, 3, 20, 5, 3, 20, .joins = true},
    {LAYER_ADD, 30, 129, 1, 1, 129, .joins = true},
    {LAYER_POSITION, 12, 20, 1, 1, 20, .sequence = 4},
    {LAYER_POSITION, 7, 33, 1, 1, 33, .sequence = 7},
    {LAYER_POSITION, 34, 1100, 1, 1, 1100, .sequence = 17},
    {LAYER_POSITION, 12, 20, 1, 1, 20, .sequence = 4, .positions = 9},
    {LAYER_EMBEDDING, 37, 1, 1, 1, 301, .kernel = 50, .joins = true},
    {LAYER_EMBEDDING, 9, 1, 1, 1, 5, .kernel = 2, .joins = true},
    {LAYER_CHOOSE, 12, 20, 1, 1, 20, .sequence = 4, .count = 1},
    {LAYER_CHOOSE, 21, 130, 1, 1, 130, .sequence = 7, .count = 3},
    {LAYER_CHOOSE, 32, 33, 1, 1, 33, .sequence = 8, .count = 5, .numbered = true},
    {LAYER_TANH, 5, 33, 1, 1, 33, .tanh = true},
    {LAYER_TANH, 2, 20, 5, 3, 20, .tanh = true},
    {LAYER_LAYER_NORM, 5, 128, 1, 1, 128, .bias = true},
    {LAYER_LAYER_NORM, 33, 384, 1, 1, 384, .kernel = 0},
    {LAYER_LAYER_NORM, 1, 7, 1, 1, 7, .bias = true},
    {LAYER_LAYER_NORM, 4, 1, 1, 1, 1, .kernel = 0},
    {LAYER_LAYER_NORM, 9, 769, 1, 1, 769, .bias = true},
    {LAYER_GELU, 5, 33, 1, 1, 33, .kernel = 0},
    {LAYER_GELU, 5, 33, 1, 1, 33, .tanh = true},
    {LAYER_GELU, 2, 20, 5, 3, 20, .kernel = 0},
    {LAYER_GELU, 40, 512, 1, 1, 512, .tanh = true},
    /* every head size, and sequences around the blocks in which they are computed */
    {LAYER_ATTENTION, 10, 96, 1, 1, 32, .sequence = 5, .heads = 2},
    {LAYER_ATTENTION, 10, 96, 1, 1, 32, .sequence = 5, .heads = 2, .causal = true},
    {LAYER_ATTENTION, 1, 48, 1, 1, 16, .sequence = 1, .heads = 1, .causal = true},
    {LAYER_ATTENTION, 192, 384, 1, 1, 128, .sequence = 64, .heads = 4, .causal = true},
    {LAYER_ATTENTION, 130, 192, 1, 1, 64, .sequence = 65, .heads = 1, .causal = true},
    {LAYER_ATTENTION, 130, 192, 1, 1, 64, .sequence = 65, .heads = 1},
    {LAYER_ATTENTION, 129, 768, 1, 1, 256, .sequence = 129, .heads = 2, .causal = true, .drop = 0.2},
    {LAYER_ATTENTION, 100, 120, 1, 1, 40, .sequence = 50, .heads = 2, .drop = 0.5},
    {LAYER_ATTENTION, 150, 144, 1, 1, 48, .sequence = 50, .heads = 3, .padded = true},
    {LAYER_ATTENTION, 390, 48, 1, 1, 16, .sequence = 130, .heads = 1, .padded = true, .causal = true, .drop = 0.1},
    {LAYER_ATTENTION, 12, 9, 1, 1, 3, .sequence = 4, .heads = 3, .padded = true, .drop = 0.3},
    {LAYER_ATTENTION, 1024, 48, 1, 1, 16, .sequence = 1024, .heads = 1, .causal = true},
};

/* The naive side of a trial; all arrays canonical. */
struct naive {
    struct reference r;
    double *x, *add, *param, *state, *y, *dy, *dy2, *dsum, *dx, *dadd, *dparam;
    double *carry, *carried; /* before and after */
};

/* No two equal values in any window of up to 4 x 4, and all of them exact in bf16: which of several largest gets the
 * gradient is not for all backends to say. */
static void fill_without_ties(const struct tensor *t, double *x) {
    struct rng r = rng_open(11, RNG_TEST, 30);
    double level[16];
    for (size_t i = 0; i < ref_floats(t); i++) {
        int place = (int)(i % (size_t)(t->h * t->w)), row = place / t->w, column = place % t->w;
        for (int k = 0; k < 16 && place == 0; k++) { /* a new plane: shuffled again, inside out */
            uint32_t other = rng_below(&r, (uint32_t)k + 1);
            level[k] = level[other];
            level[other] = 8 * k - 64;
        }
        x[i] = level[row % 4 * 4 + column % 4] + rng_below(&r, 8);
    }
}

/* Rows of numbers, not images: in the canonical layout alone. */
static bool has_rows(const struct trial *t) {
    return t->kind == LAYER_LINEAR || t->kind == LAYER_LSTM || t->kind == LAYER_POSITION ||
           t->kind == LAYER_LAYER_NORM || t->kind == LAYER_ATTENTION || t->kind == LAYER_CHOOSE;
}

static struct layer_spec spec_of(const struct trial *t) {
    struct layer_spec spec = {.kind = t->kind, .wants_dx = t->kind != LAYER_EMBEDDING, .number = DROPOUT_LAYER};
    switch (t->kind) {
    case LAYER_CONV:
        for (int i = 0; i < 2; i++) {
            const bool other = i > 0 && t->across[0];
            spec.conv.kernel[i] = other ? t->across[0] : t->kernel;
            spec.conv.stride[i] = other ? t->across[1] : t->stride;
            spec.conv.pad[i] = other ? t->across[2] : t->pad;
        }
        spec.conv.bias = t->bias;
        break;
    case LAYER_POOL:
        spec.pool.kernel = t->kernel;
        spec.pool.stride = t->stride;
        spec.pool.pad = t->pad;
        break;
    case LAYER_SHORTCUT:
        spec.shortcut.stride = t->stride;
        break;
    case LAYER_DROPOUT:
        spec.dropout.drop = t->drop;
        break;
    case LAYER_EMBEDDING:
        spec.embedding.vocabulary = t->kernel;
        break;
    case LAYER_LSTM:
        spec.lstm.sequence = t->sequence;
        break;
    case LAYER_LINEAR:
        spec.linear.bias = !t->plain;
        spec.gives_logits = t->logits;
        break;
    case LAYER_POSITION:
        spec.position.sequence = t->sequence;
        spec.position.positions = t->positions ? t->positions : t->sequence;
        break;
    case LAYER_LAYER_NORM:
        spec.layer_norm.epsilon = 1e-5;
        spec.layer_norm.bias = t->bias;
        break;
    case LAYER_GELU:
        spec.gelu.tanh = t->tanh;
        break;
    case LAYER_CHOOSE:
        spec.choose.sequence = t->sequence;
        spec.choose.count = t->count;
        break;
    case LAYER_ATTENTION:
        spec.attention.heads = t->heads;
        spec.attention.sequence = t->sequence;
        spec.attention.causal = t->causal;
        spec.attention.padded = t->padded;
        spec.attention.drop = t->drop;
        break;
    default:
        break;
    }
    return spec;
}

/* [n / sequence]: all of it, one alone, some of it, ... */
static const int32_t *lengths_of(const struct trial *t) {
    static int32_t lengths[16];
    const int length[3] = {t->sequence, 1, t->sequence / 2 + 1};
    for (int i = 0; i < t->n / t->sequence; i++) lengths[i] = length[i % 3];
    return lengths;
}

/* [n / sequence][count]: some rows twice, some not at all. */
static const int32_t *chosen_of(const struct trial *t) {
    static int32_t chosen[64];
    for (int i = 0; i < t->n / t->sequence * t->count; i++) chosen[i] = i * i % t->sequence;
    return chosen;
}

static struct naive naive_open(const struct trial *t) {
    struct naive v = {.r = {.spec = spec_of(t),
                            .dropout_seed = DROPOUT_SEED,
                            .step = dropout_step,
                            .x = {.n = t->n, .c = t->c, .h = t->h, .w = t->w},
                            .y = {.n = t->n, .c = t->out, .h = t->h, .w = t->w},
                            .joins = t->joins}};
    if (t->kind == LAYER_CONV || t->kind == LAYER_POOL) {
        v.r.y.h = (t->h + 2 * t->pad - t->kernel) / t->stride + 1;
        v.r.y.w = (t->w + 2 * t->pad - t->kernel) / t->stride + 1;
        if (t->across[0]) v.r.y.w = (t->w + 2 * t->across[2] - t->across[0]) / t->across[1] + 1;
    } else if (t->kind == LAYER_SHORTCUT) {
        v.r.y.h = (t->h + t->stride - 1) / t->stride;
        v.r.y.w = (t->w + t->stride - 1) / t->stride;
    } else if (t->kind == LAYER_AVERAGE || has_rows(t)) {
        v.r.y.h = v.r.y.w = 1;
    }
    if (t->kind == LAYER_CHOOSE) v.r.y.n = t->n / t->sequence * t->count;
    size_t x = ref_floats(&v.r.x), y = ref_floats(&v.r.y), params = ref_params(&v.r), channels = (size_t)t->c;
    v.x = random_numbers(x, 1);
    for (size_t i = 0; t->kind == LAYER_NORM_RELU && i < x; i++) v.x[i] = (float)(3 + 2 * v.x[i]); /* a mean to lose */
    if (t->kind == LAYER_POOL) fill_without_ties(&v.r.x, v.x);
    for (size_t i = 0; t->kind == LAYER_EMBEDDING && i < x; i++)
        v.x[i] = i == 0 ? t->kernel - 1 : (int)(100 * fabs(v.x[i])) % t->kernel; /* tokens, the last one among them */
    v.add = random_numbers(ref_floats(ref_add(&v.r)), 2);
    v.param = random_numbers(params, 3);
    v.state = random_numbers(2 * channels, 4);
    for (size_t i = channels; i < 2 * channels; i++) v.state[i] = (float)(0.5 + fabs(v.state[i]));
    v.dy = random_numbers(y, 5);
    v.dy2 = random_numbers(y, 6);
    v.dsum = random_numbers(y, 5);
    for (size_t i = 0; t->two_users && i < y; i++) v.dsum[i] += v.dy2[i];
    v.y = random_numbers(y, 7);
    v.dx = random_numbers(x, 8);
    v.dadd = random_numbers(ref_floats(ref_add(&v.r)), 9);
    v.dparam = random_numbers(params, 10);
    for (size_t i = 0; t->kind == LAYER_LSTM && i < params; i++)
        v.param[i] *= 1.5 / sqrt(t->out); /* gates are in between */
    v.r.lengths = t->padded ? lengths_of(t) : NULL;
    v.r.chosen = t->numbered ? chosen_of(t) : NULL;
    v.carry = random_numbers(ref_carry(&v.r), 31);
    v.carried = random_numbers(ref_carry(&v.r), 32);
    v.r.carry = v.carry;
    v.r.carried = v.carried;
    return v;
}

static void naive_close(struct naive *v) {
    double *all[] = {v->x,    v->add, v->param, v->state,  v->y,     v->dy,     v->dy2,
                     v->dsum, v->dx,  v->dadd,  v->dparam, v->carry, v->carried};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) mem_free(all[i]);
}

/* -- naive gradients against finite differences ------------------------------------------------------------------- */

/* sum dy y: a loss whose gradient with respect to y is dy. */
static double weighted(struct naive *v) {
    double sum = 0;
    ref_forward(&v->r, v->x, v->add, v->param, NULL, v->y);
    for (size_t i = 0; i < ref_floats(&v->r.y); i++) sum += v->dsum[i] * v->y[i];
    return sum;
}

/* Central differences at a few entries of `array`; h is far below the distance of most values to a kink. */
static void check_differences(struct naive *v, double *array, size_t n, const double *gradient, const char *what) {
    const double h = 1e-6;
    for (size_t i = 0; i < n; i += 1 + n / 12) {
        double kept = array[i];
        array[i] = kept + h;
        double above = weighted(v);
        array[i] = kept - h;
        double below = weighted(v);
        array[i] = kept;
        double difference = (above - below) / (2 * h);
        if (fabs(difference - gradient[i]) > 1e-5 * (1 + fabs(gradient[i])))
            fail_msg("%s, %s[%zu]: %.9g, differences say %.9g", layer_names[v->r.spec.kind], what, i, gradient[i],
                     difference);
    }
}

static void naive_gradients_are_the_differences(void **state) {
    (void)state;
    for (size_t t = 0; t < sizeof trials / sizeof *trials; t++) {
        struct naive v = naive_open(&trials[t]);
        ref_forward(&v.r, v.x, v.add, v.param, NULL, v.y);
        ref_backward(&v.r, v.x, v.y, v.param, v.dsum, v.dx, v.dadd, v.dparam);
        if (v.r.spec.wants_dx) check_differences(&v, v.x, ref_floats(&v.r.x), v.dx, "dx");
        if (v.r.joins) check_differences(&v, v.add, ref_floats(ref_add(&v.r)), v.dadd, "dadd");
        check_differences(&v, v.param, ref_params(&v.r), v.dparam, "dparam");
        naive_close(&v);
    }
}

/* -- backends against the naive loops ----------------------------------------------------------------------------- */

/* Padding, which only the CPU's layouts have, must be 0. */
static void check_padding(const struct tensor *t, float *host, const char *what) {
    for (size_t i = 0; i < ref_floats(t); i++) host[place(device_find("cpu"), t, i)] = 0;
    for (size_t i = 0; i < t->floats; i++)
        if (host[i] != 0) fail_msg("layout %d: padding of %s[%zu] is %g, not 0", t->layout, what, i, (double)host[i]);
}

/* What lies between rows that have a pitch, zeros, is made the largest numbers that there are. */
static void fill_gaps(const struct device_ops *device, const struct tensor *t, float *data) {
    if (!t->pitch) return;
    uint16_t *host = mem_alloc(t->floats, sizeof(float), "a test's tensor");
    device->to_host(host, data, t->floats * sizeof(float));
    for (int i = 0; i < t->n * t->pitch; i++) {
        if (i % t->pitch < t->c) continue;
        assert_int_equal(host[i], 0);
        host[i] = 0x7f7f;
    }
    device->to_device(data, host, t->floats * sizeof(float));
    mem_free(host);
}

/* Compares device memory with canonical numbers, relative to the largest. */
static void check_same(const struct device_ops *device, const struct tensor *t, const float *found,
                       const double *wanted, double tolerance, const struct trial *trial, const char *what) {
    size_t n = ref_floats(t);
    float *host = mem_alloc(t->floats, sizeof *host, "a test's tensor");
    device->to_host(host, found, t->floats * sizeof *host);
    double largest = 1e-3;
    for (size_t i = 0; i < n; i++) largest = fmax(largest, fabs(wanted[i]));
    for (size_t i = 0; i < n; i++) {
        double value = get(device, t, host, i);
        if (!(fabs(value - wanted[i]) <= tolerance * largest))
            fail_msg("%s, kind %d, %dx%dx%dx%d to %d channels, layout %d: %s[%zu] is %.9g, not %.9g", device->name,
                     (int)trial->kind, trial->n, trial->c, trial->h, trial->w, trial->out, t->layout, what, i, value,
                     wanted[i]);
    }
    if (device_is_host(device)) check_padding(t, host, what);
    mem_free(host);
}

static void check_flat(const struct device_ops *device, size_t n, const float *found, const double *wanted,
                       double tolerance, const struct trial *trial, const char *what) {
    struct tensor t = {.n = (int)n, .c = 1, .h = 1, .w = 1, .floats = n};
    if (n) check_same(device, &t, found, wanted, tolerance, trial, what);
}

/* new = 0.9 old + 0.1 batch, the variance with one less in the count. */
static void moved_statistics(const struct naive *v, double *state) {
    const struct tensor *t = &v->r.x;
    double count = (double)t->n * t->h * t->w;
    for (int c = 0; c < t->c; c++) {
        double mean, var;
        ref_moments(t, v->x, c, &mean, &var);
        state[c] = 0.9 * v->state[c] + 0.1 * mean;
        state[t->c + c] = 0.9 * v->state[t->c + c] + 0.1 * var * count / fmax(count - 1, 1);
    }
}

/* The layer opened, with its arrays. */
struct subject {
    const struct backend_ops *backend;
    const struct layer_ops *ops;
    const struct device_ops *device;
    void *state, *layer;
    struct tensor x, y, add;
    struct layer_call call;
    float *x_data, *add_data, *param_data, *dy2_data;
};

static struct subject subject_open(const struct device_ops *device, const struct trial *t, struct naive *v,
                                   enum precision precision, int layout) {
    const struct backend_ops *backend = backend_for(device);
    struct subject s = {.backend = backend, .ops = backend->layer[t->kind], .device = device};
    s.state = backend->open(
        &(struct backend_setup){.threads = 1, .precision = precision, .dropout_seed = DROPOUT_SEED, .adds = true});
    const bool tokens = t->kind == LAYER_EMBEDDING;
    s.x = laid_out(device, v->r.x, tokens ? LAYOUT_TOKENS : layout);
    s.y = v->r.y;
    const int32_t *number = t->padded ? v->r.lengths : v->r.chosen;
    const struct tensor numbers = {.n = t->padded ? t->n / t->sequence : v->r.y.n,
                                   .c = 1,
                                   .h = 1,
                                   .w = 1,
                                   .layout = LAYOUT_TOKENS,
                                   .floats = (size_t)v->r.y.n};
    s.add = tokens ? laid_out(device, v->r.y, layout) : s.x;
    s.layer = s.ops->open(s.state, &v->r.spec, &s.x, t->joins ? &s.add : number ? &numbers : NULL, &s.y);
    size_t params = ref_params(&v->r);
    s.x_data = upload(s.device, &s.x, v->x);
    s.add_data = upload(s.device, &s.add, v->add);
    s.param_data = upload_flat(s.device, params, v->param);
    s.dy2_data = upload(s.device, &s.y, v->dy2);
    s.call = (struct layer_call){.x = s.x_data, .add = t->joins ? s.add_data : NULL, .param = s.param_data};
    if (number) {
        s.device->to_device(s.add_data, number, (size_t)numbers.n * sizeof *number);
        s.call.add = s.add_data;
    }
    s.call.y = upload(s.device, &s.y, NULL);
    s.call.dparam = upload_flat(s.device, params, NULL);
    s.call.state = upload_flat(s.device, 2 * (size_t)t->c, v->state);
    s.call.carry = upload_flat(s.device, ref_carry(&v->r), v->carry);
    s.call.dy = upload(s.device, &s.y, v->dy);
    s.call.dy2 = t->two_users ? s.dy2_data : NULL;
    bool in_place = t->kind == LAYER_NORM_RELU && !t->joins;
    s.call.dx = in_place ? s.call.dy : upload(s.device, &s.x, NULL);
    return s;
}

static void subject_close(struct subject *s) {
    float *all[] = {s->x_data,      s->add_data,   s->param_data, s->dy2_data, s->call.y,
                    s->call.dparam, s->call.state, s->call.carry, s->call.dy,  s->call.dx};
    s->ops->close(s->layer);
    s->backend->close(s->state);
    for (size_t i = 0; i < sizeof all / sizeof *all - (s->call.dx == s->call.dy); i++) s->device->release(all[i]);
}

/* Where a backend keeps activations in bf16, the naive loops get such numbers too. */
static void cut_to_bf16(struct naive *v) {
    double *x[] = {v->x, v->add}, *y[] = {v->dy, v->dy2};
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; v->r.spec.kind != LAYER_EMBEDDING && i < ref_floats(&v->r.x); i++)
            x[k][i] = bf16_value(bf16_of((float)x[k][i]));
        for (size_t i = 0; i < ref_floats(&v->r.y); i++) y[k][i] = bf16_value(bf16_of((float)y[k][i]));
    }
}

static double tolerance_of(const struct device_ops *device, const struct trial *t, enum precision precision,
                           const struct subject *s) {
    if (has_bf16(device, &s->x) || has_bf16(device, &s->y)) return TOLERANCE_BF16;
    if (has_rows(t)) return net_precision_is_f32(precision) ? TOLERANCE : TOLERANCE_TF32;
    if (t->kind == LAYER_CONV && precision == PRECISION_F32_WINOGRAD) return TOLERANCE_WINOGRAD;
    if (t->kind == LAYER_CONV && precision == PRECISION_TF32) return TOLERANCE_TF32;
    if (t->kind == LAYER_CONV && precision == PRECISION_BF16) return TOLERANCE_BF16;
    return TOLERANCE;
}

/* What comes with a pass and matters to some layer: the number of the step. */
static void feed_step(const struct subject *s) {
    const struct tensor shape = {.n = 1, .c = 1, .h = 1, .w = 1, .floats = 1};
    const float image = 0;
    const int32_t label = 0;
    float *x = s->device->alloc(sizeof image, "an image");
    s->backend->feed(
        s->state, &(struct net_input){.x = &image, .label = {&label}, .labels = {1}, .valid = 1, .step = dropout_step},
        &shape, x, NULL);
    s->device->release(x);
}

/* Another pass, back from another dy, whose gradients are added: dparam is then the sum of both. v->dparam: the first.
 */
static void check_sum_of_passes(struct subject *s, const struct trial *t, struct naive *v, double tolerance) {
    const size_t params = ref_params(&v->r), y = ref_floats(&v->r.y);
    if (params == 0) return;
    double *first = mem_alloc(params, sizeof *first, "gradients of a pass");
    memcpy(first, v->dparam, params * sizeof *first);
    for (size_t i = 0; i < y; i++) v->dsum[i] = v->dy2[i] * (t->two_users ? 2 : 1);
    s->device->copy(s->call.dy, s->dy2_data, s->y.floats * sizeof(float));
    s->device->release(s->call.carry);
    s->call.carry = upload_flat(s->device, ref_carry(&v->r), v->carry);
    s->backend->begin(s->state, PASS_TRAIN, false);
    s->ops->forward(s->layer, &s->call, true);
    s->backend->end(s->state);
    s->backend->begin(s->state, PASS_BACKWARD_ADD, false);
    s->call.adds = true;
    s->ops->backward(s->layer, &s->call);
    s->backend->end(s->state);
    ref_backward(&v->r, v->x, v->y, v->param, v->dsum, v->dx, v->dadd, v->dparam);
    for (size_t i = 0; i < params; i++) v->dparam[i] += first[i];
    check_flat(s->device, params, s->call.dparam, v->dparam, tolerance, t, "dparam of two passes");
    mem_free(first);
}

/* The layer is open and its step fed; all that it computes. */
static void run_trial(struct subject *s, const struct trial *t, struct naive *v, double tolerance) {
    s->backend->begin(s->state, PASS_TRAIN, false);
    if (t->kind == LAYER_DROPOUT) {
        s->ops->forward(s->layer, &s->call, false);
        check_same(s->device, &s->y, s->call.y, v->x, 0, t, "y of inference");
    }
    if (t->kind == LAYER_LSTM) { /* inference gives the same and moves the carry on; back with it */
        ref_forward(&v->r, v->x, v->add, v->param, NULL, v->y);
        s->ops->forward(s->layer, &s->call, false);
        check_same(s->device, &s->y, s->call.y, v->y, tolerance, t, "y of inference");
        check_flat(s->device, ref_carry(&v->r), s->call.carry, v->carried, tolerance, t, "carry of inference");
        s->device->release(s->call.carry);
        s->call.carry = upload_flat(s->device, ref_carry(&v->r), v->carry);
    }
    if (t->kind == LAYER_NORM_RELU) { /* inference first: it must leave the statistics alone */
        ref_forward(&v->r, v->x, v->add, v->param, v->state, v->y);
        s->ops->forward(s->layer, &s->call, false);
        check_same(s->device, &s->y, s->call.y, v->y, tolerance, t, "y of inference");
        check_flat(s->device, 2 * (size_t)t->c, s->call.state, v->state, TOLERANCE, t,
                   "running statistics of inference");
    }
    ref_forward(&v->r, v->x, v->add, v->param, NULL, v->y);
    s->ops->forward(s->layer, &s->call, true);
    check_same(s->device, &s->y, s->call.y, v->y, tolerance, t, "y");
    fill_gaps(s->device, &s->y, s->call.y);
    fill_gaps(s->device, &s->y, s->call.dy);
    if (t->kind == LAYER_NORM_RELU) {
        moved_statistics(v, v->state);
        check_flat(s->device, 2 * (size_t)t->c, s->call.state, v->state, TOLERANCE, t, "running statistics");
    }
    check_flat(s->device, ref_carry(&v->r), s->call.carry, v->carried, tolerance, t, "carry");
    ref_backward(&v->r, v->x, v->y, v->param, v->dsum, v->dx, v->dadd, v->dparam);
    s->ops->backward(s->layer, &s->call);
    s->backend->end(s->state);
    if (v->r.spec.wants_dx) check_same(s->device, &s->x, s->call.dx, v->dx, tolerance, t, "dx");
    if (t->joins) check_same(s->device, &s->add, s->call.dy, v->dadd, tolerance, t, "dadd");
    check_flat(s->device, ref_params(&v->r), s->call.dparam, v->dparam, tolerance, t, "dparam");
    check_sum_of_passes(s, t, v, tolerance);
}

/* Has the library no way to compute it in this precision? */
static bool is_refused(const struct subject *s) {
    struct err why = {0};
    if (!s->backend->opened || s->backend->opened(s->state, &why)) return false;
    printf("# SKIP a layer of nets_layers: %s\n", why.text);
    return true;
}

static void one_trial(const struct device_ops *device, const struct trial *t, enum precision precision, int layout) {
    struct naive v = naive_open(t);
    if (precision == PRECISION_BF16) cut_to_bf16(&v);
    for (size_t i = 0; i < ref_floats(&v.r.y); i++) v.dsum[i] = v.dy[i] + (t->two_users ? v.dy2[i] : 0);
    struct subject s = subject_open(device, t, &v, precision, layout);
    if (!is_refused(&s)) {
        feed_step(&s);
        run_trial(&s, t, &v, tolerance_of(device, t, precision, &s));
    }
    subject_close(&s);
    naive_close(&v);
}

/* Each precision in the canonical layout, in which images come, and in its own. */
static const struct {
    enum precision precision;
    int layout;
} cuda_kinds[] = {{PRECISION_F32, CUDA_NCHW},  {PRECISION_F32_WINOGRAD, CUDA_NCHW}, {PRECISION_TF32, CUDA_NCHW},
                  {PRECISION_TF32, CUDA_NHWC}, {PRECISION_BF16, CUDA_NCHW},         {PRECISION_BF16, CUDA_NHWC_BF16}};

/* What another algorithm may be taken for, in the layouts for which there is one (nets_winograd.c says whether it is).
 */
static bool may_be_winograds(const struct trial *t) {
    return t->kind == LAYER_CONV && t->kernel == 3 && t->stride == 1 && t->c >= 32 && !t->across[0];
}

static void trial_on_cpu(const struct device_ops *device, const struct trial *t) {
    int last = has_rows(t) || t->kind == LAYER_EMBEDDING ? CPU_NCHW : CPU_NHWC;
    for (int layout = CPU_NCHW; layout <= last; layout++) {
        one_trial(device, t, PRECISION_F32, layout);
        if (may_be_winograds(t) && (layout == CPU_NCHW || layout == CPU_NCHW16C))
            one_trial(device, t, PRECISION_F32_WINOGRAD, layout);
    }
}

/* Rows come in the canonical layout or as bf16, of which an embedding's and an LSTM's begin as floats. */
static bool comes_in(const struct trial *t, int layout) {
    if (layout == LAYOUT_CANONICAL) return true;
    if (t->kind == LAYER_EMBEDDING) return layout == CUDA_NHWC_BF16 && t->joins;
    if (!has_rows(t)) return true;
    return layout == CUDA_NHWC_BF16 && t->h == 1 && t->w == 1 && t->kind != LAYER_LSTM && t->kind != LAYER_POSITION;
}

static void trial_on_gpu(const struct device_ops *device, const struct trial *t) {
    for (size_t i = 0; i < sizeof cuda_kinds / sizeof *cuda_kinds; i++) {
        struct err why = {0};
        if (!backend_for(device)->serves(cuda_kinds[i].precision, &why)) continue;                /* main has said so */
        if (cuda_kinds[i].precision == PRECISION_F32_WINOGRAD && t->kind != LAYER_CONV) continue; /* as in f32 */
        if (comes_in(t, cuda_kinds[i].layout)) one_trial(device, t, cuda_kinds[i].precision, cuda_kinds[i].layout);
    }
}

/* What is special about a largest value. On the CPU the first of several gets the gradient; NaN passes on everywhere.
 */
static void pooling_knows_ties_and_nan_in(const struct device_ops *device, enum precision precision, int layout) {
    const struct trial t = {LAYER_POOL, 2, 18, 6, 5, 18, .kernel = 3, .stride = 2, .pad = 1};
    struct naive v = naive_open(&t);
    for (size_t i = 0; i < ref_floats(&v.r.x); i++) v.x[i] = (double)(i * 7 % 11 % 3) - 2;
    struct subject s = subject_open(device, &t, &v, precision, layout);
    s.backend->begin(s.state, PASS_TRAIN, false);
    ref_forward(&v.r, v.x, NULL, v.param, NULL, v.y);
    s.ops->forward(s.layer, &s.call, true);
    check_same(device, &s.y, s.call.y, v.y, 0, &t, "y of ties");
    ref_backward(&v.r, v.x, v.y, v.param, v.dy, v.dx, v.dadd, v.dparam);
    s.ops->backward(s.layer, &s.call);
    if (device_is_host(device)) check_same(device, &s.x, s.call.dx, v.dx, TOLERANCE, &t, "dx of ties");
    float *x = mem_zalloc(s.x.floats, sizeof *x, "a test's tensor"), *y = mem_alloc(s.y.floats, sizeof *y, "another");
    for (size_t i = 0; i < ref_floats(&v.r.x); i++) put(device, &s.x, x, i, v.x[i] = i % 41 == 7 ? NAN : v.x[i]);
    device->to_device(s.x_data, x, s.x.floats * sizeof *x);
    ref_forward(&v.r, v.x, NULL, v.param, NULL, v.y);
    s.ops->forward(s.layer, &s.call, true);
    device->to_host(y, s.call.y, s.y.floats * sizeof *y);
    for (size_t i = 0; i < ref_floats(&v.r.y); i++)
        assert_int_equal(isnan(get(device, &s.y, y, i)) != 0, isnan(v.y[i]) != 0);
    s.backend->end(s.state);
    mem_free(x);
    mem_free(y);
    subject_close(&s);
    naive_close(&v);
}

static void pooling_knows_ties_and_nan(void **state) {
    (void)state;
    const struct device_ops *device = test_device();
    for (int layout = CPU_NCHW; device_is_host(device) && layout <= CPU_NHWC; layout++)
        pooling_knows_ties_and_nan_in(device, PRECISION_F32, layout);
    for (size_t i = 0; !device_is_host(device) && i < sizeof cuda_kinds / sizeof *cuda_kinds; i++)
        if (backend_for(device)->serves(cuda_kinds[i].precision, &(struct err){0}))
            pooling_knows_ties_and_nan_in(device, cuda_kinds[i].precision, cuda_kinds[i].layout);
}

static void backends_match_the_naive_loops(void **state) {
    (void)state;
    const struct device_ops *device = test_device();
    for (size_t t = 0; t < sizeof trials / sizeof *trials; t++)
        if (backend_for(device)->layer[trials[t].kind]->open)
            (device_is_host(device) ? trial_on_cpu : trial_on_gpu)(device, &trials[t]);
}

/* Precisions that the device lacks are named. */
static void name_what_is_left_out(const struct device_ops *device) {
    for (int p = PRECISION_F32; !device_is_host(device) && net_precision_names[p]; p++) {
        struct err why = {0};
        if (!backend_for(device)->serves((enum precision)p, &why))
            printf("# SKIP layers in %s: %s\n", net_precision_names[p], why.text);
    }
}

int main(void) {
    cmocka_set_message_output(CM_OUTPUT_TAP);
    name_what_is_left_out(test_device());
    const struct CMUnitTest loops[] = {cmocka_unit_test(naive_gradients_are_the_differences)};
    const struct CMUnitTest tests[] = {cmocka_unit_test(backends_match_the_naive_loops),
                                       cmocka_unit_test(pooling_knows_ties_and_nan)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (test_device_is_host()) failed += cmocka_run_group_tests(loops, NULL, NULL); /* they know no device */
    return failed;
}
