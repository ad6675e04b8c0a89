/* cli_rounds.c: rounds of local steps and the outer step that ends each, as a run makes them, against a serial
 * reference that steps for all ranks itself; one step in a round against the step of dense.
 *
 * ranks: 1 2 3 4 5 7 8 */
#include "tests/lib/mpi_harness.h"

#include <math.h>

#include "base/hash.h"
#include "base/rng.h"
#include "base/table.h"
#include "cli/train/rounds.h"

enum { N = 301, P_MAX = 8, ROUNDS = 4, LOCAL = 3 };

/* -- a run without a program around it: parameters, an optimiser, an exchange -------------------------------------- */
static struct run r;
static struct net net;
static float param[N], grad[N];
static struct slice slice = {.name = "weights", .size = N, .dims = 1, .dim = {N}};

static void open_run(struct comm *c, const char *algo, const char *method, double momentum, struct outer_rates outer) {
    struct reducer_setup setup = {.device = device_find("cpu")};
    const struct optimiser_ops *ops;
    struct optimiser_setup opt = {.momentum = momentum, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8};
    r = (struct run){.comm = c, .options.outer = outer};
    net.arena =
        (struct arena){.device = setup.device, .param = param, .grad = grad, .n = N, .slice = &slice, .slices = 1};
    r.model.net = &net;
    r.model.n = N;
    phases_reset(&r.phases);
    TABLE_FIND(optimisers, method, ops);
    optimiser_open(&r.model.optimiser, ops, &net.arena, &opt);
    TABLE_FIND(exchanges, algo, setup.ops);
    setup.exchange = (struct exchange_setup){.comm = c, .n = N, .k_max = N, .phases = &r.phases};
    reducer_open(&r.path.reducer, &setup);
    if (setup.ops->outer) exchange_open(&r.path.local, &exchange_fedavg, &r.path.reducer.exchange.setup);
    rounds_open(&r);
    rounds_begin(&r);
}

static void close_run(void) {
    rounds_close(&r);
    exchange_close(&r.path.local);
    reducer_close(&r.path.reducer);
    optimiser_close(&r.model.optimiser);
}

/* As the loop does it. */
static void step_with(struct exchange *x, double lr) {
    assert_true(exchange_run(x, grad, N, &r.now.sum));
    exchange_mean(x, &r.now.sum, grad);
    optimiser_step(&r.model.optimiser, param, grad, lr);
    r.step++;
}

static void all_ranks_hold_the_same(const float *array) {
    uint64_t low = hash64(0, array, N * sizeof *array), high = low;
    comm_allreduce_u64(r.comm, &low, 1, COMM_MIN);
    comm_allreduce_u64(r.comm, &high, 1, COMM_MAX);
    assert_true(low == high);
}

/* Whole numbers are on a grid on which sums are exact. */
static void make_gradient(int rank, int step, bool whole, float *g) {
    struct rng rng = rng_open(3, RNG_TEST, (uint64_t)(rank * 1000 + step));
    for (int i = 0; i < N; i++) g[i] = whole ? (float)rng_below(&rng, 17) - 8 : (float)rng_normal(&rng);
}

static void make_parameters(int trial, float *w) {
    struct rng rng = rng_open(4, RNG_TEST, (uint64_t)trial);
    for (int i = 0; i < N; i++) w[i] = ((float)rng_below(&rng, 2001) - 1000) / 64;
}

/* -- the reference ------------------------------------------------------------------------------------------------- */
static struct reference {
    double w[N], v[N];                        /* alike: where the round began, the outer velocity */
    double own[P_MAX][N];                     /* parameters of each rank */
    double first[P_MAX][N], second[P_MAX][N]; /* moments of each rank's optimiser */
    int steps;
} ref;

/* SGD: first = mu first + g, w -= lr first. Adam: Kingma and Ba, Algorithm 1. */
static void reference_local(int rank, bool adam, double mu, double lr, const float *g) {
    double correct1 = 1 - pow(0.9, ref.steps), correct2 = 1 - pow(0.999, ref.steps);
    for (int i = 0; i < N; i++) {
        double *m = &ref.first[rank][i], *s = &ref.second[rank][i], d = (double)g[i];
        *m = adam ? 0.9 * *m + 0.1 * d : mu * *m + d;
        *s = 0.999 * *s + 0.001 * d * d;
        ref.own[rank][i] -= adam ? lr * (*m / correct1) / (sqrt(*s / correct2) + 1e-8) : lr * *m;
    }
}

static void reference_round(int P, struct outer_rates outer) {
    for (int i = 0; i < N; i++) {
        double mean = 0;
        for (int rank = 0; rank < P; rank++) mean += (ref.w[i] - ref.own[rank][i]) / P;
        ref.v[i] = outer.momentum * ref.v[i] + mean;
        ref.w[i] -= outer.rate * (mean + outer.momentum * ref.v[i]);
        for (int rank = 0; rank < P; rank++) ref.own[rank][i] = ref.w[i];
    }
}

static void close_to(const float *is, const double *wanted) {
    for (int i = 0; i < N; i++) assert_true(fabs((double)is[i] - wanted[i]) <= 2e-5 * (1 + fabs(wanted[i])));
}

static void several_rounds(struct comm *c, const char *method, double mu, double lr, struct outer_rates outer) {
    const bool adam = strcmp(method, "sgd") != 0;
    memset(&ref, 0, sizeof ref);
    make_parameters(1, param);
    for (int i = 0; i < N; i++)
        for (int rank = -1; rank < c->size; rank++) (rank < 0 ? ref.w : ref.own[rank])[i] = (double)param[i];
    open_run(c, "diloco", method, mu, outer);
    for (int round = 0; round < ROUNDS; round++) {
        for (int local = 0; local < LOCAL; local++) {
            ref.steps++;
            for (int rank = 0; rank < c->size; rank++) {
                make_gradient(rank, (int)r.step, false, grad);
                reference_local(rank, adam, mu, lr, grad);
            }
            make_gradient(c->rank, (int)r.step, false, grad);
            struct comm_counters before = c->counters[TRAFFIC_EXCHANGE];
            step_with(&r.path.local, lr);
            assert_memory_equal(&before, &c->counters[TRAFFIC_EXCHANGE], sizeof before);
            close_to(param, ref.own[c->rank]);
        }
        run_round(&r);
        reference_round(c->size, outer);
        close_to(param, ref.w);
        if (outer.momentum > 0) close_to(r.rounds.velocity, ref.v);
        assert_memory_equal(param, r.rounds.param, sizeof param);
        all_ranks_hold_the_same(param);
        assert_int_equal(r.replicas.averaged_at, r.step);
    }
    close_run();
}

static void the_reference(struct comm *c) {
    const struct outer_rates published = {0.7, 0.9}, plain = {1, 0}, slow = {0.25, 0};
    several_rounds(c, "sgd", 0.9, 0.05, published);
    several_rounds(c, "sgd", 0, 0.05, plain);
    several_rounds(c, "adamw", 0, 0.01, published);
    several_rounds(c, "adam", 0, 0.01, slow);
}

/* -- one step in a round ------------------------------------------------------------------------------------------- */
/* All numbers on a grid of 2^-6 times 2^-5: products with lr and differences are exact, so that both ways round the
 * mean of the same sum, and one product and one difference with it. */
static void one_step_of_plain_sgd_is_dense(struct comm *c) {
    static float dense[N], start[N];
    for (int trial = 0; trial < 20; trial++) {
        make_parameters(trial, param);
        memcpy(start, param, sizeof start);
        open_run(c, "dense", "sgd", 0, (struct outer_rates){1, 0});
        make_gradient(c->rank, trial, true, grad);
        step_with(&r.path.reducer.exchange, 0x1p-5);
        memcpy(dense, param, sizeof dense);
        close_run();
        memcpy(param, start, sizeof start);
        open_run(c, "diloco", "sgd", 0, (struct outer_rates){1, 0});
        make_gradient(c->rank, trial, true, grad);
        step_with(&r.path.local, 0x1p-5);
        if (c->size > 1) assert_memory_not_equal(param, dense, sizeof dense);
        run_round(&r);
        assert_memory_equal(param, dense, sizeof dense);
        assert_memory_not_equal(param, start, sizeof start);
        close_run();
    }
}

/* -- the state ----------------------------------------------------------------------------------------------------- */
static void steps_and_rounds(int from, int to) {
    for (int step = from; step < to; step++) {
        make_gradient(r.comm->rank, step, false, grad);
        step_with(&r.path.local, 0.05);
        if ((step + 1) % LOCAL == 0) run_round(&r);
    }
}

/* What rounds_saved names, with parameters and optimiser, is all that a run in the midst of a round goes on from. */
static void what_is_saved_is_the_state(struct comm *c) {
    enum { STOP = 2 * LOCAL + 1, END = 4 * LOCAL };
    static float whole[N], own[N], moments[N], kept[2][N];
    const struct outer_rates outer = {0.7, 0.9};
    const char *name;
    make_parameters(2, param);
    open_run(c, "diloco", "sgd", 0.9, outer);
    steps_and_rounds(0, STOP);
    memcpy(own, param, sizeof own);
    memcpy(moments, r.model.optimiser.state, sizeof moments);
    for (size_t i = 0; rounds_saved(&r, i, &name); i++) {
        assert_true(i < 2 && name[0]);
        memcpy(kept[i], rounds_saved(&r, i, &name), sizeof kept[i]);
        all_ranks_hold_the_same(kept[i]);
    }
    if (c->size > 1) assert_memory_not_equal(own, kept[0], sizeof own);
    steps_and_rounds(STOP, END);
    memcpy(whole, param, sizeof whole);
    close_run();
    memset(param, 0, sizeof param);
    open_run(c, "diloco", "sgd", 0.9, outer);
    memcpy(param, own, sizeof own);
    memcpy(r.model.optimiser.state, moments, sizeof moments);
    for (size_t i = 0; rounds_saved(&r, i, &name); i++) memcpy(rounds_saved(&r, i, &name), kept[i], sizeof kept[i]);
    steps_and_rounds(STOP, END);
    assert_memory_equal(param, whole, sizeof whole);
    close_run();
}

static void without_rounds_there_is_no_state(struct comm *c) {
    const char *name;
    open_run(c, "dense", "sgd", 0, (struct outer_rates){1, 0});
    assert_null(rounds_saved(&r, 0, &name));
    close_run();
    open_run(c, "diloco", "sgd", 0, (struct outer_rates){1, 0});
    assert_non_null(rounds_saved(&r, 0, &name));
    assert_null(rounds_saved(&r, 1, &name));
    close_run();
}

int main(int argc, char **argv) {
    const struct mpi_case cases[] = {
        {"the_reference", the_reference},
        {"one_step_of_plain_sgd_is_dense", one_step_of_plain_sgd_is_dense},
        {"what_is_saved_is_the_state", what_is_saved_is_the_state},
        {"without_rounds_there_is_no_state", without_rounds_there_is_no_state},
    };
    return mpi_test_main(argc, argv, "cli_rounds", cases, sizeof cases / sizeof cases[0]);
}
