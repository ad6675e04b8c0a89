/* backend_onednn_attention.c: attention on the CPU. Threads share the heads of the sequences. Of each head some queries
 * are taken at a time, so that their scores stay in a cache from the product that makes them to the one that uses them;
 * backward from the last queries to the first, whose products with a causal mask are the narrower ones, so that the
 * first product over the keys overwrites and the others add. */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "base/mem.h"
#include "nets/cpu/cpu_attention.h"
#include "nets/cpu/cpu_dropout.h"
#include "nets/onednn/backend_onednn.h"

enum { QUERIES = 64, GAP = 16 /* floats between rows of scores, lest all of them meet in the same sets of a cache */ };

struct attention {
    struct onednn *backend;
    size_t sequences, T, heads, d;
    bool causal, padded;
    struct dropout drop; /* scale 1: none */
    float scale;         /* 1 / sqrt(d) */
    float *log_sum;      /* [sequences][heads][T] of the last forward pass */
    float *scratch;      /* [threads] of the size of struct scratch */
};

/* A thread's. */
struct scratch {
    float *score, *dscore; /* [QUERIES][T + GAP] each */
    float *factor;         /* [T + 2 CPU_DROPOUT_PIECE] of the dropout of a row */
};

static size_t scratch_floats(const struct attention *l) {
    return 2 * QUERIES * (l->T + GAP) + l->T + 2 * CPU_DROPOUT_PIECE;
}

static struct scratch scratch_of(const struct attention *l) {
    float *at = l->scratch + (size_t)omp_get_thread_num() * scratch_floats(l);
    return (struct scratch){at, at + QUERIES * (l->T + GAP), at + 2 * QUERIES * (l->T + GAP)};
}

static void *open_attention(void *backend, const struct layer_spec *spec, const struct tensor *x,
                            const struct tensor *add, struct tensor *y) {
    if (x->layout != CPU_NCHW) die("attention needs rows in the canonical layout");
    if (add && add->layout != LAYOUT_TOKENS) die("attention needs lengths that are whole numbers");
    struct attention *l = mem_zalloc(1, sizeof *l, "an attention layer");
    l->backend = backend;
    l->T = (size_t)spec->attention.sequence;
    l->sequences = (size_t)x->n / l->T;
    l->heads = (size_t)spec->attention.heads;
    l->d = (size_t)y->c / l->heads;
    l->causal = spec->attention.causal;
    l->padded = spec->attention.padded;
    l->drop = dropout_of(l->backend->dropout_seed, spec->number, spec->attention.drop);
    l->scale = (float)(1 / sqrt((double)l->d));
    l->log_sum = mem_zalloc(l->sequences * l->heads * l->T, sizeof(float), "the sums of an attention layer");
    l->scratch = mem_zalloc((size_t)l->backend->threads * scratch_floats(l), sizeof(float), "scores of attention");
    (void)onednn_lay_out(y, CPU_NCHW);
    return l;
}

/* One head of one sequence, and its queries [first, first + count). */
struct block {
    size_t head; /* of all: sequence * heads + head */
    size_t keys; /* that these queries see, the first ones */
    size_t first, count;
    size_t length; /* of the sequence */
    size_t x_at, y_at, x_row, y_row;
};

static struct block block_of(const struct attention *l, const struct layer_call *call, size_t head) {
    const size_t sequence = head / l->heads, C = l->heads * l->d;
    struct block k = {.head = head, .length = l->T, .x_row = 3 * C, .y_row = C};
    if (l->padded) {
        const int32_t length = ((const int32_t *)(const void *)call->add)[sequence];
        if (length < 1 || (size_t)length > l->T) die("sequence %zu has a length of %d", sequence, (int)length);
        k.length = (size_t)length;
    }
    k.x_at = sequence * l->T * k.x_row + head % l->heads * l->d;
    k.y_at = sequence * l->T * k.y_row + head % l->heads * l->d;
    return k;
}

/* Keys that query i sees. */
static size_t keys_of(const struct attention *l, const struct block *k, size_t i) {
    return l->causal && i + 1 < k->length ? i + 1 : k->length;
}

static void take_queries(const struct attention *l, struct block *k, size_t first) {
    k->first = first;
    k->count = first + QUERIES < l->T ? QUERIES : l->T - first;
    k->keys = keys_of(l, k, first + k->count - 1);
}

/* factor [T]: of the dropout of query i's probabilities; NULL: nothing is dropped. */
static const float *factors_of(const struct attention *l, const struct block *k, const struct scratch *s, size_t i) {
    const size_t first = (k->head * l->T + i) * l->T, from = first / CPU_DROPOUT_PIECE * CPU_DROPOUT_PIECE;
    for (size_t at = from; at < first + k->keys; at += CPU_DROPOUT_PIECE)
        cpu_dropout_factors(&l->drop, l->backend->step, (uint32_t)(at / 4), s->factor + (at - from));
    return s->factor + (first - from);
}

static void scores(const struct attention *l, const struct block *k, const float *x, float *score) {
    const float *q = x + k->x_at + k->first * k->x_row, *key = x + k->x_at + k->y_row;
    onednn_product_within(false, true, k->count, k->keys, l->d, q, k->x_row, key, k->x_row, 0, score, l->T + GAP);
}

static void forward_block(struct attention *l, const struct block *k, const struct layer_call *call, bool drops) {
    const struct scratch s = scratch_of(l);
    const float *value = call->x + k->x_at + 2 * k->y_row;
    scores(l, k, call->x, s.score);
    for (size_t i = 0; i < k->count; i++) {
        const size_t n = keys_of(l, k, k->first + i);
        float *p = s.score + i * (l->T + GAP);
        l->log_sum[k->head * l->T + k->first + i] = cpu_attention_softmax(p, n, l->scale);
        if (drops) cpu_attention_drop(p, factors_of(l, k, &s, k->first + i), n);
        memset(p + n, 0, (k->keys - n) * sizeof *p);
    }
    onednn_product_within(false, false, k->count, l->d, k->keys, s.score, l->T + GAP, value, k->x_row, 0,
                          call->y + k->y_at + k->first * k->y_row, k->y_row);
}

static void forward(void *layer, const struct layer_call *call, bool training) {
    struct attention *l = layer;
#pragma omp parallel for schedule(static)
    for (size_t head = 0; head < l->sequences * l->heads; head++) {
        struct block k = block_of(l, call, head);
        for (size_t first = 0; first < l->T; first += QUERIES) {
            take_queries(l, &k, first);
            forward_block(l, &k, call, training && l->drop.scale > 1);
        }
    }
}

/* With dp = dy v^T and mean_i = sum_j m_ij p_ij dp_ij = dy_i . y_i: ds = scale p (m dp - mean), which goes to dscore;
 * score becomes m p. */
static void back_to_scores(const struct attention *l, const struct block *k, const struct layer_call *call,
                           const struct scratch *s) {
    const size_t row = l->T + GAP;
    const float *dy = call->dy + k->y_at, *y = call->y + k->y_at, *value = call->x + k->x_at + 2 * k->y_row;
    const float *log_sum = l->log_sum + k->head * l->T;
    scores(l, k, call->x, s->score);
    onednn_product_within(false, true, k->count, k->keys, l->d, dy + k->first * k->y_row, k->y_row, value, k->x_row, 0,
                          s->dscore, row);
    for (size_t i = 0, at = k->first; i < k->count; i++, at++) {
        const size_t n = keys_of(l, k, at);
        float *p = s->score + i * row, *dp = s->dscore + i * row;
        const float mean = cpu_attention_dot(dy + at * k->y_row, y + at * k->y_row, l->d);
        const float *m = l->drop.scale > 1 ? factors_of(l, k, s, at) : NULL;
        cpu_attention_again(p, n, l->scale, log_sum[at]);
        cpu_attention_back(dp, p, m, n, l->scale, mean);
        if (m) cpu_attention_drop(p, m, n);
        memset(p + n, 0, (k->keys - n) * sizeof *p);
        memset(dp + n, 0, (k->keys - n) * sizeof *dp);
    }
}

/* dv [+]= (m p)^T dy,  dq = ds k,  dk [+]= ds^T q */
static void backward_block(const struct attention *l, const struct block *k, const struct layer_call *call,
                           bool first) {
    const struct scratch s = scratch_of(l);
    const size_t row = l->T + GAP, C = k->y_row, at = k->x_at + k->first * k->x_row;
    const float *dy = call->dy + k->y_at + k->first * C;
    const float beta = first ? 0 : 1;
    float *dx = call->dx;
    back_to_scores(l, k, call, &s);
    onednn_product_within(true, false, k->keys, l->d, k->count, s.score, row, dy, C, beta, dx + k->x_at + 2 * C,
                          k->x_row);
    onednn_product_within(false, false, k->count, l->d, k->keys, s.dscore, row, call->x + k->x_at + C, k->x_row, 0,
                          dx + at, k->x_row);
    onednn_product_within(true, false, k->keys, l->d, k->count, s.dscore, row, call->x + at, k->x_row, beta,
                          dx + k->x_at + C, k->x_row);
}

/* Keys and values that no query sees. */
static void clear_unseen(const struct attention *l, const struct block *k, float *dx) {
    for (size_t i = k->length; i < l->T; i++)
        for (size_t part = 1; part <= 2; part++)
            memset(dx + k->x_at + i * k->x_row + part * k->y_row, 0, l->d * sizeof *dx);
}

static void backward(void *layer, const struct layer_call *call) {
    const struct attention *l = layer;
    if (!call->dx) return;
#pragma omp parallel for schedule(static)
    for (size_t head = 0; head < l->sequences * l->heads; head++) {
        struct block k = block_of(l, call, head);
        const size_t last = (l->T - 1) / QUERIES * QUERIES;
        clear_unseen(l, &k, call->dx);
        for (size_t first = last + QUERIES; first > 0;) {
            first -= QUERIES;
            take_queries(l, &k, first);
            backward_block(l, &k, call, first == last);
        }
    }
}

static void close_attention(void *layer) {
    struct attention *l = layer;
    mem_free(l->log_sum);
    mem_free(l->scratch);
    mem_free(l);
}

const struct layer_ops onednn_attention = {open_attention, forward, backward, close_attention};
