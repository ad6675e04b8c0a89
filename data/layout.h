/* layout.h: how a loaded image set lies in the memory that the caller brought. A header of LAYOUT_HEADER bytes (counts
 * and checksum, so that ranks that did not load can attach), then room for `capacity` samples: the images
 * [capacity][image], then the labels [capacity], aligned. The training samples come first, the test samples right after
 * them; capacity may be larger than both (the contents of an archive are known only as a bound before it is read). */
#ifndef ST_DATA_LAYOUT_H
#define ST_DATA_LAYOUT_H

#include "data/dataset.h"

enum { LAYOUT_HEADER = 64 };

/* Bytes for `capacity` samples of `image` bytes and one label each. */
size_t layout_bytes(size_t capacity, size_t image);

/* The reverse: samples that a dataset's memory has room for. */
size_t layout_capacity(const struct dataset *d);

uint8_t *layout_pixels(const struct dataset *d, void *memory);
int32_t *layout_labels(const struct dataset *d, void *memory);

/* Writes the header of a filled memory. */
void layout_seal(const struct dataset *d, void *memory, size_t train, size_t test);

/* The attach of every set that is laid out like this. */
void layout_attach(struct dataset *d, const void *memory);

#endif
