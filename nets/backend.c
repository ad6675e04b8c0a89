/* backend.c: the table of backends, see backend.h. */
#include "nets/backend.h"

#include <string.h>

const char *const net_precision_names[] = {"f32", "f32-winograd", "tf32", "bf16", NULL};

#define BACKEND(name) extern const struct backend_ops backend_##name;
#include "nets/backends.def"
#undef BACKEND
#define BACKEND(name) &backend_##name,
const struct backend_ops *const backends[] = {
#include "nets/backends.def"
    NULL};

const char *const layer_names[] = {
#define LAYER(KIND, name, onednn, cudnn) #name,
#include "nets/layers/layers.def"
};

const struct backend_ops *backend_for(const struct device_ops *device) {
    if (device->backend) return device->backend();
    for (size_t i = 0; backends[i]; i++)
        if (strcmp(backends[i]->device, device->name) == 0) return backends[i];
    return NULL;
}

const char *net_backend_version(const struct device_ops *device) {
    const struct backend_ops *backend = backend_for(device);
    return backend ? backend->version() : "none";
}

bool net_precision_parse(const char *name, enum precision *precision) {
    for (int i = 0; net_precision_names[i]; i++) {
        *precision = (enum precision)i;
        if (strcmp(net_precision_names[i], name) == 0) return true;
    }
    return false;
}
