/* log_target.c: see log_target.h. */
#include "cli/compare/log_target.h"

#include <math.h>
#include <stdio.h>

#include "base/json_read.h"
#include "cli/log/log_rows.h"

/* Bits per character are no key of their own. */
static double score_of(const struct json_value *row, enum target_split split, enum target_metric metric) {
    char key[64];
    snprintf(key, sizeof key, "%s_%s", target_split_name(split),
             target_metric_name(metric == TARGET_BPC ? TARGET_LOSS : metric));
    return json_number_at(row, key) / (metric == TARGET_BPC ? log(2) : 1);
}

static void take_evaluation(struct log_target *t, const struct json_value *row) {
    const enum target_split wanted = t->split == TARGET_EITHER ? t->wish.split : t->split;
    double score = NAN;
    for (enum target_split s = TARGET_VALID; s <= TARGET_TEST && isnan(score); s++) {
        if (wanted != TARGET_EITHER && s != wanted) continue;
        score = score_of(row, s, t->wish.metric);
        if (!isnan(score)) t->split = s;
    }
    if (!target_is_reached(&t->wish, score)) return;
    t->reached = true;
    t->steps = json_number_at(row, "step");
    t->seconds = json_number_at(row, "train_seconds");
    t->bytes_sent = json_number_at(row, "bytes_sent");
}

void log_target_row(struct log_target *t, const char *line) {
    struct json_value row;
    struct json_fault wrong;
    if (!t->wish.wanted) return; /* its rows are not worth reading */
    const bool header = log_row_is(line, "header"), step = log_row_is(line, "step"),
               evaluation = log_row_is(line, "eval"), first = header && t->headers == 0;
    t->headers += header;
    if (t->reached || (!step && !evaluation && !first) || !log_row_whole(line) || !json_read(line, &row, &wrong))
        return;
    if (first) {
        t->begins = json_number_at(&row, "resumed_at");
        return;
    }
    if (evaluation) {
        take_evaluation(t, &row);
        return;
    }
    t->rows++;
    t->row_seconds += json_number_at(&row, "seconds");
    t->row_bytes += json_number_at(&row, "bytes_sent_mean");
}

void log_target_end(struct log_target *t) {
    const bool all = (double)t->rows == t->steps;
    if (!t->reached) return;
    if (all) {
        t->seconds = t->row_seconds;
        t->bytes_sent = t->row_bytes;
    } else if (t->headers != 1) {
        t->seconds = NAN;
    }
}
