/* emulate.h: CUDA C++ for g++: the words of the kernel language as ordinary functions, and the launch of a kernel under
 * the emulator (emulate.cc). base/cuda/cuda_kernel.h includes it; kernels need nothing else.
 *
 * The emulator runs blocks one after the other and the threads of a block in turns, each until it waits for others.
 * Known to it: the built-in variables, static and dynamic shared memory, __syncthreads and its _count/_or/_and forms,
 * collectives of a whole warp (mask 0xffffffff; anything else is complained about), atomics, fences, the intrinsics
 * below. A kernel that spins until another thread of its block writes something would spin for ever.
 *
 * Static shared memory is a static variable: it keeps what the block before left there. Dynamic shared memory starts as
 * 0xff bytes in every block, and ends where an unmapped page begins. */
#ifndef ST_TESTS_HOSTCUDA_EMULATE_H
#define ST_TESTS_HOSTCUDA_EMULATE_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <type_traits>
#include <utility>

#include <cuda_runtime_api.h>
#include <vector_functions.h>

#include "tests/hostcuda/hostcuda.h"

/* The CUDA headers leave these for nvcc to define, or define them as empty attributes. */
#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __constant__
#undef __forceinline__
#undef __launch_bounds__
#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __constant__ static
#define __forceinline__ inline
#define __launch_bounds__(...)

/* -- what the emulator offers (emulate.cc) ----------------------------------------------------------------------- */

enum { warpSize = 32 };

/* What the lanes of a warp bring to a collective, and what its first lane has made of all of them for the others. */
struct hostcuda_values {
    uint64_t of[warpSize], joint;
};

/* What kernels see of a thread. */
struct hostcuda_thread {
    uint3 index;
    unsigned lane;        /* 0..31 */
    hostcuda_values *all; /* of its last collective */
};

#define HOSTCUDA_HERE __attribute__((visibility("hidden")))
extern HOSTCUDA_HERE hostcuda_thread *hostcuda_running; /* the one that runs now */
#define threadIdx (hostcuda_running->index)
extern HOSTCUDA_HERE uint3 blockIdx;
extern HOSTCUDA_HERE dim3 blockDim, gridDim;

enum hostcuda_barrier_kind { HOSTCUDA_SYNC, HOSTCUDA_COUNT, HOSTCUDA_OR, HOSTCUDA_AND };

/* All threads of the block arrive; returns for how many `predicate` holds (COUNT), or whether for any or for all.
 * line: where it stands in the source, so that threads that wait at different barriers are noticed. */
HOSTCUDA_HERE int hostcuda_barrier(enum hostcuda_barrier_kind kind, int predicate, int line);

/* All threads of the warp arrive, each with a value, and go on from the first lane to the last. name, line: where in
 * the source. */
HOSTCUDA_HERE void hostcuda_meet(const char *name, unsigned mask, uint64_t value, int line);

/* ... and the values are these, good until the calling thread's next collective. */
static inline hostcuda_values *hostcuda_exchange(const char *name, unsigned mask, uint64_t value, int line) {
    hostcuda_meet(name, mask, value, line);
    return hostcuda_running->all;
}

void *hostcuda_shared_dynamic(void);

/* A launch: what is the same for every kernel. It heads a struct hostcuda_bound, which is what is enqueued. */
struct hostcuda_call {
    const char *name;
    const void *function;
    dim3 grid, block;
    size_t shared;                                     /* dynamic shared memory, bytes */
    void (*thread)(const struct hostcuda_call *call);  /* runs the kernel for one thread */
    void (*pointers)(const struct hostcuda_call *call, /* hands every pointer among the arguments to `look`, */
                     void (*look)(const struct hostcuda_call *call, int number, const void *p)); /* numbered from 1 */
};

/* Checks the configuration and the pointers and enqueues call[bytes]; errors are left to cudaGetLastError. */
void hostcuda_enqueue_call(const struct hostcuda_call *call, size_t bytes, cudaStream_t stream);

/* -- launching --------------------------------------------------------------------------------------------------- */

template <size_t I, class T> struct hostcuda_argument { T value; };
template <class Indices, class... P> struct hostcuda_arguments;
template <size_t... I, class... P>
struct hostcuda_arguments<std::index_sequence<I...>, P...> : hostcuda_argument<I, P>... {
    explicit hostcuda_arguments(P... value) : hostcuda_argument<I, P>{value}... {}
    void call(void (*kernel)(P...)) const { kernel(hostcuda_argument<I, P>::value...); }
    template <class Look> void each([[maybe_unused]] Look look) const {
        (look(int(I) + 1, hostcuda_argument<I, P>::value), ...);
    }
};

template <class... P> struct hostcuda_bound {
    hostcuda_call head; /* first: the emulator knows no more */
    void (*kernel)(P...);
    hostcuda_arguments<std::index_sequence_for<P...>, P...> arguments;

    static const hostcuda_bound *of(const hostcuda_call *call) {
        return reinterpret_cast<const hostcuda_bound *>(call);
    }
    static void thread(const hostcuda_call *call) { of(call)->arguments.call(of(call)->kernel); }
    static void pointers(const hostcuda_call *call, void (*look)(const hostcuda_call *, int, const void *)) {
        of(call)->arguments.each([=](int number, const auto &value) {
            if constexpr (std::is_pointer_v<std::decay_t<decltype(value)>>)
                look(call, number, value);
            else
                (void)number, (void)value;
        });
    }
};

template <class... P, class... A>
void hostcuda_launch(const char *name, void (*kernel)(P...), dim3 grid, dim3 block, size_t shared, cudaStream_t stream,
                     A... arguments) {
    static_assert(sizeof...(P) == sizeof...(A), "as many arguments as the kernel has parameters");
    static_assert((std::is_trivially_copyable_v<P> && ...), "arguments are copied byte by byte");
    using bound = hostcuda_bound<P...>;
    const bound b = {
        {name, reinterpret_cast<const void *>(kernel), grid, block, shared, bound::thread, bound::pointers},
        kernel,
        hostcuda_arguments<std::index_sequence_for<P...>, P...>(arguments...)};
    hostcuda_enqueue_call(&b.head, sizeof b, stream);
}

/* As cuda_runtime.h has them: the C functions with a kernel or a typed pointer in place of void *. */
template <class... P> cudaError_t cudaFuncSetAttribute(void (*kernel)(P...), cudaFuncAttribute what, int value) {
    return cudaFuncSetAttribute(reinterpret_cast<const void *>(kernel), what, value);
}
template <class... P>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void (*kernel)(P...), int threads,
                                                          size_t shared) {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, reinterpret_cast<const void *>(kernel), threads,
                                                         shared);
}
template <class T> cudaError_t cudaMalloc(T **p, size_t bytes) {
    return cudaMalloc(reinterpret_cast<void **>(p), bytes);
}
template <class T> cudaError_t cudaMallocHost(T **p, size_t bytes) {
    return cudaMallocHost(reinterpret_cast<void **>(p), bytes);
}
template <class T> cudaError_t cudaHostAlloc(T **p, size_t bytes, unsigned flags) {
    return cudaHostAlloc(reinterpret_cast<void **>(p), bytes, flags);
}

#include "tests/hostcuda/intrinsics.h"

#endif
