/* density.h: the density of each step. gTop-k's warm-up (Section IV-B): the first epochs run at 0.25,
 * 0.0725, 0.015, 0.004, one epoch each, then the target density; Ok-Topk's runs begin with dense steps. */
#ifndef ST_COMM_DENSITY_H
#define ST_COMM_DENSITY_H

#include <stddef.h>

#include "base/error.h"

enum { DENSITY_WARMUP_MAX = 32 };

struct density_schedule {
    double target;                     /* rho after the warm-up, in (0, 1] */
    double warmup[DENSITY_WARMUP_MAX]; /* rho of epoch 0, 1, ... */
    int warmup_epochs;
    size_t dense_steps; /* the first steps exchange the whole vector */
};

/* "none", "gtopk" (the paper's four epochs) or a list "0.25,0.0725,0.015": one density in (0,1] per epoch. */
bool density_parse_warmup(const char *text, struct density_schedule *d, struct err *e);

/* epoch: how many times the data has been gone through, counted from 0. Warm-up values below the target are
 * raised to it. */
double density_at(const struct density_schedule *d, size_t epoch);
double density_largest(const struct density_schedule *d);
/* The epoch from which on it is the target. */
size_t density_settled(const struct density_schedule *d);

#endif
