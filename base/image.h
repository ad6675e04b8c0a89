/* image.h: how images go from a dataset to a network while they are still bytes; what data and nets share. */
#ifndef ST_BASE_IMAGE_H
#define ST_BASE_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

/* How a sample is cut: output pixel (y, x) = input (y + down, x + right), black where that lies outside; mirrored from
 * left to right afterwards when flip. */
struct image_cut {
    int32_t down, right; /* pixels */
    int32_t flip;        /* 0 or 1 */
};

/* A batch before augmentation and normalisation:
 * value (i, c, y, x) = table[c][pixel (i, c, cut(y, x))], black = byte 0. */
struct image_bytes {
    const uint8_t *pixels;       /* host, [batch][channels][height][width] */
    const struct image_cut *cut; /* host, [batch] */
    const float *table;          /* host, [channels][256]: the normalised value of a byte; the same in every batch */
};

#endif
