/* hostcuda_runtime.c: the stand-in's runtime: memory that the host cannot touch, work that nobody waited for stays
 * undone, graphs, and each misuse in a child that must die of it. */
#include "tests/hostcuda/selftest_support.h"

#include <math.h>
#include <pthread.h>

enum { N = 100 };

static void set(float *host, float value) {
    for (int i = 0; i < N; i++) host[i] = value;
}
/* Device memory [N], all zero. */
static float *zeros(void) {
    float *x = device_new(N * sizeof *x);
    OK(cudaMemset(x, 0, N * sizeof *x));
    OK(cudaDeviceSynchronize());
    return x;
}

static void no_device(void) {
    int count = 7;
    void *p;
    setenv("SPARSETRAIN_HOSTCUDA_DEVICES", "0", 1);
    exit(cudaGetDeviceCount(&count) == cudaErrorNoDevice && count == 0 && cudaMalloc(&p, 4) == cudaErrorNoDevice ? 0
                                                                                                                 : 1);
}

static void two_small_devices(void) {
    size_t available[2], total;
    void *p;
    setenv("SPARSETRAIN_HOSTCUDA_DEVICES", "2", 1);
    setenv("SPARSETRAIN_HOSTCUDA_MIB", "1", 1);
    OK(cudaSetDevice(1));
    OK(cudaMalloc(&p, 1 << 20));
    const bool full = cudaMalloc(&p, 1) == cudaErrorMemoryAllocation;
    OK(cudaMemGetInfo(&available[1], &total));
    OK(cudaSetDevice(0));
    OK(cudaMemGetInfo(&available[0], &total));
    exit(full && total == 1 << 20 && available[0] == total && available[1] == 0 ? 0 : 1);
}

static void devices_and_errors(void **state) {
    (void)state;
    struct cudaDeviceProp p;
    char said[1000];
    int count, value;
    void *block;
    OK(cudaGetDeviceCount(&count));
    assert_int_equal(count, 1);
    OK(cudaGetDeviceProperties(&p, 0));
    assert_string_equal(p.name, "hostcuda");
    assert_int_equal(p.major, 9);
    OK(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
    assert_int_equal(value, 2);
    GIVES(cudaErrorInvalidDevice, cudaSetDevice(1));
    GIVES(cudaErrorMemoryAllocation, cudaMalloc(&block, (size_t)3 << 30));
    GIVES(cudaErrorMemoryAllocation, cudaGetLastError());
    OK(cudaGetLastError());
    assert_int_equal(child(no_device, said, sizeof said), 0);
    assert_int_equal(child(two_small_devices, said, sizeof said), 0);
}

static void device_memory(void **state) {
    (void)state;
    float host[N];
    size_t before, after, total;
    OK(cudaMemGetInfo(&before, &total));
    assert_int_equal(total, (size_t)2 << 30);
    float *x = device_new(sizeof host);
    OK(cudaMemGetInfo(&after, &total));
    assert_int_equal(before - after, sizeof host);
    device_read(host, x, sizeof host);
    for (int i = 0; i < N; i++) assert_true(isnan(host[i]));
    GIVES(cudaErrorInvalidValue, cudaMemcpy(x, host, sizeof host, cudaMemcpyDeviceToHost));
    struct cudaPointerAttributes attributes;
    OK(cudaPointerGetAttributes(&attributes, x + 1));
    assert_int_equal(attributes.type, cudaMemoryTypeDevice);
    OK(cudaPointerGetAttributes(&attributes, host));
    assert_int_equal(attributes.type, cudaMemoryTypeUnregistered);
    OK(cudaFree(x));
    OK(cudaFree(NULL));
    OK(cudaMemGetInfo(&after, &total));
    assert_int_equal(before, after);
    (void)cudaGetLastError();
}

static void copies_wait_to_be_waited_for(void **state) {
    (void)state;
    cudaStream_t s = stream_new(cudaStreamNonBlocking);
    float *host = pinned_new(N), *x = zeros(), pageable[N];
    set(host, 1);
    OK(cudaMemcpyAsync(x, host, N * sizeof *x, cudaMemcpyHostToDevice, s));
    launch_add(x, 2, N, s);
    OK(cudaMemcpyAsync(host, x, N * sizeof *x, cudaMemcpyDeviceToHost, s));
    assert_true(host[0] == 1); /* not spoilt: the first copy has yet to read it */
    OK(cudaStreamSynchronize(s));
    for (int i = 0; i < N; i++) assert_true(host[i] == 3);
    OK(cudaMemcpyAsync(host, x, N * sizeof *x, cudaMemcpyDeviceToHost, s));
    assert_true(isnan(host[0]) && isnan(host[N - 1])); /* read too early */
    OK(cudaStreamSynchronize(s));
    assert_true(host[0] == 3 && host[N - 1] == 3);
    launch_add(x, 1, N, s);
    OK(cudaMemcpyAsync(pageable, x, sizeof pageable, cudaMemcpyDeviceToHost, s));
    assert_true(pageable[0] == 4); /* pageable memory: at once */
    OK(cudaMemcpyAsync(x, host, N * sizeof *x, cudaMemcpyHostToDevice, s));
    set(host, 9); /* too early: the copy has yet to read it */
    OK(cudaStreamSynchronize(s));
    assert_true(device_float(x) == 9);
    OK(cudaStreamDestroy(s)), OK(cudaFree(x)), OK(cudaFreeHost(host));
}

static void streams_wait_for_events(void **state) {
    (void)state;
    cudaStream_t a = stream_new(cudaStreamNonBlocking), b = stream_new(cudaStreamNonBlocking);
    cudaEvent_t event;
    OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    float *x = zeros(), *y = zeros(), *host = pinned_new(N);
    for (int waits = 0; waits < 2; waits++) {
        launch_add(x, 1, N, a);
        OK(cudaEventRecord(event, a));
        launch_add(x, 100, N, a); /* behind the record: not waited for */
        if (waits) OK(cudaStreamWaitEvent(b, event, 0));
        OK(cudaMemcpyAsync(y, x, N * sizeof *x, cudaMemcpyDeviceToDevice, b));
        OK(cudaMemcpyAsync(host, y, N * sizeof *x, cudaMemcpyDeviceToHost, b));
        OK(cudaStreamSynchronize(b));
        assert_true(host[0] == (waits ? 102 : 0)); /* stale without the wait */
        GIVES(cudaErrorNotReady, cudaStreamQuery(a));
        OK(cudaStreamQuery(a));
    }
    launch_add(x, 1, N, a);
    OK(cudaEventRecord(event, a));
    GIVES(cudaErrorNotReady, cudaEventQuery(event));
    OK(cudaEventQuery(event));
    OK(cudaEventRecord(event, a));
    OK(cudaEventDestroy(event)); /* before the record is run */
    OK(cudaStreamDestroy(a)), OK(cudaStreamDestroy(b));
    OK(cudaFree(x)), OK(cudaFree(y)), OK(cudaFreeHost(host));
}

static void the_default_stream(void **state) {
    (void)state;
    cudaStream_t blocking = stream_new(cudaStreamDefault), apart = stream_new(cudaStreamNonBlocking);
    float *x = zeros(), *host = pinned_new(1);
    launch_add(x, 1, N, blocking);
    launch_add(x, 2, N, apart);
    OK(cudaMemcpyAsync(host, x, sizeof *x, cudaMemcpyDeviceToHost, NULL));
    OK(cudaStreamSynchronize(NULL));
    assert_true(*host == 1); /* what `apart` does is not waited for */
    launch_add(x, 4, N, NULL);
    OK(cudaMemcpyAsync(host, x, sizeof *x, cudaMemcpyDeviceToHost, blocking));
    OK(cudaStreamSynchronize(blocking));
    assert_true(*host == 5);
    OK(cudaStreamDestroy(blocking)), OK(cudaStreamDestroy(apart)), OK(cudaFree(x)), OK(cudaFreeHost(host));
}

static void elapsed_time(void **state) {
    (void)state;
    cudaEvent_t start, end;
    float ms = -1, *x = zeros();
    OK(cudaEventCreate(&start)), OK(cudaEventCreate(&end));
    GIVES(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, start, end));
    OK(cudaEventRecord(start, NULL));
    launch_add(x, 1, N, NULL);
    OK(cudaEventRecord(end, NULL));
    GIVES(cudaErrorNotReady, cudaEventElapsedTime(&ms, start, end));
    OK(cudaEventSynchronize(end));
    OK(cudaEventElapsedTime(&ms, start, end));
    assert_true(ms > 0);
    OK(cudaEventDestroy(start)), OK(cudaEventDestroy(end)), OK(cudaFree(x));
    (void)cudaGetLastError();
}

/* -- graphs -------------------------------------------------------------------------------------------------------- */

static void graphs(void **state) {
    (void)state;
    cudaStream_t s = stream_new(cudaStreamNonBlocking);
    float *x = zeros(), *host = pinned_new(N);
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    enum cudaStreamCaptureStatus status;
    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    GIVES(cudaErrorIllegalState, cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    launch_add(x, 1, N, s);
    OK(cudaMemcpyAsync(host, x, N * sizeof *x, cudaMemcpyDeviceToHost, s));
    OK(cudaStreamIsCapturing(s, &status));
    assert_int_equal(status, cudaStreamCaptureStatusActive);
    assert_true(hostcuda_capturing(s));
    OK(cudaStreamEndCapture(s, &graph));
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphDestroy(graph));
    OK(cudaStreamSynchronize(s));
    assert_true(device_float(x) == 0); /* captured, not done */
    for (int i = 0; i < 3; i++) OK(cudaGraphLaunch(exec, s));
    assert_true(isnan(host[0]));
    OK(cudaStreamSynchronize(s));
    assert_true(host[0] == 3 && host[N - 1] == 3);
    GIVES(cudaErrorIllegalState, cudaStreamEndCapture(s, &graph));
    OK(cudaGraphExecDestroy(exec)), OK(cudaStreamDestroy(s)), OK(cudaFree(x)), OK(cudaFreeHost(host));
    (void)cudaGetLastError();
}

/* a forks to b, which adds; a joins b (or not) and copies. */
static cudaError_t fork_and_join(float *y, float *x, bool join, cudaGraph_t *graph) {
    cudaStream_t a = stream_new(cudaStreamNonBlocking), b = stream_new(cudaStreamNonBlocking);
    cudaEvent_t forked, joined;
    OK(cudaEventCreateWithFlags(&forked, cudaEventDisableTiming));
    OK(cudaEventCreateWithFlags(&joined, cudaEventDisableTiming));
    OK(cudaStreamBeginCapture(a, cudaStreamCaptureModeThreadLocal));
    OK(cudaEventRecord(forked, a));
    OK(cudaStreamWaitEvent(b, forked, 0));
    launch_add(x, 5, N, b);
    assert_true(hostcuda_capturing(b));
    OK(cudaEventRecord(joined, b));
    if (join) OK(cudaStreamWaitEvent(a, joined, 0));
    OK(cudaMemcpyAsync(y, x, N * sizeof *x, cudaMemcpyDeviceToDevice, a));
    const cudaError_t error = cudaStreamEndCapture(a, graph);
    assert_false(hostcuda_capturing(b));
    GIVES(cudaErrorCapturedEvent, cudaEventSynchronize(joined));
    OK(cudaEventDestroy(forked)), OK(cudaEventDestroy(joined)), OK(cudaStreamDestroy(a)), OK(cudaStreamDestroy(b));
    (void)cudaGetLastError();
    return error;
}

static void captures_that_fork(void **state) {
    (void)state;
    float *x = zeros(), *y = zeros();
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    GIVES(cudaErrorStreamCaptureUnjoined, fork_and_join(y, x, false, &graph));
    assert_null(graph);
    OK(fork_and_join(y, x, true, &graph));
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphLaunch(exec, NULL));
    assert_true(device_float(y) == 5);
    OK(cudaGraphDestroy(graph)), OK(cudaGraphExecDestroy(exec)), OK(cudaFree(x)), OK(cudaFree(y));
}

/* What spoils a capture: each is answered at once, and the end of the capture says so, too. */
static void captures_that_fail(void **state) {
    (void)state;
    cudaStream_t s = stream_new(cudaStreamNonBlocking);
    float *x = zeros(), pageable[N] = {0};
    for (int what = 0; what < 5; what++) {
        cudaGraph_t graph;
        void *block = NULL;
        OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
        launch_add(x, 1, N, s);
        if (what == 0) GIVES(cudaErrorStreamCaptureUnsupported, cudaStreamSynchronize(s));
        if (what == 1) GIVES(cudaErrorStreamCaptureUnsupported, cudaMalloc(&block, 4));
        if (what == 2)
            GIVES(cudaErrorStreamCaptureUnsupported,
                  cudaMemcpyAsync(x, pageable, sizeof pageable, cudaMemcpyHostToDevice, s));
        if (what == 3) GIVES(cudaErrorStreamCaptureUnsupported, cudaMemcpy(x, pageable, 4, cudaMemcpyHostToDevice));
        if (what == 4) GIVES(cudaErrorStreamCaptureUnsupported, cudaDeviceSynchronize());
        launch_add(x, 1, N, s);
        GIVES(cudaErrorStreamCaptureInvalidated, cudaGetLastError());
        GIVES(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(s, &graph));
        assert_null(graph);
    }
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    cudaGraph_t graph;
    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    OK(cudaThreadExchangeStreamCaptureMode(&mode));
    OK(cudaFree(device_new(4))); /* a thread that says it knows what it does may */
    OK(cudaThreadExchangeStreamCaptureMode(&mode));
    OK(cudaStreamEndCapture(s, &graph));
    OK(cudaGraphDestroy(graph));
    assert_true(device_float(x) == 0);
    OK(cudaStreamDestroy(s)), OK(cudaFree(x));
    (void)cudaGetLastError();
}

/* -- threads ------------------------------------------------------------------------------------------------------- */

static void *work(void *result) {
    cudaStream_t s;
    void *x;
    float host[N];
    if (cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking) || cudaMalloc(&x, sizeof host)) return NULL;
    (void)cudaMemsetAsync(x, 0, sizeof host, s);
    for (int i = 0; i < 200; i++) {
        launch_add(x, 1, N, s);
        if (i % 10 == 0) (void)cudaStreamSynchronize(s);
    }
    (void)cudaMemcpyAsync(host, x, sizeof host, cudaMemcpyDeviceToHost, s);
    (void)cudaStreamDestroy(s), (void)cudaFree(x);
    *(float *)result = host[N - 1];
    return NULL;
}

static void several_threads(void **state) {
    (void)state;
    pthread_t threads[4];
    float results[4] = {0};
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, work, &results[i]), 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < 4; i++) assert_true(results[i] == 200);
}

/* -- misuse -------------------------------------------------------------------------------------------------------- */

static void host_reads(void) {
    volatile float *x = device_new(64);
    exit(x[0] > 0);
}
static void host_reads_after_work(void) {
    float *x = zeros();
    launch_add(x, 1, N, NULL);
    OK(cudaDeviceSynchronize());
    exit(*(volatile float *)x > 0);
}
static void host_reads_freed(void) {
    float *x = zeros();
    OK(cudaFree(x));
    exit(*(volatile float *)x > 0);
}
static void copies_too_much(void) {
    float host[N + 1];
    cudaMemcpy(host, zeros(), sizeof host, cudaMemcpyDeviceToHost);
}
static void copies_freed(void) {
    float host[N], *x = zeros();
    OK(cudaFree(x));
    cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost);
}
static void copies_onto_itself(void) {
    float *x = zeros();
    cudaMemcpy(x, x + 1, 8, cudaMemcpyDeviceToDevice);
}
static void fills_too_much(void) {
    cudaMemset(zeros(), 0, (N + 1) * sizeof(float));
}
static void frees_middle(void) {
    cudaFree(zeros() + 4);
}
static void frees_twice(void) {
    float *x = zeros();
    OK(cudaFree(x));
    cudaFree(x);
}
static void uses_destroyed(void) {
    cudaStream_t s = stream_new(0);
    OK(cudaStreamDestroy(s));
    cudaStreamSynchronize(s);
}
static void writes_behind_pinned(void) {
    volatile float *host = pinned_new(4);
    host[4] = 1;
}
static void leaks(void) {
    setenv("SPARSETRAIN_HOSTCUDA_LEAKS", "1", 1);
    (void)zeros();
}

/* What is forked off may ask no more, not even how many devices there are. */
static void asks(void) {
    int count;
    cudaGetDeviceCount(&count);
}
static void a_fork_is_noticed(void **state) {
    (void)state;
    asks();
    setenv("SPARSETRAIN_HOSTCUDA_FORK", "0", 1);
    dies(asks, "forked off");
    unsetenv("SPARSETRAIN_HOSTCUDA_FORK");
}

static void misuse_is_found(void **state) {
    (void)state;
    static char said[1 << 16];
    dies(host_reads, "the host follows a pointer to device memory");
    dies(host_reads_after_work, "the host follows a pointer to device memory");
    dies(host_reads_freed, "the host follows a pointer to device memory");
    dies(copies_too_much, "source: 404 bytes at ");
    dies(copies_freed, "beside all live blocks");
    dies(copies_onto_itself, "source and destination overlap");
    dies(fills_too_much, "end 4 bytes behind a block of 400 bytes");
    dies(frees_middle, "not the start of a live block");
    dies(frees_twice, "not the start of a live block");
    dies(uses_destroyed, "is no stream");
    assert_int_not_equal(child(writes_behind_pinned, said, sizeof said), 0);
    const int status = child(leaks, said, sizeof said);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 97);
    assert_non_null(strstr(said, "400 bytes of device memory"));
}

int main(void) {
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_and_errors),
        cmocka_unit_test(device_memory),
        cmocka_unit_test(copies_wait_to_be_waited_for),
        cmocka_unit_test(streams_wait_for_events),
        cmocka_unit_test(the_default_stream),
        cmocka_unit_test(elapsed_time),
        cmocka_unit_test(graphs),
        cmocka_unit_test(captures_that_fork),
        cmocka_unit_test(captures_that_fail),
        cmocka_unit_test(several_threads),
        cmocka_unit_test(a_fork_is_noticed),
        cmocka_unit_test(misuse_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
