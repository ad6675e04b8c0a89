/* mllog.c: see mllog.h. Keys are those of mlperf_logging's constants where it has one; those of ours begin with
 * "sparsetrain_" or say what it has no word for (run_interrupted). */
#include "cli/observe/mllog.h"

#include <math.h>
#include <string.h>

#include "cli/observe/observers.h"
#include "cli/train/run.h"
#include "cli/version.h"

static double global_batch(const struct run *r) {
    return (double)r->options.batch * (double)r->options.accumulate * r->comm->size;
}

/* -- what the run is ----------------------------------------------------------------------------------------------- */

static void put_submission(const struct run *r, struct mllog_file *m) {
    const struct device_ops *device = r->model.net->setup.device;
    char id[24], platform[300];
    snprintf(platform, sizeof platform, "%s (%s), %d ranks on %d nodes", device->label(), device->describe(),
             r->comm->size, r->comm->nodes);
    snprintf(id, sizeof id, "%016llx", (unsigned long long)r->job.id);
    mllog_text(MLLOG_AT(m), "sparsetrain_run", id);
    mllog_text(MLLOG_AT(m), "submission_benchmark", options_model(&r->options)->name);
    mllog_text(MLLOG_AT(m), "submission_org", "sparsetrain");
    mllog_text(MLLOG_AT(m), "submission_division", "open");
    mllog_text(MLLOG_AT(m), "submission_status", "research");
    mllog_text(MLLOG_AT(m), "submission_platform", platform);
    mllog_flag(MLLOG_AT(m), "cache_clear", false); /* nobody has cleared them */
}

static void put_data(const struct run *r, struct mllog_file *m) {
    const struct task_ops *task = r->data.task;
    const enum split eval = task->judged.split == TARGET_TEST ? SPLIT_TEST : SPLIT_VALID;
    mllog_integer(MLLOG_AT(m), "train_samples", (int64_t)run_samples(r));
    mllog_integer(MLLOG_AT(m), "eval_samples", (int64_t)task->count(&r->data.set, eval));
}

static void put_run(const struct run *r, struct mllog_file *m) {
    const struct options *o = &r->options;
    mllog_integer(MLLOG_AT(m), "seed", o->seed);
    mllog_integer(MLLOG_AT(m), "global_batch_size", (int64_t)global_batch(r));
    mllog_integer(MLLOG_AT(m), "micro_batch_size", o->batch);
    mllog_integer(MLLOG_AT(m), "gradient_accumulation_steps", o->accumulate);
    mllog_integer(MLLOG_AT(m), "max_steps", (int64_t)r->steps);
    if (options_sequence(o) > 0) mllog_integer(MLLOG_AT(m), "max_sequence_length", options_sequence(o));
}

/* The format of values on their way. Who codes every entry in a way of its own names it by its own name. */
static const char *precision_of_messages(const struct run *r) {
    const struct exchange_ops *ops = r->path.reducer.exchange.ops;
    const struct wire_ops *wire = wires[r->options.wire];
    if (ops->rounds) return ops->name;
    if (!wire->rounds || !exchange_takes(ops, wire)) return "fp32";
    return strcmp(wire->name, "fp16") == 0 ? "fp16" : "bfloat16";
}

/* The smallest format that products are computed in, and values are sent in. */
static void put_precision(const struct run *r, struct mllog_file *m) {
    static const char *const names[] = {[PRECISION_F32] = "fp32",
                                        [PRECISION_F32_WINOGRAD] = "fp32",
                                        [PRECISION_TF32] = "tf32",
                                        [PRECISION_BF16] = "bfloat16"};
    const char *name = names[r->model.net->setup.precision];
    mllog_text(MLLOG_AT(m), "lowest_numerical_precision_in_linear", name);
    mllog_text(MLLOG_AT(m), "lowest_numerical_precision_in_attn", name);
    mllog_text(MLLOG_AT(m), "lowest_numerical_precision_in_comm", precision_of_messages(r));
    mllog_integer(MLLOG_AT(m), "tensor_parallelism", 1);
    mllog_integer(MLLOG_AT(m), "pipeline_parallelism", 1);
    mllog_integer(MLLOG_AT(m), "context_parallelism", 1);
    mllog_integer(MLLOG_AT(m), "expert_parallelism", 1);
    if (r->options.out[0]) mllog_text(MLLOG_AT(m), "config_filename", r->log.path);
}

static void put_value(struct mllog_file *m, const char *key, const struct option_row *row, const void *base) {
    const void *value = (const char *)base + row->offset;
    char text[OPTION_TEXT_MAX];
    switch (row->type) {
    case OPTION_FLAG:
        mllog_flag(m, key, *(const bool *)value);
        break;
    case OPTION_INTEGER:
        mllog_integer(m, key, *(const int64_t *)value);
        break;
    case OPTION_INT:
        mllog_integer(m, key, *(const int *)value);
        break;
    case OPTION_SIZE:
        mllog_integer(m, key, (int64_t) * (const size_t *)value);
        break;
    case OPTION_REAL:
        mllog_number(m, key, *(const double *)value);
        break;
    default:
        option_value(row, base, text);
        mllog_text(m, key, text);
    }
}

/* What the optimiser declares: opt_adamw_beta_1, opt_sgd_momentum, ... Names of several words are none of MLPerf's:
 * sparsetrain_freeze_variance_after. */
static void put_method(const struct run *r, struct mllog_file *m) {
    static const char *const words[][2] = {{"beta1", "beta_1"}, {"beta2", "beta_2"}};
    const struct optimiser_ops *method = optimisers[r->options.optimiser];
    for (size_t i = 0; i < method->options.rows; i++) {
        const struct option_row *row = &method->options.row[i];
        const char *word = row->name;
        char key[80];
        for (size_t w = 0; w < sizeof words / sizeof *words; w++)
            if (strcmp(word, words[w][0]) == 0) word = words[w][1];
        if (strchr(word, '-'))
            snprintf(key, sizeof key, "sparsetrain_%s", word);
        else
            snprintf(key, sizeof key, "opt_%s_%s", method->name, word);
        for (char *c = key; *c; c++)
            if (*c == '-') *c = '_';
        put_value(MLLOG_AT(m), key, row, &r->options.method);
    }
}

static void put_rate(const struct run *r, struct mllog_file *m) {
    const struct lr_schedule *s = &r->model.lr;
    mllog_number(MLLOG_AT(m), "opt_base_learning_rate", s->base);
    mllog_number(MLLOG_AT(m), "opt_learning_rate_warmup_epochs", r->leg.first_ranks > 1 ? s->warmup : 0);
    mllog_integer(MLLOG_AT(m), "opt_learning_rate_warmup_steps", (int64_t)s->warmup_steps);
    mllog_text(MLLOG_AT(m), "opt_learning_rate_decay_schedule", r->options.lr_schedule);
    if (s->form == LR_STEP || s->form == LR_DECAY) {
        mllog_numbers(MLLOG_AT(m), "opt_learning_rate_decay_boundary_epochs", s->boundary, (size_t)s->boundaries);
        mllog_number(MLLOG_AT(m), "opt_learning_rate_decay_factor", s->factor);
    }
}

static void put_training(const struct run *r, struct mllog_file *m) {
    const struct options *o = &r->options;
    mllog_text(MLLOG_AT(m), "opt_name", optimisers[o->optimiser]->name);
    put_rate(r, m);
    put_method(r, m);
    mllog_number(MLLOG_AT(m), "opt_weight_decay", o->method.weight_decay);
    mllog_number(MLLOG_AT(m), "opt_gradient_clip_norm", o->clip_norm);
}

/* What MLPerf has no key for: how gradients are exchanged, and what the run is to reach. */
static void put_exchange(const struct run *r, struct mllog_file *m) {
    const struct options *o = &r->options;
    mllog_integer(MLLOG_AT(m), "sparsetrain_ranks", r->comm->size);
    mllog_text(MLLOG_AT(m), "sparsetrain_algo", options_exchange(o)->name);
    mllog_number(MLLOG_AT(m), "sparsetrain_density", r->path.sparse ? o->density : 1);
    mllog_text(MLLOG_AT(m), "sparsetrain_target", o->target);
}

/* -- intervals ----------------------------------------------------------------------------------------------------- */

/* That there have been; the epochs of a text before this leg are counted as its streams are cut now. */
static double samples(const struct run *r) {
    const struct leg *leg = &r->leg;
    double before = (double)leg->position;
    if (r->data.task->speech) return run_epoch(r, r->step) * (double)run_samples(r);
    if (r->data.task->streams) before *= (double)r->data.windows * (double)r->options.batch * r->comm->size;
    return before + (double)(r->step - leg->step) * global_batch(r);
}

/* Where the run is, as metadata. */
static void put_place(const struct run *r, struct json *j) {
    json_number(j, "epoch_num", run_epoch(r, r->step));
    json_integer(j, "samples_count", (int64_t)samples(r));
    json_integer(j, "step_num", (int64_t)r->step);
}

static void mark(struct run *r, struct mllog_file *m, enum mllog_event event, const char *key) {
    put_place(r, mllog_begin(m, event, key));
    mllog_end(m);
}

/* Steps [n, n + 1) of a run belong to the epoch in which they begin, from 1 on. */
static long epoch_of(const struct run *r, size_t step) {
    return (long)floor(run_epoch(r, step) + 1e-9) + 1;
}

static void mark_epoch(struct run *r, enum mllog_event event, const char *key) {
    struct mllog_file *m = &r->watch.mllog.file;
    struct json *j = mllog_begin(MLLOG_AT(m), event, key);
    json_integer(j, "epoch_num", m->epoch);
    json_integer(j, "step_num", (int64_t)r->step);
    mllog_end(m);
}

/* What has begun ends, where it does not go on: each interval of the file has its end. */
static void end_intervals(struct run *r) {
    struct mllog_file *m = &r->watch.mllog.file;
    if (m->eval) mark(r, MLLOG_AT(m), MLLOG_STOP, "eval_stop");
    if (m->epoch) mark_epoch(r, MLLOG_STOP, "epoch_stop");
    m->eval = false;
    m->epoch = 0;
}

static bool due(const struct run *r) {
    return r->options.mllog[0] != '\0';
}

static void begin_epoch(struct run *r) {
    struct mllog_file *m = &r->watch.mllog.file;
    if (!m->file || m->epoch) return;
    m->epoch = epoch_of(r, r->step);
    mark_epoch(r, MLLOG_START, "epoch_start");
}

/* r->step has been taken. */
static void end_epoch(struct run *r) {
    struct mllog_file *m = &r->watch.mllog.file;
    if (m->file && epoch_of(r, r->step) != m->epoch) end_intervals(r);
}

const struct observer mllog_observer = {due, false, {[MOMENT_BEGIN] = begin_epoch, [MOMENT_END] = end_epoch}};

void mllog_start(struct run *r) {
    struct mllog_file *m = &r->watch.mllog.file;
    if (!m->file) return;
    if (m->begun) { /* a process that was killed has left them open */
        end_intervals(r);
        mark(r, MLLOG_AT(m), MLLOG_POINT, "run_resumed");
        return;
    }
    mllog_begin_then(MLLOG_AT(m), MLLOG_START, "init_start", r->watch.mllog.opened_ms);
    mllog_end(m);
    put_submission(r, m);
    put_data(r, m);
    put_run(r, m);
    put_precision(r, m);
    put_training(r, m);
    put_exchange(r, m);
    mllog_begin(MLLOG_AT(m), MLLOG_STOP, "init_stop");
    mllog_end(m);
    mark(r, MLLOG_AT(m), MLLOG_START, "run_start");
}

void mllog_evaluation(struct run *r) {
    struct mllog_file *m = &r->watch.mllog.file;
    if (!m->file) return;
    mark(r, MLLOG_AT(m), MLLOG_START, "eval_start");
    m->eval = true;
}

void mllog_scores(struct run *r, const struct scores *scores) {
    struct mllog_file *m = &r->watch.mllog.file;
    char name[TARGET_TEXT_MAX];
    if (!m->file) return;
    const struct target_wish judged = target_judged(r);
    struct json *j = mllog_begin_number(MLLOG_AT(m), MLLOG_POINT, "eval_accuracy", target_score(r, &judged, scores));
    snprintf(name, sizeof name, "%s_%s", target_split_name(judged.split), target_metric_name(judged.metric));
    json_string(j, "metric", name);
    put_place(r, j);
    mllog_end(m);
    mark(r, MLLOG_AT(m), MLLOG_STOP, "eval_stop");
    m->eval = false;
}

void mllog_stop(struct run *r) {
    struct mllog_file *m = &r->watch.mllog.file;
    if (!m->file) return;
    const bool whole = r->step == r->steps && !r->stopped, reached = r->target.reached, failed = r->trouble.text[0];
    end_intervals(r);
    const bool goes_on = failed ? r->saved.last != SIZE_MAX : !whole && !reached && r->options.out[0];
    if (goes_on) {
        mark(r, MLLOG_AT(m), MLLOG_POINT, "run_interrupted");
        return;
    }
    const bool success = !failed && (reached || (whole && !r->target.wish.wanted));
    struct json *j = mllog_begin(MLLOG_AT(m), MLLOG_STOP, "run_stop");
    json_string(j, "status", success ? "success" : "aborted");
    put_place(r, j);
    mllog_end(m);
}
