/* optimiser.h: from a gradient to new parameters; a file and a row per method. Comes after the exchange and works on
 * the dense mean gradient u/P; learning rate, momentum and weight decay live here and nowhere else.
 *
 *        optimiser_open(&o, ops, &net->arena, &setup);
 *        optimiser_step(&o, param, grad, lr);
 *        bad = optimiser_settle(&o);                  // < n: what it made is not finite from there on
 *        optimiser_close(&o);
 *
 * A run that is resumed gives back o.state, and by optimiser_set_steps how many steps there were. */
#ifndef ST_NETS_OPTIMISER_H
#define ST_NETS_OPTIMISER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/option.h"
#include "nets/arena.h"

/* A row reads what its formula has and nothing else; no number stands for another one. */
struct optimiser_setup {
    double momentum;              /* sgd: mu */
    double beta1, beta2, epsilon; /* adam; Kingma and Ba, and PyTorch: 0.9, 0.999, 1e-8 */
    size_t variance_steps;        /* adam: v is held after so many steps; 0: never */
    double weight_decay;          /* all: times the parameters, added to the gradient; adamw: see adamw.c */
    bool gradient_has_momentum; /* sgd: mu is in the gradient already (topk/correction.h), as it is not in the decay */
};

struct optimiser_ops;

struct optimiser {
    const struct optimiser_ops *ops;
    struct optimiser_setup setup;
    const struct device_ops *device;
    const struct slice *slice; /* [slices], of the n parameters, for rows that treat them differently */
    size_t slices;
    size_t n, n_state;
    uint64_t steps; /* done, or given to the device */
    size_t bad;     /* what optimiser_settle returns, as far as it is known */
    float *state;   /* device, [moments][n]: what, with `steps`, a checkpoint must hold; n_state floats */
    void *own;      /* the row's: scratch that its first step opened, or NULL */
};

/* A number that a row keeps of each parameter from step to step. */
struct optimiser_moment {
    const char *name;    /* "mean of squares" */
    bool is_nonnegative; /* no number of it is below 0 */
};

enum { OPTIMISER_MOMENTS_MAX = 2 };

struct optimiser_ops {
    const char *name;
    const char *summary;
    struct optimiser_moment moment[OPTIMISER_MOMENTS_MAX]; /* in the order of optimiser.state; those with a name */
    /* Step o->steps + 1; grad: device, [n]. Returns the first index where the new parameter or state is not finite,
     * or n; a row with `settle` does not wait for that, and returns n. */
    size_t (*step)(struct optimiser *o, float *param, const float *grad, double lr);
    size_t (*settle)(struct optimiser *o); /* the same of the steps since it was last asked, once they are done */
    void (*close)(struct optimiser *o);    /* gives `own` back; NULL where there never is any */
    struct option_part options;            /* what it alone reads, in struct optimiser_setup; of the program's rows */
    double lr;                             /* the learning rate of its paper; 0: the model's. Likewise */
};

extern const struct optimiser_ops *const optimisers[]; /* every row, NULL-terminated */
const char *optimiser_name(size_t i);                  /* the i-th row's, NULL past the end */

size_t optimiser_moments(const struct optimiser_ops *ops); /* how many it has */

/* ops: a row of the table; a device with rows of its own puts the one of the same name in its place. arena: of the
 * parameters, in whose slices they lie as long as this is open. */
void optimiser_open(struct optimiser *o, const struct optimiser_ops *ops, const struct arena *arena,
                    const struct optimiser_setup *setup);
void optimiser_close(struct optimiser *o);
void optimiser_step(struct optimiser *o, float *param, const float *grad, double lr);
/* The first index where a step, since this was last asked, made a parameter or state that is not finite, or n. Waits
 * for a device: to be asked when something else was waited for that came behind the step. */
size_t optimiser_settle(struct optimiser *o);
/* As if so many steps had been done: for a run that is resumed. */
void optimiser_set_steps(struct optimiser *o, uint64_t steps);

#endif
