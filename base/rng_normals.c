/* rng_normals.c: many normal numbers at once: the initial values of a network are some 10^8 of them.
 *
 * Philox, the logarithm and the cosine are computed for four numbers at a time, with glibc's vector library, whose
 * results may be some units in the last place of a double beside those of the scalar functions. A float keeps 24 of the
 * 53 bits, so that both round to the same float unless they lie beside the middle between two of them; there, once in
 * 2^16 numbers, the scalar functions are asked, so that no bit shows which of the two it was. */
#include "base/rng.h"

#if defined(__x86_64__) && defined(__GLIBC__)
#include <immintrin.h>

#include "base/philox.h"

#define AVX2 __attribute__((target("avx2")))

/* glibc's libmvec, which -lm brings: at most 4 units in the last place off. */
AVX2 __m256d log_of_four(__m256d x) __asm__("_ZGVdN4v_log");
AVX2 __m256d cos_of_four(__m256d x) __asm__("_ZGVdN4v_cos");

enum { LANES = 4 };

/* high * 2^32 + low of each 64-bit lane, both below 2^32, as rng_uniform makes it: the upper 53 bits times 2^-53. */
AVX2 static inline __m256d uniform_of(__m256i high, __m256i low) {
    const __m256i exponent = _mm256_set1_epi64x(0x4330000000000000); /* of 2^52, below which an integer fits */
    const __m256d offset = _mm256_castsi256_pd(exponent);
    const __m256i rest = _mm256_srli_epi64(low, 11);
    const __m256d upper = _mm256_sub_pd(_mm256_castsi256_pd(_mm256_or_si256(high, exponent)), offset);
    const __m256d lower = _mm256_sub_pd(_mm256_castsi256_pd(_mm256_or_si256(rest, exponent)), offset);
    return _mm256_add_pd(_mm256_mul_pd(upper, _mm256_set1_pd(0x1p-32)), _mm256_mul_pd(lower, _mm256_set1_pd(0x1p-53)));
}

/* scale * rng_normal() of the blocks that r's counter is at and the next ones, each from a block of its own. */
AVX2 static inline __m256d normals_of(const struct rng *r, __m256d scale) {
    const __m256i word = _mm256_set1_epi64x(0xffffffff), first = _mm256_setr_epi64x(0, 1, 2, 3);
    const __m256i m0 = _mm256_set1_epi64x(PHILOX_M0), m1 = _mm256_set1_epi64x(PHILOX_M1);
    __m256i c0 = _mm256_and_si256(_mm256_add_epi64(_mm256_set1_epi64x(r->counter[0]), first), word);
    __m256i c1 = _mm256_set1_epi64x(r->counter[1]), c2 = _mm256_set1_epi64x(r->counter[2]),
            c3 = _mm256_set1_epi64x(r->counter[3]);
    uint32_t k0 = r->key[0], k1 = r->key[1];
    for (int round = 0; round < PHILOX_ROUNDS; round++, k0 += PHILOX_W0, k1 += PHILOX_W1) {
        const __m256i p0 = _mm256_mul_epu32(m0, c0), p1 = _mm256_mul_epu32(m1, c2);
        c0 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p1, 32), c1), _mm256_set1_epi64x(k0));
        c2 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p0, 32), c3), _mm256_set1_epi64x(k1));
        c1 = _mm256_and_si256(p1, word);
        c3 = _mm256_and_si256(p0, word);
    }
    const __m256d u = _mm256_sub_pd(_mm256_set1_pd(1), uniform_of(c0, c1)), v = uniform_of(c2, c3);
    const __m256d length = _mm256_sqrt_pd(_mm256_mul_pd(_mm256_set1_pd(-2), log_of_four(u)));
    const __m256d turned = cos_of_four(_mm256_mul_pd(_mm256_set1_pd(6.283185307179586), v));
    return _mm256_mul_pd(scale, _mm256_mul_pd(length, turned));
}

/* Bit j is set where x[j] is so near to the middle of two floats, or so small, that another last bit might be another
 * float. */
AVX2 static inline int in_doubt(__m256d x) {
    enum { NEAR = 1 << 12 }; /* units in the last place; those of the two functions and of three products are 16 */
    const __m256i below = _mm256_and_si256(_mm256_castpd_si256(x), _mm256_set1_epi64x((1 << 29) - 1));
    const __m256i off = _mm256_sub_epi64(below, _mm256_set1_epi64x((1 << 28) - NEAR));
    /* 0 <= off <= 2 * NEAR, as 32-bit numbers, in the lower half of each lane */
    const __m256i low = _mm256_cmpgt_epi32(off, _mm256_set1_epi32(-1));
    const __m256i high = _mm256_cmpgt_epi32(_mm256_set1_epi32(2 * NEAR + 1), off);
    const __m256i near = _mm256_slli_epi64(_mm256_and_si256(low, high), 32);
    const __m256d size = _mm256_andnot_pd(_mm256_set1_pd(-0.0), x);
    const __m256d small = _mm256_cmp_pd(size, _mm256_set1_pd(0x1p-120), _CMP_LT_OQ);
    return _mm256_movemask_pd(_mm256_or_pd(_mm256_castsi256_pd(near), small));
}

/* How many it made. */
AVX2 static size_t four_by_four(struct rng *r, double scale, float *x, size_t n) {
    const __m256d factor = _mm256_set1_pd(scale);
    size_t i = 0;
    for (; i + LANES <= n; i += LANES, r->counter[0] += LANES) {
        const __m256d made = normals_of(r, factor);
        int doubt = in_doubt(made);
        _mm_storeu_ps(x + i, _mm256_cvtpd_ps(made));
        for (; doubt; doubt &= doubt - 1) {
            const int lane = __builtin_ctz((unsigned)doubt);
            struct rng there = *r;
            there.counter[0] += (uint32_t)lane;
            x[i + (size_t)lane] = (float)(scale * rng_normal(&there));
        }
    }
    return i;
}

static size_t made_at_once(struct rng *r, double scale, float *x, size_t n) {
    if (r->left || !__builtin_cpu_supports("avx2")) return 0;
    return four_by_four(r, scale, x, n);
}
#else
static size_t made_at_once(struct rng *r, double scale, float *x, size_t n) {
    (void)r, (void)scale, (void)x, (void)n;
    return 0;
}
#endif

void rng_normals(struct rng *r, double scale, float *x, size_t n) {
    for (size_t i = made_at_once(r, scale, x, n); i < n; i++) x[i] = (float)(scale * rng_normal(r));
}
