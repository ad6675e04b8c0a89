/* comm_randomk.c: random k against a serial reference over full vectors, with a draw of its own; its words, its state,
 * its seed.
 * ranks: 1 2 3 4 5 7 8 9 16 32
 * devices: cuda sparse ranks 1 3 4 */
#include "tests/lib/exchange_rig.h"

enum { P_MAX = 32, STEPS = 6, SEED = 11 };

static const struct shape {
    size_t n, k;
    bool all_kinds;
} shapes[] = {{1, 1, false},     {3, 1, false},    {3, 3, false},      {7, 2, false},
              {7, 6, false},     {1009, 1, false}, {1009, 5, true},    {64, 64, false},
              {1009, 100, true}, {RIG_N, 9, true}, {1009, 1008, false}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static void open_seeded(struct comm *c, size_t n, size_t k, uint64_t seed) {
    struct reducer_setup setup = {.ops = exchange_named("randomk"), .seed = seed};
    setup.exchange = (struct exchange_setup){.n = n, .k_max = k};
    rig_open_setup(c, setup);
}

/* -- the reference -------------------------------------------------------------------------------------------- */
static struct reference {
    int n, P, step;
    float acc[P_MAX][RIG_N]; /* residual, plus the gradient within a step */
    bool drawn[RIG_N];
} ref;

/* Floyd's algorithm over marks; of more than half of the entries those that stay. */
static void reference_draw(int k, uint64_t seed) {
    struct rng rng = rng_open(seed, RNG_SUBSET, (uint64_t)ref.step++);
    bool stays = 2 * k > ref.n;
    int marked = stays ? ref.n - k : k;
    for (int i = 0; i < ref.n; i++) ref.drawn[i] = stays;
    for (int j = ref.n - marked; j < ref.n; j++) {
        int t = (int)rng_below(&rng, (uint32_t)j + 1);
        ref.drawn[ref.drawn[t] != stays ? j : t] = !stays;
    }
}

/* -- against it ------------------------------------------------------------------------------------------------- */
static void agrees(enum kind kind, int k) {
    size_t count = 0;
    for (int i = 0; i < ref.n; i++) {
        double sum = 0, size = 0;
        for (int r = 0; r < ref.P; r++) {
            sum += (double)ref.acc[r][i];
            size += fabs((double)ref.acc[r][i]);
        }
        if (!ref.drawn[i]) sum = 0;
        assert_true(exact_sums(kind) ? (double)rig.u[i] == sum : fabs((double)rig.u[i] - sum) <= 1e-6 * size);
        if (ref.drawn[i]) {
            assert_true(count < rig.sum.sparse->nnz && rig.sum.sparse->idx[count] == (uint32_t)i);
            assert_true(rig.sum.sent->idx[count] == (uint32_t)i && rig.sum.delivered->idx[count] == (uint32_t)i);
            assert_true(rig.sum.sent->val[count] == ref.acc[rig.comm->rank][i]);
            count++;
            for (int r = 0; r < ref.P; r++) ref.acc[r][i] = 0;
        }
        assert_true(rig.residual[i] == ref.acc[rig.comm->rank][i]);
    }
    assert_int_equal(count, k);
    assert_int_equal(rig.sum.global_nnz, k);
    assert_int_equal(rig.sum.local_nnz, k);
    assert_int_equal(rig.sum.sent->nnz, k);
    assert_true(rig.sum.mass_lost == 0 && rig.sum.extra_words == 0);
}

/* 2k(P-1)/P words each way, to the byte, and 2 ceil(log2 P) messages. */
static void sends_k_values_alone(struct comm_counters before, size_t k) {
    const struct comm_counters *now = &rig.comm->counters[TRAFFIC_EXCHANGE];
    uint64_t P = (uint64_t)rig.comm->size;
    assert_int_equal(now->bytes_sent - before.bytes_sent, 2 * (P - 1) * sizeof(float) * k / P);
    assert_int_equal(now->bytes_received - before.bytes_received, 2 * (P - 1) * sizeof(float) * k / P);
}

static void several_steps(struct comm *c, struct shape shape, enum kind kind) {
    static double summed[RIG_N];
    static float given[RIG_N], grad[RIG_N];
    memset(&ref, 0, sizeof ref);
    memset(summed, 0, sizeof summed);
    memset(given, 0, sizeof given);
    ref = (struct reference){.n = (int)shape.n, .P = c->size};
    open_seeded(c, shape.n, shape.k, SEED);
    for (int step = 0; step < STEPS; step++) {
        size_t k = step % 4 < 2 ? shape.k : (shape.k + 1) / 2; /* the density changes during a run */
        for (int r = 0; r < c->size; r++) {
            make_gradient(kind, r, c->size, step, shape.n, grad);
            for (int i = 0; i < ref.n; i++) ref.acc[r][i] += grad[i];
        }
        make_gradient(kind, c->rank, c->size, step, shape.n, rig.grad);
        for (int i = 0; i < ref.n; i++) given[i] += rig.grad[i];
        struct comm_counters before = c->counters[TRAFFIC_EXCHANGE];
        rig_step(k);
        sends_k_values_alone(before, k);
        within_bound(before, rig.reducer.exchange.ops, k);
        reference_draw((int)k, SEED);
        agrees(kind, (int)k);
        all_ranks_hold_the_same(hash_of_sum());
        for (int i = 0; i < ref.n; i++) summed[i] += (double)rig.u[i];
    }
    if (exact_sums(kind)) conserves(given, summed);
    rig_close();
}

static bool wanted(struct comm *c, struct shape shape, enum kind kind) {
    if (c->size > 9 || (!test_device_is_host() && c->size > 1)) return kind == (shape.all_kinds ? WHOLE : REAL);
    return shape.all_kinds || kind == WHOLE || kind == ZEROS || kind == REAL;
}

static void the_reference(struct comm *c) {
    for (int s = 0; s < SHAPES; s++)
        for (enum kind kind = 0; kind < KINDS; kind++)
            if (wanted(c, shapes[s], kind)) several_steps(c, shapes[s], kind);
}

/* An entry waits n/k steps in the mean: in 40 steps of a density of 0.1 nearly all have been delivered once, and each
 * about 4 times. */
static void all_are_delivered_in_time(struct comm *c) {
    enum { N = 1000, K = 100, ALL = 40 };
    int times[N] = {0}, never = 0;
    open_seeded(c, N, K, 1);
    for (int step = 0; step < ALL; step++) {
        make_gradient(WHOLE, c->rank, c->size, step, N, rig.grad);
        rig_step(K);
        for (size_t i = 0; i < K; i++) times[rig.sum.sparse->idx[i]]++;
    }
    for (int i = 0; i < N; i++) {
        assert_true(times[i] <= 15);
        never += times[i] == 0;
    }
    assert_in_range(never, 0, 40); /* 1000 * 0.9^40: 15, with a deviation of 4 */
    rig_close();
}

/* A NaN is found wherever it is, drawn or not, and of two the lower one. All ranks fail here, none waits. */
static void not_a_number(struct comm *c) {
    enum { N = 97 };
    static const float wrong[] = {NAN, INFINITY, -INFINITY};
    for (int at = 0; at < N; at++) {
        int lowest = (at + 31 * c->rank) % N;
        open_seeded(c, N, 10, 1);
        make_gradient(REAL, c->rank, c->size, 0, N, rig.grad);
        rig_step(10);
        make_gradient(REAL, c->rank, c->size, 1, N, rig.grad);
        rig.grad[lowest] = wrong[at % 3];
        rig.grad[lowest + (N - lowest) / 2] = wrong[(at + 1) % 3];
        assert_false(rig_run(10));
        assert_int_equal(rig.sum.bad, lowest);
        rig_close();
    }
}

/* Steps [from, to) of a run; hash of its sums and residuals. */
static uint64_t run_steps(struct comm *c, int from, int to) {
    uint64_t hash = 0;
    for (int step = from; step < to; step++) {
        make_gradient(REAL, c->rank, c->size, step, 500, rig.grad);
        rig_step(step % 2 ? 60 : 20);
        uint64_t sum = hash_of_sum();
        hash = hash64(hash64(hash, &sum, sizeof sum), rig.residual, 500 * sizeof(float));
    }
    return hash;
}

static void a_checkpoint_goes_on_with_the_same_bits(struct comm *c) {
    uint64_t kept;
    float residual[500];
    size_t bytes;
    void *state;
    open_seeded(c, 500, 60, SEED);
    run_steps(c, 0, 7);
    assert_true(exchange_saved(&rig.reducer.exchange, 0, &state, &bytes));
    assert_int_equal(bytes, sizeof kept);
    memcpy(&kept, state, bytes);
    assert_int_equal(kept, 7);
    memcpy(residual, rig.residual, sizeof residual);
    uint64_t hash = run_steps(c, 7, 14);
    rig_close();
    enum { NOTHING, STATE, SKIPPED };
    for (int with = NOTHING; with <= SKIPPED; with++) {
        open_seeded(c, 500, 60, SEED);
        exchange_saved(&rig.reducer.exchange, 0, &state, &bytes);
        if (with == STATE) memcpy(state, &kept, bytes);
        if (with == SKIPPED) exchange_skip(&rig.reducer.exchange, 7);
        rig.reducer.store.ops->write(&rig.reducer.store, 0, 500, residual);
        /* without its number of steps it draws others */
        assert_true((run_steps(c, 7, 14) == hash) == (with != NOTHING));
        rig_close();
    }
}

static uint64_t hash_of_seed(struct comm *c, uint64_t seed) {
    open_seeded(c, 500, 60, seed);
    uint64_t hash = run_steps(c, 0, 3);
    rig_close();
    return hash;
}

static void the_seed_decides(struct comm *c) {
    assert_true(hash_of_seed(c, 1) == hash_of_seed(c, 1));
    assert_true(hash_of_seed(c, 1) != hash_of_seed(c, 2));
}

/* By layers, groups of one length draw different entries, and after other steps others. */
static void groups_draw_different_entries(struct comm *c) {
    static const size_t group[] = {0, 500};
    struct reducer_setup setup = {.ops = exchange_named("randomk"), .seed = SEED};
    setup.exchange = (struct exchange_setup){.n = 1000, .k_max = 100, .group = group, .groups = 2};
    rig_open_setup(c, setup);
    make_gradient(REAL, c->rank, c->size, 0, 1000, rig.grad);
    rig_step(100);
    const struct sparse *u = rig.sum.sparse;
    size_t same = 0;
    assert_int_equal(u->nnz, 100);
    for (size_t i = 0; i < 50; i++) {
        assert_true(u->idx[i] < 500 && u->idx[50 + i] >= 500);
        for (size_t j = 0; j < 50; j++) same += u->idx[i] + 500 == u->idx[50 + j];
    }
    assert_in_range(same, 0, 20);
    uint32_t first[100];
    memcpy(first, u->idx, sizeof first);
    rig_close();
    rig_open_setup(c, setup);
    exchange_skip(&rig.reducer.exchange, 3);
    make_gradient(REAL, c->rank, c->size, 0, 1000, rig.grad);
    rig_step(100);
    same = 0;
    for (size_t i = 0; i < 100; i++)
        for (size_t j = 0; j < 100; j++) same += first[i] == rig.sum.sparse->idx[j];
    assert_in_range(same, 0, 40); /* 10 by chance */
    rig_close();
}

int main(int argc, char **argv) {
    const struct mpi_case cases[] = {
        {"the_reference", the_reference},
        {"all_are_delivered_in_time", all_are_delivered_in_time},
        {"not_a_number", not_a_number},
        {"a_checkpoint_goes_on_with_the_same_bits", a_checkpoint_goes_on_with_the_same_bits},
        {"the_seed_decides", the_seed_decides},
        {"groups_draw_different_entries", groups_draw_different_entries},
    };
    return rig_test_main(argc, argv, "comm_randomk", cases, sizeof cases / sizeof cases[0]);
}
