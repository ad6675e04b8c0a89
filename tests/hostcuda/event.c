/* event.c: events: marks in streams that other streams and the host wait for. */
#include "tests/hostcuda/internal.h"

#include <stdlib.h>

static const double tick = 1e-3; /* ms between an event and the next, whatever is between them */
static double now;               /* ms; under the lock, as all work that runs */

void hostcuda_took(double ms) {
    now += ms;
}

static void drop(cudaEvent_t event) {
    if (--event->references == 0) free(event);
}

struct record {
    cudaEvent_t event;
};

static void run_record(const void *argument) {
    cudaEvent_t event = ((const struct record *)argument)->event;
    now += tick;
    event->ms = now;
    drop(event);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
    if (hostcuda_devices() == 0) return hostcuda_answer(cudaErrorNoDevice);
    *event = calloc(1, sizeof **event);
    if (!*event) hostcuda_complain("no memory for an event");
    (*event)->references = 1;
    (*event)->flags = flags;
    return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t *event) {
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    hostcuda_lock();
    drop(event);
    hostcuda_unlock();
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    hostcuda_lock();
    cudaStream_t s = hostcuda_stream(stream);
    cudaError_t error = hostcuda_may_append(s);
    if (error == cudaSuccess && s->capture) {
        hostcuda_capture_record(s, event);
    } else if (error == cudaSuccess) {
        struct hostcuda_item *item = hostcuda_item_new(run_record, &(struct record){event}, sizeof(struct record));
        event->references++;
        hostcuda_append(s, item);
        event->recorded = true;
        event->captured = false;
        event->stream = s->id;
        event->seq = item->seq;
    }
    hostcuda_unlock();
    return hostcuda_answer(error);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
    if (flags != cudaEventWaitDefault) return hostcuda_answer(cudaErrorInvalidValue);
    hostcuda_lock();
    cudaStream_t s = hostcuda_stream(stream);
    cudaError_t error = hostcuda_may_append(s);
    if (error == cudaSuccess && (s->capture || (event->recorded && event->captured))) {
        error = hostcuda_capture_wait(s, event);
    } else if (error == cudaSuccess && event->recorded) {
        struct hostcuda_item *item = hostcuda_item_new(NULL, NULL, 0);
        item->wait_stream = event->stream;
        item->wait_seq = event->seq;
        hostcuda_append(s, item);
    }
    hostcuda_unlock();
    return hostcuda_answer(error);
}

static cudaError_t event_wait(cudaEvent_t event, bool query) {
    cudaError_t error = cudaSuccess;
    hostcuda_lock();
    if (event->recorded && event->captured) {
        error = cudaErrorCapturedEvent;
    } else if (event->recorded) {
        cudaStream_t s = hostcuda_stream_by_id(event->stream);
        if (query && hostcuda_pending(s, event->seq)) error = cudaErrorNotReady;
        if (!query && hostcuda_pending(s, event->seq)) hostcuda_count(HOSTCUDA_WAITS, 1);
        hostcuda_run_until(s, event->seq);
    }
    hostcuda_unlock();
    return hostcuda_answer(error);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    return event_wait(event, false);
}
/* Not ready while there is work before it, which is done meanwhile: the next time it is ready. */
cudaError_t cudaEventQuery(cudaEvent_t event) {
    return event_wait(event, true);
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end) {
    cudaError_t error = cudaSuccess;
    hostcuda_lock();
    if (!start->recorded || !end->recorded || start->captured || end->captured ||
        (start->flags | end->flags) & cudaEventDisableTiming)
        error = cudaErrorInvalidResourceHandle;
    else if (hostcuda_pending(hostcuda_stream_by_id(start->stream), start->seq) ||
             hostcuda_pending(hostcuda_stream_by_id(end->stream), end->seq))
        error = cudaErrorNotReady;
    else
        *ms = (float)(end->ms - start->ms);
    hostcuda_unlock();
    return hostcuda_answer(error);
}
