/* bench_kernels.h: where a step goes, call by call, on a device that can time what it is given: no profiler is needed.
 * Calls are given one by one, where training may replay recordings of them. */
#ifndef ST_CLI_BENCH_KERNELS_H
#define ST_CLI_BENCH_KERNELS_H

#include <stdbool.h>

#include "base/device/device.h"
#include "base/json.h"

struct bench_kernels {
    const struct device_ops *device;
    int repeat; /* steps; of each call the median is shown */
    bool json;  /* a line for each call, in place of two tables */
    void *context;
    void (*step)(void *context);                        /* gives a step to the device and waits for nothing */
    void (*settle)(void *context);                      /* what is to be done when it has been timed */
    void (*about)(const void *context, struct json *j); /* of the lines: what was timed */
};

/* Runs the steps and prints what they took. Ends the job where two steps are not the same calls. */
void bench_kernels(const struct bench_kernels *b);

#endif
