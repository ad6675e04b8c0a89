/* run.h: everything that one training run holds open, and the steps of its life:
 *
 *        run_open -> train (the loop) -> report -> run_close
 *
 * A function that returns bool with a struct err is collective: every rank gets the same answer. */
#ifndef ST_CLI_RUN_H
#define ST_CLI_RUN_H

#include "base/clock.h"
#include "cli/checkpoint/run_dir.h"
#include "cli/gradients/record.h"
#include "cli/gradients/xi.h"
#include "cli/log/event_file.h"
#include "cli/log/log.h"
#include "cli/log/trace_file.h"
#include "cli/observe/mllog.h"
#include "cli/observe/target.h"
#include "cli/options/options.h"
#include "cli/task/heard.h"
#include "cli/task/task.h"
#include "cli/train/leg.h"
#include "comm/density.h"
#include "comm/reducer.h"
#include "data/loader.h"
#include "nets/net.h"
#include "nets/optimisers/optimiser.h"
#include "nets/optimisers/schedule.h"
#include "topk/correction.h"

/* Where --init-from took the parameters. */
struct origin {
    char path[1024]; /* the checkpoint's directory; empty: nowhere */
    uint64_t run_id, step;
};

/* --dry-run: what a run would take [bytes] (dry_run.c). */
struct dry_run {
    double memory, free;     /* of the largest rank, at most; what can be had on this node, 0: unknown */
    double checkpoint, disk; /* all files of one; free on the disk of --out */
};

/* Which run this is, and how it was begun. */
struct job {
    const char *program; /* as the user called it, for messages that say what to type */
    uint64_t id;         /* drawn at the start of a run, kept when it resumes */
    struct run_dir dir;
    bool complete; /* --resume: all that is asked for has been done; nothing else is open then */
    struct origin origin;
    struct auto_choice *choice; /* --algo auto: what was chosen, and why; else NULL */
    struct dry_run dry;
};

/* --resume: what the checkpoint is of, and whether the run goes on otherwise (resize.h). All zero without. */
struct resize {
    uint64_t step;
    int ranks;        /* that wrote it */
    int64_t batch;    /* of each of them */
    bool other_ranks; /* than there are now: what each rank has of its own is new */
    bool other_batch; /* over all ranks */
};

/* What it trains on. */
struct run_data {
    struct dataset set;
    const struct task_ops *task; /* what is done with it */
    struct comm_shared memory;
    uint32_t checksum;
    size_t windows;               /* batches of an epoch that has a whole number of them (task->whole); else 0 */
    size_t first_stream, streams; /* of such a text: this rank's first; of all ranks */
    struct loader *loader;
};

/* What it trains. */
struct run_model {
    struct net *net;
    size_t n; /* parameters */
    struct optimiser optimiser;
    struct lr_schedule lr;
};

/* What a gradient passes through on its way to the sum (exchange_open.c, gradient.c). */
struct gradient_path {
    bool sparse; /* the algorithm selects: store and selector are open */
    struct reducer reducer;
    struct exchange dense_start; /* of --dense-steps; ops NULL when there are none */
    struct exchange local;       /* of the steps between two rounds; ops NULL: the run has none (rounds.h) */
    struct density_schedule density;
    struct exchange_slice *slice; /* [slices of the model]: its slices as matrices */
    size_t *group, groups;        /* --overlap layers: where each group of the gradient begins */
    struct correction correction; /* --momentum-correction; velocity.ops NULL without */
    uint32_t *exempt;             /* --dense-slices: [exempts] entries that are not selected from */
    size_t exempts;
};

/* Of a run in rounds: what all ranks hold alike since the last one (rounds.h). */
struct rounds {
    float *param;    /* [n] host: the parameters with which this round began; NULL: there are no rounds */
    float *velocity; /* [n] host; NULL without --outer-momentum */
};

/* Hashes of what must be the same on all replicas (replicas.h). */
struct replica_hash {
    uint64_t parameters, optimiser; /* hash64 of the parameters; of the optimiser's state, 0 where it has none */
};

/* What the ranks have of the model in common. */
struct replicas {
    bool drifts;              /* replicas (of ranks, or only of nodes) differ between two averages of the parameters */
    size_t averaged_at;       /* last step after which they were averaged */
    size_t compared_at;       /* 1 + the last step after which they were compared; 0: never */
    struct replica_hash hash; /* this rank's then */
};

/* What is on the disk. */
struct saved {
    size_t last;     /* step of the last checkpoint; SIZE_MAX: there is none */
    struct err left; /* rank 0: what cleaning up checkpoints has left, as it was said */
};

/* What is true of the step under way alone. */
struct step {
    struct exchange *exchange; /* the one that this step uses */
    double density, lr;
    size_t k;                /* entries asked of each rank */
    bool meets;              /* there is something to do after this step (between_steps.h) */
    unsigned due;            /* a bit for each observer (observers.h) */
    size_t corrected;        /* entries of the gradient from here on have been clipped and momentum-corrected */
    struct exchange_sum sum; /* once exchanged */
    struct comm_counters traffic_before;
    struct row row; /* of the log (step_row.h) */
};

/* What observers have open (observers.h). */
struct watch {
    struct record record;        /* --record */
    struct slice_counts *slices; /* --log-slices; NULL without */
    struct xi xi;                /* --log-xi; zero without */
    struct mllog mllog;          /* --mllog; rank 0 */
    struct event_file events;    /* --log-tensorboard; likewise */
};

struct run {
    struct options options;
    struct comm *comm;
    struct job job;
    struct run_data data;
    struct run_model model;
    struct gradient_path path;
    struct replicas replicas;
    struct rounds rounds;
    struct saved saved;
    struct watch watch;

    size_t step, first_step, steps; /* done; done when this process began; length of the run */
    struct leg leg;                 /* which `step` is in */
    struct resize resize;
    size_t stop;      /* the last step to take now: before the end with --stop-at, or at a target */
    size_t eval_next; /* next step to evaluate after */
    bool eval_stops;  /* evaluations end at a signal: in the loop, where there is something to save */
    bool stopped;     /* by a signal or r->trouble, before all that was asked for was done */
    struct step now;
    struct phases phases, hidden_phases; /* of this thread; of the one that --overlap layers runs */
    struct trace_file trace;             /* --trace */
    struct run_log log;
    struct target target;
    struct scores last; /* of the last evaluation; NaN before one, */
    size_t last_at;     /* which was after this step; SIZE_MAX before one */
    struct heard heard; /* and what it heard, with --samples */
    struct err
        trouble; /* what the system refused on the way: all that can be saved is, and the run ends. On all ranks */
};

/* Opens everything for these options (resolved or, with --resume, completed from the checkpoint). Where
 * r->job.complete, there is no more to do than to say so. */
bool run_open(struct run *r, const struct options *o, const char *program, struct comm *c, struct err *e);
void run_close(struct run *r);

/* Opens what run_evaluate needs and no more: data, device and net, for r->comm and r->options (resolved); of a text the
 * caller has set data.streams and data.first_stream. of: the checkpoint that the options are of. Closed by run_close.
 */
bool run_open_evaluation(struct run *r, const struct checkpoint *of, struct err *e);

/* Where a number of steps lies, in epochs; how many of them a step is, in this leg. */
double run_epoch(const struct run *r, size_t steps);
double run_step_epochs(const struct run *r);
/* Steps, schedules and windows of the run from its options and data, which must be enough (plan.c). */
bool run_plan(struct run *r, struct err *e);
bool plan_samples(struct run *r, struct err *e); /* of tasks where none comes twice in a step */
/* Is it time, after r->step steps, or after so many, for what is done every so many of them? Never with 0. */
bool run_due(const struct run *r, int64_t every);
bool run_due_after(size_t steps, int64_t every);
/* Is there anything to test on? Not with a text that comes without. */
bool run_has_test(const struct run *r);
/* Samples to train on, which an epoch has once each: images or pairs. */
size_t run_samples(const struct run *r);
/* Of these steps, so many: samples a second; of a text words. */
double run_rate(const struct run *r, const struct row *sum);
/* What is counted: "image", "word" or "pair". */
const char *run_sample(const struct run *r);

/* Everything between a gradient and its sum, as the options say, which name an algorithm (exchange_open.c). Collective;
 * the same result on all ranks. Closed, it can be opened again, with other options. */
bool run_open_exchange(struct run *r, const struct device_ops *device, struct err *e);
/* Of that only which entries are exempt from selection, and the groups of --overlap layers. */
bool run_cut_gradient(struct run *r, struct err *e);
void run_close_exchange(struct run *r);

/* The loop (train.c). EXIT_DONE or EXIT_STOPPED; false: the system refused something on the way (a full disk). */
bool run_train(struct run *r, int *status, struct err *e);

/* Averages the batch-norm statistics over the ranks, then runs the test set, each rank its share; of a text the
 * validation split too. Scores of a test that there is not are NaN. The states of the streams are afterwards what they
 * were, and with `keep` the statistics, too. False: a signal to any rank ended it (eval_stops), the scores are of no
 * use, and all is what it was (evaluate.c). */
bool run_evaluate(struct run *r, bool keep, struct scores *scores);

/* What happens to a gradient beside the exchange (gradient.c).
 *
 * Before: entries [from, n) are final, those from r->now.corrected on were before. Clips (all of it at once: from is 0)
 * and puts momentum on it. */
void gradient_before(struct run *r, size_t from);
/* After: what was delivered loses its momentum. */
void gradient_delivered(struct run *r);
/* The mean gradient, before the optimiser: clips. */
void gradient_mean(struct run *r);

/* Writes --trace FILE; nothing without it. False: it cannot be written. */
bool run_write_trace(struct run *r, struct err *e);

/* Averages the parameters over the ranks (average.c); exchange traffic, charged to PHASE_COMMUNICATE. */
void run_average(struct run *r);
/* The parameters of all ranks replaced by their average, and back: for an evaluation between two averages. Nothing
 * happens where the replicas are the same. What begin returns, end takes. */
float *run_average_begin(struct run *r);
void run_average_end(struct run *r, float *own);

/* How many evaluations are still to come before the run stops (between_steps.c). */
size_t run_evaluations_left(const struct run *r);

/* Is it ever evaluated? Not with --eval-every never. */
bool run_evaluates(const struct run *r);

/* Did --stop-at end the run, or will it, before its end? Not where a target did. */
bool run_is_prefix(const struct run *r);

/* With --local-update of hitopk the ranks of a node step alike, and only nodes drift apart. */
bool run_drifts_by_node(const struct run *r);

/* Must all ranks hold the same parameters now? Not between two averages of a run that drifts. */
bool run_replicas_same(const struct run *r);
/* Do they, where they must? Between two averages: the ranks of each node, where nodes drift. Ends the job naming the
 * rank that differs. Returns the hash of this rank's. */
uint64_t run_check_replicas(struct run *r);

#endif
