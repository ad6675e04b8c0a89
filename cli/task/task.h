/* task.h: what a run trains on: one row for each way of reading data. It says how much there is, whether that is
 * enough, how a batch goes into the net, how the net is scored, and what is shown of the scores. A new one is a file of
 * this folder, a row in task.c and, where it has scores of its own, lines in scores.c. */
#ifndef ST_CLI_TASK_H
#define ST_CLI_TASK_H

#include "cli/task/scores.h"
#include "data/loader.h"
#include "nets/net.h"

struct run;

enum split { SPLIT_TRAIN, SPLIT_VALID, SPLIT_TEST, SPLITS };

/* A score as people read it, on the terminal. */
struct score_shown {
    const char *label; /* "test loss"; NULL ends a list */
    enum target_split split;
    enum target_metric metric;
    int decimals;
    bool percent; /* of a part of 1 */
    bool brief;   /* also in the line of each evaluation */
};

struct task_ops {
    const char *sample;        /* what is counted, for people: "image"; NULL: what the dataset says, or "word" */
    const char *samples;       /* in keys of the log: "images" */
    bool text;                 /* of words, whose loss has a perplexity */
    bool streams;              /* a text that is read in streams, whose states go on from step to step, */
    bool windows;              /* or in windows from random places, by a model that carries nothing */
    bool pairs;                /* of texts, for a model with two losses, of words and of pairs */
    bool speech;               /* labels are of no row: there are error rates in place of an accuracy */
    bool whole;                /* an epoch is a whole number of batches, run_data.windows */
    const char *classes;       /* what there are so many of, for people: "" of words; NULL: nothing is said of them */
    const char *built_in;      /* the real data that takes the place of a set that is built in */
    struct target_wish judged; /* by which number, where a run has no target */
    const struct score_shown *shown;                            /* at the end of a run */
    const struct score_shown *listed;                           /* by `evaluate` */
    size_t (*count)(const struct dataset *d, enum split split); /* samples of it; 0: there is no such split */
    /* Batches of an epoch of a whole number of them, with so many samples in a batch over all ranks; else NULL. */
    size_t (*batches)(const struct run *r, size_t each);
    /* Is there enough for an evaluation, and to train on, with these options? */
    bool (*can_evaluate)(const struct run *r, struct err *e);
    bool (*plan)(struct run *r, struct err *e);
    void (*forward)(struct run *r, const struct batch *b); /* of training */
    void (*score)(struct run *r, struct scores *scores);   /* collective */
};

extern const struct task_ops task_images, task_streams, task_windows, task_pairs, task_speech;

/* What a model does with data of this kind, which are such as it takes. */
const struct task_ops *task_of(enum data_kind kind, const struct model_ops *model);

/* "10000 test images", "6000 validation and 3000 test words": the splits from `first` on that there are. */
void task_counts(const struct run *r, enum split first, char *text, size_t size);

/* "train_images": 50000 and so on: the splits from `first` on that there are, and of pairs the test anyhow. */
void task_write_counts(const struct run *r, enum split first, struct json *j);

/* Has an evaluation windows from random places of the text to validate on (--eval-samples), which is long enough? */
bool text_is_sampled(const struct run *r);

/* For rows. Sums over the rows that this rank evaluates, and then over all ranks: loss, correct, rows. */
enum { EVAL_SUMS = 3 };
struct eval_sums {
    double value[EVAL_SUMS];
};
void eval_add(struct eval_sums *s, const struct net_result *result);
void eval_reduce(struct run *r, struct eval_sums *s);
double eval_loss(const struct eval_sums *s); /* means over the rows */
double eval_accuracy(const struct eval_sums *s);
/* Batches of this rank's part of so many samples that do not follow each other. */
size_t eval_batches(const struct run *r, size_t samples);
/* Another batch is done. False: no more of them, for a signal has come to this rank, at which the evaluation ends. */
bool eval_unit(struct run *r);

#endif
