/* cuda_plugin.c: what libsparsetrain_cuda.so gives to who loads it: the GPU as a device, with the gradient store and
 * the networks that serve it. */
#include "base/cuda/cuda_host.h"
#include "nets/backend.h"
#include "topk/store.h"

extern const struct device_ops cuda_device;
extern const struct store_ops store_cuda;
extern const struct backend_ops backend_cudnn;

static const struct store_ops *store(void) {
    return &store_cuda;
}
static const struct backend_ops *backend(void) {
    return &backend_cudnn;
}

/* Where there are networks, a GPU that answers is of no use without the library that runs them on it. */
static bool available(struct err *why) {
    return cuda_device.available(why) && (!cuda_host_has_networks() || backend_cudnn.serves(PRECISION_F32, why));
}

plugin_entry sparsetrain_plugin;
const struct plugin *sparsetrain_plugin(const struct plugin_host *host) {
    static struct device_ops device;
    static const struct plugin plugin = {PLUGIN_INTERFACE, ST_VERSION, &device};
    cuda_host_set(host);
    device = cuda_device;
    device.available = available;
    device.store = store;
    device.backend = backend;
    return &plugin;
}
