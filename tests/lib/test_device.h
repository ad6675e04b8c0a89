/* test_device.h: the device on which a test runs: the CPU, or the one that SPARSETRAIN_TEST_DEVICE names (what
 * --device takes). Where that one cannot be used the program says so in a line that tests/run.sh counts as skipped,
 * and ends well.
 *
 *        float *grad = device_twin(host, n);        // host itself on the CPU: what is handed in is the test's memory
 *        make(host), device_fill(grad, host, n);    // copies only where the two differ
 *        exchange_run(x, grad, ...);
 *        device_download(host, grad, n), device_twin_free(grad, host);
 *
 * A process that has used a GPU must not fork. A program under test that forks for its cases (topk_reference.h) calls
 * test_device_in_children() in main, and test_device() in the forked processes alone. */
#ifndef ST_TESTS_TEST_DEVICE_H
#define ST_TESTS_TEST_DEVICE_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/device/device.h"
#include "base/mem.h"

static inline const char *test_device_name(void) {
    const char *name = getenv("SPARSETRAIN_TEST_DEVICE");
    return name && *name ? name : "cpu";
}

/* Asks nothing of the device. Tests trim their loops where this is false: on the stand-in every kernel is emulated
 * thread by thread, and what the loops vary (kernel sets, vector widths) is the CPU's. */
static inline bool test_device_is_host(void) {
    return strcmp(test_device_name(), "cpu") == 0;
}

/* The stand-in for CUDA, on which VGG-16's step takes a second. */
static inline bool test_device_is_emulated(void) {
    return getenv("SPARSETRAIN_TEST_EMULATED");
}

/* Under mpirun all ranks come to the same answer; the first one says it. */
static inline bool test_device_speaks(void) {
    const char *rank = getenv("OMPI_COMM_WORLD_RANK") ? getenv("OMPI_COMM_WORLD_RANK") : getenv("PMI_RANK");
    return !rank || atoi(rank) == 0;
}

/* The row, if it can be used; else NULL, having said why. */
static inline const struct device_ops *test_device_ask(void) {
    struct err why = {0};
    const struct device_ops *device = device_find(test_device_name());
    if (!device) {
        fprintf(stderr, "SPARSETRAIN_TEST_DEVICE=%s: there is no such device\n", test_device_name());
        exit(1);
    }
    if (device->available(&why)) return device;
    for (char *at = why.text; *at; at++)
        if (*at == '\n') *at = ' ';
    if (test_device_speaks()) printf("# SKIP %s: %s\n1..0\n", program_invocation_short_name, why.text);
    fflush(stdout);
    return NULL;
}

/* The device, ready for use in this process. Under mpirun to be called before MPI starts: a program that skips ends
 * here. All ranks of a test share the first device. */
static inline const struct device_ops *test_device(void) {
    static const struct device_ops *chosen;
    if (chosen) return chosen;
    const struct device_ops *device = test_device_ask();
    if (!device) exit(0);
    device->choose(0, 1);
    return chosen = device;
}

/* For a program whose cases run in forked processes: the question is put in one, too. */
static inline void test_device_in_children(void) {
    enum { SKIPPED = 77 };
    if (test_device_is_host()) return;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) _exit(test_device_ask() ? 0 : SKIPPED);
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child) exit(1);
    if (!WIFEXITED(status)) exit(1);
    if (WEXITSTATUS(status)) exit(WEXITSTATUS(status) == SKIPPED ? 0 : 1);
}

/* Device memory of `count` floats, to be released by the device. */
static inline float *device_upload(const float *host, size_t count) {
    float *device = test_device()->alloc(count * sizeof *device, "a test's vector");
    test_device()->to_device(device, host, count * sizeof *device);
    return device;
}

/* Nothing happens where both are the same memory. */
static inline void device_fill(float *device, const float *host, size_t count) {
    if (device != host) test_device()->to_device(device, host, count * sizeof *device);
}
static inline void device_download(float *host, const float *device, size_t count) {
    if (device != host) test_device()->to_host(host, device, count * sizeof *host);
}

/* Fresh memory of the host with what the device holds. */
static inline float *device_fetch(const float *device, size_t count) {
    return device_copy_to_host(test_device(), device, count, "a test's copy");
}

/* Do two vectors of the device hold the same bits? */
static inline bool device_same_bits(const float *a, const float *b, size_t count) {
    float *host_a = device_fetch(a, count), *host_b = device_fetch(b, count);
    bool same = memcmp(host_a, host_b, count * sizeof *host_a) == 0;
    mem_free(host_a);
    mem_free(host_b);
    return same;
}

/* `host` itself where the device's memory is the host's, else a copy of it on the device. */
static inline float *device_twin(float *host, size_t count) {
    return device_is_host(test_device()) ? host : device_upload(host, count);
}
static inline void device_twin_free(float *twin, const float *host) {
    if (twin != host) test_device()->release(twin);
}

#endif
