/* speech_batch.h: utterances to batches, for the loader and for evaluations; pure.
 *
 * To train, the utterances of a set, sorted by length, are cut into bins of those that one step takes over all ranks,
 * at most G = accumulate * batch * P: into ceil(count / G) of them, as evenly as can be, so that one of two sizes is
 * that of all, and which utterances are together goes by G alone. The utterances of a bin are dealt to the ranks in
 * turn, rank r of P has those at its places r, r + P, ..., so that every rank has long ones and short ones; the parts
 * of a step share a rank's as evenly as can be. So each utterance comes once in an epoch, and a batch, which has room
 * for `batch`, may hold fewer, one at the least where a bin has them: batch.count says how many of its places count
 * (the first ones), batch.of how many utterances the step has over all ranks.
 *
 * To train, recordings may be changed at random, each time anew, as the public code of gTop-k and Ok-Topk does: said
 * faster or slower by up to 15%, louder by -6 to 8 dB, both uniform. What becomes of an utterance in an epoch is a
 * function of seed, epoch and utterance. One that would be too short for its transcript keeps its tempo. */
#ifndef ST_DATA_SPEECH_BATCH_H
#define ST_DATA_SPEECH_BATCH_H

#include "data/loader.h"
#include "data/speech/spectrogram.h"

/* What batch.index has at a place that does not count. */
#define SPEECH_NONE UINT32_MAX

/* Room for a batch of utterances of up to `frames` frames, in page-locked memory where a device is in use. */
void speech_batch_open(struct batch *b, const struct dataset *d, size_t frames, int batch);
void speech_batch_close(struct batch *b);

/* Steps of an epoch. global: utterances of a step over all ranks at the most, G. */
size_t speech_bins(size_t count, size_t global);

/* What becomes of utterance `number` in an epoch, for one frame for each 160 tempo of its samples. */
struct spectrogram_change speech_change(const struct speech_set *set, uint64_t seed, size_t epoch, uint32_t number);
/* Frames of the longest utterance of a set, 0 where it is empty; as long as it can become where it is changed. */
size_t speech_longest(const struct speech_set *set, bool changed);

/* How the utterances are changed: by whom, in which epoch. spectrogram NULL: not at all. */
struct speech_changing {
    struct spectrogram *spectrogram;
    uint64_t seed;
    size_t epoch;
};

/* Utterance `number` as it goes to the network, and its features: x [SPECTROGRAM_BINS][stride], zeros behind its
 * frames. */
struct speech_input {
    const struct utterance *u;
    struct spectrogram_change change; /* 1 and 1 where it is not changed */
    size_t frames;
};
struct speech_input speech_input_of(const struct speech_set *set, const struct speech_changing *how, uint32_t number);
void speech_input_fill(const struct speech_set *set, const struct speech_changing *how, const struct speech_input *in,
                       size_t stride, float *x);

/* What of a bin rank `rank` of `size` has in part `part` of `parts`, to *b, which has room for its share. */
struct speech_place {
    size_t bin;
    int rank, size, part, parts, batch;
    struct speech_changing change;
};
void speech_batch_fill(const struct dataset *d, const struct speech_set *set, const struct speech_place *p,
                       struct batch *b);

/* To evaluate: utterances [from, to) by length, at most `batch` of them, what a rank has left of its loader_share say.
 * Returns how many there are: 0 when there are none left. */
int speech_batch_eval(const struct dataset *d, const struct speech_set *set, size_t from, size_t to, int batch,
                      struct batch *b);

#endif
