/* cuda_caller.c: a GPU on which somebody else works in this process, too (device_caller_ops): his current GPU, his
 * streams. All of ours stays on the one stream of cuda_device.h: events order the two. */
#include "base/cuda/cuda_device.h"
#include "base/device/device.h"

static bool choose_current(struct err *why) {
    int current;
    CUDA_CALL(cudaGetDevice(&current));
    return cuda_take(current, why);
}

/* Neither dies: where a GPU has gone, what comes between them says so. */
static int enter(void) {
    int before = cuda_number();
    (void)cudaGetDevice(&before);
    if (before != cuda_number()) (void)cudaSetDevice(cuda_number());
    return before;
}
static void leave(int before) {
    if (before != cuda_number()) (void)cudaSetDevice(before);
}

/* `to` waits for all that is on `from` now. */
static bool order(cudaStream_t from, cudaStream_t to, struct err *why) {
    static cudaEvent_t event; /* a wait keeps what was recorded last before it */
    cuda_lock();
    cudaError_t error = event ? cudaSuccess : cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    if (error == cudaSuccess) error = cudaEventRecord(event, from);
    if (error == cudaSuccess) error = cudaStreamWaitEvent(to, event, 0);
    cuda_unlock();
    if (error != cudaErrorInvalidResourceHandle) cuda_check(error, "the way from stream to stream", __FILE__, __LINE__);
    if (error == cudaSuccess) return true;
    (void)cudaGetLastError();
    return err_set(why, "this is no stream of GPU %d, on which the exchange is", cuda_number());
}

/* Work that the host waits for cannot be part of a graph. */
static bool is_recorded(cudaStream_t stream) {
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    if (cudaStreamIsCapturing(stream, &status) == cudaSuccess) return status != cudaStreamCaptureStatusNone;
    return cudaGetLastError() == cudaErrorStreamCaptureImplicit;
}

static bool follow(void *stream, struct err *why) {
    if (is_recorded(stream)) return err_set(why, "the stream is being captured: an exchange cannot be part of a graph");
    return order(stream, cuda_stream(), why);
}
static bool lead(void *stream, struct err *why) {
    return order(cuda_stream(), stream, why);
}

static unsigned pointer(const void *p) {
    struct cudaPointerAttributes about = {.type = cudaMemoryTypeUnregistered};
    if (cudaPointerGetAttributes(&about, p) != cudaSuccess) (void)cudaGetLastError();
    switch (about.type) {
    case cudaMemoryTypeDevice:
        return about.device == cuda_number() ? POINTER_OF_DEVICE : 0;
    case cudaMemoryTypeManaged:
        return POINTER_OF_HOST | POINTER_OF_DEVICE;
    default:
        return POINTER_OF_HOST;
    }
}

const struct device_caller_ops *cuda_caller(void) {
    static const struct device_caller_ops ops = {choose_current, enter, leave, follow, lead, pointer};
    return &ops;
}
