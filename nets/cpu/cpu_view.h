/* cpu_view.h: the layouts in which a CPU keeps activations, seen as one: images of blocks of positions of lanes.
 *
 *      element (n, channel, position) is at  n * image + channel / lanes * block + position * step + channel % lanes
 *
 *      layout    lanes             block         step
 *      NCHW      1                 h w           1
 *      NCHW8C    8                 8 h w         8      (AVX2)
 *      NCHW16C   16                16 h w        16     (AVX-512)
 *      NHWC      16, 8, 4, 2 or 1  lanes         c
 *
 * Blocked layouts round the channels up to a multiple of the lanes; the lanes beyond c always hold 0. */
#ifndef ST_NETS_CPU_VIEW_H
#define ST_NETS_CPU_VIEW_H

#include "nets/backend.h"

enum cpu_layout { CPU_NCHW = LAYOUT_CANONICAL, CPU_NCHW8C, CPU_NCHW16C, CPU_NHWC };

struct cpu_view {
    size_t images, channels, height, width, positions; /* positions = height * width */
    size_t lanes, blocks;                              /* blocks * lanes >= channels */
    size_t image, block, step;                         /* floats from one to the next */
};

/* t->layout is one of enum cpu_layout. */
struct cpu_view cpu_view_of(const struct tensor *t);

/* Where an element lies. */
static inline size_t cpu_view_place(const struct cpu_view *v, size_t image, size_t channel, size_t position) {
    return image * v->image + channel / v->lanes * v->block + position * v->step + channel % v->lanes;
}

/* Floats of memory, padding included. */
size_t cpu_view_floats(const struct cpu_view *v);

#endif
