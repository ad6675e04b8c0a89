/* sheet.c: see sheet.h. Every picture is taken the way the network gets it, through loader_sample, and turned back to
 * colours from the normalised floats; what is on the sheet is what is trained on. Written with libpng to a temporary
 * name beside the wanted one and renamed. */
#include "data/sheet.h"

#include <errno.h>
#include <math.h>
#include <png.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/out_file.h"
#include "data/font.h"
#include "data/loader.h"

enum { GAP = 10, LINE = FONT_HEIGHT + 3, SIDE_MAX = 32000 };

/* [height][width] RGB. */
struct canvas {
    uint8_t *rgb;
    int width, height;
};

struct colour {
    uint8_t r, g, b;
};

static const struct colour paper = {250, 250, 248}, ink = {32, 33, 36}, pale = {128, 130, 134};

static void dot(struct canvas *c, int x, int y, int size, struct colour colour) {
    for (int j = y; j < y + size && j < c->height; j++)
        for (int i = x; i < x + size && i < c->width; i++) {
            uint8_t *at = c->rgb + 3 * ((size_t)j * (size_t)c->width + (size_t)i);
            at[0] = colour.r;
            at[1] = colour.g;
            at[2] = colour.b;
        }
}

/* Text with its top left corner at (x, y), cut off at `limit` pixels. */
static void write_text(struct canvas *c, int x, int y, int scale, int limit, struct colour colour, const char *text) {
    int end = x + limit;
    for (; *text && x + FONT_WIDTH * scale <= end; text++, x += FONT_ADVANCE * scale) {
        const uint8_t *columns = font_glyph(*text);
        for (int i = 0; i < FONT_WIDTH; i++)
            for (int j = 0; j < FONT_HEIGHT; j++)
                if (columns[i] >> j & 1) dot(c, x + i * scale, y + j * scale, scale, colour);
    }
}

static uint8_t to_byte(float value, float mean, float std) {
    long v = lrintf((value * std + mean) * 255.0f);
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

/* x: [channels][height][width], normalised; one channel is shown as grey. */
static void draw_image(struct canvas *c, const struct dataset *d, const float *x, int left, int top, int zoom) {
    size_t plane = (size_t)d->height * (size_t)d->width;
    for (int j = 0; j < d->height; j++)
        for (int i = 0; i < d->width; i++) {
            uint8_t v[3];
            for (int k = 0; k < 3; k++) {
                int channel = k < d->channels ? k : 0;
                v[k] = to_byte(x[(size_t)channel * plane + (size_t)j * (size_t)d->width + (size_t)i], d->mean[channel],
                               d->std[channel]);
            }
            dot(c, left + i * zoom, top + j * zoom, zoom, (struct colour){v[0], v[1], v[2]});
        }
}

/* -- layout -------------------------------------------------------------------------------------------------------- */

struct plan {
    int scale;                   /* of the text */
    int cell_width, cell_height; /* picture and its two lines, without the gap */
    int head;                    /* height of the title */
};

static void plan_sheet(const struct sheet_setup *s, struct plan *p) {
    const struct dataset *d = s->data;
    int longest = 0;
    p->scale = s->zoom < 5 ? 1 : s->zoom / 3;
    for (int i = 0; i < d->classes; i++) {
        int length = (int)strlen(d->class_names[i]);
        if (length > longest) longest = length;
    }
    int text = longest * FONT_ADVANCE * p->scale;
    p->cell_width = d->width * s->zoom > text ? d->width * s->zoom : text;
    p->cell_height = d->height * s->zoom + 2 * LINE * p->scale + 2;
    p->head = LINE * p->scale + GAP;
}

static void draw_cell(struct canvas *c, const struct sheet_setup *s, const struct plan *p, uint32_t sample, int cell,
                      float *x) {
    const struct dataset *d = s->data;
    const struct image_set *set = s->test ? &d->test : &d->train;
    int left = GAP + cell % s->columns * (p->cell_width + GAP);
    int top = GAP + p->head + cell / s->columns * (p->cell_height + GAP);
    int below = top + d->height * s->zoom + 4;
    char number[24];
    snprintf(number, sizeof number, "#%u", sample);
    loader_sample(d, set, sample, s->augment && !s->test, s->seed, s->epoch, x);
    draw_image(c, d, x, left, top, s->zoom);
    write_text(c, left, below, p->scale, p->cell_width, ink, d->class_names[set->labels[sample]]);
    write_text(c, left, below + LINE * p->scale, p->scale, p->cell_width, pale, number);
}

/* The order: training as one rank meets it in the epoch, test as it is evaluated. */
static void draw_sheet(struct canvas *c, const struct sheet_setup *s, const struct plan *p) {
    const struct dataset *d = s->data;
    size_t count = s->test ? d->test.count : d->train.count;
    char title[256], of_epoch[64] = "";
    uint32_t *order = mem_alloc(count, sizeof *order, "the order of the samples");
    float *x = mem_alloc((size_t)d->channels * (size_t)d->height * (size_t)d->width, sizeof *x, "a sample");
    for (size_t i = 0; i < count; i++) order[i] = (uint32_t)i;
    if (!s->test) loader_permutation(s->seed, s->epoch, (uint32_t)count, order);
    if (!s->test)
        snprintf(of_epoch, sizeof of_epoch, s->augment ? ", augmented, epoch %zu" : ", not augmented, epoch %zu",
                 s->epoch);
    snprintf(title, sizeof title, "%s: %s samples as the network sees them%s", d->ops->name,
             s->test ? "test" : "training", of_epoch);
    write_text(c, GAP, GAP, p->scale, c->width - 2 * GAP, ink, title);
    for (int cell = 0; cell < s->columns * s->rows; cell++) draw_cell(c, s, p, order[cell], cell, x);
    mem_free(x);
    mem_free(order);
}

/* -- the file ------------------------------------------------------------------------------------------------------ */

static void png_failed(png_structp png, png_const_charp text) {
    struct err *why = png_get_error_ptr(png);
    err_set(why, "%s", text);
    png_longjmp(png, 1);
}

static void png_warned(png_structp png, png_const_charp text) {
    (void)png;
    (void)text;
}

/* No local variable changes between setjmp and longjmp, so none is lost. */
static bool encode(FILE *file, const struct canvas *c, struct err *why) {
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, why, png_failed, png_warned);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    if (!info) die("no memory for libpng");
    if (setjmp(png_jmpbuf(png))) {
        png_destroy_write_struct(&png, &info);
        return false;
    }
    png_init_io(png, file);
    png_set_IHDR(png, info, (png_uint_32)c->width, (png_uint_32)c->height, 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    for (size_t y = 0; y < (size_t)c->height; y++) png_write_row(png, c->rgb + 3 * y * (size_t)c->width);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    return true;
}

static bool write_file(const struct canvas *c, const char *path, struct err *e) {
    struct err why = {0};
    struct out_file out;
    if (!out_file_open(&out, path, "--png", e)) return false;
    errno = 0;
    if (encode(out.file, c, &why)) return out_file_close(&out, e);
    int reason = errno; /* libpng says no more than that something went wrong */
    out_file_abandon(&out);
    return err_system(e, "cannot write %s: %s", path, reason ? strerror(reason) : why.text);
}

bool sheet_write(const struct sheet_setup *setup, const char *path, struct err *e) {
    const struct dataset *d = setup->data;
    size_t count = setup->test ? d->test.count : d->train.count;
    struct plan p;
    if (setup->columns < 1 || setup->rows < 1 || setup->zoom < 1)
        return err_set(e, "a sheet of %d x %d pictures at zoom %d cannot be drawn; each must be at least 1",
                       setup->columns, setup->rows, setup->zoom);
    if ((uint64_t)setup->columns * (uint64_t)setup->rows > count)
        return err_set(e, "a sheet of %d x %d pictures is more than the %zu samples there are; ask for fewer",
                       setup->columns, setup->rows, count);
    if (setup->zoom > SIDE_MAX / (d->width > d->height ? d->width : d->height))
        return err_set(e, "zoom %d is too large; 4 is usual", setup->zoom);
    plan_sheet(setup, &p);
    int64_t width = GAP + (int64_t)setup->columns * (p.cell_width + GAP);
    int64_t height = GAP + p.head + (int64_t)setup->rows * (p.cell_height + GAP);
    if (width > SIDE_MAX || height > SIDE_MAX)
        return err_set(
            e, "the sheet would be %lld x %lld pixels; at most %d each way: ask for fewer pictures or less zoom",
            (long long)width, (long long)height, SIDE_MAX);
    struct canvas c = {.width = (int)width, .height = (int)height};
    c.rgb = mem_alloc((size_t)width * (size_t)height, 3, "a contact sheet");
    for (size_t i = 0; i < (size_t)width * (size_t)height; i++) memcpy(c.rgb + 3 * i, &paper, 3);
    draw_sheet(&c, setup, &p);
    bool good = write_file(&c, path, e);
    mem_free(c.rgb);
    return good;
}
