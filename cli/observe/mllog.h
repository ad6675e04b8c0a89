/* mllog.h: --mllog FILE: what a run is and does as an MLPerf log (cli/log/mllog_file.h), by rank 0; the others do
 * nothing.
 *
 *        init_start, submission_benchmark (the model), submission_org, _division, _status, _platform, cache_clear,
 * seed, global_batch_size, ..., opt_*, init_stop, run_start epoch_start, epoch_stop                  epoch_num from 1;
 * an epoch ends with the run, too eval_start, eval_accuracy, eval_stop     epoch_num: epochs done, 0 before the first
 * step run_stop                                 status success: the target is reached or, without one, all steps are
 * done; else aborted
 *
 * A run that can go on (stopped by a signal, by --stop-at, by a full disk with a checkpoint behind it) has not ended:
 * "run_interrupted" stands there, and where it resumes "run_resumed", so that the whole file is the log of one run.
 * What was lost with a process is logged again. */
#ifndef ST_CLI_MLLOG_H
#define ST_CLI_MLLOG_H

#include "cli/log/mllog_file.h"

struct run;
struct scores;

struct mllog {
    struct mllog_file file;
    int64_t opened_ms; /* when this process began with the run */
};

void mllog_start(struct run *r); /* before the first step of this process */
void mllog_evaluation(struct run *r);
void mllog_scores(struct run *r, const struct scores *scores);
/* After the last step. */
void mllog_stop(struct run *r);

#endif
