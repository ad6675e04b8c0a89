/* Windows of a text that do not follow each other: at random places for training, the same at any number of ranks, for
 * any cut of a step and when a run resumes; one after the other, or sampled, for an evaluation. */
#include "tests/lib/data_support.h"
#include "tests/lib/in_child.h"

#include "data/loader.h"

static const int sizes[] = {1, 2, 3, 4, 5, 7, 8};
enum { SIZES = 7 };

/* Token i is 3 i + 1, so that a place can be told from its token. */
static int32_t *make_text(size_t count) {
    int32_t *token = mem_alloc(count ? count : 1, sizeof *token, "a text");
    for (size_t i = 0; i < count; i++) token[i] = (int32_t)(3 * i + 1);
    return token;
}

static struct dataset dataset_of(const int32_t *token, size_t count) {
    struct dataset d = {.ops = &dataset_ptb};
    d.train_text = (struct text_set){token, count};
    return d;
}

static struct loader_setup setup_of(const struct dataset *d, int batch, int sequence, int rank, int size) {
    return (struct loader_setup){.data = d,
                                 .batch = batch,
                                 .rank = rank,
                                 .size = size,
                                 .seed = 11,
                                 .sequence = sequence,
                                 .windows = TEXT_RANDOM};
}

/* -- places -------------------------------------------------------------------------------------------------------- */

/* The definition: those at which a window and the label of its last word lie in the text. */
static void places_fit(void **state) {
    (void)state;
    for (size_t tokens = 0; tokens < 60; tokens++)
        for (int sequence = 1; sequence < 70; sequence++) {
            size_t places = 0;
            while (places + (size_t)sequence + 1 <= tokens) places++;
            assert_int_equal(text_places(tokens, sequence), places);
        }
}

/* How often each of `buckets` equal parts of the places is drawn is within 5 standard deviations of what is expected,
 * and the numbers one after the other are no less so. */
static void check_uniform(size_t tokens, int sequence, size_t buckets, bool sampled) {
    enum { DRAWS = 100000 };
    const size_t places = text_places(tokens, sequence), width = places / buckets;
    size_t *count = mem_zalloc(buckets, sizeof *count, "counts"), same = 0, last = SIZE_MAX;
    const double p = 1.0 / (double)buckets, mean = DRAWS * p, room = 25 * DRAWS * p * (1 - p);
    for (uint64_t number = 0; number < DRAWS; number++) {
        const size_t at =
            sampled ? text_sampled_place(tokens, sequence, 3, number) : text_random_place(tokens, sequence, 3, number);
        assert_true(at < places);
        assert_true(at / width < buckets);
        count[at / width]++;
        same += at / width == last;
        last = at / width;
    }
    for (size_t i = 0; i < buckets; i++) {
        const double off = (double)count[i] - mean;
        if (off * off > room) fail_msg("bucket %zu of %zu: %zu draws, not about %.0f", i, buckets, count[i], mean);
    }
    assert_true(((double)same - mean) * ((double)same - mean) < room);
    mem_free(count);
}

static void places_are_uniform(void **state) {
    (void)state;
    for (int sampled = 0; sampled < 2; sampled++) {
        check_uniform(10 + 7, 7, 10, sampled); /* every place, the first and the last */
        check_uniform(2 + 64, 64, 2, sampled);
        check_uniform(1000000 + 256, 256, 100, sampled);
        check_uniform(((size_t)3 << 40) + 16, 16, 48, sampled); /* more places than 32 bits count */
    }
}

/* Each number, seed and purpose another place (mostly); the same three: the same. */
static void places_depend_on(void **state) {
    (void)state;
    enum { TOKENS = 1000000, T = 32 };
    int numbers = 0, high = 0, seeds = 0, purposes = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        const size_t at = text_random_place(TOKENS, T, 1, i);
        assert_int_equal(text_random_place(TOKENS, T, 1, i), at);
        assert_int_equal(text_sampled_place(TOKENS, T, 1, i), text_sampled_place(TOKENS, T, 1, i));
        numbers += text_random_place(TOKENS, T, 1, i + 1) != at;
        high += text_random_place(TOKENS, T, 1, i + ((uint64_t)1 << 32)) != at;
        seeds += text_random_place(TOKENS, T, 2, i) != at;
        purposes += text_sampled_place(TOKENS, T, 1, i) != at;
    }
    assert_true(numbers > 990 && high > 990 && seeds > 990 && purposes > 990);
}

/* -- training ------------------------------------------------------------------------------------------------------ */

/* A window is what the text has at the place of its number. */
static void expect_window(const struct dataset *d, int sequence, uint64_t number, const int32_t *token,
                          const int32_t *y) {
    const struct text_set *t = &d->train_text;
    const size_t at = text_random_place(t->count, sequence, 11, number);
    for (int i = 0; i < sequence; i++) {
        assert_int_equal(token[i], t->token[at + (size_t)i]);
        assert_int_equal(y[i], t->token[at + (size_t)i + 1]);
    }
}

/* The global batch of 840 windows, on every number of ranks and in every number of parts that divide it: window by
 * window that of its number. */
static void the_same_at_any_size(void **state) {
    (void)state;
    enum { GLOBAL = 840, STEPS = 3, TOKENS = 1009 };
    static const int parts[] = {1, 2, 3, 5};
    int32_t *text = make_text(TOKENS);
    const struct dataset d = dataset_of(text, TOKENS);
    for (int i = 0; i < SIZES; i++)
        for (int j = 0; j < 4; j++) {
            const int size = sizes[i], N = parts[j], batch = GLOBAL / size / N, sequence = 1 + 4 * j;
            if (size * N * batch != GLOBAL) continue;
            for (int rank = 0; rank < size; rank++) {
                struct loader_setup s = setup_of(&d, batch, sequence, rank, size);
                s.accumulate = N;
                struct loader *l = loader_open(&s);
                for (size_t step = 0; step < STEPS; step++)
                    for (int part = 0; part < N; part++) {
                        const struct batch *b = loader_next(l);
                        assert_true(b->step == step && b->part == part && !b->begins);
                        assert_true(!b->x && !b->index && !b->bytes.pixels);
                        for (int w = 0; w < batch; w++) {
                            const int g = part * batch * size + rank * batch + w; /* of the step */
                            expect_window(&d, sequence, step * GLOBAL + (uint64_t)g, b->token + w * sequence,
                                          b->y + w * sequence);
                        }
                    }
                loader_close(l);
            }
        }
    mem_free(text);
}

static void first_step_resumes(void **state) {
    (void)state;
    enum { TOKENS = 500, BATCH = 3, SEQUENCE = 4, ROWS = BATCH * SEQUENCE };
    int32_t *text = make_text(TOKENS);
    const struct dataset d = dataset_of(text, TOKENS);
    for (int N = 1; N <= 3; N++)
        for (size_t first = 1; first <= 40; first += 7) {
            struct loader_setup s = setup_of(&d, BATCH, SEQUENCE, 1, 2);
            s.accumulate = N;
            struct loader *whole = loader_open(&s);
            s.first_step = first;
            struct loader *resumed = loader_open(&s);
            for (size_t number = 0; number < (first + 6) * (size_t)N; number++) {
                const struct batch *a = loader_next(whole);
                if (number < first * (size_t)N) continue;
                const struct batch *b = loader_next(resumed);
                assert_true(b->step == number / (size_t)N && b->part == (int)(number % (size_t)N) && !b->begins);
                assert_memory_equal(a->token, b->token, ROWS * sizeof *a->token);
                assert_memory_equal(a->y, b->y, ROWS * sizeof *a->y);
            }
            loader_close(whole);
            loader_close(resumed);
        }
    mem_free(text);
}

/* One place alone, whatever is drawn. */
static void least_text(void **state) {
    (void)state;
    enum { SEQUENCE = 9 };
    int32_t *text = make_text(SEQUENCE + 1);
    const struct dataset d = dataset_of(text, SEQUENCE + 1);
    struct loader_setup s = setup_of(&d, 4, SEQUENCE, 0, 1);
    struct loader *l = loader_open(&s);
    for (int step = 0; step < 10; step++) {
        const struct batch *b = loader_next(l);
        for (size_t w = 0; w < 4; w++) {
            assert_memory_equal(b->token + w * SEQUENCE, text, SEQUENCE * sizeof *text);
            assert_memory_equal(b->y + w * SEQUENCE, text + 1, SEQUENCE * sizeof *text);
        }
    }
    loader_close(l);
    mem_free(text);
}

static void open_short(void) {
    static const int32_t text[9] = {0};
    const struct dataset d = dataset_of(text, 9);
    struct loader_setup s = setup_of(&d, 1, 9, 0, 1);
    loader_open(&s);
}

static void draw_nowhere(void) {
    text_random_place(9, 9, 1, 0);
}

static void too_short(void **state) {
    (void)state;
    char said[2000];
    assert_int_equal(in_child(open_short, said, sizeof said), EXIT_SYSTEM);
    assert_non_null(strstr(said, "a text of 9 words, too short; text_places says"));
    assert_int_equal(in_child(draw_nowhere, said, sizeof said), EXIT_SYSTEM);
    assert_non_null(strstr(said, "windows of 9 words in a text of 9"));
}

/* -- evaluation ---------------------------------------------------------------------------------------------------- */

/* Every prediction once, in the window it belongs to, over the ranks' shares of the windows; rows that count come
 * first, and only the last window of all is short. */
static void check_sequential(size_t tokens, int size, int batch, int sequence) {
    const size_t predictions = tokens ? tokens - 1 : 0, rows = (size_t)batch * (size_t)sequence;
    const size_t windows = text_sequential_windows(tokens, sequence);
    int32_t *text = make_text(tokens), *token = mem_alloc(rows, sizeof *token, "words");
    int32_t *y = mem_alloc(rows, sizeof *y, "labels");
    unsigned char *seen = mem_zalloc(tokens + 1, 1, "what was seen");
    const struct text_set set = {text, tokens};
    size_t sum = 0;
    assert_true(windows * (size_t)sequence >= predictions);
    assert_true(windows == 0 || (windows - 1) * (size_t)sequence < predictions);
    for (int rank = 0; rank < size; rank++) {
        size_t from, to;
        loader_share(windows, rank, size, &from, &to);
        for (;; from += (size_t)batch) {
            memset(token, 0x55, rows * sizeof *token);
            memset(y, 0x55, rows * sizeof *y);
            const int valid = text_sequential_fill(&set, from, to, batch, sequence, token, y);
            assert_in_range(valid, 0, rows);
            assert_int_equal(valid == 0, from >= to);
            if (valid % sequence) assert_int_equal(from + (size_t)(valid / sequence), windows - 1);
            for (size_t row = 0; row < rows; row++) {
                const size_t at = from * (size_t)sequence + row;
                assert_int_equal(token[row], row < (size_t)valid ? text[at] : 0);
                assert_int_equal(y[row], row < (size_t)valid ? text[at + 1] : 0);
                if (row < (size_t)valid) seen[at]++;
            }
            sum += (size_t)valid;
            if (valid == 0) break;
        }
    }
    for (size_t i = 0; i < predictions; i++) assert_int_equal(seen[i], 1);
    assert_int_equal(sum, predictions);
    mem_free(token);
    mem_free(y);
    mem_free(seen);
    mem_free(text);
}

static void every_prediction_once(void **state) {
    (void)state;
    static const size_t tokens[] = {0, 1, 2, 3, 5, 16, 17, 64, 65, 66, 97, 331};
    static const int batches[] = {1, 2, 5, 8}, sequences[] = {1, 4, 7, 64, 400};
    for (int i = 0; i < SIZES; i++)
        for (int j = 0; j < 4; j++)
            for (int k = 0; k < 5; k++)
                for (size_t t = 0; t < sizeof tokens / sizeof *tokens; t++)
                    check_sequential(tokens[t], sizes[i], batches[j], sequences[k]);
}

static void sampled_windows(void **state) {
    (void)state;
    enum { TOKENS = 100, SEQUENCE = 12 };
    int32_t *text = make_text(TOKENS), token[SEQUENCE], y[SEQUENCE];
    const struct text_set set = {text, TOKENS};
    for (uint64_t j = 0; j < 500; j++) {
        const size_t at = text_sampled_place(TOKENS, SEQUENCE, 5, j);
        text_window_at(&set, at, SEQUENCE, token, y);
        for (int i = 0; i < SEQUENCE; i++) {
            assert_int_equal(token[i], 3 * ((int)at + i) + 1);
            assert_int_equal(y[i], token[i] + 3);
        }
    }
    mem_free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(too_short), /* before anything starts threads */
        cmocka_unit_test(places_fit),
        cmocka_unit_test(places_are_uniform),
        cmocka_unit_test(places_depend_on),
        cmocka_unit_test(the_same_at_any_size),
        cmocka_unit_test(first_step_resumes),
        cmocka_unit_test(least_text),
        cmocka_unit_test(every_prediction_once),
        cmocka_unit_test(sampled_windows),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
