/* image_batch.h: one image as the network gets it: cut, mirrored, normalised.
 *
 * Augmentation is that of He et al. (2016, Section 4.2): 4 pixels of padding on each side, a random 32 x 32 crop, a
 * horizontal flip half of the time. The padding is black, put around the image BEFORE normalisation, as torchvision's
 * RandomCrop(32, padding=4) on the picture does it: a padded pixel is (0 - mean) / std to the network, not 0. */
#ifndef ST_DATA_IMAGE_BATCH_H
#define ST_DATA_IMAGE_BATCH_H

#include "base/image.h"
#include "data/dataset.h"

enum { IMAGE_CHANNELS_MAX = 4 };

/* value[c][byte] = (byte / 255 - mean[c]) / std[c] */
struct image_normal {
    float value[IMAGE_CHANNELS_MAX][256];
};

void image_normal_open(const struct dataset *d, struct image_normal *t);

/* Bytes, or floats, of an image. */
size_t image_size(const struct dataset *d);

/* How a sample of an epoch is augmented; without `augment` it is left as it is. */
struct image_cut image_cut_of(bool augment, uint64_t seed, size_t epoch, uint32_t sample);

/* pixels: [channels][height][width] bytes, x: likewise floats. */
void image_out(const struct dataset *d, const struct image_normal *normal, const uint8_t *pixels, struct image_cut cut,
               float *x);

#endif
