/* device_option.h: what --device (auto, or the name of a row of base/device/devices.def) means here. Asked once a
 * process: the row that comes out has chosen which of the node's devices is this process's. */
#ifndef ST_CLI_DEVICE_OPTION_H
#define ST_CLI_DEVICE_OPTION_H

#include "base/device/device.h"
#include "comm/comm.h"

/* The i-th name that --device takes; NULL past the end. */
const char *device_option_name(size_t i);

/* What a verb wants of it: to hold gradients, or to run networks, which not every row does. */
enum device_use { DEVICE_EXCHANGES, DEVICE_TRAINS };

/* For a verb of one process. auto: the GPU where there is one that can be used, else the CPU. False: one line in *e,
 * which begins with `verb` ("bench net: "; "" for none). */
bool device_option_alone(const char *verb, const char *name, enum device_use use, const struct device_ops **device,
                         struct err *e);

/* For a job; collective. All ranks get the same row; auto where some nodes have a GPU and others none is refused,
 * naming one of these, since the whole job would fall back to the speed of the CPU without a word. To be called
 * before comm_set_ranks_per_node: the ranks of a real node share its devices. */
bool device_option_job(const char *verb, const char *name, enum device_use use, struct comm *c,
                       const struct device_ops **device, struct err *e);

/* What a log says of a device in use: "NVIDIA H200, driver ...; cuDNN 9.19": fresh memory. */
char *device_option_text(const struct device_ops *device);

#endif
