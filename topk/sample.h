/* sample.h: the sample of acc + grad from which a threshold is guessed, the same on every device: whole cache lines,
 * one at a scrambled place in each of as many equal strata. */
#ifndef ST_TOPK_SAMPLE_H
#define ST_TOPK_SAMPLE_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cuda/cuda_hd.h"

enum {
    SAMPLE_LINE = 16,   /* floats in a cache line */
    SAMPLE_MAX = 32768, /* entries */
    SAMPLE_PART = 64    /* at most one entry of so many */
};

/* How many lines of n entries are looked at; 0 where n is below 1024. */
static inline size_t sample_lines(size_t n) {
    const size_t part = n / SAMPLE_PART, most = SAMPLE_MAX;
    return (part < most ? part : most) / SAMPLE_LINE;
}

/* The first entry of the line in stratum b of `lines`. The place inside the stratum is hashed (Knuth's multiplicative
 * hash), so that the sample does not fall into step with periodic data. */
ST_HD uint64_t sample_line_at(uint64_t n, uint64_t lines, uint32_t b) {
    const uint64_t line = SAMPLE_LINE, stride = n / lines, scrambled = b * 2654435761u;
    return (b * stride + (scrambled * (stride - line + 1) >> 32)) / line * line;
}

/* The rank whose key, of m samples, is probably reached by a few more than k of n entries; m or more: none is.
 *
 * Of m samples, e = m k/n lie among the k largest on average, with a deviation below sqrt(e): the sample of rank
 * e + 4 sqrt(e) + 8 is below the k-th largest of all but once in tens of thousands of steps. (Entries of one line
 * are not quite independent; a wrong guess costs one more selection, not a wrong result.) */
static inline size_t sample_rank(size_t n, size_t m, size_t k) {
    double expected = (double)m * (double)k / (double)n;
    return (size_t)(expected + 4 * sqrt(expected) + 8);
}

#endif
