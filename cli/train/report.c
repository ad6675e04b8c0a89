/* report.c: see report.h. Rank 0 prints; nothing here computes anything that is not also in run.jsonl. */
#include "cli/train/report.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/files/place.h"
#include "base/mem.h"
#include "cli/network/auto.h"
#include "cli/options/device_option.h"
#include "cli/options/schedule_text.h"
#include "cli/options/shell_quote.h"
#include "cli/train/resize.h"

void human_bytes(char *text, size_t size, double bytes) {
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t u = 0;
    while (bytes >= 1024 && u < 4) {
        bytes /= 1024;
        u++;
    }
    snprintf(text, size, bytes < 10 && u ? "%.2f %s" : "%.0f %s", bytes, unit[u]);
}

static void say_device(struct run *r, const struct device_ops *device) {
    char *text = device_option_text(device);
    log_say(r, "  device    %s; %s%s", text, options_choice(&r->options, "precision"),
            r->comm->device_pointers ? "; MPI takes its pointers" : "");
    mem_free(text);
}

static void say_data(struct run *r) {
    const struct dataset *d = &r->data.set;
    const char *where = r->data.memory.shared ? "once per node" : "on each rank";
    const struct task_ops *task = r->data.task;
    char memory[32], counts[128], classes[48] = "", entropy[64] = "";
    human_bytes(memory, sizeof memory, (double)d->bytes);
    if (d->entropy > 0) snprintf(entropy, sizeof entropy, "; no model has a perplexity below %.2f", exp(d->entropy));
    if (task->classes) snprintf(classes, sizeof classes, " of %d%s", d->classes, task->classes);
    task_counts(r, SPLIT_TRAIN, counts, sizeof counts);
    log_say(r, "  data      %s: %s%s from %s (%s %s)%s", d->ops->name, counts, classes, d->source, memory, where,
            entropy);
}

/* "momentum 0.9 before the exchange, masked", or adam's own settings. */
static void method_text(const struct options *o, char *text, size_t size) {
    const struct optimiser_ops *method = optimisers[o->optimiser];
    const struct option_part *own = &method->options;
    if (option_declares(own, "momentum"))
        snprintf(text, size, "momentum %g%s%s", o->method.momentum,
                 o->momentum_correction ? " before the exchange" : "", o->momentum_masking ? ", masked" : "");
    else
        snprintf(text, size, "%.20s", method->name);
    for (size_t i = 0; i < own->rows && !option_declares(own, "momentum"); i++) {
        char value[OPTION_TEXT_MAX];
        option_value(&own->row[i], &o->method, value);
        snprintf(text + strlen(text), size - strlen(text), "%s%.40s%s", i ? ", " : " (", value,
                 i + 1 < own->rows ? "" : ")");
    }
    size_t used = strlen(text);
    if (o->clip_norm > 0)
        snprintf(text + used, size - used, ", %s clipped to %g", options_clip_local(o) ? "each gradient" : "the mean",
                 o->clip_norm);
}

/* "first 6 of 140 epochs" */
static void prefix_text(const struct run *r, char *text, size_t size) {
    const struct options *o = &r->options;
    snprintf(text, size, "first %.6g of %.6g epochs", o->stop_at, o->steps > 0 ? run_epoch(r, r->steps) : o->epochs);
}

/* "54688 steps of 1 x 128 images = 140.00 epochs", or how many of them */
static void length_text(const struct run *r, char *text, size_t size) {
    const struct options *o = &r->options;
    char rows[64], prefix[64], times[48] = "";
    if (r->data.task->text)
        snprintf(rows, sizeof rows, "%d x %lld x %lld %ss", r->comm->size, (long long)o->batch,
                 (long long)options_sequence(o), run_sample(r));
    else
        snprintf(rows, sizeof rows, "%d x %lld %ss", r->comm->size, (long long)o->batch, run_sample(r));
    prefix_text(r, prefix, sizeof prefix);
    if (o->accumulate > 1) snprintf(times, sizeof times, ", %lld times,", (long long)o->accumulate);
    if (run_is_prefix(r))
        snprintf(text, size, "%s: %zu of %zu steps of %s%s", prefix, r->stop, r->steps, rows, times);
    else
        snprintf(text, size, "%zu steps of %s%s = %.2f epochs", r->steps, rows, times, run_epoch(r, r->steps));
}

static void say_ignored(struct run *r) {
    char names[OPTION_TEXT_MAX];
    if (net_lacks_winograd(r->model.net))
        log_say(r, "  ignored   --precision f32-winograd: no convolution of this net is computed so here; it is f32");
    options_ignored(&r->options, names, sizeof names);
    if (names[0])
        log_say(r, "  ignored   %s, without effect with --algo %s", names, options_exchange(&r->options)->name);
}

/* Where the steps lie that are to come, the first `skipped` of the run aside. */
static struct course course_of(const struct run *r, size_t skipped) {
    size_t first = r->step > skipped ? r->step : skipped, last = r->stop > first ? r->stop - 1 : first;
    return (struct course){.first = run_epoch(r, first),
                           .last = run_epoch(r, last),
                           .end = run_epoch(r, r->stop),
                           .step = run_step_epochs(r),
                           .leg_step = r->leg.step,
                           .leg = run_epoch(r, r->leg.step)};
}

/* Of what is selected. */
static void say_density(struct run *r) {
    const size_t dense = r->path.density.dense_steps;
    const struct course course = course_of(r, dense);
    char density[160], before[96] = "";
    if (!r->path.sparse) return;
    bool later = r->step < dense;
    if (later)
        snprintf(before, sizeof before, "1 in the first %zu steps%s, then ", dense,
                 r->stop <= dense ? ", all that this run has" : "");
    schedule_density(&r->path.density, r->model.n - r->path.exempts, later, &course, density, sizeof density);
    log_say(r, "  density   %s%s", before, density);
}

static void say_training(struct run *r) {
    const struct options *o = &r->options;
    const struct course course = course_of(r, 0);
    char method[128], length[512], dropout[48] = "", rate[512];
    method_text(o, method, sizeof method);
    length_text(r, length, sizeof length);
    if (o->dropout > 0) snprintf(dropout, sizeof dropout, "dropout %g, ", o->dropout);
    schedule_rate(&r->model.lr, (int)r->leg.first_ranks, &course, rate, sizeof rate);
    log_say(r, "  training  %s, %s, weight decay %g, %sseed %lld", length, method, o->method.weight_decay, dropout,
            (long long)o->seed);
    log_say(r, "  rate      %s", rate);
}

static void say_choice(struct run *r) {
    if (!r->job.choice) return;
    char *text = auto_text(r->job.choice);
    log_say(r, "  auto      %s", text);
    mem_free(text);
}

static void say_alone(struct run *r) {
    char *program = shell_quote(r->job.program);
    log_say(r, "  ranks     one, which exchanges nothing; mpirun -np P %s ... has P", program);
    mem_free(program);
}

static void say_exchange(struct run *r) {
    const struct options *o = &r->options;
    char exchange[512];
    size_t used = (size_t)snprintf(exchange, sizeof exchange, "%.40s", options_exchange(o)->name);
    if (r->path.sparse)
        used +=
            (size_t)snprintf(exchange + used, sizeof exchange - used, ", %.40s selection, %.20s",
                             r->path.reducer.selector ? options_selector(o)->name : "its own", wires[o->wire]->name);
    else if (wires[o->wire]->pack)
        used += (size_t)snprintf(exchange + used, sizeof exchange - used, " in %.20s", wires[o->wire]->name);
    if (!r->path.sparse && r->path.reducer.keeps)
        used += (size_t)snprintf(exchange + used, sizeof exchange - used, ", with error feedback");
    if (!r->path.sparse && r->step < r->path.density.dense_steps)
        used += (size_t)snprintf(exchange + used, sizeof exchange - used, ", dense in the first %zu steps",
                                 r->path.density.dense_steps);
    if (o->select_scope == SCOPE_LAYER)
        used += (size_t)snprintf(exchange + used, sizeof exchange - used, ", slice by slice");
    if (r->path.exempts)
        used += (size_t)snprintf(exchange + used, sizeof exchange - used, ", %zu entries dense", r->path.exempts);
    if (r->path.groups)
        used += (size_t)snprintf(exchange + used, sizeof exchange - used, ", in %zu groups of layers", r->path.groups);
    if (o->fold_lr) used += (size_t)snprintf(exchange + used, sizeof exchange - used, ", learning rate folded in");
    if (r->rounds.param)
        snprintf(exchange + used, sizeof exchange - used, "; rounds of %lld local step%s, outer rate %g, momentum %g",
                 (long long)o->average_every, o->average_every > 1 ? "s" : "", o->outer.rate, o->outer.momentum);
    else if (r->replicas.drifts)
        snprintf(exchange + used, sizeof exchange - used, "%s; parameters averaged every %lld steps",
                 !o->local_update        ? ""
                 : run_drifts_by_node(r) ? ", local update of each node"
                                         : ", local update",
                 (long long)o->average_every);
    log_say(r, "  exchange  %s", exchange);
}

void report_complete(struct run *r) {
    const struct options *o = &r->options;
    char target[TARGET_TEXT_MAX];
    target_text(r, target, sizeof target);
    if (r->target.reached)
        log_say(r,
                "%s is complete: it reached its target, %s, after %zu of %zu steps; to go on, give another --target, "
                "or none",
                o->out, target, r->target.step, r->steps);
    else if (run_is_prefix(r))
        log_say(r, "%s has done the %zu of %zu steps that --stop-at %g asks for: to go on, give a later one, or none",
                o->out, r->stop, r->steps, o->stop_at);
    else
        log_say(r, "%s is complete: all of its %zu steps are done; to go on, give a larger --epochs or --steps", o->out,
                r->steps);
}

static void say_resumed(struct run *r) {
    const struct resize *was = &r->resize;
    if (!r->first_step) return;
    if (resize_is(r))
        log_say(r, "  resumed   after step %zu, epoch %.2f, of %d x %lld; now %d x %lld; residuals: %s", r->first_step,
                run_epoch(r, r->first_step), was->ranks, (long long)was->batch, r->comm->size,
                (long long)r->options.batch, resize_residuals(r));
    else
        log_say(r, "  resumed   after step %zu%s", r->first_step,
                r->options.resume_residuals == RESIDUALS_RESET ? ", without its residuals" : "");
}

void report_begin(struct run *r) {
    const struct options *o = &r->options;
    const struct device_ops *device = r->model.net->setup.device;
    log_say(r, "sparsetrain: %s, %zu parameters, on %s; %d rank%s on %d node%s", options_model(o)->name, r->model.n,
            device->label(), r->comm->size, r->comm->size > 1 ? "s" : "", r->comm->nodes,
            r->comm->nodes > 1 ? "s" : "");
    if (!device_is_host(device)) say_device(r, device);
    say_data(r);
    say_choice(r);
    say_exchange(r);
    say_ignored(r);
    say_density(r);
    say_training(r);
    target_say(r);
    if (r->comm->size == 1) say_alone(r);
    if (o->out[0])
        log_say(r, "  output    %s/run.jsonl and checkpoints", o->out);
    else
        log_say(r, "  output    none; --out DIR keeps a log and checkpoints");
    if (r->job.origin.path[0])
        log_say(r, "  begins    with the parameters of %s, step %llu", r->job.origin.path,
                (unsigned long long)r->job.origin.step);
    say_resumed(r);
}

static void say_phases(struct run *r) {
    const struct totals *t = &r->log.totals;
    double steps = t->steps > 0 ? t->steps : 1, sum = 0;
    char line[256] = "";
    for (int i = 0; i < PHASE_COUNT; i++) sum += t->all.phase[i];
    for (int i = 1; i <= PHASE_COUNT; i++) {
        int p = i % PHASE_COUNT; /* "other" last */
        size_t used = strlen(line);
        snprintf(line + used, sizeof line - used, "%s%s %.1f%%", i > 1 ? "  " : "", phase_names[p],
                 sum > 0 ? 100 * t->all.phase[p] / sum : 0);
    }
    log_say(r, "  time a step         %.1f ms: %s", 1e3 * t->all.seconds / steps, line);
}

/* Communication that backward hid, beside what the step had to wait for. */
static void say_hidden(struct run *r) {
    const struct totals *t = &r->log.totals;
    if (!r->path.reducer.exchange.ops->begin || t->steps == 0) return;
    log_say(r, "  communication       %.1f ms a step exposed, %.1f ms hidden behind backward",
            1e3 * t->all.phase[PHASE_COMMUNICATE] / t->steps, 1e3 * t->all.hidden_seconds / t->steps);
}

/* "501 times less", "4.1 times more" than so many bytes. */
static void ratio_text(double bytes, double than, char *text, size_t size) {
    const char *way = bytes < than ? "less" : "more";
    double ratio = bytes < than ? than / bytes : bytes / than;
    if (bytes <= 0)
        snprintf(text, size, "nothing");
    else if (ratio < 1.005)
        snprintf(text, size, "as much");
    else if (ratio < 99.5)
        snprintf(text, size, "%.2g times %s", ratio, way);
    else
        snprintf(text, size, "%.0f times %s", ratio, way);
}

static void say_bytes(struct run *r) {
    const struct totals *t = &r->log.totals;
    double steps = t->steps > 0 ? t->steps : 1, dense = log_dense_bytes(r);
    char sent[32], whole[32], ratio[48];
    ratio_text(t->all.bytes_sent / steps, dense, ratio, sizeof ratio);
    human_bytes(sent, sizeof sent, t->all.bytes_sent / steps);
    human_bytes(whole, sizeof whole, dense);
    if (r->log.ranks == 1)
        log_say(r, "  sent a step         nothing: there is one rank");
    else if (r->path.sparse)
        log_say(r, "  sent a step         %s per rank where dense sends %s: %s", sent, whole, ratio);
    else
        log_say(r, "  sent a step         %s per rank", sent);
    const struct option_values own = options_own(&r->options);
    const struct exchange_ops *x = options_exchange(&r->options);
    if (t->all.mass_lost > 0)
        log_say(r, "  gradient lost       %.3g in sum of magnitudes (%s)", t->all.mass_lost,
                x->loses && x->loses(&own) ? x->loses(&own) : x->name);
}

static void say_memory(struct run *r) {
    char own[32], data[32];
    human_bytes(own, sizeof own, r->log.private_memory);
    human_bytes(data, sizeof data, (double)r->data.set.bytes);
    log_say(r, "  memory              %s on each rank, the dataset's %s %s", own, data,
            r->data.memory.shared ? "once per node" : "included");
}

/* A command, and behind it in a column what it is for. */
static void say_command(struct run *r, const char *what, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void say_command(struct run *r, const char *what, const char *format, ...) {
    char command[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    log_say(r, "  %-52s  %s", command, what);
}

static void say_next(struct run *r) {
    const struct options *o = &r->options;
    char *program = shell_quote(r->job.program), *out = shell_quote(o->out);
    const char *pictures = !run_evaluates(r)    ? "loss and time split as PNG"
                           : r->data.task->text ? "loss, perplexity and time split as PNG"
                                                : "loss, accuracy and time split as PNG";
    log_say(r, "Next:");
    const bool reached = r->target.reached && r->step < r->steps;
    if ((run_is_prefix(r) || reached) && o->out[0])
        say_command(r, "the rest of this run", "mpirun -np %d %s --resume %s%s", r->comm->size, program, out,
                    reached ? " --target none" : "");
    if (r->data.set.ops->built_in)
        say_command(r, r->data.task->text ? "the real text" : "the real images", "%s",
                    place_fetch(r->data.task->built_in));
    say_command(r, r->path.sparse ? "the same run with every gradient sent" : "the same run with few gradients sent",
                "mpirun -np %d %s --algo %s ...", r->comm->size, program, r->path.sparse ? "dense" : "gtopk");
    if (o->out[0]) say_command(r, pictures, "%s %s", place_script("plot.sh"), out);
    say_command(r, "everything else", "%s list; %s --help", program, program);
    mem_free(program);
    mem_free(out);
}

static void say_stopped(struct run *r) {
    char *program = shell_quote(r->job.program), *out = shell_quote(r->options.out), goal[48] = "";
    if (run_is_prefix(r)) snprintf(goal, sizeof goal, " --stop-at %.17g", r->options.stop_at);
    const char *where = r->step == r->stop ? ", before the evaluation there" : "";
    if (r->options.out[0])
        log_say(r, "Stopped by a signal after step %zu of %zu%s. To go on: mpirun -np %d %s --resume %s%s", r->step,
                r->steps, where, r->comm->size, program, out, goal);
    else
        log_say(r, "Stopped by a signal after step %zu of %zu%s. Nothing was saved, since there is no --out.", r->step,
                r->steps, where);
    mem_free(program);
    mem_free(out);
}

/* Of a run that is never evaluated there is the mean over its steps. */
static void say_unscored(struct run *r) {
    const struct row *since = &r->log.totals.since_evaluation;
    const double loss = since->loss / since->samples;
    if (since->samples > 0)
        log_say(r, r->data.task->text ? "  train perplexity    %12.2f" : "  train loss          %12.3f",
                r->data.task->text ? exp(loss) : loss);
    log_say(r, "  not evaluated       --eval-every never");
}

/* A score as a column has it; "-": not known, as of the start of a run that goes on in another directory than it began
 * in: a checkpoint keeps losses and accuracy of it alone, the log all of them. */
enum { SCORE_TEXT = 32 };
static const char *score_text(char text[SCORE_TEXT], const struct score_shown *s, double value) {
    if (isnan(value)) return "-";
    snprintf(text, SCORE_TEXT, "%.*f%s", s->decimals, s->percent ? 100 * value : value, s->percent ? "%" : "");
    return text;
}

static void say_scores(struct run *r) {
    const struct scores *start = &r->log.start, *end = &r->last;
    if (!run_evaluates(r)) {
        say_unscored(r);
        return;
    }
    log_say(r, "                      %12s %12s", "start", "end");
    for (const struct score_shown *s = r->data.task->shown; s->label; s++) {
        const struct score *score = score_find(r, s->split, s->metric);
        char before[SCORE_TEXT], after[SCORE_TEXT];
        if (score)
            log_say(r, "  %-19s %12s %12s", s->label, score_text(before, s, score_value(score, start)),
                    score_text(after, s, score_value(score, end)));
    }
}

static void say_heard(struct run *r) {
    for (size_t i = 0; i < r->heard.count; i++) {
        char *text = heard_text(&r->heard.sample[i]);
        log_say(r, "%s", text);
        mem_free(text);
    }
}

void report_end(struct run *r, int status) {
    const struct totals *t = &r->log.totals;
    if (status == EXIT_STOPPED) {
        say_stopped(r);
        return;
    }
    log_say(r, "%s", "");
    say_scores(r);
    say_heard(r);
    if (t->steps > 0) { /* none where a run resumes at its end */
        char what[32];
        snprintf(what, sizeof what, "%ss a second", run_sample(r));
        log_say(r,
                r->data.task->pairs || r->data.task->speech ? "  %-19s %.1f on %d rank%s" : "  %-19s %.0f on %d rank%s",
                what, run_rate(r, &t->all), r->log.ranks, r->log.ranks > 1 ? "s" : "");
        say_phases(r);
        say_hidden(r);
        say_bytes(r);
    }
    target_say_reached(r);
    say_memory(r);
    if (run_replicas_same(r)) log_say(r, "  replicas            identical, bit for bit");
    if (run_is_prefix(r)) {
        char prefix[64];
        prefix_text(r, prefix, sizeof prefix);
        log_say(r, "  this was            the %s, as --stop-at asked", prefix);
    }
    log_say(r, "%s", "");
    say_next(r);
}
