/* train.c: the loop. Next batch; forward; backward (these three --accumulate times); exchange; optimiser step; log. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "cli/checkpoint.h"
#include "cli/run.h"
#include "cli/watching.h"

static _Noreturn void not_finite_in(const struct run *r, size_t step, const char *what, size_t index) {
    const struct slice *slice = index < r->model.n ? arena_slice_at(&r->model.net->arena, index) : NULL;
    char kept[64] = "";
    if (r->saved.last != SIZE_MAX)
        snprintf(kept, sizeof kept, "; the last checkpoint, of step %zu, is kept", r->saved.last);
    if (slice)
        die_status(EXIT_NUMERIC, "step %zu, rank %d: %s in %s (entry %zu) is NaN or infinite%s; try a smaller --lr",
                   step, r->comm->rank, what, slice->name, index - slice->offset, kept);
    die_status(EXIT_NUMERIC, "step %zu, rank %d: %s is NaN or infinite%s; try a smaller --lr", step, r->comm->rank,
               what, kept);
}

/* In the step under way. */
static _Noreturn void not_finite(const struct run *r, const char *what, size_t index) {
    not_finite_in(r, r->step + 1, what, index);
}

/* A device is asked what became of an update when it had to be waited for anyway. step: the last that was given to it.
 */
static void check_update(struct run *r, size_t step) {
    size_t bad = optimiser_settle(&r->model.optimiser);
    if (bad < r->model.n) not_finite_in(r, step, "the new value of a parameter", bad);
}

/* When the loss is no number the gradient often tells where; without a trace there, the loss alone is named. */
static _Noreturn void loss_not_finite(const struct run *r) {
    const struct arena *a = &r->model.net->arena;
    if (device_is_host(a->device)) net_backward(r->model.net); /* others have it, see take_loss */
    float *grad = device_copy_to_host(a->device, a->grad, r->model.n, "a copy of the gradient");
    for (size_t i = 0; i < r->model.n; i++)
        if (!isfinite(grad[i])) not_finite(r, "the loss and the gradient", i);
    not_finite(r, "the loss", r->model.n);
}

static bool due(const struct run *r, int64_t every) {
    return every > 0 && (int64_t)r->step % every == 0;
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
}

static void forward(struct run *r, const struct batch *b) {
    phase_enter(&r->phases, PHASE_COMPUTE);
    if (b->begins) net_carry_reset(r->model.net);
    if (b->token)
        net_forward_tokens(r->model.net, b->token, b->y, NULL);
    else if (b->x)
        net_forward(r->model.net, b->x, b->y, NULL);
    else
        net_forward_bytes(r->model.net, &b->bytes, b->y, NULL);
    if (device_is_host(r->model.net->arena.device)) take_loss(r);
}

static void gradient_ready(void *run, size_t from) {
    struct run *r = run;
    gradient_before(r, from);
    exchange_ready(r->now.exchange, from);
}

/* What the step under way will do. */
static void begin_step(struct run *r) {
    bool dense = r->path.dense_start.ops && r->step < r->path.density.dense_steps;
    r->comm->step = r->step + 1;
    watching_enter(r, ACTIVITY_STEP, r->step + 1);
    r->now.exchange = dense ? &r->path.dense_start : &r->path.reducer.exchange;
    r->now.row.density =
        r->now.exchange->ops->sparse ? density_at(&r->path.density, r->step, (size_t)run_epoch(r, r->step)) : 1;
    r->now.row.k = (double)density_to_k(r->now.row.density, r->model.n - r->path.exempts);
    r->now.row.lr = lr_at(&r->model.lr, run_epoch(r, r->step), r->comm->size);
    r->now.traffic_before = r->comm->counters[TRAFFIC_EXCHANGE];
    if (r->path.reducer.selector) r->path.reducer.selector->audit = due(r, r->options.audit);
    r->now.counting = due(r, r->options.log_slices);
    r->now.recording = r->watch.record.open && due(r, r->options.record_every) && !options_record_selected(&r->options);
    r->now.measuring = r->now.exchange->ops->sparse && due(r, r->options.log_xi);
    r->now.corrected = r->model.n;
    r->now.row.loss = r->now.row.correct = r->now.row.samples = 0;
}

/* A gradient that is looked at is wanted as backward leaves it: nothing may be exchanged meanwhile. */
static bool overlaps(const struct run *r) {
    return r->now.exchange->ops->begin && !r->now.recording && !r->now.counting && !r->now.measuring;
}

/* Gradients are added up over the parts of a step and are final in the last one alone: what communication an algorithm
 * can hide behind backward begins there. Without any, the time that a device still needs is computing's, not that of
 * whoever waits for it first. */
static void backward(struct run *r, int64_t part) {
    const struct device_ops *device = r->model.net->arena.device;
    const bool last = part + 1 == r->options.accumulate, early = last && overlaps(r);
    if (early) exchange_begin(r->now.exchange, r->model.net->arena.grad, (size_t)r->now.row.k);
    net_backward_with(r->model.net, part > 0, early ? gradient_ready : NULL, r);
    if (last && !early) device->sync();
    if (!device_is_host(device)) take_loss(r);
}

/* A recording that fails is not gone on with, but the step is. */
static void record(struct run *r) {
    if (r->now.recording && !r->trouble.text[0])
        record_step(&r->watch.record, r->step, r->model.net->arena.grad, &r->trouble);
}

/* Dense steps select nothing. */
static void record_sent(struct run *r) {
    bool wanted = options_record_selected(&r->options) && r->now.delivered && due(r, r->options.record_every);
    if (wanted && !r->trouble.text[0])
        record_selected_step(&r->watch.record, r->step, (size_t)r->now.row.k, r->now.delivered, &r->trouble);
}

/* What was selected, and by which threshold. */
static void note_sum(struct run *r, const struct exchange_sum *sum) {
    r->now.row.local_nnz = (double)sum->local_nnz;
    r->now.row.exempt_nnz = sum->exempt ? (double)sum->exempt->nnz : 0;
    r->now.row.global_nnz = (double)sum->global_nnz;
    r->now.row.mass_lost = sum->mass_lost;
    r->now.row.hidden_seconds = sum->hidden_seconds;
    r->now.row.global_threshold = (double)sum->threshold;
    r->now.row.global_exact_threshold = (double)sum->exact_threshold;
    r->now.row.global_evaluated = sum->evaluated;
    r->now.row.evaluated = 0;
    r->now.row.threshold = r->now.row.exact_threshold = r->now.row.selected = NAN;
    if (!r->path.reducer.selector || !r->now.exchange->ops->selects) return;
    const struct selector_stats *stats = &r->path.reducer.selector->stats;
    r->now.row.selected = (double)stats->found;
    r->now.row.threshold = (double)stats->threshold;
    r->now.row.evaluated = stats->evaluated;
    if (stats->audited) r->now.row.exact_threshold = (double)stats->exact;
}

static void exchange(struct run *r) {
    struct exchange *x = r->now.exchange;
    struct exchange_sum sum;
    phase_enter(&r->phases, PHASE_OTHER);
    slices_gradient(r);
    gradient_before(r, 0);
    if (r->now.measuring)
        xi_before(&r->watch.xi, &r->path.reducer.store, r->model.net->arena.grad, r->path.exempt, r->path.exempts);
    if (!exchange_run(x, r->model.net->arena.grad, (size_t)r->now.row.k, &sum))
        not_finite(r, x->ops->sparse || x->ops->drifts ? "the gradient" : "the sum of the gradients", sum.bad);
    r->now.delivered = sum.sparse ? sum.delivered : NULL;
    slices_sum(r, &sum);
    r->now.row.xi = r->now.measuring ? xi_after(&r->watch.xi, (size_t)r->now.row.k, sum.sparse) : NAN;
    gradient_delivered(r, &sum);
    if (r->options.local_update && x->ops->sparse)
        exchange_combine(x, &sum, r->model.net->arena.grad);
    else
        exchange_mean(x, &sum, r->model.net->arena.grad);
    note_sum(r, &sum);
}

/* What comes next looks at the parameters, or sends them to others: they are known to be good then. */
static void optimise(struct run *r, bool must_meet) {
    const struct arena *a = &r->model.net->arena;
    phase_enter(&r->phases, PHASE_UPDATE);
    gradient_mean(r);
    optimiser_step(&r->model.optimiser, a->param, a->grad, r->now.row.lr);
    if (must_meet || r->replicas.drifts || device_is_host(a->device)) check_update(r, r->step + 1);
    phase_enter(&r->phases, PHASE_OTHER);
}

static void note_traffic(struct run *r) {
    const struct comm_counters *before = &r->now.traffic_before, *after = &r->comm->counters[TRAFFIC_EXCHANGE];
    r->now.row.bytes_sent = (double)(after->bytes_sent - before->bytes_sent);
    r->now.row.bytes_received = (double)(after->bytes_received - before->bytes_received);
    r->now.row.messages_sent = (double)(after->messages_sent - before->messages_sent);
    r->now.row.messages_received = (double)(after->messages_received - before->messages_received);
}

/* The time of a step runs from the end of the one before to its own end, logging included. */
static void finish_step(struct run *r, bool must_meet, bool *stop) {
    r->now.row.seconds = 0;
    r->step++;
    slices_log(r);
    if (r->replicas.drifts && (due(r, r->options.average_every) || r->step == r->steps)) run_average(r);
    note_traffic(r);
    phase_enter(&r->phases, PHASE_OTHER);
    for (int i = 0; i < PHASE_COUNT; i++) {
        r->now.row.phase[i] = r->phases.seconds[i];
        r->now.row.seconds += r->phases.seconds[i];
    }
    memset(r->phases.seconds, 0, sizeof r->phases.seconds);
    log_step(r, must_meet || r->trouble.text[0], stop);
}

/* `beside`: one that the run has only because it stops here: what it goes on with later must not know. */
static void evaluate(struct run *r, bool beside) {
    double begin = clock_now();
    run_evaluate(r, beside, &r->last);
    log_eval(r, &r->last, clock_now() - begin);
    if (r->step == 0) r->log.start = r->last;
}

/* The first step at or after the next multiple of --eval-every epochs behind so many steps; the end where there is
 * none. Beyond it: never. */
static size_t evaluation_after(const struct run *r, size_t steps) {
    double every = r->options.eval_every;
    if (!run_evaluates(r)) return SIZE_MAX;
    if (every <= 0) return r->steps;
    double per_epoch = 1 / run_epoch(r, 1), multiple = floor(run_epoch(r, steps) / every + 1e-9) + 1;
    double step = ceil(multiple * every * per_epoch - 1e-6);
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

/* One that fails is followed by the next that is due; where there is none, the run has failed. */
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

/* What comes between two steps: evaluation, replica check, checkpoint. Its time belongs to no step. */
static void between_steps(struct run *r, bool stop) {
    check_update(r, r->step);
    bool stopped = stop && r->step < r->stop; /* a signal in the last step comes too late to stop anything */
    bool last = r->step == r->stop, due_now = r->step == r->eval_next || (last && run_evaluates(r));
    bool evaluated = due_now && !stopped;
    if (evaluated) evaluate(r, r->step != r->eval_next);
    if (r->step >= r->eval_next) r->eval_next = next_evaluation(r);
    if (due(r, r->options.check_replicas)) run_check_replicas(r);
    bool wanted = r->options.checkpoint_every > 0 ? due(r, r->options.checkpoint_every) : evaluated;
    if (r->options.out[0] && (wanted || stop || last) && r->saved.last != r->step) checkpoint(r, stop || last);
    phases_restart(&r->phases);
}

static bool meeting_needed(const struct run *r) {
    size_t next = r->step + 1;
    int64_t c = r->options.checkpoint_every, check = r->options.check_replicas;
    return next == r->stop || next == r->eval_next || (c > 0 && (int64_t)next % c == 0) ||
           (check > 0 && (int64_t)next % check == 0);
}

/* The log lacks the evaluation of the checkpoint that the run resumes from, where one was due: a signal or a full disk
 * came before it. */
static bool evaluation_missing(const struct run *r) {
    const struct log *l = &r->log;
    return run_evaluates(r) && r->step > 0 && !l->made && !l->evaluated && evaluation_after(r, r->step - 1) == r->step;
}

/* A run that goes on in another directory, and only as far as it has come already, has no checkpoint there yet. */
static bool leaves_none(const struct run *r) {
    return r->options.out[0] && r->step > 0 && r->step == r->stop && r->saved.last != r->step;
}

/* With what is left in the end. */
static bool ended_well(const struct run *r, struct err *e) {
    char kept[96];
    if (!r->trouble.text[0]) return true;
    kept_text(r, kept, sizeof kept);
    return err_with(e, err_status(&r->trouble), "%.900s%s", r->trouble.text, kept);
}

bool run_train(struct run *r, int *status, struct err *e) {
    bool stop = false, missing = evaluation_missing(r);
    r->comm->traffic = TRAFFIC_CONTROL;
    if (run_evaluates(r) && (r->step == 0 || r->step == r->stop || missing)) evaluate(r, r->step > 0 && !missing);
    r->eval_next = next_evaluation(r);
    if (leaves_none(r)) checkpoint(r, true);
    phases_restart(&r->phases);
    while (r->step < r->stop && !stop) {
        bool must_meet = meeting_needed(r);
        begin_step(r);
        for (int64_t part = 0; part < r->options.accumulate; part++) {
            const struct batch *b = next_batch(r);
            forward(r, b);
            backward(r, part);
        }
        record(r);
        exchange(r);
        record_sent(r);
        optimise(r, must_meet);
        finish_step(r, must_meet, &stop);
        if (must_meet || stop) between_steps(r, stop);
        stop |= r->trouble.text[0] != '\0';
    }
    *status = r->step < r->stop ? EXIT_STOPPED : EXIT_DONE;
    return ended_well(r, e);
}
