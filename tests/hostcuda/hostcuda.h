/* hostcuda.h: the stand-in for the CUDA runtime in host memory, as those see it who add to it (cuBLAS, cuDNN, the
 * emulator of kernels). Programs see only the prototypes of cuda_runtime_api.h.
 *
 * The machine that it plays is as unforgiving as one can make it: device memory cannot be read by the host, nothing
 * that was enqueued is done before somebody waits for it, and what the real library leaves undefined ends the process
 * with a line that says what was wrong.
 *
 * A library call becomes an item of a stream; its argument is copied, so it may live on the stack:
 *
 *        struct scale { float *x; size_t n; float by; };
 *        static void run_scale(const void *argument) {
 *            const struct scale *s = argument;
 *            for (size_t i = 0; i < s->n; i++) s->x[i] *= s->by;
 *        }
 *        ...
 *        hostcuda_need("scale", "x", x, n * sizeof *x, sizeof *x);
 *        hostcuda_enqueue(stream, run_scale, &(struct scale){x, n, by}, sizeof(struct scale));
 */
#ifndef ST_TESTS_HOSTCUDA_H
#define ST_TESTS_HOSTCUDA_H

#include <stdbool.h>
#include <stddef.h>

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Appends to the stream: run(argument) with device memory accessible, in stream order, once somebody waits; or, while
 * the stream is captured, on every launch of the graph. argument: [bytes], copied now, aligned to 16 when run. */
void hostcuda_enqueue(cudaStream_t stream, void (*run)(const void *argument), const void *argument, size_t bytes);

/* NULL when [p, p + bytes) lies inside one live device block or one block of pinned host memory, else what is wrong
 * with it (text of this thread, good until its next call). bytes 0: p may also be the end of a block. */
const char *hostcuda_range(const void *p, size_t bytes);

/* "hostcuda: ..." on stderr, then abort(): for misuse whose outcome the real library leaves undefined. */
void hostcuda_complain(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* For the arguments of a function: complains unless hostcuda_range finds nothing wrong and p is aligned. */
void hostcuda_need(const char *function, const char *argument, const void *p, size_t bytes, size_t alignment);

/* Complains if the output overlaps the input; NULL overlaps nothing. */
void hostcuda_apart(const char *function, const void *output, size_t output_bytes, const char *argument,
                    const void *input, size_t input_bytes);

/* Shall this call of the function fail? SPARSETRAIN_HOSTCUDA_FAIL names functions whose calls do, with commas between
 * them: "cudaGraphInstantiate" all, "cudnnRNNForward:2" the second one, counted from when the variable was set. Those
 * that ask are the functions of which a real library refuses what the stand-in can do. */
bool hostcuda_fails(const char *function);

/* Said by work that runs, of memory [bytes] that the caller lends to the library for it: nothing of the caller's may
 * live there. All of it is overwritten the first time, then its ends and a stretch that moves on from call to call.
 * NULL: none. */
void hostcuda_overwrite_workspace(void *start, size_t bytes);

/* Said by work that runs: so long it would have taken a GPU. Events tell that time, not the host's, so that what a
 * program chooses by them is the same on every machine. */
void hostcuda_took(double ms);

/* Is the stream being captured into a graph? */
bool hostcuda_capturing(cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
