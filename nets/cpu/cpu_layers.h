/* cpu_layers.h: the small layers on the CPU, each one pass over memory. Contracts: backend.h. */
#ifndef ST_NETS_CPU_LAYERS_H
#define ST_NETS_CPU_LAYERS_H

#include "nets/cpu/cpu_view.h"

/* Option A: y(n, c + before, i, j) = x(n, c, stride i, stride j), the other channels 0. before: (c_y - c_x) / 2. */
void cpu_shortcut_forward(const struct cpu_view *x, const struct cpu_view *y, size_t stride, const float *from,
                          float *to);
void cpu_shortcut_backward(const struct cpu_view *x, const struct cpu_view *y, size_t stride, const float *dy,
                           float *dx);

/* y [n][c] = mean over positions. */
void cpu_average_forward(const struct cpu_view *x, const float *from, float *y);
void cpu_average_backward(const struct cpu_view *x, const float *dy, float *dx);

/* to [columns] = sum of from [rows][columns] over the rows, in double and in their order; adds: += that. */
void cpu_column_sums(size_t rows, size_t columns, const float *from, bool adds, float *to);

/* Softmax cross-entropy and top-1; see backend_ops.loss. label: [valid], below 0: the row does not count. */
void cpu_loss(const float *logits, const int32_t *label, int classes, int valid, double over, float *dlogits,
              struct net_result *result);

#endif
