/* comm_hitopk.c: hitopk on emulated nodes of every size against a serial reference, with every selector and wire
 * format; sums inside nodes in 16 bits; what other ranks have left; the local update that follows, of whole nodes. */
/* ranks: 1 2 3 4 6 8 9 16 */
/* devices: cuda ranks 1 4 */
#include "tests/lib/exchange_rig.h"

#include "tests/lib/exchange_oracle.h"

static const struct shape {
    size_t n, k;
} shapes[] = {{1, 1}, {3, 1}, {3, 3}, {7, 2}, {16, 16}, {1009, 1}, {1009, 5}, {1009, 100}, {1009, 700}, {1009, 1009}};
enum { SHAPES = sizeof shapes / sizeof shapes[0], STEPS = 4, NODES = 16 };

static void nodes_of(struct comm *c, int ranks) {
    struct err e = {0};
    if (!comm_set_ranks_per_node(c, ranks, &e)) fail_msg("%s", e.text);
}

/* -- the reference: each node as one rank with a residual of n ------------------------------------------------- */
static struct {
    float acc[NODES][RIG_N];
    float u[RIG_N];
    float sent[RIG_N]; /* by this rank's node */
    bool there[RIG_N];
    int chosen; /* by the calling rank */
} want;

/* Shard j of m: where it begins, with one entry more in each of the first total % m. */
static int begin_of(int total, int m, int j) {
    return j * (total / m) + (j < total % m ? j : total % m);
}

static void reference_step(const struct comm *c, int n, int k) {
    int m = c->local_size, N = c->nodes;
    bool taken[RIG_N];
    memset(want.u, 0, sizeof want.u);
    memset(want.sent, 0, sizeof want.sent);
    memset(want.there, 0, sizeof want.there);
    for (int node = 0; node < N; node++) {
        for (int j = 0; j < m; j++) {
            int from = begin_of(n, m, j), to = begin_of(n, m, j + 1), share = begin_of(k, m, j + 1) - begin_of(k, m, j);
            if (share == 0 && from < to) share = 1;
            if (node == c->node && j == c->local_rank) want.chosen = share;
            assert_true(share <= to - from);
            oracle_largest(want.acc[node], NULL, from, to, share, taken);
            for (int i = from; i < to; i++) {
                if (!taken[i]) continue;
                want.there[i] = true;
                want.u[i] += want.acc[node][i];
                if (node == c->node) want.sent[i] = want.acc[node][i];
                want.acc[node][i] = 0;
            }
        }
    }
}

static void agrees(const struct comm *c, int n) {
    size_t count = 0;
    int from = begin_of(n, c->local_size, c->local_rank), to = begin_of(n, c->local_size, c->local_rank + 1);
    for (int i = 0; i < n; i++) {
        count += want.there[i];
        assert_true(rig.u[i] == want.u[i]);
        assert_true(rig.residual[i] == (i >= from && i < to ? want.acc[c->node][i] : 0));
    }
    assert_int_equal(rig.sum.global_nnz, count);
    assert_int_equal(rig.sum.local_nnz, want.chosen);
    assert_true(!rig.sum.sent && !rig.sum.delivered);
}

/* -- the local update --------------------------------------------------------------------------------------------- */

/* L: the sum of the fresh gradients of a node, plainly. */
static void gradient_of_node(const struct comm *c, int node, enum kind kind, int step, size_t n, float scale,
                             float *L) {
    static float grad[RIG_N];
    memset(L, 0, n * sizeof *L);
    for (int r = node * c->local_size; r < (node + 1) * c->local_size; r++) {
        make_gradient(kind, r, c->size, step, n, grad);
        for (size_t i = 0; i < n; i++) L[i] += grad[i] * scale;
    }
}

static void ranks_of_a_node_hold_the_same(struct comm *c, const float *grad, size_t n) {
    uint64_t mine = hash64(0, grad, n * sizeof *grad), all[16];
    comm_allgather(c, &mine, sizeof mine, all);
    for (int r = c->node * c->local_size; r < (c->node + 1) * c->local_size; r++) assert_true(all[r] == mine);
}

/* Do sums inside the nodes travel in 16 bits? */
static bool coded(const struct comm *c, const struct wire_ops *wire) {
    return wire->pack && c->local_size > 1;
}

/* After a step: P C = u - S + L of the node, by the reference where there is one (exact: the sums are). Of all nodes
 * together, N of m ranks: sum of P C = (N - 1) u + sum of L, as the sum of S is u, rounded or not. Nothing else moves.
 * rough: L has come in 8 bits of mantissa, with what earlier ones had cut off. */
static void combine_and_check(struct comm *c, size_t n, enum kind kind, int step, float scale, bool reference,
                              bool rough) {
    static float L[RIG_N], residual[RIG_N], given[RIG_N];
    static double all[RIG_N];
    const double P = c->size, m = c->local_size, N = c->nodes;
    const double near = scale * (rough ? m / 16 : kind == REAL ? 1e-4 : 1e-5);
    struct comm_counters exchanged = c->counters[TRAFFIC_EXCHANGE], control = c->counters[TRAFFIC_CONTROL];
    phase_enter(&rig.phases, PHASE_IO);
    rig_no_memory();
    exchange_combine(&rig.reducer.exchange, &rig.sum, rig.device_grad);
    rig_memory_again();
    assert_int_equal(rig.phases.current, PHASE_IO);
    assert_memory_equal(&control, &c->counters[TRAFFIC_CONTROL], sizeof control);
    struct cost cost = {0};
    rig.reducer.exchange.ops->combine_cost(
        &(struct cost_case){.n = n, .k = 1, .P = c->size, .ranks_per_node = c->local_size}, &cost);
    within_words(exchanged, cost.node_words);
    device_download(given, rig.device_grad, n);
    ranks_of_a_node_hold_the_same(c, given, n);
    gradient_of_node(c, c->node, kind, step, n, scale, L);
    for (size_t i = 0; reference && i < n; i++)
        assert_true(fabs(P * given[i] - ((double)want.u[i] - want.sent[i] + L[i])) <= near * (1 + fabs(want.u[i])));
    for (size_t i = 0; i < n; i++) all[i] = P * given[i] / m;
    comm_allreduce_f64(c, all, n, COMM_SUM);
    for (int node = 0; node < c->nodes; node++) {
        gradient_of_node(c, node, kind, step, n, scale, L);
        for (size_t i = 0; i < n; i++) all[i] -= L[i];
    }
    for (size_t i = 0; i < n; i++)
        assert_true(fabs(all[i] - (N - 1) * rig.u[i]) <= N * near * (10 + fabs((double)rig.u[i])));
    rig.reducer.store.ops->read(&rig.reducer.store, 0, n, residual);
    assert_memory_equal(residual, rig.residual, n * sizeof *residual);
}

/* -- the row against it -------------------------------------------------------------------------------------- */
/* What is put in is in the sums or in the residuals; the gradient itself stays as it was. scale: so that a format that
 * rounds has to; then, and with another selector than exact, the reference is left out. */
static void several_steps(struct comm *c, struct shape shape, enum kind kind, const struct selector_ops *select,
                          const struct wire_ops *wire, float scale) {
    static double summed[RIG_N];
    static float given[RIG_N], grad[RIG_N], before[RIG_N];
    bool reference = scale == 1 && select == exact() && exact_sums(kind);
    memset(&want, 0, sizeof want);
    memset(summed, 0, sizeof summed);
    memset(given, 0, sizeof given);
    rig_open_with(c, exchange_named("hitopk"), select, shape.n, shape.k, &(struct exchange_setup){.wire = wire});
    for (int step = 0; step < STEPS; step++) {
        size_t k = step % 2 == 0 ? shape.k : (shape.k + 1) / 2;
        for (int r = 0; reference && r < c->size; r++) {
            make_gradient(kind, r, c->size, step, shape.n, grad);
            for (size_t i = 0; i < shape.n; i++) want.acc[r / c->local_size][i] += grad[i];
        }
        make_gradient(kind, c->rank, c->size, step, shape.n, rig.grad);
        for (size_t i = 0; i < shape.n; i++) given[i] += rig.grad[i] *= scale;
        memcpy(before, rig.grad, sizeof before);
        struct comm_counters counters = c->counters[TRAFFIC_EXCHANGE];
        rig_step(k);
        if (wire == wires[0] && select->exact_count) /* else there may be more than k */
            within_bound(counters, rig.reducer.exchange.ops, k);
        if (!coded(c, wire)) assert_memory_equal(before, rig.grad, sizeof before);
        if (reference) reference_step(c, (int)shape.n, (int)k);
        if (reference) agrees(c, (int)shape.n);
        all_ranks_hold_the_same(hash_of_sum());
        for (size_t i = 0; i < shape.n; i++) summed[i] += (double)rig.u[i];
        if (step > 0) combine_and_check(c, shape.n, kind, step, scale, reference, coded(c, wire));
    }
    if (exact_sums(kind)) conserves(given, summed);
    rig_close();
}

/* Many ranks on few cores, and large k in the reference, are slow: then not every kind of gradient. */
static bool worth_it(const struct comm *c, int s, enum kind kind) {
    if (c->size > 6 && shapes[s].k >= 100) return kind == WHOLE;
    return c->size <= 6 || kind == WHOLE || kind == TIES || kind == ONE_SILENT;
}

static void agrees_with_the_reference(struct comm *c) {
    for (int ranks = 1; ranks <= c->size; ranks++) {
        if (c->size % ranks != 0) continue;
        nodes_of(c, ranks);
        for (int s = 0; s < SHAPES; s++)
            for (enum kind kind = 0; kind < KINDS; kind++)
                if (worth_it(c, s, kind)) several_steps(c, shapes[s], kind, exact(), wires[0], 1);
    }
}

/* Beyond the comparison with the reference one division into nodes has to do for many ranks. */
static bool serves(const struct comm *c, int ranks) {
    return c->size % ranks == 0 && (c->size <= 9 || ranks == 4);
}

/* Times 37 an entry has up to 9 significant bits more than bf16 carries. */
static void every_wire_format(struct comm *c) {
    for (int ranks = 1; ranks <= c->size; ranks++) {
        if (!serves(c, ranks)) continue;
        nodes_of(c, ranks);
        for (size_t w = 1; wires[w]; w++)
            for (int s = 0; s < SHAPES && takes_format(wires[w]); s++)
                for (enum kind kind = 0; kind < REAL; kind++)
                    if ((kind == WHOLE || kind == ZEROS || kind == ONE_SILENT) && worth_it(c, s, kind))
                        several_steps(c, shapes[s], kind, exact(), wires[w], 37);
        for (size_t w = 1; wires[w]; w++)
            if (!wires[w]->rounds && takes_format(wires[w]))
                several_steps(c, (struct shape){1009, 100}, WHOLE, exact(), wires[w], 1);
    }
}

static void every_selector(struct comm *c) {
    for (int ranks = 1; ranks <= c->size; ranks++) {
        if (!serves(c, ranks)) continue;
        nodes_of(c, ranks);
        for (size_t s = 0; selectors[s]; s++)
            for (enum kind kind = 0; kind < KINDS; kind++) {
                if (!worth_it(c, 0, kind)) continue;
                several_steps(c, (struct shape){1009, 40}, kind, selectors[s], wires[0], 1);
                several_steps(c, (struct shape){7, 3}, kind, selectors[s], wires[0], 1);
            }
    }
}

static uint64_t hash_of_a_run(struct comm *c, const struct wire_ops *wire) {
    uint64_t hash = 0;
    rig_open_with(c, exchange_named("hitopk"), exact(), 1009, 50, &(struct exchange_setup){.wire = wire});
    for (int step = 0; step < 6; step++) {
        make_gradient(REAL, c->rank, c->size, step, 1009, rig.grad);
        rig_step(step % 2 ? 50 : 20);
        uint64_t sum = hash_of_sum();
        hash = hash64(hash64(hash, &sum, sizeof sum), rig.residual, 1009 * sizeof(float));
    }
    rig_close();
    return hash;
}

static void two_runs_give_the_same_bits(struct comm *c) {
    for (int ranks = 1; ranks <= c->size; ranks++) {
        if (!serves(c, ranks)) continue;
        nodes_of(c, ranks);
        for (size_t w = 0; wires[w]; w++)
            if (takes_format(wires[w])) assert_true(hash_of_a_run(c, wires[w]) == hash_of_a_run(c, wires[w]));
    }
}

/* Finite on every rank, but not their sum, inside a node or between nodes: every rank is told, and where. A format
 * whose largest value is small leaves the rest of a node's sum in its residual: nothing overflows between nodes. */
static void overflow_is_seen_by_all(struct comm *c) {
    if (c->size == 1) return;
    for (int ranks = 1; ranks <= c->size; ranks++) {
        if (!serves(c, ranks)) continue;
        nodes_of(c, ranks);
        for (size_t w = 0; wires[w]; w++) {
            if ((ranks == 1 || wires[w]->pack) && wires[w]->round && wires[w]->round(3e38f) < 1e38f) continue;
            for (size_t at = 0; at < 100; at += 33) {
                rig_open_with(c, exchange_named("hitopk"), exact(), 100, 30,
                              &(struct exchange_setup){.wire = wires[w]});
                make_gradient(WHOLE, c->rank, c->size, 1, 100, rig.grad);
                rig.grad[at] = 3e38f;
                assert_false(rig_run(30));
                assert_int_equal(rig.sum.bad, at);
                rig_close();
            }
        }
    }
}

static void a_gradient_that_is_not_finite(struct comm *c) {
    for (int ranks = 1; ranks <= c->size; ranks++) {
        if (!serves(c, ranks)) continue;
        nodes_of(c, ranks);
        rig_open(c, exchange_named("hitopk"), exact(), 100, 7, GTOPK_CONSERVE);
        make_gradient(WHOLE, c->rank, c->size, 1, 100, rig.grad);
        rig.grad[c->rank + 50] = rig.grad[99] = NAN;
        assert_false(rig_run(7));
        assert_int_equal(rig.sum.bad, c->rank + 50);
        rig_close();
    }
}

/* -- the shards of others ---------------------------------------------------------------------------------------- */

/* A run with another number of ranks has left residuals all over: they leave in the first step. Whole numbers. */
static void what_others_left_is_delivered(struct comm *c) {
    enum { N = 101 };
    static float left[N], residual[N];
    static double all[N];
    for (int ranks = 1; ranks <= c->size; ranks++) {
        if (!serves(c, ranks)) continue;
        nodes_of(c, ranks);
        for (size_t w = 0; wires[w]; w++) {
            rig_open_with(c, exchange_named("hitopk"), exact(), N, N, &(struct exchange_setup){.wire = wires[w]});
            for (int i = 0; i < N; i++) left[i] = (float)((i + 3 * c->rank) % 7 - 3);
            rig.reducer.store.ops->write(&rig.reducer.store, 0, N, left);
            make_gradient(WHOLE, c->rank, c->size, 1, N, rig.grad);
            for (int i = 0; i < N; i++) all[i] = (double)left[i] + rig.grad[i];
            comm_allreduce_f64(c, all, N, COMM_SUM);
            rig_step(N);
            rig.reducer.store.ops->read(&rig.reducer.store, 0, N, residual);
            for (int i = 0; i < N; i++) {
                assert_true(rig.u[i] == all[i]);
                assert_true(residual[i] == 0);
            }
            rig_close();
        }
    }
}

/* Half the bytes inside a node; what that cuts off waits with its sender, or nowhere. Beyond the shard of a rank there
 * is nothing else that could. */
static void sums_inside_in_16_bits(struct comm *c) {
    enum { N = 1000, K = 4 };
    for (int ranks = 2; ranks <= c->size; ranks++) {
        if (!serves(c, ranks)) continue;
        nodes_of(c, ranks);
        for (int keeps = 0; keeps < 2; keeps++)
            for (size_t w = 0; wires[w]; w++) {
                if (!wires[w]->pack) continue;
                int from = begin_of(N, ranks, c->local_rank), to = begin_of(N, ranks, c->local_rank + 1), waiting = 0;
                rig_open_with(
                    c, exchange_named("hitopk"), exact(), N, K,
                    &(struct exchange_setup){.wire = wires[w],
                                             .options = rig_options(keeps ? "" : "feedback=off", GTOPK_CONSERVE)});
                make_gradient(REAL, c->rank, c->size, 1, N, rig.grad);
                struct comm_counters before = c->counters[TRAFFIC_EXCHANGE];
                rig_step(K);
                within_words(before, N / 2.0 * (ranks - 1) / ranks + ranks + 4.0 * K * (c->size + 2));
                for (int i = 0; i < N; i++) waiting += (i < from || i >= to) && rig.residual[i] != 0;
                assert_true(keeps ? waiting > (N - to + from) / 2 : waiting == 0);
                rig_close();
            }
    }
}

/* Group by group the same, beside entries that are exempt: these become their mean over all ranks. */
static void local_updates_by_layers_and_beside_dense_entries(struct comm *c) {
    enum { N = 400, EXEMPT = 3 };
    static const uint32_t exempt[EXEMPT] = {0, 149, 399};
    static const size_t group[] = {0, 150, 151, 300};
    static float found[N];
    static double dense[N], all[N];
    for (int ranks = 1; ranks <= c->size; ranks++) {
        if (!serves(c, ranks)) continue;
        nodes_of(c, ranks);
        for (int by_layers = 0; by_layers < 2; by_layers++) {
            struct exchange_setup setup = {.exempt = exempt, .exempts = EXEMPT};
            if (by_layers) setup.group = group, setup.groups = sizeof group / sizeof *group;
            rig_open_with(c, exchange_named("hitopk"), exact(), N, 60, &setup);
            for (int step = 0; step < STEPS; step++) {
                make_gradient(WHOLE, c->rank, c->size, step, N, rig.grad);
                for (size_t i = 0; i < N; i++) dense[i] = (double)rig.grad[i];
                comm_allreduce_f64(c, dense, N, COMM_SUM);
                rig_step(60);
                exchange_combine(&rig.reducer.exchange, &rig.sum, rig.device_grad);
                device_download(found, rig.device_grad, N);
                ranks_of_a_node_hold_the_same(c, found, N);
                for (size_t i = 0; i < N; i++) all[i] = (double)found[i] * c->size / c->local_size;
                comm_allreduce_f64(c, all, N, COMM_SUM);
                for (size_t i = 0; i < N; i++) {
                    bool is_exempt = i == exempt[0] || i == exempt[1] || i == exempt[2];
                    double wanted = is_exempt ? c->nodes * dense[i] : (c->nodes - 1) * (double)rig.u[i] + dense[i];
                    assert_true(fabs(all[i] - wanted) <= 1e-3);
                }
            }
            rig_close();
        }
    }
}

/* 2 (k/m) (N-1) words cross the network; the statistics are those of this rank's shard. */
static void what_it_costs(struct comm *c) {
    for (int ranks = 1; ranks <= c->size; ranks++) {
        if (!serves(c, ranks)) continue;
        struct cost cost;
        double m = ranks, N = c->size / m;
        exchange_named("hitopk")->cost(
            &(struct cost_case){.n = 504000, .k = 5040, .P = c->size, .ranks_per_node = ranks}, &cost);
        assert_true(fabs(cost.words - 2 * 5040 / m * (N - 1)) < 1e-6);
        nodes_of(c, ranks);
        rig_open(c, exchange_named("hitopk"), exact(), 1009, 144, GTOPK_CONSERVE);
        make_gradient(WHOLE, c->rank, c->size, 1, 1009, rig.grad);
        rig_step(144);
        assert_int_equal(rig.reducer.selector->stats.asked, 144 / ranks + (c->local_rank < 144 % ranks));
        assert_int_equal(rig.reducer.selector->stats.found, rig.sum.local_nnz);
        rig_close();
    }
}

int main(int argc, char **argv) {
    const struct mpi_case cases[] = {
        {"agrees_with_the_reference", agrees_with_the_reference},
        {"every_wire_format", every_wire_format},
        {"local_updates_by_layers_and_beside_dense_entries", local_updates_by_layers_and_beside_dense_entries},
        {"every_selector", every_selector},
        {"two_runs_give_the_same_bits", two_runs_give_the_same_bits},
        {"what_others_left_is_delivered", what_others_left_is_delivered},
        {"sums_inside_in_16_bits", sums_inside_in_16_bits},
        {"overflow_is_seen_by_all", overflow_is_seen_by_all},
        {"a_gradient_that_is_not_finite", a_gradient_that_is_not_finite},
        {"what_it_costs", what_it_costs},
    };
    return rig_test_main(argc, argv, "comm_hitopk", cases, sizeof cases / sizeof cases[0]);
}
