/* cost_table.c: see cost_table.h. A question goes through the rows column by column: those stay that have what is asked
 * for, and where none has, what the others have there is what the user reads. */
#include "cli/network/cost_table.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/files/text_line.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/table.h"
#include "cli/csv.h"
#include "comm/cost/best.h"

enum { WORDS = 256, PATH = 512 };

static const char columns[] =
    "model,n,device,what,algorithm,selector,wire,density,batch,ranks,seconds,per_second,source";

/* -- reading --------------------------------------------------------------------------------------- */
static void cut(struct cost_row *row) {
    char *at = row->line;
    for (size_t c = 0; c < COST_COLUMNS; c++) {
        row->cell[c] = at;
        at += strcspn(at, c + 1 < COST_COLUMNS ? "," : "\n");
        if (*at) *at++ = 0;
    }
}

/* The row of this line; the text of it belongs to the row. */
static void take_row(struct cost_table *t, const char *line) {
    struct cost_row *row = &t->row[t->rows++];
    snprintf(row->line, sizeof row->line, "%s", line);
    cut(row);
}

/* "# cpu cores: 2" */
static void take_note(struct cost_table *t, const char *line) {
    struct cost_cores note;
    if (t->machines < COST_DEVICES && sscanf(line, "# %31s cores: %lf", note.device, &note.cores) == 2)
        t->machine[t->machines++] = note;
}

static size_t count_lines(FILE *file) {
    char line[COST_LINE];
    size_t lines = 0;
    while (fgets(line, sizeof line, file)) lines++;
    rewind(file);
    return lines;
}

static bool read_table(struct cost_table *t, FILE *file, struct err *e) {
    char line[COST_LINE];
    size_t number = 0;
    bool head = false;
    while (text_line(file, line, sizeof line, t->path, &number, e)) {
        line[strcspn(line, "\r\n")] = 0;
        if (*line == '#') {
            take_note(t, line);
            continue;
        }
        if (!head && strcmp(line, columns) != 0) break;
        if (head && t->rows == t->room) return err_system(e, "cannot read %s: it grew while it was read", t->path);
        if (head) take_row(t, line);
        head = true;
    }
    if (e->text[0]) return false;
    return head || err_set(e, "%s is no table of measure-costs.sh: its columns are others", t->path);
}

bool cost_table_open(struct cost_table *t, const char *path, struct err *e) {
    const char *why;
    FILE *file = file_read(path, &why);
    *t = (struct cost_table){.path = path};
    if (!file) return err_with(e, err_of_errno(errno), "cannot open %s: %s", path, why);
    t->room = count_lines(file) + 1;
    t->row = mem_alloc(t->room, sizeof *t->row, "a table of costs");
    bool good = read_table(t, file, e);
    fclose(file);
    if (!good) cost_table_close(t);
    return good;
}

void cost_table_close(struct cost_table *t) {
    mem_free(t->row);
    *t = (struct cost_table){0};
}

/* -- what is in it --------------------------------------------------------------------------------- */
bool cost_cell_is(const char *cell, double value) {
    char *end;
    return strtod(cell, &end) == value && end != cell && !*end;
}

/* Texts, or numbers. */
static bool same(const char *cell, const char *value) {
    char *end;
    double number = strtod(value, &end);
    return strcmp(cell, value) == 0 || (end != value && !*end && cost_cell_is(cell, number));
}

/* A time that can be one; NAN: there is none. */
static double seconds_of(const struct cost_row *row) {
    const char *text = row->cell[COST_SECONDS];
    char *end;
    const double seconds = strtod(text, &end);
    return end != text && !*end && isfinite(seconds) && seconds >= 0 ? seconds : NAN;
}

static double cores_of(const struct cost_table *t, const char *device) {
    double cores = 0;
    for (size_t i = 0; i < t->machines; i++)
        if (strcmp(t->machine[i].device, device) == 0) cores = t->machine[i].cores;
    return cores;
}

static bool is_better(const struct cost_row *new, const struct cost_row *old, double cores) {
    double ranks = strtod(new->cell[COST_RANKS], NULL), before = strtod(old->cell[COST_RANKS], NULL);
    if ((ranks <= cores) != (before <= cores)) return ranks <= cores;
    return ranks <= cores ? ranks > before : ranks < before;
}

/* -- from row to row ------------------------------------------------------------------------------- */
/* A question on its way: the rows that are left of the table. */
struct search {
    const struct cost_table *t;
    const struct cost_question *q;
    bool *left;                    /* [t->rows] */
    char where[3 * COST_NAME];     /* " for vgg16 on cpu": of what the rows that are left are, as messages end */
    char density[JSON_NUMBER_MAX]; /* as a cell has it */
    struct err *e;
};

/* Only those stay that have `value` there; where none has, all stay. Returns how many have. */
static size_t keep(struct search *s, enum cost_column c, const char *value) {
    size_t kept = 0;
    for (size_t i = 0; i < s->t->rows; i++) kept += s->left[i] && same(s->t->row[i].cell[c], value);
    for (size_t i = 0; kept > 0 && i < s->t->rows; i++) s->left[i] = s->left[i] && same(s->t->row[i].cell[c], value);
    return kept;
}

/* The same as keep, where there must be one: of those of `of` (an algorithm or a selector; ""), what `name` says. */
static bool need(struct search *s, enum cost_column c, const char *value, const char *name, const char *of) {
    char there[WORDS] = "";
    if (keep(s, c, value) > 0) return true;
    for (size_t i = 0; i < s->t->rows; i++)
        if (s->left[i]) names_add_new(there, sizeof there, s->t->row[i].cell[c]);
    return err_set(s->e, "%.300s has no %s %.60s%s%.31s%s; it has: %s", s->t->path, name, value, *of ? " of " : "", of,
                   s->where, *there ? there : "none");
}

static bool rows_of_model(struct search *s) {
    memset(s->left, true, s->t->rows);
    s->where[0] = '\0';
    if (!need(s, COST_MODEL, s->q->model, "model", "")) return false;
    snprintf(s->where, sizeof s->where, " for %.31s", s->q->model);
    return true;
}

/* Rows of the model on a device. */
static bool rows_on(struct search *s, const char *device) {
    if (!rows_of_model(s) || !need(s, COST_DEVICE, device, "device", "")) return false;
    snprintf(s->where, sizeof s->where, " for %.31s on %.31s", s->q->model, device);
    return true;
}

static const struct cost_row *first(const struct search *s) {
    size_t i = 0;
    while (!s->left[i]) i++;
    return &s->t->row[i];
}

/* The first row that nothing else tells apart. */
static const struct cost_row *best(const struct search *s) {
    const struct cost_row *best = first(s);
    double cores = cores_of(s->t, s->q->device);
    for (size_t i = 0; i < s->t->rows; i++)
        if (s->left[i] && is_better(&s->t->row[i], best, cores)) best = &s->t->row[i];
    return best;
}

static bool take_seconds(struct search *s, const struct cost_row *row, const char *of, double *seconds) {
    *seconds = seconds_of(row);
    return !isnan(*seconds) || err_set(s->e, "%.300s: a time of %.60s%s is \"%.60s\", which is none", s->t->path, of,
                                       s->where, row->cell[COST_SECONDS]);
}

/* -- the four times -------------------------------------------------------------------------------- */
/* A time that stands in a published table: "results/published/FILE.csv model=NAME" names its row. */
static bool take_published(struct search *s, const char *source, double *seconds) {
    static const char mark[] = " model=";
    const char *model = strstr(source, mark), *tree = s->q->tree ? s->q->tree : ".";
    char path[PATH];
    struct err why = {0};
    size_t length = model ? (size_t)(model - source) : strlen(source);
    if (!model || snprintf(path, sizeof path, "%s/%.*s", tree, (int)length, source) >= (int)sizeof path)
        return err_set(s->e, "%.300s: \"%.100s\" names no row of a published table", s->t->path, source);
    if (csv_find(path, "iteration_s", "model", model + sizeof mark - 1, seconds, &why)) return true;
    return err_with(s->e, err_status(&why), "%.300s: %.500s", s->t->path, why.text);
}

/* Some models were never run: then it stays unknown. */
static bool take_compute(struct search *s, double *seconds) {
    const char *device = s->q->compute_device ? s->q->compute_device : s->q->device;
    if (!rows_on(s, device)) return false;
    if (keep(s, COST_WHAT, "compute") == 0) return true;
    const struct cost_row *row = first(s);
    if (*row->cell[COST_SECONDS]) return take_seconds(s, row, "computing", seconds);
    return strncmp(row->cell[COST_SOURCE], "results/", 8) != 0 || take_published(s, row->cell[COST_SOURCE], seconds);
}

/* The row of packing and merging. One without a format is of an algorithm that codes every entry itself, or of a dense
 * sum. */
static const struct cost_row *word_row(struct search *s) {
    const struct cost_question *q = s->q;
    const char *name = q->ops->name, *wire = q->wire && best_takes_format(q->ops) ? q->wire->name : wires[0]->name;
    if (!rows_on(s, q->device) || !need(s, COST_WHAT, "word", "row", "") ||
        !need(s, COST_ALGORITHM, name, "algorithm", ""))
        return NULL;
    if (!*first(s)->cell[COST_WIRE] || !(q->times & COST_WORD)) return first(s);
    if (!need(s, COST_WIRE, wire, "wire format", name) || !need(s, COST_DENSITY, s->density, "density", name))
        return NULL;
    return best(s);
}

/* The algorithm's own, where it selects in a way of its own, or that of the selector. */
static bool take_select(struct search *s, const char *selector, double *seconds) {
    const struct cost_question *q = s->q;
    const char *by = q->ops->name;
    if (!rows_on(s, q->device) || !need(s, COST_WHAT, "select", "row", "")) return false;
    if (keep(s, COST_ALGORITHM, by) == 0) {
        keep(s, COST_ALGORITHM, "");
        by = selector;
        if (!need(s, COST_SELECTOR, by, "selector", "")) return false;
    }
    if (!need(s, COST_DENSITY, s->density, "density", by)) return false;
    if (!take_seconds(s, first(s), by, seconds)) return false;
    if (q->ops->by_node) *seconds /= q->ranks_per_node;
    return true;
}

/* What coding every entry takes however much comes in; 0: the table has none of it. */
static bool take_once(struct search *s, double *seconds) {
    *seconds = 0;
    if (!rows_on(s, s->q->device)) return false;
    if (keep(s, COST_WHAT, "select") == 0 || keep(s, COST_ALGORITHM, s->q->ops->name) == 0) return true;
    return take_seconds(s, first(s), s->q->ops->name, seconds);
}

/* What adding takes; older tables have none of it. */
static bool take_sum(struct search *s, double *seconds) {
    if (!rows_on(s, s->q->device)) return false;
    return keep(s, COST_WHAT, "sum") == 0 || take_seconds(s, first(s), "a sum", seconds);
}

static bool take_entries(struct search *s, size_t *n) {
    if (!rows_of_model(s)) return false;
    const char *text = first(s)->cell[COST_ENTRIES];
    double entries = strtod(text, NULL);
    *n = entries >= 1 && entries <= UINT32_MAX ? (size_t)entries : 0;
    return *n > 0 || err_set(s->e, "%.300s: %.60s has \"%.60s\" entries, which is no length of a gradient", s->t->path,
                             s->q->model, text);
}

static bool answer(struct search *s, struct cost_answer *a) {
    const struct cost_question *q = s->q;
    if (!take_entries(s, &a->n)) return false;
    if (q->times & COST_COMPUTE && !take_compute(s, &a->compute)) return false;
    if (!(q->times & ~(unsigned)COST_COMPUTE)) return true;
    const struct cost_row *row = word_row(s);
    if (!row) return false;
    bool coded = !*row->cell[COST_WIRE]; /* by the algorithm itself, or a dense sum as it is */
    a->charged = !coded || q->ops->rounds;
    a->selector = q->selector ? q->selector : row->cell[COST_SELECTOR];
    if (!a->charged) return !(q->times & COST_SUM) || take_sum(s, &a->sum);
    if (q->times & COST_WORD && !take_seconds(s, row, q->ops->name, &a->word)) return false;
    if (!(q->times & COST_SELECT)) return true;
    return coded ? take_once(s, &a->select) : take_select(s, a->selector, &a->select);
}

static void begin(struct search *s, const struct cost_table *t, const struct cost_question *q, struct err *e) {
    *s = (struct search){.t = t, .q = q, .e = e};
    s->left = mem_alloc(t->rows + 1, sizeof *s->left, "rows of a table of costs");
    json_number_text(q->density, s->density);
}

bool cost_table_ask(const struct cost_table *t, const struct cost_question *q, struct cost_answer *a, struct err *e) {
    struct search s;
    begin(&s, t, q, e);
    *a = (struct cost_answer){.selector = "", .compute = NAN, .select = NAN, .word = NAN, .sum = NAN};
    bool good = answer(&s, a);
    mem_free(s.left);
    return good;
}

bool cost_table_has(const struct cost_table *t, const struct cost_question *q) {
    struct search s;
    struct err lacking = {0};
    begin(&s, t, q, &lacking);
    bool has = rows_on(&s, q->device) && keep(&s, COST_WHAT, "word") > 0 && keep(&s, COST_ALGORITHM, q->ops->name) > 0;
    mem_free(s.left);
    return has;
}

bool cost_table_selects(const struct cost_table *t, const char *device, struct err *e) {
    char there[WORDS] = "";
    for (size_t i = 0; i < t->rows; i++) {
        const char *const *cell = t->row[i].cell;
        if (strcmp(cell[COST_WHAT], "select") != 0) continue;
        if (strcmp(cell[COST_DEVICE], device) == 0) return true;
        names_add_new(there, sizeof there, cell[COST_DEVICE]);
    }
    return err_set(e, "--device %.31s: %.300s has no selection on it; it has: %s", device, t->path,
                   *there ? there : "none");
}
