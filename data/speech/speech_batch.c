/* speech_batch.c: see speech_batch.h. */
#include "data/speech/speech_batch.h"

#include <string.h>

#include "base/mem.h"
#include "data/speech/spectrogram.h"

static int32_t *numbers(size_t count) {
    return mem_pinned_alloc(count, sizeof(int32_t), "the labels of a batch");
}

void speech_batch_open(struct batch *b, const struct dataset *d, const struct speech_set *set, int batch) {
    const size_t places = (size_t)batch;
    const size_t frames = set->longest ? set->longest : 1;
    b->x = mem_pinned_alloc(places * SPECTROGRAM_BINS * frames, sizeof *b->x, "a batch of utterances");
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

/* x[b][t] of an utterance, [SPECTROGRAM_BINS][frames], to rows that may be longer. */
static void put_features(const struct speech_set *set, const struct utterance *u, size_t frames, float *x) {
    const float *from = set->feature + u->feature;
    for (size_t b = 0; b < SPECTROGRAM_BINS; b++, x += frames, from += u->frames) {
        memcpy(x, from, u->frames * sizeof *x);
        memset(x + u->frames, 0, (frames - u->frames) * sizeof *x);
    }
}

/* Place i of a batch that has as many frames; u: NULL where it does not count. */
static void put(const struct dataset *d, const struct speech_set *set, const struct utterance *u, size_t i,
                struct batch *b) {
    const size_t frames = (size_t)b->frames, each = SPECTROGRAM_BINS * frames, stride = (size_t)d->label_stride;
    const size_t labels = u ? u->labels : 0;
    if (u)
        put_features(set, u, frames, b->x + i * each);
    else
        memset(b->x + i * each, 0, each * sizeof *b->x);
    for (size_t j = 0; j < stride; j++) b->y[i * stride + j] = j < labels ? set->label[u->label + j] : -1;
    b->lengths[i] = u ? (int32_t)u->frames : 0;
    b->label_count[i] = (int32_t)labels;
    b->index[i] = u ? (uint32_t)(u - set->utterance) : SPEECH_NONE;
}

/* The utterances at by_length[first], [first + step], ..., `count` of them, and nothing at the places after these. */
static void put_all(const struct dataset *d, const struct speech_set *set, size_t first, size_t step, int count,
                    int batch, struct batch *b) {
    const struct utterance *u = NULL;
    const size_t last = first + (size_t)(count > 0 ? count - 1 : 0) * step;
    b->count = count;
    b->label_stride = d->label_stride;
    b->frames = count ? (int)set->utterance[set->by_length[last]].frames : 1;
    for (int i = 0; i < batch; i++) {
        if (i < count) u = &set->utterance[set->by_length[first + (size_t)i * step]];
        put(d, set, i < count ? u : NULL, (size_t)i, b);
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
    put_all(d, set, from + rank + mine_from * size, size, (int)(mine_to - mine_from), p->batch, b);
}

int speech_batch_eval(const struct dataset *d, const struct speech_set *set, size_t from, size_t to, int batch,
                      struct batch *b) {
    if (to > set->count) to = set->count;
    const size_t left = from < to ? to - from : 0;
    const int count = left < (size_t)batch ? (int)left : batch;
    b->of = count;
    put_all(d, set, from, 1, count, batch, b);
    return count;
}
