/* xi.h: how far the sum of an exchange is from the k largest entries of the sum of all that the ranks have: the xi of
 * Ok-Topk's Assumption 1 (Li and Hoefler, PPoPP 2022, equation 5), measured in a step of a real run:
 *
 *               || Top_k(1/P sum_r acc_r) - u / P ||
 *        xi  =  ------------------------------------        acc_r = residual_r + grad_r
 *                       || 1/P sum_r grad_r ||
 *
 * u: what the exchange gives the optimiser, which for Ok-Topk is Top_k(sum_r Top_k(acc_r)) with its thresholds. P
 * cancels. The paper multiplies the gradient by the learning rate before it adds the residual, here the optimiser does
 * so afterwards: the quotient is the same while the rate is.
 *
 *        xi_open(&x, comm, n);
 *        xi_before(&x, &store, grad, exempt, exempts);   // the store holds the residual, grad is complete
 *        exchange_run(...);
 *        value = xi_after(&x, k, sum.sparse);            // rank 0; NaN on the others
 *        below = xi_denominator(&x);                     // likewise
 *        xi_close(&x);
 *
 * Rank 0 keeps sum_r acc_r: 8 n bytes. All calls but xi_close are collective; what passes is charged to the caller's
 * kind of traffic, which is to be TRAFFIC_CONTROL. */
#ifndef ST_CLI_XI_H
#define ST_CLI_XI_H

#include "comm/comm.h"
#include "topk/store.h"

struct xi {
    struct comm *comm;
    size_t n;
    double *sum;            /* rank 0: [n] sum over the ranks of acc; NULL on the others */
    double gradient_square; /* squared length of the sum of the gradients */
    double *block;          /* a block of both sums */
    float *stage;           /* of residual and gradient, on their way to the host */
    size_t *count;          /* of digits, see kth_magnitude */
};

void xi_open(struct xi *x, struct comm *c, size_t n);
/* Nothing happens to one that is all zero. */
void xi_close(struct xi *x);

/* grad: device, [n]. Entries exempt from selection ([exempts], strictly increasing; NULL with 0) compete for nothing:
 * of them only the gradient counts. */
void xi_before(struct xi *x, struct store *s, const float *grad, const uint32_t *exempt, size_t exempts);

/* u: the exchange's sum, [n]. NaN where the sum of the gradients is zero, and on all ranks but 0. */
double xi_after(struct xi *x, size_t k, const struct sparse *u);

/* || 1/P sum_r grad_r || of the last xi_before, which is below the line in xi. NaN on all ranks but 0. */
double xi_denominator(const struct xi *x);

#endif
