/* speech_layout.c: see speech_layout.h. */
#include "data/speech/speech_layout.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "data/speech/spectrogram.h"
#include "data/speech/transcript.h"

struct header {
    uint64_t utterances[TEXT_SPLITS], labels, samples;
    uint32_t longest[TEXT_SPLITS]; /* frames */
    uint32_t most_labels;
    uint32_t checksum; /* CRC-32 of the utterances' numbers of labels and CRCs, then of all labels */
};
_Static_assert(sizeof(struct header) <= SPEECH_LAYOUT_HEADER, "the header fits before the utterances");
_Static_assert(sizeof(struct utterance) == 40, "an utterance has no padding");

enum { ALIGNED = 64 };

/* Where things are, in bytes from the beginning. */
struct places {
    size_t by_length, labels, samples, features;
};

static size_t utterances_of(const struct speech_counts *c) {
    size_t all = 0;
    for (int i = 0; i < TEXT_SPLITS; i++) all += c->utterances[i];
    return all;
}

static size_t aligned(size_t bytes) {
    return (bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
}

static struct places places_of(const struct speech_counts *c) {
    struct places p;
    const size_t all = utterances_of(c);
    p.by_length = SPEECH_LAYOUT_HEADER + all * sizeof(struct utterance);
    p.labels = p.by_length + all * sizeof(uint32_t);
    p.samples = aligned(p.labels + c->labels);
    p.features = aligned(p.samples + c->samples * sizeof(int16_t));
    return p;
}

size_t speech_layout_bytes(const struct speech_counts *c, size_t frames) {
    return places_of(c).features + frames * SPECTROGRAM_BINS * sizeof(float);
}

struct speech_room speech_layout_room(const struct speech_counts *c, void *memory) {
    const struct places p = places_of(c);
    char *at = memory;
    return (struct speech_room){.utterance = (struct utterance *)(void *)(at + SPEECH_LAYOUT_HEADER),
                                .label = (uint8_t *)at + p.labels,
                                .sample = (int16_t *)(void *)(at + p.samples),
                                .feature = (float *)(void *)(at + p.features)};
}

/* -- by length: pairs of frames and number as one, so that any sort gives the one order ---------------------------- */

static int compare(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void sort(const struct utterance *u, size_t count, uint32_t *by_length) {
    uint64_t *key = mem_alloc(count, sizeof *key, "the utterances by length");
    for (size_t i = 0; i < count; i++) key[i] = (uint64_t)u[i].frames << 32 | i;
    qsort(key, count, sizeof *key, compare);
    for (size_t i = 0; i < count; i++) by_length[i] = (uint32_t)key[i];
    mem_free(key);
}

/* -- seal and attach ----------------------------------------------------------------------------------------------- */

static uint32_t checksum_of(const struct utterance *u, size_t count, const uint8_t *label, size_t labels) {
    uint32_t crc = 0;
    for (size_t i = 0; i < count; i++) {
        const uint32_t words[2] = {u[i].labels, u[i].crc};
        crc = crc32_of(crc, words, sizeof words);
    }
    return crc32_of(crc, label, labels);
}

void speech_layout_seal(const struct speech_counts *c, void *memory) {
    struct header h;
    const struct places p = places_of(c);
    const struct speech_room room = speech_layout_room(c, memory);
    const struct utterance *u = room.utterance;
    uint32_t *by_length = (uint32_t *)(void *)((char *)memory + p.by_length);
    memset(&h, 0, sizeof h); /* the padding too: two loads give the same bytes */
    for (int i = 0; i < TEXT_SPLITS; u += c->utterances[i], by_length += c->utterances[i], i++) {
        h.utterances[i] = c->utterances[i];
        sort(u, c->utterances[i], by_length);
        if (c->utterances[i]) h.longest[i] = u[by_length[c->utterances[i] - 1]].frames;
        for (size_t j = 0; j < c->utterances[i]; j++)
            if (u[j].labels > h.most_labels) h.most_labels = u[j].labels;
    }
    h.labels = c->labels;
    h.samples = c->samples;
    h.checksum = checksum_of(room.utterance, utterances_of(c), room.label, c->labels);
    memcpy(memory, &h, sizeof h);
}

void speech_layout_attach(struct dataset *d, const void *memory) {
    struct header h;
    struct speech_counts c;
    memcpy(&h, memory, sizeof h);
    for (int i = 0; i < TEXT_SPLITS; i++) c.utterances[i] = (size_t)h.utterances[i];
    c.labels = (size_t)h.labels;
    c.samples = (size_t)h.samples;
    const struct places p = places_of(&c);
    const char *at = memory;
    const struct utterance *u = (const struct utterance *)(const void *)(at + SPEECH_LAYOUT_HEADER);
    const uint32_t *by_length = (const uint32_t *)(const void *)(at + p.by_length);
    struct speech_set *split[TEXT_SPLITS] = {&d->train_speech, &d->valid_speech, &d->test_speech};
    d->width = 0;
    for (int i = 0; i < TEXT_SPLITS; u += c.utterances[i], by_length += c.utterances[i], i++) {
        *split[i] = (struct speech_set){.utterance = u,
                                        .by_length = by_length,
                                        .count = c.utterances[i],
                                        .feature = (const float *)(const void *)(at + p.features),
                                        .label = (const uint8_t *)at + p.labels,
                                        .longest = h.longest[i]};
        if ((int)h.longest[i] > d->width) d->width = (int)h.longest[i];
    }
    d->train_speech.sample = (const int16_t *)(const void *)(at + p.samples);
    d->channels = 1;
    d->height = SPECTROGRAM_BINS;
    d->classes = TRANSCRIPT_LABELS;
    d->label_stride = (int)h.most_labels;
    d->checksum = h.checksum;
}
