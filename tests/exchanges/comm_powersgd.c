/* comm_powersgd.c: powersgd against PyTorch's powerSGD_hook (golden values), against a naive serial reference in
 * doubles at every P, and what it claims: conservation, matrices of low rank whole, directions that come back, bounds.
 */
/* ranks: 1 2 3 4 5 7 8 */
/* faults: 3 */
/* devices: cuda ranks 1 3 4 */
#include "tests/lib/exchange_rig.h"

#include "comm/parts/low_rank.h"
#include "tests/golden/powersgd.h"

enum { STEPS = 5, P_MAX = 8, SLICES_MAX = 8, R_MAX = 8 };

/* -- a naive reference --------------------------------------------------------------------------------------------- */
/* The slices that are matrices; cols 0: the rest. */
struct shape_of {
    size_t from, count, rows, cols;
};
struct reference {
    struct shape_of part[SLICES_MAX];
    size_t parts, n, r;
    int P;
    uint64_t seed, step;
    double acc[P_MAX][RIG_N], u[RIG_N], right[SLICES_MAX][R_MAX][RIG_N];
};
static struct reference ref;

static void reference_open(const struct exchange_slice *slice, size_t slices, size_t n, size_t r, int P) {
    memset(&ref, 0, sizeof ref);
    ref.n = n, ref.r = r, ref.P = P, ref.seed = GOLDEN_SEED;
    size_t side = 1;
    while (side * side < n) side++;
    const struct exchange_slice whole = {0, (n + side - 1) / side, side};
    ref.parts = slices > 0 ? slices : 1;
    for (size_t i = 0; i < ref.parts; i++) {
        struct exchange_slice s = slices > 0 ? slice[i] : whole;
        bool outline = 2 * r * (s.rows + s.cols) < s.rows * s.cols;
        size_t count = slices > 0 ? s.rows * s.cols : n;
        ref.part[i] = (struct shape_of){s.from, count, s.rows, outline ? s.cols : 0};
    }
}

static double length_of(const double *v, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += v[i] * v[i];
    return sqrt(sum);
}

/* v without what it has of the columns before it, of length 1; false where nothing is left. */
static bool orthonormal(double column[R_MAX][RIG_N], size_t c, size_t n) {
    double before = length_of(column[c], n);
    for (int again = 0; again < 3; again++)
        for (size_t b = 0; b < c; b++) {
            double part = 0;
            for (size_t i = 0; i < n; i++) part += column[b][i] * column[c][i];
            for (size_t i = 0; i < n; i++) column[c][i] -= part * column[b][i];
        }
    double after = length_of(column[c], n);
    for (size_t i = 0; i < n; i++) column[c][i] = after > 1e-6 * before ? column[c][i] / after : 0;
    return after > 1e-6 * before;
}

static double at(const struct shape_of *s, const double *v, size_t i, size_t j) {
    return i * s->cols + j < s->count ? v[s->from + i * s->cols + j] : 0;
}

static void reference_matrix(const struct shape_of *s, double right[R_MAX][RIG_N]) {
    static double left[R_MAX][RIG_N], sum[RIG_N];
    for (size_t c = 0; c < ref.r; c++)
        if (!orthonormal(right, c, s->cols)) {
            struct rng rng = rng_open(ref.seed, RNG_DIRECTIONS, ref.step << 32 | (s->from + c));
            for (size_t j = 0; j < s->cols; j++) right[c][j] = (float)(2 * rng_uniform(&rng) - 1);
            orthonormal(right, c, s->cols);
        }
    memset(sum, 0, sizeof sum);
    for (size_t i = s->from; i < s->from + s->count; i++)
        for (int p = 0; p < ref.P; p++) sum[i] += ref.acc[p][i];
    for (size_t c = 0; c < ref.r; c++)
        for (size_t i = 0; i < s->rows; i++) {
            left[c][i] = 0;
            for (size_t j = 0; j < s->cols; j++) left[c][i] += at(s, sum, i, j) * right[c][j];
        }
    for (size_t c = 0; c < ref.r; c++) {
        orthonormal(left, c, s->rows);
        for (size_t j = 0; j < s->cols; j++) {
            right[c][j] = 0;
            for (size_t i = 0; i < s->rows; i++) right[c][j] += at(s, sum, i, j) * left[c][i];
        }
    }
    for (size_t i = 0; i < s->count; i++) {
        ref.u[s->from + i] = 0;
        for (size_t c = 0; c < ref.r; c++) ref.u[s->from + i] += left[c][i / s->cols] * right[c][i % s->cols];
        for (int p = 0; p < ref.P; p++) ref.acc[p][s->from + i] -= ref.u[s->from + i] / ref.P;
    }
}

/* acc has the gradients; afterwards u, and in acc what stays. */
static void reference_step(void) {
    for (size_t part = 0; part < ref.parts; part++) {
        const struct shape_of *s = &ref.part[part];
        if (s->cols > 0) reference_matrix(s, ref.right[part]);
        for (size_t i = s->from; s->cols == 0 && i < s->from + s->count; i++) {
            ref.u[i] = 0;
            for (int p = 0; p < ref.P; p++) ref.u[i] += ref.acc[p][i], ref.acc[p][i] = 0;
        }
    }
    ref.step++;
}

/* -- a row of it --------------------------------------------------------------------------------------------------- */
static void open_row(struct comm *c, const struct exchange_slice *slice, size_t slices, size_t n, size_t r,
                     bool keeps) {
    char options[64];
    snprintf(options, sizeof options, "powersgd-rank=%zu,feedback=%s", r, keeps ? "on" : "off");
    struct reducer_setup setup = {.ops = exchange_named("powersgd"), .seed = GOLDEN_SEED};
    setup.exchange = (struct exchange_setup){
        .n = n, .k_max = 1, .slice = slice, .slices = slices, .options = rig_options(options, GTOPK_CONSERVE)};
    rig_open_setup(c, setup);
}

static bool near(float a, double b, double tolerance) {
    return fabs((double)a - b) <= tolerance * (1 + fabs(b));
}

/* -- PyTorch ------------------------------------------------------------------------------------------------------- */
static const struct exchange_slice *golden_slices(void) {
    static struct exchange_slice slice[GOLDEN_SLICES];
    for (size_t i = 0; i < GOLDEN_SLICES; i++)
        slice[i] = (struct exchange_slice){golden_slice[i][0], golden_slice[i][1], golden_slice[i][2]};
    return slice;
}

/* What a hook keeps of the rest adds up to zero over the ranks; here nothing stays. */
static void golden_residual(const double *error, size_t r) {
    for (size_t e = 0; e < GOLDEN_ENTRIES; e++) {
        size_t slice = 0, i = golden_entry[e];
        while (slice + 1 < GOLDEN_SLICES && golden_slice[slice + 1][0] <= i) slice++;
        size_t rows = golden_slice[slice][1], cols = golden_slice[slice][2];
        double want = 2 * r * (rows + cols) < rows * cols ? error[e] : 0;
        if (!near(rig.residual[i], want, 1e-5))
            fail_msg("rank %zu: %.9g stays at %zu, and in the hook %.9g", r, (double)rig.residual[i], i, want);
    }
}

/* This rank's gradient, as tests/golden/powersgd.py makes it. */
static void golden_gradient(const struct comm *c, int step) {
    struct rng rng = rng_open(GOLDEN_SEED, RNG_TEST, (uint64_t)(1000 * c->rank + step));
    for (size_t s = 0; s < GOLDEN_SLICES; s++)
        for (int e = 0; e < (int)(golden_slice[s][1] * golden_slice[s][2]); e++) {
            int i = e / (int)golden_slice[s][2], j = e % (int)golden_slice[s][2];
            double stays = 2 * (i % 3 - 1) * (j % 4 - 1.5) + (i % 2 - 0.5) * (j % 5 - 2);
            rig.grad[golden_slice[s][0] + (size_t)e] = (float)(rng_normal(&rng) + stays);
        }
}

static void golden_run(struct comm *c, size_t world, size_t rank) {
    const size_t r = (size_t)golden_rank[rank];
    open_row(c, golden_slices(), GOLDEN_SLICES, GOLDEN_N, r, true);
    for (int step = 0; step < GOLDEN_STEPS; step++) {
        golden_gradient(c, step);
        rig_step(1);
        for (size_t e = 0; e < GOLDEN_ENTRIES; e++) {
            double mean = (double)rig.u[golden_entry[e]] / c->size;
            if (!near((float)mean, golden_mean[world][rank][step][e], 1e-5))
                fail_msg("rank %zu, step %d: %.9g at %zu, and of the hook %.9g", r, step, mean, golden_entry[e],
                         golden_mean[world][rank][step][e]);
        }
    }
    if (c->rank == 0) golden_residual(golden_error[world][rank], r);
    rig_close();
}

static void as_the_published_hook(struct comm *c) {
    assert_true(golden_range < 1e-5);
    for (size_t world = 0; world < GOLDEN_WORLDS; world++)
        for (size_t rank = 0; golden_world[world] == c->size && rank < GOLDEN_RANKS; rank++) golden_run(c, world, rank);
}

/* -- the reference ------------------------------------------------------------------------------------------------- */
static const struct exchange_slice tall[] = {{0, 60, 12}, {720, 1, 9}, {729, 9, 30}, {999, 3, 3}};
static const struct exchange_slice wide[] = {{0, 1, 5}, {5, 12, 80}, {965, 1, 1}, {966, 5, 7}};
static const struct exchange_slice vectors[] = {{0, 1, 500}, {500, 500, 1}};
static const struct way {
    const struct exchange_slice *slice;
    size_t slices, n, r;
} ways[] = {{tall, 4, 1008, 1}, {tall, 4, 1008, 2},    {tall, 4, 1008, 4}, {wide, 4, 1001, 2},
            {wide, 4, 1001, 3}, {vectors, 2, 1000, 2}, {NULL, 0, 1009, 2}, {NULL, 0, 1024, 4},
            {NULL, 0, 993, 7},  {NULL, 0, 1, 1},       {NULL, 0, 30, 1}};
enum { WAYS = sizeof ways / sizeof *ways };

static void give_gradients(struct comm *c, enum kind kind, int step) {
    float grad[RIG_N];
    for (int p = 0; p < c->size; p++) {
        make_gradient(kind, p, c->size, step, ref.n, grad);
        for (size_t i = 0; i < ref.n; i++) ref.acc[p][i] += (double)grad[i];
    }
    make_gradient(kind, c->rank, c->size, step, ref.n, rig.grad);
}

static void compare(struct comm *c, const struct way *w, bool keeps) {
    reference_open(w->slice, w->slices, w->n, w->r, c->size);
    open_row(c, w->slice, w->slices, w->n, w->r, keeps);
    for (int step = 0; step < STEPS; step++) {
        give_gradients(c, REAL, step);
        reference_step();
        struct comm_counters before = c->counters[TRAFFIC_EXCHANGE];
        rig_step(1);
        within_bound(before, rig.reducer.exchange.ops, 1);
        all_ranks_hold_the_same(hash_of_sum());
        for (size_t i = 0; i < w->n; i++) {
            if (!near(rig.u[i], ref.u[i], 2e-5))
                fail_msg("n = %zu, r = %zu, step %d: %g in place of %g at %zu", w->n, w->r, step, (double)rig.u[i],
                         ref.u[i], i);
            assert_true(near(rig.residual[i], keeps ? ref.acc[c->rank][i] : 0, 2e-5));
        }
        if (!keeps) memset(ref.acc, 0, sizeof ref.acc);
    }
    rig_close();
}

static void as_the_reference(struct comm *c) {
    for (int w = 0; w < WAYS; w++) {
        compare(c, &ways[w], true);
        compare(c, &ways[w], false);
    }
}

/* -- what it claims ------------------------------------------------------------------------------------------------ */
/* The sum over ranks of what was put in is the sums and the residuals; of what is in no matrix it is u, to the bit. */
static void nothing_is_lost(struct comm *c) {
    for (int w = 0; w < WAYS; w++) {
        static double summed[RIG_N];
        float given[RIG_N] = {0};
        memset(summed, 0, sizeof summed);
        reference_open(ways[w].slice, ways[w].slices, ways[w].n, ways[w].r, c->size);
        open_row(c, ways[w].slice, ways[w].slices, ways[w].n, ways[w].r, true);
        for (int step = 0; step < STEPS; step++) {
            give_gradients(c, WHOLE, step);
            for (size_t i = 0; i < ref.n; i++) given[i] += rig.grad[i];
            rig_step(1);
            for (size_t i = 0; i < ref.n; i++) summed[i] += (double)rig.u[i];
        }
        nearly_conserves(given, summed, 1e-4);
        for (size_t part = 0; part < ref.parts; part++)
            for (size_t i = 0; ref.part[part].cols == 0 && i < ref.part[part].count; i++) {
                double want = 0;
                for (int p = 0; p < c->size; p++) want += ref.acc[p][ref.part[part].from + i];
                assert_true(summed[ref.part[part].from + i] == want && rig.residual[ref.part[part].from + i] == 0);
            }
        rig_close();
    }
}

/* rank-th of the ranks' gradients, which add up to a matrix of rank 1 that changes from step to step. */
static void of_rank_one(const struct comm *c, size_t rows, size_t cols, int step) {
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++)
            rig.grad[i * cols + j] = (float)((1 + c->rank) * (int)((i * (size_t)(step + 3)) % 7) * (3 - (int)(j % 5)));
}

/* With as many directions as the sum has, or more, u is all of it; a rank keeps what differs from the mean. */
static void what_is_of_low_rank_comes_whole(struct comm *c) {
    enum { ROWS = 20, COLS = 30 };
    static const struct exchange_slice slice = {0, ROWS, COLS};
    for (size_t r = 1; r <= 4; r++) {
        open_row(c, &slice, 1, ROWS * COLS, r, true);
        for (int step = 0; step < 4; step++) {
            if (step == 2) memset(rig.grad, 0, sizeof rig.grad); /* all directions vanish */
            if (step != 2) of_rank_one(c, ROWS, COLS, step);
            float before[ROWS * COLS];
            memcpy(before, rig.grad, sizeof before);
            rig_step(1);
            int all = c->size * (c->size + 1) / 2;
            for (size_t i = 0; i < ROWS * COLS; i++) {
                double sum = (double)before[i] / (1 + c->rank) * all;
                if (!near(rig.u[i], sum, 1e-4 * c->size))
                    fail_msg("r = %zu, step %d: %g in place of %g", r, step, (double)rig.u[i], sum);
            }
        }
        rig_close();
    }
}

/* Subspace iteration: of one matrix, without feedback, the largest directions come out. */
static void directions_are_those_of_the_largest(struct comm *c) {
    enum { SIDE = 20 };
    static const struct exchange_slice slice = {0, SIDE, SIDE};
    open_row(c, &slice, 1, SIDE * SIDE, 2, false);
    for (int step = 0; step < 40; step++) {
        memset(rig.grad, 0, sizeof rig.grad);
        for (size_t i = 0; i < SIDE; i++) rig.grad[i * SIDE + (i + 1) % SIDE] = i == 3 ? 9 : i == 11 ? 7 : 2;
        rig_step(1);
    }
    for (size_t i = 0; i < SIDE; i++)
        for (size_t j = 0; j < SIDE; j++) {
            double want = j != (i + 1) % SIDE ? 0 : i == 3 ? 9 : i == 11 ? 7 : 0;
            assert_true(near(rig.u[i * SIDE + j], want * c->size, 1e-4 * c->size));
        }
    rig_close();
}

/* What a run in its middle holds, put into a new one: the same bits from there on. */
static uint64_t hash_of_half(struct comm *c, bool again) {
    static unsigned char piece[2][4096];
    static float residual[RIG_N];
    uint64_t hash = 0;
    void *memory;
    size_t bytes;
    open_row(c, tall, 4, 1008, 2, true);
    for (int step = 0; step < 6; step++) {
        if (step == 3 && again)
            for (size_t i = 0; exchange_saved(&rig.reducer.exchange, i, &memory, &bytes); i++)
                memcpy(memory, piece[i], bytes);
        if (step == 3 && again) rig.reducer.store.ops->write(&rig.reducer.store, 0, 1008, residual);
        make_gradient(REAL, c->rank, c->size, again && step < 3 ? 100 + step : step, 1008, rig.grad);
        rig_step(1);
        if (step >= 3) hash = hash64(hash, (uint64_t[]){hash_of_sum()}, sizeof hash);
        if (step != 2 || again) continue;
        for (size_t i = 0; exchange_saved(&rig.reducer.exchange, i, &memory, &bytes); i++) {
            assert_true(i < 2 && bytes <= sizeof piece[i]);
            memcpy(piece[i], memory, bytes);
        }
        memcpy(residual, rig.residual, sizeof residual);
    }
    rig_close();
    return hash;
}

static void goes_on_where_it_was(struct comm *c) {
    uint64_t whole = hash_of_half(c, false);
    assert_true(whole == hash_of_half(c, true));
}

/* -- costs --------------------------------------------------------------------------------------------------------- */
/* Of the slices, r sum(rows + cols) and what goes dense: by the counters, the bound and the cost line. */
static void what_it_costs(struct comm *c) {
    const double part = 2.0 * (c->size - 1) / c->size;
    for (size_t r = 1; r <= 2; r++) {
        char options[32];
        snprintf(options, sizeof options, "powersgd-rank=%zu", r);
        const double entries = (double)r * (60 + 12 + 9 + 30) + 9 + 9;
        struct cost_case step = {.n = 1008, .P = c->size, .slice = tall, .slices = 4};
        struct cost cost;
        open_row(c, tall, 4, 1008, r, true);
        make_gradient(REAL, c->rank, c->size, 1, 1008, rig.grad);
        struct comm_counters before = c->counters[TRAFFIC_EXCHANGE];
        rig_step(1);
        double sent = (double)(c->counters[TRAFFIC_EXCHANGE].bytes_sent - before.bytes_sent) / 4;
        assert_true(fabs(sent - part * entries) <= 4);
        assert_true(fabs(exchange_max_words(&rig.reducer.exchange, 1) - part * entries) <= 1e-9);
        rig_close();
        step.options = rig_options(options, GTOPK_CONSERVE);
        exchange_named("powersgd")->cost(&step, &cost);
        assert_true(fabs(cost.words - part * entries) <= 1e-9 &&
                    cost.alphas == (c->size > 1 ? 4 * ceil(log2(c->size)) : 0));
    }
}

/* -- its parts ----------------------------------------------------------------------------------------------------- */
/* Whatever their scale is, columns become orthonormal; what is a combination of others, or zero, is told. */
static void orthonormal_columns(struct comm *c) {
    enum { LENGTH = 37, COLUMNS = 4 };
    float v[COLUMNS][LENGTH];
    if (c->size > 1) return;
    for (int scale = -120; scale <= 120; scale += 40) {
        struct rng rng = rng_open(3, RNG_TEST, (uint64_t)(scale + 200));
        for (size_t i = 0; i < LENGTH; i++) {
            for (size_t k = 0; k < COLUMNS; k++) v[k][i] = (float)ldexp(rng_normal(&rng), scale);
            v[2][i] = v[0][i] - 2 * v[1][i];
        }
        for (size_t k = 0; k < COLUMNS; k++) assert_true(low_rank_orthonormal(v[0], LENGTH, k) == (k != 2));
        for (size_t a = 0; a < COLUMNS; a++)
            for (size_t b = 0; b < COLUMNS; b++) {
                double product = 0;
                for (size_t i = 0; i < LENGTH; i++) product += (double)v[a][i] * (double)v[b][i];
                assert_true(fabs(product - (a == b && a != 2)) <= 1e-6);
            }
    }
    memset(v, 0, sizeof v);
    assert_false(low_rank_orthonormal(v[0], LENGTH, 0));
    v[0][5] = INFINITY;
    assert_true(low_rank_orthonormal(v[0], LENGTH, 0) && isnan(v[0][5]));
}

static void not_a_number(struct comm *c) {
    if (c->size > 1) return; /* the others would wait */
    open_row(c, tall, 4, 1008, 2, true);
    make_gradient(REAL, 0, 1, 1, 1008, rig.grad);
    rig.grad[42] = NAN;
    rig.grad[77] = INFINITY;
    assert_false(rig_run(1));
    assert_int_equal(rig.sum.bad, 42);
    rig_close();
}

int main(int argc, char **argv) {
    const struct mpi_case cases[] = {
        {"as_the_published_hook", as_the_published_hook},
        {"as_the_reference", as_the_reference},
        {"nothing_is_lost", nothing_is_lost},
        {"what_is_of_low_rank_comes_whole", what_is_of_low_rank_comes_whole},
        {"directions_are_those_of_the_largest", directions_are_those_of_the_largest},
        {"goes_on_where_it_was", goes_on_where_it_was},
        {"what_it_costs", what_it_costs},
        {"orthonormal_columns", orthonormal_columns},
        {"not_a_number", not_a_number},
    };
    return rig_test_main(argc, argv, "comm_powersgd", cases, sizeof cases / sizeof cases[0]);
}
