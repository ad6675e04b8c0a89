/* layout.c: see layout.h. */
#include "data/layout.h"

#include <string.h>

#include "base/hash.h"

struct header {
    uint64_t train, test; /* samples */
    uint32_t checksum;    /* CRC-32 of all images, then all labels: bytes where there are at most 256 classes */
};
_Static_assert(sizeof(struct header) <= LAYOUT_HEADER, "the header fits before the images");

static size_t image_bytes(const struct dataset *d) {
    return (size_t)d->channels * (size_t)d->height * (size_t)d->width;
}

/* Labels begin at a multiple of their size. */
static size_t labels_at(size_t capacity, size_t image) {
    const size_t end = LAYOUT_HEADER + capacity * image;
    return (end + sizeof(int32_t) - 1) / sizeof(int32_t) * sizeof(int32_t);
}

size_t layout_bytes(size_t capacity, size_t image) {
    return labels_at(capacity, image) + capacity * sizeof(int32_t);
}

/* The bytes left out before the labels are fewer than a label has. */
size_t layout_capacity(const struct dataset *d) {
    return (d->bytes - LAYOUT_HEADER) / (image_bytes(d) + sizeof(int32_t));
}

uint8_t *layout_pixels(const struct dataset *d, void *memory) {
    (void)d;
    return (uint8_t *)memory + LAYOUT_HEADER;
}

int32_t *layout_labels(const struct dataset *d, void *memory) {
    return (int32_t *)(void *)((uint8_t *)memory + labels_at(layout_capacity(d), image_bytes(d)));
}

/* Labels as bytes where that holds all classes, as earlier versions kept them; else as four, the lowest first. */
static uint32_t labels_checksum(uint32_t so_far, const struct dataset *d, const int32_t *label, size_t count) {
    enum { LABELS = 1024 };
    uint8_t bytes[LABELS * sizeof *label];
    const size_t width = d->classes <= UINT8_MAX + 1 ? 1 : sizeof *label;
    for (size_t done = 0; done < count;) {
        const size_t part = count - done < LABELS ? count - done : LABELS;
        for (size_t i = 0; i < part * width; i++)
            bytes[i] = (uint8_t)((uint32_t)label[done + i / width] >> (8 * (i % width)));
        so_far = crc32_of(so_far, bytes, part * width);
        done += part;
    }
    return so_far;
}

void layout_seal(const struct dataset *d, void *memory, size_t train, size_t test) {
    struct header h;
    memset(&h, 0, sizeof h); /* the padding too: two loads give the same bytes */
    h.train = train;
    h.test = test;
    h.checksum = crc32_of(0, layout_pixels(d, memory), (train + test) * image_bytes(d));
    h.checksum = labels_checksum(h.checksum, d, layout_labels(d, memory), train + test);
    memcpy(memory, &h, sizeof h);
}

void layout_attach(struct dataset *d, const void *memory) {
    struct header h;
    memcpy(&h, memory, sizeof h);
    const uint8_t *pixels = (const uint8_t *)memory + LAYOUT_HEADER;
    const int32_t *labels =
        (const int32_t *)(const void *)((const uint8_t *)memory + labels_at(layout_capacity(d), image_bytes(d)));
    d->train = (struct image_set){pixels, labels, (size_t)h.train};
    d->test = (struct image_set){pixels + h.train * image_bytes(d), labels + h.train, (size_t)h.test};
    d->checksum = h.checksum;
}
