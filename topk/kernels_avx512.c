/* kernels_avx512.c: the kernels for processors with AVX-512F, whose compress instruction packs the entries that
 * pass the threshold, 16 at a time. */
#include "topk/kernels.h"
#include "topk/kernels_scalar.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX512 __attribute__((target("avx512f,popcnt")))

/* The hardware's prefetcher stops at the end of a 4 KiB page, and the work on the entries that pass keeps the
 * processor from looking ahead by itself; past the end of an array the hint does nothing. */
static inline void look_ahead(const float *p) {
    enum { DISTANCE = 2048 }; /* bytes */
    _mm_prefetch((const char *)((uintptr_t)p + DISTANCE), _MM_HINT_T0);
}

/* The lanes of a vector that exist when `left` entries are left. */
static inline __mmask16 first_lanes(size_t left) {
    return (__mmask16)(left >= 16 ? 0xffffu : (1u << left) - 1);
}

struct output {
    uint32_t *idx;
    float *val;
    size_t cap, count;
};

/* Bit j is set where |value[j]| as an integer is >= key. */
AVX512 static inline __mmask16 reach(__m512 value, __m512i key) {
    __m512i bits = _mm512_and_si512(_mm512_castps_si512(value), _mm512_set1_epi32(0x7fffffff));
    return _mm512_cmpge_epu32_mask(bits, key);
}

/* The entries of value that passed, to the end of the lists; the first has index `first`. */
AVX512 static inline void emit(struct output *out, __m512 value, __mmask16 passed, uint32_t first) {
    const __m512i steps = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    if (out->count + 16 <= out->cap) {
        __m512i index = _mm512_add_epi32(_mm512_set1_epi32((int)first), steps);
        _mm512_storeu_si512(out->idx + out->count, _mm512_maskz_compress_epi32(passed, index));
        _mm512_storeu_ps(out->val + out->count, _mm512_maskz_compress_ps(passed, value));
    }
    out->count += (size_t)__builtin_popcount(passed);
}

AVX512 static void accumulate(float *acc, const float *grad, size_t n) {
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        look_ahead(acc + i);
        look_ahead(grad + i);
        _mm512_storeu_ps(acc + i, _mm512_add_ps(_mm512_loadu_ps(acc + i), _mm512_loadu_ps(grad + i)));
    }
    for (; i < n; i++) acc[i] += grad[i];
}

AVX512 static size_t accumulate_compact(float *acc, const float *grad, size_t n, uint32_t base, uint32_t key,
                                        uint32_t *idx, float *val, size_t cap) {
    const __m512i keys = _mm512_set1_epi32((int)key);
    struct output out = {idx, val, cap, 0};
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 here = first_lanes(n - i);
        look_ahead(acc + i);
        look_ahead(grad + i);
        __m512 sum = _mm512_add_ps(_mm512_maskz_loadu_ps(here, acc + i), _mm512_maskz_loadu_ps(here, grad + i));
        _mm512_mask_storeu_ps(acc + i, here, sum);
        __mmask16 passed = _mm512_kand(reach(sum, keys), here);
        if (passed) emit(&out, sum, passed, base + (uint32_t)i);
    }
    return out.count;
}

AVX512 static size_t compact(const float *acc, size_t n, uint32_t base, uint32_t key, uint32_t *idx, float *val,
                             size_t cap) {
    const __m512i keys = _mm512_set1_epi32((int)key);
    struct output out = {idx, val, cap, 0};
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 here = first_lanes(n - i);
        look_ahead(acc + i);
        __m512 value = _mm512_maskz_loadu_ps(here, acc + i);
        __mmask16 passed = _mm512_kand(reach(value, keys), here);
        if (passed) emit(&out, value, passed, base + (uint32_t)i);
    }
    return out.count;
}

AVX512 static size_t filter(uint32_t *idx, float *val, size_t n, uint32_t key) {
    const __m512i keys = _mm512_set1_epi32((int)key);
    size_t kept = 0, i = 0;
    for (; i + 16 <= n; i += 16) {
        __m512i index = _mm512_loadu_si512(idx + i);
        __m512 value = _mm512_loadu_ps(val + i);
        __mmask16 passed = reach(value, keys);
        _mm512_storeu_si512(idx + kept, _mm512_maskz_compress_epi32(passed, index));
        _mm512_storeu_ps(val + kept, _mm512_maskz_compress_ps(passed, value));
        kept += (size_t)__builtin_popcount(passed);
    }
    return filter_rest(idx, val, i, n, key, kept);
}

AVX512 static size_t filter_keys(uint32_t *keys, size_t n, uint32_t low, uint32_t width) {
    const __m512i lows = _mm512_set1_epi32((int)low), widths = _mm512_set1_epi32((int)width);
    size_t kept = 0, i = 0;
    for (; i + 16 <= n; i += 16) {
        __m512i key = _mm512_loadu_si512(keys + i);
        __mmask16 passed = _mm512_cmplt_epu32_mask(_mm512_sub_epi32(key, lows), widths);
        _mm512_storeu_si512(keys + kept, _mm512_maskz_compress_epi32(passed, key));
        kept += (size_t)__builtin_popcount(passed);
    }
    return filter_keys_rest(keys, i, n, low, width, kept);
}

extern const struct topk_kernels topk_kernels_avx512;
const struct topk_kernels topk_kernels_avx512 = {
    .name = "avx512",
    .accumulate = accumulate,
    .accumulate_compact = accumulate_compact,
    .compact = compact,
    .filter = filter,
    .filter_keys = filter_keys,
};
#endif
