/* nets_layouts.h: tensors in the layouts of the backends, from and to canonical numbers ([n][c][h][w]). */
#ifndef ST_TESTS_NETS_LAYOUTS_H
#define ST_TESTS_NETS_LAYOUTS_H

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "nets/cpu/cpu_view.h"
#include "nets/cuda/cuda_index.h"
#include "tests/lib/nets_reference.h"
#include "tests/lib/test_device.h"

/* Where canonical element i of t lies in its layout, in elements. */
static inline size_t place(const struct device_ops *device, const struct tensor *t, size_t i) {
    if (t->layout == LAYOUT_CANONICAL || t->layout == LAYOUT_TOKENS) return i;
    size_t channels = (size_t)t->c, positions = (size_t)t->h * (size_t)t->w;
    size_t n = i / (channels * positions), c = i / positions % channels, position = i % positions;
    if (t->pitch) return n * (size_t)t->pitch + c;
    if (!device_is_host(device)) return (n * positions + position) * channels + c;
    struct cpu_view v = cpu_view_of(t);
    return n * v.image + c / v.lanes * v.block + position * v.step + c % v.lanes;
}

/* On a GPU a layout may also stand for an element type. */
static inline bool has_bf16(const struct device_ops *device, const struct tensor *t) {
    return !device_is_host(device) && t->layout == CUDA_NHWC_BF16;
}

static inline void put(const struct device_ops *device, const struct tensor *t, float *host, size_t i, double value) {
    size_t at = place(device, t, i);
    if (t->layout == LAYOUT_TOKENS) {
        const int32_t token = (int32_t)value;
        memcpy(host + at, &token, sizeof token);
        return;
    }
    if (!has_bf16(device, t)) {
        host[at] = (float)value;
        return;
    }
    struct bf16 half = bf16_of((float)value);
    memcpy((char *)host + at * sizeof half, &half, sizeof half);
}

static inline double get(const struct device_ops *device, const struct tensor *t, const float *host, size_t i) {
    size_t at = place(device, t, i);
    struct bf16 half;
    if (!has_bf16(device, t)) return host[at];
    memcpy(&half, (const char *)host + at * sizeof half, sizeof half);
    return bf16_value(half);
}

/* Device memory for t, filled from canonical numbers; padding 0, but NaN all over where from is NULL: nobody may rely
 * on what was there. */
static inline float *upload(const struct device_ops *device, const struct tensor *t, const double *from) {
    float *host = mem_zalloc(t->floats, sizeof *host, "a test's tensor");
    if (!from) memset(host, 0xff, t->floats * sizeof *host);
    for (size_t i = 0; from && i < ref_floats(t); i++) put(device, t, host, i, from[i]);
    float *made = device->alloc(t->floats * sizeof *host, "a test's tensor");
    device->to_device(made, host, t->floats * sizeof *host);
    mem_free(host);
    return made;
}

static inline float *upload_flat(const struct device_ops *device, size_t n, const double *from) {
    struct tensor t = {.n = (int)n, .c = 1, .h = 1, .w = 1, .floats = n};
    return n ? upload(device, &t, from) : NULL;
}

static inline struct tensor laid_out(const struct device_ops *device, struct tensor t, int layout) {
    t.layout = layout;
    t.floats = ref_floats(&t);
    if (has_bf16(device, &t)) t.floats = (t.floats + 1) / 2;
    if (!device_is_host(device)) return t;
    struct cpu_view view = cpu_view_of(&t);
    t.floats = cpu_view_floats(&view);
    return t;
}

#endif
