/* gradient.c: what happens to a gradient beside the exchange: clipping by its Euclidean norm, of each rank's own or of
 * the mean (--clip-norm, --clip-at), momentum before the exchange (--momentum-correction, --momentum-masking), and the
 * learning rate in front of the residual (--fold-lr). */
#include "cli/train/run.h"
#include "topk/clip.h"

/* Each rank's own gradient, to P^{-1/2} of what the sum over the ranks is to keep (Lin et al., ICLR 2018, Section 3.2),
 * which is P times what their mean is to keep: G sqrt(P). What is not finite stays as it is: the exchange will find it
 * and say where. */
static void clip_own(struct run *r) {
    const int P = r->comm->size;
    double limit = clip_local_limit(r->options.clip_norm * P, P);
    r->now.row.gradient_norm = clip_gradient(&r->path.reducer.store, r->model.net->arena.grad, r->model.n, limit);
}

/* Ok-Topk's Algorithm 2, line 4: acc = residual + lr grad, and w = w - u/P. What waits in the residual keeps the rate
 * of the step that it is of. The optimiser multiplies by the rate of its own step, which is therefore taken out of the
 * mean again: so clipping, momentum and weight decay are what they are without. A dense step leaves no residual. */
static bool folds(const struct run *r) {
    return r->options.fold_lr && r->now.exchange->ops->sparse;
}

static void scale(struct run *r, size_t from, size_t to, double by) {
    struct store part = r->path.reducer.store;
    part.n = to - from;
    part.ops->scale(&part, r->model.net->arena.grad + from, (float)by);
}

void gradient_before(struct run *r, size_t from) {
    float *grad = r->model.net->arena.grad;
    const bool clips = options_clip_local(&r->options), corrects = r->options.momentum_correction;
    if (r->now.corrected <= from || (!clips && !corrects && !folds(r))) return;
    enum phase phase = phase_enter(&r->phases, PHASE_SELECT);
    if (clips) clip_own(r);
    if (corrects) correction_apply(&r->path.correction, grad, from, r->now.corrected);
    if (folds(r)) scale(r, from, r->now.corrected, r->now.lr);
    r->now.corrected = from;
    phase_enter(&r->phases, phase);
}

/* In a dense step every rank delivers everything, but as a part of the sum whose momentum is wanted: nothing is
 * masked. */
void gradient_delivered(struct run *r) {
    const struct exchange_sum *sum = &r->now.sum;
    if (!r->options.momentum_masking || !sum->sparse) return;
    enum phase phase = phase_enter(&r->phases, PHASE_SELECT);
    correction_mask(&r->path.correction, sum->delivered, sum->exempt);
    phase_enter(&r->phases, phase);
}

void gradient_mean(struct run *r) {
    const struct options *o = &r->options;
    if (folds(r)) scale(r, 0, r->model.n, 1 / r->now.lr);
    if (o->clip_norm > 0 && !options_clip_local(o))
        r->now.row.gradient_norm =
            clip_gradient(&r->path.reducer.store, r->model.net->arena.grad, r->model.n, o->clip_norm);
}
