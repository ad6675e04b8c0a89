/* side_files.c: see side_files.h. */
#include "cli/log/side_files.h"

#include <math.h>
#include <stdio.h>

#include "cli/log/log_columns.h"
#include "cli/train/outputs.h"
#include "cli/train/run.h"

bool side_files_check(const struct options *o, uint64_t run, struct err *e) {
    return (!o->mllog[0] || outputs_wait(o, o->mllog) || mllog_file_check(o->mllog, run, e)) &&
           (!o->log_tensorboard[0] || event_file_check(o->log_tensorboard, e));
}

static bool open_files(struct run *r, struct err *e) {
    const struct options *o = &r->options;
    const bool resumed = o->resume[0] != '\0';
    return (!o->mllog[0] || mllog_file_open(&r->watch.mllog.file, o->mllog, r->job.id, resumed, e)) &&
           (!o->log_tensorboard[0] || event_file_open(&r->watch.events, o->log_tensorboard, (int64_t)r->step, e));
}

bool side_files_open(struct run *r, struct err *e) {
    if (r->comm->rank == 0) open_files(r, e);
    return !comm_agree(r->comm, e);
}

static void put_phases(struct event_file *f, const struct row *value) {
    char tag[48];
    for (int i = 0; i < PHASE_COUNT; i++) {
        snprintf(tag, sizeof tag, "seconds/%s", phase_names[i]);
        event_scalar(f, tag, value->phase[i]);
    }
    event_scalar(f, "seconds/step", value->seconds);
}

void side_files_step(struct run *r, const struct job_step *s) {
    struct event_file *f = &r->watch.events;
    const struct row *value = &s->value;
    if (!f->file) return;
    event_step(f, (int64_t)value->step);
    event_scalar(f, "train/loss", value->loss / value->samples);
    if (!r->data.task->speech) event_scalar(f, "train/accuracy", value->correct / value->samples);
    if (r->data.task->pairs) event_scalar(f, "train/next_loss", value->next_loss / value->pairs);
    event_scalar(f, "train/epoch", value->epoch);
    event_scalar(f, "train/learning_rate", value->lr);
    if (r->options.clip_norm > 0) event_scalar(f, "train/gradient_norm", value->gradient_norm);
    event_scalar(f, "exchange/density", value->density);
    event_scalar(f, "exchange/bytes_sent", value->bytes_sent);
    event_scalar(f, "exchange/messages_sent", value->messages_sent);
    event_scalar(f, "exchange/local_nnz", value->local_nnz);
    event_scalar(f, "exchange/global_nnz", value->global_nnz);
    put_phases(f, value);
    event_end(f);
}

void side_files_scores(struct run *r, const struct scores *scores) {
    struct event_file *f = &r->watch.events;
    char tag[64];
    if (!f->file) return;
    event_step(f, (int64_t)r->step);
    for (const struct score *s = score_table; s->when; s++) {
        if (!s->when(r)) continue;
        snprintf(tag, sizeof tag, "%s/%s", target_split_name(s->split), target_metric_name(s->metric));
        event_scalar(f, tag, score_value(s, scores));
    }
    event_end(f);
}

bool side_files_flush(struct run *r, struct err *e) {
    event_file_flush(&r->watch.events);
    const struct err *failed[] = {&r->watch.mllog.file.failed, &r->watch.events.failed};
    for (size_t i = 0; i < sizeof failed / sizeof *failed; i++)
        if (failed[i]->text[0] && !e->text[0]) *e = *failed[i];
    return !e->text[0];
}

void side_files_close(struct run *r, bool abandon) {
    if (abandon) {
        mllog_file_abandon(&r->watch.mllog.file);
        event_file_abandon(&r->watch.events);
    }
    mllog_file_close(&r->watch.mllog.file);
    event_file_close(&r->watch.events);
}
