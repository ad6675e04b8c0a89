/* intrinsics.h: the functions of the kernel language for the emulator; part of emulate.h. First those with which
 * threads wait for each other, then atomics (plain operations: threads take turns only where they wait), then
 * arithmetic. */
#ifndef ST_TESTS_HOSTCUDA_INTRINSICS_H
#define ST_TESTS_HOSTCUDA_INTRINSICS_H

#include "tests/hostcuda/emulate.h"

/* -- barriers and fences ------------------------------------------------------------------------------------------ */

static inline void __syncthreads(int line = __builtin_LINE()) {
    hostcuda_barrier(HOSTCUDA_SYNC, 0, line);
}
static inline int __syncthreads_count(int predicate, int line = __builtin_LINE()) {
    return hostcuda_barrier(HOSTCUDA_COUNT, predicate, line);
}
static inline int __syncthreads_or(int predicate, int line = __builtin_LINE()) {
    return hostcuda_barrier(HOSTCUDA_OR, predicate, line);
}
static inline int __syncthreads_and(int predicate, int line = __builtin_LINE()) {
    return hostcuda_barrier(HOSTCUDA_AND, predicate, line);
}
static inline void __syncwarp(unsigned mask = 0xffffffffu, int line = __builtin_LINE()) {
    hostcuda_exchange("__syncwarp", mask, 0, line);
}
static inline void __threadfence(void) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
static inline void __threadfence_block(void) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
static inline void __threadfence_system(void) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* -- collectives of a warp ---------------------------------------------------------------------------------------- */

template <class T> static inline uint64_t hostcuda_to_word(T value) {
    static_assert(std::is_arithmetic_v<T> && sizeof(T) <= 8 && sizeof(T) >= 4, "32- and 64-bit types");
    uint64_t word = 0;
    memcpy(&word, &value, sizeof value);
    return word;
}
template <class T> static inline T hostcuda_from_word(uint64_t word) {
    T value;
    memcpy(&value, &word, sizeof value);
    return value;
}

/* The lane that a shuffle reads: inside its own part of `width` lanes; beyond the part's ends it reads itself. */
template <class T>
static inline T __shfl_sync(unsigned mask, T value, int source, int width = 32, int line = __builtin_LINE()) {
    const uint64_t *all = hostcuda_exchange("__shfl_sync", mask, hostcuda_to_word(value), line)->of;
    const int lane = int(hostcuda_running->lane), part = lane & ~(width - 1);
    return hostcuda_from_word<T>(all[part + (source & (width - 1))]);
}
template <class T>
static inline T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32, int line = __builtin_LINE()) {
    const uint64_t *all = hostcuda_exchange("__shfl_up_sync", mask, hostcuda_to_word(value), line)->of;
    const int lane = int(hostcuda_running->lane), part = lane & ~(width - 1), from = lane - int(by);
    return hostcuda_from_word<T>(all[from >= part ? from : lane]);
}
template <class T>
static inline T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32, int line = __builtin_LINE()) {
    const uint64_t *all = hostcuda_exchange("__shfl_down_sync", mask, hostcuda_to_word(value), line)->of;
    const int lane = int(hostcuda_running->lane), part = lane & ~(width - 1), from = lane + int(by);
    return hostcuda_from_word<T>(all[from < part + width ? from : lane]);
}
/* From lane ^ by, where that lies in the own part or an earlier one. */
template <class T>
static inline T __shfl_xor_sync(unsigned mask, T value, int by, int width = 32, int line = __builtin_LINE()) {
    const uint64_t *all = hostcuda_exchange("__shfl_xor_sync", mask, hostcuda_to_word(value), line)->of;
    const int lane = int(hostcuda_running->lane), part = lane & ~(width - 1), from = lane ^ by;
    return hostcuda_from_word<T>(all[from < part + width ? from : lane]);
}

static inline unsigned __ballot_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
    hostcuda_values *all = hostcuda_exchange("__ballot_sync", mask, predicate != 0, line);
    if (hostcuda_running->lane > 0) return unsigned(all->joint);
    unsigned ballot = 0;
    for (int lane = 0; lane < 32; lane++) ballot |= unsigned(all->of[lane]) << lane;
    return unsigned(all->joint = ballot);
}
static inline int __any_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
    return __ballot_sync(mask, predicate, line) != 0;
}
static inline int __all_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
    return __ballot_sync(mask, predicate, line) == 0xffffffffu;
}
template <class T> static inline unsigned __match_any_sync(unsigned mask, T value, int line = __builtin_LINE()) {
    const uint64_t *all = hostcuda_exchange("__match_any_sync", mask, hostcuda_to_word(value), line)->of;
    unsigned same = 0;
    for (int lane = 0; lane < 32; lane++) same |= unsigned(all[lane] == hostcuda_to_word(value)) << lane;
    return same;
}

/* r op v over the values of all lanes. */
#define HOSTCUDA_REDUCE(name, type, combined)                                                                          \
    static inline type __reduce_##name##_sync(unsigned mask, type value, int line = __builtin_LINE()) {                \
        hostcuda_values *all = hostcuda_exchange("__reduce_" #name "_sync", mask, hostcuda_to_word(value), line);      \
        if (hostcuda_running->lane > 0) return hostcuda_from_word<type>(all->joint);                                   \
        type r = hostcuda_from_word<type>(all->of[0]);                                                                 \
        for (int lane = 1; lane < 32; lane++) {                                                                        \
            const type v = hostcuda_from_word<type>(all->of[lane]);                                                    \
            r = combined;                                                                                              \
        }                                                                                                              \
        all->joint = hostcuda_to_word(r);                                                                              \
        return r;                                                                                                      \
    }
HOSTCUDA_REDUCE(add, unsigned, r + v)
HOSTCUDA_REDUCE(add, int, int(unsigned(r) + unsigned(v)))
HOSTCUDA_REDUCE(min, unsigned, v < r ? v : r)
HOSTCUDA_REDUCE(min, int, v < r ? v : r)
HOSTCUDA_REDUCE(max, unsigned, v > r ? v : r)
HOSTCUDA_REDUCE(max, int, v > r ? v : r)
HOSTCUDA_REDUCE(and, unsigned, (r & v))
HOSTCUDA_REDUCE(or, unsigned, (r | v))
HOSTCUDA_REDUCE(xor, unsigned, (r ^ v))
#undef HOSTCUDA_REDUCE

/* -- atomics: return what was there -------------------------------------------------------------------------------- */

#define HOSTCUDA_ATOMIC(name, type, combined)                                                                          \
    static inline type name(type *word, type value) {                                                                  \
        const type old = *word;                                                                                        \
        *word = combined;                                                                                              \
        return old;                                                                                                    \
    }
#define HOSTCUDA_ATOMICS(type)                                                                                         \
    HOSTCUDA_ATOMIC(atomicMin, type, value < old ? value : old)                                                        \
    HOSTCUDA_ATOMIC(atomicMax, type, value > old ? value : old)                                                        \
    HOSTCUDA_ATOMIC(atomicAnd, type, (old & value))                                                                    \
    HOSTCUDA_ATOMIC(atomicOr, type, (old | value))                                                                     \
    HOSTCUDA_ATOMIC(atomicXor, type, (old ^ value))                                                                    \
    HOSTCUDA_ATOMIC(atomicExch, type, value)                                                                           \
    static inline type atomicCAS(type *word, type expected, type value) {                                              \
        const type old = *word;                                                                                        \
        if (old == expected) *word = value;                                                                            \
        return old;                                                                                                    \
    }
HOSTCUDA_ATOMICS(int)
HOSTCUDA_ATOMICS(unsigned)
HOSTCUDA_ATOMICS(unsigned long long)
HOSTCUDA_ATOMIC(atomicAdd, int, int(unsigned(old) + unsigned(value)))
HOSTCUDA_ATOMIC(atomicAdd, unsigned, old + value)
HOSTCUDA_ATOMIC(atomicAdd, unsigned long long, old + value)
HOSTCUDA_ATOMIC(atomicAdd, float, old + value)
HOSTCUDA_ATOMIC(atomicAdd, double, old + value)
HOSTCUDA_ATOMIC(atomicSub, int, int(unsigned(old) - unsigned(value)))
HOSTCUDA_ATOMIC(atomicSub, unsigned, old - value)
HOSTCUDA_ATOMIC(atomicExch, float, value)
#undef HOSTCUDA_ATOMICS
#undef HOSTCUDA_ATOMIC

/* -- memory: the caches' hints say nothing here, but the address must be a multiple of the type's size ------------- */

template <class T> static inline T *hostcuda_aligned(T *p) {
    if (reinterpret_cast<uintptr_t>(p) % sizeof(T)) hostcuda_complain("misaligned access of %zu bytes", sizeof(T));
    return p;
}
template <class T> static inline T __ldg(const T *from) {
    return *hostcuda_aligned(from);
}
template <class T> static inline T __ldcg(const T *from) {
    return *hostcuda_aligned(from);
}
template <class T> static inline T __ldca(const T *from) {
    return *hostcuda_aligned(from);
}
template <class T> static inline T __ldcs(const T *from) {
    return *hostcuda_aligned(from);
}
template <class T> static inline void __stcs(T *to, T value) {
    *hostcuda_aligned(to) = value;
}
template <class T> static inline void __stcg(T *to, T value) {
    *hostcuda_aligned(to) = value;
}

/* -- bits and numbers ---------------------------------------------------------------------------------------------- */

static inline int __popc(unsigned x) {
    return __builtin_popcount(x);
}
static inline int __popcll(unsigned long long x) {
    return __builtin_popcountll(x);
}
static inline int __clz(int x) {
    return x ? __builtin_clz(unsigned(x)) : 32;
}
static inline int __clzll(long long x) {
    return x ? __builtin_clzll((unsigned long long)x) : 64;
}
static inline int __ffs(int x) {
    return __builtin_ffs(x);
}
static inline int __ffsll(long long x) {
    return __builtin_ffsll(x);
}
static inline unsigned __brev(unsigned x) {
    unsigned reversed = 0;
    for (int bit = 0; bit < 32; bit++) reversed |= (x >> bit & 1u) << (31 - bit);
    return reversed;
}
static inline unsigned __umulhi(unsigned a, unsigned b) {
    return unsigned((unsigned long long)a * b >> 32);
}

template <class To, class From> static inline To hostcuda_bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "the same bits");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}
static inline unsigned __float_as_uint(float x) {
    return hostcuda_bits<unsigned>(x);
}
static inline int __float_as_int(float x) {
    return hostcuda_bits<int>(x);
}
static inline float __uint_as_float(unsigned x) {
    return hostcuda_bits<float>(x);
}
static inline float __int_as_float(int x) {
    return hostcuda_bits<float>(x);
}
static inline long long __double_as_longlong(double x) {
    return hostcuda_bits<long long>(x);
}
static inline double __longlong_as_double(long long x) {
    return hostcuda_bits<double>(x);
}
static inline unsigned __float2uint_rn(float x) {
    return unsigned(rintf(x));
}
static inline int __float2int_rn(float x) {
    return int(rintf(x));
}

/* One rounding to nearest each. */
static inline float __fmaf_rn(float a, float b, float c) {
    return fmaf(a, b, c);
}
static inline double __fma_rn(double a, double b, double c) {
    return fma(a, b, c);
}
static inline float __fadd_rn(float a, float b) {
    return a + b;
}
static inline float __fsub_rn(float a, float b) {
    return a - b;
}
static inline float __fmul_rn(float a, float b) {
    return a * b;
}
static inline float __fdiv_rn(float a, float b) {
    return a / b;
}
static inline float __fsqrt_rn(float a) {
    return sqrtf(a);
}
static inline double __dadd_rn(double a, double b) {
    return a + b;
}
static inline double __dsub_rn(double a, double b) {
    return a - b;
}
static inline double __dmul_rn(double a, double b) {
    return a * b;
}
static inline double __ddiv_rn(double a, double b) {
    return a / b;
}
static inline float rsqrtf(float x) {
    return float(1 / sqrt(double(x)));
}

/* The language has these without std::; of a signed and an unsigned number, as unsigned ones. */
#define HOSTCUDA_MIN_MAX(type, a_type, b_type)                                                                         \
    static inline type min(a_type a, b_type b) {                                                                       \
        const type x = a, y = b;                                                                                       \
        return y < x ? y : x;                                                                                          \
    }                                                                                                                  \
    static inline type max(a_type a, b_type b) {                                                                       \
        const type x = a, y = b;                                                                                       \
        return y > x ? y : x;                                                                                          \
    }
HOSTCUDA_MIN_MAX(int, int, int)
HOSTCUDA_MIN_MAX(unsigned, unsigned, unsigned)
HOSTCUDA_MIN_MAX(unsigned, int, unsigned)
HOSTCUDA_MIN_MAX(unsigned, unsigned, int)
HOSTCUDA_MIN_MAX(long, long, long)
HOSTCUDA_MIN_MAX(unsigned long, unsigned long, unsigned long)
HOSTCUDA_MIN_MAX(long long, long long, long long)
HOSTCUDA_MIN_MAX(unsigned long long, unsigned long long, unsigned long long)
#undef HOSTCUDA_MIN_MAX
static inline float min(float a, float b) {
    return fminf(a, b);
}
static inline float max(float a, float b) {
    return fmaxf(a, b);
}
static inline double min(double a, double b) {
    return fmin(a, b);
}
static inline double max(double a, double b) {
    return fmax(a, b);
}

#endif
