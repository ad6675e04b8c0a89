/* density.h: the density of each step.
 *
 *        none                     rho in all steps
 *        0.25,0.0725,0.015,0.004  one density for each of the first epochs, then rho. These four are gTop-k's (Section
 *                                 IV-B), for which "gtopk" is a name
 *        linear:N[:FROM]          linear in the steps, and so in the drop ratio 1 - density as well: step s, counted
 * from 0, has  FROM + (rho - FROM) s/N  for s < N, then rho. FROM is 1 unless given: the drop ratio rises from 0 in the
 * first step to 1 - rho after N. linear:1000 with rho = 0.01 is the warm-up of Aji, Heafield and Bogoychev
 *
 * No density of a warm-up is below rho: it is raised to it. Ok-Topk's runs begin with dense steps, which take the place
 * of the first steps of any warm-up. */
#ifndef ST_COMM_DENSITY_H
#define ST_COMM_DENSITY_H

#include <stddef.h>

#include "base/error.h"

enum { DENSITY_WARMUP_MAX = 32 };

struct density_schedule {
    double target;                     /* rho after the warm-up, in (0, 1] */
    double warmup[DENSITY_WARMUP_MAX]; /* rho of epoch 0, 1, ... */
    int warmup_epochs;
    size_t warmup_steps; /* linear: N; else 0 */
    double warmup_from;  /* linear: FROM, in (0, 1] */
    size_t dense_steps;  /* the first steps exchange the whole vector */
};

/* One of the forms above. False: one line in *e, and *d is as it was. */
bool density_parse_warmup(const char *text, struct density_schedule *d, struct err *e);

/* step: steps done before; epoch: how many times the data has been gone through; both counted from 0. */
double density_at(const struct density_schedule *d, size_t step, size_t epoch);
/* Of all steps that are not dense. */
double density_largest(const struct density_schedule *d);
/* The epoch from which on it is the target; end: that of step warmup_steps, for linear. */
double density_settled(const struct density_schedule *d, double end);

#endif
