/* Texts to batches: over the ranks every word comes once an epoch, in windows that go on where the last one ended;
 * an evaluation scores every word but the first once, at any number of ranks. */
#include "tests/lib/data_support.h"

#include "data/loader.h"
#include "data/text/text_layout.h"

static const int sizes[] = {1, 2, 3, 4, 5, 7, 8};
enum { SIZES = 7 };

/* A text of `count` tokens, each another: token i is 3 i + 1, so that a place can be told from its token. */
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
    return (struct loader_setup){.data = d, .batch = batch, .rank = rank, .size = size, .sequence = sequence};
}

/* -- how many windows ---------------------------------------------------------------------------------------------- */

/* The definition: the most windows whose labels all lie in the text. */
static void windows_fit(void **state) {
    (void)state;
    for (size_t tokens = 0; tokens < 200; tokens++)
        for (size_t streams = 1; streams <= 12; streams++)
            for (int sequence = 1; sequence <= 12; sequence++) {
                size_t w = 0;
                while ((w + 1) * streams * (size_t)sequence < tokens) w++;
                assert_int_equal(text_windows(tokens, streams, sequence), w);
            }
}

static void least_is_exact(void **state) {
    (void)state;
    for (size_t streams = 1; streams <= 300; streams += 13)
        for (int sequence = 1; sequence <= 40; sequence++) {
            size_t least = text_least(streams, sequence);
            assert_int_equal(text_windows(least, streams, sequence), 1);
            assert_int_equal(text_windows(least - 1, streams, sequence), 0);
        }
}

/* What is too long for any memory is too long for any text; nothing overflows. */
static void huge_sizes(void **state) {
    (void)state;
    assert_true(text_least(SIZE_MAX / 2, 3) == SIZE_MAX);
    assert_true(text_least(SIZE_MAX / 2, 2) == SIZE_MAX);
    assert_int_equal(text_windows(SIZE_MAX - 1, SIZE_MAX / 2, 3), 0);
    assert_int_equal(text_windows(1000000, (size_t)1 << 62, 4), 0); /* their product is 2^64 */
    assert_true(text_windows(SIZE_MAX, 1, 1) == SIZE_MAX - 1);
    assert_int_equal(text_eval_windows((size_t)1 << 40, (size_t)1 << 40, 1), 1);
}

/* -- training ------------------------------------------------------------------------------------------------------ */

/* One epoch and a half: what each row of each rank is, by the formula of the header; how often each place comes. */
static void check_epoch(size_t tokens, int size, int batch, int sequence) {
    size_t streams = (size_t)size * (size_t)batch, length = (size_t)sequence;
    size_t windows = text_windows(tokens, streams, sequence), steps = windows + windows / 2 + 2;
    int32_t *text = make_text(tokens);
    unsigned char *seen = mem_zalloc(tokens, 1, "what was seen");
    const struct dataset d = dataset_of(text, tokens);
    for (int rank = 0; rank < size; rank++) {
        struct loader_setup s = setup_of(&d, batch, sequence, rank, size);
        struct loader *l = loader_open(&s);
        for (size_t step = 0; step < steps; step++) {
            const struct batch *b = loader_next(l);
            assert_int_equal(b->step, step);
            assert_int_equal(b->begins, step % windows == 0);
            assert_true(!b->x && !b->index && !b->bytes.pixels);
            for (size_t t = 0; t < length; t++)
                for (size_t i = 0; i < (size_t)batch; i++) {
                    size_t stream = (size_t)rank * (size_t)batch + i, row = t * (size_t)batch + i;
                    size_t at = stream * windows * length + step % windows * length + t;
                    assert_in_range(at, 0, tokens - 2);
                    assert_int_equal(b->token[row], text[at]);
                    assert_int_equal(b->y[row], text[at + 1]);
                    if (step < windows) seen[at]++;
                }
        }
        loader_close(l);
    }
    size_t used = windows * streams * length;
    for (size_t i = 0; i < tokens; i++) assert_int_equal(seen[i], i < used);
    assert_in_range(tokens - 1 - used, 0, streams * length - 1); /* what is left is no window more */
    mem_free(seen);
    mem_free(text);
}

static void every_word_once(void **state) {
    (void)state;
    static const int batches[] = {1, 3, 8}, sequences[] = {1, 5, 16};
    for (int i = 0; i < SIZES; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 3; k++) {
                size_t least = text_least((size_t)(sizes[i] * batches[j]), sequences[k]), one = least - 1;
                check_epoch(least, sizes[i], batches[j], sequences[k]);
                check_epoch(2 * one, sizes[i], batches[j], sequences[k]); /* one word short of two windows */
                check_epoch(7 * one + one / 2 + 1, sizes[i], batches[j], sequences[k]);
            }
}

/* Column b of a window follows column b of the one before, without a gap, until the streams begin anew. */
static void windows_follow_each_other(void **state) {
    (void)state;
    enum { TOKENS = 997, BATCH = 4, SEQUENCE = 6 };
    int32_t *text = make_text(TOKENS), last[BATCH] = {0};
    const struct dataset d = dataset_of(text, TOKENS);
    struct loader_setup s = setup_of(&d, BATCH, SEQUENCE, 1, 3);
    struct loader *l = loader_open(&s);
    size_t windows = text_windows(TOKENS, 3 * BATCH, SEQUENCE), began = 0;
    assert_int_equal(windows, 13);
    for (size_t step = 0; step < 3 * windows; step++) {
        const struct batch *b = loader_next(l);
        began += b->begins;
        for (int i = 0; i < BATCH; i++) {
            assert_int_equal(b->token[i] == last[i], !b->begins); /* the label before it */
            for (int t = 1; t < SEQUENCE; t++) assert_int_equal(b->token[t * BATCH + i], b->y[(t - 1) * BATCH + i]);
            last[i] = b->y[(SEQUENCE - 1) * BATCH + i];
        }
    }
    assert_int_equal(began, 3);
    loader_close(l);
    mem_free(text);
}

static void first_step_resumes(void **state) {
    (void)state;
    enum { TOKENS = 500, BATCH = 3, SEQUENCE = 4, ROWS = BATCH * SEQUENCE };
    int32_t *text = make_text(TOKENS);
    const struct dataset d = dataset_of(text, TOKENS);
    for (size_t first = 1; first <= 60; first += 7) { /* 20 windows: also in later epochs */
        struct loader_setup s = setup_of(&d, BATCH, SEQUENCE, 1, 2);
        struct loader *whole = loader_open(&s);
        s.first_step = first;
        struct loader *resumed = loader_open(&s);
        for (size_t step = 0; step < first + 25; step++) {
            const struct batch *a = loader_next(whole);
            if (step < first) continue;
            const struct batch *b = loader_next(resumed);
            assert_int_equal(b->step, step);
            assert_int_equal(b->begins, a->begins);
            assert_memory_equal(a->token, b->token, ROWS * sizeof *a->token);
            assert_memory_equal(a->y, b->y, ROWS * sizeof *a->y);
        }
        loader_close(whole);
        loader_close(resumed);
    }
    mem_free(text);
}

/* Windows of a step: those of single steps, each in its turn; an epoch may begin inside a step. */
static void parts_of_a_step(void **state) {
    (void)state;
    enum { TOKENS = 500, BATCH = 3, SEQUENCE = 4, ROWS = BATCH * SEQUENCE, PARTS = 3, FIRST = 8 };
    int32_t *text = make_text(TOKENS);
    const struct dataset d = dataset_of(text, TOKENS);
    struct loader_setup s = setup_of(&d, BATCH, SEQUENCE, 1, 2);
    struct loader *single = loader_open(&s);
    s.accumulate = PARTS;
    struct loader *parts = loader_open(&s);
    s.first_step = FIRST;
    struct loader *resumed = loader_open(&s);
    int inside = 0;
    for (size_t number = 0; number < 60; number++) { /* three epochs of 20 windows */
        const struct batch *a = loader_next(single), *b = loader_next(parts);
        const struct batch *c = number < PARTS * FIRST ? b : loader_next(resumed);
        assert_true(b->step == number / PARTS && b->part == (int)(number % PARTS));
        assert_true(c->step == b->step && c->part == b->part && c->begins == b->begins);
        assert_int_equal(a->begins, b->begins);
        assert_memory_equal(a->token, b->token, ROWS * sizeof *a->token);
        assert_memory_equal(a->y, b->y, ROWS * sizeof *a->y);
        assert_memory_equal(a->token, c->token, ROWS * sizeof *a->token);
        inside += b->begins && b->part > 0;
    }
    assert_int_equal(inside, 2);
    loader_close(single);
    loader_close(parts);
    loader_close(resumed);
    mem_free(text);
}

/* -- evaluation ---------------------------------------------------------------------------------------------------- */

/* Every prediction once over ranks and windows, in its stream and in order; rows that count are the first ones, the
 * others are zeros; after the last window there are none. The ranks share the streams; one that gets none asks for one
 * behind them all, which is empty. */
static void check_evaluation(size_t tokens, int size, size_t streams, int sequence) {
    int32_t *text = make_text(tokens);
    unsigned char *seen = mem_zalloc(tokens + 1, 1, "what was seen");
    const struct text_set set = {text, tokens};
    size_t windows = text_eval_windows(tokens, streams, sequence), predictions = tokens ? tokens - 1 : 0, sum = 0;
    size_t most_rows = (streams / (size_t)size + 1) * (size_t)sequence;
    int32_t *token = mem_alloc(most_rows, sizeof *token, "words"), *y = mem_alloc(most_rows, sizeof *y, "labels");
    int most = 0;
    for (int rank = 0; rank < size; rank++) {
        size_t first, behind;
        loader_share(streams, rank, size, &first, &behind);
        int batch = behind > first ? (int)(behind - first) : 1, rows = batch * sequence;
        if (behind == first) first = streams;
        for (size_t w = 0; w < windows + 2; w++) {
            memset(token, 0x55, (size_t)rows * sizeof *token);
            memset(y, 0x55, (size_t)rows * sizeof *y);
            int valid = text_eval_fill(&set, first, streams, batch, sequence, w, token, y);
            assert_in_range(valid, 0, rows);
            if (w >= windows || first == streams) assert_int_equal(valid, 0);
            if (w + 1 == windows && valid > most) most = valid;
            for (int row = 0; row < rows; row++) {
                size_t from = 0, to = 0, at;
                if (first < streams) loader_share(predictions, (int)first + row % batch, (int)streams, &from, &to);
                at = from + w * (size_t)sequence + (size_t)(row / batch);
                assert_int_equal(row < valid, at < to);
                assert_int_equal(token[row], row < valid ? text[at] : 0);
                assert_int_equal(y[row], row < valid ? text[at + 1] : 0);
                if (row < valid) seen[at]++;
            }
            sum += (size_t)valid;
        }
    }
    for (size_t i = 0; i < predictions; i++) assert_int_equal(seen[i], 1);
    assert_int_equal(sum, predictions);
    assert_int_equal(most > 0, windows > 0); /* no window for nothing */
    assert_int_equal(windows > 0, predictions > 0);
    mem_free(token);
    mem_free(y);
    mem_free(seen);
    mem_free(text);
}

static void every_prediction_once(void **state) {
    (void)state;
    static const size_t tokens[] = {0, 1, 2, 3, 5, 16, 17, 64, 65, 97, 331}, uneven[] = {1, 3, 7, 20};
    static const int batches[] = {1, 2, 5, 8}, sequences[] = {1, 4, 7};
    for (int i = 0; i < SIZES; i++)
        for (int j = 0; j < 4; j++)
            for (int k = 0; k < 3; k++)
                for (size_t t = 0; t < sizeof tokens / sizeof *tokens; t++) {
                    check_evaluation(tokens[t], sizes[i], (size_t)(batches[j] * sizes[i]), sequences[k]);
                    check_evaluation(tokens[t], sizes[i], uneven[j], sequences[k]);
                }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_fit),
        cmocka_unit_test(least_is_exact),
        cmocka_unit_test(huge_sizes),
        cmocka_unit_test(every_word_once),
        cmocka_unit_test(windows_follow_each_other),
        cmocka_unit_test(first_step_resumes),
        cmocka_unit_test(parts_of_a_step),
        cmocka_unit_test(every_prediction_once),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
