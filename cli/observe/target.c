/* target.c: see target.h. */
#include "cli/observe/target.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/train/report.h"
#include "cli/train/run.h"

/* Do this run's evaluations give it? */
static bool has(const struct run *r, enum target_split split, enum target_metric metric) {
    return score_find(r, split, metric) != NULL;
}

double target_score(const struct run *r, const struct target_wish *w, const struct scores *scores) {
    return score_value(score_find(r, w->split, w->metric), scores);
}

struct target_wish target_judged(const struct run *r) {
    return r->target.wish.wanted ? r->target.wish : r->data.task->judged;
}

static bool refuse(const struct run *r, const struct target_wish *w, struct err *e) {
    char there[300] = "", score[TARGET_SCORE_MAX];
    for (enum target_split s = TARGET_VALID; s <= TARGET_TEST; s++)
        for (int m = 0; m < TARGET_METRICS; m++) {
            const struct target_wish one = {.split = s, .metric = (enum target_metric)m};
            const size_t used = strlen(there);
            if (!has(r, s, one.metric)) continue;
            snprintf(there + used, sizeof there - used, "%s%s", used ? ", " : "", target_score_name(&one, score));
        }
    return err_set(e, "--target: evaluations of %s with --data %.100s give no %s; they give %s",
                   options_model(&r->options)->name, r->data.set.ops->name, target_score_name(w, score), there);
}

bool target_plan(struct run *r, struct err *e) {
    struct target_wish *w = &r->target.wish;
    if (!target_parse(r->options.target, w, e)) return false;
    if (!w->wanted) return true;
    const bool either = w->split == TARGET_EITHER;
    if (either && has(r, TARGET_VALID, w->metric))
        w->split = TARGET_VALID;
    else if (either && has(r, TARGET_TEST, w->metric))
        w->split = TARGET_TEST;
    else if (either || !has(r, w->split, w->metric))
        return refuse(r, w, e);
    return true;
}

void target_look(struct run *r, const struct scores *scores, const struct spent *spent) {
    struct target *t = &r->target;
    if (!t->wish.wanted || t->reached) return;
    struct {
        double score;
        uint64_t reached;
    } found = {target_score(r, &t->wish, scores), 0};
    found.reached = target_is_reached(&t->wish, found.score);
    comm_bcast(r->comm, 0, &found, sizeof found); /* sums over ranks need not be the same bits on all of them */
    if (!found.reached) return;
    t->reached = true;
    t->step = r->stop = r->step;
    t->score = found.score;
    t->spent = *spent;
}

void target_recall(struct run *r) {
    if (r->target.known) target_look(r, &r->target.scores, &r->log.before);
}

/* What a target is, as the first members of its object. */
static void begin_json(const struct target *t, struct json *j) {
    json_object(j, "target");
    json_string(j, "metric", target_metric_name(t->wish.metric));
    json_string(j, "split", target_split_name(t->wish.split));
    json_number(j, "value", t->wish.value);
    json_boolean(j, "reached", t->reached);
}

/* No key of the summary itself, nor "step", by which rows are found that come after a checkpoint. */
void target_json(const struct run *r, struct json *j) {
    const struct target *t = &r->target;
    if (!t->wish.wanted) return;
    begin_json(t, j);
    if (t->reached) {
        json_number(j, "score", t->score);
        json_integer(j, "steps", (int64_t)t->step);
        json_number(j, "epochs", run_epoch(r, t->step));
        json_number(j, "seconds", t->spent.seconds);
        json_number(j, "elapsed_seconds", t->spent.elapsed);
        json_number(j, "bytes_sent", t->spent.bytes_sent);
    }
    json_end(j);
}

void target_mark(const struct run *r, char mark[TARGET_MARK_MAX]) {
    struct target reached = {.wish = r->target.wish, .reached = true};
    struct json j;
    mark[0] = '\0';
    if (!reached.wish.wanted) return;
    json_open(&j);
    json_object(&j, NULL);
    begin_json(&reached, &j);
    snprintf(mark, TARGET_MARK_MAX, "%s", json_text(&j) + 1); /* without the first brace */
    json_close(&j);
}

void target_text(const struct run *r, char *text, size_t size) {
    const struct target_wish *w = &r->target.wish;
    text[0] = '\0';
    if (w->wanted)
        snprintf(text, size, "%s %s %.12g", target_split_name(w->split), target_metric_name(w->metric), w->value);
}

void target_say(struct run *r) {
    char target[TARGET_TEXT_MAX];
    target_text(r, target, sizeof target);
    if (r->target.wish.wanted) log_say(r, "  target    %s: the first evaluation that reaches it ends the run", target);
}

/* Seconds that are not known are those of a run that an older version began. */
void target_say_reached(struct run *r) {
    const struct target *t = &r->target;
    char text[TARGET_TEXT_MAX], bytes[32], took[96] = "";
    if (!t->wish.wanted) return;
    target_text(r, text, sizeof text);
    if (!t->reached) {
        log_say(r, "  target              %s: not reached", text);
        return;
    }
    human_bytes(bytes, sizeof bytes, t->spent.bytes_sent);
    if (!isnan(t->spent.seconds))
        snprintf(took, sizeof took, "; %.1f s in steps, %.1f s in all, %s sent per rank", t->spent.seconds,
                 t->spent.elapsed, bytes);
    log_say(r, "  target              %s: reached after %zu steps, %.2f epochs%s", text, t->step, run_epoch(r, t->step),
            took);
}
