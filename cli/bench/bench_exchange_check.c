/* bench_exchange_check.c: what `bench` verifies, see bench_exchange.h. Sums over the ranks are taken in doubles, a
 * piece of the vector at a time, so that no rank holds another one's. Nothing here knows how an algorithm works. */
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "cli/bench/bench_exchange.h"

enum { PIECE = 1 << 16 }; /* entries */

void bench_check_open(struct bench_check *k, size_t n) {
    *k = (struct bench_check){0};
    k->account = mem_zalloc(n, sizeof *k->account, "the account of the bench's gradients");
    k->weight = mem_zalloc(n, sizeof *k->weight, "magnitudes of the bench's gradients");
}

void bench_check_close(struct bench_check *k) {
    mem_free(k->account);
    mem_free(k->weight);
    *k = (struct bench_check){0};
}

/* -- over all steps: conservation and replicas --------------------------------------------------------------------- */

void bench_check_before(struct bench_check *k, const struct bench_case *b) {
    for (size_t i = 0; i < b->n; i++) {
        k->account[i] += (double)b->host[i];
        k->weight[i] += fabsf(b->host[i]);
    }
    k->steps++;
}

/* u is the same on all ranks, so only rank 0 subtracts it; where u is each rank's own (`drifts`), every rank does. A
 * dense u has become the update u/P in place. */
void bench_check_after(struct bench_check *k, const struct bench_case *b, const struct exchange_sum *sum) {
    const struct sparse *s = sum->sparse;
    double scale = b->ops->drifts ? 1 : b->comm->size; /* of u over the update */
    if (b->host != b->grad) b->request->device->to_host(b->host, b->grad, b->n * sizeof *b->host);
    if (s)
        k->hash = hash64(hash64(k->hash + s->nnz, s->idx, s->nnz * sizeof *s->idx), s->val, s->nnz * sizeof *s->val);
    else
        k->hash = hash64(k->hash, b->host, b->n * sizeof *b->host);
    if (b->comm->rank > 0 && !b->ops->drifts) return;
    for (size_t i = 0; s && i < s->nnz; i++) k->account[s->idx[i]] -= (double)s->val[i];
    for (size_t i = 0; !s && i < b->n; i++) k->account[i] -= scale * (double)b->host[i];
}

/* What is missing of entries [from, from + count), and their tolerance: each addition to a residual and each of a sum
 * of P rounds to 2^-24 of what it adds up, which is never more than the magnitudes of all gradients together; a factor
 * of 2 for the sums that round twice. least: a weight that each entry has besides. piece: [2 PIECE] */
static uint64_t count_missing(const struct bench_check *k, struct bench_case *b, size_t from, size_t count,
                              double least, float *residual, double *piece) {
    double *missing = piece, *weight = piece + PIECE;
    double part = ((double)k->steps + b->comm->size + 8) * 0x1p-23;
    uint64_t wrong = 0;
    memset(residual, 0, count * sizeof *residual);
    if (b->reducer.keeps) b->reducer.store.ops->read(&b->reducer.store, from, count, residual);
    for (size_t i = 0; i < count; i++) {
        missing[i] = k->account[from + i] - (double)residual[i];
        weight[i] = (double)k->weight[from + i];
    }
    if (!b->ops->drifts) comm_allreduce_f64(b->comm, piece, PIECE + count, COMM_SUM);
    for (size_t i = 0; i < count; i++)
        if (!(fabs(missing[i]) <= part * (weight[i] + least))) wrong++;
    return b->ops->drifts || b->comm->rank == 0 ? wrong : 0;
}

static uint64_t sum_over_ranks(struct comm *c, uint64_t mine) {
    comm_allreduce_u64(c, &mine, 1, COMM_SUM);
    return mine;
}

/* Where one scale serves many entries, a small one is rounded as the large ones are: the largest weight. */
static double weight_of_scales(const struct bench_check *k, struct bench_case *b) {
    double most = 0;
    for (size_t i = 0; b->ops->rounds && i < b->n; i++) most = fmax(most, (double)k->weight[i]);
    comm_allreduce_f64(b->comm, &most, 1, COMM_MAX);
    return most * b->comm->size;
}

uint64_t bench_check_end(struct bench_check *k, struct bench_case *b) {
    double *piece = mem_zalloc(2 * PIECE, sizeof *piece, "a piece of the bench's account");
    float *residual = mem_alloc(PIECE, sizeof *residual, "a piece of the residual");
    uint64_t wrong = 0, first = k->hash;
    const struct option_values own = bench_own(b->request);
    const bool kept = b->ops->drifts || exchange_conserves(b->ops, &own);
    const double least = weight_of_scales(k, b);
    for (size_t from = 0; kept && from < b->n; from += PIECE)
        wrong += count_missing(k, b, from, b->n - from < PIECE ? b->n - from : PIECE, least, residual, piece);
    comm_bcast(b->comm, 0, &first, sizeof first);
    if (!b->ops->drifts && k->hash != first) wrong++;
    mem_free(residual);
    mem_free(piece);
    return sum_over_ranks(b->comm, wrong);
}

/* -- one step against its definition ------------------------------------------------------------------------------- */

enum definition {
    NONE,
    SUM_OF_ALL,      /* u = sum of the gradients */
    SUM_OF_SELECTED, /* u = sum of what the ranks selected of acc */
    LARGEST_OF_SUM,  /* the k largest entries of that sum */
};

/* At one rank the sum of what was selected is all that any algorithm can give. */
static enum definition definition_of(const struct bench_case *b) {
    if (b->ops->rounds) return NONE;
    if (!b->ops->sparse) return b->ops->drifts ? NONE : SUM_OF_ALL;
    if (!b->ops->selects || b->ops->blind) return NONE;
    if (b->ops->sends_all) return b->ops->keeps_k ? LARGEST_OF_SUM : SUM_OF_SELECTED;
    return b->comm->size == 1 ? LARGEST_OF_SUM : NONE;
}

/* What this rank selected: by definition where the selector is the exact one, else as the exchange says, which is then
 * checked against acc. */
struct selection {
    bool exact;
    uint32_t kth;              /* exact: all keys above it, and `ties` equal ones */
    size_t ties, at;           /* at: position in `sent` of the walk */
    const struct sparse *sent; /* where not exact: what was delivered, all that was selected or what u has of it */
    const struct wire_ops *wire;
    uint64_t wrong; /* entries of sent that are not acc's */
};

bool bench_wants_sent(const struct bench_case *b) {
    return b->request->check && b->select && !b->select->exact;
}

static float rounded(const struct wire_ops *w, float value) {
    return w->rounds ? w->round(value) : value;
}

static void select_exactly(struct selection *s, const float *acc, size_t n, size_t k) {
    uint32_t *key = mem_alloc(n, sizeof *key, "keys of the reference");
    for (size_t i = 0; i < n; i++) key[i] = magnitude_key(acc[i]);
    s->exact = true;
    s->kth = key_kth_largest(key, n, k);
    s->ties = k;
    mem_free(key); /* they are in another order now */
    for (size_t i = 0; i < n; i++) s->ties -= magnitude_key(acc[i]) > s->kth;
}

/* value[0..count-1] = what this rank selected of acc[from...], 0 elsewhere; in the order of the pieces. */
static void selected_piece(struct selection *s, const float *acc, size_t from, size_t count, double *value) {
    for (size_t i = 0; i < count; i++) {
        uint32_t key = magnitude_key(acc[from + i]);
        bool tie = s->exact && key == s->kth && s->ties > 0;
        s->ties -= tie;
        value[i] = s->exact && (key > s->kth || tie) ? (double)rounded(s->wire, acc[from + i]) : 0;
    }
    for (; s->sent && s->at < s->sent->nnz && s->sent->idx[s->at] < from + count; s->at++) {
        float sent = s->sent->val[s->at], own = acc[s->sent->idx[s->at]];
        double off = fabs((double)sent - (double)own);
        if (!(off <= (s->wire->rounds ? 0x1p-7 * fabs((double)own) : 0))) s->wrong++;
        value[s->sent->idx[s->at] - from] = (double)sent;
    }
}

/* u of entries [from, from + count) as doubles. */
static void result_piece(const struct bench_case *b, const struct exchange_sum *sum, size_t from, size_t count,
                         double *u) {
    const struct sparse *s = sum->sparse;
    for (size_t i = 0; i < count; i++) u[i] = s ? 0 : (double)b->host[from + i] * b->comm->size;
    if (!s) return;
    for (size_t at = sparse_lower_bound(s, (uint32_t)from); at < s->nnz && s->idx[at] < from + count; at++)
        u[s->idx[at] - from] = (double)s->val[at];
}

/* Is the update u/P? (Where u is dense it was made in place, and the sum above has looked at it.) */
static uint64_t wrong_update(const struct bench_case *b, const struct exchange_sum *sum, size_t from, size_t count,
                             const double *u) {
    uint64_t wrong = 0;
    for (size_t i = 0; sum->sparse && i < count; i++) {
        double wanted = u[i] / b->comm->size;
        if (!(fabs((double)b->host[from + i] - wanted) <= 0x1p-22 * fabs(wanted))) wrong++;
    }
    return wrong;
}

/* The smallest magnitude in u. */
static double least_of(const struct exchange_sum *sum) {
    double least = INFINITY;
    for (size_t i = 0; i < sum->sparse->nnz; i++) least = fmin(least, fabs((double)sum->sparse->val[i]));
    return least;
}

struct reference {
    enum definition what;
    struct selection own;
    double tolerance;   /* of an entry, as part of the magnitudes that were added up */
    double least;       /* LARGEST_OF_SUM: smallest magnitude in u */
    uint64_t outside;   /* entries of the sum that are not in u */
    double *u, *wanted; /* [PIECE]; [2 PIECE]: the sum, the sum of magnitudes */
};

/* Entries of a piece that are not as defined. */
static uint64_t compare_piece(struct reference *r, const struct bench_case *b, size_t count) {
    const double *wanted = r->wanted, *weight = r->wanted + PIECE;
    uint64_t wrong = 0;
    for (size_t i = 0; i < count; i++) {
        double slack = r->tolerance * weight[i];
        bool cut = r->what == LARGEST_OF_SUM && r->u[i] == 0; /* it may be left out if it is no larger than those in */
        if (cut && weight[i] > 0) r->outside++;
        if (!(cut ? fabs(wanted[i]) <= r->least + slack : fabs(r->u[i] - wanted[i]) <= slack)) wrong++;
    }
    return b->comm->rank == 0 ? wrong : 0; /* every rank finds the same */
}

static uint64_t check_piece(struct reference *r, const struct bench_case *b, const struct exchange_sum *sum,
                            const float *acc, size_t from, size_t count) {
    double *wanted = r->wanted, *weight = r->wanted + PIECE;
    result_piece(b, sum, from, count, r->u);
    uint64_t wrong = wrong_update(b, sum, from, count, r->u);
    if (r->what == NONE) return wrong;
    if (r->what == SUM_OF_ALL)
        for (size_t i = 0; i < count; i++) wanted[i] = (double)acc[from + i];
    else
        selected_piece(&r->own, acc, from, count, wanted);
    for (size_t i = 0; i < count; i++) weight[i] = fabs(wanted[i]);
    comm_allreduce_f64(b->comm, wanted, PIECE + count, COMM_SUM);
    return wrong + compare_piece(r, b, count);
}

/* Which definition can be applied to this step; the same on all ranks. */
static void reference_open(struct reference *r, const struct bench_case *b, const struct exchange_sum *sum,
                           const float *acc) {
    const struct wire_ops *wire = b->request->wire;
    *r = (struct reference){.what = definition_of(b), .own = {.wire = wire}};
    r->tolerance = (b->comm->size + 4) * 0x1p-23 + (wire->rounds ? 0x1p-6 : 0);
    r->u = mem_alloc(PIECE, sizeof *r->u, "a piece of the sum");
    r->wanted = mem_zalloc(2 * PIECE, sizeof *r->wanted, "a piece of the reference");
    if (r->what == SUM_OF_SELECTED || r->what == LARGEST_OF_SUM) {
        if (b->select->exact)
            select_exactly(&r->own, acc, b->n, b->k);
        else if (sum->delivered)
            r->own.sent = sum->delivered;
        else
            r->what = NONE;
    }
    if (r->what == LARGEST_OF_SUM && !sum->sparse) r->what = SUM_OF_SELECTED;
    if (r->what == LARGEST_OF_SUM) r->least = least_of(sum);
    /* What was cut away at one rank is known to be smaller only where the selector was exact. */
    if (r->what == LARGEST_OF_SUM && !r->own.exact && b->comm->size == 1) r->what = SUM_OF_SELECTED;
}

/* acc = residual + gradient of this rank, as the store will make it; [n] */
static float *accumulated(struct bench_case *b) {
    float *acc = mem_zalloc(b->n, sizeof *acc, "acc of the reference");
    if (b->reducer.keeps) b->reducer.store.ops->read(&b->reducer.store, 0, b->n, acc);
    for (size_t i = 0; i < b->n; i++) acc[i] += b->host[i];
    return acc;
}

uint64_t bench_check_step(struct bench_check *k, struct bench_case *b) {
    struct exchange_sum sum;
    struct reference r;
    uint64_t wrong = 0;
    float *acc = accumulated(b);
    bench_check_before(k, b);
    b->reducer.exchange.setup.wants_sent = bench_wants_sent(b);
    bench_exchange_step(b, &sum);
    bench_check_after(k, b, &sum);
    reference_open(&r, b, &sum, acc);
    for (size_t from = 0; from < b->n; from += PIECE)
        wrong += check_piece(&r, b, &sum, acc, from, b->n - from < PIECE ? b->n - from : PIECE);
    if (r.what == LARGEST_OF_SUM && b->comm->rank == 0) {
        size_t wanted = r.outside > 0 ? b->k : sum.global_nnz; /* nothing is cut before there are k */
        if (sum.global_nnz < wanted) wrong += wanted - sum.global_nnz;
        if (b->ops->keeps_k && sum.global_nnz > b->k) wrong += sum.global_nnz - b->k;
    }
    wrong += r.own.wrong;
    mem_free(r.wanted);
    mem_free(r.u);
    mem_free(acc);
    return sum_over_ranks(b->comm, wrong);
}
