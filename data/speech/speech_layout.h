/* speech_layout.h: how recorded speech lies in the memory that the caller brought. A header of SPEECH_LAYOUT_HEADER
 * bytes (counts and checksum, so that ranks that did not load can attach), then the utterances of train, valid and
 * test, their numbers by length, the labels, the samples of train, from which its features are made anew where they are
 * changed at random, and, aligned, the features: four bytes for each of 161 frequencies, 100 times a second, twice what
 * the samples take. */
#ifndef ST_DATA_SPEECH_LAYOUT_H
#define ST_DATA_SPEECH_LAYOUT_H

#include "data/dataset.h"
#include "data/text/text_splits.h"

enum { SPEECH_LAYOUT_HEADER = 128 };

struct speech_counts {
    size_t utterances[TEXT_SPLITS], labels; /* labels: of all */
    size_t samples;                         /* room for those of train; there may be fewer */
};

/* Bytes of so many utterances, labels and samples, of so many frames in all. */
size_t speech_layout_bytes(const struct speech_counts *c, size_t frames);

/* Where they are to be put: the utterances of one split after the other. */
struct speech_room {
    struct utterance *utterance;
    uint8_t *label;
    int16_t *sample;
    float *feature;
};
struct speech_room speech_layout_room(const struct speech_counts *c, void *memory);

/* Sorts by length and writes the header; everything else is there. */
void speech_layout_seal(const struct speech_counts *c, void *memory);

/* The attach of every set of speech. */
void speech_layout_attach(struct dataset *d, const void *memory);

#endif
