/* cli_xi.c: the xi of Ok-Topk's Assumption 1 that --log-xi measures is that of a naive computation over the gradients
 * and residuals of all ranks, for every algorithm that selects; where its value is known it is that; and so is the norm
 * below its line. */
/* devices: cuda
 * ranks: 1 2 3 4 */
#include "tests/lib/exchange_rig.h"

#include "cli/gradients/xi.h"

enum { STEPS = 3, RANKS_MAX = 4 };

/* Everything of all ranks, and its sums. */
static float all_acc[RANKS_MAX * RIG_N], all_grad[RANKS_MAX * RIG_N];
static double sum_acc[RIG_N], sum_grad[RIG_N];
static const double *order_of;

static int larger_first(const void *a, const void *b) {
    size_t i = *(const size_t *)a, j = *(const size_t *)b;
    double x = fabs(order_of[i]), y = fabs(order_of[j]);
    if (x != y) return x > y ? -1 : 1;
    return i < j ? -1 : i > j;
}

/* top[i] = x[i] where it is one of the k of largest magnitude, else 0 */
static void naive_top(const double *x, size_t n, size_t k, double *top) {
    static size_t order[RIG_N];
    for (size_t i = 0; i < n; i++) order[i] = i, top[i] = 0;
    order_of = x;
    qsort(order, n, sizeof *order, larger_first);
    for (size_t i = 0; i < k; i++) top[order[i]] = x[order[i]];
}

static double length(const double *x, size_t n) {
    double square = 0;
    for (size_t i = 0; i < n; i++) square += x[i] * x[i];
    return sqrt(square);
}

/* Before the step: what every rank holds, on all ranks. */
static void gather_all(struct comm *c, size_t n) {
    static float acc[RIG_N];
    rig.reducer.store.ops->read(&rig.reducer.store, 0, n, acc);
    for (size_t i = 0; i < n; i++) acc[i] += rig.grad[i];
    comm_allgather(c, acc, n * sizeof *acc, all_acc);
    comm_allgather(c, rig.grad, n * sizeof *rig.grad, all_grad);
    for (size_t i = 0; i < n; i++) {
        sum_acc[i] = sum_grad[i] = 0;
        for (size_t r = 0; r < (size_t)c->size; r++) {
            sum_acc[i] += (double)all_acc[r * n + i];
            sum_grad[i] += (double)all_grad[r * n + i];
        }
    }
}

/* By the formula of xi.h over P, from what the exchange gave. */
static double naive_xi(const float *u, size_t n, size_t k, int P) {
    static double mean[RIG_N], top[RIG_N];
    for (size_t i = 0; i < n; i++) mean[i] = sum_acc[i] / P;
    naive_top(mean, n, k, top);
    for (size_t i = 0; i < n; i++) top[i] -= (double)u[i] / P;
    for (size_t i = 0; i < n; i++) mean[i] = sum_grad[i] / P;
    return length(top, n) / length(mean, n);
}

/* As the paper writes it: both sides from the accumulators, nothing from the exchange. */
static double paper_xi(size_t n, size_t k, int P) {
    static double own[RIG_N], top[RIG_N], sum[RIG_N], cut[RIG_N], whole[RIG_N];
    memset(sum, 0, sizeof sum);
    for (size_t r = 0; r < (size_t)P; r++) {
        for (size_t i = 0; i < n; i++) own[i] = (double)all_acc[r * n + i];
        naive_top(own, n, k, top);
        for (size_t i = 0; i < n; i++) sum[i] += top[i] / P;
    }
    naive_top(sum, n, k, cut);
    for (size_t i = 0; i < n; i++) own[i] = sum_acc[i] / P;
    naive_top(own, n, k, whole);
    for (size_t i = 0; i < n; i++) whole[i] -= cut[i];
    for (size_t i = 0; i < n; i++) own[i] = sum_grad[i] / P;
    return length(whole, n) / length(own, n);
}

static void near(struct comm *c, double value, double expected, const char *what) {
    if (c->rank > 0) {
        if (!isnan(value)) fail_msg("%s: rank %d has a value", what, c->rank);
        return;
    }
    if (isnan(expected) ? isnan(value) : fabs(value - expected) <= 1e-6 * (1 + expected)) return;
    fail_msg("%s, P = %d: %.9g, not %.9g", what, c->size, value, expected);
}

/* One step of the rig, its xi. */
static double measured_step(struct comm *c, struct xi *x, enum kind kind, int step, size_t n, size_t k) {
    make_gradient(kind, c->rank, c->size, step, n, rig.grad);
    gather_all(c, n);
    device_fill(rig.device_grad, rig.grad, n);
    xi_before(x, &rig.reducer.store, rig.device_grad, NULL, 0);
    rig_step(k);
    return xi_after(x, k, rig.sum.sparse);
}

static void case_of(struct comm *c, const struct exchange_ops *ops, enum kind kind, size_t n, size_t k) {
    char what[96];
    struct xi x;
    rig_open(c, ops, exact(), n, k, GTOPK_CONSERVE);
    xi_open(&x, c, n);
    for (int step = 0; step < STEPS; step++) {
        double value = measured_step(c, &x, kind, step, n, k);
        snprintf(what, sizeof what, "%s, gradients %d, n = %zu, k = %zu, step %d", ops->name, (int)kind, n, k, step);
        bool silent = length(sum_grad, n) == 0;
        near(c, value, silent ? NAN : naive_xi(rig.u, n, k, c->size), what);
        near(c, xi_denominator(&x), length(sum_grad, n) / c->size, what);
        if (kind == REAL && (strcmp(ops->name, "gtopk-naive") == 0 || strcmp(ops->name, "oktopk") == 0))
            near(c, value, paper_xi(n, k, c->size), what);
        /* Sums of everything are exact, and so is their difference. */
        if (!silent && k == n && exact_sums(kind) && c->rank == 0) assert_true(value == 0);
    }
    xi_close(&x);
    rig_close();
}

static void every_row_as_naive(struct comm *c) {
    static const struct { size_t n, k; } size[] = {{1100, 37}, {1000, 1}, {300, 299}, {64, 64}};
    for (size_t row = 0; exchanges[row]; row++) {
        if (!exchanges[row]->sparse) continue;
        for (size_t s = 0; s < sizeof size / sizeof *size; s++)
            for (int kind = 0; kind < KINDS; kind++) case_of(c, exchanges[row], (enum kind)kind, size[s].n, size[s].k);
    }
}

/* All ranks have (3, -4): the k = 1 largest of the mean is -4, and the exchange says 3: |(-3, -4)| / |(3, -4)| = 1.
 * Then a residual of (0, 2): (3, -2), of which 3 is the largest: 0. */
static void by_hand(struct comm *c) {
    static const float gradient[4] = {3, -4, 0, 0}, residual[4] = {0, 2, 0, 0};
    uint32_t index = 0;
    float value = 3.0f * (float)c->size;
    const struct sparse u = {&index, &value, 1, 1};
    struct store store;
    struct xi x;
    store_open(&store, 4, test_device());
    float *grad = device_upload(gradient, 4);
    xi_open(&x, c, 4);
    xi_before(&x, &store, grad, NULL, 0);
    near(c, xi_after(&x, 1, &u), 1, "(3, -4)");
    near(c, xi_denominator(&x), 5, "|(3, -4)|");
    store.ops->write(&store, 0, 4, residual);
    xi_before(&x, &store, grad, NULL, 0);
    near(c, xi_after(&x, 1, &u), 0, "(3, -2)");
    /* Exempt: it competes for nothing, its gradient counts: |(0, -2) - (0, 0)| / |(3, -4)| */
    static const uint32_t first = 0;
    const struct sparse nothing = {&index, &value, 0, 1};
    xi_before(&x, &store, grad, &first, 1);
    near(c, xi_after(&x, 1, &nothing), 0.4, "(exempt, -2)");
    xi_close(&x);
    test_device()->release(grad);
    store_close(&store);
}

/* More than one block, with exempt entries in each, against sums in one go: entry i is (i mod 1009) - 504 on every
 * rank, so that many are equal; u holds every third of the first k indices of largest magnitude. */
static void longer_than_a_block(struct comm *c) {
    enum { N = 3 * 65536 / 2 + 11, K = 700 };
    static const uint32_t exempt[] = {0, 1008, 65535, 65 * 1009, N - 1};
    float *host = mem_alloc(N, sizeof *host, "a test gradient");
    for (size_t i = 0; i < N; i++) host[i] = (float)(i % 1009) - 504;
    double gradient = 0, difference = 0;
    for (size_t i = 0; i < N; i++) gradient += (double)host[i] * (double)host[i];
    struct sparse u;
    sparse_open(&u, K);
    /* Magnitudes 504, 503, ... : two in each 1009, the lower index first. */
    size_t left = K;
    bool *among = mem_zalloc(N, sizeof *among, "marks");
    for (int m = 504; m > 0 && left > 0; m--)
        for (size_t i = 0; i < N && left > 0; i++) {
            bool out = false;
            for (size_t e = 0; e < sizeof exempt / sizeof *exempt; e++) out |= exempt[e] == i;
            if (out || fabsf(host[i]) != (float)m) continue;
            among[i] = true;
            left--;
        }
    for (size_t i = 0, seen = 0; i < N; i++) {
        if (!among[i]) continue;
        if (seen++ % 3 == 0) {
            u.idx[u.nnz] = (uint32_t)i;
            u.val[u.nnz++] = host[i] * (float)c->size;
        } else {
            difference += (double)host[i] * (double)host[i];
        }
    }
    struct store store;
    struct xi x;
    store_open(&store, N, test_device());
    float *grad = device_upload(host, N);
    xi_open(&x, c, N);
    xi_before(&x, &store, grad, exempt, sizeof exempt / sizeof *exempt);
    near(c, xi_after(&x, K, &u), sqrt(difference / gradient), "blocks");
    xi_close(&x);
    test_device()->release(grad);
    store_close(&store);
    sparse_close(&u);
    mem_free(among);
    mem_free(host);
}

/* What is measured is no part of what the algorithm sends. */
static void is_control_traffic(struct comm *c) {
    struct xi x;
    enum traffic before = c->traffic;
    rig_open(c, exchange_named("topka"), exact(), 1000, 10, GTOPK_CONSERVE);
    xi_open(&x, c, 1000);
    c->traffic = TRAFFIC_CONTROL;
    struct comm_counters exchange = c->counters[TRAFFIC_EXCHANGE], control = c->counters[TRAFFIC_CONTROL];
    device_fill(rig.device_grad, rig.grad, 1000);
    xi_before(&x, &rig.reducer.store, rig.device_grad, NULL, 0);
    assert_memory_equal(&exchange, &c->counters[TRAFFIC_EXCHANGE], sizeof exchange);
    if (c->size > 1) assert_true(c->counters[TRAFFIC_CONTROL].bytes_sent > control.bytes_sent);
    c->traffic = before;
    xi_close(&x);
    xi_close(&x);
    rig_close();
}

int main(int argc, char **argv) {
    const struct mpi_case cases[] = {{"every_row_as_naive", every_row_as_naive},
                                     {"by_hand", by_hand},
                                     {"longer_than_a_block", longer_than_a_block},
                                     {"is_control_traffic", is_control_traffic}};
    return rig_test_main(argc, argv, "cli_xi", cases, sizeof cases / sizeof *cases);
}
