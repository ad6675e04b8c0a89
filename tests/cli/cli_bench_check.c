/* cli_bench_check.c: the bench's verification finds what an exchange does wrong: one residual entry changed, one value
 * of u, one rank with another u, a selection or a sum that is not the definition's. The exchanges here are rows of this
 * test: a right one, and the same with one mistake.
 * ranks: 1 2 4 */
#include "tests/lib/mpi_harness.h"

#include "base/mem.h"
#include "base/table.h"
#include "cli/bench/bench_exchange.h"

enum { N = 70000, K = 700, STEPS = 4 };

static enum mistake {
    NO_MISTAKE,
    RESIDUAL, /* an entry that was sent stays in the residual */
    LOST,     /* an entry is taken out of the residual and not sent */
    VALUE,    /* a value of u is off by a part in a thousand */
    ONE_RANK  /* the last rank's u differs in its last bits (P > 1) */
} mistake;

static const struct exchange_ops *topka, *dense;

/* topka's row with its `run` spoilt. The step's sum is const to us: it is written all the same. */
static bool spoilt_run(struct exchange *x, float *grad, size_t k, struct exchange_sum *sum) {
    if (!topka->run(x, grad, k, sum)) return false;
    struct store *store = x->setup.store;
    struct sparse *u = (struct sparse *)(uintptr_t)sum->sparse;
    int rank = x->setup.comm->rank, last = x->setup.comm->size - 1;
    struct sparse one = {.idx = &(uint32_t){u->idx[5]}, .val = &(float){0.5f}, .nnz = 1, .cap = 1};
    if (mistake == RESIDUAL && rank == last) store->ops->add_at(store, &one);
    uint32_t at = 0;
    while (at < u->nnz && u->idx[at] == at) at++; /* an entry that stays in the residual */
    if (mistake == LOST && rank == last) store->ops->zero_at(store, &at, 1);
    if (mistake == VALUE) u->val[7] *= 1.001f;
    if (mistake == ONE_RANK && rank == last) u->val[7] += u->val[7] * 0x1p-22f;
    return true;
}

static struct exchange_ops spoilt;
static struct bench_request request;

static void case_open(struct bench_case *b, struct comm *c, const struct exchange_ops *ops) {
    request = (struct bench_request){.wire = wires[0], .repeat = 1, .check = true};
    *b = (struct bench_case){.comm = c, .request = &request, .ops = ops, .n = N, .k = K};
    TABLE_FIND(selectors, "exact", b->select);
    b->host = b->grad = mem_alloc(N, sizeof *b->grad, "gradient");
    phases_reset(&b->phases);
    if (!ops->sparse) b->select = NULL;
    struct reducer_setup setup = {.ops = ops, .select = b->select, .device = device_find("cpu")};
    setup.exchange = (struct exchange_setup){.comm = c, .n = N, .k_max = K, .phases = &b->phases};
    setup.exchange.wants_sent = bench_wants_sent(b);
    reducer_open(&b->reducer, &setup);
}

static void case_close(struct bench_case *b) {
    reducer_close(&b->reducer);
    mem_free(b->grad);
}

/* A few steps; the last against the definition. What the two parts of the verification found. */
static void run(struct comm *c, const struct exchange_ops *ops, uint64_t *definition, uint64_t *account) {
    struct bench_case b;
    struct bench_check check;
    struct pattern p;
    struct exchange_sum sum;
    struct err e = {0};
    case_open(&b, c, ops);
    bench_check_open(&check, N);
    assert_true(pattern_open(&p, c, "uniform", 1, &e));
    for (size_t t = 0; t + 1 < STEPS; t++) {
        assert_true(pattern_gradient(&p, t, N, b.grad, &e));
        bench_check_before(&check, &b);
        bench_exchange_step(&b, &sum);
        bench_check_after(&check, &b, &sum);
    }
    assert_true(pattern_gradient(&p, STEPS, N, b.grad, &e));
    *definition = bench_check_step(&check, &b);
    *account = bench_check_end(&check, &b);
    pattern_close(&p);
    bench_check_close(&check);
    case_close(&b);
}

static void find_rows(void) {
    TABLE_FIND(exchanges, "topka", topka);
    TABLE_FIND(exchanges, "dense", dense);
    spoilt = *topka;
    spoilt.run = spoilt_run;
}

static void mistakes_are_found(struct comm *c) {
    find_rows();
    for (int m = NO_MISTAKE; m <= ONE_RANK; m++) {
        uint64_t definition, account;
        mistake = (enum mistake)m;
        run(c, &spoilt, &definition, &account);
        bool alone = c->size == 1;
        if (m == NO_MISTAKE) assert_true(definition == 0 && account == 0);
        if (m == RESIDUAL) assert_true(account > 0);
        if (m == LOST) assert_true(account > 0);
        if (m == VALUE) assert_true(account > 0 && definition > 0);
        if (m == ONE_RANK && !alone) assert_true(account > 0);
    }
}

/* An algorithm that sends half of what it should conserves everything, but is not topka. */
static bool half_run(struct exchange *x, float *grad, size_t k, struct exchange_sum *sum) {
    return topka->run(x, grad, k / 2, sum);
}

static void a_wrong_definition_is_found(struct comm *c) {
    uint64_t definition, account;
    find_rows();
    spoilt.run = half_run;
    run(c, &spoilt, &definition, &account);
    assert_true(account == 0);
    assert_true(definition > K / 4);
    run(c, dense, &definition, &account);
    assert_true(definition == 0 && account == 0);
}

/* dense without the last rank's share. */
static bool lame_run(struct exchange *x, float *grad, size_t k, struct exchange_sum *sum) {
    if (x->setup.comm->rank == x->setup.comm->size - 1) grad[N - 1] = 0;
    return dense->run(x, grad, k, sum);
}

static void a_wrong_dense_sum_is_found(struct comm *c) {
    uint64_t definition, account;
    find_rows();
    spoilt = *dense;
    spoilt.run = lame_run;
    run(c, &spoilt, &definition, &account);
    assert_int_equal(definition, 1);
    assert_int_equal(account, 1);
}

int main(int argc, char **argv) {
    const struct mpi_case cases[] = {{"mistakes_are_found", mistakes_are_found},
                                     {"a_wrong_definition_is_found", a_wrong_definition_is_found},
                                     {"a_wrong_dense_sum_is_found", a_wrong_dense_sum_is_found}};
    return mpi_test_main(argc, argv, "cli_bench_check", cases, sizeof cases / sizeof *cases);
}
