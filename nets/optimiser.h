/* optimiser.h: from a gradient to new parameters; a file and a row per method. Comes after the exchange and works on
 * the dense mean gradient u/P; learning rate, momentum and weight decay live here and nowhere else. */
#ifndef ST_NETS_OPTIMISER_H
#define ST_NETS_OPTIMISER_H

#include <stddef.h>

#include "base/device.h"

struct optimiser_setup {
    double momentum, weight_decay;
};

struct optimiser_ops;

struct optimiser {
    const struct optimiser_ops *ops;
    struct optimiser_setup setup;
    const struct device_ops *device;
    size_t n, n_state;
    float *state; /* device, [n_state]: what a checkpoint must hold (momentum: [n]) */
    void *own;    /* the row's: scratch that its first step opened, or NULL */
};

struct optimiser_ops {
    const char *name;
    const char *summary;
    size_t states; /* vectors of n: 1 for momentum SGD */
    /* One step; grad: device, [n]. Returns the index of the first non-finite new parameter, or n. */
    size_t (*step)(struct optimiser *o, float *param, const float *grad, double lr);
    void (*close)(struct optimiser *o); /* gives `own` back; NULL where there never is any */
};

extern const struct optimiser_ops *const optimisers[]; /* every row, NULL-terminated */

/* ops: a row of the table; a device with rows of its own puts the one of the same name in its place. */
void optimiser_open(struct optimiser *o, const struct optimiser_ops *ops, size_t n, const struct device_ops *device,
                    const struct optimiser_setup *setup);
void optimiser_close(struct optimiser *o);
size_t optimiser_step(struct optimiser *o, float *param, const float *grad, double lr);

#endif
