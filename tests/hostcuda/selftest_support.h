/* selftest_support.h: memory and dying children for the tests of the stand-in. */
#ifndef ST_TESTS_HOSTCUDA_SELFTEST_SUPPORT_H
#define ST_TESTS_HOSTCUDA_SELFTEST_SUPPORT_H

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <cuda_runtime_api.h>

#include "tests/hostcuda/internal.h"
#include "tests/hostcuda/selftest.h"

#define OK(call) assert_string_equal(cudaGetErrorName(call), "cudaSuccess")
#define GIVES(error, call) assert_string_equal(cudaGetErrorName(call), #error)

static inline void *device_new(size_t bytes) {
    void *p = NULL;
    OK(cudaMalloc(&p, bytes));
    return p;
}

/* Device memory with these bytes. */
static inline void *device_of(const void *host, size_t bytes) {
    void *p = device_new(bytes);
    OK(cudaMemcpy(p, host, bytes, cudaMemcpyHostToDevice));
    return p;
}

static inline void device_read(void *host, const void *device, size_t bytes) {
    OK(cudaDeviceSynchronize());
    OK(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost));
}

static inline float device_float(const float *device) {
    float value;
    device_read(&value, device, sizeof value);
    return value;
}

static inline float *pinned_new(size_t count) {
    void *p = NULL;
    OK(cudaMallocHost(&p, count * sizeof(float)));
    return p;
}

static inline cudaStream_t stream_new(unsigned flags) {
    cudaStream_t s;
    OK(cudaStreamCreateWithFlags(&s, flags));
    return s;
}

/* Runs body in a child; fills said [size] with what it wrote to stderr and returns how it ended (wait). */
static inline int child(void (*body)(void), char *said, size_t size) {
    int ends[2], status = 0;
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    setenv("SPARSETRAIN_HOSTCUDA_FORK", "1", 0);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(ends[1], 2);
        signal(SIGSEGV, SIG_DFL); /* instead of cmocka's, which goes on with the next test */
        signal(SIGABRT, SIG_DFL);
        close(ends[0]);
        body();
        exit(0);
    }
    close(ends[1]);
    size_t length = 0;
    for (ssize_t n; (n = read(ends[0], said + length, size - 1 - length)) > 0;) length += (size_t)n;
    said[length] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/* The child dies, and says `text` before. */
static inline void dies(void (*body)(void), const char *text) {
    static char said[1 << 16];
    const int status = child(body, said, sizeof said);
    if (status == 0 || !strstr(said, text)) fail_msg("ended with %d, said: %s, expected: %s", status, said, text);
}

#endif
