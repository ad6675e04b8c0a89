/* csv.c: see csv.h. */
#include "cli/csv.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/files/text_line.h"

/* Takes the next field off *at, in place: without its quotes, and one of two in it. Does another one follow? */
static bool cut(char **at, const char **field) {
    char *to = *at, *from = *at;
    bool quoted = false;
    *field = *at;
    for (; *from && (quoted || *from != ','); from++) {
        bool quote = *from == '"', pair = quote && quoted && from[1] == '"';
        if (quote && !pair) quoted = !quoted;
        if (quote && !pair) continue;
        from += pair;
        *to++ = *from;
    }
    bool more = *from == ',';
    *at = from + more;
    *to = '\0';
    return more;
}

static size_t cut_all(char *line, const char *field[CSV_COLUMNS]) {
    size_t count = 0;
    while (count < CSV_COLUMNS && cut(&line, &field[count++])) continue;
    return count;
}

/* A line without its end. False: there is none, or what is wrong is in *t->e. */
static bool take_line(struct csv *t, char line[CSV_LINE]) {
    if (t->e->text[0] || !text_line(t->file, line, CSV_LINE, t->path, &t->line, t->e)) return false;
    line[strcspn(line, "\r\n")] = '\0';
    return true;
}

static size_t column_of(const struct csv *t, const char *name, size_t length) {
    size_t i = 0;
    while (i < t->names && (strlen(t->name[i]) != length || strncmp(t->name[i], name, length) != 0)) i++;
    return i;
}

static bool has_columns(const struct csv *t, const char *wanted) {
    for (; *wanted; wanted += *wanted == ',') {
        size_t length = strcspn(wanted, ",");
        if (column_of(t, wanted, length) == t->names)
            return err_set(t->e, "%s has no column %.*s", t->path, (int)length, wanted);
        wanted += length;
    }
    return true;
}

bool csv_open(struct csv *t, const char *path, const char *wanted, struct err *e) {
    const char *why;
    *t = (struct csv){.path = path, .e = e};
    t->file = file_read(path, &why);
    if (!t->file) return err_with(e, err_of_errno(errno), "cannot open %s: %s", path, why);
    if (take_line(t, t->head)) t->names = cut_all(t->head, t->name);
    if (!e->text[0] && has_columns(t, wanted)) return true;
    fclose(t->file);
    return false;
}

bool csv_next(struct csv *t) {
    if (!take_line(t, t->text)) return false;
    t->cells = cut_all(t->text, t->cell);
    return true;
}

bool csv_close(struct csv *t) {
    fclose(t->file);
    return !t->e->text[0];
}

const char *csv_cell(const struct csv *t, const char *column) {
    size_t i = column_of(t, column, strlen(column));
    return i < t->names && i < t->cells ? t->cell[i] : "";
}

double csv_number(const struct csv *t, const char *column) {
    const char *text = csv_cell(t, column);
    char *end;
    double number = strtod(text, &end);
    return *text && !*end ? number : NAN;
}

bool csv_find(const char *path, const char *column, const char *name, const char *value, double *number,
              struct err *e) {
    struct csv t;
    bool found = false;
    if (!csv_open(&t, path, column, e)) return false;
    while (!found && csv_next(&t)) {
        if (strcmp(csv_cell(&t, name), value) != 0) continue;
        *number = csv_number(&t, column);
        found = isfinite(*number);
    }
    return csv_close(&t) && (found || err_set(e, "%s has no %s of %s", path, column, value));
}
