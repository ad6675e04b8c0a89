/* dataset.h: a dataset = one file + one row in datasets.def. Knows no MPI: the caller brings the memory (which
 * may be shared by the ranks of a node) and says who fills it.
 *
 *        struct dataset d;
 *        if (!dataset_find(&dataset_cifar10, "build/data", &d, &e)) ...     // looks, sizes, checks; reads little
 *        void *memory = ...d.bytes...;
 *        if (filler && !dataset_load(&d, memory, &info, &e)) ...            // fills it
 *        dataset_attach(&d, memory);                                        // every rank: pointers into it
 */
#ifndef ST_DATA_DATASET_H
#define ST_DATA_DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct dataset_ops;

/* One split: images as bytes, [count][channels][height][width], and labels [count]. */
struct image_set {
    const uint8_t *pixels;
    const int32_t *labels;
    size_t count;
};

/* One split of a text: the numbers of its words [count], each below the size of the vocabulary, in reading order. */
struct text_set {
    const int32_t *token;
    size_t count;
};

/* The words of a text by number, as they are written out: one a line. Where words are characters, those that a line
 * cannot show stand as \n and \r, and \ as \\. */
struct vocabulary {
    const char *lines; /* word 0, '\n', word 1, '\n', ...; bytes, not always UTF-8 */
    size_t bytes;
};
uint32_t vocabulary_crc(const struct vocabulary *v); /* CRC-32 of its lines */

/* A sequence [CLS] A [SEP] B [SEP]: where its two parts lie among the pieces of the split. */
struct pair {
    uint32_t a, b;               /* each part is the pieces from here on ... */
    uint16_t a_length, b_length; /* ... so many, at least 1; together with the three above at most `length` */
    uint8_t random;              /* 1: B is of another article; 0: it follows A */
    uint8_t alone;               /* 1: B is of another article because nothing follows A there */
    uint16_t zero;
};

/* One split of a text that is read in pairs of parts. */
struct pair_set {
    const uint16_t *piece; /* [pieces] */
    size_t pieces;
    const struct pair *pair; /* [count] */
    size_t count;
};

/* The numbers of a vocabulary's special pieces. */
struct special_pieces {
    int32_t pad, unk, cls, sep, mask;
};

/* An utterance: what was heard, and what was said. */
struct utterance {
    uint64_t feature; /* its log spectrogram is [SPECTROGRAM_BINS][frames] of the set's from here on (spectrogram.h) */
    uint64_t sample;  /* what it was made of is the set's samples from here on; of one to train on, else 0 */
    uint32_t samples; /* so many, at least 1, of one to train on; else 0 */
    uint32_t frames;  /* at least 1 */
    uint32_t label;   /* its transcript is the set's labels from here on ... */
    uint32_t labels;  /* ... so many, at least 1 (transcript.h) */
    uint32_t crc;     /* CRC-32 of its samples */
    uint32_t zero;    /* no padding: two loads give the same bytes */
};

/* One split of recorded speech. */
struct speech_set {
    const struct utterance *utterance; /* [count], in the order of its list */
    const uint32_t *by_length;         /* [count] their numbers, the shortest first, of equal ones the lower number */
    size_t count;
    const float *feature; /* of all splits, as are the labels */
    const uint8_t *label;
    const int16_t *sample; /* of the training split, NULL in others: to be changed at random (speech_batch.h) */
    uint32_t longest;      /* frames of the longest; 0: there is none */
};

enum data_kind { DATA_IMAGES, DATA_TEXT, DATA_PAIRS, DATA_SPEECH };

enum { DATASET_LENGTH = 128 };

struct dataset {
    const struct dataset_ops *ops;
    char source[512]; /* the directory or archive it comes from; "built in" */
    size_t bytes;     /* memory that load needs (an upper bound for archives, texts, speech) */
    int classes;      /* of images; of texts: words or pieces of the vocabulary, set by attach */
    /* of images */
    int channels, height, width;    /* of speech: 1, SPECTROGRAM_BINS, frames of the longest utterance, set by attach */
    const char *const *class_names; /* [classes] */
    float mean[4], std[4];          /* per channel, of pixels scaled to [0,1] */
    struct image_set train, test;   /* set by attach */
    /* of a text, set by attach; a text may come without one to test on, whose count is 0 */
    struct text_set train_text, valid_text, test_text;
    struct vocabulary vocabulary;
    /* of pairs; length is for the caller to change between find and load, the rest is set by attach */
    int length; /* pieces of the longest sequence, 128 if not changed */
    struct pair_set train_pairs, valid_pairs, test_pairs;
    struct special_pieces special;
    /* of speech, set by attach; there may be nothing to validate on, whose count is 0. classes: TRANSCRIPT_LABELS */
    struct speech_set train_speech, valid_speech, test_speech;
    int label_stride;  /* labels of the longest transcript */
    double entropy;    /* nats per word of the source, where it is known; else 0 */
    uint32_t checksum; /* set by attach: see dataset_checksum */
    uint64_t seed;     /* of synthetic sets */
};

struct dataset_ops {
    const char *name; /* what --data takes */
    const char *summary;
    const char *paper; /* or where it comes from */
    enum data_kind kind;
    const char *unit; /* what a text is a row of: "character"; NULL: words */
    bool built_in;    /* needs no files: `where` is "" unless the user asks for a size */
    bool (*find)(struct dataset *d, const char *where, struct err *e);
    bool (*load)(struct dataset *d, void *memory, struct err *e);
    void (*attach)(struct dataset *d, const void *memory);
};

extern const struct dataset_ops *const datasets[]; /* every row, NULL-terminated */
const char *dataset_name(size_t i);                /* the i-th row's, NULL past the end */

/* where: a directory (its usual sub-folder names are tried too) or an archive file. Missing, wrong-sized or
 * unreadable: false, with one line that names the file, what was expected, and how to get it. */
bool dataset_find(const struct dataset_ops *ops, const char *where, uint64_t seed, struct dataset *d, struct err *e);

/* A number for the folder or file that was found: the same where ranks of one machine found the same one, another where
 * they did not; of sets that are built in always the same. After find. */
uint64_t dataset_place(const struct dataset *d);

/* Fills `memory` [d->bytes]. The first bytes are a header with the counts and the checksum, so that attach
 * works on ranks that did not load. */
bool dataset_load(struct dataset *d, void *memory, struct err *e);
void dataset_attach(struct dataset *d, const void *memory);

/* CRC-32 of what was loaded (images and labels of both splits; tokens of all three, then the vocabulary; of speech the
 * samples that it was made of, which are the same everywhere, and the labels), for the log; after attach. */
uint32_t dataset_checksum(const struct dataset *d);

/* Texts and pairs, after attach: what a word (piece) of the validation split costs who knows nothing but how often each
 * stands in the training split: the cross-entropy [nats a word], with one added to each count, so that a word that is
 * new in the validation split costs something finite. */
double dataset_unigram_loss(const struct dataset *d);

#endif
