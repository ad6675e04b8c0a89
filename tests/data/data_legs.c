/* A run that goes on with another number of ranks, or another batch over all of them: every sample still comes once an
 * epoch, and windows and streams go on where they are. */
#include "tests/lib/data_support.h"

#include "data/loader.h"

static const int sizes[] = {1, 2, 3, 5, 8};
enum { SIZES = 5, RANKS_MAX = 8, SEED = 42 };

/* One start of the run: so many steps by so many ranks. */
struct start {
    int size, batch, accumulate;
    size_t steps;
};

static size_t of_step(const struct start *s) {
    return (size_t)s->size * (size_t)s->batch * (size_t)s->accumulate;
}

/* What the samples, windows or streams of a step are held against: of rank `rank`, batch `b`, the number of the first
 * one in the order of the run. */
typedef void check_batch(const struct dataset *d, const struct batch *b, int batch, int rank, uint64_t number);

/* The starts one after the other; a leg begins with each whose batch over all ranks is another one. Returns how many
 * samples or windows there were. */
static uint64_t go(const struct loader_setup *base, const struct start *start, size_t starts, check_batch *check) {
    struct loader_leg leg = {0, 0};
    uint64_t done = 0;
    for (size_t i = 0, step = 0; i < starts; i++) {
        const struct start *now = &start[i];
        struct loader *l[RANKS_MAX];
        if (i > 0 && of_step(now) != of_step(now - 1)) leg = (struct loader_leg){step, done};
        for (int r = 0; r < now->size; r++) {
            struct loader_setup s = *base;
            s.batch = now->batch, s.accumulate = now->accumulate, s.rank = r, s.size = now->size;
            s.first_step = step, s.leg = leg;
            l[r] = loader_open(&s);
        }
        for (size_t end = step + now->steps; step < end; step++)
            for (int part = 0; part < now->accumulate; part++)
                for (int r = 0; r < now->size; r++) {
                    const struct batch *b = loader_next(l[r]);
                    assert_true(b->step == step && b->part == part);
                    const bool windows = base->windows == TEXT_RANDOM; /* which are numbered part by part */
                    const size_t before =
                        windows ? (size_t)(part * now->size + r) : (size_t)(r * now->accumulate + part);
                    check(base->data, b, now->batch, r,
                          done + (step + now->steps - end) * of_step(now) + before * (size_t)now->batch);
                }
        done += now->steps * of_step(now);
        for (int r = 0; r < now->size; r++) loader_close(l[r]);
    }
    return done;
}

/* -- images -------------------------------------------------------------------------------------------------------- */
enum { TRAIN = 103 };

static uint32_t order[TRAIN], times[64][TRAIN];
static size_t have;

/* Position q holds sample permutation(q / n)[q mod n]. */
static void check_images(const struct dataset *d, const struct batch *b, int batch, int rank, uint64_t number) {
    (void)rank;
    for (int i = 0; i < batch; i++, number++) {
        const size_t epoch = number / TRAIN;
        if (epoch != have) loader_permutation(SEED, epoch, TRAIN, order);
        have = epoch;
        assert_int_equal(b->index[i], order[number % TRAIN]);
        assert_int_equal(b->y[i], d->train.labels[b->index[i]]);
        times[epoch][b->index[i]]++;
    }
}

/* Each sample of each epoch once, of the one that is not over at most once. */
static void check_times(uint64_t done) {
    const size_t whole = done / TRAIN, left = done % TRAIN;
    size_t last = 0;
    for (size_t e = 0; e < whole; e++)
        for (size_t i = 0; i < TRAIN; i++) assert_int_equal(times[e][i], 1);
    for (size_t i = 0; i < TRAIN; i++) {
        assert_true(times[whole][i] <= 1);
        last += times[whole][i];
    }
    assert_int_equal(last, left);
}

static void go_images(const struct start *start, size_t starts) {
    struct dataset d;
    struct err e = {0};
    void *memory = load_set(&dataset_synthetic, "103x17", 5, &d, &e);
    const struct loader_setup base = {.data = &d, .seed = SEED};
    memset(times, 0, sizeof times);
    have = SIZE_MAX;
    check_times(go(&base, start, starts, check_images));
    mem_free(memory);
}

/* 120 samples a step, so that an epoch ends inside one: from P to P' and back. */
static void the_same_batch(void **state) {
    (void)state;
    for (int i = 0; i < SIZES; i++)
        for (int j = 0; j < SIZES; j++) {
            const int P = sizes[i], Q = sizes[j];
            const struct start start[] = {{P, 120 / P, 1, 2}, {Q, 120 / Q, 1, 3}, {P, 120 / P, 1, 1}};
            go_images(start, 3);
            const struct start parts[] = {{P, 120 / P, 2, 2}, {Q, 120 / Q, 2, 3}};
            go_images(parts, 2);
        }
}

/* Any batch on any number of ranks behind any other. */
static void another_batch(void **state) {
    (void)state;
    for (int i = 0; i < SIZES; i++)
        for (int j = 0; j < SIZES; j++) {
            const int P = sizes[i], Q = sizes[j];
            const struct start start[] = {{P, 7, 1, 3}, {Q, 4, 2, 4}, {Q, 4, 2, 2}, {P, 11, 1, 5}, {P, 3, 1, 2}};
            go_images(start, 5);
        }
}

/* -- windows ------------------------------------------------------------------------------------------------------- */
enum { T = 6, TOKENS = 1009 };

static int32_t text[TOKENS];

static struct dataset a_text(void) {
    struct dataset d = {.ops = &dataset_ptb};
    for (size_t i = 0; i < TOKENS; i++) text[i] = (int32_t)(3 * i + 1);
    d.train_text = (struct text_set){text, TOKENS};
    return d;
}

static void check_windows(const struct dataset *d, const struct batch *b, int batch, int rank, uint64_t number) {
    (void)rank;
    for (int i = 0; i < batch; i++, number++) {
        const size_t at = text_random_place(d->train_text.count, T, SEED, number);
        assert_memory_equal(b->token + i * T, text + at, T * sizeof *text);
        assert_memory_equal(b->y + i * T, text + at + 1, T * sizeof *text);
    }
}

static void random_windows(void **state) {
    (void)state;
    const struct dataset d = a_text();
    const struct loader_setup base = {.data = &d, .seed = SEED, .sequence = T, .windows = TEXT_RANDOM};
    for (int i = 0; i < SIZES; i++)
        for (int j = 0; j < SIZES; j++) {
            const int P = sizes[i], Q = sizes[j];
            const struct start start[] = {{P, 120 / P, 2, 2}, {Q, 120 / Q, 2, 3}, {Q, 7, 3, 2}, {P, 5, 1, 4}};
            go(&base, start, 4, check_windows);
        }
}

/* -- streams ------------------------------------------------------------------------------------------------------- */

static size_t streams_now, windows_now, stream_from;

/* Stream g of all ranks reads in window w what it would read at any P; number / streams: windows since the leg. */
static void check_streams(const struct dataset *d, const struct batch *b, int batch, int rank, uint64_t number) {
    const size_t window = (number - stream_from) / streams_now % windows_now;
    (void)d;
    assert_int_equal(b->begins, window == 0);
    for (int i = 0; i < batch; i++) {
        const size_t g = (size_t)(rank * batch + i), at = (g * windows_now + window) * T;
        for (size_t t = 0; t < T; t++) {
            assert_int_equal(b->token[t * (size_t)batch + (size_t)i], text[at + t]);
            assert_int_equal(b->y[t * (size_t)batch + (size_t)i], text[at + t + 1]);
        }
    }
}

static void expect_streams(size_t streams, size_t from) {
    streams_now = streams;
    windows_now = text_windows(TOKENS, streams, T);
    stream_from = from;
}

static void streams_on_other_ranks(void **state) {
    (void)state;
    const struct dataset d = a_text();
    const struct loader_setup base = {.data = &d, .sequence = T};
    expect_streams(120, 0);
    assert_int_equal(windows_now, 1);
    for (int i = 0; i < SIZES; i++)
        for (int j = 0; j < SIZES; j++) {
            const struct start start[] = {{sizes[i], 120 / sizes[i], 1, 2}, {sizes[j], 120 / sizes[j], 1, 3}};
            go(&base, start, 2, check_streams);
        }
    expect_streams(24, 0);
    assert_int_equal(windows_now, 7);
    const struct start start[] = {{8, 3, 1, 3}, {2, 12, 1, 6}, {3, 8, 1, 12}};
    go(&base, start, 3, check_streams);
}

/* Streams are cut anew where a leg begins, which has window 0 then. */
static void streams_of_another_batch(void **state) {
    (void)state;
    const struct dataset d = a_text();
    struct loader_setup base = {.data = &d, .sequence = T, .batch = 5, .size = 2, .first_step = 7, .leg = {7, 1}};
    expect_streams(10, 0);
    assert_int_equal(windows_now, 16);
    for (base.rank = 0; base.rank < 2; base.rank++) {
        struct loader *l = loader_open(&base);
        for (uint64_t i = 0; i < 40; i++) {
            const struct batch *b = loader_next(l);
            assert_int_equal(b->step, 7 + i);
            check_streams(&d, b, 5, base.rank, i * 10);
        }
        loader_close(l);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_batch),           cmocka_unit_test(another_batch),
        cmocka_unit_test(random_windows),           cmocka_unit_test(streams_on_other_ranks),
        cmocka_unit_test(streams_of_another_batch),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
