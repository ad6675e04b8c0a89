/* predict_rows.c: measured against predicted. A row is one line with one JSON object; what is not needed in it is
 * passed over. Lines without an "algo" (of other benches) are counted and left out.
 *
 * The model knows no selection, so where a row says how long that took, it is taken off before the two are compared.
 * Merging is not in the model either, but stays in the measured time: it is part of what an algorithm costs. What an
 * algorithm's own options are not as by default is in the row, and goes into its cost line. */
#include "cli/network/predict_rows.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/files/text_line.h"
#include "base/json.h"
#include "base/json_read.h"
#include "base/table.h"
#include "comm/cost/best.h"
#include "comm/exchange_options.h"

enum { ALGO = 32, KEY = 64 };

/* Numbers that are read, in the order of number_keys; NAN: not there. */
enum { N, K, RANKS, RANKS_PER_NODE, MEDIAN, SELECT, SCALE, NUMBERS };
static const char *const number_keys[NUMBERS] = {"n", "k", "ranks", "ranks_per_node", "median_s", "select_s", "scale"};

struct row {
    char algo[ALGO], wire[ALGO]; /* wire: empty where it is not there */
    double number[NUMBERS];
    struct exchange_own own; /* of all algorithms and selectors */
};

/* What algorithms and selectors declare, in struct row. */
static const struct option_table *own_options(void) {
    static struct option_row row[OPTION_ROWS_MAX];
    static struct option_table table = {.row = row};
    const struct option_row place = {.offset = offsetof(struct row, own)};
    if (table.rows == 0) table.rows = exchange_options_add(row, 0, &place, true);
    return &table;
}

/* -- a line of JSON -------------------------------------------------------------------------------- */
/* The text of a value that is shorter than size. False: it is longer, and nothing of it is taken. */
static bool take_text(const struct json_value *v, char *to, size_t size) {
    size_t length = v->length < size ? json_plain(v, to) : 0;
    to[length] = '\0';
    return v->length < size;
}

/* "powersgd_rank":"4", as bench writes it. False: no such value. */
static bool take_own(struct row *row, char *key, const struct json_member *m) {
    char text[OPTION_TEXT_MAX];
    struct err e = {0};
    for (char *c = key; *c; c++)
        if (*c == '_') *c = '-';
    const struct option_row *option = option_find(own_options(), key, strlen(key));
    if (!option || *m->value.at != '"') return true;
    return take_text(&m->value, text, sizeof text) && option_set(option, row, text, &e);
}

/* False: this key has come before, or its number is none that can be computed with. */
static bool take_member(struct row *row, const struct json_member *m) {
    char key[KEY], number[KEY];
    if (!take_text(&m->key, key, sizeof key)) return true;
    char *text = strcmp(key, "algo") == 0 ? row->algo : strcmp(key, "wire") == 0 ? row->wire : NULL;
    if (text && *m->value.at == '"') {
        if (*text || !take_text(&m->value, text, ALGO)) return false;
    }
    if (*m->value.at == '"' && !text) return take_own(row, key, m);
    if (!strchr("-0123456789", *m->value.at)) return true;
    for (size_t i = 0; i < NUMBERS; i++) {
        if (strcmp(key, number_keys[i]) != 0) continue;
        if (!isnan(row->number[i])) return false;
        if (!take_text(&m->value, number, sizeof number)) return false;
        row->number[i] = strtod(number, NULL);
        if (!isfinite(row->number[i])) return false;
    }
    return true;
}

/* NULL: the line is one object; else where it ceases to be one. */
static const char *parse_line(const char *line, struct row *row) {
    struct json_value object;
    struct json_fault wrong;
    struct json_member m = {.end = NULL};
    *row = (struct row){.algo = ""};
    for (size_t i = 0; i < NUMBERS; i++) row->number[i] = NAN;
    option_defaults(own_options(), row);
    if (!json_read(line, &object, &wrong)) return wrong.at;
    if (*object.at != '{') return object.at;
    while (json_next(&object, &m))
        if (!take_member(row, &m)) return m.value.at;
    return NULL;
}

/* -- a row against the model ----------------------------------------------------------------------- */
static bool whole(double x, double least, double most) {
    return x >= least && x <= most && x == floor(x);
}

/* where: "FILE:LINE". *ops, *wire: the row's algorithm and format. */
static bool check_row(const struct row *row, const char *where, const struct exchange_ops **ops,
                      const struct wire_ops **wire, struct cost_case *c, struct err *e) {
    static const char hint[] = "; is this file from sparsetrain bench --json?";
    const double *x = row->number;
    double per_node = isnan(x[RANKS_PER_NODE]) ? 1 : x[RANKS_PER_NODE];
    for (int i = 0; i < NUMBERS; i++)
        if (isnan(x[i]) && i != RANKS_PER_NODE && i != SELECT && i != SCALE)
            return err_set(e, "%s: the row has no number \"%s\"%s", where, number_keys[i], hint);
    TABLE_FIND(exchanges, row->algo, *ops);
    if (!*ops) return err_set(e, "%s: there is no algorithm \"%s\"", where, row->algo);
    if (*row->wire) TABLE_FIND(wires, row->wire, *wire);
    if (*row->wire && !*wire) return err_set(e, "%s: there is no wire format \"%s\"", where, row->wire);
    if (!whole(x[N], 1, 4294967295.0) || !whole(x[K], 1, x[N]))
        return err_set(e, "%s: n = %g, k = %g: whole numbers 1 <= k <= n < 2^32 are needed", where, x[N], x[K]);
    if (!whole(x[RANKS], 1, 1e6) || !whole(per_node, 1, x[RANKS]))
        return err_set(e, "%s: %g ranks, %g on a node: whole numbers are needed, the second no larger than the first",
                       where, x[RANKS], per_node);
    if (fmod(x[RANKS], per_node) != 0) per_node = 1; /* unequal nodes, as step_ranks_per_node has it */
    if (x[MEDIAN] < 0 || x[SELECT] < 0) return err_set(e, "%s: times must not be negative", where);
    if (x[SCALE] < 1) return err_set(e, "%s: a scale of %g; 1 at least is needed", where, x[SCALE]);
    *c = (struct cost_case){.n = (size_t)x[N], .k = (size_t)x[K], .P = (int)x[RANKS], .ranks_per_node = (int)per_node};
    c->options = (struct option_values){own_options()->row, own_options()->rows, row};
    return true;
}

/* The measured time without the selection. */
static double rest_of(const struct row *row) {
    return row->number[MEDIAN] - (isnan(row->number[SELECT]) ? 0 : row->number[SELECT]);
}

static void print_row(const struct row *row, const struct cost_case *c, double predicted) {
    double median = row->number[MEDIAN], select = row->number[SELECT], rest = rest_of(row);
    char ratio[32] = "-", selection[32] = "-";
    if (predicted > 0 && rest > 0) snprintf(ratio, sizeof ratio, "%.4g", rest / predicted);
    if (!isnan(select)) snprintf(selection, sizeof selection, "%.3f", select * 1e3);
    printf("%-12s %11zu %10zu %5d %5d %12.3f %12s %12.3f %12.3f %9s\n", row->algo, c->n, c->k, c->P, c->ranks_per_node,
           median * 1e3, selection, rest * 1e3, predicted * 1e3, ratio);
}

static void json_row(const struct row *row, const struct cost_case *c, const struct network *net, double predicted) {
    double median = row->number[MEDIAN], select = row->number[SELECT], rest = rest_of(row);
    struct json j;
    json_open(&j);
    json_object(&j, NULL);
    json_string(&j, "predict", "measured");
    json_string(&j, "net", net->name);
    json_string(&j, "algo", row->algo);
    json_integer(&j, "n", (int64_t)c->n);
    json_integer(&j, "k", (int64_t)c->k);
    json_integer(&j, "ranks", c->P);
    json_integer(&j, "ranks_per_node", c->ranks_per_node);
    if (!isnan(row->number[SCALE])) json_number(&j, "scale", row->number[SCALE]);
    json_number(&j, "median_s", median);
    json_number(&j, "select_s", select);
    json_number(&j, "rest_s", rest);
    json_number(&j, "predicted_s", predicted);
    json_number(&j, "ratio", predicted > 0 && rest > 0 ? rest / predicted : NAN);
    json_end(&j);
    puts(json_text(&j));
    json_close(&j);
}

static bool take_row(const char *line, const char *where, const struct network *net, bool json, bool *used,
                     struct err *e) {
    struct row row;
    struct cost_case c;
    const struct exchange_ops *ops = NULL;
    const struct wire_ops *wire = wires[0];
    const char *wrong = parse_line(line, &row);
    if (wrong)
        return err_set(e, "%s: no JSON object (at column %zu); rows of sparsetrain bench --json are needed", where,
                       (size_t)(wrong - line) + 1);
    *used = *row.algo != 0;
    if (!*used) return true;
    if (!check_row(&row, where, &ops, &wire, &c, e)) return false;
    struct network scaled = *net; /* simulate.sh --scale: so many times fewer entries, each so many times as long */
    const double scale = isnan(row.number[SCALE]) ? 1 : row.number[SCALE];
    scaled.beta *= scale;
    scaled.node_beta *= scale;
    double predicted = best_seconds(ops, wire, &c, &scaled);
    if (json)
        json_row(&row, &c, net, predicted);
    else
        print_row(&row, &c, predicted);
    return true;
}

bool predict_rows(const char *path, const struct network *net, bool json, struct err *e) {
    const char *why;
    FILE *file = file_read_stream(path, &why);
    char *line = NULL;
    size_t capacity = 0, lines = 0, rows = 0, others = 0;
    ssize_t length;
    bool ok = true, used = false;
    if (!file) return err_with(e, err_of_errno(errno), "predict: cannot open %s: %s", path, why);
    if (!json)
        printf("%-12s %11s %10s %5s %5s %12s %12s %12s %12s %9s\n", "algorithm", "n", "k", "P", "/node", "measured ms",
               "selection", "the rest", "predicted ms", "ratio");
    while (ok && (length = getline(&line, &capacity, file)) >= 0) {
        char where[1100];
        ok = text_line_whole(line, (size_t)length, path, ++lines, e);
        if (!ok || !line[strspn(line, " \t\r\n")]) continue;
        snprintf(where, sizeof where, "%.1000s:%zu", path, lines);
        ok = take_row(line, where, net, json, &used, e);
        if (ok) rows += used, others += !used;
    }
    if (ok && ferror(file)) ok = err_with(e, err_of_errno(errno), "predict: cannot read %s: %s", path, strerror(errno));
    if (ok && rows == 0) ok = err_set(e, "%s: no row of sparsetrain bench --json in it", path);
    if (ok && !json) printf("ratio: the rest (measured without selection) / predicted\n");
    if (ok && !json && others > 0) printf("%zu line%s without an algorithm left out\n", others, others == 1 ? "" : "s");
    free(line);
    fclose(file);
    return ok;
}
