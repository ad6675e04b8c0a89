/* sheet.c: see sheet.h. Every picture is taken the way the network gets it, through loader_sample, and turned back to
 * colours from the normalised floats; what is on the sheet is what is trained on. */
#include "data/sheets/sheet.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "data/loader.h"
#include "data/sheets/canvas.h"

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
            canvas_dot(c, left + i * zoom, top + j * zoom, zoom, (struct colour){v[0], v[1], v[2]});
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
    p->cell_height = d->height * s->zoom + 2 * CANVAS_LINE * p->scale + 2;
    p->head = CANVAS_LINE * p->scale + CANVAS_GAP;
}

static void draw_cell(struct canvas *c, const struct sheet_setup *s, const struct plan *p, uint32_t sample, int cell,
                      float *x) {
    const struct dataset *d = s->data;
    const struct image_set *set = s->test ? &d->test : &d->train;
    int left = CANVAS_GAP + cell % s->columns * (p->cell_width + CANVAS_GAP);
    int top = CANVAS_GAP + p->head + cell / s->columns * (p->cell_height + CANVAS_GAP);
    int below = top + d->height * s->zoom + 4;
    char number[24];
    snprintf(number, sizeof number, "#%u", sample);
    loader_sample(d, set, sample, s->augment && !s->test, s->seed, s->epoch, x);
    draw_image(c, d, x, left, top, s->zoom);
    canvas_text(c, left, below, p->scale, p->cell_width, canvas_ink, d->class_names[set->labels[sample]]);
    canvas_text(c, left, below + CANVAS_LINE * p->scale, p->scale, p->cell_width, canvas_pale, number);
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
    canvas_text(c, CANVAS_GAP, CANVAS_GAP, p->scale, c->width - 2 * CANVAS_GAP, canvas_ink, title);
    for (int cell = 0; cell < s->columns * s->rows; cell++) draw_cell(c, s, p, order[cell], cell, x);
    mem_free(x);
    mem_free(order);
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
    if (setup->zoom > CANVAS_SIDE_MAX / (d->width > d->height ? d->width : d->height))
        return err_set(e, "zoom %d is too large; 4 is usual", setup->zoom);
    plan_sheet(setup, &p);
    int64_t width = CANVAS_GAP + (int64_t)setup->columns * (p.cell_width + CANVAS_GAP);
    int64_t height = CANVAS_GAP + p.head + (int64_t)setup->rows * (p.cell_height + CANVAS_GAP);
    struct canvas c;
    if (!canvas_open(&c, width, height, e)) return false;
    draw_sheet(&c, setup, &p);
    const bool good = canvas_write(&c, path, e);
    canvas_close(&c);
    return good;
}
