/* aims.h: the aims of the scaling study: weak scaling on 1 Gbit/s with the step times of the gTop-k paper's GPU (its
 * v1, Table VI), density 0.001. Efficiency: computing / (computing + exchange).
 *
 *        struct aims *a = aims_new();
 *        if (aims_read(a, s, folder, e)) aims_table(a, false);
 *        aims_free(a);
 */
#ifndef ST_CLI_AIMS_H
#define ST_CLI_AIMS_H

#include "cli/study/study.h"

struct aims;

struct aims *aims_new(void);
void aims_free(struct aims *a);

/* FOLDER/aims.csv, the papers' step times and throughputs, and local work as s has it. False: one line in *e. */
bool aims_read(struct aims *a, const struct study *s, const char *folder, struct err *e);

/* What is yet to be simulated: "model,n,density,P,wire,algorithm,compute_s,select_s,word_s,scale" a line, and behind a
 * tab the arguments of scripts/simulate.sh. charged: with the times of the table s->costs, where it has them. quick: a
 * few. False: one line in *e. */
bool aims_plan(const struct aims *a, const struct study *s, bool charged, bool quick, struct err *e);

/* In Markdown: reached or not, by the best of ours, and how far others come; below it what was not reached. */
void aims_table(const struct aims *a, bool charged);
/* What the gTop-k paper measured, beside its own cost model (its Table I) and the simulation. */
void aims_paper(const struct aims *a, const struct study *s);

/* How far adding local work to a simulated step is from injecting it into the simulation, as a factor, over all steps
 * that have both. Returns how many. */
size_t aims_added(const struct aims *a, double *least, double *most);

#endif
