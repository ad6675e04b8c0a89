/* plan.c: how long a run is, in epochs and steps, and whether its data are enough for that; see run.h. */
#include <math.h>

#include "cli/train/resize.h"

/* What is before this leg goes by the steps of the last one, where anybody asks. */
double run_epoch(const struct run *r, size_t steps) {
    const struct leg *leg = &r->leg;
    if (steps < leg->step) return fmax(run_epoch(r, leg->step) - (double)(leg->step - steps) * leg->before, 0);
    const double before = (double)leg->position, batches = (double)(steps - leg->step) * (double)r->options.accumulate;
    const double images = batches * (double)r->options.batch * r->comm->size; /* or windows */
    if (r->data.random) return (before + images) * options_sequence(&r->options) / (double)r->data.set.train_text.count;
    if (r->data.text) return before + batches / (double)r->data.windows;
    return (before + images) / (double)run_samples(r);
}

double run_step_epochs(const struct run *r) {
    return run_epoch(r, r->leg.step + 1) - run_epoch(r, r->leg.step);
}

size_t run_samples(const struct run *r) {
    return r->data.pairs ? r->data.set.train_pairs.count : r->data.set.train.count;
}

double run_rate(const struct run *r, const struct row *sum) {
    const double count = r->data.pairs ? sum->pairs : sum->samples;
    return sum->seconds > 0 ? count / sum->seconds : 0;
}

/* The texts of an evaluation must be long enough for one prediction; there may be none to test on. */
static bool check_texts(const struct run *r, struct err *e) {
    const size_t valid = r->data.set.valid_text.count, test = r->data.set.test_text.count;
    if (valid >= 2 && test != 1) return true;
    return err_set(e,
                   "--data %s has one word to %s: an evaluation predicts each word from those before it and needs 2 "
                   "at least, ends of lines among them; take a longer text",
                   r->options.data, valid < 2 ? "validate on" : "test on");
}

static bool check_pairs(const struct run *r, struct err *e) {
    if (r->data.set.valid_pairs.count > 0) return true;
    return err_set(e, "--data %s has no pair of sentences to validate on; take a longer text", r->options.data);
}

/* Windows from random places must find one, in the text to train on and in that to validate on. */
static bool plan_random(const struct run *r, struct err *e) {
    const struct options *o = &r->options;
    const size_t train = r->data.set.train_text.count, valid = r->data.set.valid_text.count;
    const int T = options_sequence(o);
    if (text_places(train, T) == 0)
        return err_set(e, "--data %s has %zu %ss to train on; --context %d needs %d at least; use a smaller one",
                       o->data, train, run_sample(r), T, T + 1);
    if (o->eval_samples == 0 || text_places(valid, T) > 0) return true;
    return err_set(e,
                   "--data %s has %zu %ss to validate on, too few for a window of --context %d; use a smaller one, or "
                   "--eval-samples 0",
                   o->data, valid, run_sample(r), T);
}

/* A text must also be long enough for one window of every stream. */
static bool plan_streams(struct run *r, struct err *e) {
    const struct options *o = &r->options;
    const size_t streams = (size_t)o->batch * (size_t)r->comm->size, words = r->data.set.train_text.count;
    r->data.streams = streams;
    r->data.first_stream = (size_t)o->batch * (size_t)r->comm->rank;
    r->data.windows = text_windows(words, streams, (int)o->bptt);
    if (r->data.windows > 0 && r->data.windows < (size_t)o->accumulate)
        return err_set(
            e,
            "--accumulate %lld is more than the %zu windows that --batch %lld streams on %d rank%s with --bptt "
            "%lld read in an epoch; use a smaller one",
            (long long)o->accumulate, r->data.windows, (long long)o->batch, r->comm->size, r->comm->size > 1 ? "s" : "",
            (long long)o->bptt);
    if (r->data.windows > 0) return true;
    return err_set(
        e,
        "--data %s has %zu %ss to train on; --batch %lld streams on %d rank%s with --bptt %lld need at least "
        "%zu; use a smaller --batch or --bptt",
        o->data, words, run_sample(r), (long long)o->batch, r->comm->size, r->comm->size > 1 ? "s" : "",
        (long long)o->bptt, text_least(streams, (int)o->bptt));
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

/* No image comes twice in a step. */
static bool plan_images(const struct run *r, struct err *e) {
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

bool run_can_evaluate(const struct run *r, struct err *e) {
    if (r->data.pairs) return check_pairs(r, e);
    return !r->data.text || check_texts(r, e);
}

static bool plan_text(struct run *r, struct err *e) {
    return r->data.random ? plan_random(r, e) : plan_streams(r, e);
}

bool run_plan(struct run *r, struct err *e) {
    struct options *o = &r->options;
    if (!run_can_evaluate(r, e)) return false;
    if (r->data.text && !plan_text(r, e)) return false;
    if (!r->data.text && !plan_images(r, e)) return false;
    if (!resize_plan(r, e)) return false;
    const double images = (double)o->batch * (double)o->accumulate * r->comm->size; /* a step */
    double per_epoch = (double)run_samples(r) / images;
    if (r->data.random)
        per_epoch = (double)r->data.set.train_text.count / (images * options_sequence(o));
    else if (r->data.text)
        per_epoch = (double)r->data.windows / (double)o->accumulate;
    r->steps = o->steps > 0 ? (size_t)o->steps : steps_of(r, o->epochs, per_epoch);
    double epochs = o->steps > 0 ? epochs_of(r, (double)o->steps, per_epoch) : o->epochs;
    r->model.lr.base = o->lr;
    r->model.lr.warmup = o->lr_warmup;
    r->model.lr.warmup_steps = (size_t)o->lr_warmup_steps;
    r->model.lr.steps = r->steps;
    return plan_stop(r, epochs, per_epoch, e) && target_plan(r, e) && lr_parse(o->lr_schedule, epochs, &r->model.lr, e);
}
