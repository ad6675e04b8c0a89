/* speech_batch.c: see speech_batch.h. */
#include "data/speech/speech_batch.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "data/speech/speech_source.h"
#include "data/speech/transcript.h"

/* Of tempo, and of loudness in dB. */
#define TEMPO_LEAST 0.85
#define TEMPO_MOST 1.15
#define LOUDNESS_LEAST (-6)
#define LOUDNESS_MOST 8

static int32_t *numbers(size_t count) {
    return mem_pinned_alloc(count, sizeof(int32_t), "the labels of a batch");
}

void speech_batch_open(struct batch *b, const struct dataset *d, size_t frames, int batch) {
    const size_t places = (size_t)batch, room = frames ? frames : 1;
    b->x = mem_pinned_alloc(places * SPECTROGRAM_BINS * room, sizeof *b->x, "a batch of utterances");
    b->y = numbers(places * (size_t)d->label_stride);
    b->lengths = numbers(places);
    b->label_count = numbers(places);
    b->index = mem_alloc(places, sizeof *b->index, "the sample numbers of a batch");
}

void speech_batch_close(struct batch *b) {
    mem_pinned_free(b->x);
    mem_pinned_free(b->y);
    mem_pinned_free(b->lengths);
    mem_pinned_free(b->label_count);
    mem_free(b->index);
}

size_t speech_bins(size_t count, size_t global) {
    return (count + global - 1) / global;
}

/* -- changes at random --------------------------------------------------------------------------------------------- */

static double between(struct rng *r, double least, double most) {
    return least + (most - least) * rng_uniform(r);
}

struct spectrogram_change speech_change(const struct speech_set *set, uint64_t seed, size_t epoch, uint32_t number) {
    const struct utterance *u = &set->utterance[number];
    struct rng r = rng_open(seed, RNG_AUGMENT, (uint64_t)epoch << 32 | number);
    struct spectrogram_change change;
    change.tempo = between(&r, TEMPO_LEAST, TEMPO_MOST);
    change.gain = pow(10, between(&r, LOUDNESS_LEAST, LOUDNESS_MOST) / 20);
    const size_t steps = speech_steps(spectrogram_frames_at(u->samples, change.tempo));
    if (steps < transcript_steps(set->label + u->label, u->labels)) change.tempo = 1;
    return change;
}

size_t speech_longest(const struct speech_set *set, bool changed) {
    size_t longest = set->longest;
    for (size_t i = 0; changed && i < set->count; i++) {
        const size_t frames = spectrogram_frames_at(set->utterance[i].samples, TEMPO_LEAST);
        if (frames > longest) longest = frames;
    }
    return longest;
}

/* -- batches ------------------------------------------------------------------------------------------------------- */

struct speech_input speech_input_of(const struct speech_set *set, const struct speech_changing *how, uint32_t number) {
    struct speech_input in = {&set->utterance[number], {1, 1}, set->utterance[number].frames};
    if (!how->spectrogram) return in;
    in.change = speech_change(set, how->seed, how->epoch, number);
    in.frames = spectrogram_frames_at(in.u->samples, in.change.tempo);
    return in;
}

void speech_input_fill(const struct speech_set *set, const struct speech_changing *how, const struct speech_input *in,
                       size_t stride, float *x) {
    const size_t own = in->frames;
    if (how->spectrogram)
        spectrogram_fill_changed(how->spectrogram, set->sample + in->u->sample, in->u->samples, &in->change, stride, x);
    for (size_t b = 0; b < SPECTROGRAM_BINS; b++) {
        float *row = x + b * stride;
        if (!how->spectrogram) memcpy(row, set->feature + in->u->feature + b * own, own * sizeof *row);
        memset(row + own, 0, (stride - own) * sizeof *row);
    }
}

/* Place i of a batch that has as many frames; in: NULL where it does not count. */
static void put(const struct dataset *d, const struct speech_set *set, const struct speech_input *in,
                const struct speech_changing *how, size_t i, struct batch *b) {
    const size_t frames = (size_t)b->frames, each = SPECTROGRAM_BINS * frames, stride = (size_t)d->label_stride;
    const size_t labels = in ? in->u->labels : 0;
    if (in)
        speech_input_fill(set, how, in, frames, b->x + i * each);
    else
        memset(b->x + i * each, 0, each * sizeof *b->x);
    for (size_t j = 0; j < stride; j++) b->y[i * stride + j] = j < labels ? set->label[in->u->label + j] : -1;
    b->lengths[i] = in ? (int32_t)in->frames : 0;
    b->label_count[i] = (int32_t)labels;
    b->index[i] = in ? (uint32_t)(in->u - set->utterance) : SPEECH_NONE;
}

/* The utterances at by_length[first], [first + step], ..., `count` of them, and nothing at the places after these. */
static void put_all(const struct dataset *d, const struct speech_set *set, const struct speech_changing *how,
                    size_t first, size_t step, int count, int batch, struct batch *b) {
    const uint32_t *number = set->by_length + first;
    b->count = count;
    b->label_stride = d->label_stride;
    b->frames = 1;
    for (int i = 0; i < count; i++) {
        const struct speech_input in = speech_input_of(set, how, number[(size_t)i * step]);
        if ((int)in.frames > b->frames) b->frames = (int)in.frames;
    }
    for (int i = 0; i < batch; i++) {
        struct speech_input in;
        if (i < count) in = speech_input_of(set, how, number[(size_t)i * step]);
        put(d, set, i < count ? &in : NULL, how, (size_t)i, b);
    }
}

void speech_batch_fill(const struct dataset *d, const struct speech_set *set, const struct speech_place *p,
                       struct batch *b) {
    const size_t size = (size_t)p->size, rank = (size_t)p->rank;
    const size_t bins = speech_bins(set->count, (size_t)p->parts * (size_t)p->batch * size);
    size_t from, to, mine_from, mine_to;
    loader_share(set->count, (int)p->bin, (int)bins, &from, &to);
    const size_t mine = to - from > rank ? (to - from - rank - 1) / size + 1 : 0;
    loader_share(mine, p->part, p->parts, &mine_from, &mine_to);
    b->of = (int)(to - from);
    put_all(d, set, &p->change, from + rank + mine_from * size, size, (int)(mine_to - mine_from), p->batch, b);
}

int speech_batch_eval(const struct dataset *d, const struct speech_set *set, size_t from, size_t to, int batch,
                      struct batch *b) {
    if (to > set->count) to = set->count;
    const size_t left = from < to ? to - from : 0;
    const int count = left < (size_t)batch ? (int)left : batch;
    const struct speech_changing not_at_all = {0};
    b->of = count;
    put_all(d, set, &not_at_all, from, 1, count, batch, b);
    return count;
}
