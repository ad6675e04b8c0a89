/* qsgd.c: every entry in 8 or 4 bits: stochastic rounding in buckets of 512, summed by scatter-reduce and all-gather.
 *
 * Idea: with m the largest magnitude of a bucket, s = 127 (8 bits) or 7 (4 bits), an entry v becomes the whole number
 *
 *        q = sign(v) floor(|v| s / m + r),    r uniform in [0, 1),    and v is read as q m / s,
 *
 * so that in the mean over r what is read is v. A bucket's message is m and its 512 numbers.
 *
 * Source: Alistarh, Grubic, Li, Tomioka and Vojnovic, "QSGD: Communication-Efficient SGD via Gradient Quantization and
 * Encoding", NIPS 2017, its rounding at random; here with the largest magnitude of a bucket in place of its l2 norm,
 * and fixed lengths in place of Elias's code.
 *
 * Cost per rank: P - 1 + log2(P) alpha + 2(n b/32 + n/512)(P-1)/P beta, b bits.
 * Residual: what is rounded off, at the sender and, of the sum, at the owner of its part (coded_sum.h). With --feedback
 * off it is dropped: that is the paper, whose rounding is right in the mean. Where that keeps it, the error of a step
 * is at most m/s an entry, and it is sent later. Random numbers: Philox by (seed, rank, step, entry), so that two runs
 * are the same, and a resumed one goes on. They have 16 bits: the mean is right to 2^-17 m/s. Restrictions: sums are
 * made in host memory. Deviation: the sum is rounded a second time, as every scheme does whose sums travel in as few
 * bits. */
#include <float.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/philox.h"
#include "base/rng.h"
#include "base/simd.h"
#include "comm/parts/coded_sum.h"
#include "comm/parts/peers.h"
#include "comm/wire/half.h"

enum { BUCKET = 512, DRAWS = 8 /* numbers of 16 bits in a block of Philox */ };

struct qsgd {
    struct coded_exchange coded;
    int bits, levels; /* 8, 127; 4, 7 */
    uint64_t seed;
    uint32_t rank;
    uint64_t *step; /* [1], saved: steps that were made */
    float random[BUCKET];
    int8_t whole[BUCKET];
};

/* -- a bucket ------------------------------------------------------------------------------------------------------ */
static size_t bucket_bytes(int bits, size_t count) {
    return sizeof(float) + (count * (size_t)bits + 31) / 32 * sizeof(uint32_t);
}

/* random[i] uniform in [0, 1), of entries [from, from + BUCKET): block b of rng_open(seed, RNG_ROUND, rank and step)
 * has those of entries 8b to 8b + 7. */
SIMD_CLONES static void draw(const struct qsgd *t, size_t from, float *random) {
    const struct rng r = rng_open(t->seed, RNG_ROUND, (uint64_t)t->rank << 32 | (uint32_t)*t->step);
    const uint32_t first = (uint32_t)(from / DRAWS);
    for (uint32_t block = 0; block < BUCKET / DRAWS; block++) {
        struct philox_block made =
            philox_block_of(first + block, r.counter[1], r.counter[2], r.counter[3], r.key[0], r.key[1]);
        for (int w = 0; w < 4; w++) {
            random[DRAWS * block + 2 * (uint32_t)w] = (float)(made.word[w] & 0xffff) * 0x1p-16f;
            random[DRAWS * block + 2 * (uint32_t)w + 1] = (float)(made.word[w] >> 16) * 0x1p-16f;
        }
    }
}

SIMD_CLONES static float largest(const float *val, size_t count) {
    uint32_t most = 0; /* magnitudes order as their bits do; a NaN is the largest */
    for (size_t i = 0; i < count; i++) {
        uint32_t magnitude = float_bits(val[i]) & 0x7fffffff;
        most = magnitude > most ? magnitude : most;
    }
    return float_of_bits(most);
}

/* q, see above. What is not finite, or too small to divide by, becomes 0. */
SIMD_CLONES static void quantise(const float *val, size_t count, float most, int levels, const float *random,
                                 int8_t *whole) {
    const float scale = most > (float)levels / FLT_MAX && most <= FLT_MAX ? (float)levels / most : 0;
    for (size_t i = 0; i < count; i++) {
        float size = fabsf(val[i]) * scale + random[i];
        int q = (int)(scale > 0 ? size : 0);
        q = q > levels ? levels : q;
        whole[i] = (int8_t)(val[i] < 0 ? -q : q);
    }
}

SIMD_CLONES static void values(const int8_t *whole, size_t count, float unit, bool add, float *val) {
    for (size_t i = 0; i < count; i++) val[i] = (add ? val[i] : 0) + (float)whole[i] * unit;
}

SIMD_CLONES static void cut_off(const int8_t *whole, size_t count, float unit, const float *val, float *error) {
    for (size_t i = 0; i < count; i++) error[i] = val[i] - (float)whole[i] * unit;
}

/* Two numbers in -8..7 a byte, the first in the lower half. */
SIMD_CLONES static void pack_four(const int8_t *restrict whole, size_t count, uint8_t *restrict to) {
    for (size_t i = 0; i < count / 2; i++) to[i] = (uint8_t)((whole[2 * i] & 15) | whole[2 * i + 1] << 4);
    if (count % 2) to[count / 2] = (uint8_t)(whole[count - 1] & 15);
}
static int8_t of_four(uint8_t bits) {
    return (int8_t)((bits ^ 8) - 8);
}
SIMD_CLONES static void unpack_four(const uint8_t *restrict from, size_t count, int8_t *restrict whole) {
    for (size_t i = 0; i < count / 2; i++) {
        whole[2 * i] = of_four(from[i] & 15);
        whole[2 * i + 1] = of_four(from[i] >> 4);
    }
    if (count % 2) whole[count - 1] = of_four(from[count / 2] & 15);
}

/* -- the coder: buckets end to end, each its scale and its numbers, filled up to a word ---------------------------- */
static size_t qsgd_bytes(const void *state, size_t from, size_t count) {
    const struct qsgd *t = state;
    (void)from;
    size_t whole = count / BUCKET, rest = count % BUCKET;
    return whole * bucket_bytes(t->bits, BUCKET) + (rest ? bucket_bytes(t->bits, rest) : 0);
}

static void qsgd_encode(void *state, size_t from, size_t count, const float *val, float *error, void *message) {
    struct qsgd *t = state;
    unsigned char *to = message;
    for (size_t at = 0; at < count; at += BUCKET) {
        size_t some = count - at < BUCKET ? count - at : BUCKET, bytes = bucket_bytes(t->bits, some);
        float most = largest(val + at, some), unit = most / (float)t->levels;
        draw(t, from + at, t->random);
        quantise(val + at, some, most, t->levels, t->random, t->whole);
        memset(to + bytes - sizeof(uint32_t), 0, sizeof(uint32_t));
        memcpy(to, &unit, sizeof unit);
        if (t->bits == 8)
            memcpy(to + sizeof unit, t->whole, some);
        else
            pack_four(t->whole, some, to + sizeof unit);
        if (error) cut_off(t->whole, some, unit, val + at, error + at);
        to += bytes;
    }
}

static void qsgd_decode(const void *state, size_t from, size_t count, const void *message, bool add, float *val) {
    const struct qsgd *t = state;
    const unsigned char *at_message = message;
    int8_t whole[BUCKET];
    (void)from;
    for (size_t at = 0; at < count; at += BUCKET) {
        size_t some = count - at < BUCKET ? count - at : BUCKET;
        float unit;
        memcpy(&unit, at_message, sizeof unit);
        if (t->bits == 8)
            memcpy(whole, at_message + sizeof unit, some);
        else
            unpack_four(at_message + sizeof unit, some, whole);
        values(whole, some, unit, add, val + at);
        at_message += bucket_bytes(t->bits, some);
    }
}

/* -- the rows ------------------------------------------------------------------------------------------------------ */
static struct coder coder_of(struct qsgd *t, int bits) {
    t->bits = bits;
    t->levels = (1 << (bits - 1)) - 1;
    return (struct coder){t, BUCKET, qsgd_bytes, qsgd_encode, qsgd_decode};
}

static double seconds_of(int bits) {
    uint64_t step = 0;
    struct qsgd t = {.seed = 1, .step = &step};
    const struct coder coder = coder_of(&t, bits);
    return coder_seconds(&coder);
}
static double seconds_eight(void) {
    return seconds_of(8);
}
static double seconds_four(void) {
    return seconds_of(4);
}

static void open_with(struct exchange *x, int bits) {
    struct qsgd *t = x->state = mem_zalloc(1, sizeof *t, "qsgd");
    const struct coder coder = coder_of(t, bits);
    t->seed = x->setup.seed;
    t->rank = (uint32_t)x->setup.comm->rank;
    t->step = mem_zalloc(1, sizeof *t->step, "qsgd's steps");
    coded_exchange_open(&t->coded, x, &coder, feedback_keeps(&x->setup.options, x->setup.wire));
}
static void open_eight(struct exchange *x) {
    open_with(x, 8);
}
static void open_four(struct exchange *x) {
    open_with(x, 4);
}

static void qsgd_close(struct exchange *x) {
    struct qsgd *t = x->state;
    coded_exchange_close(&t->coded);
    mem_free(t->step);
    mem_free(t);
}

static bool qsgd_run(struct exchange *x, float *grad, size_t k, struct exchange_sum *sum) {
    struct qsgd *t = x->state;
    (void)k;
    bool good = coded_exchange_run(&t->coded, x, grad, sum);
    ++*t->step;
    return good;
}

static bool qsgd_saved(struct exchange *x, size_t piece, void **memory, size_t *bytes) {
    struct qsgd *t = x->state;
    return exchange_saved_block(x, t->step, sizeof *t->step, piece, memory, bytes);
}

static bool qsgd_check(const struct exchange *x, uint64_t *alike, struct err *e) {
    const struct qsgd *t = x->state;
    if (*t->step > STEPS_MAX) return err_set(e, "qsgd's counter of steps is none of its own");
    *alike = hash64(*alike, t->step, sizeof *t->step);
    return true;
}

static void qsgd_skip(struct exchange *x, uint64_t steps) {
    *((struct qsgd *)x->state)->step = steps;
}

/* Parts of whole buckets. */
static double max_words(const struct cost_case *c, int bits) {
    return coded_sum_units(ceil((double)c->n / BUCKET), c->P) * (double)bucket_bytes(bits, BUCKET) / 4;
}
static double max_words_eight(const struct cost_case *c) {
    return max_words(c, 8);
}
static double max_words_four(const struct cost_case *c) {
    return max_words(c, 4);
}

static void cost_of(const struct cost_case *c, int bits, struct cost *cost) {
    double words = (double)c->n * bits / 32 + (double)c->n / BUCKET;
    *cost = (struct cost){.alphas = c->P > 1 ? c->P - 1 + ceil_log2(c->P) : 0,
                          .words = 2 * words * (c->P - 1) / c->P,
                          .coded = coded_sum_values(c->n, c->P)};
}
static void cost_eight(const struct cost_case *c, struct cost *cost) {
    cost_of(c, 8, cost);
}
static void cost_four(const struct cost_case *c, struct cost *cost) {
    cost_of(c, 4, cost);
}

extern const struct exchange_ops exchange_qsgd, exchange_qsgd_4;
const struct exchange_ops exchange_qsgd = {
    .name = "qsgd",
    .summary = "every entry in 8 bits, rounded at random in buckets of 512",
    .paper = "QSGD (Alistarh et al., NIPS 2017)",
    .options = OPTION_PART(feedback_option),
    .conserves = true,
    .rounds = true,
    .code_seconds = seconds_eight,
    .keeps = feedback_keeps,
    .loses = feedback_loses,
    .open = open_eight,
    .run = qsgd_run,
    .close = qsgd_close,
    .max_words = max_words_eight,
    .cost = cost_eight,
    .saved = qsgd_saved,
    .check = qsgd_check,
    .skip = qsgd_skip,
};
const struct exchange_ops exchange_qsgd_4 = {
    .name = "qsgd-4",
    .summary = "every entry in 4 bits, rounded at random in buckets of 512",
    .paper = "QSGD (Alistarh et al., NIPS 2017)",
    .options = OPTION_PART(feedback_option),
    .conserves = true,
    .rounds = true,
    .code_seconds = seconds_four,
    .keeps = feedback_keeps,
    .loses = feedback_loses,
    .open = open_four,
    .run = qsgd_run,
    .close = qsgd_close,
    .max_words = max_words_four,
    .cost = cost_four,
    .saved = qsgd_saved,
    .check = qsgd_check,
    .skip = qsgd_skip,
};
