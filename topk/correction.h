/* correction.h: momentum correction and momentum factor masking: the momentum of SGD on each rank, in front of the
 * selection, not behind the exchange.
 *
 * Idea: a gradient entry may wait many steps in the residual. Momentum that is applied to what is delivered in the end
 * misses those steps: the sum of the entry's updates is not that of momentum SGD. So each rank keeps a velocity u_r of
 * its own gradient g_r and hands that to the exchange in place of the gradient; the residual v_r, which lives in the
 * store of the exchange, adds up velocities:
 *
 *        u_r = mu u_r + g_r,    v_r = v_r + u_r,    w = w - lr/P sum over r of what is delivered of v_r
 *
 * All of this is linear. With every entry delivered in every step it is momentum SGD with the dense gradient; with an
 * exchange that conserves, w is always short of momentum SGD's by lr/P sum_r v_r and by nothing else (while lr stays).
 * Masking: where an entry of v_r was delivered, u_r becomes 0 as well, so that old momentum does not keep moving the
 * parameter in an outdated direction. Then the sum is no longer that of momentum SGD.
 *
 * Source: Lin, Han, Mao, Wang and Dally, "Deep Gradient Compression", ICLR 2018 (arXiv 1712.01887): momentum correction
 * in section 3.2, masking in section 3.3.
 *
 *        correction_open(&c, n, device, mu, masking);
 *        ... backward ... correction_apply(&c, grad, from, to);    // grad[from..to) is final, g to u; then
 *        ...              exchange_ready(&x, from);                // where communication overlaps
 *        exchange_run(&x, grad, k, &sum);
 *        correction_mask(&c, sum.delivered, sum.exempt);           // not NULL; setup.wants_sent
 *        exchange_mean(&x, &sum, update);                          // the optimiser adds no momentum to it
 *        correction_close(&c);
 *
 * Where u is dense nothing is listed: everything was delivered. Masking all of it would leave no momentum at all, so a
 * dense step is not masked. An algorithm that cannot say what a rank delivered (rows of exchanges with `sparse` and
 * `by_node`) cannot be masked; correction without masking goes with any.
 *
 * Deviations. Masked is what the exchange counts as delivered, where the paper masks what a rank has selected; with the
 * paper's all-gather of all selections the two are the same. (Where merges drop entries on their way, gtopk and spardl,
 * an entry counts whose index came through, though that may have been by others, and this one's value may wait in the
 * residual of the rank that merged.) Weight decay has no
 * part in this: the optimiser keeps a velocity of the decay alone, behind the exchange (optimiser_setup's
 * gradient_has_momentum), as the authors' program does. Nesterov's form is left out. */
#ifndef ST_TOPK_CORRECTION_H
#define ST_TOPK_CORRECTION_H

#include "topk/store.h"

struct correction {
    /* velocity.acc: device, [n]: u_r, zero at first. What a checkpoint must hold, by velocity.ops->read and write. */
    struct store velocity;
    float mu;
    bool masking;
    size_t left;     /* of the step under way entries [0, left) are not yet corrected; n: all are, or none yet */
    uint32_t *place; /* [places]: what was delivered and is not exempt */
    size_t places;
};

void correction_open(struct correction *c, size_t n, const struct device_ops *device, float mu, bool masking);
void correction_close(struct correction *c);

/* u = mu u + g, and u in the place of g, for entries [from, to) of grad (device, [n]: all of it). A step is corrected
 * in parts that come as backward completes them, from the end on without gaps, each once: the first one ends at n, the
 * next one where the one before began, and the one that begins at 0 completes the step. Anything else dies. */
void correction_apply(struct correction *c, float *grad, size_t from, size_t to);

/* After a step: u = 0 at the indices of `delivered`, whose values do not matter; nothing happens without masking. Not
 * at those of `exempt` (NULL: none), which travel whole in every step and keep their momentum, as in a dense step: for
 * the row they were zeros, and one that was short of others may have delivered them. */
void correction_mask(struct correction *c, const struct sparse *delivered, const struct sparse *exempt);

#endif
