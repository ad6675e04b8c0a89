/* comm_sparseloco.c: the largest entries of each chunk in 14 bits, against a serial reference, to the bit, and the
 * bytes that travel; the message alone: every place and code, a quantiser of double loops, places that are none. */
/* ranks: 1 2 3 4 5 7 8 */
/* devices: cuda ranks 1 3 */
#include "tests/lib/exchange_rig.h"

#include "comm/parts/chunk_top.h"
#include "comm/parts/two_bits.h"

enum { P_MAX = 8, STEPS = 4, LONGEST = 2 * 4096 + 130 };

/* -- the reference: one loop for each sentence of two_bits.h and sparseloco.c -------------------------------------- */
static int reference_kept(int m) {
    int k = 0;
    while (64 * k < m) k++;
    return k;
}

/* at[0..k-1]: one after the other the largest that is left, the lower one of equals; then in their order. */
static void reference_top(const float *val, int m, int k, int *at) {
    static bool taken[4096];
    memset(taken, 0, sizeof taken);
    for (int j = 0; j < k; j++) {
        int best = 0;
        float most = -1;
        for (int i = 0; i < m; i++)
            if (!taken[i] && fabsf(val[i]) > most) most = fabsf(val[i]), best = i;
        taken[best] = true;
    }
    for (int i = 0, j = 0; i < m; i++)
        if (taken[i]) at[j++] = i;
}

static void reference_quantise(const float *val, int k, int *code, float said[64]) {
    double mean = 0, square = 0, sum[4] = {0};
    int count[4] = {0};
    for (int i = 0; i < k; i++) mean += (double)val[i];
    mean /= k;
    for (int i = 0; i < k; i++) square += ((double)val[i] - mean) * ((double)val[i] - mean);
    double width = k == 1 ? 0 : 1.5 * sqrt(square / (k - 1));
    for (int i = 0; i < k; i++) {
        double place = width == 0 ? 2 : floor(((double)val[i] - mean) / width + 2.5);
        code[i] = place < 0 ? 0 : place > 3 ? 3 : (int)place;
        sum[code[i]] += (double)val[i];
        count[code[i]]++;
    }
    for (int i = 0; i < k; i++) said[i] = (float)(sum[code[i]] / count[code[i]]);
}

static struct reference {
    float acc[P_MAX][LONGEST], u[LONGEST];
    double lost[P_MAX];
} ref;

static void reference_step(int n, int P, double beta, const float *grad[]) {
    memset(ref.u, 0, sizeof ref.u);
    for (int r = 0; r < P; r++) {
        ref.lost[r] = 0;
        for (int i = 0; i < n; i++) {
            ref.lost[r] += (1 - beta) * fabs((double)ref.acc[r][i]);
            float kept = beta == 1 ? ref.acc[r][i] : ref.acc[r][i] * (float)beta;
            ref.acc[r][i] = kept + grad[r][i];
        }
        for (int from = 0; from < n; from += 4096) {
            int at[64], code[64], m = n - from < 4096 ? n - from : 4096, k = reference_kept(m);
            float val[64], said[64];
            reference_top(ref.acc[r] + from, m, k, at);
            for (int i = 0; i < k; i++) val[i] = ref.acc[r][from + at[i]];
            reference_quantise(val, k, code, said);
            for (int i = 0; i < k; i++) {
                ref.u[from + at[i]] += said[i];
                ref.acc[r][from + at[i]] -= said[i];
            }
        }
    }
}

/* -- against it ---------------------------------------------------------------------------------------------------- */
static struct reducer reducer;

static void open_row(struct comm *c, size_t n, const char *options) {
    struct reducer_setup setup = {.ops = exchange_named("sparseloco"), .device = test_device()};
    setup.exchange =
        (struct exchange_setup){.comm = c, .n = n, .k_max = n, .options = rig_options(options, GTOPK_CONSERVE)};
    reducer_open(&reducer, &setup);
}

/* Entries of few different magnitudes (ties), normal ones, and some much larger. */
static void make_delta(int kind, int rank, int step, size_t n, float *delta) {
    struct rng r = rng_open(31 + (uint64_t)kind, RNG_TEST, (uint64_t)(rank * 1000 + step));
    for (size_t i = 0; i < n; i++) {
        float normal = (float)rng_normal(&r);
        delta[i] = kind == 0 ? normal : kind == 1 ? (float)((int)rng_below(&r, 7) - 3) : kind == 2 ? 0 : normal;
        if (kind == 3 && rng_below(&r, 50) == 0) delta[i] *= 100;
    }
}

static void several_steps(struct comm *c, int n, int kind, double beta) {
    static float grad[P_MAX][LONGEST], residual[LONGEST], u[LONGEST];
    const float *all[P_MAX];
    char text[64];
    struct exchange_sum sum;
    float *mine = device_twin(residual, (size_t)n);
    const size_t whole = (size_t)n / 4096, rest = (size_t)n % 4096, k = (size_t)reference_kept((int)rest);
    const size_t bytes = 128 * whole + (rest ? (16 + k + (k + 1) / 2 + (k + 3) / 4 + 3) / 4 * 4 : 0);
    memset(&ref, 0, sizeof ref);
    snprintf(text, sizeof text, "residual-decay=%.17g", beta);
    open_row(c, (size_t)n, text);
    for (int step = 0; step < STEPS; step++) {
        for (int r = 0; r < c->size; r++) make_delta(kind, r, step, (size_t)n, grad[r]), all[r] = grad[r];
        device_fill(mine, grad[c->rank], (size_t)n);
        const struct comm_counters before = c->counters[TRAFFIC_EXCHANGE];
        assert_true(exchange_run(&reducer.exchange, mine, 1, &sum));
        const struct comm_counters *now = &c->counters[TRAFFIC_EXCHANGE];
        assert_int_equal(now->bytes_sent - before.bytes_sent, bytes * (size_t)(c->size - 1));
        assert_int_equal(now->bytes_received - before.bytes_received, bytes * (size_t)(c->size - 1));
        reference_step(n, c->size, beta, all);
        device_download(u, sum.dense, (size_t)n);
        reducer.store.ops->read(&reducer.store, 0, (size_t)n, residual);
        assert_memory_equal(residual, ref.acc[c->rank], (size_t)n * sizeof *residual);
        size_t there = 0;
        for (int i = 0; i < n; i++) {
            assert_true(u[i] == ref.u[i]);
            there += ref.u[i] != 0;
        }
        assert_int_equal(sum.global_nnz, there);
        assert_int_equal(sum.local_nnz, 64 * whole + k);
        assert_true(fabs(sum.mass_lost - ref.lost[c->rank]) <= 1e-5 * ref.lost[c->rank]);
    }
    reducer_close(&reducer);
    device_twin_free(mine, residual);
}

static void the_reference(struct comm *c) {
    static const int lengths[] = {1, 2, 63, 64, 65, 129, 4095, 4096, 4097, LONGEST};
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
        for (int kind = 0; kind < 4; kind++)
            for (int decays = 0; decays < 2; decays++)
                if (lengths[l] < 4000 || kind == 0 || (c->size < 4 && test_device_is_host()))
                    several_steps(c, lengths[l], kind, decays ? 0.95 : 1);
}

/* -- the message, without other ranks ------------------------------------------------------------------------------ */
static void every_place_and_code_comes_back(struct comm *c) {
    unsigned char message[128];
    (void)c;
    for (size_t m = 1; m <= 4096; m += m < 200 ? 1 : 97) {
        const size_t k = two_bits_kept(m);
        for (uint64_t trial = 0; trial < 4; trial++) {
            struct rng r = rng_open(9, RNG_TEST, 1000 * m + trial);
            uint16_t at[64], back[64] = {0};
            float val[64], again[64], said[64];
            int code[64];
            for (size_t i = 0; i < k; i++) at[i] = (uint16_t)(i + 1 < k ? rng_below(&r, (uint32_t)m) : m - 1);
            for (size_t i = 0; i < k; i++) val[i] = (float)rng_normal(&r) + (trial == 1 ? 5 : 0);
            for (size_t i = 0; i < k && trial == 2; i++) val[i] = 3;
            reference_quantise(val, (int)k, code, said);
            assert_true(two_bits_bytes(k) <= sizeof message);
            two_bits_encode(at, val, k, message);
            assert_true(two_bits_decode(message, m, back, again));
            assert_memory_equal(at, back, k * sizeof *at);
            assert_memory_equal(val, again, k * sizeof *val);
            assert_memory_equal(val, said, k * sizeof *val);
        }
    }
    assert_int_equal(two_bits_bytes(64), 16 + 112);
    assert_int_equal(two_bits_bytes_of(3 * 4096), 3 * 128);
    assert_int_equal(two_bits_bytes_of(4096 + 1), 128 + 20);
}

/* The widest errors: of values in two heaps none, of normal ones less than the bin. */
static void errors_are_bounded(struct comm *c) {
    unsigned char message[128];
    uint16_t at[64] = {0};
    (void)c;
    for (uint64_t trial = 0; trial < 100; trial++) {
        struct rng r = rng_open(11, RNG_TEST, trial);
        float val[64], was[64];
        double mean = 0, square = 0, off = 0;
        for (int i = 0; i < 64; i++) mean += (double)(was[i] = val[i] = (float)rng_normal(&r)) / 64;
        for (int i = 0; i < 64; i++) square += ((double)val[i] - mean) * ((double)val[i] - mean) / 63;
        two_bits_encode(at, val, 64, message);
        for (int i = 0; i < 64; i++) {
            if (fabs((double)was[i] - mean) < 0.75 * sqrt(square))
                assert_true(fabs((double)(was[i] - val[i])) <= 1.5 * sqrt(square) * 1.0001);
            off += (double)(was[i] - val[i]);
        }
        assert_true(fabs(off) < 1e-4);
        for (int i = 0; i < 64; i++) val[i] = i % 3 ? 2 : -2;
        two_bits_encode(at, val, 64, message);
        for (int i = 0; i < 64; i++) assert_true(val[i] == (i % 3 ? 2 : -2));
    }
}

static void places_beyond_the_end_are_found(struct comm *c) {
    unsigned char message[128];
    uint16_t at[2] = {3, 99}, back[2];
    float val[2] = {1, 2};
    (void)c;
    two_bits_encode(at, val, 2, message);
    assert_true(two_bits_decode(message, 100, back, val));
    assert_false(two_bits_decode(message, 99, back, val));
    at[0] = 0x863;
    two_bits_encode(at, val, 2, message);
    assert_false(two_bits_decode(message, 100, back, val));
}

static void the_largest_of_a_chunk(struct comm *c) {
    static float val[4096];
    static uint32_t key[4096];
    int wanted[64];
    uint16_t at[64];
    (void)c;
    for (int kind = 0; kind < 4; kind++)
        for (int m = 1; m <= 4096; m = m < 70 ? m + 1 : 2 * m + 1) {
            make_delta(kind, 1, m, (size_t)m, val);
            const int k = kind == 1 ? (m < 64 ? m : 64) : reference_kept(m);
            reference_top(val, m, k, wanted);
            chunk_top(val, (size_t)m, (size_t)k, key, at);
            for (int i = 0; i < k; i++) assert_int_equal(at[i], wanted[i]);
        }
}

int main(int argc, char **argv) {
    const struct mpi_case cases[] = {
        {"the_reference", the_reference},
        {"every_place_and_code_comes_back", every_place_and_code_comes_back},
        {"errors_are_bounded", errors_are_bounded},
        {"places_beyond_the_end_are_found", places_beyond_the_end_are_found},
        {"the_largest_of_a_chunk", the_largest_of_a_chunk},
    };
    return rig_test_main(argc, argv, "comm_sparseloco", cases, sizeof cases / sizeof cases[0]);
}
