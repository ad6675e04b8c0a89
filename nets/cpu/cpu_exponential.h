/* cpu_exponential.h: e^x in float for loops that are to become vectors: that of Moshier's Cephes library (expf.c), 2^n
 * e^r with a polynomial of degree 7 in |r| <= log(2) / 2, right to about 1e-7 of itself, without branches and tables;
 * the same bits on every machine. */
#ifndef ST_NETS_CPU_EXPONENTIAL_H
#define ST_NETS_CPU_EXPONENTIAL_H

#include <stdint.h>
#include <string.h>

/* Arguments beyond these are cut: e^x stays a normal number. NaN passes: no comparison holds for it. */
#define CPU_EXPONENTIAL_LEAST -87.0f
#define CPU_EXPONENTIAL_MOST 88.0f
/* To add it rounds to an integer, which is then in the lowest bits of the sum: 3 * 2^22. */
#define CPU_EXPONENTIAL_ROUNDER 12582912.0f

static inline __attribute__((always_inline)) float cpu_exponential(float x) {
    x = x < CPU_EXPONENTIAL_LEAST ? CPU_EXPONENTIAL_LEAST : x;
    x = x > CPU_EXPONENTIAL_MOST ? CPU_EXPONENTIAL_MOST : x;
    float shifted = x * 1.44269504088896341f + CPU_EXPONENTIAL_ROUNDER, n = shifted - CPU_EXPONENTIAL_ROUNDER;
    float r = x - n * 0.693359375f - n * -2.12194440e-4f; /* log 2 in two parts, the first of which has few bits */
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    uint32_t bits;
    float power; /* 2^n: n, from the lowest bits, becomes the exponent */
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits << 23) + 0x3f800000u;
    memcpy(&power, &bits, sizeof power);
    return (p * (r * r) + r + 1) * power;
}

#endif
