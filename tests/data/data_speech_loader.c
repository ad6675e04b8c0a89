/* Batches of speech: every utterance once an epoch at any number of ranks, the same ones together in a step whatever
 * cuts it, what a batch holds, resuming, legs, evaluations. The sets are made up, their features numbers that say whose
 * they are, so that no FFTW is needed. */
#include "tests/lib/data_speech_support.h"

#include "data/speech/speech_batch.h"
#include "data/speech/speech_layout.h"

enum { BINS = SPECTROGRAM_BINS, COUNT = 61, TEST = 17, LABELS_MAX = 9, SEED = 42 };
static const int sizes[] = {1, 2, 3, 4, 5, 7, 8};
enum { SIZES = sizeof sizes / sizeof *sizes };

/* Lengths in no order, some of them equal. */
static uint32_t frames_of(size_t i) {
    return (uint32_t)(5 + i * 7 % 20);
}

static uint32_t labels_of(size_t i) {
    return (uint32_t)(1 + i * 5 % LABELS_MAX);
}

static float feature_of(size_t i, size_t bin, size_t frame) {
    return (float)(1 + i * 10000 + bin * 50 + frame);
}

static uint8_t label_of(size_t i, size_t j) {
    return (uint8_t)(1 + (i + 3 * j) % 28);
}

/* Utterances 0 .. COUNT - 1 to train on, the rest to test on. */
static void *make_set(struct dataset *d) {
    const struct dataset_ops *ops = &dataset_an4;
    struct speech_counts c = {.utterances = {COUNT, 0, TEST}};
    size_t frames = 0, at = 0, label = 0;
    for (size_t i = 0; i < COUNT + TEST; i++) frames += frames_of(i), c.labels += labels_of(i);
    void *memory = mem_zalloc(speech_layout_bytes(&c, frames), 1, "a set");
    struct speech_room room = speech_layout_room(&c, memory);
    for (size_t i = 0; i < COUNT + TEST; i++) {
        room.utterance[i] =
            (struct utterance){.feature = at, .frames = frames_of(i), .label = (uint32_t)label, .labels = labels_of(i)};
        for (size_t b = 0; b < BINS; b++)
            for (size_t t = 0; t < frames_of(i); t++) room.feature[at++] = feature_of(i, b, t);
        for (size_t j = 0; j < labels_of(i); j++) room.label[label++] = label_of(i, j);
    }
    speech_layout_seal(&c, memory);
    *d = (struct dataset){.ops = ops};
    dataset_attach(d, memory);
    return memory;
}

static int open_set(void **state) {
    static struct dataset d;
    static void *memory;
    if (*state) {
        mem_free(memory);
        return 0;
    }
    memory = make_set(&d);
    *state = &d;
    return 0;
}

/* A batch against what it should hold; first: of its split. Returns its utterances. */
static int check_batch(const struct dataset *d, const struct batch *b, int batch, size_t first) {
    uint32_t longest = 1;
    assert_in_range(b->count, 0, batch);
    assert_int_equal(b->label_stride, d->label_stride);
    for (int i = 0; i < b->count; i++)
        if (frames_of(first + b->index[i]) > longest) longest = frames_of(first + b->index[i]);
    assert_int_equal(b->frames, longest);
    for (int i = 0; i < batch; i++) {
        const size_t u = first + b->index[i], frames = (size_t)b->frames;
        const bool counts = i < b->count;
        if (!counts) assert_int_equal(b->index[i], SPEECH_NONE);
        assert_int_equal(b->lengths[i], counts ? frames_of(u) : 0);
        assert_int_equal(b->label_count[i], counts ? labels_of(u) : 0);
        for (size_t bin = 0; bin < BINS; bin++)
            for (size_t t = 0; t < frames; t++) {
                const float is = b->x[((size_t)i * BINS + bin) * frames + t];
                assert_true(is == (t < (size_t)b->lengths[i] ? feature_of(u, bin, t) : 0));
            }
        for (int j = 0; j < b->label_stride; j++)
            assert_int_equal(b->y[i * b->label_stride + j], j < b->label_count[i] ? label_of(u, (size_t)j) : -1);
    }
    return b->count;
}

/* -- the order -------------------------------------------------------------------------------------------------------
 */

static int by_number(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* The utterances of each step over all ranks, sorted, to number[step][COUNT], how many to count[step]. */
static void steps_of(const struct dataset *d, int size, int batch, int parts, size_t steps, uint32_t number[][COUNT],
                     size_t *count) {
    struct loader *l[8];
    for (int r = 0; r < size; r++)
        l[r] = loader_open(&(struct loader_setup){
            .data = d, .batch = batch, .rank = r, .size = size, .seed = SEED, .accumulate = parts});
    for (size_t step = 0; step < steps; step++) {
        count[step] = 0;
        size_t of = 0, least = SIZE_MAX, most = 0;
        for (int r = 0; r < size; r++) {
            size_t mine = 0;
            for (int part = 0; part < parts; part++) {
                const struct batch *b = loader_next(l[r]);
                assert_true(b->step == step && b->part == part && !b->begins);
                mine += (size_t)check_batch(d, b, batch, 0);
                of = (size_t)b->of;
                memcpy(number[step] + count[step], b->index, (size_t)b->count * sizeof(uint32_t));
                count[step] += (size_t)b->count;
            }
            if (mine < least) least = mine;
            if (mine > most) most = mine;
        }
        assert_int_equal(count[step], of);
        assert_true(most - least <= 1);
        qsort(number[step], count[step], sizeof(uint32_t), by_number);
    }
    for (int r = 0; r < size; r++) loader_close(l[r]);
}

/* Each epoch has each utterance once; what is together in a step are neighbours by length. */
static void check_epochs(const struct dataset *d, size_t bins, size_t epochs, uint32_t number[][COUNT],
                         const size_t *count) {
    size_t place[COUNT];
    for (size_t i = 0; i < COUNT; i++) place[d->train_speech.by_length[i]] = i;
    for (size_t epoch = 0; epoch < epochs; epoch++) {
        bool seen[COUNT] = {false};
        size_t all = 0;
        for (size_t step = epoch * bins; step < (epoch + 1) * bins; step++) {
            size_t low = COUNT, high = 0;
            assert_in_range(count[step], COUNT / bins, COUNT / bins + 1);
            for (size_t i = 0; i < count[step]; i++, all++) {
                const size_t u = number[step][i];
                assert_false(seen[u]);
                seen[u] = true;
                if (place[u] < low) low = place[u];
                if (place[u] > high) high = place[u];
            }
            assert_int_equal(high - low + 1, count[step]);
        }
        assert_int_equal(all, COUNT);
    }
}

static uint32_t first[3 * COUNT][COUNT], other[3 * COUNT][COUNT];

/* Steps of as many utterances over all ranks have the same ones, however many ranks and parts they are cut into. */
static void same_at_any_size(void **state) {
    const struct dataset *d = *state;
    static const size_t globals[] = {1, 4, 8, 12, 24, 56, 60, 61, 120};
    for (size_t g = 0; g < sizeof globals / sizeof *globals; g++) {
        const size_t global = globals[g], bins = (COUNT + global - 1) / global;
        size_t count[3 * COUNT], other_count[3 * COUNT], tried = 0;
        assert_int_equal(speech_bins(COUNT, global), bins);
        for (int s = 0; s < SIZES; s++)
            for (int parts = 1; parts <= 3; parts++) {
                const size_t each = (size_t)(sizes[s] * parts);
                if (global % each) continue;
                const int batch = (int)(global / each);
                if (tried++ == 0) {
                    steps_of(d, sizes[s], batch, parts, 3 * bins, first, count);
                    check_epochs(d, bins, 3, first, count);
                    continue;
                }
                steps_of(d, sizes[s], batch, parts, 3 * bins, other, other_count);
                for (size_t step = 0; step < 3 * bins; step++) {
                    assert_int_equal(count[step], other_count[step]);
                    assert_memory_equal(first[step], other[step], count[step] * sizeof **first);
                }
            }
        assert_true(tried > 0);
    }
}

static void any_size_is_whole(void **state) {
    const struct dataset *d = *state;
    for (int s = 0; s < SIZES; s++)
        for (int batch = 1; batch <= 9; batch += 4) {
            const size_t bins = speech_bins(COUNT, (size_t)(sizes[s] * batch));
            size_t count[3 * COUNT];
            steps_of(d, sizes[s], batch, 1, 2 * bins, first, count);
            check_epochs(d, bins, 2, first, count);
        }
}

/* The order of the bins is that of the permutation of (seed, epoch), bin 0 having the shortest utterances. */
static void order_of_bins(void **state) {
    const struct dataset *d = *state;
    const size_t bins = speech_bins(COUNT, 8);
    uint32_t order[COUNT];
    size_t count[3 * COUNT];
    steps_of(d, 2, 4, 1, 3 * bins, first, count);
    for (size_t epoch = 0; epoch < 3; epoch++) {
        loader_permutation(SEED, epoch, (uint32_t)bins, order);
        for (size_t i = 0; i < bins; i++) {
            size_t from, to;
            uint32_t wanted[COUNT];
            loader_share(COUNT, (int)order[i], (int)bins, &from, &to);
            memcpy(wanted, d->train_speech.by_length + from, (to - from) * sizeof *wanted);
            qsort(wanted, to - from, sizeof *wanted, by_number);
            assert_int_equal(count[epoch * bins + i], to - from);
            assert_memory_equal(first[epoch * bins + i], wanted, (to - from) * sizeof *wanted);
        }
    }
}

/* Who has which: rank r of P the places r, r + P, ... of the bin, in parts one after the other that differ by one. */
static void dealt(void **state) {
    enum { P = 3, PARTS = 2, BATCH = 3 };
    const struct dataset *d = *state;
    const size_t bins = speech_bins(COUNT, P * PARTS * BATCH);
    uint32_t order[COUNT];
    loader_permutation(SEED, 0, (uint32_t)bins, order);
    for (int r = 0; r < P; r++) {
        struct loader *l = loader_open(
            &(struct loader_setup){.data = d, .batch = BATCH, .rank = r, .size = P, .seed = SEED, .accumulate = PARTS});
        for (size_t step = 0; step < bins; step++) {
            size_t from, to, at;
            loader_share(COUNT, (int)order[step], (int)bins, &from, &to);
            at = from + (size_t)r;
            for (int part = 0, before = 0; part < PARTS; part++) {
                const struct batch *b = loader_next(l);
                for (int i = 0; i < b->count; i++, at += P)
                    assert_int_equal(b->index[i], d->train_speech.by_length[at]);
                assert_true(part == 0 || b->count == before || b->count == before - 1);
                before = b->count;
            }
            assert_true(at >= to); /* and that is all */
        }
        loader_close(l);
    }
}

static void by_length(void **state) {
    const struct dataset *d = *state;
    const struct speech_set *sets[] = {&d->train_speech, &d->test_speech};
    for (int s = 0; s < 2; s++)
        for (size_t i = 1; i < sets[s]->count; i++) {
            const uint32_t a = sets[s]->by_length[i - 1], b = sets[s]->by_length[i];
            const uint32_t x = sets[s]->utterance[a].frames, y = sets[s]->utterance[b].frames;
            assert_true(x < y || (x == y && a < b));
        }
    assert_int_equal(d->train_speech.longest, 24);
    assert_int_equal(d->label_stride, LABELS_MAX);
    assert_int_equal(d->valid_speech.longest, 0);
}

/* -- going on --------------------------------------------------------------------------------------------------------
 */

static void same_batch(const struct batch *a, const struct batch *b, int batch) {
    const size_t places = (size_t)batch;
    assert_true(a->step == b->step && a->part == b->part && a->count == b->count && a->of == b->of);
    assert_int_equal(a->frames, b->frames);
    assert_memory_equal(a->index, b->index, places * sizeof *a->index);
    assert_memory_equal(a->lengths, b->lengths, places * sizeof *a->lengths);
    assert_memory_equal(a->label_count, b->label_count, places * sizeof *a->label_count);
    assert_memory_equal(a->y, b->y, places * (size_t)a->label_stride * sizeof *a->y);
    assert_memory_equal(a->x, b->x, places * BINS * (size_t)a->frames * sizeof *a->x);
}

static void resumes(void **state) {
    enum { PARTS = 2, BATCH = 3 };
    for (size_t begin = 0; begin <= 25; begin++) {
        struct loader_setup s = {
            .data = *state, .batch = BATCH, .rank = 1, .size = 3, .seed = SEED, .accumulate = PARTS};
        struct loader *whole = loader_open(&s);
        s.first_step = begin;
        struct loader *resumed = loader_open(&s);
        for (size_t i = 0; i < (begin + 6) * PARTS; i++) {
            const struct batch *a = loader_next(whole);
            if (i >= begin * PARTS) same_batch(a, loader_next(resumed), BATCH);
        }
        loader_close(whole);
        loader_close(resumed);
    }
}

/* After two epochs of one size a leg of another: its steps are those of a run of that size from its third epoch on. */
static void legs(void **state) {
    const size_t before = 2 * speech_bins(COUNT, 3 * 4), after = speech_bins(COUNT, 2 * 5);
    for (int rank = 0; rank < 2; rank++)
        for (size_t begin = 0; begin < 5; begin++) {
            struct loader_setup s = {.data = *state, .batch = 5, .rank = rank, .size = 2, .seed = SEED};
            s.first_step = 2 * after + begin;
            struct loader *wanted = loader_open(&s);
            s.leg = (struct loader_leg){.step = before, .position = 2 * COUNT};
            s.first_step = before + begin;
            struct loader *l = loader_open(&s);
            for (size_t i = 0; i < 2 * after; i++) {
                struct batch a = *loader_next(wanted);
                const struct batch *b = loader_next(l);
                assert_int_equal(b->step, before + begin + i);
                a.step = b->step;
                same_batch(&a, b, 5);
            }
            loader_close(wanted);
            loader_close(l);
        }
}

/* -- evaluations -----------------------------------------------------------------------------------------------------
 */

static void evaluations(void **state) {
    const struct dataset *d = *state;
    for (int s = 0; s < SIZES; s++)
        for (int batch = 1; batch <= 7; batch += 3) {
            size_t done = 0;
            struct batch b = {0};
            speech_batch_open(&b, d, d->test_speech.longest, batch);
            for (int r = 0; r < sizes[s]; r++) {
                size_t from, to;
                loader_share(TEST, r, sizes[s], &from, &to);
                assert_int_equal(from, done);
                for (int count; (count = speech_batch_eval(d, &d->test_speech, from, to, batch, &b)) > 0;
                     from += (size_t)count) {
                    check_batch(d, &b, batch, COUNT);
                    assert_int_equal(b.of, count);
                    for (int i = 0; i < count; i++) assert_int_equal(b.index[i], d->test_speech.by_length[done++]);
                }
                assert_int_equal(check_batch(d, &b, batch, COUNT), 0);
            }
            assert_int_equal(done, TEST);
            speech_batch_close(&b);
        }
}

static void nothing_to_evaluate(void **state) {
    const struct dataset *d = *state;
    struct batch b = {0};
    speech_batch_open(&b, d, 0, 3);
    assert_int_equal(speech_batch_eval(d, &d->valid_speech, 0, 5, 3, &b), 0);
    assert_int_equal(check_batch(d, &b, 3, 0), 0);
    speech_batch_close(&b);
}

/* More ranks than utterances in a step, and of fewer of them than places: the ranks that have none say so. */
static void a_few(void **state) {
    const struct dataset *d = *state;
    size_t count[3 * COUNT];
    steps_of(d, 8, 100, 2, 3, first, count);
    check_epochs(d, 1, 3, first, count);
    struct dataset one = *d;
    one.train_speech.count = 1;
    for (int r = 0; r < 3; r++) {
        struct loader *l =
            loader_open(&(struct loader_setup){.data = &one, .batch = 2, .rank = r, .size = 3, .seed = SEED});
        for (int i = 0; i < 5; i++) {
            const struct batch *b = loader_next(l);
            assert_int_equal(check_batch(&one, b, 2, 0), r == 0);
            assert_int_equal(b->of, 1);
        }
        loader_close(l);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_at_any_size),
        cmocka_unit_test(any_size_is_whole),
        cmocka_unit_test(order_of_bins),
        cmocka_unit_test(dealt),
        cmocka_unit_test(by_length),
        cmocka_unit_test(resumes),
        cmocka_unit_test(legs),
        cmocka_unit_test(evaluations),
        cmocka_unit_test(nothing_to_evaluate),
        cmocka_unit_test(a_few),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, open_set, open_set);
}
