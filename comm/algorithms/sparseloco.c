/* sparseloco.c: outer gradients of which the largest entries travel, in 14 bits each: SparseLoCo.
 *
 * Idea: training in rounds, as diloco.c has it, whose outer gradient is cut into chunks of 4,096 consecutive entries.
 * Of each chunk a rank sends the 64 of largest magnitude, their places in 12 bits, their values in 2 (two_bits.h). What
 * stays is added, after a decay, to the next outer gradient, and takes the place of the outer momentum. Everybody gets
 * everybody's messages by an all-gather and adds them up in rank order; the mean is what the outer step goes by:
 *
 *        acc = beta residual + delta;  q = 2 bits of the largest of acc;  residual = acc - q;  u = sum of q over ranks
 *
 * Source: Sarfi et al., "Communication Efficient LLM Pre-training with SparseLoCo", 2025, arXiv 2508.15706, and its
 * public code: chunks of 4,096, 64 of them, 4 bins, rounds of 30 steps, beta = 0.95, which are the defaults here, and
 * an outer rate of 1 without momentum (0.4 in its production settings).
 *
 * Cost per rank and round: log2(P) alpha + 32 ceil(n/4096) (P-1) beta: a chunk is 128 bytes, of which 112 are 64
 * entries of 14 bits and 16 a table of 4 values.
 * Residual: acc less what was sent, so that what is not chosen and what is rounded off stay; beta below 1
 * (--residual-decay) loses the rest of it in each round, which the log says (mass_lost).
 * Restrictions: an outer gradient, see diloco.c; k and wire formats do not apply; sums are made in host memory. The
 * last chunk has what is left, of which one entry in 64, or part of 64, is sent.
 * Deviations: chunks are consecutive entries of the whole vector; the public code cuts each matrix into 64 x 64, or
 * what divides its sides. The statistics of the quantiser are a chunk's (two_bits.h). No clipping of the ranks' norms
 * to their median, with which that code guards against ranks that nobody trusts; and the mean of an entry is over all
 * ranks, in that code over those that sent it. */
#include "base/mem.h"
#include "comm/parts/chunk_top.h"
#include "comm/parts/feedback.h"
#include "comm/parts/peers.h"
#include "comm/parts/two_bits.h"

struct sparseloco_use {
    double decay;
};

static const struct option_row sparseloco_options[] = {
    {"residual-decay", "BETA", OPTION_REAL, "0.95",
     "sparseloco: the part of the residual that is left when the next outer gradient is added",
     OPTION_AT(struct sparseloco_use, decay), .min = 0, .max = 1},
};
static const struct option_part sparseloco_part = OPTION_PART(sparseloco_options);

struct sparseloco {
    struct feedback feedback;
    double decay;
    size_t bytes;        /* of a rank's message */
    unsigned char *mine; /* [bytes] */
    unsigned char *all;  /* [P bytes] */
    uint32_t *key;       /* [TWO_BITS_CHUNK] */
};

static double decay_of(const struct option_values *options) {
    struct sparseloco_use use;
    option_take(&sparseloco_part, &use, options);
    return use.decay;
}

static void sparseloco_open(struct exchange *x) {
    struct sparseloco *t = x->state = mem_zalloc(1, sizeof *t, "sparseloco");
    const size_t P = (size_t)x->setup.comm->size;
    t->decay = decay_of(&x->setup.options);
    t->bytes = two_bits_bytes_of(x->setup.n);
    t->mine = mem_alloc(1, t->bytes, "a message");
    t->all = mem_alloc(P, t->bytes, "the messages of all ranks");
    t->key = mem_alloc(TWO_BITS_CHUNK, sizeof *t->key, "keys of a chunk");
    feedback_open(&t->feedback, x, true);
}

static void sparseloco_close(struct exchange *x) {
    struct sparseloco *t = x->state;
    feedback_close(&t->feedback);
    mem_free(t->key);
    mem_free(t->all);
    mem_free(t->mine);
    mem_free(t);
}

/* -- a step -------------------------------------------------------------------------------------------------------- */
static size_t chunk_length(size_t n, size_t from) {
    return n - from < TWO_BITS_CHUNK ? n - from : TWO_BITS_CHUNK;
}

/* What this rank sends, which leaves acc. */
static void encode(struct sparseloco *t, float *acc, size_t n) {
    uint16_t at[TWO_BITS_KEPT];
    float val[TWO_BITS_KEPT];
    unsigned char *message = t->mine;
    for (size_t from = 0; from < n; from += TWO_BITS_CHUNK) {
        const size_t m = chunk_length(n, from), k = two_bits_kept(m);
        chunk_top(acc + from, m, k, t->key, at);
        for (size_t i = 0; i < k; i++) val[i] = acc[from + at[i]];
        two_bits_encode(at, val, k, message);
        for (size_t i = 0; i < k; i++) acc[from + at[i]] -= val[i];
        message += two_bits_bytes(k);
    }
}

/* u of one chunk, in rank order; message: rank 0's. */
static void add_chunk(const struct sparseloco *t, int P, const unsigned char *message, size_t from, size_t m,
                      float *u) {
    uint16_t at[TWO_BITS_KEPT];
    float val[TWO_BITS_KEPT];
    for (size_t i = 0; i < m; i++) u[i] = 0;
    for (int r = 0; r < P; r++, message += t->bytes) {
        if (!two_bits_decode(message, m, at, val))
            die("sparseloco: rank %d sent an entry beyond the end of the chunk of entry %zu", r, from);
        for (size_t i = 0; i < two_bits_kept(m); i++) u[at[i]] += val[i];
    }
}

static size_t add_all(const struct exchange *x, float *u) {
    PHASE_SCOPE(x->setup.phases, PHASE_MERGE);
    const struct sparseloco *t = x->state;
    const int P = x->setup.comm->size;
    const size_t n = x->setup.n;
    const unsigned char *message = t->all;
    size_t entries = 0;
    for (size_t from = 0; from < n; from += TWO_BITS_CHUNK) {
        const size_t m = chunk_length(n, from);
        add_chunk(t, P, message, from, m, u + from);
        for (size_t i = from; i < from + m; i++) entries += u[i] != 0;
        message += two_bits_bytes(two_bits_kept(m));
    }
    return entries;
}

static bool sparseloco_run(struct exchange *x, float *delta, size_t k, struct exchange_sum *sum) {
    struct sparseloco *t = x->state;
    struct comm *c = x->setup.comm;
    const size_t n = x->setup.n;
    (void)k;
    const double lost = feedback_decay(x, t->decay);
    if (!feedback_take(&t->feedback, x, delta, &sum->bad)) return false;
    {
        PHASE_SCOPE(x->setup.phases, PHASE_SELECT);
        encode(t, t->feedback.acc, n);
    }
    comm_allgather(c, t->mine, t->bytes, t->all);
    const size_t entries = add_all(x, t->feedback.u);
    if (!feedback_give(&t->feedback, x, delta, sum)) return false;
    sum->local_nnz = two_bits_entries_of(n);
    sum->global_nnz = entries;
    sum->mass_lost = lost;
    return true;
}

/* -- the row ------------------------------------------------------------------------------------------------------- */
static const char *sparseloco_loses(const struct option_values *options) {
    return decay_of(options) < 1 ? "--residual-decay below 1" : NULL;
}

static double sparseloco_max_words(const struct cost_case *c) {
    return (double)two_bits_bytes_of(c->n) / 4 * (c->P - 1);
}

static void sparseloco_cost(const struct cost_case *c, struct cost *cost) {
    *cost = (struct cost){.alphas = ceil_log2(c->P), .words = sparseloco_max_words(c)};
}

extern const struct exchange_ops exchange_sparseloco;
const struct exchange_ops exchange_sparseloco = {
    .name = "sparseloco",
    .summary = "rounds as diloco's; of what has moved the 64 largest of each 4096, in 14 bits, with error feedback",
    .paper = "SparseLoCo (Sarfi et al., 2025, arXiv 2508.15706)",
    .options = OPTION_PART(sparseloco_options),
    .conserves = true,
    .outer = true,
    .rounds = true,
    .rounds_of = {.steps = 30, .rate = 1, .momentum = 0},
    .keeps = feedback_always,
    .loses = sparseloco_loses,
    .open = sparseloco_open,
    .run = sparseloco_run,
    .close = sparseloco_close,
    .max_words = sparseloco_max_words,
    .cost = sparseloco_cost,
};
