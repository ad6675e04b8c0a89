/* log_columns.c: see log_columns.h. */
#include "cli/log/log_columns.h"

#include <math.h>
#include <string.h>

#include "cli/train/run.h"
#include "topk/track.h"

/* -- when a column is there ---------------------------------------------------------------------------------------- */

static bool clips(const struct run *r, const struct row *first) {
    (void)first;
    return r->options.clip_norm > 0;
}

static bool selects(const struct run *r, const struct row *first) {
    (void)first;
    return r->path.reducer.selector != NULL;
}

static bool is_audited(const struct run *r, const struct row *first) {
    return selects(r, first) && !isnan(first->exact_threshold);
}

static bool reuses(const struct run *r, const struct row *first) {
    return selects(r, first) && options_selector(&r->options)->evaluates;
}

static bool reuses_globally(const struct run *r, const struct row *first) {
    return selects(r, first) && options_exchange(&r->options)->evaluates;
}

static bool has_global(const struct run *r, const struct row *first) {
    return selects(r, first) && first->global_threshold > 0;
}

static bool has_global_exact(const struct run *r, const struct row *first) {
    return selects(r, first) && first->global_exact_threshold > 0;
}

static bool has_xi(const struct run *r, const struct row *first) {
    (void)r;
    return !isnan(first->xi);
}

static bool is_aligned(const struct run *r, const struct row *first) {
    (void)first;
    return !r->data.task->speech;
}

static bool has_pairs(const struct run *r, const struct row *first) {
    (void)first;
    return r->data.task->pairs;
}

static bool hides(const struct run *r, const struct row *first) {
    (void)first;
    return r->path.reducer.exchange.ops->begin != NULL;
}

/* -- what is no number --------------------------------------------------------------------------------------------- */

static void write_density(const struct run *r, const struct job_step *s, const char *name, struct json *j) {
    json_number(j, name, (s->value.local_nnz + s->value.exempt_nnz) / (double)r->model.n);
}

/* For each reason how many ranks evaluated an exact threshold in this step. */
static void write_evaluated(const struct run *r, const struct job_step *s, const char *name, struct json *j) {
    (void)r;
    json_object(j, name);
    for (int i = 0; i < EVALUATED_REASONS; i++) {
        int ranks = 0;
        for (int p = 0; p < s->ranks; p++) ranks += ((unsigned)s->rank[(size_t)p * s->stride].evaluated >> i & 1) != 0;
        if (ranks > 0) json_integer(j, evaluated_names[i], ranks);
    }
    json_end(j);
}

/* Why the global one was; "" in a step that used the one before. */
static void write_global_evaluated(const struct run *r, const struct job_step *s, const char *name, struct json *j) {
    const unsigned flags = (unsigned)s->value.global_evaluated;
    char text[64] = "";
    (void)r;
    for (int i = 0; i < EVALUATED_REASONS; i++) {
        if (!(flags >> i & 1)) continue;
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s", used ? "," : "", evaluated_names[i]);
    }
    json_string(j, name, text);
}

/* -- the table ----------------------------------------------------------------------------------------------------- */

#define COLUMN(key, member, reduction) .name = key, .at = offsetof(struct row, member), .over = reduction

const struct log_column log_columns[] = {
    {COLUMN("step", step, OVER_ALIKE), .whole = true, .about = "steps completed with this one"},
    {COLUMN("epoch", epoch, OVER_ALIKE), .about = "where that is"},
    {COLUMN("loss", loss, OVER_SAMPLES), .unit = "nats", .about = "of the training batches, before the update"},
    {COLUMN("accuracy", correct, OVER_SAMPLES), .when = is_aligned, .unit = "part of 1",
     .about = "of the training batches; of a text the part of words guessed",
     .only = "where labels are aligned, so not of speech"},
    {COLUMN("samples", samples, OVER_SUM), .whole = true, .unit = "images, words, utterances",
     .about = "in all batches of `--accumulate`; of pairs the masked words, which `loss` and `accuracy` are about"},
    {COLUMN("next_loss", next_loss, OVER_PAIRS), .when = has_pairs, .unit = "nats",
     .about = "of which sentence comes next", .only = "with pairs of texts"},
    {COLUMN("next_accuracy", next_correct, OVER_PAIRS), .when = has_pairs, .unit = "part of 1", .about = "of that",
     .only = "with pairs of texts"},
    {COLUMN("pairs", pairs, OVER_SUM), .when = has_pairs, .whole = true, .unit = "pairs",
     .about = "in all batches of `--accumulate`", .only = "with pairs of texts"},
    {COLUMN("lr", lr, OVER_ALIKE), .about = "learning rate"},
    {COLUMN("gradient_norm", gradient_norm, OVER_SPREAD), .when = clips, .about = "of what `--clip-norm` clips, before",
     .only = "with `--clip-norm`"},
    {COLUMN("density", density, OVER_ALIKE), .unit = "part of 1", .about = "asked"},
    {COLUMN("k", k, OVER_ALIKE), .whole = true, .unit = "entries", .about = "asked of each rank"},
    {COLUMN("local_nnz", local_nnz, OVER_SPREAD), .summary = "local_nnz_per_step", .unit = "entries",
     .about = "that a rank sent of those it selected; without the slices of `--dense-slices`, so that it compares with "
              "`k`; 0 in a step that sends nothing (`fedavg`, `diloco` and `sparseloco` between rounds)"},
    {COLUMN("global_nnz", global_nnz, OVER_ALIKE), .whole = true, .summary = "global_nnz_per_step", .unit = "entries",
     .about = "of their sum; without those slices, too"},
    {COLUMN("density_real", exempt_nnz, OVER_ALIKE), .write = write_density, .unit = "part of 1",
     .about = "all that a rank sent, dense slices too, over parameters: a mean over the ranks"},
    {COLUMN("mass_lost", mass_lost, OVER_SUM), .summary = "mass_lost", .total = true,
     .about = "sum of magnitudes lost; above 0 with `--gtopk-residual paper`, `sparseloco` and `demo` alone"},
    {COLUMN("selected", selected, OVER_SPREAD), .when = selects, .unit = "entries",
     .about = "that the selector returned, before an algorithm cut them",
     .only = "with an algorithm that has a selector"},
    {COLUMN("threshold", threshold, OVER_SPREAD), .when = selects,
     .about = "of the selector, the smallest where slices or groups of layers select by themselves",
     .only = "with an algorithm that has a selector"},
    {COLUMN("threshold_exact", exact_threshold, OVER_SPREAD), .when = is_audited,
     .about = "magnitude of the exact k-th entry", .only = "in steps of `--audit`"},
    {COLUMN("gaussian_nnz", normal_passes, OVER_SPREAD), .when = is_audited, .unit = "entries",
     .about = "above the threshold that gaussiank, not adjusted, would take for what this step selects from",
     .only = "in steps of `--audit`"},
    {COLUMN("evaluated_local", evaluated, OVER_FIRST), .when = reuses, .write = write_evaluated, .unit = "ranks",
     .about =
         "on which the exact threshold was found in this step, by reason: `due`, its time had come (`--tau-prime`, or "
         "there was none), `k`, it was of another k, `few` or `many`, it let too few or too many pass; `{}` where all "
         "used the one they had",
     .only = "with selector `reuse`"},
    {COLUMN("evaluated_global", global_evaluated, OVER_ALIKE), .when = reuses_globally, .write = write_global_evaluated,
     .about = "the same of oktopk's global threshold: the reasons with commas between them, also `words`: some rank "
              "would have gone beyond the bound on words; `\"\"` in a step that used the one there was",
     .only = "with oktopk"},
    {COLUMN("threshold_global", global_threshold, OVER_ALIKE), .when = has_global,
     .about = "of oktopk's second selection", .only = "with oktopk"},
    {COLUMN("threshold_global_exact", global_exact_threshold, OVER_ALIKE), .when = has_global_exact,
     .about = "the exact one beside it", .only = "with oktopk in steps of `--audit`"},
    {COLUMN("xi", xi, OVER_FIRST), .when = has_xi, .about = "of Ok-Topk's Assumption 1; below",
     .only = "in steps of `--log-xi` whose gradient is not zero"},
    {COLUMN("xi_denominator", xi_denominator, OVER_FIRST), .when = has_xi,
     .about = "norm of the mean of the ranks' gradients, which is below the line in xi", .only = "where `xi` is"},
    {COLUMN("hidden_seconds", hidden_seconds, OVER_MEAN), .when = hides, .summary = "hidden_seconds_per_step",
     .unit = "s", .about = "communication that ran behind backward; what was exposed is `phases.communicate`",
     .only = "where an algorithm overlaps"},
    {COLUMN("bytes_sent", bytes_sent, OVER_SPREAD), .summary = "bytes_sent_per_step", .unit = "bytes"},
    {COLUMN("bytes_received", bytes_received, OVER_SPREAD), .summary = "bytes_received_per_step", .unit = "bytes"},
    {COLUMN("messages_sent", messages_sent, OVER_SPREAD), .summary = "messages_sent_per_step"},
    {COLUMN("messages_received", messages_received, OVER_SPREAD)},
    {COLUMN("seconds", seconds, OVER_MAX), .summary = "step_seconds", .unit = "s",
     .about = "from the end of the step before to that of this one"},
    {COLUMN("phases", phase, OVER_MEAN), .part = phase_names, .parts = PHASE_COUNT, .summary = "phases", .unit = "s",
     .about = "where they went; they add up to the mean step"},
    {.name = NULL}};

/* -- from the ranks' rows to the job's ----------------------------------------------------------------------------- */

size_t log_column_parts(const struct log_column *c) {
    return c->part ? c->parts : 1;
}

double log_column_get(const struct row *row, const struct log_column *c, size_t part) {
    double value;
    memcpy(&value, (const char *)row + c->at + part * sizeof value, sizeof value);
    return value;
}

void log_column_put(struct row *row, const struct log_column *c, size_t part, double value) {
    memcpy((char *)row + c->at + part * sizeof value, &value, sizeof value);
}

static void reduce(struct job_step *s, const struct log_column *c, size_t part) {
    const double first = log_column_get(s->rank, c, part);
    double sum = 0, max = first;
    for (int p = 0; p < s->ranks; p++) {
        const double value = log_column_get(s->rank + (size_t)p * s->stride, c, part);
        sum += value;
        if (value > max) max = value;
    }
    const double over[OVERS] = {
        [OVER_ALIKE] = first,           [OVER_FIRST] = first, [OVER_SUM] = sum,     [OVER_MEAN] = sum / s->ranks,
        [OVER_SPREAD] = sum / s->ranks, [OVER_MAX] = max,     [OVER_SAMPLES] = sum, [OVER_PAIRS] = sum};
    log_column_put(&s->value, c, part, over[c->over]);
    log_column_put(&s->max, c, part, max);
}

void log_columns_reduce(struct job_step *s) {
    for (const struct log_column *c = log_columns; c->name; c++)
        for (size_t part = 0; part < log_column_parts(c); part++) reduce(s, c, part);
}

/* sum += value, column by column. */
static void add(struct row *sum, const struct row *value) {
    for (const struct log_column *c = log_columns; c->name; c++)
        for (size_t i = 0; i < log_column_parts(c); i++)
            log_column_put(sum, c, i, log_column_get(sum, c, i) + log_column_get(value, c, i));
}

void log_columns_add(struct totals *t, const struct row *value) {
    if (t->steps == 0) t->first_seconds = value->seconds;
    t->steps++;
    add(&t->all, value);
    add(&t->since_evaluation, value);
    add(&t->since_line, value);
}

/* -- the log ------------------------------------------------------------------------------------------------------- */

/* The member `key`: the column's number of this row, over `by`. */
static void write_value(struct json *j, const char *key, const struct log_column *c, const struct row *row, double by) {
    if (!c->part) {
        json_number(j, key, log_column_get(row, c, 0) / by);
        return;
    }
    json_object(j, key);
    for (size_t i = 0; i < c->parts; i++) json_number(j, c->part[i], log_column_get(row, c, i) / by);
    json_end(j);
}

static void write_column(const struct job_step *s, const struct log_column *c, struct json *j) {
    char mean[64], max[64];
    snprintf(mean, sizeof mean, "%s_mean", c->name);
    snprintf(max, sizeof max, "%s_max", c->name);
    if (c->whole)
        json_integer(j, c->name, (int64_t)log_column_get(&s->value, c, 0));
    else if (c->over == OVER_SAMPLES || c->over == OVER_PAIRS)
        write_value(j, c->name, c, &s->value, c->over == OVER_PAIRS ? s->value.pairs : s->value.samples);
    else
        write_value(j, c->over == OVER_SPREAD ? mean : c->name, c, &s->value, 1);
    if (c->over == OVER_SPREAD) write_value(j, max, c, &s->max, 1);
}

void log_columns_write(const struct run *r, const struct job_step *s, struct json *j) {
    for (const struct log_column *c = log_columns; c->name; c++) {
        if (c->when && !c->when(r, s->rank)) continue;
        if (c->write)
            c->write(r, s, c->name, j);
        else
            write_column(s, c, j);
    }
}

void log_columns_summary(const struct run *r, const char *first, const char *last, struct json *j) {
    const struct totals *t = &r->log.totals;
    const double steps = t->steps > 0 ? t->steps : 1;
    const struct log_column *c = log_columns;
    while (strcmp(c->name, first) != 0) c++;
    for (bool more = true; more; c++) {
        more = strcmp(c->name, last) != 0;
        if (!c->summary || (c->when && !c->when(r, &t->all))) continue;
        write_value(j, c->summary, c, &t->all, c->total ? 1 : steps);
    }
}

/* -- for readers --------------------------------------------------------------------------------------------------- */

void log_columns_markdown(FILE *out) {
    static const char *const over[OVERS] = {[OVER_ALIKE] = "alike",
                                            [OVER_FIRST] = "rank 0's",
                                            [OVER_SUM] = "sum",
                                            [OVER_MEAN] = "mean",
                                            [OVER_SPREAD] = "mean, max",
                                            [OVER_MAX] = "max",
                                            [OVER_SAMPLES] = "mean over the samples",
                                            [OVER_PAIRS] = "mean over the pairs"};
    fputs("| key | unit | over the ranks | what | in the summary |\n|---|---|---|---|---|\n", out);
    for (const struct log_column *c = log_columns; c->name; c++) {
        fprintf(out, c->over == OVER_SPREAD ? "| `%s_mean/_max`" : "| `%s`", c->name);
        fprintf(out, " | %s | %s | ", c->unit ? c->unit : "", c->write ? "" : over[c->over]);
        for (size_t i = 0; i < (c->part ? c->parts : 0); i++) fprintf(out, "%s`%s`", i ? ", " : "", c->part[i]);
        fprintf(out, "%s%s", c->part && c->about ? ": " : "", c->about ? c->about : "");
        if (c->only) fprintf(out, " (only %s)", c->only);
        fputs(" | ", out);
        if (c->summary) fprintf(out, "`%s`%s", c->summary, c->total ? " (sum over the steps)" : "");
        fputs(" |\n", out);
    }
}
