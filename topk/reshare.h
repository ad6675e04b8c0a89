/* reshare.h: what each rank keeps of its own gradient, its residual and its velocity (correction.h), where a run goes
 * on with another number of ranks: from v_r of P ranks to v'_s of Q.
 *
 * An exchange adds up what ranks deliver, and the optimiser gets 1/P of that sum (exchange_mean). What is still to come
 * is therefore (1/P) sum_r v_r: the e of error feedback (Karimireddy et al., ICML 2019, whose analysis goes by x - e),
 * the mean of the ranks'. Two rules, both of them the identity for Q = P:
 *
 *        mean   v'_s = (1/P) sum_r w_sr v_r,   w_sr = length of [s P, (s+1) P) and [r Q, (r+1) Q) in common
 *               (1/Q) sum_s v'_s = (1/P) sum_r v_r
 *        sum    v'_s = sum of those v_r with r mod Q = s;  0 for s >= P
 *               sum_s v'_s = sum_r v_r
 *
 * mean: parameters are moved as far as they would have been. The weights w_sr / P of a new rank add up to 1, so that
 * what it keeps is as large as what old ranks kept, and meets gradients of that size in the selection: 4 to 2 is the
 * mean of two each, 2 to 4 has each twice, 2 to 3 is v_0, (v_0 + v_1)/2, v_1. Those of an old rank add up to Q/P.
 * sum: the numbers themselves, whose part in the update becomes P/Q of what it was: 1/Q of the sum, not 1/P.
 *
 * Of u_r = mu u_r + g_r all of this is true as well: it is linear in the gradients, and goes to the residual.
 *
 * Rounding: products and sums are in double, in the order of the ranks; each v' is rounded once. With whole numbers
 * whose quotients are whole numbers both equations hold exactly.
 *
 *        double *sum = mem_zalloc(n, sizeof *sum, "...");
 *        for (int r = 0; r < P; r++)
 *            if (reshare_weight(how, P, Q, s, r) > 0) ... read v_r ..., reshare_add(sum, v, n, weight);
 *        reshare_take(v, sum, n, reshare_divisor(how, P)); */
#ifndef ST_TOPK_RESHARE_H
#define ST_TOPK_RESHARE_H

#include <stddef.h>
#include <stdint.h>

enum reshare { RESHARE_MEAN, RESHARE_SUM };

/* w_sr; of sum 1 or 0. 0 <= s < Q, 0 <= r < P. Of mean at most ceil(P/Q) + 1 ranks, one after the other, have any. */
int64_t reshare_weight(enum reshare how, int P, int Q, int s, int r);
/* P, or 1. */
int64_t reshare_divisor(enum reshare how, int P);

/* sum += weight v, then v = sum / divisor; sum, v: host, [n]. */
void reshare_add(double *sum, const float *v, size_t n, int64_t weight);
void reshare_take(float *v, const double *sum, size_t n, int64_t divisor);

#endif
