/* model_layout.c: see model_layout.h. */
#include "cli/export/model_layout.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static const char parameter[] = "parameter", statistic[] = "state";

/* -- writing --------------------------------------------------------------------------------------------------- */

static void add(char **text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(char **text, const char *format, ...) {
    char piece[64];
    va_list args;
    va_start(args, format);
    vsnprintf(piece, sizeof piece, format, args);
    va_end(args);
    char *longer = mem_printf("%s%s", *text, piece);
    mem_free(*text);
    *text = longer;
}

static void add_slice(char **text, const char *kind, const struct slice *s) {
    add(text, "%s %s", kind, s->name);
    for (int i = 0; i < s->dims; i++) add(text, " %zu", s->dim[i]);
    add(text, "\n");
}

static void add_channels(char **text, const char *key, const float *value, int channels) {
    add(text, "%s", key);
    for (int c = 0; c < channels; c++) add(text, " %.9g", (double)value[c]);
    add(text, "\n");
}

char *model_layout_text(const struct arena *a, const struct dataset *d) {
    char *text = mem_printf("%s", "");
    if (d->ops->kind == DATA_IMAGES) {
        add(&text, "input %d %d %d\n", d->channels, d->height, d->width);
        add_channels(&text, "mean", d->mean, d->channels);
        add_channels(&text, "std", d->std, d->channels);
    }
    add(&text, "classes %d\n", d->classes);
    for (size_t i = 0; i < a->slices; i++) add_slice(&text, parameter, &a->slice[i]);
    for (size_t i = 0; i < a->state_slices; i++) add_slice(&text, statistic, &a->state_slice[i]);
    return text;
}

/* -- reading --------------------------------------------------------------------------------------------------- */

/* Behind the word `kind` and a blank where the line begins with them, else NULL. */
static const char *behind(const char *line, const char *kind) {
    size_t length = strlen(kind);
    return strncmp(line, kind, length) == 0 && line[length] == ' ' ? line + length + 1 : NULL;
}

/* What is told of a model besides, once each. */
static const char *const abouts[] = {"input", "mean", "std", "classes"};
enum { ABOUTS = sizeof abouts / sizeof *abouts };

/* Every line is of a slice or one of these, and all of it can be shown. */
static bool lines_known(const char *text) {
    bool seen[ABOUTS] = {false};
    for (; *text; text += strcspn(text, "\n") + 1) {
        size_t length = strcspn(text, "\n"), i = 0;
        if (text[length] != '\n') return false;
        for (size_t j = 0; j < length; j++)
            if (text[j] < ' ' || text[j] > '~') return false;
        if (behind(text, parameter) || behind(text, statistic)) continue;
        while (i < ABOUTS && !behind(text, abouts[i])) i++;
        if (i == ABOUTS || seen[i]) return false;
        seen[i] = true;
    }
    return true;
}

static size_t lines_of(const char *text, const char *kind) {
    size_t count = 0;
    for (; *text; text += strcspn(text, "\n"), text += *text == '\n') count += behind(text, kind) != NULL;
    return count;
}

/* Of a slice: it becomes the name of a file in an archive (export). */
static const char name_characters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

/* "conv1.weight 16 3 3 3", up to the end of the line; it begins at *total. */
static bool take_slice(const char *at, struct slice *s, size_t *total) {
    size_t length = strcspn(at, " \n");
    if (length == 0 || length >= SLICE_NAME_MAX || strspn(at, name_characters) < length) return false;
    *s = (struct slice){.offset = *total, .size = 1};
    memcpy(s->name, at, length);
    for (at += length; *at == ' ';) {
        char *end;
        unsigned long long dim = strtoull(at + 1, &end, 10);
        if (strspn(at + 1, "0123456789") == 0 || s->dims == SLICE_DIMS_MAX || end == at + 1 || dim == 0 ||
            dim > UINT32_MAX / s->size)
            return false;
        s->dim[s->dims++] = (size_t)dim;
        s->size *= (size_t)dim;
        at = end;
    }
    *total += s->size;
    return s->dims > 0 && *at == '\n' && *total < UINT32_MAX;
}

static bool take_slices(const char *text, const char *kind, struct slice *slice, size_t *total) {
    for (size_t i = 0; *text; text += strcspn(text, "\n"), text += *text == '\n') {
        const char *at = behind(text, kind);
        if (at && !take_slice(at, &slice[i++], total)) return false;
    }
    return true;
}

bool model_layout_open(struct model_layout *l, const char *text, const char *from, struct err *e) {
    *l = (struct model_layout){.slices = lines_of(text, parameter), .state_slices = lines_of(text, statistic)};
    l->slice = mem_zalloc(l->slices, sizeof *l->slice, "the slices of a checkpoint");
    l->state_slice = mem_zalloc(l->state_slices, sizeof *l->state_slice, "the slices of a checkpoint");
    if (lines_known(text) && take_slices(text, parameter, l->slice, &l->n) &&
        take_slices(text, statistic, l->state_slice, &l->n_state))
        return true;
    model_layout_close(l);
    return err_set(e, "the checkpoint %s is damaged: its list of slices cannot be read", from);
}

void model_layout_close(struct model_layout *l) {
    mem_free(l->slice);
    mem_free(l->state_slice);
    *l = (struct model_layout){0};
}

/* -- comparing ------------------------------------------------------------------------------------------------- */

enum { DESCRIPTION = SLICE_NAME_MAX + 96 };

/* "conv1.weight 16x3x3x3" */
static void describe(const struct slice *list, size_t count, size_t i, char text[DESCRIPTION]) {
    snprintf(text, DESCRIPTION, "%s", i < count ? list[i].name : "nothing");
    for (int d = 0; i < count && d < list[i].dims; d++) {
        size_t used = strlen(text);
        snprintf(text + used, DESCRIPTION - used, "%s%zu", d ? "x" : " ", list[i].dim[d]);
    }
}

static bool same(const struct slice *there, size_t count, const struct slice *here, size_t here_count, const char *what,
                 struct err *e) {
    for (size_t i = 0; i < count || i < here_count; i++) {
        char a[DESCRIPTION], b[DESCRIPTION];
        describe(there, count, i, a);
        describe(here, here_count, i, b);
        if (strcmp(a, b) != 0) return err_set(e, "%s: it has %s where this model has %s", what, a, b);
    }
    return true;
}

bool model_layout_fits(const struct model_layout *l, const struct arena *a, const char *what, struct err *e) {
    return same(l->slice, l->slices, a->slice, a->slices, what, e) &&
           same(l->state_slice, l->state_slices, a->state_slice, a->state_slices, what, e);
}

bool model_layout_about(const char *text, size_t i, char key[SLICE_NAME_MAX], char value[128]) {
    for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
        if (behind(text, parameter) || behind(text, statistic) || i-- > 0) continue;
        size_t word = strcspn(text, " \n"), rest = strcspn(text, "\n") - word;
        snprintf(key, SLICE_NAME_MAX, "%.*s", (int)word, text);
        snprintf(value, 128, "%.*s", rest > 0 ? (int)rest - 1 : 0, text + word + (rest > 0));
        return true;
    }
    return false;
}
