/* device_cuda.c: the CUDA row as the program knows it without the plugin: listed, and saying what is missing.
 * The rest of the row is the plugin's; nothing here may be called while available() is false. */
#include "base/device.h"

static bool available(struct err *why) {
    return err_set(why, "this build has no CUDA plugin (libsparsetrain_cuda.so); use --device cpu");
}

const struct device_ops device_cuda = {
    .name = "cuda",
    .summary = "an NVIDIA GPU, networks through cuDNN",
    .available = available,
};
