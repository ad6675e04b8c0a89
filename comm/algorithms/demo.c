/* demo.c: decoupled momentum: of each rank's momentum the components that a cosine transform gathers in few numbers
 * travel and leave it; the rest stays and goes on growing.
 *
 * Idea: a matrix of momentum is cut into chunks of 64 x 64, in each of which most of what changes fast is in a few
 * coefficients of its two-dimensional DCT (dct.h). With m the momentum, which is the row's residual, on each rank:
 *
 *        m = beta m + g;  q = the k largest coefficients of DCT(chunk of m);  m = m - DCT^-1(q)
 *        u = DCT^-1(sum of q over ranks), of which, as published, only the signs are taken: u = P sign(u)
 *
 * so that the optimiser's mean gradient u/P is the sign (--demo-sign off: the mean itself).
 *
 * Source: Peng, Quesnelle and Kingma, "DeMo: Decoupled Momentum Optimization", 2024, arXiv 2411.19870, and its public
 * code: chunks of 64 a side, k = 32, beta = 0.999, the defaults here; the optimiser behind it is SGD without momentum.
 *
 * Cost per rank, matrices of whole chunks: log2(P) alpha + 1.5 k ceil(n/4096) (P-1) beta: 6 bytes a coefficient, an f32
 * and its place in 16 bits. Vectors, and what is left at the edges of matrices, are chunks, too, and are counted where
 * the slices are known.
 * Residual: the momentum. It conserves, but for rounding of the transforms, with --demo-decay 1 --demo-sign off alone:
 * beta below 1 lets it decay (mass_lost), and signs are not sums.
 * Restrictions: k of --density and wire formats do not apply; transforms and sums are made in host memory. Without
 * slices, as in benches, the vector is taken for a matrix of 64 columns and a vector of the rest.
 * Deviations: sides that 64 does not divide are cut into chunks of 64 and a shorter one, in the public code into the
 * largest divisor up to 64, which is 1 for a prime. m is fed with g, not with the learning rate times g, which differs
 * where the rate changes. A convolution's weights are one matrix, output channels by all else. Coefficients that
 * several ranks send are added up; there they are averaged over those that sent them, which has the same sign in that
 * coefficient. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/simd.h"
#include "comm/parts/chunk_top.h"
#include "comm/parts/dct.h"
#include "comm/parts/feedback.h"
#include "comm/parts/peers.h"

enum { SIDE = DCT_SIDE, CHUNK = SIDE * SIDE };

struct demo_use {
    int kept, no_sign;
    double decay;
};

static const char *const rules[] = {"on", "off", NULL};
static const struct option_row demo_options[] = {
    {"demo-k", "K", OPTION_INT, "32", "demo: coefficients of each chunk of 64 x 64 that are sent",
     OPTION_AT(struct demo_use, kept), .min = 1, .max = CHUNK},
    {"demo-decay", "BETA", OPTION_REAL, "0.999", "demo: decay of the momentum", OPTION_AT(struct demo_use, decay),
     .min = 0, .max = 1},
    {"demo-sign", "RULE", OPTION_CHOICE, "on", "demo: on steps by the sign of each entry, off by the mean itself",
     OPTION_AT(struct demo_use, no_sign), .names = rules},
};
static const struct option_part demo_part = OPTION_PART(demo_options);

/* h rows of w entries each, `stride` apart. */
struct piece {
    size_t from, stride, h, w;
};

struct demo {
    struct feedback feedback;
    struct demo_use use;
    struct dct dct;
    struct piece *piece;          /* [pieces] */
    size_t pieces, room, entries; /* entries: coefficients of a message */
    size_t bytes;                 /* of a rank's message */
    unsigned char *mine, *all;    /* [bytes], [P bytes] */
    uint32_t *key;                /* [CHUNK], of a piece like what follows */
    float *x, *y, *scratch;       /* entries, coefficients */
    float *val;                   /* [use.kept]: what a message has of a piece, */
    uint16_t *at;                 /* and where */
};

/* -- pieces -------------------------------------------------------------------------------------------------------- */
static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

static size_t kept_of(int kept, const struct piece *p) {
    return least((size_t)kept, p->h * p->w);
}

/* Values, then places, up to a multiple of 4. */
static size_t bytes_of(size_t k) {
    return k * sizeof(float) + (k * sizeof(uint16_t) + 3) / 4 * 4;
}

typedef void take_piece(void *to, const struct piece *p);

static void cut_slice(const struct exchange_slice *s, take_piece *take, void *to) {
    for (size_t i = 0; i < s->rows; i += SIDE)
        for (size_t j = 0; j < s->cols; j += SIDE)
            take(to, &(struct piece){s->from + i * s->cols + j, s->cols, least(SIDE, s->rows - i),
                                     least(SIDE, s->cols - j)});
}

/* The pieces of n entries, in their order. */
static void cut(const struct exchange_slice *slice, size_t slices, size_t n, take_piece *take, void *to) {
    const size_t whole = n / SIDE * SIDE;
    for (size_t i = 0; i < slices; i++) cut_slice(&slice[i], take, to);
    if (slices > 0) return;
    if (whole > 0) cut_slice(&(struct exchange_slice){0, whole / SIDE, SIDE}, take, to);
    if (whole < n) cut_slice(&(struct exchange_slice){whole, 1, n - whole}, take, to);
}

static void add_piece(void *to, const struct piece *p) {
    struct demo *t = to;
    const size_t kept = kept_of(t->use.kept, p);
    if (t->pieces == t->room) {
        t->room = 2 * t->room + 16;
        t->piece = mem_grow(t->piece, t->pieces, t->room, sizeof *p, "chunks of the momentum");
    }
    t->piece[t->pieces++] = *p;
    dct_size(&t->dct, p->h);
    dct_size(&t->dct, p->w);
    t->entries += kept;
    t->bytes += bytes_of(kept);
}

static void read_piece(const struct piece *p, const float *m, float *x) {
    for (size_t i = 0; i < p->h; i++) memcpy(x + i * p->w, m + p->from + i * p->stride, p->w * sizeof *x);
}

static void subtract_piece(const struct piece *p, const float *x, float *m) {
    for (size_t i = 0; i < p->h; i++)
        for (size_t j = 0; j < p->w; j++) m[p->from + i * p->stride + j] -= x[i * p->w + j];
}

static void write_piece(const struct piece *p, const float *x, float *u) {
    for (size_t i = 0; i < p->h; i++) memcpy(u + p->from + i * p->stride, x + i * p->w, p->w * sizeof *x);
}

/* -- opening ------------------------------------------------------------------------------------------------------- */
static void demo_open(struct exchange *x) {
    struct demo *t = x->state = mem_zalloc(1, sizeof *t, "demo");
    const size_t P = (size_t)x->setup.comm->size;
    option_take(&demo_part, &t->use, &x->setup.options);
    dct_open(&t->dct);
    cut(x->setup.slice, x->setup.slices, x->setup.n, add_piece, t);
    t->mine = mem_alloc(1, t->bytes, "a message");
    t->all = mem_alloc(P, t->bytes, "the messages of all ranks");
    t->key = mem_alloc(CHUNK, sizeof *t->key, "keys of a chunk");
    t->x = mem_alloc(3 * CHUNK, sizeof *t->x, "a chunk of the momentum");
    t->y = t->x + CHUNK;
    t->scratch = t->y + CHUNK;
    t->val = mem_alloc((size_t)t->use.kept, sizeof *t->val, "coefficients of a chunk");
    t->at = mem_alloc((size_t)t->use.kept, sizeof *t->at, "places of coefficients");
    feedback_open(&t->feedback, x, true);
}

static void demo_close(struct exchange *x) {
    struct demo *t = x->state;
    feedback_close(&t->feedback);
    mem_free(t->at);
    mem_free(t->val);
    mem_free(t->x);
    mem_free(t->key);
    mem_free(t->all);
    mem_free(t->mine);
    mem_free(t->piece);
    dct_close(&t->dct);
    mem_free(t);
}

/* -- a step -------------------------------------------------------------------------------------------------------- */
static bool all_finite(const float *y, size_t n) {
    bool finite = true;
    for (size_t i = 0; i < n; i++) finite &= isfinite(y[i]) != 0;
    return finite;
}

/* The largest coefficients of a piece to the message; x is then what they say of the piece. False: the transform of
 * finite numbers is infinite. */
static bool encode_piece(struct demo *t, const struct piece *p, unsigned char *message) {
    const size_t m = p->h * p->w, k = kept_of(t->use.kept, p);
    dct_forward(&t->dct, t->x, p->h, p->w, t->scratch, t->y);
    if (!all_finite(t->y, m)) return false;
    chunk_top(t->y, m, k, t->key, t->at);
    for (size_t i = 0; i < k; i++) t->val[i] = t->y[t->at[i]];
    memset(message, 0, bytes_of(k));
    memcpy(message, t->val, k * sizeof *t->val);
    memcpy(message + k * sizeof *t->val, t->at, k * sizeof *t->at);
    memset(t->y, 0, m * sizeof *t->y);
    for (size_t i = 0; i < k; i++) t->y[t->at[i]] = t->val[i];
    dct_inverse(&t->dct, t->y, p->h, p->w, t->scratch, t->x);
    return true;
}

static bool encode(struct demo *t, float *m, size_t *bad) {
    unsigned char *message = t->mine;
    for (size_t i = 0; i < t->pieces; i++) {
        const struct piece *p = &t->piece[i];
        *bad = p->from;
        read_piece(p, m, t->x);
        if (!encode_piece(t, p, message)) return false;
        subtract_piece(p, t->x, m);
        message += bytes_of(kept_of(t->use.kept, p));
    }
    return true;
}

/* y += a rank's coefficients */
static void add_coefficients(struct demo *t, const struct piece *p, const unsigned char *message, int rank) {
    const size_t m = p->h * p->w, k = kept_of(t->use.kept, p);
    memcpy(t->val, message, k * sizeof *t->val);
    memcpy(t->at, message + k * sizeof *t->val, k * sizeof *t->at);
    for (size_t i = 0; i < k; i++) {
        if (t->at[i] >= m) die("demo: rank %d sent a coefficient beyond the end of a chunk", rank);
        t->y[t->at[i]] += t->val[i];
    }
}

/* x = P sign(x); what is not finite becomes NaN. */
SIMD_CLONES static void take_signs(float *x, size_t n, float P) {
    for (size_t i = 0; i < n; i++) x[i] = (x[i] > 0 ? P : x[i] < 0 ? -P : 0) + (x[i] - x[i]);
}

/* In rank order. */
static size_t decode(const struct exchange *x, float *u) {
    PHASE_SCOPE(x->setup.phases, PHASE_MERGE);
    struct demo *t = x->state;
    const int P = x->setup.comm->size;
    const unsigned char *message = t->all;
    size_t entries = 0;
    for (size_t i = 0; i < t->pieces; i++) {
        const struct piece *p = &t->piece[i];
        const size_t m = p->h * p->w;
        memset(t->y, 0, m * sizeof *t->y);
        for (int r = 0; r < P; r++) add_coefficients(t, p, message + (size_t)r * t->bytes, r);
        dct_inverse(&t->dct, t->y, p->h, p->w, t->scratch, t->x);
        if (!t->use.no_sign) take_signs(t->x, m, (float)P);
        for (size_t j = 0; j < m; j++) entries += t->x[j] != 0;
        write_piece(p, t->x, u);
        message += bytes_of(kept_of(t->use.kept, p));
    }
    return entries;
}

/* -- costs --------------------------------------------------------------------------------------------------------- */
static double words(size_t bytes, int P) {
    return (double)bytes / 4 * (P - 1);
}

struct counted {
    int kept;
    size_t bytes; /* of a message */
};

static void count_piece(void *to, const struct piece *p) {
    struct counted *all = to;
    all->bytes += bytes_of(kept_of(all->kept, p));
}

static double demo_max_words(const struct cost_case *c) {
    struct demo_use use;
    option_take(&demo_part, &use, &c->options);
    struct counted all = {.kept = use.kept};
    cut(c->slice, c->slices, c->n, count_piece, &all);
    return words(all.bytes, c->P);
}

static double demo_own_max_words(const struct exchange *x, size_t k) {
    const struct demo *t = x->state;
    (void)k;
    return words(t->bytes, x->setup.comm->size);
}

/* -- a step -------------------------------------------------------------------------------------------------------- */
static bool demo_run(struct exchange *x, float *grad, size_t k, struct exchange_sum *sum) {
    struct demo *t = x->state;
    struct comm *c = x->setup.comm;
    const double lost = feedback_decay(x, t->use.decay);
    (void)k;
    if (!feedback_take(&t->feedback, x, grad, &sum->bad)) return false;
    {
        PHASE_SCOPE(x->setup.phases, PHASE_SELECT);
        if (!encode(t, t->feedback.acc, &sum->bad)) return false;
    }
    comm_allgather(c, t->mine, t->bytes, t->all);
    const size_t entries = decode(x, t->feedback.u);
    if (!feedback_give(&t->feedback, x, grad, sum)) return false;
    sum->local_nnz = t->entries;
    sum->global_nnz = entries;
    sum->mass_lost = lost;
    return true;
}

/* -- the row ------------------------------------------------------------------------------------------------------- */
static const char *demo_signs(const struct option_values *options) {
    struct demo_use use;
    option_take(&demo_part, &use, options);
    return use.no_sign ? NULL : "--demo-sign on";
}

static const char *demo_loses(const struct option_values *options) {
    struct demo_use use;
    option_take(&demo_part, &use, options);
    return use.decay < 1 ? "--demo-decay below 1" : demo_signs(options);
}

static void demo_cost(const struct cost_case *c, struct cost *cost) {
    *cost = (struct cost){.alphas = ceil_log2(c->P), .words = demo_max_words(c)};
}

extern const struct exchange_ops exchange_demo;
const struct exchange_ops exchange_demo = {
    .name = "demo",
    .summary = "the 32 largest DCT coefficients of every 64 x 64 of the momentum, and signs of their sum",
    .paper = "DeMo (Peng, Quesnelle and Kingma, 2024, arXiv 2411.19870)",
    .options = OPTION_PART(demo_options),
    .conserves = true,
    .blind = true,
    .rounds = true,
    .keeps = feedback_always,
    .loses = demo_loses,
    .signs = demo_signs,
    .open = demo_open,
    .run = demo_run,
    .close = demo_close,
    .max_words = demo_max_words,
    .own_max_words = demo_own_max_words,
    .cost = demo_cost,
};
