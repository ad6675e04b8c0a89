/* exchange_rig.h: one exchange with everything under it, gradients to feed it, and the checks that hold for every row,
 * for tests under mpirun (mpi_harness.h), on the device of test_device.h.
 *
 *        rig_open(c, exchange_named("topka"), exact(), n, k_max, GTOPK_CONSERVE);
 *        make_gradient(WHOLE, c->rank, c->size, step, n, rig.grad);
 *        rig_step(k);                 // rig.u, rig.residual: dense copies of what came out
 *        rig_step_with_overlap(WHOLE, step, k, RANDOMLY_READY), rig_unfold();                // the same, by and by
 *        rig_close();
 *        ... return rig_test_main(argc, argv, "comm_example", cases, 1);
 */
#ifndef ST_TESTS_EXCHANGE_RIG_H
#define ST_TESTS_EXCHANGE_RIG_H

#include "tests/lib/mpi_harness.h"

#include <math.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/rng.h"
#include "comm/algorithms/gtopk.h"
#include "comm/library_options.h"
#include "comm/reducer.h"
#include "tests/lib/test_device.h"

enum { RIG_N = 1100 }; /* the largest n */

/* -- gradients: a function of (kind, rank, step), so that every rank knows those of all ---------------- */
enum kind {
    WHOLE,      /* integers in -8..8: sums are exact */
    TIES,       /* -1 or 1 */
    ZEROS,      /* all zero */
    ONE_REGION, /* integers, zero outside the first eighth: one rank's region holds all that matters */
    ONE_SILENT, /* integers, but the last rank has nothing to send */
    POSITIVE,   /* integers in 0..8 */
    REAL,       /* normally distributed */
    KINDS
};
static inline bool exact_sums(enum kind kind) {
    return kind != REAL;
}

/* The numbers that they are made of: whole ones in -8..8, of REAL normal ones. */
static inline void make_numbers(enum kind kind, int rank, int step, size_t n, float *number) {
    struct rng r = rng_open(7 + (uint64_t)kind, RNG_TEST, (uint64_t)(rank * 1000 + step));
    for (size_t i = 0; i < n; i++) {
        number[i] = (float)rng_below(&r, 17) - 8;
        if (kind == REAL) number[i] = (float)rng_normal(&r);
    }
}

/* The same, [RIG_N]: tests ask for them again and again, so the last ones are kept. */
static inline const float *numbers_of(enum kind kind, int rank, int step) {
    enum { KEPT = 1024 };
    static struct row {
        bool made;
        int kind, rank, step;
        float number[RIG_N];
    } kept[KEPT];
    struct row *row = &kept[((size_t)rank + 41 * (size_t)step + 331 * (size_t)kind) % KEPT];
    if (row->made && row->kind == (int)kind && row->rank == rank && row->step == step) return row->number;
    make_numbers(kind, rank, step, RIG_N, row->number);
    row->made = true, row->kind = (int)kind, row->rank = rank, row->step = step;
    return row->number;
}

static inline void make_gradient(enum kind kind, int rank, int P, int step, size_t n, float *grad) {
    if (n <= RIG_N)
        memcpy(grad, numbers_of(kind, rank, step), n * sizeof *grad);
    else
        make_numbers(kind, rank, step, n, grad);
    for (size_t i = 0; i < n; i++) {
        switch (kind) {
        case TIES:
            grad[i] = grad[i] > 0 ? 1 : -1;
            break;
        case ZEROS:
            grad[i] = 0;
            break;
        case ONE_REGION:
            if (i > n / 8) grad[i] = 0;
            break;
        case ONE_SILENT:
            if (rank == P - 1) grad[i] = 0;
            break;
        case POSITIVE:
            grad[i] = fabsf(grad[i]);
            break;
        default:
            break;
        }
    }
}

/* -- one exchange with everything under it ----------------------------------------------------------- */
struct rig {
    struct comm *comm;
    size_t n;
    struct reducer reducer;
    struct phases phases;
    struct exchange_sum sum;
    float grad[RIG_N], residual[RIG_N], u[RIG_N]; /* [n] */
    float *device_grad;                           /* device, [n]: grad itself on the CPU */
};
static struct rig rig;

/* "name=value,..." of the algorithms' own options, and gtopk's rule; what loses gradient by default loses none unless
 * they say so. Until the next call. */
static inline struct option_values rig_options(const char *text, enum gtopk_residual rule) {
    static struct library_options o;
    struct err e = {0};
    char all[256];
    snprintf(all, sizeof all, "residual-decay=1,demo-decay=1,demo-sign=off,%s%sgtopk-residual=%s", text,
             *text ? "," : "", rule == GTOPK_PAPER ? "paper" : "conserve");
    if (!library_options_parse(&o, "dense", all, &e)) die("%s", e.text);
    return library_values(&o);
}

/* setup: all but the device, comm, phases and wants_sent, which every test has. */
static inline void rig_open_setup(struct comm *c, struct reducer_setup setup) {
    rig.comm = c;
    rig.n = setup.exchange.n;
    phases_reset(&rig.phases);
    rig.device_grad = device_twin(rig.grad, rig.n);
    setup.device = test_device();
    setup.exchange.comm = c;
    setup.exchange.phases = &rig.phases;
    setup.exchange.wants_sent = true; /* so that it is looked at wherever there is a sum */
    reducer_open(&rig.reducer, &setup);
}

/* extra: what else to set up. With groups it runs by layers. */
static inline void rig_open_with(struct comm *c, const struct exchange_ops *ops, const struct selector_ops *select,
                                 size_t n, size_t k_max, const struct exchange_setup *extra) {
    struct reducer_setup setup = {.ops = ops, .select = select, .exchange = *extra};
    setup.exchange.n = n;
    setup.exchange.k_max = k_max;
    rig_open_setup(c, setup);
}

static inline void rig_open(struct comm *c, const struct exchange_ops *ops, const struct selector_ops *select, size_t n,
                            size_t k_max, enum gtopk_residual rule) {
    const struct exchange_setup extra = {.options = rig_options("tau-prime=1,tau=2", rule)};
    rig_open_with(c, ops, select, n, k_max, &extra);
}

static inline void rig_close(void) {
    reducer_close(&rig.reducer);
    device_twin_free(rig.device_grad, rig.grad);
}

/* Is this format one that loops over formats take? What one does is done on the host, whatever the device, and knows no
 * number of ranks: on other devices, and of more than nine ranks, one that packs and rounds, one that packs alone, one
 * of 16 bits and coo32 stand for all. */
static inline bool takes_format(const struct wire_ops *w) {
    static const char *const others[] = {"packed-fast", "packed-fast-f32", "fp16"};
    bool all = test_device_is_host() && mpi_test_comm->size <= 9;
    for (size_t i = 0; !all && i < sizeof others / sizeof *others; i++)
        if (strcmp(w->name, others[i]) == 0) return false;
    return true;
}

static inline const struct selector_ops *exact(void) {
    for (size_t s = 0; selectors[s]; s++)
        if (strcmp(selectors[s]->name, "exact") == 0) return selectors[s];
    fail_msg("no selector \"exact\"");
    return NULL;
}

/* A selector whose count differs from rank to rank and from step to step, whatever k is: nothing, a few, all. */
static inline void no_state(struct selector *s) {
    (void)s;
}
static inline bool six_and_more(struct selector *s, const float *grad, size_t k, struct sparse *out, size_t *bad) {
    (void)k;
    (void)bad;
    s->store->ops->accumulate_select(s->store, grad, magnitude_key(6.0f), out);
    return true;
}
static const struct selector_ops threshold_selector = {
    .name = "threshold", .open = no_state, .run = six_and_more, .close = no_state};

static inline const struct exchange_ops *exchange_named(const char *name) {
    for (size_t row = 0; exchanges[row]; row++)
        if (strcmp(exchanges[row]->name, name) == 0) return exchanges[row];
    fail_msg("no exchange \"%s\"", name);
    return NULL;
}

/* Between the two nothing is allocated; but checks of messages need memory of their own. */
static inline void rig_no_memory(void) {
    if (!rig.comm->wire_check) mem_fail_at(1);
}
static inline void rig_memory_again(void) {
    mem_fail_at(0);
}

/* exchange_run over rig.grad, which holds afterwards what the row has left there. */
static inline bool rig_run(size_t k) {
    device_fill(rig.device_grad, rig.grad, rig.n);
    rig_no_memory();
    bool good = exchange_run(&rig.reducer.exchange, rig.device_grad, k, &rig.sum);
    rig_memory_again();
    device_download(rig.grad, rig.device_grad, rig.n);
    return good;
}

/* rig.residual from the store; nothing is left in a row that has none. */
static inline void rig_residual(void) {
    struct store *s = &rig.reducer.store;
    memset(rig.residual, 0, sizeof rig.residual);
    if (s->acc) s->ops->read(s, 0, rig.n, rig.residual);
}

/* rig.u and rig.residual from rig.sum and the store. */
static inline void rig_unfold(void) {
    memset(rig.u, 0, sizeof rig.u);
    assert_true((rig.sum.dense != NULL) != (rig.sum.sparse != NULL));
    if (rig.sum.dense) device_download(rig.u, rig.sum.dense, rig.n);
    if (rig.sum.sparse) {
        const struct sparse *s = rig.sum.sparse;
        assert_int_equal(rig.sum.global_nnz, s->nnz);
        assert_true(sparse_valid(s, rig.n));
        for (size_t i = 0; i < s->nnz; i++) rig.u[s->idx[i]] = s->val[i];
    }
    rig_residual();
}

/* One step from rig.grad; then rig.u and rig.residual hold what it made. Nothing is allocated in it (rig_no_memory). */
static inline void rig_step(size_t k) {
    assert_true(rig_run(k));
    rig_unfold();
}

/* -- a backward pass ------------------------------------------------------------------------------------------- */
enum how { WITHOUT_BEGIN, NEVER_READY, RANDOMLY_READY, HOWS };

/* The gradient comes from the end on, in pieces of random length; what has not come is not a number, so that a row that
 * takes it too early is found out. Then one step. */
static inline bool rig_step_with_overlap(enum kind kind, int step, size_t k, enum how how) {
    static float whole[RIG_N];
    struct comm *c = rig.comm;
    struct rng r = rng_open(23, RNG_TEST, (uint64_t)(1000 * step + c->rank));
    size_t from = rig.n;
    make_gradient(kind, c->rank, c->size, step, rig.n, whole);
    for (size_t i = 0; i < rig.n; i++) rig.grad[i] = NAN;
    device_fill(rig.device_grad, rig.grad, rig.n);
    rig_no_memory();
    if (how != WITHOUT_BEGIN) exchange_begin(&rig.reducer.exchange, rig.device_grad, k);
    while (from > 0) {
        size_t now = 1 + rng_below(&r, (uint32_t)(rig.n / 3 + 1));
        size_t next = now < from ? from - now : 0;
        test_device()->to_device(rig.device_grad + next, whole + next, (from - next) * sizeof *whole);
        from = next;
        if (how != RANDOMLY_READY) continue;
        exchange_ready(&rig.reducer.exchange, from);
        if (rng_below(&r, 4) == 0) usleep(rng_below(&r, 300));
    }
    bool good = exchange_run(&rig.reducer.exchange, rig.device_grad, k, &rig.sum);
    rig_memory_again();
    device_download(rig.grad, rig.device_grad, rig.n);
    return good;
}

/* -- checks ---------------------------------------------------------------------------------------------------- */
/* Of the step that rig.u comes from. */
static inline uint64_t hash_of_sum(void) {
    const struct sparse *s = rig.sum.sparse;
    if (!s) return hash64(0, rig.u, rig.n * sizeof(float));
    return hash64(hash64(s->nnz, s->idx, s->nnz * sizeof *s->idx), s->val, s->nnz * sizeof *s->val);
}

static inline void all_ranks_hold_the_same(uint64_t hash) {
    uint64_t least_and_most[2] = {hash, ~hash};
    comm_allreduce_u64(rig.comm, least_and_most, 2, COMM_MIN);
    assert_true(least_and_most[0] == ~least_and_most[1]);
}

/* sum_r given_r - summed - sum_r residual_r into missing[0..n-1]; given: what this rank put in. */
static inline void find_missing(const float *given, const double *summed, double *missing) {
    for (size_t i = 0; i < rig.n; i++) missing[i] = (double)given[i] - (double)rig.residual[i];
    comm_allreduce_f64(rig.comm, missing, rig.n, COMM_SUM);
    for (size_t i = 0; i < rig.n; i++) missing[i] -= summed[i];
}

/* Nothing of what was put in is missing: for gradients whose sums are exact. */
static inline void conserves(const float *given, const double *summed) {
    static double missing[RIG_N];
    find_missing(given, summed, missing);
    for (size_t i = 0; i < rig.n; i++) assert_true(missing[i] == 0);
}

/* The same to the rounding of floats: of numbers around 1, added a few times. */
static inline void nearly_conserves(const float *given, const double *summed, double tolerance) {
    static double missing[RIG_N];
    find_missing(given, summed, missing);
    for (size_t i = 0; i < rig.n; i++)
        if (!(fabs(missing[i]) <= tolerance * rig.comm->size))
            fail_msg("%s: %g missing at %zu", rig.reducer.exchange.ops->name, missing[i], i);
}

/* Every index of s is one of u. */
static inline bool inside(const struct sparse *s, const struct sparse *u) {
    size_t at = 0;
    for (size_t i = 0; i < s->nnz; i++) {
        while (at < u->nnz && u->idx[at] < s->idx[i]) at++;
        if (at == u->nnz || u->idx[at] != s->idx[i]) return false;
    }
    return true;
}

/* Of the step that rig.u comes from: what the ranks have in u adds up to u; to the bit where gradients are integers.
 * Rows that add up before they select, and dense ones, cannot say. */
static inline void sent_is_u(enum kind kind) {
    static double missing[RIG_N];
    const struct exchange_ops *ops = rig.reducer.exchange.ops;
    const struct sparse *sent = rig.sum.sent, *delivered = rig.sum.delivered;
    assert_true((sent != NULL) == (delivered != NULL));
    if ((sent != NULL) != (ops->sparse && !ops->by_node)) fail_msg("%s: sparse, by_node and sent", ops->name);
    if (!sent) return;
    assert_true(sparse_valid(sent, rig.n) && sparse_valid(delivered, rig.n));
    if (!inside(sent, rig.sum.sparse) || !inside(delivered, rig.sum.sparse))
        fail_msg("%s: a rank has something in u at an index that is not in it", ops->name);
    memset(missing, 0, sizeof missing);
    for (size_t i = 0; i < sent->nnz; i++) missing[sent->idx[i]] = (double)sent->val[i];
    comm_allreduce_f64(rig.comm, missing, rig.n, COMM_SUM);
    for (size_t i = 0; i < rig.n; i++) {
        missing[i] -= (double)rig.u[i];
        if (!(fabs(missing[i]) <= (exact_sums(kind) ? 0 : 1e-4)))
            fail_msg("%s: what the ranks have in u is %g more than u at %zu", ops->name, missing[i], i);
    }
}

/* A test of exchanges: before MPI starts, the device is asked for, which ends the program where there is none. */
static inline int rig_test_main(int argc, char **argv, const char *group, const struct mpi_case *cases, size_t count) {
    test_device();
    return mpi_test_main(argc, argv, group, cases, count);
}

/* Since `before` this rank has sent, and has received, at most so many words. */
static inline void within_words(struct comm_counters before, double most) {
    const struct comm_counters *now = &rig.comm->counters[TRAFFIC_EXCHANGE];
    assert_true((double)(now->bytes_sent - before.bytes_sent) / 4 <= most);
    assert_true((double)(now->bytes_received - before.bytes_received) / 4 <= most);
}

static inline void within_bound(struct comm_counters before, const struct exchange_ops *ops, size_t k) {
    const struct cost_case c = {.n = rig.n, .k = k, .P = rig.comm->size, .ranks_per_node = rig.comm->local_size};
    const double most = ops->own_max_words ? ops->own_max_words(&rig.reducer.exchange, k) : ops->max_words(&c);
    within_words(before, most + rig.sum.extra_words);
}

#endif
