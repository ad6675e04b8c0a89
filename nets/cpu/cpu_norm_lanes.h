/* cpu_norm_lanes.h: the inner loops of cpu_norm.c for LANES channels at a time; included once for each number of
 * lanes. Every function works on one block of one image: `n` positions, `step` floats from one to the next.
 * The loops are over vectors of LANES floats, so that sums stay in registers and each channel is summed in one order
 * on every machine. */
#define NORM_JOIN_(a, b) a##_##b
#define NORM_JOIN(a, b) NORM_JOIN_(a, b)
#define NORM_NAME(name) NORM_JOIN(name, LANES)
#define VECTOR NORM_NAME(vector)
#define MASK NORM_NAME(mask)
#define AT(array, i) (*(const VECTOR *)((array) + (i)*step))
#define AT_OUT(array, i) (*(VECTOR *)((array) + (i)*step))

typedef float VECTOR __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
typedef int32_t MASK __attribute__((vector_size(LANES * 4), aligned(4), may_alias));

/* mean[c] = sum x / n,  m2[c] = sum (x - mean)^2, piece by piece: a piece is read twice, but from the first-level
 * cache, and pieces are put together by Chan, Golub & LeVeque's formula (COMPSTAT 1982, eq. 2.1). */
SIMD_CLONES static void NORM_NAME(moments)(const float *x, size_t n, size_t step, float *mean, float *m2) {
    VECTOR all_mean = {0}, all_m2 = {0};
    for (size_t begin = 0; begin < n; begin += PIECE) {
        size_t end = begin + PIECE < n ? begin + PIECE : n, i;
        VECTOR s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
        for (i = begin; i + 4 <= end; i += 4) {
            s0 += AT(x, i);
            s1 += AT(x, i + 1);
            s2 += AT(x, i + 2);
            s3 += AT(x, i + 3);
        }
        for (; i < end; i++) s0 += AT(x, i);
        float count = (float)(end - begin);
        VECTOR middle = ((s0 + s1) + (s2 + s3)) / count;
        s0 = s1 = s2 = s3 = (VECTOR){0};
        for (i = begin; i + 4 <= end; i += 4) {
            VECTOR d0 = AT(x, i) - middle, d1 = AT(x, i + 1) - middle;
            VECTOR d2 = AT(x, i + 2) - middle, d3 = AT(x, i + 3) - middle;
            s0 += d0 * d0;
            s1 += d1 * d1;
            s2 += d2 * d2;
            s3 += d3 * d3;
        }
        for (; i < end; i++) s0 += (AT(x, i) - middle) * (AT(x, i) - middle);
        VECTOR apart = middle - all_mean;
        all_mean += apart * (count / (float)end);
        all_m2 += ((s0 + s1) + (s2 + s3)) + apart * apart * ((float)begin * count / (float)end);
    }
    *(VECTOR *)mean = all_mean;
    *(VECTOR *)m2 = all_m2;
}

/* y = max(0, a x + b [+ add]); NaN stays NaN. */
SIMD_CLONES static void NORM_NAME(apply)(const float *x, const float *add, float *y, size_t n, size_t step,
                                         const float *scale, const float *shift) {
    const VECTOR a = *(const VECTOR *)scale, b = *(const VECTOR *)shift, zero = {0};
    if (add) {
        for (size_t i = 0; i < n; i++) {
            VECTOR t = AT(x, i) * a + b + AT(add, i);
            AT_OUT(y, i) = (VECTOR)((MASK)t & ~(MASK)(t < zero));
        }
    } else {
        for (size_t i = 0; i < n; i++) {
            VECTOR t = AT(x, i) * a + b;
            AT_OUT(y, i) = (VECTOR)((MASK)t & ~(MASK)(t < zero));
        }
    }
}

/* sum[c] = sum g,  dot[c] = sum g (x - mean),  g = dy where a x + b > 0. */
SIMD_CLONES static void NORM_NAME(sums_of_x)(const float *dy, const float *x, size_t n, size_t step, const float *scale,
                                             const float *shift, const float *mean, float *sum, float *dot) {
    const VECTOR a = *(const VECTOR *)scale, b = *(const VECTOR *)shift, m = *(const VECTOR *)mean, zero = {0};
    VECTOR s = {0}, d = {0};
    for (size_t i = 0; i < n; i++) {
        VECTOR value = AT(x, i), t = value * a + b;
        VECTOR g = (VECTOR)((MASK)AT(dy, i) & (MASK)(t > zero));
        s += g;
        d += g * (value - m);
    }
    *(VECTOR *)sum = s;
    *(VECTOR *)dot = d;
}

/* The same with g = dy [+ dy2] where y > 0; g is left in dy. */
SIMD_CLONES static void NORM_NAME(sums_of_y)(float *dy, const float *dy2, const float *x, const float *y, size_t n,
                                             size_t step, const float *mean, float *sum, float *dot) {
    const VECTOR m = *(const VECTOR *)mean, zero = {0};
    VECTOR s = {0}, d = {0};
    for (size_t i = 0; i < n; i++) {
        VECTOR g = AT(dy, i);
        if (dy2) g += AT(dy2, i);
        g = (VECTOR)((MASK)g & (MASK)(AT(y, i) > zero));
        AT_OUT(dy, i) = g;
        s += g;
        d += g * (AT(x, i) - m);
    }
    *(VECTOR *)sum = s;
    *(VECTOR *)dot = d;
}

/* dx = a g + p x + q;  masked: g = dy where a x + b > 0, else g = dy. dx may be dy. */
SIMD_CLONES static void NORM_NAME(gradient)(const float *dy, const float *x, float *dx, size_t n, size_t step,
                                            bool masked, const float *scale, const float *shift, const float *slope,
                                            const float *offset) {
    const VECTOR a = *(const VECTOR *)scale, b = *(const VECTOR *)shift, zero = {0};
    const VECTOR p = *(const VECTOR *)slope, q = *(const VECTOR *)offset;
    if (masked) {
        for (size_t i = 0; i < n; i++) {
            VECTOR value = AT(x, i), t = value * a + b;
            VECTOR g = (VECTOR)((MASK)AT(dy, i) & (MASK)(t > zero));
            AT_OUT(dx, i) = a * g + (p * value + q);
        }
    } else {
        for (size_t i = 0; i < n; i++) AT_OUT(dx, i) = a * AT(dy, i) + (p * AT(x, i) + q);
    }
}

static const struct norm_loops NORM_NAME(loops) = {NORM_NAME(moments), NORM_NAME(apply), NORM_NAME(sums_of_x),
                                                   NORM_NAME(sums_of_y), NORM_NAME(gradient)};

#undef NORM_JOIN_
#undef NORM_JOIN
#undef NORM_NAME
#undef VECTOR
#undef MASK
#undef AT
#undef AT_OUT
#undef LANES
