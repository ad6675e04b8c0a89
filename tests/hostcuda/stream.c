/* stream.c: streams are queues of work that is done when somebody waits for it, and no earlier.
 *
 * Idea: every item enqueued in the process has a number, rising by time. What an item must wait for (an event of
 * another stream, the default stream's earlier work) is a stream and a number smaller than its own, so "run this
 * stream up to that number" can call itself for what it meets, and ends. Work that nobody waits for stays undone: a
 * forgotten wait gives stale data each time, not once in a while. */
#include "tests/hostcuda/internal.h"

#include <stdlib.h>
#include <string.h>

static cudaStream_t streams; /* all, the default streams of the devices too */
static uint64_t last_id, last_seq;

/* -- items --------------------------------------------------------------------------------------------------------- */

struct hostcuda_item *hostcuda_item_new(void (*run)(const void *), const void *argument, size_t bytes) {
    struct hostcuda_item *item = NULL;
    if (posix_memalign((void **)&item, 16, sizeof *item + bytes)) hostcuda_complain("no memory for an item");
    memset(item, 0, sizeof *item);
    item->run = run;
    item->bytes = bytes;
    if (bytes) memcpy(item->argument, argument, bytes);
    return item;
}

struct hostcuda_item *hostcuda_item_copy(const struct hostcuda_item *item) {
    struct hostcuda_item *copy = hostcuda_item_new(item->run, item->argument, item->bytes);
    copy->reads = item->reads, copy->reads_bytes = item->reads_bytes;
    copy->writes = item->writes, copy->writes_bytes = item->writes_bytes;
    copy->of_library = item->of_library;
    return copy;
}

/* -- streams ------------------------------------------------------------------------------------------------------- */

static cudaStream_t stream_new(int device, bool blocking, bool legacy) {
    cudaStream_t s = calloc(1, sizeof *s);
    if (!s) hostcuda_complain("no memory for a stream");
    s->id = ++last_id;
    s->device = device;
    s->blocking = blocking;
    s->legacy = legacy;
    s->end = &s->first;
    s->next = streams;
    streams = s;
    return s;
}

static cudaStream_t legacy_stream(int device) {
    for (cudaStream_t s = streams; s; s = s->next)
        if (s->legacy && s->device == device) return s;
    return stream_new(device, false, true);
}

cudaStream_t hostcuda_stream_by_id(uint64_t id) {
    cudaStream_t s = streams;
    while (s && s->id != id) s = s->next;
    return s;
}

cudaStream_t hostcuda_next_stream(cudaStream_t s) {
    return s ? s->next : streams;
}

cudaStream_t hostcuda_stream(cudaStream_t handle) {
    if (handle == NULL || handle == cudaStreamLegacy) return legacy_stream(hostcuda_device());
    for (cudaStream_t s = streams; s; s = s->next)
        if (s == handle) return s;
    hostcuda_complain("%p is no stream (destroyed?)", (void *)handle);
}

/* -- enqueuing ----------------------------------------------------------------------------------------------------- */

cudaError_t hostcuda_may_append(cudaStream_t s) {
    if (s->capture) return hostcuda_capture_valid(s->capture) ? cudaSuccess : cudaErrorStreamCaptureInvalidated;
    cudaError_t error = cudaSuccess;
    for (cudaStream_t t = s->legacy ? streams : NULL; t; t = t->next)
        if (t->capture && t->blocking && t->device == s->device) {
            hostcuda_capture_invalidate(t->capture);
            error = cudaErrorStreamCaptureImplicit;
        }
    return error;
}

static bool overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes) {
    const char *x = a, *y = b;
    return a_bytes && b_bytes && x < y + b_bytes && y < x + a_bytes;
}

/* What the item will write into host memory is spoilt now, so that who reads it too early sees it; but not when
 * earlier work has yet to read it. */
static void spoil(const struct hostcuda_item *item) {
    if (!item->writes_bytes) return;
    for (cudaStream_t s = streams; s; s = s->next)
        for (const struct hostcuda_item *i = s->first; i; i = i->next)
            if (overlap(i->reads, i->reads_bytes, item->writes, item->writes_bytes)) return;
    memset(item->writes, HOSTCUDA_POISON, item->writes_bytes);
}

void hostcuda_append(cudaStream_t s, struct hostcuda_item *item) {
    if (s->capture) {
        hostcuda_capture_append(s->capture, s->lane, item);
        return;
    }
    spoil(item);
    item->seq = ++last_seq;
    *s->end = item;
    s->end = &item->next;
}

void hostcuda_enqueue(cudaStream_t stream, void (*run)(const void *argument), const void *argument, size_t bytes) {
    hostcuda_lock();
    cudaStream_t s = hostcuda_stream(stream);
    const cudaError_t error = hostcuda_may_append(s);
    if (error == cudaErrorStreamCaptureImplicit)
        hostcuda_complain("work for the default stream while a stream that it waits for is captured");
    hostcuda_count(HOSTCUDA_GIVEN, 1);
    if (error == cudaSuccess) {
        struct hostcuda_item *item = hostcuda_item_new(run, argument, bytes);
        item->of_library = true;
        hostcuda_append(s, item);
    }
    hostcuda_unlock();
}

/* -- running ------------------------------------------------------------------------------------------------------- */

bool hostcuda_pending(cudaStream_t s, uint64_t seq) {
    return s && s->first && s->first->seq <= seq;
}

/* The default stream and the blocking streams of a device wait for each other's earlier work. */
static void run_implicit(cudaStream_t s, uint64_t seq) {
    if (!s->legacy && !s->blocking) return;
    for (cudaStream_t t = streams; t; t = t->next)
        if (t->device == s->device && (s->legacy ? t->blocking : t->legacy)) hostcuda_run_until(t, seq);
}

void hostcuda_run_until(cudaStream_t s, uint64_t seq) {
    if (!hostcuda_pending(s, seq)) return;
    hostcuda_memory_open();
    while (hostcuda_pending(s, seq)) {
        struct hostcuda_item *item = s->first;
        s->first = item->next;
        if (!s->first) s->end = &s->first;
        run_implicit(s, item->seq);
        if (item->wait_stream) hostcuda_run_until(hostcuda_stream_by_id(item->wait_stream), item->wait_seq);
        if (item->run) item->run(item->argument);
        if (item->of_library) hostcuda_count(HOSTCUDA_LIBRARY_CALLS, 1);
        free(item);
    }
    hostcuda_memory_close();
}

void hostcuda_run_all(void) {
    for (cudaStream_t s = streams; s; s = s->next) hostcuda_run_until(s, UINT64_MAX);
}

/* -- streams, as the program sees them ----------------------------------------------------------------------------- */

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority) {
    (void)priority;
    if (hostcuda_devices() == 0) return hostcuda_answer(cudaErrorNoDevice);
    if (flags & ~(unsigned)cudaStreamNonBlocking) return hostcuda_answer(cudaErrorInvalidValue);
    hostcuda_lock();
    *stream = stream_new(hostcuda_device(), !(flags & cudaStreamNonBlocking), false);
    hostcuda_unlock();
    return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
    return cudaStreamCreateWithPriority(stream, flags, 0);
}
cudaError_t cudaStreamCreate(cudaStream_t *stream) {
    return cudaStreamCreateWithPriority(stream, 0, 0);
}

/* The real one lets the work end by itself; here it is done now. */
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    hostcuda_lock();
    cudaStream_t s = hostcuda_stream(stream);
    if (s->legacy) hostcuda_complain("cudaStreamDestroy of the default stream");
    if (s->capture) hostcuda_complain("cudaStreamDestroy of a stream that is captured");
    hostcuda_run_until(s, UINT64_MAX);
    cudaStream_t *at = &streams;
    while (*at != s) at = &(*at)->next;
    *at = s->next;
    free(s);
    hostcuda_unlock();
    return cudaSuccess;
}

static cudaError_t stream_wait(cudaStream_t stream, bool query) {
    hostcuda_lock();
    cudaStream_t s = hostcuda_stream(stream);
    cudaError_t error = cudaSuccess;
    if (s->capture) {
        hostcuda_capture_invalidate(s->capture);
        error = cudaErrorStreamCaptureUnsupported;
    } else {
        error = hostcuda_may_append(s);
        if (error == cudaSuccess && query && hostcuda_pending(s, UINT64_MAX)) error = cudaErrorNotReady;
        if (!query && hostcuda_pending(s, UINT64_MAX)) hostcuda_count(HOSTCUDA_WAITS, 1);
        if (s->legacy) run_implicit(s, last_seq);
        hostcuda_run_until(s, last_seq);
    }
    hostcuda_unlock();
    return hostcuda_answer(error);
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    return stream_wait(stream, false);
}
/* Not ready while there is work, which is done meanwhile: the next time it is ready. */
cudaError_t cudaStreamQuery(cudaStream_t stream) {
    return stream_wait(stream, true);
}

cudaError_t cudaDeviceSynchronize(void) {
    if (hostcuda_devices() == 0) return hostcuda_answer(cudaErrorNoDevice);
    hostcuda_count(HOSTCUDA_WAITS, 1);
    hostcuda_lock();
    cudaError_t error = cudaSuccess;
    for (cudaStream_t s = streams; s; s = s->next)
        if (s->capture && s->device == hostcuda_device()) {
            hostcuda_capture_invalidate(s->capture);
            error = cudaErrorStreamCaptureUnsupported;
        }
    for (cudaStream_t s = error == cudaSuccess ? streams : NULL; s; s = s->next)
        if (s->device == hostcuda_device()) hostcuda_run_until(s, last_seq);
    hostcuda_unlock();
    return hostcuda_answer(error);
}

struct host_function {
    cudaHostFn_t run;
    void *data;
};
static void run_host_function(const void *argument) {
    const struct host_function *f = argument;
    f->run(f->data);
}
/* The real one comes in a thread of the driver. Here whoever waits for the stream runs it, so that one which waits for
 * that thread waits in vain. */
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t run, void *data) {
    hostcuda_lock();
    cudaStream_t s = hostcuda_stream(stream);
    const cudaError_t error = hostcuda_may_append(s);
    if (error == cudaSuccess)
        hostcuda_append(
            s, hostcuda_item_new(run_host_function, &(struct host_function){run, data}, sizeof(struct host_function)));
    hostcuda_unlock();
    return hostcuda_answer(error);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    if (least) *least = 0;
    if (greatest) *greatest = -5;
    return cudaSuccess;
}
