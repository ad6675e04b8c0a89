/* bench_net_batch.c: what `bench net` trains on: numbers drawn at random, of the shapes that training has. */
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "cli/bench/bench_net.h"

static int32_t *random_numbers(struct rng *rng, size_t n, int below, const char *what) {
    int32_t *number = mem_pinned_alloc(n, sizeof *number, what);
    for (size_t i = 0; i < n; i++) number[i] = (int32_t)rng_below(rng, (uint32_t)below);
    return number;
}

/* Images as the net takes them, floats of about the same distribution either way. */
static void make_images(struct bench_net_case *b, struct rng *rng) {
    const struct net_setup *s = &b->net->setup;
    const size_t images = (size_t)s->batch, values = images * (size_t)(s->channels * s->height * s->width);
    const int bytes = s->channels * 256;
    if (net_takes_bytes(b->net)) {
        b->pixels = mem_pinned_alloc(values, 1, "the bench's images");
        b->cut = mem_pinned_alloc(images, sizeof *b->cut, "the bench's images");
        b->table = mem_alloc((size_t)bytes, sizeof *b->table, "the values of the bench's bytes");
        memset(b->cut, 0, images * sizeof *b->cut);
        for (int i = 0; i < bytes; i++) b->table[i] = ((float)(i % 256) - 127.5f) / 74;
        for (size_t i = 0; i < values; i++) b->pixels[i] = (uint8_t)rng_below(rng, 256);
    } else {
        b->x = mem_pinned_alloc(values, sizeof *b->x, "the bench's images");
        rng_normals(rng, 1, b->x, values);
    }
}

/* Whole windows, a row for every place that is masked. */
static void make_pairs(struct bench_net_case *b, struct rng *rng) {
    const struct net_setup *s = &b->net->setup;
    const size_t batch = (size_t)s->batch, rows = (size_t)net_rows(s), places = batch * (size_t)s->chosen;
    b->token = random_numbers(rng, rows, s->classes, "the bench's words");
    b->numbers[NUMBERS_TYPES] = random_numbers(rng, rows, 2, "the bench's words");
    b->numbers[NUMBERS_LENGTHS] = random_numbers(rng, batch, 1, "the bench's words");
    for (size_t i = 0; i < batch; i++) b->numbers[NUMBERS_LENGTHS][i] = s->sequence;
    b->numbers[NUMBERS_CHOSEN] = random_numbers(rng, places, s->sequence, "the bench's words");
    b->y = random_numbers(rng, places, s->classes, "the bench's labels");
    b->next = random_numbers(rng, batch, 2, "the bench's labels");
}

/* Labels are characters, none of them the blank. */
static void make_utterances(struct bench_net_case *b, struct rng *rng) {
    const struct net_setup *s = &b->net->setup;
    const size_t batch = (size_t)s->batch, values = batch * (size_t)s->height * (size_t)s->width;
    b->x = mem_pinned_alloc(values, sizeof *b->x, "the bench's utterances");
    rng_normals(rng, 1, b->x, values);
    b->numbers[NUMBERS_LENGTHS] = random_numbers(rng, batch, 1, "the bench's utterances");
    for (size_t i = 0; i < batch; i++) b->numbers[NUMBERS_LENGTHS][i] = s->width;
    b->y = random_numbers(rng, batch * BENCH_NET_LABELS, s->classes - 1, "the bench's labels");
    for (size_t i = 0; i < batch * BENCH_NET_LABELS; i++) b->y[i]++;
}

/* What an utterance of so many frames was recorded as; nothing in a build without FFTW. */
static void make_recording(struct bench_net_case *b, struct rng *rng, int repeat) {
    struct err without = {0};
    if (!spectrogram_is_here(&without)) return;
    const size_t samples = (size_t)(b->net->setup.width - 1) * SPECTROGRAM_STRIDE;
    b->spectrogram = spectrogram_open();
    b->sample = mem_alloc(samples, sizeof *b->sample, "the bench's recording");
    for (size_t i = 0; i < samples; i++) b->sample[i] = (int16_t)(uint16_t)rng_u32(rng);
    b->feature = mem_alloc((size_t)repeat, sizeof *b->feature, "the bench's times");
}

void bench_net_batch_open(struct bench_net_case *b, int repeat) {
    const struct net_setup *setup = &b->net->setup;
    const size_t rows = (size_t)net_rows(setup);
    struct rng rng = rng_open(1, RNG_TEST, 0);
    if (b->net->model->input == MODEL_PAIRS) {
        make_pairs(b, &rng);
        return;
    }
    if (b->net->model->input == MODEL_SPEECH) {
        make_utterances(b, &rng);
        make_recording(b, &rng, repeat);
        return;
    }
    if (b->net->model->input == MODEL_TOKENS)
        b->token = random_numbers(&rng, rows, setup->classes, "the bench's words");
    else
        make_images(b, &rng);
    b->y = random_numbers(&rng, rows, setup->classes, "the bench's labels");
}

void bench_net_batch_close(struct bench_net_case *b) {
    mem_pinned_free(b->x);
    mem_pinned_free(b->pixels);
    mem_pinned_free(b->cut);
    mem_pinned_free(b->token);
    mem_pinned_free(b->y);
    for (int k = 0; k < NET_NUMBERS; k++) mem_pinned_free(b->numbers[k]);
    mem_pinned_free(b->next);
    mem_free(b->table);
    spectrogram_close(b->spectrogram);
    mem_free(b->sample);
    mem_free(b->feature);
}
