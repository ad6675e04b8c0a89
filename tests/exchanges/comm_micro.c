/* comm_micro.c: MiCRO against a serial reference over full vectors; its threshold, its words, its state.
 * ranks: 1 2 3 4 5 7 8 9 16 32
 * devices: cuda ranks 1 3 4 */
#include "tests/lib/exchange_rig.h"

enum { P_MAX = 32, STEPS = 9 };

static const struct shape {
    size_t n, k;
    bool all_kinds;
} shapes[] = {{1, 1, false},   {3, 1, false},    {3, 3, false},      {7, 2, false},     {31, 9, false},
              {100, 8, false}, {1009, 1, false}, {1009, 5, true},    {1009, 37, false}, {1009, 100, true},
              {64, 64, false}, {RIG_N, 9, true}, {1009, 1008, true}, {1009, 600, false}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

/* -- the reference -------------------------------------------------------------------------------------------- */
static struct reference {
    int n, P, step, k_max;
    float acc[P_MAX][RIG_N]; /* residual, plus the gradient within a step */
    float threshold[P_MAX];  /* of the partitions */
    bool chosen[RIG_N];
} ref;

static int limit(int k) {
    int share = (k + ref.P - 1) / ref.P;
    return share + share / 32;
}

static const float *sorting;
static int larger_first(const void *a, const void *b) {
    int i = *(const int *)a, j = *(const int *)b;
    float x = fabsf(sorting[i]), y = fabsf(sorting[j]);
    if (x != y) return x < y ? 1 : -1;
    return i - j;
}

/* What rank r chooses in a partition, as a list of indices from large to small. */
static int reference_choose(int r, int part, int share, int *order) {
    int begin = (int)((long)part * ref.n / ref.P), end = (int)((long)(part + 1) * ref.n / ref.P);
    int length = end - begin, count = 0, most = share + share / 32, strictly = 0;
    float *threshold = &ref.threshold[part];
    for (int i = 0; i < length; i++) order[i] = begin + i;
    sorting = ref.acc[r];
    qsort(order, (size_t)length, sizeof *order, larger_first);
    if (share == length) return length;
    while (count < length && fabsf(sorting[order[count]]) >= *threshold && sorting[order[count]] != 0) count++;
    if (2 * count >= share && count <= 2 * share) {
        if (count > share) *threshold *= 1.005f;
        if (count < share) *threshold *= 0.995f;
        return count < most ? count : most;
    }
    *threshold = fabsf(sorting[order[share - 1]]);
    if (count > 2 * share && count <= 4 * limit(ref.k_max)) return most;
    if (*threshold == 0) *threshold = 1.4e-45f; /* the smallest there is */
    for (count = 0; count < length && fabsf(sorting[order[count]]) >= *threshold;) count++;
    while (strictly < length && fabsf(sorting[order[strictly]]) > *threshold) strictly++;
    if (count > 4 * limit(ref.k_max)) return strictly > 0 ? strictly : share;
    return count < most ? count : most;
}

static void reference_step(int k) {
    int order[RIG_N];
    memset(ref.chosen, 0, sizeof ref.chosen);
    for (int r = 0; r < ref.P; r++) {
        int part = (r + ref.step) % ref.P;
        int begin = (int)((long)part * ref.n / ref.P), end = (int)((long)(part + 1) * ref.n / ref.P);
        int share = (int)((long)(r + 1) * k / ref.P - (long)r * k / ref.P);
        if (k == ref.n || share > end - begin) share = end - begin;
        int count = share == 0 ? 0 : reference_choose(r, part, share, order);
        for (int i = 0; i < count; i++) ref.chosen[order[i]] = true;
    }
    ref.step++;
}

/* -- against it ------------------------------------------------------------------------------------------------- */
static void agrees(enum kind kind) {
    size_t count = 0;
    for (int i = 0; i < ref.n; i++) {
        double sum = 0, size = 0;
        for (int r = 0; r < ref.P; r++) {
            sum += (double)ref.acc[r][i];
            size += fabs((double)ref.acc[r][i]);
        }
        if (!ref.chosen[i]) sum = 0;
        assert_true(exact_sums(kind) ? (double)rig.u[i] == sum : fabs((double)rig.u[i] - sum) <= 1e-6 * size);
        if (ref.chosen[i]) {
            assert_true(count < rig.sum.sparse->nnz && rig.sum.sparse->idx[count] == (uint32_t)i);
            assert_true(rig.sum.sent->idx[count] == (uint32_t)i);
            assert_true(rig.sum.sent->val[count] == ref.acc[rig.comm->rank][i]);
            count++;
            for (int r = 0; r < ref.P; r++) ref.acc[r][i] = 0;
        }
        assert_true(rig.residual[i] == ref.acc[rig.comm->rank][i]);
    }
    assert_int_equal(rig.sum.global_nnz, count);
    assert_int_equal(rig.sum.local_nnz, count);
    assert_int_equal(rig.sum.sent->nnz, count);
}

static void several_steps(struct comm *c, struct shape shape, enum kind kind) {
    static double summed[RIG_N];
    static float given[RIG_N], grad[RIG_N];
    memset(&ref, 0, sizeof ref);
    memset(summed, 0, sizeof summed);
    memset(given, 0, sizeof given);
    ref = (struct reference){.n = (int)shape.n, .P = c->size, .k_max = (int)shape.k};
    for (int r = 0; r < c->size; r++) ref.threshold[r] = INFINITY;
    rig_open(c, exchange_named("micro"), exact(), shape.n, shape.k, GTOPK_CONSERVE);
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
        within_bound(before, rig.reducer.exchange.ops, k);
        assert_true(rig.sum.global_nnz <= k + k / 32);
        reference_step((int)k);
        agrees(kind);
        all_ranks_hold_the_same(hash_of_sum());
        for (int i = 0; i < ref.n; i++) summed[i] += (double)rig.u[i];
    }
    if (exact_sums(kind)) conserves(given, summed);
    rig_close();
}

static bool wanted(struct comm *c, struct shape shape, enum kind kind) {
    if (c->size > 9) return shape.all_kinds ? kind == WHOLE || kind == REAL : kind == TIES;
    return shape.all_kinds || kind == WHOLE || kind == ZEROS || kind == REAL;
}

static void the_reference(struct comm *c) {
    for (int s = 0; s < SHAPES; s++)
        for (enum kind kind = 0; kind < KINDS; kind++)
            if (wanted(c, shapes[s], kind)) several_steps(c, shapes[s], kind);
}

static void k_equal_to_n(struct comm *c) {
    enum { N = 501 };
    static double want[N];
    float grad[N];
    rig_open(c, exchange_named("micro"), exact(), N, N, GTOPK_CONSERVE);
    for (int step = 0; step < 3; step++) {
        memset(want, 0, sizeof want);
        for (int r = 0; r < c->size; r++) {
            make_gradient(step == 1 ? ZEROS : REAL, r, c->size, step, N, grad);
            for (int i = 0; i < N; i++) want[i] += (double)grad[i];
        }
        make_gradient(step == 1 ? ZEROS : REAL, c->rank, c->size, step, N, rig.grad);
        rig_step(N);
        assert_int_equal(rig.sum.global_nnz, N);
        for (int i = 0; i < N; i++) assert_true(fabs((double)rig.u[i] - want[i]) <= 1e-5);
        for (int i = 0; i < N; i++) assert_true(rig.residual[i] == 0);
    }
    rig_close();
}

/* Thresholds follow k when gradients change their size from step to step and from partition to partition. */
static void the_count_stays_near_k(struct comm *c) {
    enum { N = 1100, K = 330 };
    rig_open(c, exchange_named("micro"), exact(), N, K, GTOPK_CONSERVE);
    for (int step = 0; step < 40; step++) {
        make_gradient(REAL, c->rank, c->size, step, N, rig.grad);
        for (int i = 0; i < N; i++) rig.grad[i] *= (i < N / 3 ? 1.0f : 100.0f) * (step < 20 ? 1.0f : 1e-4f);
        rig_step(K);
        assert_in_range(rig.sum.global_nnz, K / 2 - c->size, K + K / 32);
    }
    rig_close();
}

/* Where it is, this rank must find it, and of two the lower one. All ranks fail here, none waits. */
static void not_a_number(struct comm *c) {
    enum { N = 97 };
    static const float wrong[] = {NAN, INFINITY, -INFINITY};
    for (int at = 0; at < N; at++) {
        for (int steps = 0; steps < 2; steps++) {
            int lowest = (at + 31 * c->rank) % N;
            rig_open(c, exchange_named("micro"), exact(), N, 10, GTOPK_CONSERVE);
            for (int step = 0; step < steps; step++) {
                make_gradient(REAL, c->rank, c->size, step, N, rig.grad);
                rig_step(10);
            }
            /* in the second step everything is above the threshold, far more than there is room for */
            for (int i = 0; i < N; i++) rig.grad[i] = 1000;
            rig.grad[lowest] = wrong[at % 3];
            rig.grad[lowest + (N - lowest) / 2] = wrong[(at + 1) % 3];
            assert_false(rig_run(10));
            assert_int_equal(rig.sum.bad, lowest);
            rig_close();
        }
    }
}

/* Steps [from, to) of a run; hash of its sums. */
static uint64_t run_steps(struct comm *c, int from, int to) {
    uint64_t hash = 0;
    for (int step = from; step < to; step++) {
        make_gradient(REAL, c->rank, c->size, step, 500, rig.grad);
        rig_step(60);
        uint64_t sum = hash_of_sum();
        hash = hash64(hash, &sum, sizeof sum);
    }
    return hash;
}

static void a_checkpoint_goes_on_with_the_same_bits(struct comm *c) {
    static unsigned char kept[8 + 4 * P_MAX];
    float residual[500];
    size_t bytes, bytes_again;
    rig_open(c, exchange_named("micro"), exact(), 500, 60, GTOPK_CONSERVE);
    run_steps(c, 0, 7);
    void *state;
    exchange_saved(&rig.reducer.exchange, 0, &state, &bytes);
    assert_in_range(bytes, 1, sizeof kept);
    memcpy(kept, state, bytes);
    memcpy(residual, rig.residual, sizeof residual);
    uint64_t hash = run_steps(c, 7, 14);
    rig_close();
    rig_open(c, exchange_named("micro"), exact(), 500, 60, GTOPK_CONSERVE);
    exchange_saved(&rig.reducer.exchange, 0, &state, &bytes_again);
    assert_int_equal(bytes, bytes_again);
    memcpy(state, kept, bytes);
    rig.reducer.store.ops->write(&rig.reducer.store, 0, 500, residual);
    assert_true(run_steps(c, 7, 14) == hash);
    rig_close();
}

static void the_bound_is_near_three_k(struct comm *c) {
    const struct exchange_ops *ops = exchange_named("micro");
    (void)c;
    for (int P = 1; P <= 1024; P = P < 70 ? P + 1 : 2 * P - 3) {
        for (size_t k = 50 * (size_t)P; k < 150 * (size_t)P; k += 1 + (size_t)P / 70) {
            double words = ops->max_words(&(struct cost_case){.n = 1 << 20, .k = k, .P = P, .ranks_per_node = 1}),
                   unit = (double)k * (P - 1) / P;
            assert_true(words <= 3.2 * unit && words >= 3 * unit);
        }
    }
}

int main(int argc, char **argv) {
    const struct mpi_case cases[] = {
        {"the_reference", the_reference},
        {"k_equal_to_n", k_equal_to_n},
        {"the_count_stays_near_k", the_count_stays_near_k},
        {"not_a_number", not_a_number},
        {"a_checkpoint_goes_on_with_the_same_bits", a_checkpoint_goes_on_with_the_same_bits},
        {"the_bound_is_near_three_k", the_bound_is_near_three_k},
    };
    return rig_test_main(argc, argv, "comm_micro", cases, sizeof cases / sizeof cases[0]);
}
