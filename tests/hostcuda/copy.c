/* copy.c: copies and fills. What involves pageable host memory is done at once, after all earlier work of its stream,
 * which is what the real library amounts to; everything else is enqueued. */
#include "tests/hostcuda/internal.h"

#include <stdint.h>
#include <string.h>

struct copy {
    void *to;
    const void *from;
    size_t bytes;
};

static void run_copy(const void *argument) {
    const struct copy *c = argument;
    memcpy(c->to, c->from, c->bytes);
    hostcuda_count_copy(c->to, c->from, c->bytes);
}

/* Does `kind` say what the pointers say? */
static bool direction_fits(enum cudaMemcpyKind kind, enum hostcuda_place to, enum hostcuda_place from) {
    const bool to_device = to == HOSTCUDA_DEVICE, from_device = from == HOSTCUDA_DEVICE;
    switch (kind) {
    case cudaMemcpyHostToHost:
        return !to_device && !from_device;
    case cudaMemcpyHostToDevice:
        return to_device && !from_device;
    case cudaMemcpyDeviceToHost:
        return !to_device && from_device;
    case cudaMemcpyDeviceToDevice:
        return to_device && from_device;
    case cudaMemcpyDefault:
        return true;
    }
    return false;
}

static void check_range(const char *which, const void *p, size_t bytes) {
    const char *wrong = hostcuda_place_of(p) == HOSTCUDA_PAGEABLE ? NULL : hostcuda_range(p, bytes);
    if (wrong) hostcuda_complain("cudaMemcpy: %s: %s", which, wrong);
}

/* The item of a copy between device memory and pinned memory. */
static struct hostcuda_item *copy_item(const struct copy *c) {
    struct hostcuda_item *item = hostcuda_item_new(run_copy, c, sizeof *c);
    if (hostcuda_place_of(c->from) == HOSTCUDA_PINNED) item->reads = c->from, item->reads_bytes = c->bytes;
    if (hostcuda_place_of(c->to) == HOSTCUDA_PINNED) item->writes = c->to, item->writes_bytes = c->bytes;
    return item;
}

static cudaError_t copy_pageable(cudaStream_t s, const struct copy *c) {
    if (s->capture) {
        hostcuda_capture_invalidate(s->capture);
        return cudaErrorStreamCaptureUnsupported;
    }
    cudaError_t error = cudaStreamSynchronize(s->legacy ? NULL : s);
    if (error != cudaSuccess) return error;
    hostcuda_memory_open();
    run_copy(c);
    hostcuda_memory_close();
    return cudaSuccess;
}

static cudaError_t copy_enqueue(cudaStream_t s, const struct copy *c, enum cudaMemcpyKind kind) {
    const enum hostcuda_place to = hostcuda_place_of(c->to), from = hostcuda_place_of(c->from);
    if (!direction_fits(kind, to, from)) return cudaErrorInvalidValue;
    check_range("destination", c->to, c->bytes);
    check_range("source", c->from, c->bytes);
    if ((uintptr_t)c->to < (uintptr_t)c->from + c->bytes && (uintptr_t)c->from < (uintptr_t)c->to + c->bytes)
        hostcuda_complain("cudaMemcpy: source and destination overlap");
    cudaError_t error = hostcuda_may_append(s);
    if (error != cudaSuccess) return error;
    hostcuda_count(HOSTCUDA_GIVEN, 1);
    if (to == HOSTCUDA_PAGEABLE || from == HOSTCUDA_PAGEABLE) return copy_pageable(s, c); /* which waits */
    hostcuda_append(s, copy_item(c));
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream) {
    if (bytes == 0) return cudaSuccess;
    hostcuda_lock();
    const cudaError_t error = copy_enqueue(hostcuda_stream(stream), &(struct copy){to, from, bytes}, kind);
    hostcuda_unlock();
    return hostcuda_answer(error);
}

/* Through the default stream; the host waits. */
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
    if (bytes == 0) return cudaSuccess;
    hostcuda_lock();
    cudaError_t error = hostcuda_unsafe_call();
    if (error == cudaSuccess) error = copy_enqueue(hostcuda_stream(NULL), &(struct copy){to, from, bytes}, kind);
    if (error == cudaSuccess) error = cudaStreamSynchronize(NULL);
    hostcuda_unlock();
    return hostcuda_answer(error);
}

struct fill {
    void *to;
    int value;
    size_t bytes;
};

static void run_fill(const void *argument) {
    const struct fill *f = argument;
    memset(f->to, f->value, f->bytes);
    hostcuda_count(HOSTCUDA_FILLS, 1);
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream) {
    if (bytes == 0) return cudaSuccess;
    const char *wrong = hostcuda_range(to, bytes);
    if (wrong) hostcuda_complain("cudaMemset: %s", wrong);
    hostcuda_lock();
    cudaStream_t s = hostcuda_stream(stream);
    const cudaError_t error = hostcuda_may_append(s);
    hostcuda_count(HOSTCUDA_GIVEN, 1);
    if (error == cudaSuccess)
        hostcuda_append(s, hostcuda_item_new(run_fill, &(struct fill){to, value, bytes}, sizeof(struct fill)));
    hostcuda_unlock();
    return hostcuda_answer(error);
}

/* Into device memory it does not wait, as the real one does not. */
cudaError_t cudaMemset(void *to, int value, size_t bytes) {
    return cudaMemsetAsync(to, value, bytes, NULL);
}
