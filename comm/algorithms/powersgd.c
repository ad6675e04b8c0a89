/* powersgd.c: every matrix of the gradient in outline, as its product with a few directions: two allreduces.
 *
 * Idea: a layer's weights are a matrix M. With r directions R, those that the step before has found,
 *
 *        L = sum over ranks of M R,  made orthonormal;    R = sum over ranks of M^T L;    u = L R^T
 *
 * so u is the sum of all M, projected on r directions, and all that is linear: sums on the way, the same everywhere, no
 * word more for more ranks. Since R is kept from step to step this is subspace iteration: directions become those of
 * the largest singular values.
 *
 * Source: Vogels, Karimireddy and Jaggi, "PowerSGD: Practical Low-Rank Gradient Compression for Distributed
 * Optimization", NeurIPS 2019 (arXiv 1905.13727), Algorithms 1 and 2; PyTorch's powerSGD_hook, whose results these are
 * to 1e-5 (tests/golden/powersgd.py), for which matrices are worth it, what is sent dense, and that R is made
 * orthonormal too.
 *
 * Cost per rank: 4 log2(P) alpha + 2 (r (rows + columns of all matrices) + rest)(P-1)/P beta. The rest is what goes
 * dense: vectors, and matrices that r directions do not halve. The first allreduce is of L and the rest, the second of
 * R. Where only n is known (predict, bench) the gradient is taken for one matrix, as square as can be, which many small
 * ones together are above. Local work: four reads of the matrices and 4 r multiplications and additions an entry; for
 * r <= 4 that is bound by memory, so it is plain loops (comm/parts/low_rank.h).
 * r: 2 by default, one of the two at which the authors' code compares compressors (2 and 7); the hook's is 1. Where a
 * matrix has fewer directions than r, the others are zero, or rounding.
 *
 * Residual: M - u/P, the mean in outline taken from what this rank has; of the rest nothing. So, over all ranks and to
 * the rounding of floats,
 *
 *        sum of acc = u + sum of residuals
 *
 * but not rank by rank: a residual has in it what the outline lacks and what the rank's gradient differs from the mean
 * by. --feedback off drops it.
 *
 * Directions: the first R is drawn from the seed. So is what vanishes of it, because a layer had no gradient or the
 * matrix a lower rank: from the seed and the step's number, alike on all ranks. R and that number are in checkpoints.
 *
 * Restrictions: no wire format applies. Products are made in host memory: a gradient on a GPU comes there and goes
 * back, as with qsgd and onebit. Who tells no slices (bench, the library's open and open_groups) has all of the
 * gradient, or of a group, in one matrix, as PyTorch's batched_powerSGD_hook does.
 *
 * Deviations: the hook sends L and the rest in two allreduces, divides R by P before u is made, keeps of the rest each
 * rank's difference from the mean, which adds up to zero, and never finds a direction again that has vanished; where
 * r > 2 it makes columns orthonormal by QR. Its epsilon, 0 unless it is set, has no use here, as nothing is divided by
 * zero. The first entries of R are uniform in [-1, 1), not normal: that takes no function of libm, whose last bits
 * differ between machines. What the hook does before start_powerSGD_iter is --dense-steps. */
#include <math.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/simd.h"
#include "comm/parts/feedback.h"
#include "comm/parts/low_rank.h"
#include "comm/parts/peers.h"
#include "topk/finite.h"

struct powersgd_use {
    int rank; /* r */
    int off;
};

static const struct option_row powersgd_options[] = {
    {"powersgd-rank", "R", OPTION_INT, "2", "powersgd: directions of each matrix that are sent",
     OPTION_AT(struct powersgd_use, rank), .min = 1, .max = LOW_RANK_MAX},
    FEEDBACK_ROW(struct powersgd_use, off),
};
static const struct option_part powersgd_part = OPTION_PART(powersgd_options);

struct powersgd {
    struct feedback feedback;
    struct low_rank_matrix *matrix; /* [size.matrices] */
    struct low_rank_size size;
    size_t r;
    float *left;    /* [size.left + size.rest] L of all matrices, then what goes dense: one message */
    float *right;   /* [size.right], saved: R of all */
    uint64_t *step; /* [1], saved: steps that were made */
};

static size_t rank_of(const struct option_values *options) {
    struct powersgd_use use;
    option_take(&powersgd_part, &use, options);
    return (size_t)use.rank;
}

static void powersgd_open(struct exchange *x) {
    struct powersgd *t = x->state = mem_zalloc(1, sizeof *t, "powersgd");
    const struct exchange_setup *s = &x->setup;
    t->r = rank_of(&s->options);
    t->matrix = mem_alloc(s->slices + 1, sizeof *t->matrix, "matrices of the gradient");
    t->size = low_rank_size(s->slice, s->slices, s->n, t->r, t->matrix);
    t->left = mem_alloc(t->size.left + t->size.rest, sizeof *t->left, "left factors of matrices");
    t->right = mem_zalloc(t->size.right, sizeof *t->right, "right factors of matrices");
    t->step = mem_zalloc(1, sizeof *t->step, "powersgd's steps");
    feedback_open(&t->feedback, x, feedback_keeps(&s->options, s->wire));
}

static void powersgd_close(struct exchange *x) {
    struct powersgd *t = x->state;
    feedback_close(&t->feedback);
    mem_free(t->step);
    mem_free(t->right);
    mem_free(t->left);
    mem_free(t->matrix);
    mem_free(t);
}

/* -- directions ---------------------------------------------------------------------------------------------------- */
/* Column c of matrix m's right factor: of its own numbers in each step. */
static void draw(const struct exchange *x, const struct low_rank_matrix *m, size_t c, float *column) {
    const struct powersgd *t = x->state;
    struct rng rng = rng_open(x->setup.seed, RNG_DIRECTIONS, *t->step << 32 | (m->from + c));
    for (size_t j = 0; j < m->cols; j++) column[j] = (float)(2 * rng_uniform(&rng) - 1);
}

/* R orthonormal; what has vanished of it, all of it in the first step, anew. */
static void make_right_orthonormal(const struct exchange *x, const struct low_rank_matrix *m) {
    struct powersgd *t = x->state;
    float *right = t->right + m->right;
    for (size_t c = 0; c < t->r; c++) {
        if (low_rank_orthonormal(right, m->cols, c)) continue;
        draw(x, m, c, right + c * m->cols);
        low_rank_orthonormal(right, m->cols, c);
    }
}

/* -- what is in no matrix: between them ---------------------------------------------------------------------------- */
/* The i-th stretch of it, before matrix i or behind the last; i <= matrices. */
static size_t gap(const struct exchange *x, size_t i, size_t *from) {
    const struct powersgd *t = x->state;
    const struct low_rank_matrix *before = i > 0 ? &t->matrix[i - 1] : NULL;
    *from = before ? before->from + before->count : 0;
    return (i < t->size.matrices ? t->matrix[i].from : x->setup.n) - *from;
}

static void take_rest(struct exchange *x, float *acc) {
    struct powersgd *t = x->state;
    float *to = t->left + t->size.left;
    for (size_t i = 0, from; i <= t->size.matrices; i++) {
        size_t count = gap(x, i, &from);
        memcpy(to, acc + from, count * sizeof *to);
        if (t->feedback.keeps) memset(acc + from, 0, count * sizeof *acc);
        to += count;
    }
}

static void give_rest(struct exchange *x, float *u) {
    struct powersgd *t = x->state;
    const float *sum = t->left + t->size.left;
    for (size_t i = 0, from; i <= t->size.matrices; i++) {
        size_t count = gap(x, i, &from);
        memcpy(u + from, sum, count * sizeof *u);
        sum += count;
    }
}

/* -- a step -------------------------------------------------------------------------------------------------------- */
static void make_left(struct exchange *x, float *acc) {
    PHASE_SCOPE(x->setup.phases, PHASE_PACK);
    struct powersgd *t = x->state;
    for (size_t i = 0; i < t->size.matrices; i++) {
        make_right_orthonormal(x, &t->matrix[i]);
        low_rank_left(&t->matrix[i], t->r, acc, t->right, t->left);
    }
    take_rest(x, acc);
}

static void make_right(struct exchange *x, const float *acc) {
    PHASE_SCOPE(x->setup.phases, PHASE_PACK);
    struct powersgd *t = x->state;
    for (size_t i = 0; i < t->size.matrices; i++) {
        const struct low_rank_matrix *m = &t->matrix[i];
        for (size_t c = 0; c < t->r; c++) low_rank_orthonormal(t->left + m->left, m->rows, c);
        low_rank_right(m, t->r, acc, t->left, t->right);
    }
}

SIMD_CLONES static void subtract_mean(const float *u, float scale, size_t count, float *acc) {
    for (size_t i = 0; i < count; i++) acc[i] -= u[i] * scale;
}

static void make_sum(struct exchange *x, float *acc, float *u) {
    PHASE_SCOPE(x->setup.phases, PHASE_PACK);
    struct powersgd *t = x->state;
    const float scale = 1 / (float)x->setup.comm->size;
    for (size_t i = 0; i < t->size.matrices; i++) {
        const struct low_rank_matrix *m = &t->matrix[i];
        low_rank_expand(m, t->r, t->left, t->right, u);
        if (t->feedback.keeps) subtract_mean(u + m->from, scale, m->count, acc + m->from);
    }
    give_rest(x, u);
}

/* -- costs --------------------------------------------------------------------------------------------------------- */
static double words(struct low_rank_size size, int P) {
    return 2.0 * (double)(size.left + size.right + size.rest) * (P - 1) / P;
}

static double powersgd_max_words(const struct cost_case *c) {
    return words(low_rank_size(c->slice, c->slices, c->n, rank_of(&c->options), NULL), c->P);
}

static void powersgd_cost(const struct cost_case *c, struct cost *cost) {
    const struct low_rank_size size = low_rank_size(c->slice, c->slices, c->n, rank_of(&c->options), NULL);
    *cost = (struct cost){.alphas = (size.matrices > 0 ? 4.0 : 2.0) * ceil_log2(c->P), .words = words(size, c->P)};
}

static double powersgd_own_max_words(const struct exchange *x, size_t k) {
    const struct powersgd *t = x->state;
    (void)k;
    return words(t->size, x->setup.comm->size);
}

static bool powersgd_run(struct exchange *x, float *grad, size_t k, struct exchange_sum *sum) {
    struct powersgd *t = x->state;
    struct feedback *f = &t->feedback;
    struct comm *comm = x->setup.comm;
    (void)k;
    if (!feedback_take(f, x, grad, &sum->bad)) return false;
    make_left(x, f->acc);
    comm_allreduce_f32(comm, t->left, t->size.left + t->size.rest, COMM_SUM);
    make_right(x, f->acc);
    if (t->size.right > 0) comm_allreduce_f32(comm, t->right, t->size.right, COMM_SUM);
    make_sum(x, f->acc, f->u);
    ++*t->step;
    return feedback_give(f, x, grad, sum);
}

/* -- checkpoints --------------------------------------------------------------------------------------------------- */
static bool powersgd_saved(struct exchange *x, size_t piece, void **memory, size_t *bytes) {
    struct powersgd *t = x->state;
    *memory = piece == 0 ? (void *)t->step : t->right;
    *bytes = piece == 0 ? sizeof *t->step : t->size.right * sizeof *t->right;
    return piece < 2;
}

static bool powersgd_check(const struct exchange *x, uint64_t *alike, struct err *e) {
    const struct powersgd *t = x->state;
    if (*t->step > STEPS_MAX) return err_set(e, "powersgd's number of steps is none");
    if (first_nonfinite(t->right, t->size.right) < t->size.right)
        return err_set(e, "powersgd has a direction that is no number");
    *alike = hash64(hash64(*alike, t->step, sizeof *t->step), t->right, t->size.right * sizeof *t->right);
    return true;
}

static void powersgd_skip(struct exchange *x, uint64_t steps) {
    *((struct powersgd *)x->state)->step = steps;
}

extern const struct exchange_ops exchange_powersgd;
const struct exchange_ops exchange_powersgd = {
    .name = "powersgd",
    .summary = "matrices as their products with a few directions, by two allreduces, with error feedback",
    .paper = "PowerSGD (Vogels, Karimireddy and Jaggi, NeurIPS 2019)",
    .options = OPTION_PART(powersgd_options),
    .conserves = true,
    .rounds = true,
    .low_rank = true,
    .keeps = feedback_keeps,
    .loses = feedback_loses,
    .open = powersgd_open,
    .run = powersgd_run,
    .close = powersgd_close,
    .max_words = powersgd_max_words,
    .own_max_words = powersgd_own_max_words,
    .cost = powersgd_cost,
    .saved = powersgd_saved,
    .check = powersgd_check,
    .skip = powersgd_skip,
};
