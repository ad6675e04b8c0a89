/* comm_staging.c: gradients that are not in host memory: the rows that sum in host memory stage them there and back, in
 * chunks; those that leave the sum to MPI hand it the gradient where it lies, when MPI takes such pointers.
 * ranks: 1 2 3 4 */
#include "tests/lib/exchange_rig.h"

enum { LONG = (2 << 20) + 1017 }; /* entries: three chunks */

/* A device whose memory cannot be used by mistake: everything in it is bitwise inverted. A copy that was begun is done
 * when it is waited for, and no earlier. */
static void inverted(void *to, const void *from, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) ((unsigned char *)to)[i] = (unsigned char)~((const unsigned char *)from)[i];
}
static struct {
    void *to;
    const void *from;
    size_t bytes;
} begun[DEVICE_COPIES];
static int under_way, most_under_way;

static uint32_t begin_inverted(void *to, const void *from, size_t bytes) {
    uint32_t ticket = 0;
    while (begun[ticket].to) ticket++;
    assert_true(ticket < DEVICE_COPIES);
    begun[ticket].to = to;
    begun[ticket].from = from;
    begun[ticket].bytes = bytes;
    if (++under_way > most_under_way) most_under_way = under_way;
    return ticket;
}
static void end_inverted(uint32_t ticket) {
    assert_true(ticket < DEVICE_COPIES && begun[ticket].to); /* once each */
    inverted(begun[ticket].to, begun[ticket].from, begun[ticket].bytes);
    begun[ticket].to = NULL;
    under_way--;
}

static struct device_ops far_device(void) {
    struct device_ops device = *device_find("cpu");
    device.name = "far";
    device.to_host = device.to_device = inverted;
    device.to_host_begin = device.to_device_begin = begin_inverted;
    device.wait = end_inverted;
    most_under_way = 0;
    return device;
}

static void open_on(struct comm *c, const char *row, const struct device_ops *device, size_t n, size_t k,
                    size_t bucket_bytes) {
    rig.comm = c;
    rig.n = n;
    rig.device_grad = rig.grad;
    phases_reset(&rig.phases);
    store_open(&rig.reducer.store, n, device_find("cpu"));
    rig.reducer.store.device = device;
    rig.reducer.selector = selector_open(exact(), &rig.reducer.store, k, NULL);
    struct exchange_setup setup = {.comm = c,
                                   .n = n,
                                   .k_max = k,
                                   .store = &rig.reducer.store,
                                   .selector = rig.reducer.selector,
                                   .phases = &rig.phases,
                                   .bucket_bytes = bucket_bytes};
    exchange_open(&rig.reducer.exchange, exchange_named(row), &setup);
}

static void close_on(void) {
    rig.reducer.store.device = device_find("cpu");
    reducer_close(&rig.reducer);
}

static const char *const rows[] = {"dense", "dense-ovlp", "torus2d"};
enum { ROWS = sizeof rows / sizeof rows[0] };

/* The gradient that rank r has in this test, and the sum over the ranks. */
static void make_all(const struct comm *c, size_t n, float *own, float *want) {
    static float part[LONG];
    memset(want, 0, n * sizeof *want);
    for (int r = 0; r < c->size; r++) {
        make_gradient(WHOLE, r, c->size, 4, n, part);
        for (size_t i = 0; i < n; i++) want[i] += part[i];
        if (r == c->rank) memcpy(own, part, n * sizeof *own);
    }
}

static bool run_far(float *far, size_t n) {
    rig_no_memory();
    exchange_begin(&rig.reducer.exchange, far, 1);
    if (n > 10) exchange_ready(&rig.reducer.exchange, n - n / 4);
    if (n > 10) exchange_ready(&rig.reducer.exchange, n / 2);
    bool good = exchange_run(&rig.reducer.exchange, far, 1, &rig.sum);
    rig_memory_again();
    assert_int_equal(under_way, 0); /* whoever comes next may use both ends */
    return good;
}

/* With one rank MPI has nothing to add: rows that leave the sum to it stage nothing. */
static size_t first_staged(const struct comm *c) {
    return c->size == 1 ? 2 : 0;
}

static void dense_rows(struct comm *c) {
    static const size_t lengths[] = {1, 50, 1009, 1 << 20, (1 << 20) + 1, LONG};
    static float want[LONG], far[LONG], host[LONG];
    const struct device_ops device = far_device();
    for (size_t row = first_staged(c); row < ROWS; row++)
        for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++) {
            size_t n = lengths[l];
            make_all(c, n, host, want);
            open_on(c, rows[row], &device, n, 1, n < 10000 ? 40 : 400000);
            for (int step = 0; step < 2; step++) {
                inverted(far, host, n * sizeof *far);
                assert_true(run_far(far, n));
                assert_ptr_equal(rig.sum.dense, far);
                inverted(far, far, n * sizeof *far);
                assert_memory_equal(far, want, n * sizeof *far);
            }
            close_on();
        }
    assert_true(most_under_way > (c->size > 1)); /* a copy goes on while another one is used */
}

/* Each rank's own lowest entry that is no number is named by the rank; of a sum that overflows, the lowest by all. */
static void bad_entries(struct comm *c) {
    static float far[LONG], host[LONG];
    static const size_t lengths[] = {100, LONG};
    const struct device_ops device = far_device();
    for (size_t row = first_staged(c); row < ROWS; row++)
        for (size_t l = 0; l < 2; l++) {
            size_t n = lengths[l], own = n / 2 + (size_t)c->rank; /* of LONG in the second chunk */
            open_on(c, rows[row], &device, n, 1, n);
            for (size_t i = 0; i < n; i++) host[i] = 1;
            host[own] = host[own + 5] = host[n - 1] = NAN;
            inverted(far, host, n * sizeof *far);
            assert_false(run_far(far, n));
            assert_int_equal(rig.sum.bad, own);
            for (size_t i = 0; i < n; i++) host[i] = 1;
            host[n / 3] = host[n / 3 + 2] = host[n - 2] = 3e38f;
            inverted(far, host, n * sizeof *far);
            assert_true(run_far(far, n) == (c->size == 1));
            if (c->size > 1) assert_int_equal(rig.sum.bad, n / 3);
            close_on();
        }
}

/* -- one that is like the host's, for rows that work on it through the store: what counts is that it was asked ----- */
static int copies, syncs, looks;
static void counted(void *to, const void *from, size_t bytes) {
    memcpy(to, from, bytes);
    copies++;
}
static uint32_t counted_begin(void *to, const void *from, size_t bytes) {
    counted(to, from, bytes);
    return 0;
}
static void *far_alloc(size_t bytes, const char *what) {
    return mem_alloc(bytes, 1, what);
}
static void counted_sync(void) {
    syncs++;
}
static struct device_ops counting_device(void) {
    struct device_ops device = *device_find("cpu");
    device.name = "far";
    device.to_host = device.to_device = counted;
    device.to_host_begin = device.to_device_begin = counted_begin;
    device.sync = counted_sync;
    device.alloc = far_alloc;
    device.release = mem_free;
    copies = syncs = looks = 0;
    return device;
}

static uint64_t hash_on(struct comm *c, const struct device_ops *device) {
    uint64_t hash = 0;
    open_on(c, "hitopk", device, 1009, 80, 0);
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
    const struct device_ops device = counting_device();
    assert_true(hash_on(c, &device) == hash_on(c, device_find("cpu")));
    assert_true((copies > 0) == (c->local_size > 1));
}

/* -- MPI takes pointers of device memory --------------------------------------------------------------------------- */
static const struct store_ops *host_store;
static size_t counted_look(struct store *s, const float *dense, size_t n) {
    looks++;
    return host_store->first_nonfinite(s, dense, n);
}

/* On a store that counts how often it was asked. */
static void open_direct(struct comm *c, const char *row, const struct device_ops *device, struct store_ops *ops,
                        size_t n) {
    open_on(c, row, device, n, 1, 40);
    host_store = rig.reducer.store.ops;
    *ops = *host_store;
    ops->first_nonfinite = counted_look;
    rig.reducer.store.ops = ops;
}

/* The sum is right, and made of copies of what the device holds. */
static void sums_in_host_memory(struct comm *c, const char *name, const struct device_ops *device) {
    static float want[50], grad[50];
    copies = 0;
    open_on(c, name, device, 50, 1, 0);
    make_all(c, 50, grad, want);
    assert_true(run_far(grad, 50));
    assert_memory_equal(grad, want, 50 * sizeof *grad);
    assert_true(copies > 0);
    close_on();
}

/* The rows that leave the sum to MPI copy nothing, wait for the device before MPI reads, and look for what is not
 * finite on the device. */
static void device_pointers(struct comm *c) {
    static float want[LONG], grad[LONG];
    const struct device_ops device = counting_device();
    struct store_ops ops;
    bool before = c->device_pointers;
    c->device_pointers = true;
    for (size_t row = 0; row < 2; row++) {
        make_all(c, 1009, grad, want);
        open_direct(c, rows[row], &device, &ops, 1009);
        syncs = looks = 0;
        assert_true(run_far(grad, 1009));
        assert_ptr_equal(rig.sum.dense, grad);
        assert_memory_equal(grad, want, 1009 * sizeof *grad);
        assert_true(syncs > 0 && looks > 1);
        grad[700 + c->rank] = INFINITY;
        grad[1000] = NAN;
        assert_false(run_far(grad, 1009));
        assert_int_equal(rig.sum.bad, 700 + c->rank);
        close_on();
    }
    assert_int_equal(copies, 0);
    sums_in_host_memory(c, "torus2d", &device); /* by itself: there all the same */
    c->device_pointers = before;
}

/* Pointers that lead to no arrays are not for MPI, whatever pointers it takes. */
static void devices_without_arrays(struct comm *c) {
    struct device_ops device = counting_device();
    bool before = c->device_pointers;
    if (c->size == 1) return; /* nothing is to be sent */
    device.no_arrays = true;
    c->device_pointers = true;
    for (size_t row = 0; row < 2; row++) sums_in_host_memory(c, rows[row], &device);
    c->device_pointers = before;
}

/* Rank 0 says that MPI takes such pointers, the others that it does not: all must think the same. A group thinks as the
 * job does. */
static void all_ranks_agree(struct comm *c) {
    assert_true(c->device_pointers == (c->size == 1));
    struct comm *group = comm_split(c, 0, c->rank);
    assert_true(group->device_pointers == c->device_pointers);
    comm_split_close(group);
    c->device_pointers = false; /* for the other cases */
}

int main(int argc, char **argv) {
    const char *rank = getenv("OMPI_COMM_WORLD_RANK") ? getenv("OMPI_COMM_WORLD_RANK") : getenv("PMI_RANK");
    setenv("SPARSETRAIN_CUDA_AWARE", rank && strcmp(rank, "0") != 0 ? "0" : "1", 1);
    const struct mpi_case cases[] = {
        {"all_ranks_agree", all_ranks_agree}, {"dense_rows", dense_rows},
        {"bad_entries", bad_entries},         {"hitopk", hitopk},
        {"device_pointers", device_pointers}, {"devices_without_arrays", devices_without_arrays}};
    return rig_test_main(argc, argv, "comm_staging", cases, sizeof cases / sizeof cases[0]);
}
