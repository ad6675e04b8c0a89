/* sheet_speech.c: see sheet_speech.h. */
#include "data/sheets/sheet_speech.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "data/loader.h"
#include "data/sheets/canvas.h"
#include "data/speech/speech_batch.h"
#include "data/speech/transcript.h"

/* What is on the sheet. */
struct plan {
    const struct sheet_setup *setup;
    const struct speech_set *set;
    const uint32_t *shown; /* [columns * rows] numbers */
    struct speech_changing change;
    float *x;   /* room for a spectrogram */
    char *text; /* of a transcript */
    int scale;  /* of the text */
    int cell_width, cell_height, head;
};

/* Most values are a little below their mean, 0, and the loudest ones some deviations above it: by the root of where
 * they lie between -0.5 and 5, over five colours. */
void sheet_speech_colour(float value, uint8_t rgb[3]) {
    static const float colour[5][3] = {{0, 0, 8}, {84, 16, 110}, {188, 56, 84}, {248, 142, 10}, {252, 255, 164}};
    const float place = (value + 0.5f) / 5.5f, at = 4 * sqrtf(place > 0 ? place < 1 ? place : 1 : 0);
    int low = (int)at;
    if (low > 3) low = 3;
    for (int i = 0; i < 3; i++)
        rgb[i] = (uint8_t)lrintf(colour[low][i] + (at - (float)low) * (colour[low + 1][i] - colour[low][i]));
}

static void draw_spectrogram(struct canvas *c, const struct plan *p, const struct speech_input *in, int left, int top) {
    const int zoom = p->setup->zoom;
    uint8_t rgb[3];
    speech_input_fill(p->set, &p->change, in, in->frames, p->x);
    for (int b = SPECTROGRAM_BINS - 1, y = top; b >= 0; b--, y += zoom)
        for (size_t t = 0; t < in->frames; t++) {
            sheet_speech_colour(p->x[(size_t)b * in->frames + t], rgb);
            canvas_dot(c, left + (int)t * zoom, y, zoom, (struct colour){rgb[0], rgb[1], rgb[2]});
        }
}

static void draw_cell(struct canvas *c, const struct plan *p, int cell) {
    const struct sheet_setup *s = p->setup;
    const struct speech_input in = speech_input_of(p->set, &p->change, p->shown[cell]);
    const int left = CANVAS_GAP + cell % s->columns * (p->cell_width + CANVAS_GAP);
    const int top = CANVAS_GAP + p->head + cell / s->columns * (p->cell_height + CANVAS_GAP);
    const int below = top + SPECTROGRAM_BINS * s->zoom + 4;
    char length[96], changed[40] = "";
    if (p->change.spectrogram)
        snprintf(changed, sizeof changed, ", tempo %.2f, %+.1f dB", in.change.tempo, 20 * log10(in.change.gain));
    snprintf(length, sizeof length, "#%u: %.2f s, %zu frames%s", p->shown[cell],
             (double)(in.frames - 1) * SPECTROGRAM_STRIDE / SPECTROGRAM_RATE, in.frames, changed);
    transcript_decode(p->set->label + in.u->label, in.u->labels, p->text);
    draw_spectrogram(c, p, &in, left, top);
    canvas_text(c, left, below, p->scale, p->cell_width, canvas_ink, p->text);
    canvas_text(c, left, below + CANVAS_LINE * p->scale, p->scale, p->cell_width, canvas_pale, length);
}

static void draw_sheet(struct canvas *c, const struct plan *p) {
    const struct sheet_setup *s = p->setup;
    char title[192], of_epoch[64] = "";
    if (!s->test)
        snprintf(of_epoch, sizeof of_epoch, s->augment ? ", augmented, epoch %zu" : ", not augmented, epoch %zu",
                 s->epoch);
    snprintf(title, sizeof title, "%s: %s utterances as the network hears them, up to 8 kHz%s", s->data->ops->name,
             s->test ? "test" : "training", of_epoch);
    canvas_text(c, CANVAS_GAP, CANVAS_GAP, p->scale, c->width - 2 * CANVAS_GAP, canvas_ink, title);
    for (int cell = 0; cell < s->columns * s->rows; cell++) draw_cell(c, p, cell);
}

/* Cells are as large as the largest one; saturating, as the canvas refuses what is far too large. */
static void plan_sheet(struct plan *p, int64_t *width, int64_t *height) {
    const struct sheet_setup *s = p->setup;
    int64_t widest = 0;
    p->scale = s->zoom;
    for (int i = 0; i < s->columns * s->rows; i++) {
        const struct speech_input in = speech_input_of(p->set, &p->change, p->shown[i]);
        const int64_t picture = (int64_t)in.frames * s->zoom, text = (int64_t)in.u->labels * FONT_ADVANCE * p->scale,
                      length = (p->change.spectrogram ? 46 : 26) * FONT_ADVANCE * p->scale;
        if (picture > widest) widest = picture;
        if (text > widest) widest = text;
        if (length > widest) widest = length;
    }
    if (widest > CANVAS_SIDE_MAX) widest = CANVAS_SIDE_MAX;
    p->cell_width = (int)widest;
    p->cell_height = SPECTROGRAM_BINS * s->zoom + 2 * CANVAS_LINE * p->scale + 4;
    p->head = CANVAS_LINE * p->scale + CANVAS_GAP;
    *width = CANVAS_GAP + s->columns * (widest + CANVAS_GAP);
    *height = CANVAS_GAP + p->head + (int64_t)s->rows * (p->cell_height + CANVAS_GAP);
}

static bool draw(struct plan *p, const char *path, struct err *e) {
    int64_t width, height;
    struct canvas c;
    plan_sheet(p, &width, &height);
    if (!canvas_open(&c, width, height, e)) return false;
    draw_sheet(&c, p);
    const bool good = canvas_write(&c, path, e);
    canvas_close(&c);
    return good;
}

bool sheet_speech_write(const struct sheet_setup *setup, const char *path, struct err *e) {
    const struct dataset *d = setup->data;
    const struct speech_set *set = setup->test ? &d->test_speech : &d->train_speech;
    if (setup->columns < 1 || setup->rows < 1 || setup->zoom < 1)
        return err_set(e, "a sheet of %d x %d pictures at zoom %d cannot be drawn; each must be at least 1",
                       setup->columns, setup->rows, setup->zoom);
    if ((uint64_t)setup->columns * (uint64_t)setup->rows > set->count)
        return err_set(e, "a sheet of %d x %d pictures is more than the %zu utterances there are; ask for fewer",
                       setup->columns, setup->rows, set->count);
    if (setup->zoom > CANVAS_SIDE_MAX / SPECTROGRAM_BINS)
        return err_set(e, "zoom %d is too large; 2 is usual", setup->zoom);
    uint32_t *shown = mem_alloc(set->count, sizeof *shown, "the order of the utterances");
    char *text = mem_alloc((size_t)d->label_stride + 1, 1, "a transcript");
    if (!setup->test) loader_permutation(setup->seed, setup->epoch, (uint32_t)set->count, shown);
    for (size_t i = 0; i < set->count; i++) shown[i] = set->by_length[setup->test ? i : shown[i]];
    struct plan p = {.setup = setup, .set = set, .shown = shown, .text = text};
    const bool changed = setup->augment && !setup->test;
    if (changed) p.change = (struct speech_changing){spectrogram_open(), setup->seed, setup->epoch};
    p.x = mem_alloc(SPECTROGRAM_BINS * speech_longest(set, changed), sizeof *p.x, "a spectrogram");
    const bool good = draw(&p, path, e);
    spectrogram_close(p.change.spectrogram);
    mem_free(p.x);
    mem_free(text);
    mem_free(shown);
    return good;
}
