/* optimiser.c: the table of optimisers and their memory, see optimiser.h. */
#include "nets/optimisers/optimiser.h"

#include <string.h>

#include "base/table.h"
#include "nets/backend.h"

#define OPTIMISER(name) extern const struct optimiser_ops optimiser_##name;
#include "nets/optimisers/optimisers.def"
#undef OPTIMISER
#define OPTIMISER(name) &optimiser_##name,
const struct optimiser_ops *const optimisers[] = {
#include "nets/optimisers/optimisers.def"
    NULL};

const char *optimiser_name(size_t i) {
    const struct optimiser_ops *row;
    TABLE_AT(optimisers, i, row);
    return row ? row->name : NULL;
}

static const struct optimiser_ops *for_device(const struct optimiser_ops *ops, const struct device_ops *device) {
    const struct backend_ops *backend = backend_for(device);
    if (!backend || !backend->optimisers) return ops;
    for (size_t i = 0; backend->optimisers[i]; i++)
        if (strcmp(backend->optimisers[i]->name, ops->name) == 0) return backend->optimisers[i];
    die("the optimiser %s does not run on device %s", ops->name, device->name);
}

size_t optimiser_moments(const struct optimiser_ops *ops) {
    size_t count = 0;
    while (count < OPTIMISER_MOMENTS_MAX && ops->moment[count].name) count++;
    return count;
}

void optimiser_open(struct optimiser *o, const struct optimiser_ops *ops, const struct arena *arena,
                    const struct optimiser_setup *setup) {
    const struct device_ops *device = arena->device;
    ops = for_device(ops, device);
    *o = (struct optimiser){.ops = ops,
                            .setup = *setup,
                            .device = device,
                            .slice = arena->slice,
                            .slices = arena->slices,
                            .n = arena->n,
                            .n_state = arena->n * optimiser_moments(ops),
                            .bad = arena->n};
    o->state =
        device->alloc(o->n_state * sizeof(float), "the optimiser's state (--model and --optimiser say how much)");
    device->zero(o->state, o->n_state * sizeof(float));
}

void optimiser_close(struct optimiser *o) {
    if (o->own) o->ops->close(o);
    if (o->device) o->device->release(o->state);
    *o = (struct optimiser){0};
}

void optimiser_step(struct optimiser *o, float *param, const float *grad, double lr) {
    const size_t bad = o->ops->step(o, param, grad, lr);
    if (bad < o->bad) o->bad = bad;
    o->steps++;
}

size_t optimiser_settle(struct optimiser *o) {
    const size_t bad = o->ops->settle ? o->ops->settle(o) : o->bad;
    o->bad = o->n;
    return bad;
}

void optimiser_set_steps(struct optimiser *o, uint64_t steps) {
    o->steps = steps;
}
