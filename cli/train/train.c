/* train.c: the loop. Next batch; forward; backward (these three --accumulate times); exchange; optimiser step; log.
 * What comes between two steps is between_steps.c's, what only looks on observers.c's. */
#include <math.h>

#include "cli/observe/observers.h"
#include "cli/observe/step_row.h"
#include "cli/observe/watching.h"
#include "cli/train/between_steps.h"
#include "cli/train/finite.h"
#include "cli/train/rounds.h"
#include "cli/train/run.h"

/* What the step under way will do. */
static void begin_step(struct run *r) {
    struct gradient_path *p = &r->path;
    const bool dense = p->dense_start.ops && r->step < p->density.dense_steps;
    struct exchange *own = p->local.ops ? &p->local : &p->reducer.exchange;
    const double epoch = run_epoch(r, r->step);
    r->comm->step = r->step + 1;
    watching_enter(r, ACTIVITY_STEP, r->step + 1);
    struct step *s = &r->now;
    *s = (struct step){.exchange = dense ? &p->dense_start : own, .corrected = r->model.n};
    s->density = s->exchange->ops->sparse ? density_at(&p->density, r->step, (size_t)epoch) : 1;
    s->k = density_to_k(s->density, r->model.n - p->exempts);
    s->lr = lr_at(&r->model.lr, r->step, epoch, (int)r->leg.first_ranks);
    s->meets = comes_between(r);
    step_row_begin(r);
    observers_begin(r);
}

static const struct batch *next_batch(struct run *r) {
    phase_enter(&r->phases, PHASE_IO);
    return loader_next(r->data.loader);
}

/* On the CPU after forward. A device is given the backward pass before anybody asks it for the loss. */
static void take_loss(struct run *r) {
    struct net_result result;
    net_result(r->model.net, &result);
    check_update(r, r->step);
    if (!isfinite(result.loss)) loss_not_finite(r);
    r->now.row.loss += result.loss;
    r->now.row.correct += result.correct;
    r->now.row.samples += result.count;
    if (!r->data.task->pairs) return;
    net_result_of(r->model.net, 1, &result);
    if (!isfinite(result.loss)) loss_not_finite(r);
    r->now.row.next_loss += result.loss;
    r->now.row.next_correct += result.correct;
    r->now.row.pairs += result.count;
}

static void forward(struct run *r, const struct batch *b) {
    phase_enter(&r->phases, PHASE_COMPUTE);
    r->data.task->forward(r, b);
    if (device_is_host(r->model.net->arena.device)) take_loss(r);
}

static void gradient_ready(void *run, size_t from) {
    struct run *r = run;
    gradient_before(r, from);
    exchange_ready(r->now.exchange, from);
}

/* Gradients are added up over the parts of a step and are final in the last one alone: what communication an algorithm
 * can hide behind backward begins there. Without any, the time that a device still needs is computing's, not that of
 * whoever waits for it first. */
static void backward(struct run *r, int64_t part) {
    struct net *net = r->model.net;
    struct exchange *x = r->now.exchange;
    const bool last = part + 1 == r->options.accumulate;
    const bool early = last && x->ops->begin && observers_leave_gradient(r);
    if (early) exchange_begin(x, net->arena.grad, r->now.k);
    net_backward_with(net, part > 0, early ? gradient_ready : NULL, r);
    if (last && !early) net->arena.device->sync();
    if (!device_is_host(net->arena.device)) take_loss(r);
}

/* From this rank's gradient to the mean over the ranks, or what the algorithm has in its place. */
static void exchange(struct run *r) {
    struct exchange *x = r->now.exchange;
    struct exchange_sum *sum = &r->now.sum;
    float *grad = r->model.net->arena.grad;
    phase_enter(&r->phases, PHASE_OTHER);
    observe(r, MOMENT_GRADIENT);
    gradient_before(r, 0);
    observe(r, MOMENT_BEFORE);
    if (!exchange_run(x, grad, r->now.k, sum))
        not_finite(r, x->ops->sparse || x->ops->drifts ? "the gradient" : "the sum of the gradients", sum->bad);
    observe(r, MOMENT_AFTER);
    gradient_delivered(r);
    if (r->options.local_update && x->ops->sparse)
        exchange_combine(x, sum, grad);
    else
        exchange_mean(x, sum, grad);
}

/* Where what comes next looks at the parameters, or sends them to others, they are known to be good then. */
static void optimise(struct run *r) {
    const struct arena *a = &r->model.net->arena;
    phase_enter(&r->phases, PHASE_UPDATE);
    gradient_mean(r);
    optimiser_step(&r->model.optimiser, a->param, a->grad, r->now.lr);
    if (r->now.meets || r->replicas.drifts || device_is_host(a->device)) check_update(r, r->step + 1);
    phase_enter(&r->phases, PHASE_OTHER);
}

/* Where replicas drift: the end of a round, or the average of the parameters. */
static void come_together(struct run *r) {
    if (!r->replicas.drifts || (!run_due(r, r->options.average_every) && r->step < r->steps)) return;
    if (r->rounds.param)
        run_round(r);
    else
        run_average(r);
}

static void finish_step(struct run *r, bool *stop) {
    r->step++;
    observe(r, MOMENT_END);
    come_together(r);
    step_row_end(r);
    log_step(r, r->now.meets || r->trouble.text[0], stop);
}

bool run_train(struct run *r, int *status, struct err *e) {
    bool stop = false;
    r->comm->traffic = TRAFFIC_CONTROL;
    before_steps(r);
    r->eval_stops = true;
    while (r->step < r->stop && !stop) {
        begin_step(r);
        for (int64_t part = 0; part < r->options.accumulate; part++) {
            const struct batch *b = next_batch(r);
            forward(r, b);
            backward(r, part);
        }
        exchange(r);
        optimise(r);
        finish_step(r, &stop);
        if (r->now.meets || stop) between_steps(r, stop);
        stop |= r->stopped || r->trouble.text[0] != '\0';
    }
    *status = r->stopped ? EXIT_STOPPED : EXIT_DONE;
    return after_steps(r, e);
}
