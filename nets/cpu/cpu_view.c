/* cpu_view.c: see cpu_view.h. */
#include "nets/cpu/cpu_view.h"

enum { LANES_MAX = 16 };

struct cpu_view cpu_view_of(const struct tensor *t) {
    struct cpu_view v = {
        .images = (size_t)t->n, .channels = (size_t)t->c, .height = (size_t)t->h, .width = (size_t)t->w, .lanes = 1};
    v.positions = v.height * v.width;
    if (t->layout == CPU_NHWC) {
        while (v.lanes < LANES_MAX && v.channels % (2 * v.lanes) == 0) v.lanes *= 2;
        v.blocks = v.channels / v.lanes;
        v.block = v.lanes;
        v.step = v.channels;
    } else {
        if (t->layout == CPU_NCHW8C) v.lanes = 8;
        if (t->layout == CPU_NCHW16C) v.lanes = 16;
        v.blocks = (v.channels + v.lanes - 1) / v.lanes;
        v.block = v.positions * v.lanes;
        v.step = v.lanes;
    }
    v.image = v.blocks * v.lanes * v.positions;
    return v;
}

size_t cpu_view_floats(const struct cpu_view *v) {
    return v->images * v->image;
}
