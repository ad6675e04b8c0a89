/* loader.h: from a dataset to the batches of one rank: sharding, shuffling, augmentation, normalisation, and
 * a thread that keeps all of this off the training step.
 *
 * Images. The order of the samples is the concatenation of one permutation per epoch, each a function of (seed, epoch)
 * alone. Global step s takes the next N * batch * P positions of it; rank r the r-th N * batch of them, in N batches,
 * one for each loader_next (N = accumulate, 1 where a step has one batch). So over the ranks every sample comes exactly
 * once an epoch, at any P, and an epoch may begin inside a step; N batches of B hold what one of N B would.
 * Augmentation is a function of (seed, epoch, sample), so it does not depend on P either.
 *
 * Text. The batch * P streams of all ranks cut the text into pieces that follow each other: with W = text_windows(...),
 * stream g = rank * batch + b reads the tokens [g W T, (g + 1) W T), a window of T = sequence after the other, its
 * labels are the same places plus 1. Part i of step s is window (N s + i) mod W; the streams begin anew with window 0
 * of every epoch (batch.begins), which may be inside a step, so that states are carried from window to window and never
 * from one place of the text to another. The fewer than batch * P * T words that are left at the end of the text are
 * not trained on.
 *
 * Text in windows at random places (TEXT_RANDOM), for models that carry no state from one to the next. The windows of a
 * run are numbered: window b of part i of step s is number (N s + i) batch P + g, g = rank * batch + b, and where it
 * begins is a function of (seed, number) alone, uniform over all places at which it has T labels. So the windows of a
 * step are the same at any P, and for any N, as long as N batch P is; a resumed run goes on with those that come next.
 * An epoch is a count of words alone here: some come twice in one, some not at all.
 *
 * Where the batch over all ranks changes in the middle of a run (setup.leg), the order goes on where it is: with step S
 * the first of the new size, and Q samples or windows taken before it, those of step s begin at Q + (s - S) N batch P.
 * So each sample still comes once an epoch. With the same batch over all ranks any P goes on by itself, S = Q = 0. The
 * streams of a text are cut otherwise then, which is to be at the beginning of an epoch: step S has window 0.
 *
 * Pairs (of parts of a text, masked). Sequences come in the order of images, by the same permutations; what is masked
 * of one is a function of (seed, epoch, sequence), see masked.h.
 *
 * Speech. An epoch is the bins that speech_batch.h cuts the utterances into, in an order that is a permutation by
 * (seed, epoch), one bin a step. So each utterance comes once an epoch at any P, an epoch begins with a step, and the
 * utterances of a step are the same at any P, and for any N, as long as N batch P is. With a leg the bins are others,
 * so that it begins where an epoch does, and Q is a whole number of epochs, in utterances. Augmentation is a function
 * of (seed, epoch, utterance).
 *
 *        struct loader *l = loader_open(&setup);
 *        const struct batch *b = loader_next(l);      // valid until the next call
 *        loader_close(l);
 */
#ifndef ST_DATA_LOADER_H
#define ST_DATA_LOADER_H

#include "base/image.h"
#include "data/dataset.h"

/* Images either as floats or, with loader_setup.bytes, as they are in the dataset, with what is to be done to them. */
struct batch {
    float *x;                 /* [batch][channels][height][width], normalised; NULL with bytes; speech:
                               * [batch][1][SPECTROGRAM_BINS][frames], 0 behind the end of each utterance */
    struct image_bytes bytes; /* zero without */
    int32_t *token;           /* text: [sequence][batch], step of time by step of time; of windows at random places
                               * [batch][sequence], window by window; pairs: [batch][length]; else NULL */
    int32_t *y;               /* [batch]; text: as token; pairs: [batch][predictions] pieces at `chosen`, or -1; speech:
                               * [batch][label_stride] labels of each transcript (transcript.h), then -1 */
    uint32_t *index;          /* [batch] sample numbers, for tests and the contact sheet; text: NULL */
    /* pairs, else NULL; masked.h says more */
    int32_t *type;    /* [batch][length] 0: the first part; 1: the second */
    int32_t *lengths; /* [batch] pieces of each sequence, those of padding not counted; speech: frames of each */
    int32_t *chosen;  /* [batch][predictions] the places that are to be predicted */
    int32_t *next;    /* [batch] 0: the second part follows the first; 1: it does not */
    /* speech, else NULL and 0; speech_batch.h says more */
    int32_t *label_count; /* [batch] labels of each transcript */
    int label_stride;     /* of the longest transcript of the dataset */
    int frames;           /* of the longest utterance of this batch; 1 where it has none */
    int count, of; /* utterances of this batch, its first places, behind which lengths and label_count are 0; of the
                    * step over all ranks */
    size_t step;
    int part;    /* of the step: 0 .. accumulate - 1 */
    bool begins; /* text: the streams begin anew here; never with windows at random places */
};

/* How a text is read. */
enum text_windows_kind { TEXT_STREAMS, TEXT_RANDOM };

struct loader_leg {
    size_t step;       /* S */
    uint64_t position; /* Q: samples or windows of all ranks before it; of streams nothing */
};

struct loader_setup {
    const struct dataset *data;
    int batch, rank, size;
    uint64_t seed;
    size_t first_step;              /* where a resumed run goes on */
    struct loader_leg leg;          /* since when batches have this size; at or before first_step */
    bool augment;                   /* images: pad 4, random crop, random horizontal flip; speech: speech_batch.h */
    bool bytes;                     /* the network cuts and normalises by itself (net_takes_bytes) */
    int sequence;                   /* text: words of a window, >= 1 */
    int accumulate;                 /* batches of a step; 0: one */
    enum text_windows_kind windows; /* text */
    int predictions;                /* pairs: the most of a sequence; 0: masked_most */
};

/* The widest that a batch can be, of any split: of speech, frames. */
int loader_width(const struct dataset *d, bool augment);

struct loader *loader_open(const struct loader_setup *setup);
const struct batch *loader_next(struct loader *l);
void loader_close(struct loader *l); /* stops the thread, wherever it is */

/* The pure parts, for tests and for whoever wants to know. */

/* permutation[0..n-1] of an epoch (Fisher-Yates on the (seed, RNG_SHUFFLE, epoch) sequence). */
void loader_permutation(uint64_t seed, size_t epoch, uint32_t n, uint32_t *permutation);

/* One sample to normalised floats [channels][height][width]; augmented as in `epoch` when augment is set. */
void loader_sample(const struct dataset *d, const struct image_set *set, uint32_t sample, bool augment, uint64_t seed,
                   size_t epoch, float *x);

/* Rank r's share of an evaluation over `count` samples: [*from, *to), contiguous, sizes differ by at most one. */
void loader_share(size_t count, int rank, int size, size_t *from, size_t *to);

/* -- text: pure as well -- */

/* Windows of an epoch: floor((tokens - 1) / (streams * sequence)), 0 where the text is too short. streams: of all
 * ranks. */
size_t text_windows(size_t tokens, size_t streams, int sequence);
/* The least number of tokens that gives one window. */
size_t text_least(size_t streams, int sequence);

/* An evaluation scores every word of a text but the first, once: the M = tokens - 1 predictions are cut into `streams`
 * pieces as by loader_share, the longer ones first, so that what a window lacks at the end of its streams are rows at
 * its end. Which rank reads how many of them is the caller's; by that alone no score changes. Windows of the longest:
 */
size_t text_eval_windows(size_t tokens, size_t streams, int sequence);
/* Window `window` of the streams [first, first + batch), which all are among the `streams` or none of them, to token, y
 * [sequence][batch] (rows that do not count: token 0 and label 0). Returns how many rows count: the first ones; 0 when
 * these streams have ended. */
int text_eval_fill(const struct text_set *t, size_t first, size_t streams, int batch, int sequence, size_t window,
                   int32_t *token, int32_t *y);

/* -- text in windows that do not follow each other: all of one are [sequence], of several [windows][sequence] -- */

/* Has a text so many places for a window, 0 where it is too short: tokens - sequence. */
size_t text_places(size_t tokens, int sequence);
/* Where training window `number` begins; a window of a sampled evaluation, which has random numbers of its own. The
 * text has places. */
size_t text_random_place(size_t tokens, int sequence, uint64_t seed, uint64_t number);
size_t text_sampled_place(size_t tokens, int sequence, uint64_t seed, uint64_t number);
/* The `sequence` words from a place on, and behind each the one that follows it. */
void text_window_at(const struct text_set *t, size_t place, int sequence, int32_t *token, int32_t *y);

/* An evaluation in windows one after the other: the M = tokens - 1 predictions are cut into windows of `sequence`, the
 * last of which may be shorter; each word but the first is scored once, from those before it in its window. */
size_t text_sequential_windows(size_t tokens, int sequence);
/* Windows [from, to), at most `batch` of them, all that a rank has left say, to token, y [batch][sequence]; rows that
 * do not count have token 0 and label 0. Returns how many rows count: the first ones; 0 when there is no such window.
 */
int text_sequential_fill(const struct text_set *t, size_t from, size_t to, int batch, int sequence, int32_t *token,
                         int32_t *y);

/* A batch of test samples [from, from + valid) (not augmented); the places after `valid` repeat the last sample. */
void loader_fill_test(const struct dataset *d, size_t from, int valid, int batch, float *x, int32_t *y);

#endif
