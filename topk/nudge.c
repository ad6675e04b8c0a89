/* nudge.c: see nudge.h. */
#include "topk/nudge.h"

const struct nudges reuse_nudges[] = {
    [REUSE_GUARDED] = {.before = {0}},
    [REUSE_PAPER] = {.before = {0}},
    [REUSE_CODE_VGG] = {.before = {4, 3, 1.03},
                        .local_few = {2, 3, 1 / 1.012},
                        .local_many = {5, 4, 1.012},
                        .global_few = {2, 3, 1 / 1.008},
                        .global_many = {4, 3, 1.008}},
    [REUSE_CODE_LSTM] = {.before = {3, 2, 1.03},
                         .local_few = {3, 4, 1 / 1.012},
                         .local_many = {5, 4, 1.012},
                         .global_few = {3, 4, 1 / 1.01},
                         .global_many = {5, 4, 1.008}},
    [REUSE_CODE_BERT] = {.local_few = {4, 5, 1 / 1.025},
                         .local_many = {5, 4, 1.025},
                         .global_few = {4, 5, 1 / 1.036},
                         .global_many = {5, 4, 1.025}},
};

uint32_t nudge_key(uint32_t key, double factor) {
    if (key == 0) return 0;
    double moved = (double)key_value(key) * factor;
    uint32_t next = moved < (double)key_value(KEY_INFINITE - 1) ? magnitude_key((float)moved) : KEY_INFINITE - 1;
    return next > 0 ? next : 1;
}

bool nudge_beyond(const struct nudge *many, size_t k, size_t count) {
    return many->part > 0 && (uint64_t)many->whole * count > (uint64_t)many->part * k;
}

static bool below(const struct nudge *few, size_t k, size_t count) {
    return (uint64_t)few->whole * count < (uint64_t)few->part * k;
}

uint32_t nudge_next(const struct nudge *few, const struct nudge *many, uint32_t key, size_t k, size_t count) {
    if (below(few, k, count)) return nudge_key(key, few->factor);
    return nudge_beyond(many, k, count) ? nudge_key(key, many->factor) : key;
}
