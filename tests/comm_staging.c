/* comm_staging.c: gradients that are not in host memory: the rows that sum in host memory stage them there and back.
 * ranks: 1 2 3 4 */
#include "tests/exchange_rig.h"

/* A device whose memory cannot be used by mistake: everything in it is bitwise inverted. */
static void inverted(void *to, const void *from, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) ((unsigned char *)to)[i] = (unsigned char)~((const unsigned char *)from)[i];
}
/* One that is like the host's, for rows that work on it through the store: what counts is that it was asked. */
static int copies;
static void counted(void *to, const void *from, size_t bytes) {
    memcpy(to, from, bytes);
    copies++;
}
static void *far_alloc(size_t bytes, const char *what) {
    return mem_alloc(bytes, 1, what);
}

static void open_on(struct comm *c, const char *row, const struct device_ops *device, size_t n, size_t k) {
    rig_open_memory(c, exchange_named(row), n);
    rig.store.device = device;
    rig.selector = selector_open(exact(), &rig.store, k, NULL);
    struct exchange_setup setup = {.comm = c,
                                   .n = n,
                                   .k_max = k,
                                   .store = &rig.store,
                                   .selector = rig.selector,
                                   .phases = &rig.phases,
                                   .bucket_bytes = 400};
    exchange_open(&rig.exchange, exchange_named(row), &setup);
}

static void close_on(void) {
    rig.store.device = device_find("cpu");
    rig_close();
}

static void dense_rows(struct comm *c) {
    static const char *const rows[] = {"dense", "dense-ovlp", "torus2d"};
    static const size_t lengths[] = {1, 50, 1009};
    static float want[RIG_N], far[RIG_N], host[RIG_N];
    struct device_ops device = *device_find("cpu");
    device.name = "far";
    device.to_host = device.to_device = inverted;
    for (size_t row = 0; row < 3; row++) {
        for (size_t l = 0; l < 3; l++) {
            size_t n = lengths[l];
            memset(want, 0, sizeof want);
            for (int r = 0; r < c->size; r++) {
                make_gradient(WHOLE, r, c->size, 4, n, host);
                for (size_t i = 0; i < n; i++) want[i] += host[i];
            }
            make_gradient(WHOLE, c->rank, c->size, 4, n, host);
            inverted(far, host, n * sizeof *far);
            open_on(c, rows[row], &device, n, 1);
            exchange_begin(&rig.exchange, far, 1);
            if (n > 10) exchange_ready(&rig.exchange, n / 2);
            assert_true(exchange_run(&rig.exchange, far, 1, &rig.sum));
            assert_ptr_equal(rig.sum.dense, far);
            inverted(host, far, n * sizeof *far);
            for (size_t i = 0; i < n; i++) assert_true(host[i] == want[i]);
            close_on();
        }
    }
}

static uint64_t hash_on(struct comm *c, const struct device_ops *device) {
    uint64_t hash = 0;
    open_on(c, "hitopk", device, 1009, 80);
    for (int step = 0; step < 3; step++) {
        make_gradient(REAL, c->rank, c->size, step, 1009, rig.grad);
        rig_step(80);
        uint64_t sum = hash_of_sum();
        hash = hash64(hash64(hash, &sum, sizeof sum), rig.residual, 1009 * sizeof(float));
    }
    close_on();
    return hash;
}

static void hitopk(struct comm *c) {
    struct device_ops device = *device_find("cpu");
    device.name = "far";
    device.to_host = device.to_device = counted;
    device.alloc = far_alloc;
    device.release = mem_free;
    copies = 0;
    assert_true(hash_on(c, &device) == hash_on(c, device_find("cpu")));
    assert_true((copies > 0) == (c->local_size > 1));
}

int main(int argc, char **argv) {
    const struct mpi_case cases[] = {{"dense_rows", dense_rows}, {"hitopk", hitopk}};
    return rig_test_main(argc, argv, "comm_staging", cases, sizeof cases / sizeof cases[0]);
}
