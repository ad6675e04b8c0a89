/* rows.c: the verb `rows`, see rows.h. */
#include "cli/rows.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/json_read.h"
#include "base/mem.h"
#include "cli/log/log_rows.h"

enum { CONDITIONS_MAX = 32, KEYS_MAX = 256 };

struct condition {
    char key[128];
    bool negated;  /* != */
    char order;    /* '=', '<' or '>' */
    bool or_equal; /* <=, >= */
    const char *text;
};

struct conditions {
    struct condition at[CONDITIONS_MAX];
    size_t count;
};

/* A list with commas between its words, cut into them. */
struct list {
    char text[4096], *word[KEYS_MAX];
    size_t count;
};

struct request {
    struct option_words files;
    struct conditions where;
    struct list types, keys;
    const char *each, *missing;
    bool last, csv, anonymous;
};

/* The file that is read, and what has been read of it. */
struct input {
    const char *name;
    FILE *file;
    char *line, *plain; /* plain: room for the text of a value in the line */
    size_t size, room, number;
};

/* Where rows go: to standard output or, with --last, to memory, where those of each line of input replace the ones
 * before. */
struct output {
    FILE *stream;
    char *text;
    size_t length;
    bool begun; /* something of this line of input is there */
};

/* -- the request --------------------------------------------------------------------------------------------------- */

static bool to_number(const char *text, double *x) {
    char *end;
    *x = strtod(text, &end);
    return *text && !*end;
}

static bool add_condition(void *conditions, const char *text, struct err *e) {
    struct conditions *all = conditions;
    double bound;
    if (!*text) return err_set(e, "--where wants a value, not an empty text");
    size_t length = strcspn(text, "=<>");
    const bool negated = length > 0 && text[length] == '=' && text[length - 1] == '!';
    const size_t key = length - negated;
    if (key == 0 || !text[length])
        return err_set(e, "--where %.60s is no condition: KEY=TEXT, KEY!=TEXT, KEY<NUMBER, <=, > or >=", text);
    if (all->count == CONDITIONS_MAX) return err_set(e, "--where: more than %d conditions", CONDITIONS_MAX);
    struct condition *c = &all->at[all->count++];
    if (key >= sizeof c->key) return err_set(e, "--where: a key has more than %zu characters", sizeof c->key - 1);
    snprintf(c->key, sizeof c->key, "%.*s", (int)key, text);
    c->negated = negated;
    c->order = text[length];
    c->or_equal = c->order != '=' && text[length + 1] == '=';
    c->text = text + length + 1 + c->or_equal;
    if (c->order == '=' || to_number(c->text, &bound)) return true;
    return err_set(e, "--where %.60s: behind < and > stands a number", text);
}

static bool set_list(struct list *list, const char *name, const char *text, struct err *e) {
    if (!*text) return err_set(e, "%s wants a value, not an empty text", name);
    if (strlen(text) >= sizeof list->text)
        return err_set(e, "%s: more than %zu characters", name, sizeof list->text - 1);
    strcpy(list->text, text);
    list->count = 0;
    for (char *word = list->text, *comma; word; word = comma ? comma + 1 : NULL) {
        comma = strchr(word, ',');
        if (comma) *comma = '\0';
        if (!*word) return err_set(e, "%s: a name is empty in the list", name);
        if (list->count == KEYS_MAX) return err_set(e, "%s: more than %d names", name, KEYS_MAX);
        list->word[list->count++] = word;
    }
    return true;
}

static bool set_types(void *list, const char *text, struct err *e) {
    return set_list(list, "--type", text, e);
}

static bool set_keys(void *list, const char *text, struct err *e) {
    return set_list(list, "--keys", text, e);
}

/* May be nothing. */
static bool set_missing(void *missing, const char *text, struct err *e) {
    (void)e;
    *(const char **)missing = text;
    return true;
}

static const struct option_row options[] = {
    {"type", "LIST", OPTION_OTHER, NULL, "only rows of these types: step, or eval,summary",
     OPTION_AT(struct request, types), .set = set_types},
    {"where", "CONDITION", OPTION_OTHER, NULL,
     "only rows in which this holds: KEY=TEXT, KEY!=TEXT, KEY<NUMBER, KEY<=NUMBER, KEY>NUMBER or KEY>=NUMBER; 0.01 "
     "equals 1e-2; may be given again",
     OPTION_AT(struct request, where), .set = add_condition, .again = true},
    {"each", "KEY", OPTION_WORD, NULL,
     "what is in the array or object KEY are the rows, each with its value, @value, and in an object its key, @key; a "
     "key that one lacks is looked for around it",
     OPTION_AT(struct request, each)},
    {"keys", "LIST", OPTION_OTHER, NULL,
     "these values: step,loss; phase.select is one in an object, groups.0 of an array; @file is the name of the file, "
     "@value the row itself, as JSON (without --keys: that alone)",
     OPTION_AT(struct request, keys), .set = set_keys},
    {"last", NULL, OPTION_FLAG, NULL, "only the last row", OPTION_AT(struct request, last)},
    {"csv", NULL, OPTION_FLAG, NULL,
     "commas in place of tabs, quotes where they are needed (RFC 4180), and a first line with the keys",
     OPTION_AT(struct request, csv)},
    {"anonymous", NULL, OPTION_FLAG, NULL,
     "without what is of one machine: its name, and the folders in which data and runs lie",
     OPTION_AT(struct request, anonymous)},
    {"missing", "TEXT", OPTION_OTHER, "", "what stands where there is no value (else nothing)",
     OPTION_AT(struct request, missing), .set = set_missing},
};

const struct option_table rows_options = {
    .verb = "rows",
    .row = options,
    .rows = sizeof options / sizeof *options,
    .operand = "file",
    .operand_at = offsetof(struct request, files),
    .operands = true,
    .wanted = "a file is needed: a log, the directory of a run, or - for standard input",
    .call = "sparsetrain rows FILE...",
    .about = "Values out of files of JSON lines: logs (docs/run-jsonl.md), what a verb prints with --json, results/. "
             "FILE: such a file, the directory of a run, or - for standard input. Prints a line for each row, its "
             "values with tabs between and numbers as they are written there. The last line of a run that goes on may "
             "be half a row: it is left out.",
};

static bool parse(struct request *r, int argc, char **argv, struct err *e) {
    option_defaults(&rows_options, r);
    if (!option_parse(&rows_options, r, NULL, argc, argv, 1, e)) return false;
    return !r->csv || r->keys.count > 0 || err_set(e, "rows: --csv wants --keys, the columns");
}

/* -- selecting ----------------------------------------------------------------------------------------------------- */

/* A row, and the one around it with --each, and of a member of an object its key; else around is the row itself. */
struct place {
    struct json_value row, around, key;
};

/* False: there is no such value, or it is null. */
static bool find(const struct place *p, const char *key, struct json_value *v) {
    const bool of_key = strcmp(key, "@key") == 0;
    if (of_key || strcmp(key, "@value") == 0) {
        *v = of_key ? p->key : p->row;
        return v->at && *v->at != 'n';
    }
    return (json_at(&p->row, key, v) || json_at(&p->around, key, v)) && *v->at != 'n';
}

/* Its text in in->plain, with a zero byte behind it. */
static size_t plain_text(struct input *in, const struct json_value *v) {
    size_t length = json_plain(v, in->plain);
    in->plain[length] = '\0';
    return length;
}

static bool holds(struct input *in, const struct condition *c, const struct place *p) {
    struct json_value v = {0};
    double value, bound = 0;
    bool there = find(p, c->key, &v);
    if (there) plain_text(in, &v);
    const char *text = there ? in->plain : "";
    bool numbers = to_number(text, &value) && to_number(c->text, &bound) && *v.at != '"';
    const bool equal = numbers && value == bound;
    if (c->order == '<') return (numbers && value < bound) || (c->or_equal && equal);
    if (c->order == '>') return (numbers && value > bound) || (c->or_equal && equal);
    return c->negated != (strcmp(text, c->text) == 0 || equal);
}

static bool of_type(struct input *in, const struct list *types, const struct json_value *row) {
    struct json_value v;
    if (types->count == 0) return true;
    if (!json_at(row, "type", &v) || *v.at != '"') return false;
    plain_text(in, &v);
    for (size_t i = 0; i < types->count; i++)
        if (strcmp(types->word[i], in->plain) == 0) return true;
    return false;
}

/* -- printing ------------------------------------------------------------------------------------------------------ */

static void print_text(FILE *out, const char *text, size_t length, bool csv) {
    bool quoted = false;
    for (size_t i = 0; csv && i < length; i++) quoted = quoted || (text[i] && strchr(",\"\r\n", text[i]));
    if (quoted) fputc('"', out);
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        bool kept = (c >= 0x20 && c != 0x7f) || (csv && (c == '\t' || c == '\r' || c == '\n'));
        if (c == '"' && quoted) fputc('"', out);
        fputc(kept ? c : ' ', out);
    }
    if (quoted) fputc('"', out);
}

static void print_value(struct input *in, const struct request *r, const char *key, const struct place *p, FILE *out) {
    struct json_value v;
    if (strcmp(key, "@file") == 0)
        print_text(out, in->name, strlen(in->name), r->csv);
    else if (find(p, key, &v))
        print_text(out, in->plain, plain_text(in, &v), r->csv);
    else
        print_text(out, r->missing, strlen(r->missing), r->csv);
}

/* What stood in memory goes, and what comes is the last line yet. */
static void begin_line(struct output *out) {
    out->begun = true;
    if (out->stream == stdout) return;
    if (out->stream) fclose(out->stream);
    free(out->text);
    out->stream = open_memstream(&out->text, &out->length);
    if (!out->stream) die("no memory for a row");
}

static void print_row(struct input *in, const struct request *r, const struct place *p, struct output *out) {
    for (size_t i = 0; i < r->where.count; i++)
        if (!holds(in, &r->where.at[i], p)) return;
    if (!out->begun) begin_line(out);
    for (size_t i = 0; i < r->keys.count; i++) {
        if (i > 0) fputc(r->csv ? ',' : '\t', out->stream);
        print_value(in, r, r->keys.word[i], p, out->stream);
    }
    if (r->keys.count == 0) fwrite(p->row.at, 1, p->row.length, out->stream);
    fputs(r->csv ? "\r\n" : "\n", out->stream);
}

static void print_rows(struct input *in, const struct request *r, const struct json_value *row, struct output *out) {
    struct json_value list;
    struct json_member m = {.end = NULL};
    out->begun = false;
    if (!of_type(in, &r->types, row)) return;
    if (!r->each)
        print_row(in, r, &(struct place){*row, *row, {0}}, out);
    else if (json_at(row, r->each, &list))
        while (json_next(&list, &m)) print_row(in, r, &(struct place){m.value, *row, m.key}, out);
}

static void print_head(const struct request *r) {
    for (size_t i = 0; r->csv && i < r->keys.count; i++) {
        if (i > 0) putchar(',');
        print_text(stdout, r->keys.word[i], strlen(r->keys.word[i]), true);
    }
    if (r->csv) fputs("\r\n", stdout);
}

/* -- what is of one machine ---------------------------------------------------------------------------------------- */

/* Takes the bytes from one place of the line to another out of it, and reads the row again. */
static void take_out(struct input *in, const char *from, const char *to, struct json_value *row) {
    struct json_fault wrong;
    memmove(in->line + (from - in->line), to, strlen(to) + 1);
    json_read(in->line, row, &wrong);
}

/* The last name of the path from first to end, with the slashes behind it; NULL: that is all there is. */
static const char *last_name(const char *first, const char *end) {
    while (end > first && end[-1] == '/') end--;
    const char *slash = memrchr(first, '/', (size_t)(end - first));
    return slash ? slash + 1 : NULL;
}

/* What is of one machine: its name, "-" then; paths, of which the last name stays; data, of which the name of the set
 * does: "ptb:/a/b" is "ptb". The last four are of evaluate, bench and costs. */
static const struct hidden {
    const char *key;
    enum { HOST, PATH, DATA } is;
} places[] = {{"host", HOST},         {"config.data", DATA},   {"data_source", PATH},
              {"path", PATH},         {"init_from", PATH},     {"config.init-from", PATH},
              {"config.out", PATH},   {"config.resume", PATH}, {"config.record", PATH},
              {"config.trace", PATH}, {"config.mllog", PATH},  {"config.log-tensorboard", PATH},
              {"checkpoint", PATH},   {"data", DATA},          {"pattern", DATA},
              {"costs", PATH}};

static void hide_places(struct input *in, struct json_value *row) {
    for (const struct hidden *p = places; p < places + sizeof places / sizeof *places; p++) {
        struct json_value v;
        if (!json_at(row, p->key, &v) || *v.at != '"' || v.length < 3) continue;
        const char *first = v.at + 1, *end = v.at + v.length - 1, *colon = memchr(first, ':', (size_t)(end - first));
        const char *last = last_name(first, end);
        if (p->is == HOST) {
            in->line[first - in->line] = '-';
            take_out(in, first + 1, end, row);
        } else if (p->is == DATA) {
            if (colon && memchr(colon, '/', (size_t)(end - colon))) take_out(in, colon, end, row);
        } else if (last) {
            take_out(in, first, last, row);
        }
    }
}

/* -- reading ------------------------------------------------------------------------------------------------------- */

static bool open_input(struct input *in, const char *name, struct err *e) {
    const char *why;
    struct stat info;
    char path[4096];
    bool folder = stat(name, &info) == 0 && S_ISDIR(info.st_mode);
    in->name = name;
    in->number = 0;
    in->file = stdin;
    if (strcmp(name, "-") == 0) return true;
    if (snprintf(path, sizeof path, "%s%s", name, folder ? "/run.jsonl" : "") >= (int)sizeof path)
        return err_set(e, "rows: the name of a file is too long");
    in->file = file_read_stream(path, &why);
    return in->file || err_with(e, err_of_errno(errno), "cannot read %.300s: %s", path, why);
}

static void make_room(struct input *in) {
    if (in->room >= in->size) return;
    mem_free(in->plain);
    in->room = in->size;
    in->plain = mem_alloc(in->room, 1, "a value of a row");
}

static bool take_line(struct input *in, const struct request *r, struct output *out, struct err *e) {
    struct json_value row;
    struct json_fault wrong;
    size_t length = strlen(in->line);
    bool ended = length > 0 && in->line[length - 1] == '\n', blank = in->line[strspn(in->line, " \t\r\n")] == '\0';
    int next = ended ? 0 : getc(in->file);
    in->number++;
    if (next == 0 ? blank : next == EOF && blank) return true;
    if (!ended && next != EOF)
        return err_set(e, "%.300s, line %zu: it is longer than any row, or has a zero byte in it", in->name,
                       in->number);
    bool good = json_read(in->line, &row, &wrong);
    if (!good && !ended) return true; /* it is being written */
    if (!good)
        return err_set(e, "%.300s, line %zu, column %td: %s", in->name, in->number, wrong.at - in->line + 1, wrong.why);
    if (*row.at != '{') return err_set(e, "%.300s, line %zu: it is no JSON object", in->name, in->number);
    if (r->anonymous) hide_places(in, &row);
    make_room(in);
    print_rows(in, r, &row, out);
    return true;
}

static bool take_file(struct input *in, const struct request *r, const char *name, struct output *out, struct err *e) {
    if (!open_input(in, name, e)) return false;
    bool good = true;
    while (good && log_row_next(in->file, &in->line, &in->size)) good = take_line(in, r, out, e);
    if (good && ferror(in->file)) good = err_system(e, "cannot read %.300s: %s", name, strerror(errno));
    if (in->file != stdin) fclose(in->file);
    return good;
}

static bool run(const struct request *r, struct err *e) {
    struct input in = {0};
    struct output out = {.stream = r->last ? NULL : stdout};
    bool good = true;
    print_head(r);
    for (size_t i = 0; good && i < r->files.count; i++) good = take_file(&in, r, r->files.at[i], &out, e);
    if (r->last && out.stream) {
        fclose(out.stream);
        if (good) fwrite(out.text, 1, out.length, stdout);
        free(out.text);
    }
    mem_free(in.line);
    mem_free(in.plain);
    return good;
}

int rows(int argc, char **argv) {
    static struct request r; /* large */
    struct err e = {0};
    if (parse(&r, argc, argv, &e) && run(&r, &e)) return EXIT_DONE;
    fflush(stdout);
    fprintf(stderr, "sparsetrain: %s\n", e.text);
    return err_status(&e);
}
