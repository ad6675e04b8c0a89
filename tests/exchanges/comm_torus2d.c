/* comm_torus2d.c: torus2d on emulated nodes of every size against sums made one by one.
 * ranks: 1 2 3 4 6 8 9 16
 * devices: cuda ranks 1 3 4 */
#include "tests/lib/exchange_rig.h"

static const size_t lengths[] = {1, 2, 5, 16, 17, 1009};
enum { LENGTHS = sizeof lengths / sizeof lengths[0] };

static void nodes_of(struct comm *c, int ranks) {
    struct err e = {0};
    if (!comm_set_ranks_per_node(c, ranks, &e)) fail_msg("%s", e.text);
}

static void one_step(struct comm *c, size_t n, enum kind kind) {
    static double want[RIG_N], much[RIG_N];
    static float grad[RIG_N];
    memset(want, 0, sizeof want);
    memset(much, 0, sizeof much);
    for (int r = 0; r < c->size; r++) {
        make_gradient(kind, r, c->size, 5, n, grad);
        for (size_t i = 0; i < n; i++) {
            want[i] += (double)grad[i];
            much[i] += fabs((double)grad[i]);
        }
    }
    rig_open(c, exchange_named("torus2d"), exact(), n, 1, GTOPK_CONSERVE);
    make_gradient(kind, c->rank, c->size, 5, n, rig.grad);
    struct comm_counters before = c->counters[TRAFFIC_EXCHANGE];
    rig_step(1);
    within_bound(before, rig.reducer.exchange.ops, 1);
    assert_int_equal(rig.sum.global_nnz, n);
    assert_int_equal(rig.sum.local_nnz, n);
    for (size_t i = 0; i < n; i++)
        assert_true(fabs((double)rig.u[i] - want[i]) <= (exact_sums(kind) ? 0 : 1e-6 * much[i]));
    all_ranks_hold_the_same(hash_of_sum());
    rig_close();
}

static void sums_are_dense(struct comm *c) {
    for (int ranks = 1; ranks <= c->size; ranks++) {
        if (c->size % ranks != 0) continue;
        nodes_of(c, ranks);
        for (int l = 0; l < LENGTHS; l++)
            for (enum kind kind = 0; kind < KINDS; kind++) one_step(c, lengths[l], kind);
    }
}

/* What crosses the network is the shard, not the vector: of all words, 2 (n/m) (N-1)/N. */
static void the_cost_tells_node_from_network(struct comm *c) {
    for (int ranks = 1; ranks <= c->size; ranks++) {
        if (c->size % ranks != 0) continue;
        struct cost cost;
        const int n = 5040; /* every m here divides it */
        double m = ranks, N = c->size / m;
        exchange_named("torus2d")->cost(
            &(struct cost_case){.n = (size_t)n, .k = 1, .P = c->size, .ranks_per_node = ranks}, &cost);
        assert_true(fabs(cost.words - 2 * n / m * (N - 1) / N) < 1e-6);
        assert_true(fabs(cost.node_words - 2 * n * (m - 1) / m) < 1e-6);
        assert_true(fabs(cost.words + cost.node_words - 2.0 * n * (c->size - 1) / c->size) < 1e-6);
    }
}

/* In the gradients: the lowest on every rank. In the sum: every rank sees the same. */
static void what_is_not_finite_is_named(struct comm *c) {
    for (int ranks = 1; ranks <= c->size; ranks++) {
        if (c->size % ranks != 0) continue;
        nodes_of(c, ranks);
        rig_open(c, exchange_named("torus2d"), exact(), 100, 1, GTOPK_CONSERVE);
        make_gradient(WHOLE, c->rank, c->size, 1, 100, rig.grad);
        rig.grad[60] = rig.grad[31] = NAN;
        assert_false(rig_run(1));
        assert_int_equal(rig.sum.bad, 31);
        make_gradient(WHOLE, c->rank, c->size, 1, 100, rig.grad);
        rig.grad[99] = rig.grad[70] = -3e38f;
        assert_true(rig_run(1) == (c->size == 1));
        if (c->size > 1) assert_int_equal(rig.sum.bad, 70);
        rig_close();
    }
}

/* Five ranks on two nodes are no grid; the user gets one line. */
static void uneven_nodes_are_refused(struct comm *c) {
    for (size_t row = 0; exchanges[row]; row++) {
        struct err e = {0};
        struct comm uneven = {.size = 5, .local_size = 3, .nodes = 2};
        assert_true(exchange_serves(exchanges[row], c, &e));
        if (!exchanges[row]->serves) continue;
        assert_false(exchanges[row]->serves(&uneven, &e));
        assert_non_null(strstr(e.text, "as many ranks on every node"));
        assert_null(strchr(e.text, '\n'));
    }
}

int main(int argc, char **argv) {
    const struct mpi_case cases[] = {
        {"sums_are_dense", sums_are_dense},
        {"the_cost_tells_node_from_network", the_cost_tells_node_from_network},
        {"what_is_not_finite_is_named", what_is_not_finite_is_named},
        {"uneven_nodes_are_refused", uneven_nodes_are_refused},
    };
    return rig_test_main(argc, argv, "comm_torus2d", cases, sizeof cases / sizeof cases[0]);
}
