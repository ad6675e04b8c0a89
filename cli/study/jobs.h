/* jobs.h: where the rows of the scaling study come from: FOLDER/jobs.tsv has a line for each simulation (job, commit,
 * seconds, command), and every row of simulated.csv and aims.csv names its job. */
#ifndef ST_CLI_JOBS_H
#define ST_CLI_JOBS_H

#include "cli/study/study.h"

struct jobs;

/* False: one line in *e. */
bool jobs_read(struct jobs **jobs, const char *folder, struct err *e);
void jobs_free(struct jobs *j);

/* In Markdown: which commit the rows of each algorithm and format are of. */
void jobs_table(const struct jobs *j);

/* Of the jobs whose rows are still there: their commits, blanks between, in fresh memory; and all their seconds. */
char *jobs_commits(const struct jobs *j);
double jobs_seconds(const struct jobs *j);

#endif
