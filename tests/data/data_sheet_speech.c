/* The sheet of spectrograms: a PNG of the right size with every value in its place and colour, low frequencies below;
 * the order is that of a loader whose batches are of one, of the test that of the evaluation. */
#include "tests/lib/data_speech_support.h"

#include <png.h>

#include "data/loader.h"
#include "data/sheets/canvas.h"
#include "data/sheets/sheet_speech.h"

enum { TRAIN = 9, TEST = 4, BINS = SPECTROGRAM_BINS };

static char *dir;

static size_t recording(int i, char text[32]) {
    snprintf(text, 32, "%.*s", 1 + i % 5, "SAY IT");
    return (size_t)(2000 + 1700 * i % 4700);
}

static int open_set(void **state) {
    return recordings_open(state, TRAIN, TEST, recording, &dir);
}

static int close_set(void **state) {
    return recordings_close(state, dir);
}

static void expect_picture(const png_image *info, const uint8_t *rgb, size_t left, size_t top, int zoom, const float *x,
                           size_t frames) {
    for (size_t b = 0; b < BINS; b++)
        for (size_t t = 0; t < frames; t++)
            for (size_t corner = 0; corner < 2; corner++) {
                const size_t within = corner * (size_t)(zoom - 1);
                const size_t row = top + (BINS - 1 - b) * (size_t)zoom + within,
                             column = left + t * (size_t)zoom + within;
                uint8_t colour[3];
                sheet_speech_colour(x[b * frames + t], colour);
                assert_memory_equal(rgb + 3 * (row * info->width + column), colour, 3);
            }
}

static void check_sheet(const struct dataset *d, const struct sheet_setup *s, const char *path) {
    struct err e = {0};
    png_image info = {.version = PNG_IMAGE_VERSION};
    const size_t widest =
        (s->augment ? 46u : 26u) * FONT_ADVANCE * (size_t)s->zoom; /* of the second line: all utterances are shorter */
    const size_t cell[2] = {widest + CANVAS_GAP, (BINS + 2 * CANVAS_LINE) * (size_t)s->zoom + 4 + CANVAS_GAP};
    if (!sheet_speech_write(s, path, &e)) fail_msg("%s", e.text);
    assert_int_equal(png_image_begin_read_from_file(&info, path), 1);
    info.format = PNG_FORMAT_RGB;
    uint8_t *rgb = mem_alloc(PNG_IMAGE_SIZE(info), 1, "a picture");
    assert_int_equal(png_image_finish_read(&info, NULL, rgb, 0, NULL), 1);
    const size_t head = CANVAS_LINE * (size_t)s->zoom + 2 * CANVAS_GAP;
    assert_int_equal(info.width, CANVAS_GAP + (size_t)s->columns * cell[0]);
    assert_int_equal(info.height, head + (size_t)s->rows * cell[1]);
    struct loader *l = loader_open(&(struct loader_setup){
        .data = d, .batch = 1, .size = 1, .seed = s->seed, .first_step = s->epoch * TRAIN, .augment = s->augment});
    for (size_t i = 0; i < (size_t)(s->columns * s->rows); i++) {
        const size_t left = CANVAS_GAP + i % (size_t)s->columns * cell[0],
                     top = head + i / (size_t)s->columns * cell[1];
        const struct batch *b = loader_next(l);
        if (s->test) {
            const struct utterance *u = &d->test_speech.utterance[d->test_speech.by_length[i]];
            expect_picture(&info, rgb, left, top, s->zoom, d->test_speech.feature + u->feature, u->frames);
        } else {
            expect_picture(&info, rgb, left, top, s->zoom, b->x, (size_t)b->frames);
        }
    }
    loader_close(l);
    mem_free(rgb);
}

static void shows_the_utterances(void **state) {
    const struct dataset *d = need_recordings(state, "shows_the_utterances");
    char *path = mem_printf("%s/sheet.png", dir);
    for (int zoom = 1; zoom <= 2; zoom++)
        for (size_t epoch = 0; epoch < 3; epoch++)
            check_sheet(
                d,
                &(struct sheet_setup){
                    .data = d, .augment = epoch != 1, .seed = 7, .epoch = epoch, .columns = 3, .rows = 2, .zoom = zoom},
                path);
    check_sheet(d, &(struct sheet_setup){.data = d, .test = true, .columns = 2, .rows = 2, .zoom = 1}, path);
    mem_free(path);
}

static void colours(void **state) {
    (void)state;
    uint8_t rgb[3];
    int before = -1;
    for (float value = -3; value < 12; value += 0.1f) { /* brighter and brighter */
        sheet_speech_colour(value, rgb);
        const int now = 3 * rgb[0] + 6 * rgb[1] + rgb[2];
        assert_true(now >= before);
        before = now;
    }
    sheet_speech_colour(-9, rgb);
    assert_true(rgb[0] == 0 && rgb[1] == 0 && rgb[2] == 8);
    sheet_speech_colour(99, rgb);
    assert_true(rgb[0] == 252 && rgb[1] == 255 && rgb[2] == 164);
}

static void refusals(void **state) {
    const struct dataset *d = need_recordings(state, "refusals");
    char *path = mem_printf("%s/none.png", dir);
    static const struct {
        int columns, rows, zoom;
        const char *says;
    } cases[] = {{5, 2, 1, "more than the 9 utterances there are"},
                 {0, 2, 1, "each must be at least 1"},
                 {1, 1, 300, "zoom 300 is too large"},
                 {3, 1, 100, "pixels; at most 32000 each way"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err e = {0};
        const struct sheet_setup s = {
            .data = d, .columns = cases[i].columns, .rows = cases[i].rows, .zoom = cases[i].zoom};
        assert_false(sheet_speech_write(&s, path, &e));
        assert_says(&e, cases[i].says);
        assert_int_not_equal(access(path, F_OK), 0);
    }
    mem_free(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(shows_the_utterances), cmocka_unit_test(colours),
                                       cmocka_unit_test(refusals)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, open_set, close_set);
}
