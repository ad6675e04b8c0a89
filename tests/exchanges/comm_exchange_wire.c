/* comm_exchange_wire.c: the contract of one step (exchange.h) with every wire format: whatever a format rounds off
 * stays in a residual, replicas stay bit-identical, and a format that rounds nothing changes no bit of a run. */
/* ranks: 1 2 3 4 5 7 8 */
/* faults: 3 */
/* devices: cuda ranks 1 3 4 */
#include "tests/lib/exchange_rig.h"

#pragma GCC diagnostic ignored "-Wunused-function" /* not all of it is wanted here */
#include "tests/lib/exchange_oracle.h"

static const struct shape {
    size_t n, k;
    bool all_kinds;
} shapes[] = {{1, 1, false}, {3, 1, false}, {7, 2, false}, {1009, 1, false}, {1009, 100, true}, {1009, 1009, false}};
enum { SHAPES = sizeof shapes / sizeof shapes[0], STEPS = 3 };

static const struct wire_ops *wire_named(const char *name) {
    for (size_t w = 0; wires[w]; w++)
        if (strcmp(wires[w]->name, name) == 0) return wires[w];
    fail_msg("no wire format \"%s\"", name);
    return NULL;
}

/* -- a selector that returns more or fewer than k, or nothing, and declares that it may return all ----------- */
static size_t everything(size_t n, size_t k_max) {
    (void)k_max;
    return n;
}
static const struct selector_ops threshold = {
    .name = "threshold", .capacity = everything, .open = no_state, .run = six_and_more, .close = no_state};

/* -- the checks -------------------------------------------------------------------------------------------- */
struct trial {
    const struct exchange_ops *ops;
    const struct wire_ops *wire;
    const struct selector_ops *select;
    enum gtopk_residual rule;
    struct shape shape;
    enum kind kind;
};

static void open_trial(struct comm *c, const struct trial *t) {
    const struct exchange_setup extra = {.wire = t->wire, .options = rig_options("tau-prime=2,tau=2", t->rule)};
    rig_open_with(c, t->ops, t->select, t->shape.n, t->shape.k, &extra);
}

static size_t k_of_step(const struct trial *t, int step) {
    return step % 2 == 0 ? t->shape.k : (t->shape.k + 1) / 2;
}

/* Three times integers in -8..8: more than 8 bits, so that bf16 rounds some of them. */
static void gradient(const struct trial *t, int rank, int P, int step, float *grad) {
    make_gradient(t->kind, rank, P, step, t->shape.n, grad);
    for (size_t i = 0; t->kind != REAL && i < t->shape.n; i++) grad[i] *= 89;
}

/* Several steps. Returns a hash of all that came out: sums, residuals, what was sent. */
static uint64_t several_steps(struct comm *c, const struct trial *t) {
    static double missing[ORACLE_N], summed[ORACLE_N];
    float given[ORACLE_N] = {0};
    uint64_t hash = 0, sums = 0;
    size_t n = t->shape.n;
    memset(summed, 0, sizeof summed);
    open_trial(c, t);
    for (int step = 0; step < STEPS; step++) {
        gradient(t, c->rank, c->size, step, rig.grad);
        for (size_t i = 0; i < n; i++) given[i] += rig.grad[i];
        rig_step(k_of_step(t, step));
        sums = hash64(sums, (uint64_t[]){hash_of_sum()}, sizeof sums);
        hash = hash64(hash, rig.residual, n * sizeof(float));
        sent_is_u(t->kind);
        const struct sparse *sent = rig.sum.sent, *own = rig.sum.delivered;
        if (sent) hash = hash64(hash64(hash, sent->idx, 4 * sent->nnz), sent->val, 4 * sent->nnz);
        if (sent) hash = hash64(hash64(hash, own->idx, 4 * own->nnz), own->val, 4 * own->nnz);
        for (size_t i = 0; i < n; i++) {
            assert_true(isfinite(rig.u[i]) && isfinite(rig.residual[i]));
            summed[i] += (double)rig.u[i];
        }
    }
    if (!t->ops->drifts) all_ranks_hold_the_same(sums);
    if (t->ops->conserves && t->rule == GTOPK_CONSERVE && exact_sums(t->kind)) {
        find_missing(given, summed, missing);
        for (size_t i = 0; i < n; i++)
            if (missing[i] != 0)
                fail_msg("%s, %s, n = %zu, k = %zu, kind %d: %g missing at %zu", t->ops->name, t->wire->name, n,
                         t->shape.k, (int)t->kind, missing[i], i);
    }
    rig_close();
    return hash64(hash, &sums, sizeof sums);
}

static bool wanted(const struct comm *c, const struct shape *shape, enum kind kind) {
    /* formats work in host memory: on another device, what leaves it and comes back */
    if (!test_device_is_host()) return shape->all_kinds ? kind == WHOLE || kind == REAL : kind == WHOLE && shape->n < 9;
    if (kind == WHOLE || kind == REAL) return true;
    return shape->all_kinds && (c->size <= 4 || kind == ONE_REGION); /* many ranks on few cores are slow */
}

/* Every sparse row, format, shape and kind of gradient. */
static void over_everything(struct comm *c, const struct selector_ops *select) {
    for (size_t row = 0; exchanges[row]; row++)
        for (int s = 0; exchanges[row]->sparse && s < SHAPES; s++)
            for (enum kind kind = 0; kind < KINDS; kind++) {
                uint64_t plain = 0;
                if (!wanted(c, &shapes[s], kind)) continue;
                for (size_t w = 0; wires[w]; w++) {
                    if (!takes_format(wires[w])) continue;
                    struct trial t = {exchanges[row], wires[w], select, GTOPK_CONSERVE, shapes[s], kind};
                    uint64_t hash = several_steps(c, &t);
                    if (w == 0) plain = hash;
                    if (!wires[w]->rounds && hash != plain)
                        fail_msg("%s, %s, n = %zu, k = %zu, kind %d: not what coo32 gives", t.ops->name, t.wire->name,
                                 t.shape.n, t.shape.k, (int)kind);
                }
            }
}

static void contract(struct comm *c) {
    over_everything(c, exact());
}
static void a_selector_of_varying_count(struct comm *c) {
    over_everything(c, &threshold);
}

static void two_runs_give_the_same_bits(struct comm *c) {
    for (size_t row = 0; exchanges[row]; row++)
        for (size_t w = 0; exchanges[row]->sparse && wires[w]; w++) {
            if (!takes_format(wires[w])) continue;
            struct trial t = {exchanges[row], wires[w], exact(), GTOPK_CONSERVE, {1009, 100, true}, REAL};
            assert_true(several_steps(c, &t) == several_steps(c, &t));
        }
}

/* -- a serial reference with rounding, for topka, gaussiank, gtopk-naive, gtopk ----------------------------------- */
static struct oracle o;
static float cut_off[2][ORACLE_P][ORACLE_N]; /* what rank r rounded off its own entries; off the sum it passed on */

/* bf16: to the nearest number with 8 significant bits, ties to even. */
static float nearest(float x) {
    int exponent;
    if (x == 0) return x;
    double fraction = frexp((double)x, &exponent); /* 8 bits of it before the point: */
    return (float)ldexp(nearbyint(ldexp(fraction, 8)), exponent - 8);
}

static void round_vector(struct oracle_vector *v, int rank, int hop) {
    for (int i = 0; i < o.n; i++) {
        if (!v->there[i]) continue;
        float rounded = nearest(v->value[i]);
        cut_off[hop][rank][i] = v->value[i] - rounded;
        v->value[i] = rounded;
    }
}

static void tree(int k) {
    int Q = 1;
    while (2 * Q <= o.P) Q *= 2;
    memset(oracle_merges, 0, sizeof oracle_merges);
    memcpy(oracle_node, o.sent, sizeof oracle_node);
    for (int r = Q; r < o.P; r++) oracle_merge(&o, r - Q, r, k);
    for (int stride = 1; stride < Q; stride *= 2)
        for (int r = 0; r < Q; r += 2 * stride) {
            round_vector(&oracle_node[r + stride], r + stride, 1);
            oracle_merge(&o, r, r + stride, k);
        }
    round_vector(&oracle_node[0], 0, 1);
    o.u = oracle_node[0];
}

static void oracle_step(const char *name, int k, bool conserve) {
    bool is_tree = strcmp(name, "gtopk") == 0, all_delivered = !is_tree || conserve;
    memset(cut_off, 0, sizeof cut_off);
    oracle_select(&o, k);
    for (int r = 0; r < o.P; r++) round_vector(&o.sent[r], r, 0);
    if (is_tree)
        tree(k);
    else
        for (int r = 0; r < o.P; r++) oracle_add(&o.u, &o.sent[r], o.n);
    if (strcmp(name, "gtopk-naive") == 0) {
        oracle_cut(&o.u, o.n, k, NULL);
        all_delivered = false;
    }
    for (int r = 0; r < o.P; r++)
        for (int i = 0; i < o.n; i++) {
            bool delivered = all_delivered || o.u.there[i];
            if (delivered && o.sent[r].there[i]) o.acc[r][i] = 0;
            for (int m = 0; is_tree && conserve && m < oracle_merges[r]; m++)
                o.acc[r][i] += oracle_dropped[r][m].value[i];
            for (int hop = 0; delivered && hop < 2; hop++) o.acc[r][i] += cut_off[hop][r][i];
        }
}

static void agree_with_the_oracle(struct comm *c, const struct trial *t) {
    float grad[ORACLE_N];
    memset(&o, 0, sizeof o);
    o.n = (int)t->shape.n;
    o.P = c->size;
    open_trial(c, t);
    for (int step = 0; step < STEPS; step++) {
        for (int r = 0; r < c->size; r++) {
            gradient(t, r, c->size, step, grad);
            for (int i = 0; i < o.n; i++) o.acc[r][i] += grad[i];
        }
        gradient(t, c->rank, c->size, step, rig.grad);
        rig_step(k_of_step(t, step));
        oracle_step(t->ops->name, (int)k_of_step(t, step), t->rule == GTOPK_CONSERVE);
        for (int i = 0; i < o.n; i++) {
            if (rig.u[i] != o.u.value[i] || rig.residual[i] != o.acc[c->rank][i])
                fail_msg("%s, step %d, index %d: u %.9g instead of %.9g, residual %.9g instead of %.9g", t->ops->name,
                         step, i, (double)rig.u[i], (double)o.u.value[i], (double)rig.residual[i],
                         (double)o.acc[c->rank][i]);
        }
        const struct sparse *own = rig.sum.delivered; /* what this rank has in u, as it was sent */
        size_t at = 0;
        for (int i = 0; i < o.n; i++) {
            if (!o.u.there[i] || !o.sent[c->rank].there[i]) continue;
            assert_true(at < own->nnz && own->idx[at] == (uint32_t)i);
            assert_true(own->val[at++] == o.sent[c->rank].value[i]);
        }
        assert_int_equal(at, own->nnz);
        sent_is_u(t->kind);
    }
    rig_close();
}

static void rounding_as_in_the_reference(struct comm *c) {
    static const char *const rows[] = {"topka", "gaussiank", "gtopk-naive", "gtopk"};
    for (int row = 0; row < 4; row++)
        for (enum gtopk_residual rule = GTOPK_CONSERVE; rule <= GTOPK_PAPER; rule++)
            for (int s = 0; s < SHAPES; s++)
                for (enum kind kind = 0; kind < KINDS; kind++) {
                    struct trial t = {exchange_named(rows[row]), wire_named("packed"), exact(), rule, shapes[s], kind};
                    if (wanted(c, &shapes[s], kind)) agree_with_the_oracle(c, &t);
                }
}

/* -- gtopk's published rule: what is missing is what it says, rounding or not ------------------------------------- */
static void the_mass_that_is_lost_is_reported(struct comm *c) {
    static double missing[ORACLE_N];
    for (size_t w = 0; wires[w]; w++) {
        double summed[ORACLE_N] = {0}, reported = 0, lost = 0;
        float given[ORACLE_N] = {0};
        struct trial t = {exchange_named("gtopk"), wires[w], exact(), GTOPK_PAPER, {301, 20, false}, POSITIVE};
        open_trial(c, &t);
        for (int step = 0; step < 10; step++) {
            gradient(&t, c->rank, c->size, step, rig.grad);
            for (int i = 0; i < 301; i++) given[i] += rig.grad[i];
            rig_step(20);
            for (int i = 0; i < 301; i++) summed[i] += (double)rig.u[i];
            reported += rig.sum.mass_lost;
        }
        comm_allreduce_f64(c, &reported, 1, COMM_SUM);
        find_missing(given, summed, missing);
        for (int i = 0; i < 301; i++) lost += missing[i];
        assert_true(reported == lost);
        assert_true(c->size <= 2 ? lost == 0 : lost > 0);
        rig_close();
    }
}

/* -- the formats are really used ---------------------------------------------------------------------------------- */
static double bytes_sent(struct comm *c, const char *row, const struct wire_ops *wire) {
    struct trial t = {exchange_named(row), wire, exact(), GTOPK_CONSERVE, {1009, 200, true}, REAL};
    open_trial(c, &t);
    gradient(&t, c->rank, c->size, 0, rig.grad);
    double before = (double)c->counters[TRAFFIC_EXCHANGE].bytes_sent;
    rig_step(200);
    double sent = (double)c->counters[TRAFFIC_EXCHANGE].bytes_sent - before;
    comm_allreduce_f64(c, &sent, 1, COMM_SUM);
    rig_close();
    return sent;
}

static void fewer_bytes_pass(struct comm *c) {
    static const char *const rows[] = {"topka", "gaussiank", "gtopk-naive", "gtopk"};
    for (int row = 0; c->size > 1 && row < 4; row++) {
        double plain = bytes_sent(c, rows[row], wires[0]);
        assert_true(bytes_sent(c, rows[row], wire_named("packed")) < 0.45 * plain);
        assert_true(bytes_sent(c, rows[row], wire_named("packed-f32")) < 0.7 * plain);
    }
    if (c->size == 1) return; /* micro: a third of it indices, 25 and more in a message; values in half the bits */
    double plain = bytes_sent(c, "micro", wires[0]);
    for (size_t w = 1; wires[w]; w++)
        assert_true(bytes_sent(c, "micro", wires[w]) < (wires[w]->pack ? 0.8 : wires[w]->rounds ? 0.6 : 0.9) * plain);
}

int main(int argc, char **argv) {
    const struct mpi_case cases[] = {
        {"contract", contract},
        {"a_selector_of_varying_count", a_selector_of_varying_count},
        {"two_runs_give_the_same_bits", two_runs_give_the_same_bits},
        {"rounding_as_in_the_reference", rounding_as_in_the_reference},
        {"the_mass_that_is_lost_is_reported", the_mass_that_is_lost_is_reported},
        {"fewer_bytes_pass", fewer_bytes_pass},
    };
    return rig_test_main(argc, argv, "comm_exchange_wire", cases, sizeof cases / sizeof cases[0]);
}
