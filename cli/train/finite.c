/* finite.c: see finite.h. */
#include "cli/train/finite.h"

#include <math.h>

static _Noreturn void not_finite_in(const struct run *r, size_t step, const char *what, size_t index) {
    const struct slice *slice = index < r->model.n ? arena_slice_at(&r->model.net->arena, index) : NULL;
    char kept[64] = "";
    if (r->saved.last != SIZE_MAX)
        snprintf(kept, sizeof kept, "; the last checkpoint, of step %zu, is kept", r->saved.last);
    if (slice)
        die_status(EXIT_NUMERIC, "step %zu, rank %d: %s in %s (entry %zu) is NaN or infinite%s; try a smaller --lr",
                   step, r->comm->rank, what, slice->name, index - slice->offset, kept);
    die_status(EXIT_NUMERIC, "step %zu, rank %d: %s is NaN or infinite%s; try a smaller --lr", step, r->comm->rank,
               what, kept);
}

void not_finite(const struct run *r, const char *what, size_t index) {
    not_finite_in(r, r->step + 1, what, index);
}

void not_finite_after(const struct run *r, const char *what, size_t index) {
    not_finite_in(r, r->step, what, index);
}

void loss_not_finite(const struct run *r) {
    const struct arena *a = &r->model.net->arena;
    if (device_is_host(a->device)) net_backward(r->model.net); /* others have it, see take_loss in train.c */
    float *grad = device_copy_to_host(a->device, a->grad, r->model.n, "a copy of the gradient");
    for (size_t i = 0; i < r->model.n; i++)
        if (!isfinite(grad[i])) not_finite(r, "the loss and the gradient", i);
    not_finite(r, "the loss", r->model.n);
}

void check_update(struct run *r, size_t step) {
    size_t bad = optimiser_settle(&r->model.optimiser);
    if (bad < r->model.n) not_finite_in(r, step, "the new value of a parameter", bad);
}
