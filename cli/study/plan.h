/* plan.h: what the scaling study has yet to simulate, as rows and as the arguments of scripts/simulate.sh.
 *
 *        struct plan_choice all = {0};
 *        plan_map(s, &all);                   // to standard output
 */
#ifndef ST_CLI_PLAN_H
#define ST_CLI_PLAN_H

#include "base/option.h"
#include "cli/study/study.h"

/* What of the map is asked for: places on it, and numbers; a list is empty where all are. */
struct plan_choice {
    int P; /* 0: every one */
    struct option_names nets, models;
    struct option_numbers densities;
};

/* Algorithms of one cell and format that run at the same scale, so at once. */
enum { PLAN_JOBS = BEST_ALGORITHMS };
struct plan_job {
    double scale;    /* entries are divided, and beta multiplied, by it */
    double seconds;  /* [s] of one core, an estimate */
    bool apart;      /* over gradients of its own: see plan.c */
    char algos[512]; /* blanks between */
};
/* What is yet to be simulated of a cell in a format; returns how many jobs. */
size_t plan_jobs(const struct study *s, size_t cell, size_t format, struct plan_job job[PLAN_JOBS]);

/* A line a job: "net,model,n,density,k,P,wire,algorithms,scale,seconds", then behind a tab what simulate.sh is given.
 * False: what is needed to simulate it is missing, one line in *e. */
bool plan_map(const struct study *s, const struct plan_choice *choice, struct err *e);

/* The file of fitted gradients that simulate.sh is to draw from: of the model or of one of its kind, of this density or
 * of the next lower one. False: there is none, one line in *e. */
enum { PLAN_PROFILE = 128 };
bool plan_profile(const struct study_model *model, double density, char path[PLAN_PROFILE], struct err *e);

#endif
