/* task.c: see task.h. */
#include "cli/task/task.h"

#include <stdio.h>
#include <string.h>

#include "base/beat.h"
#include "cli/signals.h"
#include "cli/train/run.h"

static const char *const split_names[SPLITS] = {"train", "valid", "test"};

const struct task_ops *task_of(enum data_kind kind, const struct model_ops *model) {
    switch (kind) {
    case DATA_TEXT:
        return model->windows ? &task_windows : &task_streams;
    case DATA_PAIRS:
        return &task_pairs;
    case DATA_SPEECH:
        return &task_speech;
    case DATA_IMAGES:
        break;
    }
    return &task_images;
}

void task_counts(const struct run *r, enum split first, char *text, size_t size) {
    static const char *const called[SPLITS] = {"training", "validation", "test"};
    size_t count[SPLITS] = {0};
    int left = 0;
    text[0] = '\0';
    for (int s = (int)first; s < SPLITS; s++) {
        count[s] = r->data.task->count(&r->data.set, (enum split)s);
        left += count[s] > 0;
    }
    for (int s = (int)first; s < SPLITS; s++) {
        const size_t used = strlen(text);
        if (count[s] == 0) continue;
        left--;
        snprintf(text + used, size - used, "%zu %s%s", count[s], called[s], left > 1 ? ", " : left == 1 ? " and " : "");
    }
    const size_t used = strlen(text);
    snprintf(text + used, size - used, " %ss", run_sample(r));
}

void task_write_counts(const struct run *r, enum split first, struct json *j) {
    const struct task_ops *task = r->data.task;
    for (enum split split = first; split < SPLITS; split++) {
        const size_t count = task->count(&r->data.set, split);
        char key[48];
        snprintf(key, sizeof key, "%s_%s", split_names[split], task->samples);
        if (count > 0 || (task->pairs && split == SPLIT_TEST)) json_integer(j, key, (int64_t)count);
    }
}

void eval_add(struct eval_sums *s, const struct net_result *result) {
    s->value[0] += result->loss;
    s->value[1] += result->correct;
    s->value[2] += result->count;
}

void eval_reduce(struct run *r, struct eval_sums *s) {
    comm_allreduce_f64(r->comm, s->value, EVAL_SUMS, COMM_SUM);
}

double eval_loss(const struct eval_sums *s) {
    return s->value[0] / s->value[2];
}

double eval_accuracy(const struct eval_sums *s) {
    return s->value[1] / s->value[2];
}

size_t eval_batches(const struct run *r, size_t samples) {
    size_t from, to, batch = (size_t)r->model.net->setup.batch;
    loader_share(samples, r->comm->rank, r->comm->size, &from, &to);
    return (to - from + batch - 1) / batch;
}

bool eval_unit(struct run *r) {
    log_evaluation_unit(r);
    beat();
    return !r->eval_stops || !signals_caught();
}
