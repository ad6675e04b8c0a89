/* gaussiank.c: TopKAllReduce of what a threshold estimated from mean and deviation lets through.
 *
 * Idea: gradients are nearly normally distributed, so mean and standard deviation say where about k entries lie above a
 * threshold, without a selection. Their number varies from rank to rank and from step to step: an all-gather of
 * the sizes, then one of the entries, then the sum in rank order on every rank.
 *
 * Source: Shi et al., "Understanding Top-k Sparsification in Distributed Deep Learning" (arXiv 1911.08772), Gaussian_k.
 *
 * Cost per rank: 2 log2(P) alpha + (2k + 2)(P-1) beta, k being what was really selected.
 * Residual: as topka's. The bias of the threshold (too many entries early and, unless it is adjusted, far too few late:
 * topk/selectors/gaussian.c) is the paper's; the log of each step says how many were asked for and found.
 * Restrictions: none; any P, any selector.
 * Deviation: indices and values are one message. */
#include "comm/algorithms/topka.h"
#include "comm/parts/peers.h"

/* The sizes are 8 bytes each. */
static double gaussiank_max_words(const struct cost_case *c) {
    return topka_max_words(c) + 2.0 * (c->P - 1);
}

static void gaussiank_cost(const struct cost_case *c, struct cost *cost) {
    topka_cost(c, cost);
    cost->alphas += cost->size_alphas; /* with any format */
    cost->words += cost->size_words;
    cost->size_alphas = cost->size_words = 0;
}

extern const struct exchange_ops exchange_gaussiank;
const struct exchange_ops exchange_gaussiank = {
    .name = "gaussiank",
    .summary = "topka's all-gather of the entries above a threshold from mean and deviation",
    .paper = "Gaussian_k (Shi et al., arXiv 1911.08772)",
    .default_select = "gaussian",
    .sparse = true,
    .selects = true,
    .sends_all = true,
    .conserves = true,
    .moves_as = "topka",
    .open = topka_open,
    .run = topka_run,
    .close = topka_close,
    .max_words = gaussiank_max_words,
    .cost = gaussiank_cost,
};
