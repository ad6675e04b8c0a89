/* outer.h: the outer step of training in rounds: every rank has made some steps of its own since all of them held the
 * same parameters w. How far they have moved away from w, averaged over the ranks, is taken for a gradient, the outer
 * one, by which SGD with Nesterov's momentum steps from w:
 *
 *        d_r = w - w_r                                        // outer_gradient, on each rank
 *        g = mean of d_r;  v = mu v + g;  w = w - eta (g + mu v)                  // outer_step, the same on all ranks
 *
 * Source: DiLoCo (Douillard et al., 2023, arXiv 2311.08105), Algorithm 1; Nesterov's momentum as torch.optim.SGD has
 * it, whose first v is g, too. eta = 1 and mu = 0 make w the mean of the w_r.
 *
 * What is exact: one step of plain SGD in a round (w_r = w - lr g_r), eta = 1 and mu = 0 are w - lr mean(g_r), the
 * step of `dense`, to the bit where w - lr g_r and lr g_r are exact and the sums of both are. Elsewhere w_r has been
 * rounded to the bits that w has there, before there is a mean, and d_r is of what was rounded: the two differ in the
 * last bits of w. Nothing but the gradients themselves, which only dense sends, would have those bits.
 *
 * Host memory, as parameters pass through it at the end of a round on any device. */
#ifndef ST_NETS_OUTER_H
#define ST_NETS_OUTER_H

#include <stddef.h>

struct outer_rates {
    double rate, momentum; /* eta, mu */
};

/* delta[i] = before[i] - now[i]; [n]; delta may be now. */
void outer_gradient(const float *before, const float *now, size_t n, float *delta);

/* mean: [n], g. velocity: [n], v; NULL with mu = 0. param: [n], w. Every product and sum is rounded to f32 in the order
 * above; a v that is subnormal then is 0 (base/subnormal.h). Returns the first index where w is not finite then, or n.
 */
size_t outer_step(const struct outer_rates *rates, const float *mean, size_t n, float *velocity, float *param);

#endif
