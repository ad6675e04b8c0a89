/* store.c: opening the gradient store on a device, and the table of stores, see store.h. */
#include "topk/store.h"

#include <inttypes.h>

#include "base/table.h"

#define STORE(name) extern const struct store_ops store_##name;
#include "topk/stores.def"
#undef STORE
#define STORE(name) &store_##name,
const struct store_ops *const stores[] = {
#include "topk/stores.def"
    NULL};

static const struct store_ops *ops_for(const struct device_ops *device) {
    for (size_t i = 0; stores[i]; i++)
        if (strcmp(stores[i]->device, device->name) == 0) return stores[i];
    die("this build keeps no gradients on the device %s", device->name);
}

void store_open(struct store *s, size_t n, const struct device_ops *device) {
    if (n < 1 || n > UINT32_MAX)
        die("a gradient of %zu entries cannot be stored: indices have 32 bits, so the length is 1 to %" PRIu32, n,
            UINT32_MAX);
    *s = (struct store){.n = n, .device = device, .ops = ops_for(device)};
    s->acc = device->alloc(n * sizeof *s->acc, "the residual of the gradient");
    device->zero(s->acc, n * sizeof *s->acc);
    s->ops->open(s);
}

void store_close(struct store *s) {
    if (!s->ops) return;
    s->ops->close(s);
    s->device->release(s->acc);
    *s = (struct store){0};
}
