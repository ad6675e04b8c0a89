/* comm_exchange.c: the contract of one step (exchange.h) over every row of the table of exchanges, and each sparse
 * row against a serial reference, over shapes and gradients chosen to be awkward.
 * ranks: 1 2 3 4 5 6 7 8 9 16 32
 * faults: 2 3 7
 * devices: cuda sparse ranks 1 3 4
 * sparse ranks: 1 2 3 4 5 7 8 */
#include "tests/lib/exchange_rig.h"

#include "comm/parts/peers.h"
#include "tests/lib/exchange_oracle.h"

/* n not divisible by P, n < P, k = n, k = 1, k < P; all kinds of gradients with the large ones, else a few */
static const struct shape {
    size_t n, k;
    bool all_kinds;
} shapes[] = {{1, 1, false},    {3, 1, false},   {3, 3, false},     {7, 2, false},
              {1009, 1, false}, {1009, 5, true}, {1009, 100, true}, {1009, 1009, false}};
enum { SHAPES = sizeof shapes / sizeof shapes[0], STEPS = 4 };

/* -- the contract -------------------------------------------------------------------------------------- */
/* The same step with the serial reference; false for a row that has none. */
static bool oracle_step(struct oracle *o, const char *name, int k, enum gtopk_residual rule) {
    if (strcmp(name, "topka") == 0)
        oracle_topka(o, k);
    else if (strcmp(name, "gtopk-naive") == 0)
        oracle_gtopk_naive(o, k);
    else if (strcmp(name, "gtopk") == 0)
        oracle_gtopk(o, k, rule == GTOPK_CONSERVE);
    else if (strcmp(name, "gtopk-rd") == 0)
        oracle_gtopk_rd(o, k);
    else
        return false;
    return true;
}

static void agrees_with(const struct oracle *o, int k) {
    size_t count = 0;
    const float *residual = o->acc[rig.comm->rank];
    double lost = o->lost[rig.comm->rank];
    for (int i = 0; i < o->n; i++) {
        count += o->u.there[i];
        assert_true(rig.u[i] == o->u.value[i]);
        assert_true(rig.residual[i] == residual[i]);
    }
    assert_int_equal(rig.sum.global_nnz, count);
    assert_int_equal(rig.sum.local_nnz, k);
    assert_true(fabs(rig.sum.mass_lost - lost) <= 1e-9 * lost);
}

/* One row, shape and kind over several steps, each with what the steps before left in the residuals. Conservation
 * over all of them: what all ranks put in is in the sums or in the residuals. */
static void several_steps(struct comm *c, const struct exchange_ops *ops, struct shape shape, enum kind kind,
                          enum gtopk_residual rule) {
    static double summed[ORACLE_N];
    static struct oracle o;
    float given[ORACLE_N] = {0}, grad[ORACLE_N];
    uint64_t hash = 0;
    memset(&o, 0, sizeof o);
    memset(summed, 0, sizeof summed);
    o.n = (int)shape.n;
    o.P = c->size;
    rig_open(c, ops, exact(), shape.n, shape.k, rule);
    for (int step = 0; step < STEPS; step++) {
        size_t k = step % 2 == 0 ? shape.k : (shape.k + 1) / 2; /* the density changes during a run */
        for (int r = 0; r < c->size; r++) {
            make_gradient(kind, r, c->size, step, shape.n, grad);
            for (int i = 0; i < o.n; i++) o.acc[r][i] += grad[i];
        }
        make_gradient(kind, c->rank, c->size, step, shape.n, rig.grad);
        for (int i = 0; i < o.n; i++) given[i] += rig.grad[i];
        struct comm_counters before = c->counters[TRAFFIC_EXCHANGE];
        rig_step(k);
        within_bound(before, ops, k);
        sent_is_u(kind);
        hash = hash64(hash, (uint64_t[]){hash_of_sum()}, sizeof hash);
        if (oracle_step(&o, ops->name, (int)k, rule)) agrees_with(&o, (int)k);
        if (rule == GTOPK_CONSERVE) assert_true(rig.sum.mass_lost == 0);
        for (int i = 0; i < o.n; i++) summed[i] += (double)rig.u[i];
        for (int i = 0; k == shape.n && !ops->rounds && i < o.n; i++) assert_true(rig.residual[i] == 0);
    }
    if (!ops->drifts) all_ranks_hold_the_same(hash);
    if (rule == GTOPK_CONSERVE && ops->conserves && ops->rounds) nearly_conserves(given, summed, 1e-4);
    if (rule == GTOPK_CONSERVE && ops->conserves && !ops->rounds && exact_sums(kind)) conserves(given, summed);
    rig_close();
}

static void every_shape_and_kind(struct comm *c, const struct exchange_ops *ops, enum gtopk_residual rule) {
    /* slow: fewer cases */
    bool many = c->size > 9 || getenv("SPARSETRAIN_DELAY") || (!test_device_is_host() && c->size != 3);
    for (int s = 0; s < SHAPES; s++)
        for (enum kind kind = 0; kind < KINDS; kind++)
            if (many ? shapes[s].k <= 5 && (kind == WHOLE || kind == ONE_REGION)
                     : shapes[s].all_kinds || kind == WHOLE || kind == ZEROS || kind == REAL)
                several_steps(c, ops, shapes[s], kind, rule);
}

/* Conservation, the bound on words, the same bits on all ranks, and the serial reference, which a new row gets in
 * exchange_oracle.h and oracle_step. */
static void contract(struct comm *c) {
    for (size_t row = 0; exchanges[row]; row++) every_shape_and_kind(c, exchanges[row], GTOPK_CONSERVE);
}

static void the_paper_rule_of_gtopk(struct comm *c) {
    every_shape_and_kind(c, exchange_named("gtopk"), GTOPK_PAPER);
}

static void k_equal_to_n_gives_the_dense_sum(struct comm *c) {
    enum { N = 501 };
    for (size_t row = 0; exchanges[row]; row++) {
        double want[N] = {0};
        float grad[N];
        if (exchanges[row]->drifts || exchanges[row]->rounds) continue;
        for (int r = 0; r < c->size; r++) {
            make_gradient(REAL, r, c->size, 3, N, grad);
            for (int i = 0; i < N; i++) want[i] += (double)grad[i];
        }
        rig_open(c, exchanges[row], exact(), N, N, GTOPK_CONSERVE);
        make_gradient(REAL, c->rank, c->size, 3, N, rig.grad);
        rig_step(N);
        assert_int_equal(rig.sum.global_nnz, N);
        if (!exchanges[row]->by_node) assert_int_equal(rig.sum.local_nnz, N); /* hitopk: a shard */
        for (int i = 0; i < N; i++) assert_true(fabs((double)rig.u[i] - want[i]) <= 1e-5);
        rig_close();
    }
}

static uint64_t hash_of_a_run(struct comm *c, const struct exchange_ops *ops, enum gtopk_residual rule) {
    uint64_t hash = 0;
    rig_open(c, ops, exact(), 1009, 50, rule);
    for (int step = 0; step < 10; step++) {
        make_gradient(REAL, c->rank, c->size, step, 1009, rig.grad);
        rig_step(step % 2 ? 50 : 20);
        uint64_t sum = hash_of_sum();
        hash = hash64(hash64(hash, &sum, sizeof sum), rig.residual, 1009 * sizeof(float));
    }
    rig_close();
    return hash;
}

static void two_runs_give_the_same_bits(struct comm *c) {
    for (size_t row = 0; exchanges[row]; row++)
        for (enum gtopk_residual rule = GTOPK_CONSERVE; rule <= GTOPK_PAPER; rule++)
            if (rule == GTOPK_CONSERVE || strncmp(exchanges[row]->name, "gtopk", 5) == 0)
                assert_true(hash_of_a_run(c, exchanges[row], rule) == hash_of_a_run(c, exchanges[row], rule));
}

/* -- the published residual rule of gtopk ------------------------------------------------------------------- */
/* k = 1. Rank 0 has 10 at index 0 and merges first with rank b, which has 9 at index 1: the 9 is dropped. Rank d has 20
 * at index 1, which wins in the end: so rank b's 9 counts as delivered, but nobody applied it. */
static void the_paper_rule_loses_what_an_inner_merge_drops(struct comm *c) {
    static double missing[ORACLE_N];
    int Q = floor_power_of_two(c->size), b = c->size == Q ? 1 : Q, d = c->size == 3 ? 1 : 2;
    float acc[4] = {0};
    if (c->size < 3) return;
    for (enum gtopk_residual rule = GTOPK_CONSERVE; rule <= GTOPK_PAPER; rule++) {
        rig_open(c, exchange_named("gtopk"), exact(), 4, 1, rule);
        memset(acc, 0, sizeof acc);
        if (c->rank == 0) acc[0] = 10;
        if (c->rank == b) acc[1] = 9;
        if (c->rank == d) acc[1] = 20;
        memcpy(rig.grad, acc, sizeof acc);
        rig_step(1);
        assert_true(rig.u[0] == 0 && rig.u[1] == 20 && rig.u[2] == 0 && rig.u[3] == 0);
        double summed[4] = {0, 20, 0, 0};
        find_missing(acc, summed, missing);
        bool loses = rule == GTOPK_PAPER;
        assert_true(missing[0] == 0 && missing[1] == (loses ? 9 : 0) && missing[2] == 0 && missing[3] == 0);
        assert_true(rig.sum.mass_lost == (loses && c->rank == 0 ? 9 : 0));
        rig_close();
    }
}

/* No cancellation among values of one sign: the mass that is reported is the mass that is missing. */
static void the_mass_that_is_lost_is_reported(struct comm *c) {
    static double missing[ORACLE_N];
    double summed[ORACLE_N] = {0}, reported = 0, lost = 0;
    float given[ORACLE_N] = {0};
    rig_open(c, exchange_named("gtopk"), exact(), 301, 20, GTOPK_PAPER);
    for (int step = 0; step < 10; step++) {
        make_gradient(POSITIVE, c->rank, c->size, step, 301, rig.grad);
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

/* -- a selector that returns more or fewer than k, or nothing ---------------------------------------------- */
static void a_selector_of_varying_count(struct comm *c) {
    enum { N = 400 };
    for (size_t row = 0; exchanges[row]; row++) {
        const struct exchange_ops *ops = exchanges[row];
        for (enum kind kind = 0; ops->selects && kind < KINDS; kind++) {
            double summed[N] = {0};
            float given[N] = {0};
            rig_open(c, ops, &threshold_selector, N, 30, GTOPK_CONSERVE);
            for (int step = 0; step < STEPS; step++) {
                make_gradient(kind, c->rank, c->size, step, N, rig.grad);
                for (int i = 0; i < N; i++) given[i] += rig.grad[i];
                rig_step(30);
                sent_is_u(kind);
                for (int i = 0; i < N; i++) summed[i] += (double)rig.u[i];
                if (kind == ZEROS) assert_int_equal(rig.sum.global_nnz, 0);
                if (strncmp(ops->name, "gtopk", 5) == 0) assert_true(rig.sum.global_nnz <= 30);
            }
            all_ranks_hold_the_same(hash_of_sum());
            if (exact_sums(kind)) conserves(given, summed);
            rig_close();
        }
    }
}

/* -- around a step ------------------------------------------------------------------------------------------- */
static void the_mean(struct comm *c) {
    enum { N = 77 };
    float update[N], scale = 1.0f / (float)c->size;
    for (size_t row = 0; exchanges[row]; row++) {
        for (int in_place = 0; in_place < 2; in_place++) {
            rig_open(c, exchanges[row], exact(), N, 9, GTOPK_CONSERVE);
            make_gradient(REAL, c->rank, c->size, 1, N, rig.grad);
            rig_step(9);
            float *host = in_place ? rig.grad : update;
            memset(update, 0xff, sizeof update);
            float *to = in_place ? rig.device_grad : device_twin(update, N);
            exchange_mean(&rig.reducer.exchange, &rig.sum, to);
            device_download(host, to, N);
            if (!in_place) device_twin_free(to, update);
            for (int i = 0; i < N; i++) assert_true(host[i] == (exchanges[row]->drifts ? 1 : scale) * rig.u[i]);
            rig_close();
        }
    }
}

static void phases_and_traffic_are_restored(struct comm *c) {
    for (size_t row = 0; exchanges[row]; row++) {
        rig_open(c, exchanges[row], exact(), 1000, 10, GTOPK_CONSERVE);
        make_gradient(REAL, c->rank, c->size, 1, 1000, rig.grad);
        struct comm_counters control = c->counters[TRAFFIC_CONTROL], traffic = c->counters[TRAFFIC_EXCHANGE];
        c->traffic = TRAFFIC_CONTROL;
        phase_enter(&rig.phases, PHASE_IO);
        rig_step(10);
        assert_int_equal(rig.phases.current, PHASE_IO);
        assert_int_equal(c->traffic, TRAFFIC_CONTROL);
        assert_memory_equal(&control, &c->counters[TRAFFIC_CONTROL], sizeof control);
        if (c->size > 1 && !exchanges[row]->drifts)
            assert_true(c->counters[TRAFFIC_EXCHANGE].bytes_sent > traffic.bytes_sent);
        if (c->size > 1 && !exchanges[row]->drifts) assert_true(rig.phases.seconds[PHASE_COMMUNICATE] > 0);
        assert_true(rig.phases.seconds[PHASE_UPDATE] == 0);
        exchange_mean(&rig.reducer.exchange, &rig.sum, rig.device_grad);
        assert_int_equal(rig.phases.current, PHASE_IO);
        assert_true(rig.phases.seconds[PHASE_UPDATE] > 0);
        rig.reducer.exchange.setup.phases = NULL; /* time is not wanted */
        rig_step(10);
        rig_close();
    }
}

/* C = G - S + L of Aji et al., over P: u without what this rank has in it, with its whole gradient. */
static void the_local_update(struct comm *c) {
    enum { N = 77 };
    for (size_t row = 0; exchanges[row]; row++) {
        float want[N];
        if (!exchanges[row]->sparse) continue;
        rig_open(c, exchanges[row], exact(), N, 9, GTOPK_CONSERVE);
        for (int step = 0; step < STEPS; step++) {
            make_gradient(WHOLE, c->rank, c->size, step, N, rig.grad);
            rig_step(9);
            if (!rig.sum.sent) break; /* nodes add up before they select */
            for (int i = 0; i < N; i++) want[i] = rig.u[i] + rig.grad[i];
            for (size_t i = 0; i < rig.sum.sent->nnz; i++) want[rig.sum.sent->idx[i]] -= rig.sum.sent->val[i];
            exchange_combine(&rig.reducer.exchange, &rig.sum, rig.device_grad);
            device_download(rig.grad, rig.device_grad, N);
            for (int i = 0; i < N; i++)
                assert_true(fabsf(rig.grad[i] - want[i] / (float)c->size) <= 1e-5f * (1 + fabsf(rig.u[i])));
        }
        rig_close();
    }
}

/* Two ranks, k = 1. Rank 0 has a gradient of 10 at index 0; rank 1 has 4.9 in its residual at index 1 and 0.1 more to
 * come. Whether its 5 comes through or is dropped on its way: it steps on half of the 10 and half of its own 0.1. (With
 * micro it is rank 1's turn to select, in its half of the vector, so that the 10 waits.) */
static void a_local_update_that_was_dropped(struct comm *c) {
    if (c->size != 2) return;
    for (size_t row = 0; exchanges[row]; row++) {
        const float residual[2] = {0, 4.9f};
        if (!exchanges[row]->sparse || exchanges[row]->by_node) continue;
        rig_open(c, exchanges[row], exact(), 2, 1, GTOPK_CONSERVE);
        if (c->rank == 1) rig.reducer.store.ops->write(&rig.reducer.store, 0, 2, residual);
        rig.grad[0] = c->rank == 0 ? 10 : 0;
        rig.grad[1] = c->rank == 1 ? 0.1f : 0;
        rig_step(1);
        exchange_combine(&rig.reducer.exchange, &rig.sum, rig.device_grad);
        device_download(rig.grad, rig.device_grad, 2);
        if (exchanges[row]->selects && !exchanges[row]->blind) assert_true(rig.u[0] == 10);
        float first = c->rank == 0 ? 5 : rig.u[0] / 2;
        if (fabsf(rig.grad[0] - first) > 1e-5f || (c->rank == 1 && fabsf(rig.grad[1] - 0.05f) > 1e-5f))
            fail_msg("%s: rank %d steps on [%g, %g]", exchanges[row]->name, c->rank, (double)rig.grad[0],
                     (double)rig.grad[1]);
        rig_close();
    }
}

/* The same sums and residuals whether or not, and from step to step, it is asked what ranks have sent, which is told
 * where it is. */
static uint64_t hash_of_asking(struct comm *c, const struct exchange_ops *ops, const struct wire_ops *wire,
                               int asking) {
    static const size_t group[] = {0, 300};
    uint64_t hash = 0;
    const struct exchange_setup extra = {.wire = wire, .group = group, .groups = asking % 2 ? 2 : 1};
    rig_open_with(c, ops, exact(), 1009, 50, &extra);
    for (int step = 0; step < STEPS; step++) {
        bool asked = asking / 2 == 2 ? step % 2 : asking / 2 == 1;
        make_gradient(WHOLE, c->rank, c->size, step, 1009, rig.grad);
        rig.reducer.exchange.setup.wants_sent = asked;
        rig_step(50);
        if (asked)
            sent_is_u(WHOLE);
        else
            assert_true(!rig.sum.sent && !rig.sum.delivered);
        uint64_t sum = hash_of_sum();
        hash = hash64(hash64(hash, &sum, sizeof sum), rig.residual, 1009 * sizeof(float));
    }
    rig_close();
    return hash;
}

static void what_was_sent_is_told_on_demand(struct comm *c) {
    for (size_t row = 0; exchanges[row]; row++)
        for (size_t w = 0; w == 0 || (exchanges[row]->sparse && wires[w]); w++) {
            uint64_t first[2];
            if (!takes_format(wires[w])) continue;
            for (int asking = 0; asking < 6; asking++) { /* never, always, in turns; whole, and by layers */
                uint64_t hash = hash_of_asking(c, exchanges[row], wires[w], asking);
                if (asking < 2) first[asking] = hash;
                if (hash != first[asking % 2]) fail_msg("%s, %s: asking matters", exchanges[row]->name, wires[w]->name);
            }
        }
}

/* Every rank's gradient is finite, but the sum is not: all ranks see it, at the same place. With rows that do not go by
 * magnitude it is infinite wherever they look. */
static void overflow_of_the_sum(struct comm *c) {
    if (c->size == 1) return;
    for (size_t row = 0; exchanges[row]; row++) {
        if (exchanges[row]->drifts) continue;
        rig_open(c, exchanges[row], exact(), 100, 40, GTOPK_CONSERVE);
        make_gradient(WHOLE, c->rank, c->size, 1, 100, rig.grad);
        rig.grad[42] = 3e38f;
        for (size_t i = 0; (exchanges[row]->blind || exchanges[row]->rounds) && i < 100; i++) rig.grad[i] = 3e38f;
        if (rig_run(40)) fail_msg("%s takes an infinite sum for a number", exchanges[row]->name);
        if (!exchanges[row]->blind && !exchanges[row]->rounds) assert_int_equal(rig.sum.bad, 42);
        all_ranks_hold_the_same(rig.sum.bad);
        rig_close();
    }
}

int main(int argc, char **argv) {
    const struct mpi_case cases[] = {
        {"contract", contract},
        {"k_equal_to_n_gives_the_dense_sum", k_equal_to_n_gives_the_dense_sum},
        {"two_runs_give_the_same_bits", two_runs_give_the_same_bits},
        {"the_paper_rule_of_gtopk", the_paper_rule_of_gtopk},
        {"the_paper_rule_loses_what_an_inner_merge_drops", the_paper_rule_loses_what_an_inner_merge_drops},
        {"the_mass_that_is_lost_is_reported", the_mass_that_is_lost_is_reported},
        {"a_selector_of_varying_count", a_selector_of_varying_count},
        {"the_mean", the_mean},
        {"the_local_update", the_local_update},
        {"a_local_update_that_was_dropped", a_local_update_that_was_dropped},
        {"what_was_sent_is_told_on_demand", what_was_sent_is_told_on_demand},
        {"phases_and_traffic_are_restored", phases_and_traffic_are_restored},
        {"overflow_of_the_sum", overflow_of_the_sum},
    };
    return rig_test_main(argc, argv, "comm_exchange", cases, sizeof cases / sizeof cases[0]);
}
