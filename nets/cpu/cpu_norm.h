/* cpu_norm.h: batch normalisation with ReLU, and with the addition that ends a residual block, on the CPU.
 *
 * Memory traffic is all that counts here, so everything that touches an activation happens in as few passes as can be:
 *      forward    1. mean and variance of each channel        reads x
 *                 2. y = max(0, a x + b [+ add])               reads x [and add], writes y
 *      backward   1. the sums over g and g (x - mean)          reads dy [, dy2] and x or y [, writes g]
 *                 2. dx = a g + p x + q                        reads g and x, writes dx
 * where g = dy [+ dy2] where y > 0, else 0. No mask is kept: without `add`, y > 0 is computed again from x.
 */
#ifndef ST_NETS_CPU_NORM_H
#define ST_NETS_CPU_NORM_H

#include "nets/cpu/cpu_view.h"

struct cpu_norm;

/* Of a tensor in this view; joins: a second tensor is added before the ReLU. */
struct cpu_norm *cpu_norm_open(const struct cpu_view *view, bool joins);
void cpu_norm_close(struct cpu_norm *norm);
void cpu_norm_forward(struct cpu_norm *norm, const struct layer_call *call, bool training);
void cpu_norm_backward(struct cpu_norm *norm, const struct layer_call *call);

#endif
