/* capture.c: capture of streams into graphs, and their launch.
 *
 * Idea: a capture has a lane per stream that takes part: the one that began it, and those that joined it by waiting
 * for an event recorded in it. When it ends, the items are put in one order by the rule that streams are run by: the
 * first lane as far as it goes, another one only where it is waited for. So a forgotten wait between lanes is as
 * visible as one between streams; and what has not come up by then was never joined. A launch enqueues copies. */
#include "tests/hostcuda/internal.h"

#include <pthread.h>
#include <stdlib.h>

enum { MAX_LANES = 32 };

struct hostcuda_capture {
    struct hostcuda_capture *next; /* of all captures under way */
    uint64_t id;
    enum cudaStreamCaptureMode mode;
    pthread_t thread;
    cudaStream_t origin;
    bool valid;
    unsigned lanes;
    struct hostcuda_item *first[MAX_LANES], **end[MAX_LANES];
    uint64_t seq; /* of the last item */
};

struct CUgraph_st {
    struct hostcuda_item *first;
};
struct CUgraphExec_st {
    struct hostcuda_item *first;
};

static struct hostcuda_capture *captures;
static uint64_t last_id;
static _Thread_local enum cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

/* -- lists of items ------------------------------------------------------------------------------------------------ */

static void items_free(struct hostcuda_item *item) {
    while (item) {
        struct hostcuda_item *next = item->next;
        free(item);
        item = next;
    }
}

static struct hostcuda_item *items_copy(const struct hostcuda_item *item) {
    struct hostcuda_item *first = NULL, **end = &first;
    for (; item; item = item->next) {
        *end = hostcuda_item_copy(item);
        end = &(*end)->next;
    }
    return first;
}

/* -- a capture ----------------------------------------------------------------------------------------------------- */

bool hostcuda_capture_valid(const struct hostcuda_capture *c) {
    return c->valid;
}
void hostcuda_capture_invalidate(struct hostcuda_capture *c) {
    c->valid = false;
}

void hostcuda_capture_append(struct hostcuda_capture *c, unsigned lane, struct hostcuda_item *item) {
    item->lane = lane;
    item->seq = ++c->seq;
    *c->end[lane] = item;
    c->end[lane] = &item->next;
}

static void add_lane(struct hostcuda_capture *c, cudaStream_t s) {
    if (c->lanes == MAX_LANES) hostcuda_complain("more than %d streams in one capture", MAX_LANES);
    s->capture = c;
    s->lane = c->lanes++;
    c->end[s->lane] = &c->first[s->lane];
}

void hostcuda_capture_record(cudaStream_t s, cudaEvent_t event) {
    event->recorded = event->captured = true;
    event->stream = s->capture->id;
    event->lane = s->lane;
    event->seq = s->capture->seq;
}

/* A stream waits for an event, and one of them at least is in a capture. */
cudaError_t hostcuda_capture_wait(cudaStream_t s, cudaEvent_t event) {
    struct hostcuda_capture *c = captures;
    while (c && !(event->recorded && event->captured && c->id == event->stream)) c = c->next;
    if (s->capture && s->capture != c) {
        hostcuda_capture_invalidate(s->capture);
        if (c) hostcuda_capture_invalidate(c);
        return c ? cudaErrorStreamCaptureMerge : cudaErrorStreamCaptureIsolation;
    }
    if (!c) return cudaErrorCapturedEvent;
    if (s->legacy) {
        hostcuda_capture_invalidate(c);
        return cudaErrorStreamCaptureImplicit;
    }
    if (!s->capture) add_lane(c, s);
    struct hostcuda_item *item = hostcuda_item_new(NULL, NULL, 0);
    item->wait_stream = event->lane + 1; /* a lane, here; 0 is no wait */
    item->wait_seq = event->seq;
    hostcuda_capture_append(c, s->lane, item);
    return cudaSuccess;
}

/* What a thread may not do while a capture is under way: CUDA Runtime API, cudaThreadExchangeStreamCaptureMode. */
cudaError_t hostcuda_unsafe_call(void) {
    cudaError_t error = cudaSuccess;
    for (struct hostcuda_capture *c = captures; c; c = c->next) {
        const bool own = pthread_equal(c->thread, pthread_self()) && c->mode != cudaStreamCaptureModeRelaxed;
        const bool other = thread_mode == cudaStreamCaptureModeGlobal && c->mode == cudaStreamCaptureModeGlobal;
        if (thread_mode == cudaStreamCaptureModeRelaxed || (!own && !other)) continue;
        hostcuda_capture_invalidate(c);
        error = cudaErrorStreamCaptureUnsupported;
    }
    return error;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode) {
    const enum cudaStreamCaptureMode before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return cudaSuccess;
}

bool hostcuda_capturing(cudaStream_t stream) {
    hostcuda_lock();
    const bool capturing = hostcuda_stream(stream)->capture != NULL;
    hostcuda_unlock();
    return capturing;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status) {
    hostcuda_lock();
    const struct hostcuda_capture *c = hostcuda_stream(stream)->capture;
    *status = !c         ? cudaStreamCaptureStatusNone
              : c->valid ? cudaStreamCaptureStatusActive
                         : cudaStreamCaptureStatusInvalidated;
    hostcuda_unlock();
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
    hostcuda_lock();
    cudaStream_t s = hostcuda_stream(stream);
    cudaError_t error = cudaSuccess;
    if (s->legacy || hostcuda_fails(__func__)) {
        error = cudaErrorStreamCaptureUnsupported;
    } else if (s->capture) {
        error = cudaErrorIllegalState;
    } else {
        struct hostcuda_capture *c = calloc(1, sizeof *c);
        if (!c) hostcuda_complain("no memory for a capture");
        c->id = ++last_id;
        c->mode = mode;
        c->thread = pthread_self();
        c->origin = s;
        c->valid = true;
        c->next = captures;
        captures = c;
        add_lane(c, s);
    }
    hostcuda_unlock();
    return hostcuda_answer(error);
}

/* -- the end of a capture: its graph ------------------------------------------------------------------------------- */

struct order {
    struct hostcuda_capture *from;
    struct hostcuda_item **end;
};

/* Moves the items of the lane up to seq, and what they wait for, to the end of the order. */
static void put_in_order(struct order *o, unsigned lane, uint64_t seq) {
    struct hostcuda_item **first = &o->from->first[lane];
    while (*first && (*first)->seq <= seq) {
        struct hostcuda_item *item = *first;
        *first = item->next;
        item->next = NULL;
        if (item->wait_stream) put_in_order(o, (unsigned)item->wait_stream - 1, item->wait_seq);
        if (!item->run) {
            free(item);
            continue;
        }
        *o->end = item;
        o->end = &item->next;
    }
}

static cudaError_t finish(struct hostcuda_capture *c, cudaGraph_t *graph) {
    struct hostcuda_item *items = NULL;
    struct order o = {c, &items};
    put_in_order(&o, 0, UINT64_MAX);
    bool joined = true;
    for (unsigned lane = 0; lane < c->lanes; lane++) {
        joined = joined && !c->first[lane];
        items_free(c->first[lane]);
    }
    if (!c->valid || !joined) {
        items_free(items);
        return c->valid ? cudaErrorStreamCaptureUnjoined : cudaErrorStreamCaptureInvalidated;
    }
    *graph = calloc(1, sizeof **graph);
    if (!*graph) hostcuda_complain("no memory for a graph");
    (*graph)->first = items;
    return cudaSuccess;
}

static void remove_capture(struct hostcuda_capture *c) {
    for (cudaStream_t s = hostcuda_next_stream(NULL); s; s = hostcuda_next_stream(s))
        if (s->capture == c) s->capture = NULL;
    struct hostcuda_capture **at = &captures;
    while (*at != c) at = &(*at)->next;
    *at = c->next;
    free(c);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
    hostcuda_lock();
    cudaStream_t s = hostcuda_stream(stream);
    struct hostcuda_capture *c = s->capture;
    cudaError_t error;
    *graph = NULL;
    if (!c) {
        error = cudaErrorIllegalState;
    } else if (c->origin != s) {
        hostcuda_capture_invalidate(c);
        error = cudaErrorStreamCaptureUnmatched;
    } else if (c->mode != cudaStreamCaptureModeRelaxed && !pthread_equal(c->thread, pthread_self())) {
        error = cudaErrorStreamCaptureWrongThread;
    } else {
        error = finish(c, graph);
        remove_capture(c);
    }
    hostcuda_unlock();
    return hostcuda_answer(error);
}

/* -- graphs -------------------------------------------------------------------------------------------------------- */

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags) {
    (void)flags;
    if (hostcuda_fails(__func__)) return hostcuda_answer(cudaErrorMemoryAllocation);
    hostcuda_lock();
    *exec = calloc(1, sizeof **exec);
    if (!*exec) hostcuda_complain("no memory for a graph");
    (*exec)->first = items_copy(graph->first);
    hostcuda_unlock();
    return cudaSuccess;
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags) {
    return cudaGraphInstantiate(exec, graph, flags);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
    hostcuda_count(HOSTCUDA_GIVEN, 1);
    hostcuda_lock();
    cudaStream_t s = hostcuda_stream(stream);
    const cudaError_t error = hostcuda_may_append(s);
    for (const struct hostcuda_item *i = error == cudaSuccess ? exec->first : NULL; i; i = i->next)
        hostcuda_append(s, hostcuda_item_copy(i));
    hostcuda_unlock();
    return hostcuda_answer(error);
}

/* Launches hold copies, so that nothing has to be waited for. */
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    items_free(graph->first);
    free(graph);
    return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
    items_free(exec->first);
    free(exec);
    return cudaSuccess;
}
