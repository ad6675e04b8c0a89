/* cpu_attention.h: the loops of attention over a row of scores; see nets/sequences/attention.h. */
#ifndef ST_NETS_CPU_ATTENTION_H
#define ST_NETS_CPU_ATTENTION_H

#include <stddef.h>

/* s [n], n >= 1: p_j = exp(scale s_j) / sum over j' of exp(scale s_j'), in place. Returns the logarithm of that sum. */
float cpu_attention_softmax(float *s, size_t n, float scale);

/* The same p from the logarithm. */
void cpu_attention_again(float *s, size_t n, float scale, float log_sum);

/* ds_j = scale p_j (m_j dp_j - mean), in dp's place. m: [n], or NULL: 1. */
void cpu_attention_back(float *dp, const float *p, const float *m, size_t n, float scale, float mean);

/* sum of a_j b_j. */
float cpu_attention_dot(const float *a, const float *b, size_t n);

/* p_j *= m_j */
void cpu_attention_drop(float *p, const float *m, size_t n);

#endif
