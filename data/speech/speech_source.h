/* speech_source.h: recorded speech on its way into memory: which files there are and what is said in them, then each
 * file's samples to its features. What every set of speech refuses is refused here.
 *
 *        struct speech_source s = {0};
 *        if (!speech_source_add(&s, split, file, transcript, bytes, list, line, &e)) ...      // each; split by split
 *        d->bytes = speech_source_memory(&s);
 *
 *        struct speech_filling f;
 *        if (speech_filling_open(&f, &s, memory, room, &e))
 *            for (each entry i) if (!speech_fill(&f, i, bytes, count, SPEECH_LOW_FIRST, &e)) ... // in any order
 *        speech_filling_close(&f, good ? memory : NULL);                                        // or to nothing
 *        speech_source_close(&s);
 */
#ifndef ST_DATA_SPEECH_SOURCE_H
#define ST_DATA_SPEECH_SOURCE_H

#include "data/speech/speech_layout.h"

/* A file that is larger than an hour of samples is not read. */
enum { SPEECH_BYTES_MAX = 2 * 16000 * 3600 };

/* Which of the TEXT_SPLITS keeps its samples. */
enum { SPEECH_TRAIN = 0 };

struct speech_entry {
    char *file;    /* its name in messages, by which it is opened where it is one of its own */
    uint64_t size; /* bytes */
    size_t label, labels, line;
    const char *list; /* where it is named, at that line; the caller's */
};

struct speech_source {
    struct speech_entry *entry; /* [all], split by split */
    uint8_t *label;             /* of all */
    struct speech_counts counts;
    size_t all, room, label_room, frames; /* frames: the most there can be, by the sizes */
};

/* Adds a file with what is said in it; file: fresh memory, the source's from here on. Entries of one split come after
 * each other, in the order of TEXT_SPLITS. False: there are no words, or characters that have no label; the file is too
 * large; *e names the list and the line. */
bool speech_source_add(struct speech_source *s, int split, char *file, uint64_t size, const char *list, size_t line,
                       const char *transcript, size_t bytes, struct err *e);
size_t speech_source_memory(const struct speech_source *s);
void speech_source_close(struct speech_source *s);

/* The size of a regular file that a list names. */
bool speech_size(const char *file, const char *list, size_t line, uint64_t *size, struct err *e);

/* The next line of a text that is not empty, without blanks at its end; at: where to go on, *number lines before. */
bool speech_line(const char **at, const char *end, const char **line, size_t *length, size_t *number);

/* All of a regular file, to fresh memory; more than `most` bytes: it is refused. NULL: *e says why. */
unsigned char *speech_read(const char *path, uint64_t most, size_t *bytes, struct err *e);

struct speech_filling {
    const struct speech_source *source;
    struct speech_room to;
    struct spectrogram *spectrogram;
    bool *filled;          /* [source->all] */
    size_t features, room; /* floats that are there, that there is room for */
    size_t kept;           /* samples of the training split that are there */
    int16_t *sample;
    size_t samples; /* that there is room for */
};

/* memory: [bytes]. False: the files grew since their memory was asked for. */
bool speech_filling_open(struct speech_filling *f, const struct speech_source *s, void *memory, size_t bytes,
                         struct err *e);

/* How the two bytes of a sample lie in a file. */
enum speech_order { SPEECH_LOW_FIRST, SPEECH_HIGH_FIRST };

/* The samples of an entry that is not filled yet. False: there are none, or not a whole number; they are too few for
 * the transcript. */
bool speech_fill(struct speech_filling *f, size_t entry, const unsigned char *bytes, size_t count,
                 enum speech_order order, struct err *e);

/* memory: seals it, all entries being filled; NULL: there was an error. */
void speech_filling_close(struct speech_filling *f, void *memory);

/* Steps that a network makes of so many frames by its first layer, which goes over time in strides of two. */
static inline size_t speech_steps(size_t frames) {
    return (frames - 1) / 2 + 1;
}

#endif
