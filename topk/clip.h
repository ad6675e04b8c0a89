/* clip.h: the norm of a gradient and clipping to a limit, on the gradient's device; one scalar comes to the host.
 *
 *        factor = min(1, limit / (norm + 1e-6)),    g = factor g,    norm = sqrt(sum over i of g_i^2)
 *
 * as torch.nn.utils.clip_grad_norm_ has it (over all of the gradient, as one vector). Squares are exact and summed in
 * double, so that nothing overflows, in a fixed order: the same bits on every run (not from device to device).
 *
 *        double norm = clip_gradient(&store, grad, n, clip_local_limit(limit, P));
 *        if (!isfinite(norm)) ...                        // the gradient holds a NaN or an infinity
 *
 * Local clipping, for sparse exchanges: each rank clips its own gradient before adding it to the residual (and before
 * momentum correction). If the ranks' gradients are independent with one distribution, the norm of their sum is sqrt(P)
 * times that of one; so a rank's limit is P^{-1/2} times the limit for the sum. Mind the unit: the paper's gradients
 * have the factor 1/P, so that their sum is the mean; those of exchange.h do not. A limit L for the mean u/P is a limit
 * P L for the sum, and sqrt(P) L = clip_local_limit(P L, P) for a rank. The caller passes the limit for the sum;
 * passing L by mistake clips each rank to 1/P of what is meant.
 *
 * Source: Lin et al., "Deep Gradient Compression", ICLR 2018 (arXiv 1712.01887), section 3.2. The norm is that of the
 * whole gradient, so clipping comes after the end of backward. */
#ifndef ST_TOPK_CLIP_H
#define ST_TOPK_CLIP_H

#include "topk/store.h"

/* store: of the gradient's device and of n entries or more, bare or not; no more than its scratch is used, by no other
 * thread meanwhile. grad: device, [n]. NaN when an entry is NaN, else INFINITY when one is infinite. */
double gradient_norm(const struct store *store, float *grad, size_t n);

/* limit > 0. NaN for a norm that is NaN, 0 for one that is infinite. */
float clip_factor(double norm, double limit);

double clip_local_limit(double limit, int P);

/* Clips. Returns the norm before; where that is not finite the gradient is left as it is. */
double clip_gradient(const struct store *store, float *grad, size_t n, double limit);

#endif
