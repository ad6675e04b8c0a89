/* device.h: the memory of a device, the one thing topk and nets share. A row per device in devices.def;
 * the CPU row is device_cpu.c, the CUDA row comes with the plugin. */
#ifndef ST_BASE_DEVICE_H
#define ST_BASE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct device_ops {
    const char *name;    /* what --device takes */
    const char *summary; /* for `sparsetrain list` */

    /* Can this build on this machine use it? If not, *why says what is missing and how to get it. */
    bool (*available)(struct err *why);

    void *(*alloc)(size_t bytes, const char *what); /* not initialised; dies when there is none */
    void (*release)(void *block);
    void (*zero)(void *block, size_t bytes);
    void (*to_device)(void *device, const void *host, size_t bytes);
    void (*to_host)(void *host, const void *device, size_t bytes);
    void (*sync)(void); /* all work given to the device is done */
};

extern const struct device_ops *const devices[]; /* every row, NULL-terminated */

/* `count` floats of the device in fresh host memory (mem_free it). */
float *device_copy_to_host(const struct device_ops *device, const float *data, size_t count, const char *what);

/* The row with this name, or NULL. */
const struct device_ops *device_find(const char *name);

#endif
