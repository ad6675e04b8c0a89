/* onebit.c: one bit an entry: its sign, and one scale for each layer's slice; summed by scatter-reduce and all-gather.
 *
 * Idea: of each slice, or what of it lies in a rank's part of the vector, the signs travel, and the mean magnitude
 *
 *        v is read as sign(v) |slice|_1 / entries of it,
 *
 * which with error feedback converges as the whole gradient does: 1/32 of the words.
 *
 * Source: Karimireddy, Rebjock, Stich and Jaggi, "Error Feedback Fixes SignSGD and other Gradient Compression Schemes",
 * ICML 2019 (EF-signSGD, with a scale for each layer); for the two phases Tang et al., "1-bit
 * Adam: Communication Efficient Large-Scale Training with Adam's Convergence Speed", ICML 2021, whose worker's and
 * server's errors are in the residual (coded_sum.h).
 *
 * Cost per rank: P - 1 + log2(P) alpha + 2(n/32 + P)(P-1)/P beta, and the scales of slices besides.
 * Residual: what is rounded off, nearly all of it. --feedback off drops it: signSGD with scales, which need not
 * converge.
 * Restrictions: sums are made in host memory. The sign of 0 is +. Deviations: 1-bit Adam sends the momentum, not the
 * gradient, and has a scale for each message, not for each slice. Its dense warm-up and Adam's variance, frozen after
 * it, are --dense-steps and --freeze-variance-after. */
#include "base/mem.h"
#include "base/simd.h"
#include "comm/parts/coded_sum.h"
#include "comm/parts/peers.h"
#include "comm/wire/half.h"

enum { WORD = 32, LANES = 16 };

struct onebit {
    struct coded_exchange coded;
    size_t *end; /* [slices] where slices end; the last: n */
    size_t slices;
};

/* -- pieces: what of slices lies in [from, from + count) ----------------------------------------------------------- */
/* The first slice that ends behind `at`. */
static size_t slice_at(const struct onebit *t, size_t at) {
    size_t low = 0, high = t->slices - 1;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (t->end[middle] > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static size_t piece_end(const struct onebit *t, size_t slice, size_t end) {
    return t->end[slice] < end ? t->end[slice] : end;
}

static size_t pieces(const struct onebit *t, size_t from, size_t count) {
    return count ? slice_at(t, from + count - 1) - slice_at(t, from) + 1 : 0;
}

/* |v|_1, in LANES sums of doubles: the same order on any processor */
SIMD_CLONES static double sum_of_magnitudes(const float *val, size_t count) {
    double lane[LANES] = {0}, sum = 0;
    size_t whole = count / LANES * LANES;
    for (size_t i = 0; i < whole; i += LANES)
        for (size_t l = 0; l < LANES; l++) lane[l] += (double)fabsf(val[i + l]);
    for (size_t i = whole; i < count; i++) lane[0] += (double)fabsf(val[i]);
    for (size_t l = 0; l < LANES; l++) sum += lane[l];
    return sum;
}

/* -- the coder: scales of the pieces, then the signs, entry i at bit i mod 32 of word i / 32 ----------------------- */
static size_t onebit_bytes(const void *state, size_t from, size_t count) {
    return sizeof(uint32_t) * (pieces(state, from, count) + (count + WORD - 1) / WORD);
}

SIMD_CLONES static void pack_signs(const float *val, size_t count, uint32_t *word) {
    for (size_t w = 0; w < count / WORD; w++) {
        uint32_t bits = 0;
        for (size_t i = 0; i < WORD; i++) bits |= (uint32_t)(val[w * WORD + i] < 0) << i;
        word[w] = bits;
    }
    if (count % WORD) word[count / WORD] = 0;
    for (size_t i = count / WORD * WORD; i < count; i++) word[i / WORD] |= (uint32_t)(val[i] < 0) << i % WORD;
}

/* scale with the sign that is bit i of `bits` */
static inline float with_sign(uint32_t bits, size_t i, float scale) {
    return float_of_bits(float_bits(scale) ^ (bits >> i & 1) << 31);
}

/* Entries from `at` on of a message come in words, of which the first and the last may be a part: how many of `left`
 * entries are in the word of the next. */
static inline size_t in_word(size_t at, size_t left) {
    const size_t some = WORD - at % WORD;
    return some < left ? some : left;
}

/* error, which may be val: what is left of it */
SIMD_CLONES static void subtract(const uint32_t *word, size_t at, size_t count, float scale, const float *val,
                                 float *error) {
    for (size_t i = 0, some; i < count; i += some) {
        const uint32_t bits = word[(at + i) / WORD] >> (at + i) % WORD;
        some = in_word(at + i, count - i);
#pragma omp simd
        for (size_t j = 0; j < some; j++) error[i + j] = val[i + j] - with_sign(bits, j, scale);
    }
}

SIMD_CLONES static void unpack(const uint32_t *word, size_t at, size_t count, float scale, bool add, float *val) {
    for (size_t i = 0, some; i < count; i += some) {
        const uint32_t bits = word[(at + i) / WORD] >> (at + i) % WORD;
        some = in_word(at + i, count - i);
#pragma omp simd
        for (size_t j = 0; j < some; j++) val[i + j] = (add ? val[i + j] : 0) + with_sign(bits, j, scale);
    }
}

static void onebit_encode(void *state, size_t from, size_t count, const float *val, float *error, void *message) {
    const struct onebit *t = state;
    float *scale = message;
    size_t first = count ? slice_at(t, from) : 0;
    uint32_t *word = (uint32_t *)message + pieces(t, from, count);
    pack_signs(val, count, word);
    for (size_t at = 0, s = first; at < count; s++) {
        size_t some = piece_end(t, s, from + count) - from - at;
        scale[s - first] = (float)(sum_of_magnitudes(val + at, some) / (double)some);
        if (error) subtract(word, at, some, scale[s - first], val + at, error + at);
        at += some;
    }
}

static void onebit_decode(const void *state, size_t from, size_t count, const void *message, bool add, float *val) {
    const struct onebit *t = state;
    const float *scale = message;
    size_t first = count ? slice_at(t, from) : 0;
    const uint32_t *word = (const uint32_t *)message + pieces(t, from, count);
    for (size_t at = 0, s = first; at < count; s++) {
        size_t some = piece_end(t, s, from + count) - from - at;
        unpack(word, at, some, scale[s - first], add, val + at);
        at += some;
    }
}

/* -- the row ------------------------------------------------------------------------------------------------------- */
static void onebit_open(struct exchange *x) {
    struct onebit *t = x->state = mem_zalloc(1, sizeof *t, "onebit");
    const struct coder coder = {t, WORD, onebit_bytes, onebit_encode, onebit_decode};
    t->slices = x->setup.slices > 0 ? x->setup.slices : 1;
    t->end = mem_alloc(t->slices, sizeof *t->end, "ends of slices");
    for (size_t i = 0; i < x->setup.slices; i++)
        t->end[i] = x->setup.slice[i].from + x->setup.slice[i].rows * x->setup.slice[i].cols;
    t->end[t->slices - 1] = x->setup.n;
    coded_exchange_open(&t->coded, x, &coder, feedback_keeps(&x->setup.options, x->setup.wire));
}

/* Of a single slice. */
static double onebit_seconds(void) {
    size_t end = CODER_TIMED;
    struct onebit t = {.end = &end, .slices = 1};
    const struct coder coder = {&t, WORD, onebit_bytes, onebit_encode, onebit_decode};
    return coder_seconds(&coder);
}

static void onebit_close(struct exchange *x) {
    struct onebit *t = x->state;
    coded_exchange_close(&t->coded);
    mem_free(t->end);
    mem_free(t);
}

/* extra_words: scales of more than one slice in a part. */
static bool onebit_run(struct exchange *x, float *grad, size_t k, struct exchange_sum *sum) {
    struct onebit *t = x->state;
    (void)k;
    sum->extra_words = (double)x->setup.comm->size * (double)(t->slices - 1);
    return coded_exchange_run(&t->coded, x, grad, sum);
}

/* Parts of whole words, with a scale each. */
static double onebit_max_words(const struct cost_case *c) {
    return coded_sum_units(ceil((double)c->n / WORD), c->P) + 2 * (c->P - 1);
}

static void onebit_cost(const struct cost_case *c, struct cost *cost) {
    double words = (double)c->n / WORD + c->P;
    *cost = (struct cost){.alphas = c->P > 1 ? c->P - 1 + ceil_log2(c->P) : 0,
                          .words = 2 * words * (c->P - 1) / c->P,
                          .coded = coded_sum_values(c->n, c->P)};
}

extern const struct exchange_ops exchange_onebit;
const struct exchange_ops exchange_onebit = {
    .name = "onebit",
    .summary = "the sign of every entry and a scale for each slice, with error feedback",
    .paper = "EF-signSGD (Karimireddy et al., ICML 2019); 1-bit Adam (Tang et al., ICML 2021)",
    .options = OPTION_PART(feedback_option),
    .conserves = true,
    .rounds = true,
    .flattens = true,
    .code_seconds = onebit_seconds,
    .keeps = feedback_keeps,
    .loses = feedback_loses,
    .open = onebit_open,
    .run = onebit_run,
    .close = onebit_close,
    .max_words = onebit_max_words,
    .cost = onebit_cost,
};
