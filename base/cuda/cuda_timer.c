/* cuda_timer.c: how long the GPU takes for each call that it is given: an event behind every one, while somebody wants
 * to know. What a call takes is the time from the event before to its own.
 *
 * A small kernel takes the GPU less time than the host needs to launch the next one, so the times measured would be
 * the host's. Therefore a host function holds up the stream until all calls are queued. It gives up after a short
 * time, since one of the calls may itself wait for the stream. */
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/cuda/cuda_device.h"
#include "base/device/device.h"
#include "base/error.h"

enum { MARKS_MAX = 1 << 15, HOLD_MS = 100 };

static struct {
    bool on;
    atomic_bool held;
    const char *place, *pass;
    cudaEvent_t event[MARKS_MAX]; /* the first `made` are there */
    size_t made, marks;
    struct device_launch launch[MARKS_MAX];
} timer = {.place = "", .pass = ""};

bool cuda_timer_on(void) {
    return timer.on;
}

/* In a thread of the driver. */
static void CUDART_CB hold(void *unused) {
    const struct timespec a_while = {.tv_nsec = 20000};
    struct timespec now;
    (void)unused;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const long long begin = now.tv_sec * 1000LL + now.tv_nsec / 1000000;
    while (atomic_load(&timer.held)) {
        nanosleep(&a_while, NULL);
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec * 1000LL + now.tv_nsec / 1000000 - begin >= HOLD_MS) return;
    }
}

/* "(walk<2, true>)": walk; "cudnnPoolingForward(p->backend, ...)": cudnnPoolingForward */
static void name_call(char *name, size_t room, const char *call) {
    call += strspn(call, "(");
    size_t n = strcspn(call, "(<,");
    if (n >= room) n = room - 1;
    memcpy(name, call, n);
    name[n] = 0;
}

static void record(const char *call) {
    if (timer.marks == MARKS_MAX) die("more than %d calls are timed at once", MARKS_MAX);
    const size_t i = timer.marks++;
    if (i == timer.made) CUDA_CALL(cudaEventCreate(&timer.event[timer.made++]));
    timer.launch[i] = (struct device_launch){.place = timer.place, .pass = timer.pass};
    name_call(timer.launch[i].call, sizeof timer.launch[i].call, call);
    CUDA_CALL(cudaEventRecord(timer.event[i], cuda_stream()));
}

void cuda_timer_mark(const char *call) {
    if (timer.on) record(call);
}

static void begin(void) {
    cuda_wait();
    timer.marks = 0;
    atomic_store(&timer.held, true);
    CUDA_CALL(cudaLaunchHostFunc(cuda_stream(), hold, NULL));
    record("");
    record(""); /* what nothing takes */
    timer.on = true;
}

static void place(const char *place, const char *pass) {
    timer.place = place;
    timer.pass = pass;
}

static double between(size_t i) {
    float ms;
    CUDA_CALL(cudaEventElapsedTime(&ms, timer.event[i - 1], timer.event[i]));
    return ms / 1e3;
}

static size_t end(const struct device_launch **launch, double *none) {
    timer.on = false;
    atomic_store(&timer.held, false);
    cuda_wait();
    *none = between(1);
    for (size_t i = 2; i < timer.marks; i++) timer.launch[i].seconds = between(i);
    *launch = timer.launch + 2;
    return timer.marks - 2;
}

const struct device_timer_ops *cuda_timer(void) {
    static const struct device_timer_ops ops = {begin, place, end};
    return &ops;
}
