/* cuda_device.c: the CUDA row as the plugin has it: which GPU, its memory, its streams. */
#include "base/cuda/cuda_device.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cuda/cuda_arch.h"
#include "base/device/device.h"
#include "base/mem.h"

#ifdef ST_HOSTCUDA
#define LABEL "hostcuda" /* the stand-in of the tests: its rows are no results of a GPU */
#else
#define LABEL "cuda"
#endif

enum {
    OLDEST = 8,           /* compute capability that the kernels are written for, major number */
    SLOTS = 8,            /* uploads on their way at once ... */
    SLOT_BYTES = 1 << 20, /* ... of at most this size; a longer one is waited for instead of copied twice */
    TEXT_BYTES = 64       /* of a text of the runtime */
};

/* What this process has of its GPU. Opened by choose, or by the first use. */
static struct {
    bool open;
    int number, ranks; /* of the GPU, ranks that share it, or 0 where nobody knows; */
    bool at_most;      /* so many, unless each was shown a GPU of its own (CUDA_VISIBLE_DEVICES) */
    struct cudaDeviceProp about;
    cudaStream_t stream, copies; /* see the header */

    pthread_mutex_t lock; /* over what follows */
    char *slot;           /* page-locked, [SLOTS][SLOT_BYTES] */
    cudaEvent_t slot_done[SLOTS];
    unsigned slot_next;
    cudaEvent_t begun, done[DEVICE_COPIES]; /* copies beside other work */
    bool taken[DEVICE_COPIES];
} gpu = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* -- calls that fail ---------------------------------------------------------------------------------------------- */

static _Thread_local bool trying, locked;
static _Thread_local struct err tried; /* the first failure */

void cuda_try_begin(void) {
    trying = true;
    tried = (struct err){0};
}

bool cuda_try_end(struct err *why) {
    trying = false;
    if (!tried.text[0]) return true;
    (void)cudaGetLastError(); /* it would be reported again by the next launch */
    return err_system(why, "%s", tried.text);
}

void cuda_lock(void) {
    pthread_mutex_lock(&gpu.lock);
    locked = true;
}
void cuda_unlock(void) {
    locked = false;
    pthread_mutex_unlock(&gpu.lock);
}

void cuda_failed(const char *file, int line, const char *format, ...) {
    char text[sizeof tried.text];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (!trying && locked) cuda_unlock(); /* the host may catch this, and go on */
    if (!trying) die_at(file, line, "%s", text);
    err_system(&tried, "%s", text);
}

void cuda_check(cudaError_t error, const char *call, const char *file, int line) {
    if (error != cudaSuccess)
        cuda_failed(file, line, "%s failed: %s (%s)", call, cudaGetErrorString(error), cudaGetErrorName(error));
}

/* -- which GPU ---------------------------------------------------------------------------------------------------- */

static bool count_gpus(int *count, struct err *why) {
    cudaError_t error = cudaGetDeviceCount(count);
    (void)cudaGetLastError(); /* it would be reported again by the next launch */
    if (error == cudaErrorInsufficientDriver || error == cudaErrorStubLibrary)
        return err_set(why, "there is no NVIDIA driver, or one older than CUDA %d.%d needs; nvidia-smi shows it",
                       CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    if (error == cudaErrorNoDevice || (error == cudaSuccess && *count == 0))
        return err_set(why,
                       "this machine shows no NVIDIA GPU (nvidia-smi, and CUDA_VISIBLE_DEVICES, say which there are)");
    if (error != cudaSuccess)
        return err_set(why, "the GPU does not answer: %s (%s)", cudaGetErrorString(error), cudaGetErrorName(error));
    return true;
}

static bool available(struct err *why) {
    int count;
    struct cudaDeviceProp about;
    if (!count_gpus(&count, why)) return false;
    for (int i = 0; i < count; i++) {
        if (cudaGetDeviceProperties(&about, i) != cudaSuccess)
            return err_set(why, "GPU %d does not say what it is; nvidia-smi may", i);
        if (about.major < OLDEST)
            return err_set(why,
                           "GPU %d, %s, has compute capability %d.%d; %d.0 or later is needed "
                           "(CUDA_VISIBLE_DEVICES can leave it out)",
                           i, about.name, about.major, about.minor, OLDEST);
        if (!cuda_arch_serves(ST_CUDA_ARCH, about.major, about.minor))
            return err_set(why,
                           "GPU %d, %s, has compute capability %d.%d, for which this plugin has no kernels; build it "
                           "with CUDA_ARCH=%d%d, or leave the GPU out (CUDA_VISIBLE_DEVICES)",
                           i, about.name, about.major, about.minor, about.major, about.minor);
    }
    return true;
}

static void *pin(size_t bytes) {
    void *block;
    if (cudaHostAlloc(&block, bytes, cudaHostAllocPortable) == cudaSuccess) return block;
    (void)cudaGetLastError();
    return NULL;
}
static void unpin(void *block) {
    CUDA_CALL(cudaFreeHost(block));
}

static void open_streams(void) {
    int least, greatest;
    CUDA_CALL(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    CUDA_CALL(cudaStreamCreateWithPriority(&gpu.stream, cudaStreamNonBlocking, least));
    CUDA_CALL(cudaStreamCreateWithPriority(&gpu.copies, cudaStreamNonBlocking, greatest));
    CUDA_CALL(cudaEventCreateWithFlags(&gpu.begun, cudaEventDisableTiming));
    for (int i = 0; i < SLOTS; i++) CUDA_CALL(cudaEventCreateWithFlags(&gpu.slot_done[i], cudaEventDisableTiming));
    for (int i = 0; i < DEVICE_COPIES; i++) CUDA_CALL(cudaEventCreateWithFlags(&gpu.done[i], cudaEventDisableTiming));
    CUDA_CALL(cudaHostAlloc((void **)&gpu.slot, (size_t)SLOTS * SLOT_BYTES, cudaHostAllocPortable));
}

static void open_gpu(int number) {
    gpu.number = number;
    CUDA_CALL(cudaSetDevice(gpu.number));
    CUDA_CALL(cudaGetDeviceProperties(&gpu.about, gpu.number));
    open_streams();
    mem_pin_with(pin, unpin);
    gpu.open = true;
}

/* Ranks take the GPUs of the node in turn. */
static void choose(int local_rank, int local_size) {
    struct err why = {0};
    int count;
    if (gpu.open) return;
    if (!count_gpus(&count, &why)) die("%s", why.text);
    gpu.ranks = (local_size - local_rank % count + count - 1) / count;
    gpu.at_most = count == 1 && local_size > 1;
    open_gpu(local_rank % count);
}

bool cuda_take(int number, struct err *why) {
    cuda_lock();
    if (!gpu.open) open_gpu(number);
    cuda_unlock();
    if (gpu.number == number) return true;
    return err_set(why, "GPU %d is the current one, and this process has exchanges on GPU %d: there is one GPU for all",
                   number, gpu.number);
}

/* The runtime has a current GPU for each thread; a new thread begins with the first one. */
static void attach(void) {
    static _Thread_local bool attached;
    if (attached && gpu.open) return;
    cuda_lock();
    choose(0, 1);
    cuda_unlock();
    CUDA_CALL(cudaSetDevice(gpu.number));
    attached = true;
}

cudaStream_t cuda_stream(void) {
    attach();
    return gpu.stream;
}

unsigned cuda_grid(unsigned each, size_t most) {
    attach();
    size_t all = (size_t)each * (size_t)gpu.about.multiProcessorCount;
    if (all > most) all = most;
    return all > 0 ? (unsigned)all : 1;
}

int cuda_number(void) {
    return gpu.number;
}

const char *cuda_device_name(void) {
    attach();
    return gpu.about.name;
}

static const char *label(void) {
    return LABEL;
}

static const char *describe(void) {
    static char text[sizeof gpu.about.name + TEXT_BYTES];
    int driver = 0;
    attach();
    CUDA_CALL(cudaDriverGetVersion(&driver));
    snprintf(text, sizeof text, "%s, driver for CUDA %d.%d, runtime %d.%d", gpu.about.name, driver / 1000,
             driver % 1000 / 10, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    return text;
}

/* -- memory ------------------------------------------------------------------------------------------------------- */

static _Noreturn void no_memory(size_t bytes, const char *what) {
    const double mib = 1048576.0;
    size_t free_bytes = 0, all = 0;
    char ranks[TEXT_BYTES] = "";
    const char *hint = "";
    (void)cudaGetLastError();
    (void)cudaMemGetInfo(&free_bytes, &all);
    if (gpu.ranks > 0) {
        snprintf(ranks, sizeof ranks, ", and %s%d rank%s on it", gpu.at_most ? "up to " : "", gpu.ranks,
                 gpu.ranks == 1 ? " is" : "s are");
        if (!strchr(what, '(')) /* `what` may say it better */
            hint = "; a smaller --batch, or fewer ranks on a GPU, need less";
    }
    die("the GPU has no memory for %s: %.1f MiB were asked for, %.1f of its %.1f MiB are free%s%s", what,
        (double)bytes / mib, (double)free_bytes / mib, (double)all / mib, ranks, hint);
}

void *cuda_alloc(size_t bytes, const char *what) {
    void *block;
    attach();
    cudaError_t error = cudaMalloc(&block, bytes > 0 ? bytes : 1);
    if (error == cudaErrorMemoryAllocation) no_memory(bytes, what);
    CUDA_CALL(error);
    return block;
}

void cuda_free(void *block) {
    attach();
    if (block) CUDA_CALL(cudaFree(block));
}

/* Kernels see all of the host's page-locked memory at the address that it has there (unified addressing). */
void *cuda_host_alloc(size_t bytes, const char *what) {
    void *block;
    attach();
    if (cudaHostAlloc(&block, bytes, cudaHostAllocPortable) == cudaSuccess) return block;
    (void)cudaGetLastError();
    die("there is no page-locked memory for %s: %zu bytes were asked for", what, bytes);
}

void cuda_host_free(void *block) {
    attach();
    if (block) CUDA_CALL(cudaFreeHost(block));
}

static void zero(void *block, size_t bytes) {
    attach();
    if (bytes > 0) CUDA_GIVE(cudaMemsetAsync(block, 0, bytes, gpu.stream));
}

static void copy_inside(void *to, const void *from, size_t bytes) {
    attach();
    if (bytes > 0) CUDA_GIVE(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, gpu.stream));
}

/* -- between host and device -------------------------------------------------------------------------------------- */

void cuda_wait(void) {
    attach();
    CUDA_CALL(cudaStreamSynchronize(gpu.stream));
}

/* Through a slot of page-locked memory: the copy to the GPU comes when its turn comes, the caller goes on at once. */
static void upload_by_slot(void *device, const void *host, size_t bytes) {
    cuda_lock();
    unsigned i = gpu.slot_next++ % SLOTS;
    char *slot = gpu.slot + (size_t)i * SLOT_BYTES;
    CUDA_CALL(cudaEventSynchronize(gpu.slot_done[i])); /* done at once where it was never recorded */
    memcpy(slot, host, bytes);
    CUDA_GIVE(cudaMemcpyAsync(device, slot, bytes, cudaMemcpyHostToDevice, gpu.stream));
    CUDA_CALL(cudaEventRecord(gpu.slot_done[i], gpu.stream));
    cuda_unlock();
}

void cuda_upload(void *device, const void *host, size_t bytes) {
    attach();
    if (bytes == 0) return;
    if (bytes <= SLOT_BYTES) {
        upload_by_slot(device, host, bytes);
        return;
    }
    CUDA_GIVE(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, gpu.stream));
    CUDA_CALL(cudaStreamSynchronize(gpu.stream));
}

static void to_host(void *host, const void *device, size_t bytes) {
    attach();
    if (bytes > 0) CUDA_GIVE(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, gpu.stream));
    CUDA_CALL(cudaStreamSynchronize(gpu.stream));
}

/* A free ticket; the lock is held. */
static uint32_t ticket_taken(void) {
    for (uint32_t i = 0; i < DEVICE_COPIES; i++) {
        if (gpu.taken[i]) continue;
        gpu.taken[i] = true;
        return i;
    }
    cuda_unlock();
    die("more than %d copies were begun and not waited for", DEVICE_COPIES);
}

static uint32_t begin_copy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
    attach();
    cuda_lock();
    uint32_t ticket = ticket_taken();
    CUDA_CALL(cudaEventRecord(gpu.begun, gpu.stream));
    CUDA_CALL(cudaStreamWaitEvent(gpu.copies, gpu.begun, 0));
    if (bytes > 0) CUDA_CALL(cudaMemcpyAsync(to, from, bytes, kind, gpu.copies));
    CUDA_CALL(cudaEventRecord(gpu.done[ticket], gpu.copies));
    cuda_unlock();
    return ticket;
}

static uint32_t to_host_begin(void *host, const void *device, size_t bytes) {
    return begin_copy(host, device, bytes, cudaMemcpyDeviceToHost);
}
static uint32_t to_device_begin(void *device, const void *host, size_t bytes) {
    return begin_copy(device, host, bytes, cudaMemcpyHostToDevice);
}

static void wait_for(uint32_t ticket) {
    attach();
    CUDA_CALL(cudaEventSynchronize(gpu.done[ticket]));
    cuda_lock();
    gpu.taken[ticket] = false;
    cuda_unlock();
}

extern const struct device_ops cuda_device;
const struct device_ops cuda_device = {
    .name = "cuda",
    .summary = "an NVIDIA GPU, networks through cuDNN",
    .available = available,
    .label = label,
    .describe = describe,
    .choose = choose,
    .alloc = cuda_alloc,
    .release = cuda_free,
    .zero = zero,
    .copy = copy_inside,
    .to_device = cuda_upload,
    .to_host = to_host,
    .sync = cuda_wait,
    .to_host_begin = to_host_begin,
    .to_device_begin = to_device_begin,
    .wait = wait_for,
    .timer = cuda_timer,
    .caller = cuda_caller,
};
