/* cuda_attention_index.h: where the queries, keys, values and scores of attention lie (nets/sequences/attention.h), and
 * which elements its dropout drops, as functions that a plain C test (tests/nets/nets_cuda_attention.c) runs too. */
#ifndef ST_NETS_CUDA_ATTENTION_INDEX_H
#define ST_NETS_CUDA_ATTENTION_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cuda/cuda_hd.h"
#include "nets/dropout.h"

/* x [sequences][T][3][heads][d], y [sequences][T][heads][d]. Both have fewer than 2^31 elements, and so have the scores
 * of one head. A head's number: sequence * heads + head; a row's: that * T + query. */
struct cuda_attention {
    uint32_t sequences, T, heads, d;
    bool causal;
};

enum { ATTENTION_T_MAX = 32768 };

/* Floats from one row of scores to the next: so that each begins at a multiple of 16 bytes. */
ST_HD uint32_t attention_pitch(const struct cuda_attention *a) {
    return (a->T + 3) / 4 * 4;
}

ST_HD uint32_t attention_heads(const struct cuda_attention *a) {
    return a->sequences * a->heads;
}

/* Floats of x before the first query (part 0), key (1) or value (2) of a head, and of y before its first row. */
ST_HD uint32_t attention_in(const struct cuda_attention *a, uint32_t head, uint32_t part) {
    const uint32_t sequence = head / a->heads, features = a->heads * a->d;
    return (3 * sequence * a->T + part) * features + (head - sequence * a->heads) * a->d;
}
ST_HD uint32_t attention_out(const struct cuda_attention *a, uint32_t head) {
    const uint32_t sequence = head / a->heads;
    return (sequence * a->T * a->heads + (head - sequence * a->heads)) * a->d;
}

/* Heads that are taken at a time: so many that their two arrays of scores have at most `most` bytes together, but one
 * at least; all turns but the last have this number, and the last is as little smaller as can be. */
ST_HD uint32_t attention_chunk(const struct cuda_attention *a, size_t most) {
    const size_t fit = most / (2 * sizeof(float) * a->T * attention_pitch(a));
    const uint32_t heads = attention_heads(a);
    if (fit < 1) return 1;
    if (fit >= heads) return heads;
    const uint32_t turns = (heads + (uint32_t)fit - 1) / (uint32_t)fit;
    return (heads + turns - 1) / turns;
}

/* Keys that query i of a sequence sees, the first ones. A length that there cannot be is cut to one that can. */
ST_HD uint32_t attention_keys(const struct cuda_attention *a, uint32_t i, int32_t length) {
    const uint32_t n = length < 1 ? 1 : (uint32_t)length > a->T ? a->T : (uint32_t)length;
    return a->causal && i + 1 < n ? i + 1 : n;
}

/* What the dropout of this step multiplies elements j ... j + 3 of a row of probabilities by; j is a multiple of 4. */
ST_HD struct dropout_factors attention_factors(const struct dropout *how, uint32_t step_low, uint32_t step_high,
                                               uint32_t T, uint32_t row, uint32_t j) {
    const uint64_t first = (uint64_t)row * T + j;
    const uint32_t block = (uint32_t)(first / 4), beyond = (uint32_t)(first % 4);
    const struct dropout_factors one = dropout_block(how, step_low, step_high, block);
    struct dropout_factors made;
    if (beyond == 0) return one;
    const struct dropout_factors next = dropout_block(how, step_low, step_high, block + 1);
    /* each place by a number known beforehand, so that all stay in registers */
    made.of[0] = beyond == 1 ? one.of[1] : beyond == 2 ? one.of[2] : one.of[3];
    made.of[1] = beyond == 1 ? one.of[2] : beyond == 2 ? one.of[3] : next.of[0];
    made.of[2] = beyond == 1 ? one.of[3] : beyond == 2 ? next.of[0] : next.of[1];
    made.of[3] = beyond == 1 ? next.of[0] : beyond == 2 ? next.of[1] : next.of[2];
    return made;
}

#endif
