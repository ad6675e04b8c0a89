/* plan.c: how long a run is, in epochs and steps, and whether its data are enough for that; see run.h. */
#include <math.h>

#include "cli/train/resize.h"

/* What is before this leg goes by the steps of the last one, where anybody asks. */
double run_epoch(const struct run *r, size_t steps) {
    const struct leg *leg = &r->leg;
    if (steps < leg->step) return fmax(run_epoch(r, leg->step) - (double)(leg->step - steps) * leg->before, 0);
    const double before = (double)leg->position, batches = (double)(steps - leg->step) * (double)r->options.accumulate;
    const double images = batches * (double)r->options.batch * r->comm->size; /* or windows */
    if (r->data.task->whole) return before + batches / (double)r->data.windows;
    if (r->data.task->windows) return (before + images) * options_sequence(&r->options) / (double)run_samples(r);
    return (before + images) / (double)run_samples(r);
}

double run_step_epochs(const struct run *r) {
    return run_epoch(r, r->leg.step + 1) - run_epoch(r, r->leg.step);
}

size_t run_samples(const struct run *r) {
    return r->data.task->count(&r->data.set, SPLIT_TRAIN);
}

double run_rate(const struct run *r, const struct row *sum) {
    const double count = r->data.task->pairs ? sum->pairs : sum->samples;
    return sum->seconds > 0 ? count / sum->seconds : 0;
}

/* The steps that so many epochs of the run take, those before this leg included. */
static size_t steps_of(const struct run *r, double epochs, double per_epoch) {
    const double more = ceil((epochs - run_epoch(r, r->leg.step)) * per_epoch - 1e-9);
    return (size_t)fmax((double)r->leg.step + more, 0);
}

/* The epochs that so many steps come to. */
static double epochs_of(const struct run *r, double steps, double per_epoch) {
    const double leg = (double)r->leg.step;
    return steps < leg ? steps / per_epoch : run_epoch(r, r->leg.step) + (steps - leg) / per_epoch;
}

/* --stop-at, of a run of so many epochs. */
static bool plan_stop(struct run *r, double epochs, double per_epoch, struct err *e) {
    const double at = r->options.stop_at;
    r->stop = isnan(at) ? r->steps : steps_of(r, at, per_epoch);
    if (isnan(at) || r->stop <= r->steps) return true;
    return err_set(e, "--stop-at %g is beyond the end of the run, which has %.6g epochs; leave it out, or give more %s",
                   at, epochs, r->options.steps > 0 ? "--steps" : "--epochs");
}

bool plan_samples(struct run *r, struct err *e) {
    const struct options *o = &r->options;
    const size_t images = (size_t)o->batch * (size_t)o->accumulate * (size_t)r->comm->size, there = run_samples(r);
    if (images <= there) return true;
    if (o->accumulate == 1)
        return err_set(e, "--batch %lld on %d rank%s is more than the %zu training %ss; use a smaller --batch",
                       (long long)o->batch, r->comm->size, r->comm->size > 1 ? "s" : "", there, run_sample(r));
    return err_set(e,
                   "--batch %lld, --accumulate %lld times, on %d rank%s is more than the %zu training %ss; use a "
                   "smaller --accumulate or --batch",
                   (long long)o->batch, (long long)o->accumulate, r->comm->size, r->comm->size > 1 ? "s" : "", there,
                   run_sample(r));
}

/* A run of so many steps goes by them, as long as they may be; one of epochs, too, as long as all are alike. */
static void plan_rate(struct run *r) {
    const struct options *o = &r->options;
    struct lr_schedule *s = &r->model.lr;
    s->base = o->lr;
    s->warmup = o->lr_warmup;
    s->warmup_steps = (size_t)o->lr_warmup_steps;
    s->steps = r->steps;
    if (o->steps > 0 || r->leg.step == 0) return;
    s->from = s->warmup_steps > 0 ? run_epoch(r, s->warmup_steps) : 0;
    s->to = run_epoch(r, r->steps);
}

bool run_plan(struct run *r, struct err *e) {
    struct options *o = &r->options;
    const struct task_ops *task = r->data.task;
    if (!task->can_evaluate(r, e) || !task->plan(r, e) || !resize_plan(r, e)) return false;
    const double images = (double)o->batch * (double)o->accumulate * r->comm->size; /* a step */
    double per_epoch = (double)run_samples(r) / images;
    if (task->windows)
        per_epoch = (double)run_samples(r) / (images * options_sequence(o));
    else if (task->whole)
        per_epoch = (double)r->data.windows / (double)o->accumulate;
    r->steps = o->steps > 0 ? (size_t)o->steps : steps_of(r, o->epochs, per_epoch);
    double epochs = o->steps > 0 ? epochs_of(r, (double)o->steps, per_epoch) : o->epochs;
    plan_rate(r);
    return plan_stop(r, epochs, per_epoch, e) && target_plan(r, e) && lr_parse(o->lr_schedule, epochs, &r->model.lr, e);
}
