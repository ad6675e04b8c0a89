/* runtime.c: the process and its devices: how many there are, what they can, errors, the lock, complaints. */
#include "tests/hostcuda/internal.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- complaints, the lock, the last error -------------------------------------------------------------------------- */

void hostcuda_complain(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fflush(stdout);
    fputs("hostcuda: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    fflush(stderr);
    va_end(arguments);
    abort();
}

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

/* A process that was forked off one which had asked for the devices gets nothing but errors from the real library.
 * SPARSETRAIN_HOSTCUDA_FORK=1 lets it work: tests of the stand-in do. */
static bool asked, orphaned;
static void follow_fork(void) {
    const char *allowed = getenv("SPARSETRAIN_HOSTCUDA_FORK");
    orphaned = asked && !(allowed && strcmp(allowed, "1") == 0);
}
__attribute__((constructor)) static void watch_forks(void) {
    pthread_atfork(NULL, NULL, follow_fork);
}
static void ask(void) {
    asked = true;
    if (orphaned) hostcuda_complain("used by a process that was forked off one which had used it");
}

void hostcuda_lock(void) {
    ask();
    pthread_mutex_lock(&lock);
}
void hostcuda_unlock(void) {
    pthread_mutex_unlock(&lock);
}

/* -- failures to order --------------------------------------------------------------------------------------------- */

/* How many calls of the function there were, this one included, since the variable had another value. */
static unsigned count_call(const char *wanted, const char *function) {
    enum { FUNCTIONS = 16 };
    static struct {
        const char *name;
        unsigned calls;
    } counted[FUNCTIONS];
    static char last[256];
    if (strcmp(last, wanted) != 0) {
        memset(counted, 0, sizeof counted);
        snprintf(last, sizeof last, "%s", wanted);
    }
    for (int i = 0; i < FUNCTIONS; i++) {
        if (!counted[i].name) counted[i].name = function;
        if (strcmp(counted[i].name, function) == 0) return ++counted[i].calls;
    }
    hostcuda_complain("SPARSETRAIN_HOSTCUDA_FAIL has more than %d functions", FUNCTIONS);
}

bool hostcuda_fails(const char *function) {
    const char *wanted = getenv("SPARSETRAIN_HOSTCUDA_FAIL");
    const size_t length = strlen(function);
    bool fails = false;
    if (!wanted) return false;
    hostcuda_lock();
    for (const char *at = wanted; at && !fails; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        if (strncmp(at, function, length) != 0 || (at[length] && !strchr(",:", at[length]))) continue;
        const unsigned call = count_call(wanted, function);
        fails = at[length] != ':' || call == (unsigned)atoi(at + length + 1);
    }
    hostcuda_unlock();
    return fails;
}

/* ------------------------------------------------------------------------------------------------------------------ */

static _Thread_local cudaError_t last_error;

cudaError_t hostcuda_answer(cudaError_t error) {
    if (error != cudaSuccess && error != cudaErrorNotReady) last_error = error;
    return error;
}

cudaError_t cudaPeekAtLastError(void) {
    return last_error;
}
cudaError_t cudaGetLastError(void) {
    const cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

struct error_text {
    cudaError_t error;
    const char *name, *text;
};
#define ROW(error, text)                                                                                               \
    { error, #error, text }
static const struct error_text error_texts[] = {
    ROW(cudaSuccess, "no error"),
    ROW(cudaErrorInvalidValue, "invalid argument"),
    ROW(cudaErrorMemoryAllocation, "out of memory"),
    ROW(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    ROW(cudaErrorInvalidDevice, "invalid device ordinal"),
    ROW(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    ROW(cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version"),
    ROW(cudaErrorInvalidDeviceFunction, "invalid device function"),
    ROW(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    ROW(cudaErrorIllegalState, "the operation cannot be performed in the present state"),
    ROW(cudaErrorNotReady, "device not ready"),
    ROW(cudaErrorNotSupported, "operation not supported"),
    ROW(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
    ROW(cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture"),
    ROW(cudaErrorStreamCaptureMerge, "operation would result in a merge of separate capture sequences"),
    ROW(cudaErrorStreamCaptureUnmatched, "capture was not ended in the same stream as it began"),
    ROW(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    ROW(cudaErrorStreamCaptureIsolation, "dependency created on uncaptured work in another stream"),
    ROW(cudaErrorStreamCaptureImplicit, "operation would make the legacy stream depend on a capturing blocking stream"),
    ROW(cudaErrorCapturedEvent, "operation not permitted on an event last recorded in a capturing stream"),
    ROW(cudaErrorStreamCaptureWrongThread, "attempt to terminate a thread-local capture sequence from another thread"),
};
#undef ROW

static const struct error_text *error_text(cudaError_t error) {
    static const struct error_text unknown = {cudaErrorUnknown, "cudaErrorUnknown", "unrecognized error code"};
    for (size_t i = 0; i < sizeof error_texts / sizeof *error_texts; i++)
        if (error_texts[i].error == error) return &error_texts[i];
    return &unknown;
}
const char *cudaGetErrorName(cudaError_t error) {
    return error_text(error)->name;
}
const char *cudaGetErrorString(cudaError_t error) {
    return error_text(error)->text;
}

/* -- devices ------------------------------------------------------------------------------------------------------- */

static _Thread_local int current_device;

int hostcuda_devices(void) {
    const char *count = getenv("SPARSETRAIN_HOSTCUDA_DEVICES");
    const int n = count ? atoi(count) : 1;
    return n < 0 ? 0 : n > HOSTCUDA_MAX_DEVICES ? HOSTCUDA_MAX_DEVICES : n;
}
int hostcuda_device(void) {
    return current_device;
}

/* Compute capability, in tenths: SPARSETRAIN_HOSTCUDA_CAPABILITY, else that of an H200. */
static int capability(void) {
    const char *text = getenv("SPARSETRAIN_HOSTCUDA_CAPABILITY");
    return text ? atoi(text) : 90;
}

cudaError_t cudaGetDeviceCount(int *count) {
    ask();
    *count = hostcuda_devices();
    return hostcuda_answer(*count ? cudaSuccess : cudaErrorNoDevice);
}

static cudaError_t check_device(int device) {
    if (hostcuda_devices() == 0) return cudaErrorNoDevice;
    return device >= 0 && device < hostcuda_devices() ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t cudaGetDevice(int *device) {
    *device = current_device;
    return hostcuda_answer(check_device(current_device));
}

cudaError_t cudaSetDevice(int device) {
    const cudaError_t error = check_device(device);
    if (error == cudaSuccess) current_device = device;
    return hostcuda_answer(error);
}

/* Those of compute capability 9.0, as far as somebody asks; with few multiprocessors, so that grids that depend on
 * their number stay small. */
static bool attribute(enum cudaDeviceAttr which, int *value) {
    switch (which) {
    case cudaDevAttrMaxThreadsPerBlock:
        *value = 1024;
        break;
    case cudaDevAttrMaxBlockDimX:
        *value = 1024;
        break;
    case cudaDevAttrMaxBlockDimY:
        *value = 1024;
        break;
    case cudaDevAttrMaxBlockDimZ:
        *value = 64;
        break;
    case cudaDevAttrMaxGridDimX:
        *value = 2147483647;
        break;
    case cudaDevAttrMaxGridDimY:
        *value = 65535;
        break;
    case cudaDevAttrMaxGridDimZ:
        *value = 65535;
        break;
    case cudaDevAttrMaxSharedMemoryPerBlock:
        *value = HOSTCUDA_SHARED;
        break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        *value = HOSTCUDA_SHARED_OPTIN;
        break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
        *value = HOSTCUDA_SHARED_OPTIN + 1024;
        break;
    case cudaDevAttrWarpSize:
        *value = 32;
        break;
    case cudaDevAttrMultiProcessorCount:
        *value = HOSTCUDA_MULTIPROCESSORS;
        break;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
        *value = 2048;
        break;
    case cudaDevAttrMaxBlocksPerMultiprocessor:
        *value = 32;
        break;
    case cudaDevAttrComputeCapabilityMajor:
        *value = capability() / 10;
        break;
    case cudaDevAttrComputeCapabilityMinor:
        *value = capability() % 10;
        break;
    case cudaDevAttrL2CacheSize:
        *value = 50 << 20;
        break;
    case cudaDevAttrAsyncEngineCount:
        *value = 3;
        break;
    case cudaDevAttrConcurrentKernels:
        *value = 1;
        break;
    case cudaDevAttrUnifiedAddressing:
        *value = 1;
        break;
    case cudaDevAttrCanMapHostMemory:
        *value = 1;
        break;
    default:
        return false;
    }
    return true;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr which, int device) {
    const cudaError_t error = check_device(device);
    if (error == cudaSuccess && !attribute(which, value))
        hostcuda_complain("device attribute %d has no value in the stand-in", (int)which);
    return hostcuda_answer(error);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device) {
    const cudaError_t error = check_device(device);
    if (error != cudaSuccess) return hostcuda_answer(error);
    size_t available;
    memset(p, 0, sizeof *p);
    strcpy(p->name, "hostcuda");
    cudaMemGetInfo(&available, &p->totalGlobalMem);
    p->sharedMemPerBlock = HOSTCUDA_SHARED;
    p->sharedMemPerBlockOptin = HOSTCUDA_SHARED_OPTIN;
    p->sharedMemPerMultiprocessor = HOSTCUDA_SHARED_OPTIN + 1024;
    p->regsPerBlock = p->regsPerMultiprocessor = 65536;
    p->warpSize = 32;
    p->maxThreadsPerBlock = 1024;
    p->maxThreadsPerMultiProcessor = 2048;
    p->maxBlocksPerMultiProcessor = 32;
    memcpy(p->maxThreadsDim, (int[3]){1024, 1024, 64}, sizeof p->maxThreadsDim);
    memcpy(p->maxGridSize, (int[3]){2147483647, 65535, 65535}, sizeof p->maxGridSize);
    p->totalConstMem = 65536;
    p->major = capability() / 10;
    p->minor = capability() % 10;
    p->multiProcessorCount = HOSTCUDA_MULTIPROCESSORS;
    p->l2CacheSize = 50 << 20;
    p->memoryBusWidth = 64;
    p->pciBusID = device;
    p->asyncEngineCount = 3;
    p->concurrentKernels = p->unifiedAddressing = p->canMapHostMemory = 1;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int *version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}

/* -- kernels ------------------------------------------------------------------------------------------------------- */

enum { MAX_FUNCTIONS = 256 };
static struct {
    const void *function;
    size_t shared;
} functions[MAX_FUNCTIONS]; /* kernels that were allowed more shared memory */
static size_t function_count;

size_t hostcuda_shared_limit(const void *function) {
    for (size_t i = 0; i < function_count; i++)
        if (functions[i].function == function) return functions[i].shared;
    return HOSTCUDA_SHARED;
}

cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute what, int value) {
    if (what == cudaFuncAttributePreferredSharedMemoryCarveout) return cudaSuccess;
    if (what != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 || value > HOSTCUDA_SHARED_OPTIN)
        return hostcuda_answer(cudaErrorInvalidValue);
    hostcuda_lock();
    size_t i = 0;
    while (i < function_count && functions[i].function != function) i++;
    if (i == MAX_FUNCTIONS) hostcuda_complain("more than %d kernels with an attribute", MAX_FUNCTIONS);
    if (i == function_count) function_count++;
    functions[i].function = function;
    functions[i].shared = (size_t)value;
    hostcuda_unlock();
    return cudaSuccess;
}

/* By threads and by shared memory; of registers nothing is known here. */
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int threads,
                                                          size_t shared) {
    if (threads < 1 || threads > 1024 || shared > hostcuda_shared_limit(function)) {
        *blocks = 0;
        return threads < 1 ? hostcuda_answer(cudaErrorInvalidValue) : cudaSuccess;
    }
    const int by_threads = 2048 / ((threads + 31) / 32 * 32);
    const int by_shared = (int)((HOSTCUDA_SHARED_OPTIN + 1024) / (shared + 1024)); /* a block takes 1 KiB by itself */
    *blocks = by_threads < by_shared ? by_threads : by_shared;
    if (*blocks > 32) *blocks = 32;
    return cudaSuccess;
}
