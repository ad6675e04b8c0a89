/* layout.c: see layout.h. */
#include "data/layout.h"

#include <string.h>

#include "base/hash.h"

struct header {
    uint64_t train, test; /* samples */
    uint32_t checksum;    /* CRC-32 of all images, then all labels */
};
_Static_assert(sizeof(struct header) <= LAYOUT_HEADER, "the header fits before the images");

static size_t image_bytes(const struct dataset *d) {
    return (size_t)d->channels * (size_t)d->height * (size_t)d->width;
}

size_t layout_bytes(size_t capacity, size_t image) {
    return LAYOUT_HEADER + capacity * (image + 1);
}

size_t layout_capacity(const struct dataset *d) {
    return (d->bytes - LAYOUT_HEADER) / (image_bytes(d) + 1);
}

uint8_t *layout_pixels(const struct dataset *d, void *memory) {
    (void)d;
    return (uint8_t *)memory + LAYOUT_HEADER;
}

uint8_t *layout_labels(const struct dataset *d, void *memory) {
    return (uint8_t *)memory + LAYOUT_HEADER + layout_capacity(d) * image_bytes(d);
}

void layout_seal(const struct dataset *d, void *memory, size_t train, size_t test) {
    struct header h;
    memset(&h, 0, sizeof h); /* the padding too: two loads give the same bytes */
    h.train = train;
    h.test = test;
    h.checksum = crc32_of(0, layout_pixels(d, memory), (train + test) * image_bytes(d));
    h.checksum = crc32_of(h.checksum, layout_labels(d, memory), train + test);
    memcpy(memory, &h, sizeof h);
}

void layout_attach(struct dataset *d, const void *memory) {
    struct header h;
    memcpy(&h, memory, sizeof h);
    const uint8_t *pixels = (const uint8_t *)memory + LAYOUT_HEADER;
    const uint8_t *labels = pixels + layout_capacity(d) * image_bytes(d);
    d->train = (struct image_set){pixels, labels, (size_t)h.train};
    d->test = (struct image_set){pixels + h.train * image_bytes(d), labels + h.train, (size_t)h.test};
    d->checksum = h.checksum;
}
