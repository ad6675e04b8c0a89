/* libraries_rig.h: device memory, numbers and comparisons for the tests of the stand-ins of cuBLAS and cuDNN. */
#ifndef ST_TESTS_HOSTCUDA_LIBRARIES_RIG_H
#define ST_TESTS_HOSTCUDA_LIBRARIES_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>

#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/hostcuda/gemm.h"

/* The same numbers twice: host, double, [count], what the type can hold; device, float or bf16. */
struct numbers {
    double *host;
    void *device;
    size_t count;
    bool is_bf16;
};

static inline double rig_chance(void) { /* in [-1, 1), a fixed sequence */
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)(state >> 11) / (double)(1ull << 52) - 1.0;
}

static inline size_t rig_width(bool is_bf16) {
    return is_bf16 ? sizeof(uint16_t) : sizeof(float);
}

/* Copies host to device, rounding both to the type. */
static inline void rig_send(struct numbers *x) {
    void *words = malloc(x->count * sizeof(float) + 1);
    for (size_t i = 0; i < x->count; i++)
        if (x->is_bf16) {
            ((uint16_t *)words)[i] = hostcuda_to_bf16((float)x->host[i]);
            x->host[i] = hostcuda_from_bf16(((uint16_t *)words)[i]);
        } else {
            ((float *)words)[i] = (float)x->host[i];
            x->host[i] = (float)x->host[i];
        }
    assert_int_equal(cudaMemcpy(x->device, words, x->count * rig_width(x->is_bf16), cudaMemcpyHostToDevice), 0);
    free(words);
}

static inline struct numbers rig_numbers(size_t count, bool is_bf16, double size) {
    struct numbers x = {malloc(count * sizeof *x.host + 1), NULL, count, is_bf16};
    assert_int_equal(cudaMalloc(&x.device, count * rig_width(is_bf16)), 0);
    for (size_t i = 0; i < count; i++) x.host[i] = size * rig_chance();
    rig_send(&x);
    return x;
}

static inline void rig_free(struct numbers *x) {
    free(x->host);
    assert_int_equal(cudaFree(x->device), 0);
}

/* The largest difference between device and host, relative to the largest entry of host; NaN counts as infinite. */
static inline double rig_error(const struct numbers *x) {
    void *words = malloc(x->count * sizeof(float) + 1);
    assert_int_equal(cudaMemcpy(words, x->device, x->count * rig_width(x->is_bf16), cudaMemcpyDeviceToHost), 0);
    double worst = 0, largest = 0;
    for (size_t i = 0; i < x->count; i++) {
        float value = x->is_bf16 ? hostcuda_from_bf16(((uint16_t *)words)[i]) : ((float *)words)[i];
        double error = fabs((double)value - x->host[i]);
        if (!(error <= worst)) worst = isnan(error) ? INFINITY : error;
        if (fabs(x->host[i]) > largest) largest = fabs(x->host[i]);
    }
    free(words);
    return largest > 0 ? worst / largest : worst;
}

static inline void rig_close(const struct numbers *x, double tolerance, const char *what) {
    double error = rig_error(x);
    if (!(error <= tolerance)) fail_msg("%s: off by %g of the largest entry, allowed %g", what, error, tolerance);
}

/* Runs the case in a child, which must end by abort(), as hostcuda_complain ends. */
static inline void rig_complains(void (*misuse)(void *), void *argument, const char *what) {
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        if (!freopen("/dev/null", "w", stderr)) _exit(2);
        misuse(argument);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT)) fail_msg("%s: no complaint", what);
}

/* The handle of the tests of cuDNN, and what opens and closes it around a group of them. */
static cudnnHandle_t dnn;

static inline int rig_open_cudnn(void **state) {
    (void)state;
    return (int)cudnnCreate(&dnn);
}

static inline int rig_close_cudnn(void **state) {
    (void)state;
    return (int)cudnnDestroy(dnn);
}

#endif
