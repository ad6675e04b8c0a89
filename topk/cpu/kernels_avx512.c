/* kernels_avx512.c: the kernels for processors with AVX-512F, whose compress instruction packs the entries that
 * pass the threshold, 16 at a time. */
#include "topk/cpu/kernels.h"
#include "topk/cpu/kernels_scalar.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX512 __attribute__((target("avx512f,popcnt")))

enum { BLOCK = 4 }; /* vectors that are looked at together */

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

/* acc[i..] += grad[i..] in the lanes `here`. */
AVX512 static inline __m512 add_vector(float *acc, const float *grad, size_t i, __mmask16 here) {
    look_ahead(acc + i);
    look_ahead(grad + i);
    __m512 sum = _mm512_add_ps(_mm512_maskz_loadu_ps(here, acc + i), _mm512_maskz_loadu_ps(here, grad + i));
    _mm512_mask_storeu_ps(acc + i, here, sum);
    return sum;
}

/* What passed of BLOCK vectors, the first entry of which has index `first`: one branch for all of them and none
 * inside, since a branch for each vector is hard to predict (at a density of 0.02 one vector in four has some). */
AVX512 static inline void emit_block(struct output *out, const __m512 value[BLOCK], __m512i keys, uint32_t first) {
    __mmask16 passed[BLOCK], any = 0;
    for (uint32_t j = 0; j < BLOCK; j++) any |= passed[j] = reach(value[j], keys);
    if (!any) return;
    for (uint32_t j = 0; j < BLOCK; j++) emit(out, value[j], passed[j], first + 16 * j);
}

AVX512 static size_t accumulate_compact(float *acc, const float *grad, size_t n, uint32_t base, uint32_t key,
                                        uint32_t *idx, float *val, size_t cap) {
    const __m512i keys = _mm512_set1_epi32((int)key);
    struct output out = {idx, val, cap, 0};
    size_t i = 0;
    for (; i + 16 * BLOCK <= n; i += 16 * BLOCK) {
        __m512 sum[BLOCK];
        for (size_t j = 0; j < BLOCK; j++) sum[j] = add_vector(acc, grad, i + 16 * j, 0xffff);
        emit_block(&out, sum, keys, base + (uint32_t)i);
    }
    for (; i < n; i += 16) {
        __mmask16 here = first_lanes(n - i);
        __m512 sum = add_vector(acc, grad, i, here);
        emit(&out, sum, _mm512_kand(reach(sum, keys), here), base + (uint32_t)i);
    }
    return out.count;
}

AVX512 static size_t compact(const float *acc, size_t n, uint32_t base, uint32_t key, uint32_t *idx, float *val,
                             size_t cap) {
    const __m512i keys = _mm512_set1_epi32((int)key);
    struct output out = {idx, val, cap, 0};
    size_t i = 0;
    for (; i + 16 * BLOCK <= n; i += 16 * BLOCK) {
        __m512 value[BLOCK];
        for (size_t j = 0; j < BLOCK; j++) {
            look_ahead(acc + i + 16 * j);
            value[j] = _mm512_loadu_ps(acc + i + 16 * j);
        }
        emit_block(&out, value, keys, base + (uint32_t)i);
    }
    for (; i < n; i += 16) {
        __mmask16 here = first_lanes(n - i);
        __m512 value = _mm512_maskz_loadu_ps(here, acc + i);
        emit(&out, value, _mm512_kand(reach(value, keys), here), base + (uint32_t)i);
    }
    return out.count;
}

/* The 16 lanes of moment_lanes, eight to a register. */
struct lanes {
    __m512d sum[2], sum_abs[2], sum_square[2];
    __m512i most;
};

AVX512 static inline struct lanes lanes_zero(void) {
    struct lanes l;
    for (size_t j = 0; j < 2; j++) l.sum[j] = l.sum_abs[j] = l.sum_square[j] = _mm512_setzero_pd();
    l.most = _mm512_setzero_si512();
    return l;
}

/* Eight entries to lanes 8j..8j+7. The square is exact in double, so fusing it with the sum rounds as adding does. */
AVX512 static inline void add_eight(struct lanes *l, size_t j, __m256 x) {
    __m512d wide = _mm512_cvtps_pd(x);
    l->sum[j] = _mm512_add_pd(l->sum[j], wide);
    l->sum_abs[j] = _mm512_add_pd(l->sum_abs[j], _mm512_abs_pd(wide));
    l->sum_square[j] = _mm512_fmadd_pd(wide, wide, l->sum_square[j]);
}

AVX512 static inline void add_sixteen(struct lanes *l, __m512 x) {
    __m512i bits = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff));
    l->most = _mm512_max_epu32(l->most, bits);
    add_eight(l, 0, _mm512_castps512_ps256(x));
    add_eight(l, 1, _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(x), 1)));
}

AVX512 static inline void lanes_store(const struct lanes *l, size_t count, struct moment_lanes *m) {
    m->count = count;
    m->max_key = _mm512_reduce_max_epu32(l->most);
    for (size_t j = 0; j < 2; j++) {
        _mm512_storeu_pd(m->sum + 8 * j, l->sum[j]);
        _mm512_storeu_pd(m->sum_abs + 8 * j, l->sum_abs[j]);
        _mm512_storeu_pd(m->sum_square + 8 * j, l->sum_square[j]);
    }
}

/* Lanes past the end, and entries that do not pass, are added as +0, which changes no sum: none is ever -0. */
AVX512 static size_t accumulate_compact_moments(float *acc, const float *grad, size_t n, uint32_t base, uint32_t key,
                                                uint32_t *idx, float *val, size_t cap, struct moment_lanes *m) {
    const __m512i keys = _mm512_set1_epi32((int)key);
    struct output out = {idx, val, cap, 0};
    struct lanes l = lanes_zero();
    size_t i = 0;
    for (; i + 16 * BLOCK <= n; i += 16 * BLOCK) {
        __m512 sum[BLOCK];
        for (size_t j = 0; j < BLOCK; j++) add_sixteen(&l, sum[j] = add_vector(acc, grad, i + 16 * j, 0xffff));
        emit_block(&out, sum, keys, base + (uint32_t)i);
    }
    for (; i < n; i += 16) {
        __mmask16 here = first_lanes(n - i);
        __m512 sum = add_vector(acc, grad, i, here);
        add_sixteen(&l, sum);
        emit(&out, sum, _mm512_kand(reach(sum, keys), here), base + (uint32_t)i);
    }
    lanes_store(&l, n, m);
    return out.count;
}

AVX512 static void moments(const float *acc, size_t n, uint32_t key, struct moment_lanes *m) {
    const __m512i keys = _mm512_set1_epi32((int)key);
    struct lanes l = lanes_zero();
    size_t count = 0;
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 here = first_lanes(n - i);
        look_ahead(acc + i);
        __m512 value = _mm512_maskz_loadu_ps(here, acc + i);
        __mmask16 passed = _mm512_kand(reach(value, keys), here);
        add_sixteen(&l, _mm512_maskz_mov_ps(passed, value));
        count += (size_t)__builtin_popcount(passed);
    }
    lanes_store(&l, count, m);
}

AVX512 static size_t count_keys(const float *acc, size_t n, uint32_t key) {
    const __m512i keys = _mm512_set1_epi32((int)key);
    size_t count = 0;
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 here = first_lanes(n - i);
        look_ahead(acc + i);
        __mmask16 passed = _mm512_kand(reach(_mm512_maskz_loadu_ps(here, acc + i), keys), here);
        count += (size_t)__builtin_popcount(passed);
    }
    return count;
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
    .accumulate_compact_moments = accumulate_compact_moments,
    .moments = moments,
    .count = count_keys,
    .filter = filter,
    .filter_keys = filter_keys,
};
#endif
