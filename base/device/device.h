/* device.h: the memory of a device, the one thing topk and nets share. A row per device in devices.def;
 * the CPU row is device_cpu.c; the CUDA row is device_cuda.c, which loads the plugin that has the rest of it; the row
 * for simulations, which keeps lists in place of arrays, is device_sparse.c.
 *
 * Work given to a device is done in the order in which it was given, by whichever thread; a call returns when host
 * memory may be used again, not when the device is done, unless it brings something to the host. */
#ifndef ST_BASE_DEVICE_H
#define ST_BASE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct store_ops;
struct backend_ops;

/* What a device has done for one call that the host has made. */
struct device_launch {
    const char *place, *pass; /* what they were set to when it was given */
    char call[48];            /* of a library, or a kernel */
    double seconds;           /* of the device, the way from one to the next included */
};

/* Of a device that works beside the host: times what it is given, call by call. One thread, no copies beside it. */
struct device_timer_ops {
    /* The device holds its work back until `end` (or for a short time), so that it need not wait for the host between
     * two calls. */
    void (*begin)(void);
    /* What comes next; both texts stay until the next begin. Costs nothing between end and begin. */
    void (*place)(const char *place, const char *pass);
    /* Waits; how many calls there were, in their order, until the next begin. *none: what a call would take that
     * does nothing [s]. */
    size_t (*end)(const struct device_launch **launch, double *none);
};

/* For a device that the library's caller uses in the same process: these functions follow the caller's current device
 * and streams. A stream is the device's own type, a cudaStream_t say. */
enum device_pointer { POINTER_OF_HOST = 1, POINTER_OF_DEVICE = 2 };
struct device_caller_ops {
    /* In place of choose: the device that is the thread's current one. False: this process has taken another. */
    bool (*choose_current)(struct err *why);
    /* Between the two the chosen one is current; leave gets what enter returned. */
    int (*enter)(void);
    void (*leave)(int before);
    /* What is given to the device from here on waits for all that is on the stream now. False: it is none of this
     * device, or is being recorded. */
    bool (*follow)(void *stream, struct err *why);
    /* What is put on the stream from here on waits for all that was given to the device. */
    bool (*lead)(void *stream, struct err *why);
    /* Who can follow it, as flags; neither: another device alone. */
    unsigned (*pointer)(const void *p);
};

struct device_ops {
    const char *name;    /* what --device takes */
    const char *summary; /* for `sparsetrain list` */
    /* Its pointers do not point to arrays (device_sparse.c): no network runs on it, they are never given to MPI, and
     * --device auto never chooses it. */
    bool no_arrays;

    /* Can this build on this machine use it? If not, *why says what is missing and how to get it. Everything below is
     * called after it has said yes, by device_find's caller or in device_choose. */
    bool (*available)(struct err *why);

    /* What results are labelled with: the name, unless a stand-in serves the device. What answers, with versions of
     * driver and libraries: "NVIDIA H200, CUDA 13.0, cuDNN 9.19". */
    const char *(*label)(void);
    const char *(*describe)(void);
    /* Which of the node's devices of this kind: called once, before anything else, by rank `local_rank` of
     * `local_size` on this node. Several ranks may share one. */
    void (*choose)(int local_rank, int local_size);

    void *(*alloc)(size_t bytes, const char *what); /* not initialised; dies when there is none */
    void (*release)(void *block);
    void (*zero)(void *block, size_t bytes);
    void (*copy)(void *to, const void *from, size_t bytes); /* inside the device; the two do not overlap */
    void (*to_device)(void *device, const void *host, size_t bytes);
    void (*to_host)(void *host, const void *device, size_t bytes);
    void (*sync)(void); /* all work given to the device is done */

    /* Copies that go on beside other work: begun when all work given before is done. What lies at both ends belongs to
     * the copy until wait(ticket), which is called once, in any order, from any thread; at most DEVICE_COPIES copies
     * are begun and not waited for. The host's end is best from mem_pinned_alloc. */
    uint32_t (*to_host_begin)(void *host, const void *device, size_t bytes);
    uint32_t (*to_device_begin)(void *device, const void *host, size_t bytes);
    void (*wait)(uint32_t ticket);

    const struct device_timer_ops *(*timer)(void);   /* or NULL */
    const struct device_caller_ops *(*caller)(void); /* or NULL: host memory, work that is done when a call returns */

    /* The rows of topk and nets that serve this device where they come with it in a plugin; NULL: compiled in. */
    const struct store_ops *(*store)(void);
    const struct backend_ops *(*backend)(void);
};

enum { DEVICE_COPIES = 64 };

extern const struct device_ops *const devices[]; /* every row, NULL-terminated */

/* `count` floats of the device in fresh host memory (mem_free it). */
float *device_copy_to_host(const struct device_ops *device, const float *data, size_t count, const char *what);

/* The row with this name, or NULL. */
const struct device_ops *device_find(const char *name);

/* Can the host follow this pointer, as far as the devices in use know? */
bool device_host_reads(const void *p);

/* Is its memory host memory, which any code may read? */
bool device_is_host(const struct device_ops *device);

#endif
