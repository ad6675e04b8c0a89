/* loader.c: see loader.h. A thread fills a ring of RING batches ahead of the caller; a batch depends on (seed, step,
 * rank, size) alone, so that the thread's timing does not change results. */
#include "data/loader.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "data/images/image_batch.h"
#include "data/pairs/masked.h"
#include "data/speech/speech_batch.h"

enum { RING = 4 };

/* A batch, and where its bytes are written. */
struct slot {
    struct batch batch;
    uint8_t *pixels;       /* [batch][channels][height][width] */
    struct image_cut *cut; /* [batch] */
};

struct loader {
    struct loader_setup setup;
    struct image_normal normal;
    uint32_t *permutation;           /* [n], the thread's, of `epoch` */
    struct spectrogram *spectrogram; /* the thread's, of speech that is changed; else NULL */
    size_t epoch;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct slot slot[RING];  /* batch i of this run lies in slot[i % RING] */
    size_t filled, released; /* batches: made so far, given back so far (under lock) */
    bool lent, stop;         /* the caller holds batch `released`; the thread shall end (under lock) */
};

int loader_width(const struct dataset *d, bool augment) {
    const size_t longest = d->ops->kind == DATA_SPEECH ? speech_longest(&d->train_speech, augment) : 0;
    return longest > (size_t)d->width ? (int)longest : d->width;
}

void loader_permutation(uint64_t seed, size_t epoch, uint32_t n, uint32_t *permutation) {
    struct rng r = rng_open(seed, RNG_SHUFFLE, epoch);
    for (uint32_t i = 0; i < n; i++) permutation[i] = i;
    for (uint32_t i = n; i > 1; i--) {
        uint32_t j = rng_below(&r, i), kept = permutation[i - 1];
        permutation[i - 1] = permutation[j];
        permutation[j] = kept;
    }
}

void loader_share(size_t count, int rank, int size, size_t *from, size_t *to) {
    size_t r = (size_t)rank, each = count / (size_t)size,
           longer = count % (size_t)size; /* the first `longer` get one more */
    *from = each * r + (r < longer ? r : longer);
    *to = *from + each + (r < longer ? 1 : 0);
}

static enum data_kind kind_of(const struct loader *l) {
    return l->setup.data->ops->kind;
}

/* Utterances of a step, over all ranks. */
static size_t global_of(const struct loader_setup *s) {
    return (size_t)s->accumulate * (size_t)s->batch * (size_t)s->size;
}

/* What is permuted in an epoch: images, pairs, or bins of utterances. */
static size_t samples_of(const struct loader *l) {
    const struct dataset *d = l->setup.data;
    switch (kind_of(l)) {
    case DATA_PAIRS:
        return d->train_pairs.count;
    case DATA_SPEECH:
        return speech_bins(d->train_speech.count, global_of(&l->setup));
    default:
        return d->train.count;
    }
}

/* -- the thread ---------------------------------------------------------------------------------------------------- */

/* Position q of the endless order: epoch floor(q / n), place q mod n of its permutation. */
static uint32_t sample_at(struct loader *l, uint64_t position, size_t *epoch) {
    size_t n = samples_of(l);
    *epoch = (size_t)(position / n);
    if (*epoch != l->epoch) {
        loader_permutation(l->setup.seed, *epoch, (uint32_t)n, l->permutation);
        l->epoch = *epoch;
    }
    return l->permutation[position % n];
}

static size_t windows_of(const struct loader_setup *s) {
    return text_windows(s->data->train_text.count, (size_t)s->batch * (size_t)s->size, s->sequence);
}

/* number: of the leg. token[t][b] = text[g W T + w T + t], g = rank * batch + b, w = number mod W; y[t][b] is the one
 * after it. */
static void fill_text(const struct loader_setup *s, size_t number, struct batch *b) {
    size_t windows = windows_of(s), batch = (size_t)s->batch, length = (size_t)s->sequence, window = number % windows;
    b->begins = window == 0;
    for (size_t i = 0; i < batch; i++) {
        size_t stream = (size_t)s->rank * batch + i;
        const int32_t *text = s->data->train_text.token + (stream * windows + window) * length;
        for (size_t t = 0; t < length; t++) {
            b->token[t * batch + i] = text[t];
            b->y[t * batch + i] = text[t + 1];
        }
    }
}

/* Window by window. */
static void fill_random(const struct loader_setup *s, size_t number, struct batch *b) {
    const size_t batch = (size_t)s->batch, length = (size_t)s->sequence;
    const uint64_t first = s->leg.position + ((uint64_t)number * (uint64_t)s->size + (uint64_t)s->rank) * batch;
    const struct text_set *text = &s->data->train_text;
    b->begins = false;
    for (size_t i = 0; i < batch; i++)
        text_window_at(text, text_random_place(text->count, s->sequence, s->seed, first + i), s->sequence,
                       b->token + i * length, b->y + i * length);
}

/* The position of the first sample of a batch. */
static uint64_t first_of(const struct loader_setup *s, const struct batch *b) {
    const uint64_t steps = b->step - s->leg.step;
    const uint64_t share = steps * (uint64_t)s->size + (uint64_t)s->rank; /* of all ranks' in all steps of the leg */
    return s->leg.position + (share * (uint64_t)s->accumulate + (uint64_t)b->part) * (uint64_t)s->batch;
}

static void fill_pairs(struct loader *l, struct batch *b) {
    const struct loader_setup *s = &l->setup;
    const struct masked to = {b->token, b->type, b->chosen, b->y, b->lengths, b->next};
    struct masking how = {.stream = RNG_MASK, .seed = s->seed, .most = s->predictions};
    const uint64_t first = first_of(s, b);
    for (int i = 0; i < s->batch; i++) {
        b->index[i] = sample_at(l, first + (uint64_t)i, &how.epoch);
        masked_fill(s->data, &s->data->train_pairs, &how, b->index[i], (size_t)i, &to);
    }
}

static void fill_speech(struct loader *l, struct batch *b) {
    const struct loader_setup *s = &l->setup;
    const struct speech_set *set = &s->data->train_speech;
    size_t epoch;
    const uint64_t before = s->leg.position / set->count * samples_of(l);
    const struct speech_place place = {.bin = sample_at(l, before + (b->step - s->leg.step), &epoch),
                                       .rank = s->rank,
                                       .size = s->size,
                                       .part = b->part,
                                       .parts = s->accumulate,
                                       .batch = s->batch,
                                       .change = {l->spectrogram, s->seed, epoch}};
    speech_batch_fill(s->data, set, &place, b);
}

static void fill_images(struct loader *l, struct slot *slot) {
    const struct loader_setup *s = &l->setup;
    const struct dataset *d = s->data;
    struct batch *b = &slot->batch;
    size_t image = image_size(d);
    const uint64_t first = first_of(s, b);
    for (int i = 0; i < s->batch; i++) {
        size_t epoch;
        uint32_t sample = sample_at(l, first + (uint64_t)i, &epoch);
        b->index[i] = sample;
        b->y[i] = d->train.labels[sample];
        const uint8_t *pixels = d->train.pixels + sample * image;
        const struct image_cut cut = image_cut_of(s->augment, s->seed, epoch, sample);
        if (s->bytes) {
            memcpy(slot->pixels + (size_t)i * image, pixels, image);
            slot->cut[i] = cut;
        } else {
            image_out(d, &l->normal, pixels, cut, b->x + (size_t)i * image);
        }
    }
}

/* Batch `next` of this run, counted from 0, in its slot. */
static void fill(struct loader *l, size_t next) {
    const size_t parts = (size_t)l->setup.accumulate;
    size_t number = l->setup.first_step * parts + next;
    struct slot *slot = &l->slot[next % RING];
    slot->batch.step = number / parts;
    slot->batch.part = (int)(number % parts);
    number -= l->setup.leg.step * parts;
    switch (kind_of(l)) {
    case DATA_TEXT:
        if (l->setup.windows == TEXT_RANDOM)
            fill_random(&l->setup, number, &slot->batch);
        else
            fill_text(&l->setup, number, &slot->batch);
        break;
    case DATA_PAIRS:
        fill_pairs(l, &slot->batch);
        break;
    case DATA_SPEECH:
        fill_speech(l, &slot->batch);
        break;
    case DATA_IMAGES:
        fill_images(l, slot);
        break;
    }
}

static void *work(void *argument) {
    struct loader *l = argument;
    pthread_mutex_lock(&l->lock);
    for (;;) {
        while (!l->stop && l->filled - l->released == RING) pthread_cond_wait(&l->changed, &l->lock);
        if (l->stop) break;
        size_t next = l->filled;
        pthread_mutex_unlock(&l->lock);
        fill(l, next);
        pthread_mutex_lock(&l->lock);
        l->filled++;
        pthread_cond_broadcast(&l->changed);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* Signals are the main thread's: they must interrupt its waiting, not this thread's. */
static void start_thread(struct loader *l) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(&l->thread, NULL, work, l);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0) die("cannot start the thread that prepares batches: %s", strerror(code));
}

/* All of these page-locked where a device is in use: the batches go there from here. */
static void slot_open_text(struct loader *l, struct slot *slot) {
    size_t rows = (size_t)l->setup.batch * (size_t)l->setup.sequence;
    slot->batch.token = mem_pinned_alloc(rows, sizeof *slot->batch.token, "the words of a batch");
    slot->batch.y = mem_pinned_alloc(rows, sizeof *slot->batch.y, "the labels of a batch");
}

static int32_t *numbers(size_t count) {
    return mem_pinned_alloc(count, sizeof(int32_t), "a batch of sequences");
}

static void slot_open_pairs(struct loader *l, struct slot *slot) {
    const size_t batch = (size_t)l->setup.batch, pieces = batch * (size_t)l->setup.data->length;
    const size_t predictions = batch * (size_t)l->setup.predictions;
    struct batch *b = &slot->batch;
    b->token = numbers(pieces);
    b->type = numbers(pieces);
    b->chosen = numbers(predictions);
    b->y = numbers(predictions);
    b->lengths = numbers(batch);
    b->next = numbers(batch);
    b->index = mem_alloc(batch, sizeof *b->index, "the sample numbers of a batch");
}

static void slot_open_images(struct loader *l, struct slot *slot) {
    size_t batch = (size_t)l->setup.batch, image = image_size(l->setup.data);
    struct batch *b = &slot->batch;
    b->y = mem_pinned_alloc(batch, sizeof *b->y, "the labels of a batch");
    b->index = mem_alloc(batch, sizeof *b->index, "the sample numbers of a batch");
    if (!l->setup.bytes) {
        b->x = mem_pinned_alloc(batch * image, sizeof *b->x, "a batch of images");
        return;
    }
    slot->pixels = mem_pinned_alloc(batch * image, 1, "a batch of images");
    slot->cut = mem_pinned_alloc(batch, sizeof *slot->cut, "the cuts of a batch");
    b->bytes = (struct image_bytes){slot->pixels, slot->cut, l->normal.value[0]};
}

static void slot_close(struct slot *slot) {
    mem_pinned_free(slot->batch.x);
    mem_pinned_free(slot->batch.token);
    mem_pinned_free(slot->batch.y);
    mem_pinned_free(slot->batch.type);
    mem_pinned_free(slot->batch.chosen);
    mem_pinned_free(slot->batch.lengths);
    mem_pinned_free(slot->batch.next);
    mem_pinned_free(slot->batch.label_count);
    mem_free(slot->batch.index);
    mem_pinned_free(slot->pixels);
    mem_pinned_free(slot->cut);
}

static void order_open(struct loader *l) {
    const size_t count = samples_of(l);
    if (count == 0 || count > UINT32_MAX) die("loader_open: %zu training samples", count);
    l->epoch = SIZE_MAX; /* none yet */
    l->permutation = mem_alloc(count, sizeof *l->permutation, "the order of an epoch");
}

static void pairs_open(struct loader *l) {
    if (l->setup.predictions < 1) l->setup.predictions = masked_most(l->setup.data->length);
    order_open(l);
    for (int i = 0; i < RING; i++) slot_open_pairs(l, &l->slot[i]);
}

static void speech_open(struct loader *l) {
    const struct dataset *d = l->setup.data;
    order_open(l);
    if (l->setup.leg.position % d->train_speech.count != 0)
        die("loader_open: a leg from utterance %llu on, inside an epoch", (unsigned long long)l->setup.leg.position);
    const size_t longest = speech_longest(&d->train_speech, l->setup.augment);
    if (l->setup.augment) l->spectrogram = spectrogram_open();
    for (int i = 0; i < RING; i++) speech_batch_open(&l->slot[i].batch, d, longest, l->setup.batch);
}

static void images_open(struct loader *l) {
    const struct dataset *d = l->setup.data;
    if (d->channels > IMAGE_CHANNELS_MAX) die("loader_open: %d channels, at most %d", d->channels, IMAGE_CHANNELS_MAX);
    order_open(l);
    image_normal_open(d, &l->normal);
    for (int i = 0; i < RING; i++) slot_open_images(l, &l->slot[i]);
}

static void text_open(struct loader *l) {
    const struct loader_setup *s = &l->setup;
    const size_t words = s->data->train_text.count;
    const bool random = s->windows == TEXT_RANDOM;
    if ((random ? text_places(words, s->sequence) : windows_of(s)) == 0)
        die("loader_open: a text of %zu words, too short; %s says what is needed", words,
            random ? "text_places" : "text_least");
    for (int i = 0; i < RING; i++) slot_open_text(l, &l->slot[i]);
}

struct loader *loader_open(const struct loader_setup *setup) {
    if (setup->batch < 1 || setup->size < 1 || setup->rank < 0 || setup->rank >= setup->size)
        die("loader_open: batch %d, rank %d of %d", setup->batch, setup->rank, setup->size);
    if (setup->leg.step > setup->first_step)
        die("loader_open: step %zu is before the leg from step %zu on", setup->first_step, setup->leg.step);
    struct loader *l = mem_zalloc(1, sizeof *l, "the loader");
    l->setup = *setup;
    if (setup->accumulate < 1) l->setup.accumulate = 1;
    switch (kind_of(l)) {
    case DATA_TEXT:
        text_open(l);
        break;
    case DATA_PAIRS:
        pairs_open(l);
        break;
    case DATA_SPEECH:
        speech_open(l);
        break;
    case DATA_IMAGES:
        images_open(l);
        break;
    }
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->changed, NULL);
    start_thread(l);
    return l;
}

const struct batch *loader_next(struct loader *l) {
    pthread_mutex_lock(&l->lock);
    if (l->lent) l->released++;
    l->lent = true;
    pthread_cond_broadcast(&l->changed);
    while (l->filled == l->released) pthread_cond_wait(&l->changed, &l->lock);
    const struct batch *b = &l->slot[l->released % RING].batch;
    pthread_mutex_unlock(&l->lock);
    return b;
}

void loader_close(struct loader *l) {
    if (!l) return;
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    pthread_join(l->thread, NULL);
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->lock);
    for (int i = 0; i < RING; i++) slot_close(&l->slot[i]);
    spectrogram_close(l->spectrogram);
    mem_free(l->permutation);
    mem_free(l);
}
