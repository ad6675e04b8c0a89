/* comm_correction.c: momentum correction and masking (topk/correction.h) with every exchange behind them: what P ranks
 * do together is momentum SGD, up to what still waits in the residuals. Gradients are integers and mu is 1/2, so that
 * a few steps are exact in float: after t of them a velocity is a multiple of 2^-(t-1).
 * ranks: 1 2 3 4 5 7 8
 * faults: 3
 * devices: cuda ranks 1 3 */
#include "tests/lib/exchange_rig.h"

#include "topk/clip.h"
#include "topk/correction.h"

enum { STEPS = 6, SIZE = 1009 };
static const float mu = 0.5f;

/* n not divisible by P, n < P, k = n, k = 1, k < P */
static const struct shape {
    size_t n, k;
} shapes[] = {{1, 1}, {3, 1}, {7, 2}, {SIZE, 1}, {SIZE, 20}, {SIZE, 300}, {301, 301}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static const enum kind kinds[] = {WHOLE, TIES, ONE_REGION, ONE_SILENT, ZEROS};
enum { KINDS_HERE = sizeof kinds / sizeof kinds[0] };

/* -- what should be: sums over the ranks, serially --------------------------------------------------------------- */

static double parameter[RIG_N], velocity[RIG_N]; /* of momentum SGD with the sum of all gradients; lr = P = 1 */

static void sgd_step(const struct comm *c, enum kind kind, int step, size_t n) {
    float grad[RIG_N];
    double sum[RIG_N] = {0};
    for (int r = 0; r < c->size; r++) {
        make_gradient(kind, r, c->size, step, n, grad);
        for (size_t i = 0; i < n; i++) sum[i] += (double)grad[i];
    }
    for (size_t i = 0; i < n; i++) {
        velocity[i] = (double)mu * velocity[i] + sum[i];
        parameter[i] -= velocity[i];
    }
}

/* -- a rank with a velocity ---------------------------------------------------------------------------------------- */

static struct {
    struct correction c;
    double parameter[RIG_N]; /* w = w - u */
    float before[RIG_N];     /* the residual before the step */
    float corrected[RIG_N];  /* what went into the exchange */
    float u[RIG_N];          /* this rank's velocity, after the step */
} here;

static void open_row(struct comm *c, const struct exchange_ops *ops, struct shape shape, size_t k_max, bool masking) {
    rig_open(c, ops, exact(), shape.n, k_max, GTOPK_CONSERVE);
    correction_open(&here.c, shape.n, test_device(), mu, masking);
    memset(here.parameter, 0, sizeof here.parameter);
    memset(parameter, 0, sizeof parameter);
    memset(velocity, 0, sizeof velocity);
}

static void close_row(void) {
    correction_close(&here.c);
    rig_close();
}

/* rig.grad goes in, in two parts; then u and residual as after rig_step. */
static void corrected_step(size_t k) {
    size_t middle = rig.n / 3;
    rig_residual();
    memcpy(here.before, rig.residual, sizeof here.before);
    device_fill(rig.device_grad, rig.grad, rig.n);
    correction_apply(&here.c, rig.device_grad, middle, rig.n);
    if (middle > 0) correction_apply(&here.c, rig.device_grad, 0, middle);
    device_download(rig.grad, rig.device_grad, rig.n);
    memcpy(here.corrected, rig.grad, sizeof here.corrected);
    rig_step(k);
    for (size_t i = 0; i < rig.n; i++) here.parameter[i] -= (double)rig.u[i];
    here.c.velocity.ops->read(&here.c.velocity, 0, rig.n, here.u);
}

/* sum_r (residual_r before + u_r) == u + sum_r residual_r after */
static void step_conserves(void) {
    static double balance[RIG_N];
    for (size_t i = 0; i < rig.n; i++)
        balance[i] = (double)here.before[i] + (double)here.corrected[i] - (double)rig.residual[i];
    comm_allreduce_f64(rig.comm, balance, rig.n, COMM_SUM);
    for (size_t i = 0; i < rig.n; i++) assert_true(balance[i] == (double)rig.u[i]);
}

/* The parameters are short of momentum SGD's by what waits, and by nothing else. */
static void short_by_the_residuals(void) {
    static double waiting[RIG_N];
    for (size_t i = 0; i < rig.n; i++) waiting[i] = (double)rig.residual[i];
    comm_allreduce_f64(rig.comm, waiting, rig.n, COMM_SUM);
    for (size_t i = 0; i < rig.n; i++) assert_true(here.parameter[i] - waiting[i] == parameter[i]);
}

static bool some_waits(void) {
    double waiting = 0;
    for (size_t i = 0; i < rig.n; i++) waiting += fabs((double)rig.residual[i]);
    comm_allreduce_f64(rig.comm, &waiting, 1, COMM_SUM);
    return waiting > 0;
}

/* Rows whose sum is the ranks' common one. */
static bool adds_up(const struct exchange_ops *ops) {
    return !ops->drifts && !ops->rounds && (ops->conserves || !ops->sparse);
}

/* Can it say what a rank delivered? See correction.h. */
static bool says_what_was_sent(const struct exchange_ops *ops) {
    return ops->sparse && !ops->by_node;
}

/* Slow: fewer cases. */
static bool few_cases(const struct comm *c) {
    return getenv("SPARSETRAIN_DELAY") || !test_device_is_host() || c->size > 4;
}

static bool in_use(const struct comm *c, int s, int kind) {
    return !few_cases(c) || (kinds[kind] == WHOLE && (s == 2 || s == 4)) || (kinds[kind] == ONE_REGION && s == 5);
}

/* -- correction without masking ------------------------------------------------------------------------------------ */

/* All is delivered in every step: momentum SGD, parameter by parameter, with any row, and nothing waits. */
static void density_1_is_momentum_sgd(struct comm *c) {
    for (size_t row = 0; exchanges[row]; row++)
        for (int kind = 0; adds_up(exchanges[row]) && kind < KINDS_HERE; kind++) {
            struct shape shape = {kind == 0 ? SIZE : 77, 0};
            if (few_cases(c) && kind > 0) continue;
            open_row(c, exchanges[row], shape, shape.n, false);
            for (int step = 0; step < STEPS; step++) {
                make_gradient(kinds[kind], c->rank, c->size, step, shape.n, rig.grad);
                corrected_step(shape.n);
                sgd_step(c, kinds[kind], step, shape.n);
                for (size_t i = 0; i < shape.n; i++) {
                    assert_true(here.parameter[i] == parameter[i]);
                    assert_true((double)rig.u[i] == velocity[i]);
                    assert_true(rig.residual[i] == 0);
                }
            }
            close_row();
        }
}

/* With whatever is delivered: short by the residuals in each step. Then steps with no gradient, where velocities go on,
 * and one that delivers all: what has been delivered is, with G(s) the sum over ranks of step s and T steps in all,
 *
 *        sum over s of (1 + mu + ... + mu^(T-s)) G(s) = sum over s of (2 - 2^-(T-s)) G(s)
 *
 * the total of momentum SGD. */
static void total_case(struct comm *c, const struct exchange_ops *ops, struct shape shape, enum kind kind) {
    enum { QUIET = 3, ALL = STEPS + QUIET };
    static double total[RIG_N];
    bool waited = false;
    memset(total, 0, sizeof total);
    open_row(c, ops, shape, shape.n, false);
    for (int step = 0; step < ALL; step++) {
        enum kind now = step < STEPS ? kind : ZEROS;
        for (int r = 0; r < c->size; r++) {
            make_gradient(now, r, c->size, step, shape.n, rig.grad);
            for (size_t i = 0; i < shape.n; i++) total[i] += (2 - ldexp(1, -(ALL - 1 - step))) * (double)rig.grad[i];
        }
        make_gradient(now, c->rank, c->size, step, shape.n, rig.grad);
        corrected_step(step == ALL - 1 ? shape.n : shape.k);
        sgd_step(c, now, step, shape.n);
        step_conserves();
        short_by_the_residuals();
        waited = waited || some_waits();
    }
    for (size_t i = 0; i < shape.n; i++) {
        assert_true(rig.residual[i] == 0);
        assert_true(here.parameter[i] == -total[i] && parameter[i] == -total[i]);
    }
    if (kind == WHOLE && shape.n == SIZE && shape.k <= 20 && ops->sparse) assert_true(waited);
    close_row();
}

static void the_total_is_that_of_momentum_sgd(struct comm *c) {
    for (size_t row = 0; exchanges[row]; row++)
        for (int s = 0; adds_up(exchanges[row]) && s < SHAPES; s++)
            for (int kind = 0; kind < KINDS_HERE; kind++)
                if (in_use(c, s, kind)) total_case(c, exchanges[row], shapes[s], kinds[kind]);
}

/* What the correction is for: momentum behind the exchange, of the sparse u, has another total though all is delivered
 * in the end. */
static void momentum_behind_the_exchange_is_another(struct comm *c) {
    struct shape shape = {SIZE, 20};
    double behind[RIG_N] = {0}, w[RIG_N] = {0}, most = 0;
    open_row(c, exchange_named("topka"), shape, SIZE, false);
    for (int step = 0; step < STEPS; step++) {
        make_gradient(WHOLE, c->rank, c->size, step, SIZE, rig.grad);
        rig_step(step == STEPS - 1 ? SIZE : shape.k);
        sgd_step(c, WHOLE, step, SIZE);
        for (size_t i = 0; i < SIZE; i++) {
            behind[i] = (double)mu * behind[i] + (double)rig.u[i];
            w[i] -= behind[i];
        }
    }
    for (size_t i = 0; i < SIZE; i++) most = fmax(most, fabs(w[i] - parameter[i]));
    assert_true(most >= 1);
    close_row();
}

/* -- masking ------------------------------------------------------------------------------------------------------- */

/* A caller can know from the row, before any step, whether it will say what was delivered. */
static void which_rows_can_be_masked(struct comm *c) {
    for (size_t row = 0; exchanges[row]; row++) {
        const struct exchange_ops *ops = exchanges[row];
        for (int step = 0; step < 2; step++) {
            open_row(c, ops, (struct shape){100, 10}, 10, false);
            make_gradient(WHOLE, c->rank, c->size, step, 100, rig.grad);
            corrected_step(10);
            if ((rig.sum.delivered != NULL) != says_what_was_sent(ops))
                fail_msg("%s: sparse, by_node and delivered", ops->name);
            correction_mask(&here.c, rig.sum.delivered, NULL); /* nothing, without masking */
            here.c.velocity.ops->read(&here.c.velocity, 0, 100, rig.grad);
            assert_memory_equal(rig.grad, here.u, 100 * sizeof(float));
            close_row();
        }
    }
}

/* Zero exactly at the entries delivered; the others keep their bits. own: what the velocity should be, by a plain loop.
 */
static void mask_and_check(float *own) {
    static float after[RIG_N];
    const struct sparse *delivered = rig.sum.delivered;
    size_t at = 0;
    assert_true(sparse_valid(delivered, rig.n));
    correction_mask(&here.c, delivered, NULL);
    here.c.velocity.ops->read(&here.c.velocity, 0, rig.n, after);
    for (size_t i = 0; i < rig.n; i++) {
        bool gone = at < delivered->nnz && delivered->idx[at] == i;
        at += gone;
        assert_true(gone ? after[i] == 0 : after[i] == here.u[i]);
        own[i] = gone ? 0 : own[i];
    }
    assert_int_equal(at, delivered->nnz);
}

/* Several steps: conservation holds in each, with velocities that begin anew where something was delivered. */
static void masked_case(struct comm *c, const struct exchange_ops *ops, struct shape shape, enum kind kind) {
    float own[RIG_N] = {0}, grad[RIG_N];
    size_t masked = 0;
    open_row(c, ops, shape, shape.k, true);
    for (int step = 0; step < STEPS; step++) {
        make_gradient(kind, c->rank, c->size, step, shape.n, grad);
        memcpy(rig.grad, grad, sizeof grad);
        for (size_t i = 0; i < shape.n; i++) own[i] = mu * own[i] + grad[i];
        corrected_step(step % 2 ? (shape.k + 1) / 2 : shape.k);
        assert_memory_equal(here.corrected, own, shape.n * sizeof *own);
        assert_memory_equal(here.u, own, shape.n * sizeof *own);
        step_conserves();
        mask_and_check(own);
        masked += rig.sum.delivered->nnz;
    }
    double all = (double)masked;
    comm_allreduce_f64(c, &all, 1, COMM_SUM);
    if (kind == WHOLE) assert_true(all > 0);
    close_row();
}

static void masking_conserves(struct comm *c) {
    for (size_t row = 0; exchanges[row]; row++)
        for (int s = 0; says_what_was_sent(exchanges[row]) && s < SHAPES; s++)
            for (int kind = 0; kind < KINDS_HERE; kind++)
                if (exchanges[row]->conserves && in_use(c, s, kind))
                    masked_case(c, exchanges[row], shapes[s], kinds[kind]);
}

/* With k = n and a row whose ranks deliver all, masking leaves no momentum: SGD without. */
static void masking_everything_leaves_no_momentum(struct comm *c) {
    enum { N = 200 };
    for (size_t row = 0; exchanges[row]; row++) {
        if (!says_what_was_sent(exchanges[row])) continue;
        open_row(c, exchanges[row], (struct shape){N, N}, N, true);
        for (int step = 0; step < STEPS; step++) {
            double sum[N] = {0};
            for (int r = 0; r < c->size; r++) {
                make_gradient(WHOLE, r, c->size, step, N, rig.grad);
                for (size_t i = 0; i < N; i++) sum[i] += (double)rig.grad[i];
            }
            make_gradient(WHOLE, c->rank, c->size, step, N, rig.grad);
            corrected_step(N);
            correction_mask(&here.c, rig.sum.delivered, NULL);
            for (size_t i = 0; i < N; i++) assert_true((double)rig.u[i] == sum[i]);
        }
        close_row();
    }
}

/* -- parts, while the exchange is under way ------------------------------------------------------------------------ */

/* Group by group, as backward completes them: corrected, then ready. The sums, residuals and velocities of the same
 * exchange that gets the whole at once. */
static void open_groups(struct comm *c, const struct exchange_ops *ops, size_t k, const size_t *group, size_t groups) {
    const struct exchange_setup extra = {
        .group = group, .groups = groups, .options = rig_options("tau-prime=1,tau=2", GTOPK_CONSERVE)};
    rig_open_with(c, ops, exact(), SIZE, k, &extra);
    correction_open(&here.c, SIZE, test_device(), mu, true);
}

static uint64_t hash_of_groups(struct comm *c, const struct exchange_ops *ops, bool overlaps) {
    enum { GROUPS = 5 };
    static const size_t group[GROUPS] = {0, 10, 17, 500, 1008};
    uint64_t hash = 0;
    open_groups(c, ops, 100, group, GROUPS);
    for (int step = 0; step < STEPS; step++) {
        make_gradient(REAL, c->rank, c->size, step, SIZE, rig.grad);
        device_fill(rig.device_grad, rig.grad, SIZE);
        if (overlaps) exchange_begin(&rig.reducer.exchange, rig.device_grad, 100);
        for (size_t g = GROUPS, to = SIZE; g-- > 0; to = group[g]) {
            correction_apply(&here.c, rig.device_grad, group[g], to);
            if (overlaps) exchange_ready(&rig.reducer.exchange, group[g]);
        }
        assert_true(exchange_run(&rig.reducer.exchange, rig.device_grad, 100, &rig.sum));
        if (rig.sum.delivered) correction_mask(&here.c, rig.sum.delivered, NULL);
        here.c.velocity.ops->read(&here.c.velocity, 0, SIZE, here.u);
        rig_residual();
        if (rig.sum.dense) device_download(rig.u, rig.sum.dense, SIZE);
        hash = hash64(hash64(hash ^ hash_of_sum(), here.u, sizeof(float) * SIZE), rig.residual, sizeof(float) * SIZE);
    }
    close_row();
    return hash;
}

static void parts_while_the_exchange_is_under_way(struct comm *c) {
    for (size_t row = 0; exchanges[row]; row++)
        assert_true(hash_of_groups(c, exchanges[row], true) == hash_of_groups(c, exchanges[row], false));
}

/* -- clipping ------------------------------------------------------------------------------------------------------ */

/* Ranks that keep the local limit for a sum of P: whatever their gradients are, the sum of P such keeps sqrt(P) times
 * that limit, and sums of independent ones the limit itself, here within a tenth. A rank below its limit is as it was.
 */
static void local_clipping(struct comm *c) {
    enum { N = 1000 };
    double limit = 3, local = clip_local_limit(limit, c->size), square = 0;
    for (int step = 0; step < 4; step++) {
        rig_open(c, exchange_named("topka"), exact(), N, N, GTOPK_CONSERVE);
        make_gradient(REAL, c->rank, c->size, step, N, rig.grad);
        if (step == 3 && c->rank == 0)
            for (size_t i = 0; i < N; i++) rig.grad[i] *= 1e-3f;
        memcpy(here.before, rig.grad, sizeof here.before);
        device_fill(rig.device_grad, rig.grad, N);
        double norm = clip_gradient(&rig.reducer.store, rig.device_grad, N, local);
        device_download(rig.grad, rig.device_grad, N);
        if (norm < local) assert_memory_equal(rig.grad, here.before, N * sizeof(float));
        assert_true((norm < local) == (step == 3 && c->rank == 0));
        assert_true(gradient_norm(&rig.reducer.store, rig.device_grad, N) <= local * (1 + ldexp(1, -22)));
        rig_step(N);
        square = 0;
        for (size_t i = 0; i < N; i++) square += (double)rig.u[i] * (double)rig.u[i];
        assert_true(sqrt(square) <= limit * sqrt(c->size) * (1 + 1e-6));
        if (step < 3) assert_true(fabs(sqrt(square) - limit) <= 0.1 * limit);
        rig_close();
    }
}

int main(int argc, char **argv) {
    const struct mpi_case cases[] = {
        {"density_1_is_momentum_sgd", density_1_is_momentum_sgd},
        {"the_total_is_that_of_momentum_sgd", the_total_is_that_of_momentum_sgd},
        {"momentum_behind_the_exchange_is_another", momentum_behind_the_exchange_is_another},
        {"which_rows_can_be_masked", which_rows_can_be_masked},
        {"masking_conserves", masking_conserves},
        {"masking_everything_leaves_no_momentum", masking_everything_leaves_no_momentum},
        {"parts_while_the_exchange_is_under_way", parts_while_the_exchange_is_under_way},
        {"local_clipping", local_clipping},
    };
    return rig_test_main(argc, argv, "comm_correction", cases, sizeof cases / sizeof cases[0]);
}
