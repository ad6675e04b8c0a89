/* library_rig.h: an exchange opened through comm/sparsetrain.h, and steps of it, on the device of test_device.h.
 *
 *        sparsetrain *x = opened("oktopk", GROUPS);
 *        uint64_t hash = hash_of_steps(x, c, 0, STEPS, true);         // of all updates
 *        ... return library_test_main(argc, argv, "comm_example", cases, 1);
 */
#ifndef ST_TESTS_LIBRARY_RIG_H
#define ST_TESTS_LIBRARY_RIG_H

#include <dirent.h>
#include <unistd.h>

#include "comm/sparsetrain.h"
#include "tests/lib/exchange_rig.h"

enum { N = 1009, STEPS = 6, GROUPS = 4 };
static const size_t group[GROUPS] = {0, 10, 17, 500};
enum { SLICES = 3 };
static const struct sparsetrain_slice slice[SLICES] = {{20, 25}, {1, 9}, {50, 10}};
static const char options[] = "density=0.1,tau=2,tau_prime=1,seed=1";
static float grad[N];
static float *twin, *at; /* [N] grad on the device of this test (itself on the CPU); where exchanges are just now */
static char why[SPARSETRAIN_LINE];

static inline const char *of_device(const char *text) {
    static char all[512];
    snprintf(all, sizeof all, "%.400s%sdevice=%s", text, *text ? "," : "", at == grad ? "cpu" : test_device_name());
    return all;
}

static inline void fill(struct comm *c, int step) {
    make_gradient(REAL, c->rank, c->size, step, N, grad);
}

static inline sparsetrain *opened(const char *algorithm, size_t groups) {
    sparsetrain *x;
    if (sparsetrain_open_groups(&x, NULL, algorithm, N, of_device(options), group, groups, why) != SPARSETRAIN_GOOD)
        fail_msg("%s: %s", algorithm, why);
    return x;
}

static inline void good(int status) {
    if (status != SPARSETRAIN_GOOD) fail_msg("status %d: %s", status, why);
}

/* How a step is made: at once, or while backward goes on. */
static inline void step_of(sparsetrain *x, bool overlaps) {
    device_fill(at, grad, N);
    if (overlaps) {
        good(sparsetrain_begin(x, at, why));
        for (size_t from = N; from > 0; from -= from < 100 ? from : 100) good(sparsetrain_ready(x, from, why));
        good(sparsetrain_ready(x, 0, why));
    }
    good(sparsetrain_run(x, at, why));
    device_download(grad, at, N);
}

static inline uint64_t hash_of_steps(sparsetrain *x, struct comm *c, int from, int to, bool overlaps) {
    uint64_t hash = 0;
    for (int step = from; step < to; step++) {
        fill(c, step);
        step_of(x, overlaps);
        hash = hash64(hash, grad, sizeof grad);
    }
    return hash;
}

/* How many threads this process has; where `least` are expected, after those that are ending have gone. */
static __attribute__((noinline, unused)) int threads(int least) {
    int found = 0;
    for (int looks = 0; looks < 1000 && (looks == 0 || found > least); looks++) {
        DIR *tasks = opendir("/proc/self/task");
        if (looks > 0) usleep(1000);
        for (found = -2; tasks && readdir(tasks);) found++;
        if (tasks) closedir(tasks);
    }
    return found;
}

static inline int library_test_main(int argc, char **argv, const char *name, const struct mpi_case *cases, size_t n) {
    at = twin = device_twin(grad, N);
    int status = rig_test_main(argc, argv, name, cases, n);
    device_twin_free(twin, grad);
    return status;
}

#endif
