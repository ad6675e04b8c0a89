/* Recordings that are changed at random as they are trained on: by how much, the same at any number of ranks, another
 * time in each epoch, as long as a transcript needs and never longer than there is room for. */
#include "tests/lib/data_speech_support.h"

#include <math.h>

#include "data/speech/speech_batch.h"
#include "data/speech/speech_source.h"

enum { TRAIN = 13, TEST = 3, BINS = SPECTROGRAM_BINS, SEED = 9, TIGHT = 0, EPOCHS = 3 };
static const int sizes[] = {1, 2, 3, 4, 5, 7, 8};

static char *dir;

/* TIGHT has steps for its transcript and none to spare: 8 of them, of 15 frames. */
static size_t recording(int i, char text[32]) {
    strcpy(text, i == TIGHT ? "SAYINGIT" : "SAY");
    return i == TIGHT ? 14 * 160 + 20 : (size_t)(2400 + 1700 * i % 4700);
}

static int open_set(void **state) {
    return recordings_open(state, TRAIN, TEST, recording, &dir);
}

static int close_set(void **state) {
    return recordings_close(state, dir);
}

static bool same(struct spectrogram_change a, struct spectrogram_change b) {
    return a.tempo == b.tempo && a.gain == b.gain; // NOLINT: the same bits
}

/* Uniform from 0.85 to 1.15 and from -6 to 8 dB: mean and deviation of many, and none beyond the ends. */
static void by_how_much(void **state) {
    const struct dataset *d = need_recordings(state, "by_how_much");
    enum { MANY = 4000 };
    double sum[2] = {0}, square[2] = {0}, product = 0;
    for (size_t epoch = 0; epoch < MANY; epoch++) {
        const struct spectrogram_change c = speech_change(&d->train_speech, SEED, epoch, 1);
        const double place[2] = {(c.tempo - 0.85) / 0.3, (20 * log10(c.gain) + 6) / 14};
        for (int i = 0; i < 2; i++) {
            assert_true(place[i] > -1e-12 && place[i] < 1 + 1e-12);
            sum[i] += place[i] - 0.5;
            square[i] += (place[i] - 0.5) * (place[i] - 0.5);
        }
        product += (place[0] - 0.5) * (place[1] - 0.5);
    }
    for (int i = 0; i < 2; i++) {
        assert_true(fabs(sum[i] / MANY) < 0.02); /* four standard errors */
        assert_true(fabs(square[i] / MANY - 1 / 12.0) < 0.005);
    }
    assert_true(fabs(product / MANY) < 0.006); /* neither says anything of the other */
}

static void each_time_anew(void **state) {
    const struct dataset *d = need_recordings(state, "each_time_anew");
    const struct speech_set *set = &d->train_speech;
    const struct spectrogram_change c = speech_change(set, SEED, 4, 2);
    assert_true(same(c, speech_change(set, SEED, 4, 2)));
    assert_false(same(c, speech_change(set, SEED, 5, 2)));
    assert_false(same(c, speech_change(set, SEED, 4, 3)));
    assert_false(same(c, speech_change(set, SEED + 1, 4, 2)));
}

static size_t frames_of(const struct utterance *u, struct spectrogram_change c) {
    return spectrogram_frames_at(u->samples, c.tempo);
}

/* What is too fast for its transcript keeps its tempo, not its loudness. */
static void time_for_its_transcript(void **state) {
    const struct dataset *d = need_recordings(state, "time_for_its_transcript");
    const struct speech_set *set = &d->train_speech;
    const struct utterance *u = &set->utterance[TIGHT];
    size_t kept = 0, slower = 0;
    assert_int_equal(speech_steps(u->frames), transcript_steps(set->label + u->label, u->labels));
    for (size_t epoch = 0; epoch < 200; epoch++) {
        const struct spectrogram_change c = speech_change(set, SEED, epoch, TIGHT);
        assert_true(speech_steps(frames_of(u, c)) >= 8);
        if (c.tempo == 1) // NOLINT
            kept++;
        else if (c.tempo < 1)
            slower++;
        assert_true(c.gain != 1); // NOLINT
    }
    assert_true(kept > 50 && slower > 50);
}

static void longest(void **state) {
    const struct dataset *d = need_recordings(state, "longest");
    const struct speech_set *set = &d->train_speech;
    size_t seen = 0;
    for (size_t epoch = 0; epoch < 500; epoch++)
        for (uint32_t i = 0; i < set->count; i++) {
            const size_t frames = frames_of(&set->utterance[i], speech_change(set, SEED, epoch, i));
            if (frames > seen) seen = frames;
        }
    assert_in_range(seen, set->longest + 1, speech_longest(set, true));
    assert_true(seen + 1 >= speech_longest(set, true)); /* nor is there room that is never used */
    assert_int_equal(speech_longest(set, false), set->longest);
    assert_int_equal(loader_width(d, true), speech_longest(set, true));
    assert_int_equal(loader_width(d, false), d->width);
    assert_int_equal(speech_longest(&d->valid_speech, true), 0);
}

/* A batch of an epoch against what spectrogram.h makes of the same change. */
static size_t check_batch(const struct dataset *d, const struct batch *b, size_t epoch, struct spectrogram *s) {
    const struct speech_set *set = &d->train_speech;
    const size_t frames = (size_t)b->frames, each = BINS * frames;
    size_t most = 1;
    float *x = mem_alloc(each, sizeof *x, "a spectrogram");
    for (int i = 0; i < b->count; i++) {
        const struct utterance *u = &set->utterance[b->index[i]];
        const struct spectrogram_change c = speech_change(set, SEED, epoch, b->index[i]);
        assert_int_equal(b->lengths[i], frames_of(u, c));
        if (frames_of(u, c) > most) most = frames_of(u, c);
        memset(x, 0, each * sizeof *x);
        spectrogram_fill_changed(s, set->sample + u->sample, u->samples, &c, frames, x);
        assert_memory_equal(b->x + (size_t)i * each, x, each * sizeof *x);
        assert_int_equal(b->label_count[i], u->labels);
    }
    assert_int_equal(frames, most);
    mem_free(x);
    return (size_t)b->count;
}

static struct loader_setup setup_of(const struct dataset *d, int rank, int size, int batch, int parts) {
    return (struct loader_setup){
        .data = d, .batch = batch, .rank = rank, .size = size, .seed = SEED, .accumulate = parts, .augment = true};
}

static void same_at_any_size(void **state) {
    const struct dataset *d = need_recordings(state, "same_at_any_size");
    struct spectrogram *s = spectrogram_open();
    for (size_t z = 0; z < sizeof sizes / sizeof *sizes; z++)
        for (int parts = 1; parts <= 2; parts++) {
            const int size = sizes[z], batch = 2;
            const size_t bins = speech_bins(TRAIN, (size_t)(size * batch * parts));
            size_t done[EPOCHS] = {0};
            for (int r = 0; r < size; r++) {
                const struct loader_setup setup = setup_of(d, r, size, batch, parts);
                struct loader *l = loader_open(&setup);
                for (size_t i = 0; i < EPOCHS * bins * (size_t)parts; i++) {
                    const struct batch *b = loader_next(l);
                    done[b->step / bins] += check_batch(d, b, b->step / bins, s);
                }
                loader_close(l);
            }
            for (int epoch = 0; epoch < EPOCHS; epoch++) assert_int_equal(done[epoch], TRAIN);
        }
    spectrogram_close(s);
}

static void resumes(void **state) {
    const struct dataset *d = need_recordings(state, "resumes");
    struct loader_setup setup = setup_of(d, 1, 2, 2, 1);
    struct loader *whole = loader_open(&setup);
    for (int i = 0; i < 6; i++) loader_next(whole);
    setup.first_step = 6;
    struct loader *rest = loader_open(&setup);
    for (int i = 0; i < 6; i++) {
        const struct batch *a = loader_next(whole), *b = loader_next(rest);
        assert_true(a->step == b->step && a->frames == b->frames && a->count == b->count);
        assert_memory_equal(a->x, b->x, (size_t)a->count * BINS * (size_t)a->frames * sizeof *a->x);
        assert_memory_equal(a->lengths, b->lengths, 2 * sizeof *a->lengths);
    }
    loader_close(whole);
    loader_close(rest);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_how_much), cmocka_unit_test(each_time_anew),   cmocka_unit_test(time_for_its_transcript),
        cmocka_unit_test(longest),     cmocka_unit_test(same_at_any_size), cmocka_unit_test(resumes),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, open_set, close_set);
}
