/* log_recall.c: what the rows of a log say of steps that another process has taken: see log.h. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/log/log_columns.h"
#include "cli/log/log_rows.h"
#include "cli/task/scores.h"

/* A number of a row, by its key; `none` where there is none. */
static double number_or(const char *row, const char *key, double none) {
    char name[64];
    const int length = snprintf(name, sizeof name, "\"%s\":", key);
    const char *at = strstr(row, name);
    char *end;
    if (!at) return none;
    const double value = strtod(at + length, &end);
    return end == at + length || !isfinite(value) ? none : value;
}

static double number(const char *row, const char *key) {
    return number_or(row, key, 0);
}

/* What the row says of each column, as it was added to the totals. */
static struct row recall_step(const char *text) {
    const double by[OVERS] = {[OVER_SAMPLES] = number(text, "samples"), [OVER_PAIRS] = number(text, "pairs")};
    struct row value = {0};
    char key[64];
    for (const struct log_column *c = log_columns; c->name; c++) {
        for (size_t i = 0; i < log_column_parts(c) && !c->write; i++) {
            snprintf(key, sizeof key, "%s%s", c->part ? c->part[i] : c->name, c->over == OVER_SPREAD ? "_mean" : "");
            const bool is_mean = c->over == OVER_SAMPLES || c->over == OVER_PAIRS;
            log_column_put(&value, c, i, number(text, key) * (is_mean ? by[c->over] : 1));
        }
    }
    return value;
}

void log_recall(struct run_log *l, const char *row) {
    struct totals *t = &l->totals;
    if (log_row_is(row, "header")) {
        const double ranks = number(row, "ranks");
        l->begun = true;
        if (ranks >= 1 && ranks <= INT_MAX) l->ranks_begun = (int)ranks;
    }
    if (log_row_is(row, "eval")) t->since_evaluation = (struct row){0};
    if (!log_row_is(row, "step")) return;
    if (l->begun) {
        *t = (struct totals){.since_evaluation = t->since_evaluation};
        l->ranks = l->ranks_begun;
    }
    l->begun = false;
    const struct row value = recall_step(row);
    log_columns_add(t, &value);
}

void log_recall_since(struct row *since, const char *row) {
    if (log_row_is(row, "eval")) *since = (struct row){0};
    if (!log_row_is(row, "step")) return;
    const double samples = number(row, "samples");
    since->samples += samples;
    since->loss += samples * number(row, "loss");
    since->correct += samples * number(row, "accuracy");
}

void log_recall_start(struct scores *start, const char *row) {
    if (!log_row_is(row, "eval") || log_row_step(row) != 0) return;
    for (const struct score *s = score_table; s->when; s++)
        if (s->key) score_learn(s, start, number_or(row, s->key, NAN));
}
