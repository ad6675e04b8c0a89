/* diloco.c: outer gradients as they are: once in a round of many steps the sum over the ranks of how far their
 * parameters have moved, as `dense` sums gradients.
 *
 * Idea: every rank steps by itself, with an optimiser of its own (--optimiser) whose state it keeps from round to
 * round; after --average-every steps what the parameters have moved, averaged over the ranks, is taken for a gradient
 * by which an outer optimiser, SGD with Nesterov's momentum, steps from where the round began (nets/optimisers/outer.h,
 * cli/train/rounds.c). All ranks go on from there. Between rounds nothing is sent.
 *
 * Source: Douillard et al., "DiLoCo: Distributed Low-Communication Training of Language Models", 2023, arXiv
 * 2311.08105: rounds of 500 steps of AdamW, outer rate 0.7, outer momentum 0.9, the defaults here.
 *
 * Cost per rank and round: that of dense, 2 log2(P) alpha + 2n(P-1)/P beta; in 16 bits (--wire bf16 or fp16), as
 * published code sends it, half the words, with error feedback.
 * Restrictions: the vector must be an outer gradient: on gradients, as in benches, the row is dense. Replicas differ
 * between rounds.
 * Deviations: the last round of a run ends with its last step, however short it is. */
#include "comm/exchange.h"
#include "comm/parts/feedback.h"

static void diloco_open(struct exchange *x) {
    exchange_dense.open(x);
}

static void diloco_close(struct exchange *x) {
    exchange_dense.close(x);
}

static bool diloco_run(struct exchange *x, float *delta, size_t k, struct exchange_sum *sum) {
    return exchange_dense.run(x, delta, k, sum);
}

static double diloco_max_words(const struct cost_case *c) {
    return exchange_dense.max_words(c);
}

static void diloco_cost(const struct cost_case *c, struct cost *cost) {
    exchange_dense.cost(c, cost);
}

extern const struct exchange_ops exchange_diloco;
const struct exchange_ops exchange_diloco = {
    .name = "diloco",
    .summary = "rounds of --average-every local steps, then an outer step on what the parameters have moved",
    .paper = "DiLoCo (Douillard et al., 2023, arXiv 2311.08105)",
    .options = OPTION_PART(feedback_option),
    .conserves = true,
    .outer = true,
    .rounds_of = {.steps = 500, .rate = 0.7, .momentum = 0.9},
    .halves = true,
    .keeps = feedback_keeps_halves,
    .loses = feedback_loses,
    .open = diloco_open,
    .run = diloco_run,
    .close = diloco_close,
    .max_words = diloco_max_words,
    .cost = diloco_cost,
};
