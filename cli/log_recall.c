/* log_recall.c: what the rows of a log say of steps that another process has taken: see log_recall in log.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/log.h"
#include "cli/log_rows.h"

/* A number of a row, by its key; 0 where there is none. */
static double number(const char *row, const char *key) {
    char name[64];
    const int length = snprintf(name, sizeof name, "\"%s\":", key);
    const char *at = strstr(row, name);
    char *end;
    if (!at) return 0;
    const double value = strtod(at + length, &end);
    return end == at + length || !isfinite(value) ? 0 : value;
}

/* As take_step in log.c adds up what it writes. */
static void recall_step(struct totals *t, const char *row) {
    const double samples = number(row, "samples"), seconds = number(row, "seconds");
    if (t->steps == 0) t->first_seconds = seconds;
    t->steps++;
    t->samples += samples;
    t->seconds += seconds;
    t->hidden_seconds += number(row, "hidden_seconds");
    for (int i = 0; i < PHASE_COUNT; i++) t->phase[i] += number(row, phase_names[i]);
    t->bytes_sent += number(row, "bytes_sent_mean");
    t->bytes_received += number(row, "bytes_received_mean");
    t->messages_sent += number(row, "messages_sent_mean");
    t->local_nnz += number(row, "local_nnz_mean");
    t->global_nnz += number(row, "global_nnz");
    t->mass_lost += number(row, "mass_lost");
    t->loss += number(row, "loss") * samples;
    t->correct += number(row, "accuracy") * samples;
    t->loss_samples += samples;
}

void log_recall(struct log *l, const char *row) {
    struct totals *t = &l->totals;
    if (log_row_is(row, "header")) l->begun = true;
    if (log_row_is(row, "eval")) t->loss = t->loss_samples = t->correct = 0;
    if (!log_row_is(row, "step")) return;
    if (l->begun) *t = (struct totals){0};
    l->begun = false;
    recall_step(t, row);
}
