/* The contact sheet: a PNG that libpng reads, of the right size, with the right pictures; nothing left on failure. */
#include "tests/lib/data_support.h"

#include <png.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "data/loader.h"
#include "data/sheets/font.h"
#include "data/sheets/sheet.h"

enum { GAP = 10, HEAD = 11 + 10 };

struct picture {
    png_image info;
    uint8_t *rgb;
};

static void read_png(const char *path, struct picture *p) {
    memset(&p->info, 0, sizeof p->info);
    p->info.version = PNG_IMAGE_VERSION;
    assert_int_equal(png_image_begin_read_from_file(&p->info, path), 1);
    p->info.format = PNG_FORMAT_RGB;
    p->rgb = mem_alloc(PNG_IMAGE_SIZE(p->info), 1, "a picture");
    assert_int_equal(png_image_finish_read(&p->info, NULL, p->rgb, 0, NULL), 1);
}

/* Does the picture at (left, top), enlarged by zoom, show these pixels? Normalising and back costs no bit. */
static void expect_image(const struct picture *p, size_t left, size_t top, int zoom, const uint8_t *pixels) {
    for (size_t y = 0; y < 32 * (size_t)zoom; y++)
        for (size_t x = 0; x < 32 * (size_t)zoom; x++)
            for (size_t c = 0; c < 3; c++)
                assert_int_equal(p->rgb[3 * ((top + y) * p->info.width + left + x) + c],
                                 pixels[c * 1024 + y / (size_t)zoom * 32 + x / (size_t)zoom]);
}

static size_t dark(const struct picture *p, size_t left, size_t top, size_t width, size_t height) {
    size_t count = 0;
    for (size_t y = top; y < top + height; y++)
        for (size_t x = left; x < left + width; x++) count += p->rgb[3 * (y * p->info.width + x)] < 140;
    return count;
}

static void shows_the_samples(void **state) {
    const struct dataset *d = *state;
    char *dir = make_directory(), *path = mem_printf("%s/sheet.png", dir);
    struct err e = {0};
    uint32_t order[60];
    size_t cell_width = 14 * FONT_ADVANCE, cell_height = 64 + 2 * 11 + 2; /* "coarse columns" is wider than 64 */
    struct sheet_setup s = {.data = d, .seed = 9, .columns = 5, .rows = 3, .zoom = 2};
    for (int test = 0; test < 2; test++) {
        struct picture p;
        s.test = test;
        assert_true(sheet_write(&s, path, &e));
        assert_int_equal(entries_in(dir), 1);
        read_png(path, &p);
        assert_int_equal(p.info.width, GAP + 5 * (cell_width + GAP));
        assert_int_equal(p.info.height, GAP + HEAD + 3 * (cell_height + GAP));
        loader_permutation(9, 0, 60, order);
        for (uint32_t cell = 0; cell < 15; cell++) {
            size_t left = GAP + cell % 5 * (cell_width + GAP), top = GAP + HEAD + cell / 5 * (cell_height + GAP);
            const uint8_t *pixels =
                test ? d->test.pixels + cell * IMAGE : d->train.pixels + order[cell] * (size_t)IMAGE;
            expect_image(&p, left, top, 2, pixels);
            assert_true(dark(&p, left, top + 68, cell_width, 8) > 20); /* the name */
            assert_true(dark(&p, left, top + 79, cell_width, 8) > 10); /* the number */
        }
        assert_true(dark(&p, GAP, GAP, 200, 8) > 100); /* the title */
        mem_free(p.rgb);
    }
    mem_free(path);
    remove_tree(dir);
}

static void shows_the_augmentation(void **state) {
    const struct dataset *d = *state;
    char *dir = make_directory(), *path = mem_printf("%s/sheet.png", dir);
    struct err e = {0};
    struct picture p;
    uint32_t order[60];
    float x[IMAGE];
    uint8_t pixels[IMAGE];
    struct sheet_setup s = {.data = d, .seed = 9, .columns = 1, .rows = 1, .zoom = 4, .augment = true};
    assert_true(sheet_write(&s, path, &e));
    read_png(path, &p);
    loader_permutation(9, 0, 60, order);
    loader_sample(d, &d->train, order[0], true, 9, 0, x);
    for (int i = 0; i < IMAGE; i++) pixels[i] = (uint8_t)((x[i] * d->std[0] + d->mean[0]) * 255 + 0.5f);
    expect_image(&p, GAP, GAP + HEAD, 4, pixels);
    mem_free(p.rgb);
    mem_free(path);
    remove_tree(dir);
}

static void refuses(const struct dataset *d, int columns, int rows, int zoom, const char *says) {
    char *dir = make_directory(), *path = mem_printf("%s/sheet.png", dir);
    struct err e = {0};
    struct sheet_setup s = {.data = d, .columns = columns, .rows = rows, .zoom = zoom};
    assert_false(sheet_write(&s, path, &e));
    assert_says(&e, says);
    assert_int_equal(entries_in(dir), 0);
    mem_free(path);
    remove_tree(dir);
}

static void impossible_sheets(void **state) {
    refuses(*state, 0, 1, 1, "at least 1");
    refuses(*state, 1, -1, 1, "at least 1");
    refuses(*state, 1, 1, 0, "at least 1");
    refuses(*state, 61, 1, 1, "60 samples");
    refuses(*state, 2147483647, 2147483647, 1, "60 samples");
    refuses(*state, 1, 1, 2147483647, "too large");
    refuses(*state, 60, 1, 100, "at most 32000");
}

static void nothing_is_left_on_failure(void **state) {
    char *dir = make_directory(), *taken = mem_printf("%s/taken", dir), *inside = mem_printf("%s/taken/x", dir);
    struct err e = {0};
    struct sheet_setup s = {.data = *state, .columns = 3, .rows = 2, .zoom = 2};
    assert_false(sheet_write(&s, "/nowhere/at/all/sheet.png", &e));
    assert_says(&e, "cannot write /nowhere/at/all/sheet.png: No such file or directory");
    assert_int_equal(mkdir(taken, 0777), 0); /* a directory where the file should be: only the rename fails */
    assert_int_equal(mkdir(inside, 0777), 0);
    memset(&e, 0, sizeof e);
    assert_false(sheet_write(&s, taken, &e));
    assert_says(&e, "cannot write");
    assert_int_equal(entries_in(dir), 1);
    memset(&e, 0, sizeof e);
    struct rlimit usual, small;
    char *path = mem_printf("%s/full.png", dir);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &usual), 0);
    small = usual;
    small.rlim_cur = 100;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    bool written = sheet_write(&s, path, &e);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &usual), 0);
    assert_false(written);
    assert_says(&e, "File too large");
    assert_int_equal(entries_in(dir), 1);
    mem_free(path);
    mem_free(taken);
    mem_free(inside);
    remove_tree(dir);
}

static void replaces_the_old_one(void **state) {
    char *dir = make_directory(), *path = mem_printf("%s/sheet.png", dir);
    struct err e = {0};
    struct picture p;
    struct sheet_setup s = {.data = *state, .columns = 1, .rows = 1, .zoom = 1};
    write_bytes(dir, "sheet.png", "old", 3);
    assert_true(sheet_write(&s, path, &e));
    read_png(path, &p);
    mem_free(p.rgb);
    mem_free(path);
    remove_tree(dir);
}

/* All printable characters look different from one another. */
static void font(void **state) {
    (void)state;
    for (char a = ' '; a <= '~'; a++)
        for (char b = ' '; b < a; b++) assert_memory_not_equal(font_glyph(a), font_glyph(b), FONT_WIDTH);
    assert_ptr_equal(font_glyph('\n'), font_glyph('?'));
    assert_ptr_equal(font_glyph((char)0xe9), font_glyph('?'));
}

static struct dataset shared;
static void *shared_memory;

static int open_set(void **state) {
    struct err e = {0};
    shared_memory = load_set(&dataset_synthetic, "60x60", 1, &shared, &e);
    *state = &shared;
    return shared_memory ? 0 : -1;
}

static int close_set(void **state) {
    (void)state;
    mem_free(shared_memory);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shows_the_samples),    cmocka_unit_test(shows_the_augmentation),
        cmocka_unit_test(impossible_sheets),    cmocka_unit_test(nothing_is_left_on_failure),
        cmocka_unit_test(replaces_the_old_one), cmocka_unit_test(font),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, open_set, close_set);
}
