/* kernels_avx2.c: the kernels for processors with AVX2. It has no compress instruction; as few entries pass
 * the threshold, those that do are taken one by one from the bits of the comparison. */
#include "topk/cpu/kernels.h"
#include "topk/cpu/kernels_scalar.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,popcnt")))

/* The hardware's prefetcher stops at the end of a 4 KiB page, and the work on the entries that pass keeps the
 * processor from looking ahead by itself; past the end of an array the hint does nothing. */
static inline void look_ahead(const float *p) {
    enum { DISTANCE = 2048 }; /* bytes */
    _mm_prefetch((const char *)((uintptr_t)p + DISTANCE), _MM_HINT_T0);
}

/* Only a signed "greater" exists: keys have 31 bits, so key 0 becomes -1, which all pass, and a key that none
 * reaches becomes 2^31 - 1. */
AVX2 static inline __m256i just_below(uint32_t key) {
    return _mm256_set1_epi32(key > INT32_MAX ? INT32_MAX : (int32_t)key - 1);
}

/* Bit j is set where |value[j]| as an integer is > below. */
AVX2 static inline unsigned reach(__m256 value, __m256i below) {
    __m256i bits = _mm256_and_si256(_mm256_castps_si256(value), _mm256_set1_epi32(0x7fffffff));
    return (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(bits, below)));
}

/* What passed of acc[i..] as bits, to the end of the lists. */
AVX2 static inline size_t emit(const float *acc, size_t i, uint64_t passed, uint32_t base, uint32_t *idx, float *val,
                               size_t cap, size_t count) {
    for (; passed; passed &= passed - 1, count++) {
        if (count + 16 > cap) return count + (size_t)__builtin_popcountll(passed);
        size_t j = i + (size_t)__builtin_ctzll(passed);
        idx[count] = base + (uint32_t)j;
        val[count] = acc[j];
    }
    return count;
}

AVX2 static void accumulate(float *acc, const float *grad, size_t n) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        look_ahead(acc + i);
        look_ahead(grad + i);
        _mm256_storeu_ps(acc + i, _mm256_add_ps(_mm256_loadu_ps(acc + i), _mm256_loadu_ps(grad + i)));
    }
    for (; i < n; i++) acc[i] += grad[i];
}

AVX2 static size_t accumulate_compact(float *acc, const float *grad, size_t n, uint32_t base, uint32_t key,
                                      uint32_t *idx, float *val, size_t cap) {
    const __m256i below = just_below(key);
    size_t count = 0, i = 0;
    for (; i + 32 <= n; i += 32) {
        uint64_t passed = 0;
        for (size_t j = 0; j < 32; j += 8) {
            look_ahead(acc + i + j);
            look_ahead(grad + i + j);
            __m256 sum = _mm256_add_ps(_mm256_loadu_ps(acc + i + j), _mm256_loadu_ps(grad + i + j));
            _mm256_storeu_ps(acc + i + j, sum);
            passed |= (uint64_t)reach(sum, below) << j;
        }
        if (passed) count = emit(acc, i, passed, base, idx, val, cap, count);
    }
    for (; i < n; i++) {
        acc[i] += grad[i];
        count = emit(acc, i, magnitude_key(acc[i]) >= key, base, idx, val, cap, count);
    }
    return count;
}

AVX2 static size_t compact(const float *acc, size_t n, uint32_t base, uint32_t key, uint32_t *idx, float *val,
                           size_t cap) {
    const __m256i below = just_below(key);
    size_t count = 0, i = 0;
    for (; i + 32 <= n; i += 32) {
        uint64_t passed = 0;
        for (size_t j = 0; j < 32; j += 8) {
            look_ahead(acc + i + j);
            passed |= (uint64_t)reach(_mm256_loadu_ps(acc + i + j), below) << j;
        }
        if (passed) count = emit(acc, i, passed, base, idx, val, cap, count);
    }
    for (; i < n; i++) count = emit(acc, i, magnitude_key(acc[i]) >= key, base, idx, val, cap, count);
    return count;
}

/* The 16 lanes of moment_lanes, four to a register. */
struct lanes {
    __m256d sum[4], sum_abs[4], sum_square[4];
    __m256i most;
};

AVX2 static inline struct lanes lanes_zero(void) {
    struct lanes l;
    for (size_t j = 0; j < 4; j++) l.sum[j] = l.sum_abs[j] = l.sum_square[j] = _mm256_setzero_pd();
    l.most = _mm256_setzero_si256();
    return l;
}

/* Four entries to lanes 4j..4j+3. */
AVX2 static inline void add_four(struct lanes *l, size_t j, __m128 x) {
    __m256d wide = _mm256_cvtps_pd(x);
    l->sum[j] = _mm256_add_pd(l->sum[j], wide);
    l->sum_abs[j] = _mm256_add_pd(l->sum_abs[j], _mm256_andnot_pd(_mm256_set1_pd(-0.0), wide));
    l->sum_square[j] = _mm256_add_pd(l->sum_square[j], _mm256_mul_pd(wide, wide));
}

/* Eight entries to the lower (j = 0) or upper (j = 2) eight lanes. */
AVX2 static inline void add_eight(struct lanes *l, size_t j, __m256 x) {
    __m256i bits = _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(0x7fffffff));
    l->most = _mm256_max_epu32(l->most, bits);
    add_four(l, j, _mm256_castps256_ps128(x));
    add_four(l, j + 1, _mm256_extractf128_ps(x, 1));
}

AVX2 static inline void lanes_store(const struct lanes *l, struct moment_lanes *m) {
    uint32_t most[8];
    _mm256_storeu_si256((__m256i *)most, l->most);
    *m = (struct moment_lanes){0};
    for (size_t j = 0; j < 8; j++) m->max_key = most[j] > m->max_key ? most[j] : m->max_key;
    for (size_t j = 0; j < 4; j++) {
        _mm256_storeu_pd(m->sum + 4 * j, l->sum[j]);
        _mm256_storeu_pd(m->sum_abs + 4 * j, l->sum_abs[j]);
        _mm256_storeu_pd(m->sum_square + 4 * j, l->sum_square[j]);
    }
}

AVX2 static size_t accumulate_compact_moments(float *acc, const float *grad, size_t n, uint32_t base, uint32_t key,
                                              uint32_t *idx, float *val, size_t cap, struct moment_lanes *m) {
    const __m256i below = just_below(key);
    struct lanes l = lanes_zero();
    size_t count = 0, i = 0;
    for (; i + MOMENT_LANES <= n; i += MOMENT_LANES) {
        uint64_t passed = 0;
        for (size_t j = 0; j < 16; j += 8) {
            look_ahead(acc + i + j);
            look_ahead(grad + i + j);
            __m256 sum = _mm256_add_ps(_mm256_loadu_ps(acc + i + j), _mm256_loadu_ps(grad + i + j));
            _mm256_storeu_ps(acc + i + j, sum);
            add_eight(&l, j / 4, sum);
            passed |= (uint64_t)reach(sum, below) << j;
        }
        if (passed) count = emit(acc, i, passed, base, idx, val, cap, count);
    }
    lanes_store(&l, m);
    for (; i < n; i++) {
        acc[i] += grad[i];
        moment_add(m, i, acc[i], magnitude_key(acc[i]));
        count = emit(acc, i, magnitude_key(acc[i]) >= key, base, idx, val, cap, count);
    }
    m->count = n;
    return count;
}

/* What does not pass is added as +0, which changes no sum: none is ever -0. */
AVX2 static void moments(const float *acc, size_t n, uint32_t key, struct moment_lanes *m) {
    const __m256i below = just_below(key);
    struct lanes l = lanes_zero();
    size_t count = 0, i = 0;
    for (; i + MOMENT_LANES <= n; i += MOMENT_LANES) {
        for (size_t j = 0; j < 16; j += 8) {
            look_ahead(acc + i + j);
            __m256 value = _mm256_loadu_ps(acc + i + j);
            __m256i bits = _mm256_and_si256(_mm256_castps_si256(value), _mm256_set1_epi32(0x7fffffff));
            __m256 passed = _mm256_castsi256_ps(_mm256_cmpgt_epi32(bits, below));
            add_eight(&l, j / 4, _mm256_and_ps(value, passed));
            count += (size_t)__builtin_popcount((unsigned)_mm256_movemask_ps(passed));
        }
    }
    lanes_store(&l, m);
    m->count = count;
    for (; i < n; i++) {
        uint32_t own = magnitude_key(acc[i]);
        if (own >= key) moment_add(m, i, acc[i], own);
    }
}

AVX2 static size_t count_keys(const float *acc, size_t n, uint32_t key) {
    const __m256i below = just_below(key);
    size_t count = 0, i = 0;
    for (; i + 8 <= n; i += 8) {
        look_ahead(acc + i);
        count += (size_t)__builtin_popcount(reach(_mm256_loadu_ps(acc + i), below));
    }
    for (; i < n; i++) count += magnitude_key(acc[i]) >= key;
    return count;
}

AVX2 static size_t filter(uint32_t *idx, float *val, size_t n, uint32_t key) {
    return filter_rest(idx, val, 0, n, key, 0);
}

AVX2 static size_t filter_keys(uint32_t *keys, size_t n, uint32_t low, uint32_t width) {
    return filter_keys_rest(keys, 0, n, low, width, 0);
}

extern const struct topk_kernels topk_kernels_avx2;
const struct topk_kernels topk_kernels_avx2 = {
    .name = "avx2",
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
