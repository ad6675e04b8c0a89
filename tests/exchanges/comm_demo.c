/* comm_demo.c: decoupled momentum against a serial reference of nested loops, to the bit, and the bytes that travel;
 * the cosine transform against its formula. */
/* ranks: 1 2 3 4 5 7 8 */
/* devices: cuda ranks 1 3 */
#include "tests/lib/exchange_rig.h"

#include "comm/parts/dct.h"

enum { P_MAX = 8, STEPS = 3, LONGEST = 130 * 70 + 100 };

/* Layers as a model has them: whole chunks, sides with a rest, a convolution's, vectors. */
static const struct exchange_slice layers[] = {{0, 64, 64},  {4096, 70, 66}, {4096 + 4620, 1, 30},
                                               {8746, 3, 9}, {8773, 1, 200}, {8973, 65, 1}};
enum { LAYERS = sizeof layers / sizeof *layers, LAYERS_N = 8973 + 65 };

/* -- the reference ------------------------------------------------------------------------------------------------- */
static struct dct dct;
static struct reference {
    float m[P_MAX][LONGEST], u[LONGEST];
    double lost[P_MAX];
    size_t bytes, entries;
} ref;

/* Y = C X C^T, and back; sums in the order of their index. */
static void reference_forward(float x[64][64], int h, int w, float y[64][64]) {
    static float t[64][64];
    for (int j = 0; j < h; j++)
        for (int d = 0; d < w; d++) {
            t[j][d] = 0;
            for (int l = 0; l < w; l++) t[j][d] += x[j][l] * dct.row[w][d * w + l];
        }
    for (int b = 0; b < h; b++)
        for (int d = 0; d < w; d++) {
            y[b][d] = 0;
            for (int j = 0; j < h; j++) y[b][d] += dct.row[h][b * h + j] * t[j][d];
        }
}
static void reference_inverse(float y[64][64], int h, int w, float x[64][64]) {
    static float t[64][64];
    for (int b = 0; b < h; b++)
        for (int l = 0; l < w; l++) {
            t[b][l] = 0;
            for (int d = 0; d < w; d++) t[b][l] += y[b][d] * dct.row[w][d * w + l];
        }
    for (int j = 0; j < h; j++)
        for (int l = 0; l < w; l++) {
            x[j][l] = 0;
            for (int b = 0; b < h; b++) x[j][l] += dct.row[h][b * h + j] * t[b][l];
        }
}

/* All but the k largest become 0, of equal ones the lower stays. */
static void reference_keep(float y[64][64], int h, int w, int k) {
    static bool kept[64][64];
    memset(kept, 0, sizeof kept);
    for (int n = 0; n < k; n++) {
        int bi = 0, bj = 0;
        float most = -1;
        for (int i = 0; i < h; i++)
            for (int j = 0; j < w; j++)
                if (!kept[i][j] && fabsf(y[i][j]) > most) most = fabsf(y[i][j]), bi = i, bj = j;
        kept[bi][bj] = true;
    }
    for (int i = 0; i < h; i++)
        for (int j = 0; j < w; j++)
            if (!kept[i][j]) y[i][j] = 0;
}

/* The chunk of a matrix at (i, j): what every rank sends of it leaves its m; u. */
static void reference_chunk(const struct exchange_slice *s, int i, int j, int P, int k, bool sign) {
    static float x[64][64], y[64][64], all[64][64];
    const int h = (int)s->rows - i < 64 ? (int)s->rows - i : 64, w = (int)s->cols - j < 64 ? (int)s->cols - j : 64;
    const int kept = k < h * w ? k : h * w;
    dct_size(&dct, (size_t)h);
    dct_size(&dct, (size_t)w);
    memset(all, 0, sizeof all);
    for (int r = 0; r < P; r++) {
        float *m = ref.m[r] + s->from + (size_t)i * s->cols + (size_t)j;
        for (int a = 0; a < h; a++)
            for (int b = 0; b < w; b++) x[a][b] = m[(size_t)a * s->cols + (size_t)b];
        reference_forward(x, h, w, y);
        reference_keep(y, h, w, kept);
        reference_inverse(y, h, w, x);
        for (int a = 0; a < h; a++)
            for (int b = 0; b < w; b++) {
                m[(size_t)a * s->cols + (size_t)b] -= x[a][b];
                all[a][b] += y[a][b];
            }
    }
    reference_inverse(all, h, w, x);
    for (int a = 0; a < h; a++)
        for (int b = 0; b < w; b++)
            ref.u[s->from + (size_t)(i + a) * s->cols + (size_t)(j + b)] = !sign         ? x[a][b]
                                                                           : x[a][b] > 0 ? (float)P
                                                                           : x[a][b] < 0 ? (float)-P
                                                                                         : 0;
    ref.bytes += (size_t)(4 * kept + 2 * (kept + kept % 2));
    ref.entries += (size_t)kept;
}

static void reference_step(const struct exchange_slice *slice, size_t slices, int n, int P, double beta, int k,
                           bool sign, float grad[P_MAX][LONGEST]) {
    ref.bytes = ref.entries = 0;
    for (int r = 0; r < P; r++) {
        ref.lost[r] = 0;
        for (int i = 0; i < n; i++) {
            ref.lost[r] += (1 - beta) * fabs((double)ref.m[r][i]);
            float kept = ref.m[r][i] * (float)beta;
            ref.m[r][i] = kept + grad[r][i];
        }
    }
    for (size_t s = 0; s < slices; s++)
        for (int i = 0; i < (int)slice[s].rows; i += 64)
            for (int j = 0; j < (int)slice[s].cols; j += 64) reference_chunk(&slice[s], i, j, P, k, sign);
}

/* -- against it ---------------------------------------------------------------------------------------------------- */
struct manner {
    double beta;
    int k;
    bool sign, by_layers;
    int n;
};

static struct reducer reducer;

static void open_row(struct comm *c, const struct manner *how) {
    struct reducer_setup setup = {.ops = exchange_named("demo"), .device = test_device()};
    char text[96];
    snprintf(text, sizeof text, "demo-decay=%.17g,demo-k=%d,demo-sign=%s", how->beta, how->k, how->sign ? "on" : "off");
    setup.exchange = (struct exchange_setup){
        .comm = c, .n = (size_t)how->n, .k_max = (size_t)how->n, .options = rig_options(text, GTOPK_CONSERVE)};
    if (how->by_layers) setup.exchange.slice = layers, setup.exchange.slices = LAYERS;
    reducer_open(&reducer, &setup);
}

static void agrees(const struct manner *how, const struct exchange_sum *sum, const struct comm_counters *before,
                   int rank) {
    static float residual[LONGEST], u[LONGEST];
    const size_t n = (size_t)how->n, others = (size_t)reducer.exchange.setup.comm->size - 1;
    const struct comm_counters *now = &reducer.exchange.setup.comm->counters[TRAFFIC_EXCHANGE];
    size_t there = 0;
    assert_int_equal(now->bytes_sent - before->bytes_sent, ref.bytes * others);
    assert_int_equal(now->bytes_received - before->bytes_received, ref.bytes * others);
    device_download(u, sum->dense, n);
    reducer.store.ops->read(&reducer.store, 0, n, residual);
    for (size_t i = 0; i < n; i++) {
        assert_true(residual[i] == ref.m[rank][i] && u[i] == ref.u[i]);
        there += u[i] != 0;
    }
    assert_int_equal(sum->global_nnz, there);
    assert_int_equal(sum->local_nnz, ref.entries);
    assert_true(fabs(sum->mass_lost - ref.lost[rank]) <= 1e-5 * ref.lost[rank]);
    const struct cost_case known = {.n = n,
                                    .k = 1,
                                    .P = (int)others + 1,
                                    .ranks_per_node = 1,
                                    .slice = how->by_layers ? layers : NULL,
                                    .slices = how->by_layers ? LAYERS : 0,
                                    .options = reducer.exchange.setup.options};
    struct cost cost;
    exchange_named("demo")->cost(&known, &cost);
    assert_true(exchange_max_words(&reducer.exchange, 1) == (double)(ref.bytes * others) / 4);
    assert_true(cost.words == (double)(ref.bytes * others) / 4 && sum->extra_words == 0);
}

/* Numbers that are smooth from one to the next, and noise. */
static void make(int rank, int step, int n, float *grad) {
    struct rng r = rng_open(41, RNG_TEST, (uint64_t)(rank * 1000 + step));
    float last = 0;
    for (int i = 0; i < n; i++) grad[i] = last = 0.9f * last + (float)rng_normal(&r);
}

static void several_steps(struct comm *c, const struct manner *how) {
    static float grad[P_MAX][LONGEST], host[LONGEST];
    const size_t n = (size_t)how->n, whole = n / 64 * 64;
    const struct exchange_slice vector[] = {{0, whole / 64, 64}, {whole, 1, n - whole}};
    const struct exchange_slice *slice = how->by_layers ? layers : whole ? vector : vector + 1;
    const size_t slices = how->by_layers ? LAYERS : (whole > 0) + (size_t)(whole < n);
    struct exchange_sum sum;
    float *mine = device_twin(host, n);
    memset(&ref, 0, sizeof ref);
    open_row(c, how);
    for (int step = 0; step < STEPS; step++) {
        for (int r = 0; r < c->size; r++) make(r, step, how->n, grad[r]);
        device_fill(mine, grad[c->rank], n);
        if (mine == host) memcpy(host, grad[c->rank], n * sizeof *host);
        const struct comm_counters before = c->counters[TRAFFIC_EXCHANGE];
        assert_true(exchange_run(&reducer.exchange, mine, 1, &sum));
        reference_step(slice, slices, how->n, c->size, how->beta, how->k, how->sign, grad);
        agrees(how, &sum, &before, c->rank);
    }
    reducer_close(&reducer);
    device_twin_free(mine, host);
}

static void the_reference(struct comm *c) {
    const struct manner cases[] = {{0.999, 32, true, true, LAYERS_N}, {1, 5, false, true, LAYERS_N},
                                   {0.5, 1, true, false, 4096 + 130}, {0.999, 32, false, false, 63},
                                   {0.9, 4096, false, false, 128},    {0.999, 32, true, false, 1}};
    dct_open(&dct);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (i > 0 || c->size <= 5) several_steps(c, &cases[i]);
    dct_close(&dct);
}

/* The mean gradient of signs is the sign. */
static void the_mean_of_signs(struct comm *c) {
    static float grad[LAYERS_N];
    struct exchange_sum sum;
    float *mine = device_twin(grad, LAYERS_N);
    open_row(c, &(struct manner){0.999, 32, true, true, LAYERS_N});
    make(c->rank, 1, LAYERS_N, grad);
    device_fill(mine, grad, LAYERS_N);
    assert_true(exchange_run(&reducer.exchange, mine, 1, &sum));
    exchange_mean(&reducer.exchange, &sum, mine);
    device_download(grad, mine, LAYERS_N);
    for (int i = 0; i < LAYERS_N; i++) assert_true(grad[i] == 1 || grad[i] == -1 || grad[i] == 0);
    reducer_close(&reducer);
    device_twin_free(mine, grad);
}

/* -- the transform ------------------------------------------------------------------------------------------------- */
static void the_formula(struct comm *c) {
    const double pi = acos(-1);
    (void)c;
    dct_open(&dct);
    for (size_t s = 1; s <= 64; s++) {
        dct_size(&dct, s);
        for (size_t b = 0; b < s; b++)
            for (size_t j = 0; j < s; j++) {
                double wanted = sqrt((b ? 2. : 1.) / (double)s) * cos(pi * (double)((2 * j + 1) * b) / (double)(2 * s));
                assert_true(fabs((double)dct.row[s][b * s + j] - wanted) <= 6e-8);
                assert_true(dct.column[s][j * s + b] == dct.row[s][b * s + j]);
            }
    }
    dct_close(&dct);
}

static void there_and_back(struct comm *c) {
    static float x[4096], y[4096], back[4096], scratch[4096];
    static const size_t sides[] = {1, 2, 3, 7, 63, 64};
    (void)c;
    dct_open(&dct);
    for (size_t a = 0; a < 6; a++)
        for (size_t b = 0; b < 6; b++) {
            const size_t h = sides[a], w = sides[b];
            double before = 0, after = 0;
            make((int)h, (int)w, (int)(h * w), x);
            dct_size(&dct, h);
            dct_size(&dct, w);
            dct_forward(&dct, x, h, w, scratch, y);
            dct_inverse(&dct, y, h, w, scratch, back);
            for (size_t i = 0; i < h * w; i++) {
                assert_true(fabsf(back[i] - x[i]) < 2e-5f);
                before += (double)x[i] * (double)x[i];
                after += (double)y[i] * (double)y[i];
            }
            assert_true(fabs(before - after) <= 1e-5 * before);
        }
    dct_close(&dct);
}

int main(int argc, char **argv) {
    const struct mpi_case cases[] = {
        {"the_reference", the_reference},
        {"the_mean_of_signs", the_mean_of_signs},
        {"the_formula", the_formula},
        {"there_and_back", there_and_back},
    };
    return rig_test_main(argc, argv, "comm_demo", cases, sizeof cases / sizeof cases[0]);
}
