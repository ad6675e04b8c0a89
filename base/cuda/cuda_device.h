/* cuda_device.h: what the files of the CUDA plugin share: checked calls, the stream, copies. Not part of the program:
 * it is compiled into libsparsetrain_cuda.so alone.
 *
 * All work of a process goes to one stream, in the order in which it is given: kernels, cuDNN, cuBLAS. Copies that run
 * beside it have a second one. */
#ifndef ST_BASE_CUDA_DEVICE_H
#define ST_BASE_CUDA_DEVICE_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct err;

/* Ends the job where a call of the CUDA runtime failed, with the call and what the runtime says. For launches:
 * CUDA_CALL(cudaGetLastError()) after them. */
#define CUDA_CALL(call) cuda_check(call, #call, __FILE__, __LINE__)
void cuda_check(cudaError_t error, const char *call, const char *file, int line);
/* The same, of something that is given to cuda_stream(). */
#define CUDA_GIVE(call) (CUDA_CALL(call), cuda_timer_mark(#call))

/* Between these two calls a failing CUDA call of this thread does not end the job but is noted; the calls after it
 * may fail as well. For work that has a fallback. end: true if every call succeeded, else *why has the message of the
 * first one that failed. */
void cuda_try_begin(void);
bool cuda_try_end(struct err *why);

/* A call has failed: ends the job with this line, or notes it. */
void cuda_failed(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The stream of this process. The calling thread is made one that works with this process's GPU. */
cudaStream_t cuda_stream(void);

/* As many blocks as the GPU runs at once, `each` on every multiprocessor: the grid of a kernel that strides. At most
 * `most`, at least 1. */
unsigned cuda_grid(unsigned each, size_t most);

/* Until all work given so far is done. */
void cuda_wait(void);

/* Device memory that dies with a hint when there is none; `what` names the use. 0 bytes give a pointer,
 * too. */
void *cuda_alloc(size_t bytes, const char *what);
void cuda_free(void *block);

/* Page-locked memory of the host into which kernels write what the host shall know: it may read it once it has waited
 * for them. Dies when there is none. */
void *cuda_host_alloc(size_t bytes, const char *what);
void cuda_host_free(void *block);

/* host[0..bytes-1] to the device before all later work. Returns when host may be used again, which is soon where it is
 * page-locked: it does not wait for earlier work. */
void cuda_upload(void *device, const void *host, size_t bytes);

/* cuda_timer.c. Something was given to the stream, by this call: "kernel" or "call(arguments)". */
void cuda_timer_mark(const char *call);
/* Is every call timed now? Then CUDA graphs are not used and each pass is given call by call. */
bool cuda_timer_on(void);
struct device_timer_ops;
const struct device_timer_ops *cuda_timer(void);

/* cuda_caller.c. */
struct device_caller_ops;
const struct device_caller_ops *cuda_caller(void);

/* For it. Which GPU this process has, once it has one. Takes GPU `number`; false where it has another one. */
int cuda_number(void);
bool cuda_take(int number, struct err *why);
/* The lock of what this plugin shares between threads. A call that fails between the two, and dies, gives it up. */
void cuda_lock(void);
void cuda_unlock(void);

/* "NVIDIA H200": what cudaGetDeviceProperties calls it. */
const char *cuda_device_name(void);

#ifdef __cplusplus
}
#endif

#endif
