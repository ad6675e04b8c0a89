/* cpu_lstm.h: what an LSTM does with the sums of its gates, on the CPU: one pass over memory each way. Formulas:
 * backend.h. All arrays are rows of one stream and step; hidden: their length H. */
#ifndef ST_NETS_CPU_LSTM_H
#define ST_NETS_CPU_LSTM_H

#include <stddef.h>

/* A row of each array; part of it, from column `begin` to `end`, is worked on. gates and bias [4][H] by gate. */
struct cpu_lstm_row {
    size_t hidden, begin, end;
    float *gates; /* forward: sums without bias to values; backward: values to gradients of the sums */
    const float *c_before;
    float *c;
};

/* c and h from the sums. bias [4][H]: both of them together. */
void cpu_lstm_forward(const struct cpu_lstm_row *row, const float *bias, float *h);
/* dy, dh: gradients of h from above and from the step after; dc: of c from the step after, left as that for the step
 * before. */
void cpu_lstm_backward(const struct cpu_lstm_row *row, const float *dy, const float *dh, float *dc);

#endif
