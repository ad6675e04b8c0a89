/* hostcuda_kernels.c: the emulator runs kernels as a GPU would: each result against a loop. */
#include "tests/hostcuda/selftest_support.h"

static unsigned inputs[256];
static void fill_inputs(void) {
    for (unsigned i = 0; i < 256; i++) inputs[i] = (i * 7919 + 13) % 1009 + 1;
}

static void grids_and_blocks_of_three_dimensions(void **state) {
    (void)state;
    enum { W = 19, H = 9, D = 5 };
    static unsigned host[D][H][W];
    unsigned *cells = device_new(sizeof host);
    launch_cells(cells, W, H, D, NULL);
    OK(cudaGetLastError());
    device_read(host, cells, sizeof host);
    for (unsigned z = 0; z < D; z++)
        for (unsigned y = 0; y < H; y++)
            for (unsigned x = 0; x < W; x++) assert_int_equal(host[z][y][x], x + 100 * y + 10000 * z);
    OK(cudaFree(cells));
}

static void barriers_and_shared_memory(void **state) {
    (void)state;
    float x[1024], sums[4];
    for (int i = 0; i < 1024; i++) x[i] = (float)(i % 17);
    float *dx = device_of(x, sizeof x), *dsum = device_new(sizeof sums);
    launch_block_sum(dsum, dx, 1024, NULL);
    device_read(sums, dsum, sizeof sums);
    for (int b = 0; b < 4; b++) {
        float expected = 0;
        for (int i = 0; i < 256; i++) expected += x[256 * b + i];
        assert_true(sums[b] == expected);
    }
    unsigned out[256], running = 0;
    unsigned *in = device_of(inputs, sizeof inputs), *dout = device_new(sizeof out);
    launch_scan(dout, in, NULL);
    device_read(out, dout, sizeof out);
    for (int i = 0; i < 256; i++) assert_int_equal(out[i], running += inputs[i]);
    OK(cudaFree(dx)), OK(cudaFree(dsum)), OK(cudaFree(in)), OK(cudaFree(dout));
}

/* What lane t of x[64] must get from collective i, by the definitions of the CUDA C++ Programming Guide. */
static unsigned shuffled(int i, unsigned t) {
    const unsigned *x = inputs + t / 32 * 32, lane = t % 32;
    unsigned bits = 0, same = 0, any = 0, sum = 0, least = x[0], most = x[0];
    for (unsigned j = 0; j < 32; j++) {
        bits |= (unsigned)(x[j] % 3 == 0) << j;
        same |= (unsigned)(x[j] % 5 == x[lane] % 5) << j;
        any |= x[j] == inputs[32];
        sum += x[j];
        least = x[j] < least ? x[j] : least;
        most = x[j] > most ? x[j] : most;
    }
    const unsigned expected[SHUFFLES] = {x[3],
                                         x[lane / 8 * 8 + 1],
                                         x[lane >= 2 ? lane - 2 : lane],
                                         x[lane % 16 + 3 < 16 ? lane + 3 : lane],
                                         x[lane ^ 16],
                                         bits,
                                         any,
                                         1,
                                         same,
                                         sum,
                                         least,
                                         most};
    return expected[i];
}

static void collectives_of_a_warp(void **state) {
    (void)state;
    unsigned out[SHUFFLES][64];
    double wide[64];
    unsigned *in = device_of(inputs, sizeof inputs), *dout = device_new(sizeof out);
    double *dwide = device_new(sizeof wide);
    launch_shuffles((unsigned *)dout, dwide, in, NULL);
    device_read(out, dout, sizeof out);
    device_read(wide, dwide, sizeof wide);
    for (unsigned t = 0; t < 64; t++) {
        for (int i = 0; i < SHUFFLES; i++)
            if (out[i][t] != shuffled(i, t)) fail_msg("%d of %u: %u, not %u", i, t, out[i][t], shuffled(i, t));
        assert_true(wide[t] == 0.5 * inputs[t ^ 1]);
    }
    OK(cudaFree(in)), OK(cudaFree(dout)), OK(cudaFree(dwide));
}

static void atomics(void **state) {
    (void)state;
    unsigned count[COUNTERS] = {0, 1000, 0, 0, 0xffffu, 0, 0, 0, 1000};
    unsigned long long large[2] = {0, 0};
    float sum = 0;
    unsigned *dcount = device_of(count, sizeof count);
    unsigned long long *dlarge = device_of(large, sizeof large);
    float *dsum = device_of(&sum, sizeof sum);
    launch_counters(dcount, dsum, dlarge, NULL);
    device_read(count, dcount, sizeof count);
    device_read(large, dlarge, sizeof large);
    const unsigned expected[COUNTERS] = {499500, 7, 999, 0x3ff, 0xfc00, 1, 1, 999, 0};
    for (int i = 0; i < COUNTERS; i++) assert_int_equal(count[i], expected[i]);
    assert_true(device_float(dsum) == 500.0f);
    assert_true(large[0] == 1000ull << 32 && large[1] == 999ull << 33);
    OK(cudaFree(dcount)), OK(cudaFree(dlarge)), OK(cudaFree(dsum));
}

static void barriers_that_count(void **state) {
    (void)state;
    int out[BLOCK_COUNTS][96], *dout = device_new(sizeof out);
    launch_block_counts(dout, NULL);
    device_read(out, dout, sizeof out);
    for (int t = 0; t < 96; t++) {
        assert_int_equal(out[0][t], 32);
        assert_int_equal(out[1][t], 1);
        assert_int_equal(out[2][t], 0);
        assert_int_equal(out[3][t], 0);
    }
    OK(cudaFree(dout));
}

static void blocks_that_hand_on(void **state) {
    (void)state;
    uint64_t sum[50];
    uint64_t *dsum = device_new(sizeof sum);
    unsigned *ticket = device_new(sizeof *ticket);
    OK(cudaMemset(dsum, 0, sizeof sum));
    OK(cudaMemset(ticket, 0, sizeof *ticket));
    launch_chain(dsum, ticket, 50, NULL);
    device_read(sum, dsum, sizeof sum);
    for (uint64_t b = 0; b < 50; b++) assert_int_equal(sum[b], (b + 1) * (b + 2) / 2);
    OK(cudaFree(dsum)), OK(cudaFree(ticket));
}

static void templates_and_vectors(void **state) {
    (void)state;
    float x[400], y[400];
    for (int i = 0; i < 400; i++) x[i] = (float)i - 7;
    float *dx = device_of(x, sizeof x), *dy = device_new(sizeof y);
    for (int twice = 0; twice < 2; twice++) {
        launch_copy(dy, dx, 100, twice, NULL);
        device_read(y, dy, sizeof y);
        for (int i = 0; i < 400; i++) assert_true(y[i] == x[i] * (float)(1 + twice));
    }
    OK(cudaFree(dx)), OK(cudaFree(dy));
}

static void numbers(void **state) {
    (void)state;
    const unsigned expected[NUMBERS] = {8,           8, 31,     32, 23, 4, 0x80000000u, 0x3f800000u,
                                        0x40490fdbu, 0, 10 - 2, 7,  16, 9, 0,           3};
    unsigned out[NUMBERS], *dout = device_new(sizeof out);
    launch_numbers(dout, NULL);
    device_read(out, dout, sizeof out);
    for (int i = 0; i < NUMBERS; i++) {
        const float f = 15.5f;
        unsigned want = expected[i];
        if (i == 9) memcpy(&want, &f, sizeof want);
        if (out[i] != want) fail_msg("number %d: %u, not %u", i, out[i], want);
    }
    OK(cudaFree(dout));
}

/* -- mistakes ------------------------------------------------------------------------------------------------------ */

static void barrier_after_end(void) {
    launch_barrier_after_end(device_new(256), NULL), cudaDeviceSynchronize();
}
static void two_barriers(void) {
    launch_two_barriers(device_new(256), NULL), cudaDeviceSynchronize();
}
static void lost_lane(void) {
    launch_lost_lane(device_new(256), NULL), cudaDeviceSynchronize();
}
static void part_of_warp(void) {
    launch_part_of_warp(device_new(256), NULL), cudaDeviceSynchronize();
}
static void behind_shared(void) {
    launch_behind_shared(device_new(256), NULL), cudaDeviceSynchronize();
}

static void divergence_is_found(void **state) {
    (void)state;
    dies(barrier_after_end, "kernel barrier_after_end, block (0, 0, 0): threads wait at a barrier that others do not");
    dies(two_barriers, "kernel two_barriers, block (0, 0, 0): threads wait at a barrier that others do not reach");
    dies(lost_lane, "kernel lost_lane, block (0, 0, 0): the lanes of a warp are not at the same collective");
    dies(part_of_warp, "in a warp that is not full");
    dies(behind_shared, "kernel behind_shared, block (0, 0, 0), thread (32, 0, 0): access to");
}

static void host_argument(void) {
    static float x[4];
    launch_add(x, 1, 4, NULL);
}
static void freed_argument(void) {
    float *x = device_new(4096);
    OK(cudaFree(x));
    launch_add(x, 1, 4, NULL);
}
static void one_too_many(void) {
    launch_write_at(device_new(5 * sizeof(float)), 5, NULL), cudaDeviceSynchronize();
}
static void page_too_far(void) {
    launch_write_at(device_new(64), 16, NULL), cudaDeviceSynchronize();
}
static void one_before(void) {
    launch_write_at(device_new(64), -1, NULL), cudaDeviceSynchronize();
}

static void bad_pointers_are_found(void **state) {
    (void)state;
    dies(host_argument, "kernel add, argument 1:");
    dies(freed_argument, "kernel add, argument 1:");
    dies(one_too_many, "write_at wrote directly behind the end of a block of 20 bytes");
    dies(page_too_far, "kernel write_at, block (0, 0, 0), thread (0, 0, 0): access to");
    dies(one_before, "wrote before the start of a block of 64 bytes");
}

static void launches_that_cannot_be(void **state) {
    (void)state;
    launch_nothing(0, 32, 0, 0, NULL);
    GIVES(cudaErrorInvalidConfiguration, cudaPeekAtLastError());
    GIVES(cudaErrorInvalidConfiguration, cudaGetLastError());
    OK(cudaGetLastError());
    launch_nothing(1, 1025, 0, 0, NULL);
    GIVES(cudaErrorInvalidConfiguration, cudaGetLastError());
    launch_nothing(1, 32, 60000, 0, NULL);
    GIVES(cudaErrorInvalidValue, cudaGetLastError());
    launch_nothing(1, 32, 60000, 60000, NULL);
    OK(cudaGetLastError());
    launch_nothing(1, 32, 60001, 300000, NULL);
    GIVES(cudaErrorInvalidValue, cudaGetLastError());
    launch_nothing(1, 1024, 0, 0, NULL);
    OK(cudaGetLastError());
    OK(cudaDeviceSynchronize());
}

static void a_stream_is_of_the_current_device(void **state) {
    cudaStream_t second;
    (void)state;
    setenv("SPARSETRAIN_HOSTCUDA_DEVICES", "2", 1);
    OK(cudaSetDevice(1));
    OK(cudaStreamCreate(&second));
    launch_nothing(1, 32, 0, 0, second);
    OK(cudaGetLastError());
    OK(cudaSetDevice(0));
    launch_nothing(1, 32, 0, 0, second);
    GIVES(cudaErrorInvalidResourceHandle, cudaGetLastError());
    OK(cudaStreamDestroy(second));
    unsetenv("SPARSETRAIN_HOSTCUDA_DEVICES");
}

int main(void) {
    cmocka_set_message_output(CM_OUTPUT_TAP);
    fill_inputs();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grids_and_blocks_of_three_dimensions),
        cmocka_unit_test(barriers_and_shared_memory),
        cmocka_unit_test(collectives_of_a_warp),
        cmocka_unit_test(atomics),
        cmocka_unit_test(barriers_that_count),
        cmocka_unit_test(blocks_that_hand_on),
        cmocka_unit_test(templates_and_vectors),
        cmocka_unit_test(numbers),
        cmocka_unit_test(divergence_is_found),
        cmocka_unit_test(bad_pointers_are_found),
        cmocka_unit_test(launches_that_cannot_be),
        cmocka_unit_test(a_stream_is_of_the_current_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
