/* device.c: the table of devices, see device.h. */
#include "base/device/device.h"

#include "base/mem.h"
#include "base/table.h"

#define DEVICE(name) extern const struct device_ops device_##name;
#include "base/device/devices.def"
#undef DEVICE
#define DEVICE(name) &device_##name,
const struct device_ops *const devices[] = {
#include "base/device/devices.def"
    NULL};

const struct device_ops *device_find(const char *name) {
    const struct device_ops *found;
    TABLE_FIND(devices, name, found);
    return found;
}

bool device_is_host(const struct device_ops *device) {
    return device == &device_cpu;
}

float *device_copy_to_host(const struct device_ops *device, const float *data, size_t count, const char *what) {
    float *host = mem_alloc(count, sizeof *host, what);
    device->to_host(host, data, count * sizeof *host);
    return host;
}
