/* comm_coded_sum.c: dense sums in fewer bits (comm/parts/coded_sum.h): dense and torus2d in bf16 and fp16, qsgd,
 * onebit. Against serial references that share no code with them; what is rounded off is kept, or dropped where that
 * was asked for; half the bytes are half the bytes. */
/* ranks: 1 2 3 4 5 7 8 */
/* faults: 3 */
/* devices: cuda ranks 1 3 4 */
#include "comm/parts/coded_sum.h"
#include "tests/lib/exchange_rig.h"

enum { STEPS = 4, P_MAX = 8, BUCKET = 512 };

static const size_t lengths[] = {1, 2, 3, 7, 31, 32, 33, 513, 1009};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

static const struct wire_ops *wire_named(const char *name) {
    for (size_t w = 0; wires[w]; w++)
        if (strcmp(wires[w]->name, name) == 0) return wires[w];
    fail_msg("no wire format \"%s\"", name);
    return NULL;
}

static void open_row(struct comm *c, const char *algo, const char *wire, size_t n, const char *options) {
    struct exchange_setup extra = {.wire = wire_named(wire), .options = rig_options(options, GTOPK_CONSERVE)};
    rig_open_with(c, exchange_named(algo), exact(), n, 1, &extra);
}

/* -- what travels in the place of a value ----------------------------------------------------------------------- */
/* To the nearest number with `bits` significant bits that is a multiple of `least`, ties to even, up to `most`. */
static float nearest(float x, int bits, double least, double most) {
    int exponent;
    if (x == 0) return x;
    (void)frexp((double)x, &exponent);
    double unit = fmax(ldexp(1, exponent - bits), least), rounded = unit * nearbyint((double)x / unit);
    return (float)fmax(-most, fmin(most, rounded));
}
static float bf16(float x) {
    return nearest(x, 8, 0x1p-133, 0x1.fep127);
}
static float fp16(float x) {
    return nearest(x, 11, 0x1p-24, 65504);
}

/* -- dense, of which rank p adds up entries [cut(p), cut(p + 1)), in pairs ----------------------------------------- */
static float acc[P_MAX][RIG_N], want[RIG_N];

static int owner_of(size_t i, size_t n, int P) {
    size_t pairs = (n + 1) / 2;
    for (int p = 0; p < P; p++)
        if (i / 2 < pairs * (size_t)(p + 1) / (size_t)P) return p;
    return P - 1;
}

static void reference_step(size_t n, int P, float (*half)(float), bool keeps) {
    for (size_t i = 0; i < n; i++) {
        int owner = owner_of(i, n, P);
        float sum = 0;
        for (int r = 0; r < P; r++) {
            float sent = r == owner ? acc[r][i] : half(acc[r][i]);
            sum = r == 0 ? sent : sum + sent;
            acc[r][i] = keeps ? acc[r][i] - sent : 0;
        }
        want[i] = half(sum);
        if (keeps) acc[owner][i] = sum - want[i];
    }
}

/* Three times the bits that are kept, from 2^-30 to 2^18. */
static void awkward_gradient(int rank, int step, size_t n, float *grad) {
    struct rng r = rng_open(77, RNG_TEST, (uint64_t)(rank * 1000 + step));
    for (size_t i = 0; i < n; i++) {
        double x = rng_normal(&r);
        grad[i] = i % 13 == 0 ? 0 : (float)ldexp(x, (int)(i * 7 + (size_t)rank) % 49 - 30);
    }
}

static void dense_case(struct comm *c, const char *wire, float (*half)(float), size_t n, bool keeps) {
    float grad[RIG_N];
    open_row(c, "dense", wire, n, keeps ? "" : "feedback=off");
    memset(acc, 0, sizeof acc);
    for (int step = 0; step < STEPS; step++) {
        for (int r = 0; r < c->size; r++) {
            awkward_gradient(r, step, n, grad);
            for (size_t i = 0; i < n; i++) acc[r][i] += grad[i];
        }
        reference_step(n, c->size, half, keeps);
        awkward_gradient(c->rank, step, n, rig.grad);
        rig_step(1);
        for (size_t i = 0; i < n; i++) {
            assert_true(rig.u[i] == want[i]);
            assert_true(rig.residual[i] == (keeps ? acc[c->rank][i] : 0));
        }
        assert_true(rig.sum.global_nnz == n && rig.sum.local_nnz == n && rig.sum.dense);
    }
    rig_close();
}

static void dense_in_two_bytes(struct comm *c) {
    for (int l = 0; l < LENGTHS; l++)
        for (int keeps = 0; keeps < 2; keeps++) {
            dense_case(c, "bf16", bf16, lengths[l], keeps);
            dense_case(c, "fp16", fp16, lengths[l], keeps);
        }
}

/* -- all of them ------------------------------------------------------------------------------------------------- */
static const struct way {
    const char *algo, *wire;
    double error; /* most that a value is off, as part of the largest magnitude among what was added */
} ways[] = {{"dense", "bf16", 0x1p-8},    {"dense", "fp16", 0x1p-11},   {"torus2d", "bf16", 0x1p-8},
            {"torus2d", "fp16", 0x1p-11}, {"qsgd", "coo32", 1 / 127.0}, {"qsgd-4", "coo32", 1 / 7.0},
            {"onebit", "coo32", 1}};
enum { WAYS = sizeof ways / sizeof *ways };

static void nodes_of(struct comm *c, int ranks) {
    struct err e = {0};
    if (!comm_set_ranks_per_node(c, ranks, &e)) fail_msg("%s", e.text);
}

/* Over all steps, what was put in is in the sums or in the residuals; each sum is as near as its bits allow. */
static void nothing_is_lost(struct comm *c, const struct way *way, size_t n) {
    static double summed[RIG_N], exactly[RIG_N];
    float given[RIG_N] = {0};
    memset(summed, 0, sizeof summed);
    open_row(c, way->algo, way->wire, n, "");
    for (int step = 0; step < STEPS; step++) {
        double most = 0;
        make_gradient(REAL, c->rank, c->size, step, n, rig.grad);
        for (size_t i = 0; i < n; i++) {
            given[i] += rig.grad[i];
            exactly[i] = (double)rig.residual[i] * (step > 0) + (double)rig.grad[i];
            most = fmax(most, fabs(exactly[i]));
        }
        struct comm_counters before = c->counters[TRAFFIC_EXCHANGE];
        rig_step(1);
        within_bound(before, rig.reducer.exchange.ops, 1);
        all_ranks_hold_the_same(hash_of_sum());
        comm_allreduce_f64(c, exactly, n, COMM_SUM);
        comm_allreduce_f64(c, &most, 1, COMM_SUM); /* of a sum's magnitude, too */
        for (size_t i = 0; i < n; i++) {
            summed[i] += (double)rig.u[i];
            if (!(fabs(exactly[i] - (double)rig.u[i]) <= 3 * way->error * most))
                fail_msg("%s %s: %g in place of %g", way->algo, way->wire, (double)rig.u[i], exactly[i]);
        }
    }
    nearly_conserves(given, summed, 1e-5);
    rig_close();
}

static void what_is_rounded_off_is_kept(struct comm *c) {
    for (int ranks = 1; ranks <= c->size; ranks++) {
        if (c->size % ranks != 0) continue;
        nodes_of(c, ranks);
        for (int w = 0; w < WAYS; w++)
            for (int l = 0; l < LENGTHS; l++)
                if (ranks == 1 || strcmp(ways[w].algo, "torus2d") == 0) nothing_is_lost(c, &ways[w], lengths[l]);
    }
    nodes_of(c, 1);
}

static void off_drops_it(struct comm *c) {
    for (int w = 0; w < WAYS; w++) {
        const struct option_values off = rig_options("feedback=off", GTOPK_CONSERVE);
        assert_true(exchange_conserves(exchange_named(ways[w].algo), &(struct option_values){0}));
        assert_false(exchange_conserves(exchange_named(ways[w].algo), &off));
        open_row(c, ways[w].algo, ways[w].wire, 100, "feedback=off");
        assert_false(rig.reducer.keeps);
        make_gradient(REAL, c->rank, c->size, 1, 100, rig.grad);
        rig_step(1);
        uint64_t hash = hash_of_sum();
        make_gradient(REAL, c->rank, c->size, 1, 100, rig.grad);
        rig_step(1);
        /* but for random rounding the same again: nothing is left of the first */
        if (strncmp(ways[w].algo, "qsgd", 4) != 0) assert_true(hash == hash_of_sum());
        rig_close();
    }
}

static uint64_t bytes_of(struct comm *c, const char *algo, const char *wire, size_t n) {
    open_row(c, algo, wire, n, "");
    make_gradient(REAL, c->rank, c->size, 1, n, rig.grad);
    struct comm_counters before = c->counters[TRAFFIC_EXCHANGE];
    rig_step(1);
    uint64_t bytes = c->counters[TRAFFIC_EXCHANGE].bytes_sent - before.bytes_sent;
    rig_close();
    comm_allreduce_u64(c, &bytes, 1, COMM_SUM);
    return bytes;
}

static void half_the_bytes(struct comm *c) {
    const size_t n = 2 * (size_t)c->size * 60; /* parts of whole words */
    for (int w = 0; w < 4; w++)
        for (int ranks = 1; ranks <= c->size; ranks++) {
            if (c->size % ranks != 0) continue;
            nodes_of(c, ranks);
            assert_true(2 * bytes_of(c, ways[w].algo, ways[w].wire, n) == bytes_of(c, ways[w].algo, "coo32", n));
        }
    nodes_of(c, 1);
}

/* What the cost line of such a step says: half the words, and the start-ups of a direct exchange. */
static void what_it_costs(struct comm *c) {
    struct cost f32, half;
    const int P = c->size;
    exchange_named("dense")->cost(&(struct cost_case){.n = 840, .k = 1, .P = P, .ranks_per_node = 1}, &f32);
    cost_in_format(&f32, wire_named("bf16"), &half);
    assert_true(half.words == f32.words / 2);
    assert_true(half.alphas == P - 1 + ceil(log2(P)));
    cost_in_format(&f32, wire_named("packed"), &half); /* a format of sparse vectors */
    assert_true(half.words == f32.words && half.alphas == f32.alphas);
}

/* A coder that changes nothing and counts. */
struct counted {
    size_t *values;
};
static size_t plain_bytes(const void *state, size_t from, size_t count) {
    (void)state, (void)from;
    return count * sizeof(float);
}
static void plain_encode(void *state, size_t from, size_t count, const float *val, float *error, void *message) {
    const struct counted *t = state;
    (void)from;
    *t->values += count;
    memcpy(message, val, count * sizeof *val);
    for (size_t i = 0; error && i < count; i++) error[i] = 0;
}
static void plain_decode(const void *state, size_t from, size_t count, const void *message, bool add, float *val) {
    const struct counted *t = state;
    const float *read = message;
    (void)from;
    *t->values += count;
    for (size_t i = 0; i < count; i++) val[i] = (add ? val[i] : 0) + read[i];
}

/* cost->coded is what ranks code and decode in the mean; and a coder takes some time. */
static void what_is_coded_is_counted(struct comm *c) {
    static const char *const coders[] = {"qsgd", "qsgd-4", "onebit"};
    const int P = c->size;
    for (int l = 0; l < LENGTHS; l++) {
        static float x[RIG_N], u[RIG_N];
        size_t n = lengths[l], values = 0;
        struct counted counted = {&values};
        const struct coder plain = {&counted, 1, plain_bytes, plain_encode, plain_decode};
        struct coded_sum s;
        open_row(c, "dense", "coo32", n, "");
        coded_sum_open(&s, &rig.reducer.exchange, c, n, NULL, &plain);
        for (size_t i = 0; i < n; i++) x[i] = (float)(i + (size_t)c->rank);
        coded_sum_run(&s, x, u, true);
        for (size_t i = 0; i < n; i++) assert_true(u[i] == (float)((size_t)P * i + (size_t)(P * (P - 1) / 2)));
        double all = (double)values;
        comm_allreduce_f64(c, &all, 1, COMM_SUM);
        assert_true(fabs(all - P * coded_sum_values(n, P)) < 1e-6 * all);
        coded_sum_close(&s);
        rig_close();
    }
    for (int i = 0; i < 3; i++) {
        const struct exchange_ops *row = exchange_named(coders[i]);
        struct cost cost;
        row->cost(&(struct cost_case){.n = 840, .k = 1, .P = P, .ranks_per_node = 1}, &cost);
        assert_true(cost.coded == coded_sum_values(840, P));
        assert_true(row->code_seconds() > 0);
        const struct local_cost local = {.code = 1e-9};
        assert_true(fabs(cost_local(&cost, NULL, 840, &local) - cost.coded * 1e-9) < 1e-12);
    }
}

/* -- qsgd -------------------------------------------------------------------------------------------------------- */
/* Rounded at random, but right in the mean, and to one of the two nearest levels of its bucket. One rank, whose sum is
 * rounded once. */
static void qsgd_is_right_in_the_mean(struct comm *c) {
    enum { N = 1009, DRAWS = 400 };
    static double mean[N];
    float grad[N];
    if (c->size != 1) return;
    for (int four = 0; four < 2; four++) {
        const double levels = four ? 7 : 127;
        size_t between = 0;
        open_row(c, four ? "qsgd-4" : "qsgd", "coo32", N, "feedback=off");
        make_gradient(REAL, 0, 1, 3, N, grad);
        memset(mean, 0, sizeof mean);
        for (int draw = 0; draw < DRAWS; draw++) {
            memcpy(rig.grad, grad, sizeof grad);
            rig_step(1);
            for (size_t i = 0; i < N; i++) mean[i] += (double)rig.u[i] / DRAWS;
        }
        for (size_t i = 0; i < N; i++) {
            double most = 0;
            for (size_t j = i / BUCKET * BUCKET; j < N && j < (i / BUCKET + 1) * BUCKET; j++)
                most = fmax(most, fabs((double)grad[j]));
            double step = most / levels;
            assert_true(fabs((double)rig.u[i] - (double)grad[i]) <= step * 1.0001);
            between += fabs((double)rig.u[i] - (double)grad[i]) > step / 2; /* the farther of the two */
            assert_true(fabs(mean[i] - (double)grad[i]) <= 5 * 0.5 * step / sqrt(DRAWS));
        }
        assert_true(between > N / 20);
        rig_close();
    }
}

/* A step's numbers differ from the last one's, a rank's from another's, and are those of the seed. */
static uint64_t hash_of_qsgd(struct comm *c, uint64_t seed, int steps) {
    uint64_t hash = 0;
    struct reducer_setup setup = {.ops = exchange_named("qsgd"), .seed = seed};
    setup.exchange =
        (struct exchange_setup){.n = 1009, .k_max = 1, .options = rig_options("feedback=off", GTOPK_CONSERVE)};
    rig_open_setup(c, setup);
    for (int step = 0; step < steps; step++) {
        make_gradient(REAL, c->rank, c->size, 3, 1009, rig.grad);
        rig_step(1);
        hash = hash_of_sum();
    }
    rig_close();
    return hash;
}

static void qsgd_is_seeded(struct comm *c) {
    uint64_t first = hash_of_qsgd(c, 1, 1);
    assert_true(first == hash_of_qsgd(c, 1, 1));
    assert_true(first != hash_of_qsgd(c, 2, 1));
    assert_true(first != hash_of_qsgd(c, 1, 2));
}

/* -- onebit, with slices ------------------------------------------------------------------------------------------- */
static size_t part_from(size_t n, int P, int p) {
    size_t words = (n + 31) / 32, from = 32 * (words * (size_t)p / (size_t)P);
    return from < n ? from : n;
}

/* v of part p: each piece of a slice in it becomes sign and mean magnitude. */
static void one_bit(const float *v, size_t from, size_t to, const size_t *end, float *read) {
    for (size_t s = 0, at = from; at < to; s++) {
        size_t until = end[s] < to ? end[s] : to;
        double sum = 0;
        if (until <= at) continue;
        for (size_t i = at; i < until; i++) sum += fabs((double)v[i]);
        for (size_t i = at; i < until; i++) read[i] = (float)(sum / (double)(until - at)) * (v[i] < 0 ? -1 : 1);
        at = until;
    }
}

static void onebit_reference(size_t n, int P, const size_t *end) {
    static float read[P_MAX][RIG_N], sum[RIG_N];
    for (int p = 0; p < P; p++) {
        size_t from = part_from(n, P, p), to = part_from(n, P, p + 1);
        for (int r = 0; r < P; r++) one_bit(acc[r], from, to, end, read[r]);
        for (size_t i = from; i < to; i++) {
            sum[i] = 0;
            for (int r = 0; r < P; r++) sum[i] += r == p ? acc[r][i] : read[r][i];
        }
        one_bit(sum, from, to, end, want);
        for (size_t i = from; i < to; i++)
            for (int r = 0; r < P; r++) acc[r][i] = r == p ? sum[i] - want[i] : acc[r][i] - read[r][i];
    }
}

static void onebit_by_slices(struct comm *c) {
    enum { N = 1009 };
    static const struct exchange_slice slices[] = {{0, 10, 30}, {300, 1, 7}, {307, 1, 1}, {308, 100, 7}, {1008, 1, 1}};
    const size_t end[] = {300, 307, 308, 1008, N};
    float grad[N];
    struct exchange_setup extra = {.slice = slices, .slices = 5, .options = rig_options("", GTOPK_CONSERVE)};
    rig_open_with(c, exchange_named("onebit"), exact(), N, 1, &extra);
    memset(acc, 0, sizeof acc);
    for (int step = 0; step < STEPS; step++) {
        for (int r = 0; r < c->size; r++) {
            make_gradient(REAL, r, c->size, step, N, grad);
            for (size_t i = 0; i < N; i++) acc[r][i] += grad[i];
        }
        onebit_reference(N, c->size, end);
        make_gradient(REAL, c->rank, c->size, step, N, rig.grad);
        struct comm_counters before = c->counters[TRAFFIC_EXCHANGE];
        rig_step(1);
        within_bound(before, rig.reducer.exchange.ops, 1);
        for (size_t i = 0; i < N; i++) {
            assert_true(fabsf(rig.u[i] - want[i]) <= 1e-4f);
            assert_true(fabsf(rig.residual[i] - acc[c->rank][i]) <= 1e-4f);
        }
    }
    rig_close();
}

/* -- what is not a number ------------------------------------------------------------------------------------------ */
static void not_a_number(struct comm *c) {
    for (int w = 0; w < WAYS; w++) {
        if (c->size > 1) continue; /* the others would wait */
        open_row(c, ways[w].algo, ways[w].wire, 100, "");
        make_gradient(REAL, c->rank, c->size, 1, 100, rig.grad);
        rig.grad[42] = NAN;
        rig.grad[77] = INFINITY;
        assert_false(rig_run(1));
        assert_int_equal(rig.sum.bad, 42);
        rig_close();
    }
}

int main(int argc, char **argv) {
    const struct mpi_case cases[] = {
        {"dense_in_two_bytes", dense_in_two_bytes},
        {"what_is_rounded_off_is_kept", what_is_rounded_off_is_kept},
        {"off_drops_it", off_drops_it},
        {"half_the_bytes", half_the_bytes},
        {"what_it_costs", what_it_costs},
        {"what_is_coded_is_counted", what_is_coded_is_counted},
        {"qsgd_is_right_in_the_mean", qsgd_is_right_in_the_mean},
        {"qsgd_is_seeded", qsgd_is_seeded},
        {"onebit_by_slices", onebit_by_slices},
        {"not_a_number", not_a_number},
    };
    return rig_test_main(argc, argv, "comm_coded_sum", cases, sizeof cases / sizeof cases[0]);
}
