/* target.h: --target: a run stops at the first evaluation that reaches a score, and says what that took: steps, epochs,
 * seconds, bytes. In the order of a run's life:
 *
 *        target_plan        from the options and the data: which score it is, and that the run has it
 *        target_look        after each evaluation; once reached, r->stop is the step that has been taken
 *        target_recall      a resumed run: the same for the evaluation that its checkpoint has
 *        target_json        in the summary
 *
 * What it took is counted from the start of the run, through all processes that took a part of it: a checkpoint has the
 * sums up to its step (struct tally of cli/checkpoint). Steps that were lost with a process and taken again count
 * once. */
#ifndef ST_CLI_TARGET_H
#define ST_CLI_TARGET_H

#include "base/json.h"
#include "cli/log/log.h"
#include "cli/options/target_text.h"

struct run;

/* Zero without --target. */
struct target {
    struct target_wish wish; /* whose split is one of the two from target_plan on */
    bool reached;            /* the same on all ranks */
    size_t step;             /* of the evaluation that reached it, */
    double score;            /* and what that had */
    struct spent spent;      /* rank 0: up to there */
    bool known;              /* the checkpoint that the run resumes from has the scores of its step: */
    struct scores scores;
};

/* False: a score that this run's evaluations do not give; one line in *e that names those they do. */
bool target_plan(struct run *r, struct err *e);

/* What it has in an evaluation of this run, which gives it. */
double target_score(const struct run *r, const struct target_wish *wish, const struct scores *scores);
/* What a run is judged by: its target, else accuracy of the test images, the test set's word error rate, or the loss
 * of the validation set. */
struct target_wish target_judged(const struct run *r);

/* Collective: what rank 0 finds holds for all. spent: up to here. */
void target_look(struct run *r, const struct scores *scores, const struct spent *spent);
void target_recall(struct run *r);

/* The member "target" of a summary; nothing without --target. */
void target_json(const struct run *r, struct json *j);
/* The beginning of that member where the target is reached, by which a log of the same one is known; else "". */
enum { TARGET_MARK_MAX = 160 };
void target_mark(const struct run *r, char mark[TARGET_MARK_MAX]);

/* "test accuracy 0.9"; "" without --target */
enum { TARGET_TEXT_MAX = 64 };
void target_text(const struct run *r, char *text, size_t size);
/* At the start of a run, and at its end; nothing without --target. */
void target_say(struct run *r);
void target_say_reached(struct run *r);

#endif
