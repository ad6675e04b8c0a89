/* between_steps.c: see between_steps.h. */
#include "cli/train/between_steps.h"

#include <math.h>

#include "cli/checkpoint/checkpoint.h"
#include "cli/train/finite.h"

/* `beside`: an evaluation that happens only because the run stops here; it must leave no trace in what the run
 * resumes from. False: a signal ended it; who resumes makes up for it. */
static bool evaluate(struct run *r, bool beside) {
    double begin = clock_now();
    struct scores scores;
    mllog_evaluation(r);
    if (!run_evaluate(r, beside, &scores)) return false;
    r->last = scores;
    mllog_scores(r, &r->last);
    r->last_at = r->step;
    log_eval(r, &r->last, clock_now() - begin);
    if (r->step == 0) r->log.start = r->last;
    const struct spent spent = log_spent(r);
    target_look(r, &r->last, &spent);
    return true;
}

/* The first step at or after the next multiple of --eval-every epochs behind so many steps; the end where there is
 * none. Beyond it: never. */
static size_t evaluation_after(const struct run *r, size_t steps) {
    double every = r->options.eval_every;
    if (!run_evaluates(r)) return SIZE_MAX;
    if (every <= 0) return r->steps;
    double per_epoch = 1 / run_step_epochs(r), multiple = floor(run_epoch(r, steps) / every + 1e-9) + 1;
    double leg = run_epoch(r, r->leg.step);
    double step = (double)r->leg.step + ceil((multiple * every - leg) * per_epoch - 1e-6);
    step = fmax(step, (double)steps + 1); /* where that is before this leg */
    return step < (double)r->steps ? (size_t)step : r->steps;
}

static size_t next_evaluation(const struct run *r) {
    return evaluation_after(r, r->step);
}

/* The multiples of --eval-every between here and the stop, of which several may fall on one step, and the stop. */
size_t run_evaluations_left(const struct run *r) {
    double every = r->options.eval_every, steps = (double)(r->stop - r->step);
    if (!run_evaluates(r) || r->step == r->stop) return 0;
    if (every <= 0) return 1;
    double count = ceil(run_epoch(r, r->stop) / every - 1e-6) - floor(run_epoch(r, r->step) / every + 1e-9);
    return (size_t)fmin(fmax(count, 1), steps);
}

/* What is left where something failed, as part of a line. */
static void kept_text(const struct run *r, char *text, size_t size) {
    if (r->saved.last == SIZE_MAX)
        snprintf(text, size, r->options.out[0] ? "; there is no checkpoint yet" : "");
    else
        snprintf(text, size, "; the last complete checkpoint, of step %zu, is kept", r->saved.last);
}

/* A checkpoint that fails is not an error as long as a later one is due; if none is, the run has failed. */
static void checkpoint(struct run *r, bool last) {
    struct err e = {0};
    char kept[96];
    if (checkpoint_write(r, &e)) return;
    kept_text(r, kept, sizeof kept);
    if (last)
        err_with(&r->trouble, err_status(&e), "%s", e.text);
    else
        log_warn(r, "%s%s; the run goes on, and writes the next one when it is due", e.text, kept);
}

void between_steps(struct run *r, bool stop) {
    check_update(r, r->step);
    const bool due_now = r->step == r->eval_next || (r->step == r->stop && run_evaluates(r));
    r->stopped = stop && r->step < r->stop; /* in the last step there may be nothing left to stop */
    const bool evaluated = due_now && !r->stopped && evaluate(r, r->step != r->eval_next);
    r->stopped |= due_now && !evaluated;
    bool last = r->step == r->stop; /* a target may just have been reached */
    if (r->step >= r->eval_next) r->eval_next = next_evaluation(r);
    if (run_due(r, r->options.check_replicas)) run_check_replicas(r);
    bool wanted = r->options.checkpoint_every > 0 ? run_due(r, r->options.checkpoint_every) : evaluated;
    if (r->options.out[0] && (wanted || r->stopped || last) && r->saved.last != r->step)
        checkpoint(r, r->stopped || last);
    phases_restart(&r->phases);
}

bool comes_between(const struct run *r) {
    const size_t next = r->step + 1;
    return next == r->stop || next == r->eval_next || run_due_after(next, r->options.checkpoint_every) ||
           run_due_after(next, r->options.check_replicas);
}

/* Is the evaluation of the checkpoint that the run resumes from behind it? Its log must have the row, unless it is a
 * new one, and the checkpoint, unless it is of an old version, which knows of nothing, the statistics of batch
 * normalisation that the evaluation left: the row may be of a run that went on from here and made no checkpoint. */
static bool evaluated_before(const struct run *r) {
    const struct run_log *l = &r->log;
    return (l->made || l->evaluated) && (r->target.known || isnan(l->before.seconds));
}

/* Was one due there, which a signal or a full disk came before? */
static bool evaluation_missing(const struct run *r) {
    return run_evaluates(r) && r->step > 0 && !evaluated_before(r) && evaluation_after(r, r->step - 1) == r->step;
}

/* A run that goes on in another directory, and only as far as it has come already, has no checkpoint there yet; nor has
 * one that begins at its target. One that was stopped before its last evaluation has none that knows of it. */
static bool leaves_none(const struct run *r) {
    const bool known = r->saved.last == r->step && (!run_evaluates(r) || evaluated_before(r));
    return r->options.out[0] && r->step == r->stop && !known;
}

void before_steps(struct run *r) {
    mllog_start(r);
    const bool missing = evaluation_missing(r);
    if (run_evaluates(r) && (r->step == 0 || r->step == r->stop || missing)) evaluate(r, r->step > 0 && !missing);
    r->eval_next = next_evaluation(r);
    if (leaves_none(r)) checkpoint(r, true);
    phases_restart(&r->phases);
}

bool after_steps(struct run *r, struct err *e) {
    char kept[96];
    mllog_stop(r);
    if (!r->trouble.text[0]) return true;
    kept_text(r, kept, sizeof kept);
    return err_with(e, err_status(&r->trouble), "%.900s%s", r->trouble.text, kept);
}
