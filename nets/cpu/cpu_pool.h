/* cpu_pool.h: the largest value of each window, on the CPU. Contract: backend.h. */
#ifndef ST_NETS_CPU_POOL_H
#define ST_NETS_CPU_POOL_H

#include "nets/cpu/cpu_view.h"

/* Square; output (i, j) looks at rows stride i - pad ... + kernel - 1 and columns likewise. pad < kernel. */
struct cpu_window {
    int kernel, stride, pad;
};

/* x and y in one layout. */
void cpu_pool_forward(const struct cpu_view *x, const struct cpu_view *y, const struct cpu_window *window,
                      const float *from, float *to);
/* call: x and y of the forward pass, dy; dx is overwritten. */
void cpu_pool_backward(const struct cpu_view *x, const struct cpu_view *y, const struct cpu_window *window,
                       const struct layer_call *call);

#endif
