/* local_table.c: local work from a table of scripts/measure-costs.sh: see local_costs.h; docs/simulation.md has its
 * columns. What is taken of it is what scripts/costs.awk takes for simulate.sh. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/table.h"
#include "cli/network/local_costs.h"

enum { LINE = 512, COLUMNS = 13, WORDS = 256 };
enum { MODEL, ENTRIES, DEVICE, WHAT, ALGORITHM, SELECTOR, WIRE, DENSITY, BATCH, RANKS, SECONDS };

static const char columns[] =
    "model,n,device,what,algorithm,selector,wire,density,batch,ranks,seconds,per_second,source";

/* A row: its columns as text, in a line of its own. */
struct row {
    char line[LINE];
    const char *cell[COLUMNS];
};

/* Of one table what concerns a device and a length. */
struct table {
    const char *path, *device;
    size_t n;
    double density;
    double cores; /* of the machine; 0: the table does not say */
    struct row *row;
    size_t rows, room; /* in use, there */
    struct err *e;
};

/* -- reading --------------------------------------------------------------------------------------- */
static void cut(struct row *row) {
    char *at = row->line;
    for (size_t c = 0; c < COLUMNS; c++) {
        row->cell[c] = at;
        at += strcspn(at, c + 1 < COLUMNS ? "," : "\n");
        if (*at) *at++ = 0;
    }
}

/* The row of this line; the text of it belongs to the row. */
static void take_row(struct table *t, const char *line) {
    struct row *row = &t->row[t->rows++];
    snprintf(row->line, sizeof row->line, "%s", line);
    cut(row);
}

static size_t count_lines(FILE *file) {
    char line[LINE];
    size_t lines = 0;
    while (fgets(line, sizeof line, file)) lines++;
    rewind(file);
    return lines;
}

static bool read_table(struct table *t, FILE *file) {
    char line[LINE], device[LOCAL_NAME];
    bool head = false;
    double cores;
    t->room = count_lines(file) + 1;
    t->row = mem_alloc(t->room, sizeof *t->row, "a table of costs");
    while (fgets(line, sizeof line, file)) {
        if (strlen(line) == sizeof line - 1 && !strchr(line, '\n'))
            return err_set(t->e, "%s is no table of measure-costs.sh: it has a line of more than %zu characters",
                           t->path, sizeof line - 1);
        line[strcspn(line, "\r\n")] = 0;
        if (sscanf(line, "# %31s cores: %lf", device, &cores) == 2 && strcmp(device, t->device) == 0) t->cores = cores;
        if (*line == '#') continue;
        if (!head && strcmp(line, columns) != 0) break;
        if (head && t->rows == t->room) return err_system(t->e, "cannot read %s: it grew while it was read", t->path);
        if (head) take_row(t, line);
        head = true;
    }
    if (ferror(file)) return err_with(t->e, err_of_errno(errno), "cannot read %s: %s", t->path, strerror(errno));
    return head || err_set(t->e, "%s is no table of measure-costs.sh: its columns are others", t->path);
}

/* -- looking up ------------------------------------------------------------------------------------ */
/* Numbers are compared as numbers: 0.01 is 1e-2. */
static bool is_number(const char *text, double value) {
    return *text && strtod(text, NULL) == value;
}

static bool is_of(const struct table *t, const struct row *row, const char *what) {
    return is_number(row->cell[ENTRIES], (double)t->n) && strcmp(row->cell[DEVICE], t->device) == 0 &&
           strcmp(row->cell[WHAT], what) == 0;
}

/* A time that can be one; NAN: there is none. */
static double seconds_of(const struct row *row) {
    char *end;
    const double seconds = strtod(row->cell[SECONDS], &end);
    return end != row->cell[SECONDS] && !*end && isfinite(seconds) && seconds >= 0 ? seconds : NAN;
}

/* Of rows that differ in their ranks: the most that had a core each; where none had, the fewest. */
static bool is_better(const struct table *t, const struct row *new, const struct row *old) {
    double ranks = strtod(new->cell[RANKS], NULL), before = strtod(old->cell[RANKS], NULL);
    if ((ranks <= t->cores) != (before <= t->cores)) return ranks <= t->cores;
    return ranks <= t->cores ? ranks > before : ranks < before;
}

/* The row of packing and merging; wire NULL: nothing travels in a format, or the row is one that is not charged. */
static const struct row *word_row(const struct table *t, const char *algorithm, const char *wire) {
    const struct row *best = NULL;
    for (size_t i = 0; i < t->rows; i++) {
        const struct row *row = &t->row[i];
        if (!is_of(t, row, "word") || strcmp(row->cell[ALGORITHM], algorithm) != 0) continue;
        if (!*row->cell[WIRE]) return row;
        if (strcmp(row->cell[WIRE], wire ? wire : "coo32") != 0 || !is_number(row->cell[DENSITY], t->density)) continue;
        if (!best || is_better(t, row, best)) best = row;
    }
    return best;
}

/* Seconds of a selection: the algorithm's own, or that of the selector; NAN: there is none. */
static double select_seconds(const struct table *t, const char *algorithm, const char *selector) {
    double seconds = NAN;
    for (size_t i = 0; i < t->rows; i++) {
        const struct row *row = &t->row[i];
        if (!is_of(t, row, "select") || !is_number(row->cell[DENSITY], t->density)) continue;
        if (strcmp(row->cell[ALGORITHM], algorithm) == 0) return seconds_of(row);
        if (!*row->cell[ALGORITHM] && strcmp(row->cell[SELECTOR], selector) == 0) seconds = seconds_of(row);
    }
    return seconds;
}

static struct local_cost cost_of(const struct table *t, const char *algorithm, const char *wire) {
    const struct row *row = word_row(t, algorithm, wire);
    if (!row) return (struct local_cost){.select = NAN};
    if (!*row->cell[WIRE]) return (struct local_cost){0};
    const double word = seconds_of(row);
    if (isnan(word)) return (struct local_cost){.select = NAN};
    return (struct local_cost){.select = select_seconds(t, algorithm, row->cell[SELECTOR]) / (double)t->n,
                               .word = word};
}

/* -- what is not in it ----------------------------------------------------------------------------- */
/* Appends what is not yet there. */
static void add_word(char list[WORDS], const char *word) {
    char with[WORDS], whole[WORDS + 4];
    snprintf(with, sizeof with, ", %s,", word);
    snprintf(whole, sizeof whole, ", %s,", list);
    if (!*word || strstr(whole, with) || strlen(list) + strlen(word) + 3 > WORDS) return;
    names_add(list, WORDS, word);
}

/* Are there rows of this device, this length, this density? If not, which there are. */
static bool check_rows(const struct table *t, char model[LOCAL_NAME]) {
    char on[WORDS] = "", lengths[WORDS] = "", densities[WORDS] = "", name[2 * LOCAL_NAME];
    bool device = false, length = false, density = false;
    for (size_t i = 0; i < t->rows; i++) {
        const struct row *row = &t->row[i];
        if (strcmp(row->cell[WHAT], "word") != 0) continue;
        add_word(on, row->cell[DEVICE]);
        if (strcmp(row->cell[DEVICE], t->device) != 0) continue;
        device = true;
        snprintf(name, sizeof name, "%.31s (%.15s)", row->cell[MODEL], row->cell[ENTRIES]);
        add_word(lengths, name);
        if (!is_number(row->cell[ENTRIES], (double)t->n)) continue;
        length = true;
        snprintf(model, LOCAL_NAME, "%.31s", row->cell[MODEL]);
        add_word(densities, row->cell[DENSITY]);
        density |= is_number(row->cell[DENSITY], t->density);
    }
    if (!device) return err_set(t->e, "%s has no device %.31s; it has: %s", t->path, t->device, on);
    if (!length)
        return err_set(t->e, "%s has no gradient of %zu entries on %.31s; it has: %s (--n)", t->path, t->n, t->device,
                       lengths);
    return density || err_set(t->e, "%s has no density %g of %s on %.31s; it has: %s (--density)", t->path, t->density,
                              model, t->device, densities);
}

static void note_missing(struct local_missing *missing, const char *algorithm, const char *wire) {
    size_t used = strlen(missing->names);
    snprintf(missing->names + used, sizeof missing->names - used, "%s%s%s%s", missing->count++ ? ", " : "", algorithm,
             wire ? " " : "", wire ? wire : "");
}

bool local_from_table(const char *path, const char *device, size_t n, double density, struct local_costs *costs,
                      char model[LOCAL_NAME], struct local_missing *missing, struct err *e) {
    struct table t = {.path = path, .device = device, .n = n, .density = density, .e = e};
    const char *why;
    FILE *file = file_read(path, &why);
    if (!file) return err_with(e, err_of_errno(errno), "cannot open %s: %s", path, why);
    bool good = read_table(&t, file) && check_rows(&t, model);
    fclose(file);
    *costs = (struct local_costs){0};
    *missing = (struct local_missing){0};
    for (size_t i = 0; good && exchanges[i]; i++) {
        bool format = best_takes_format(exchanges[i]);
        for (size_t w = 0; wires[w] && (format || w == 0); w++) {
            const char *wire = format ? wires[w]->name : NULL;
            costs->of[i][w] = cost_of(&t, exchanges[i]->name, wire);
            if (isnan(costs->of[i][w].select)) note_missing(missing, exchanges[i]->name, wire);
        }
    }
    mem_free(t.row);
    return good;
}
