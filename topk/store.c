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
    if (device->store) return device->store();
    for (size_t i = 0; stores[i]; i++)
        if (strcmp(stores[i]->device, device->name) == 0) return stores[i];
    die("this build keeps no gradients on the device %s", device->name);
}

void store_open_bare(struct store *s, size_t n, const struct device_ops *device) {
    if (n < 1 || n > UINT32_MAX)
        die("a gradient of %zu entries cannot be stored: indices have 32 bits, so the length is 1 to %" PRIu32, n,
            UINT32_MAX);
    *s = (struct store){.n = n, .device = device, .ops = ops_for(device)};
    s->ops->open(s);
}

void store_open(struct store *s, size_t n, const struct device_ops *device) {
    store_open_bare(s, n, device);
    s->acc = device->alloc(n * sizeof *s->acc, "the residual of the gradient");
    device->zero(s->acc, n * sizeof *s->acc);
}

void store_close(struct store *s) {
    if (!s->ops) return;
    s->ops->close(s);
    s->device->release(s->acc);
    *s = (struct store){0};
}

void store_view_open(struct store *view, struct store *whole, size_t from, size_t count) {
    *view = (struct store){.device = whole->device, .ops = whole->ops, .state = whole->state};
    store_view_move(view, whole, from, count);
}

void store_view_move(struct store *view, struct store *whole, size_t from, size_t count) {
    if (from > whole->n || count > whole->n - from)
        die("a view of entries %zu to %zu of %zu", from, from + count, whole->n);
    view->acc = whole->acc ? whole->acc + from : NULL; /* of a bare store: bare */
    view->n = count;
    view->phases = whole->phases;
}

void store_view_close(struct store *view) {
    *view = (struct store){0};
}
