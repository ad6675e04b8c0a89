/* canvas.c: see canvas.h. The file is written with libpng to a temporary name beside the wanted one and renamed. */
#include "data/sheets/canvas.h"

#include <errno.h>
#include <png.h>
#include <stdio.h>
#include <string.h>

#include "base/files/out_file.h"
#include "base/mem.h"

static const struct colour paper = {250, 250, 248};
const struct colour canvas_ink = {32, 33, 36}, canvas_pale = {128, 130, 134};

bool canvas_open(struct canvas *c, int64_t width, int64_t height, struct err *e) {
    if (width > CANVAS_SIDE_MAX || height > CANVAS_SIDE_MAX)
        return err_set(
            e, "the sheet would be %lld x %lld pixels; at most %d each way: ask for fewer pictures or less zoom",
            (long long)width, (long long)height, CANVAS_SIDE_MAX);
    const size_t pixels = (size_t)width * (size_t)height;
    *c = (struct canvas){.width = (int)width, .height = (int)height};
    c->rgb = mem_alloc(pixels, 3, "a contact sheet");
    for (size_t i = 0; i < pixels; i++) memcpy(c->rgb + 3 * i, &paper, 3);
    return true;
}

void canvas_close(struct canvas *c) {
    mem_free(c->rgb);
}

void canvas_dot(struct canvas *c, int x, int y, int size, struct colour colour) {
    for (int j = y; j < y + size && j < c->height; j++)
        for (int i = x; i < x + size && i < c->width; i++) {
            uint8_t *at = c->rgb + 3 * ((size_t)j * (size_t)c->width + (size_t)i);
            at[0] = colour.r;
            at[1] = colour.g;
            at[2] = colour.b;
        }
}

void canvas_text(struct canvas *c, int x, int y, int scale, int limit, struct colour colour, const char *text) {
    int end = x + limit;
    for (; *text && x + FONT_WIDTH * scale <= end; text++, x += FONT_ADVANCE * scale) {
        const uint8_t *columns = font_glyph(*text);
        for (int i = 0; i < FONT_WIDTH; i++)
            for (int j = 0; j < FONT_HEIGHT; j++)
                if (columns[i] >> j & 1) canvas_dot(c, x + i * scale, y + j * scale, scale, colour);
    }
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

bool canvas_write(const struct canvas *c, const char *path, struct err *e) {
    struct err why = {0};
    struct out_file out;
    if (!out_file_open(&out, path, "--png", e)) return false;
    errno = 0;
    if (encode(out.file, c, &why)) return out_file_close(&out, e);
    int reason = errno; /* libpng says no more than that something went wrong */
    out_file_abandon(&out);
    return err_system(e, "cannot write %s: %s", path, reason ? strerror(reason) : why.text);
}
