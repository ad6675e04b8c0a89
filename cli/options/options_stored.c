/* options_stored.c: the options that a checkpoint has, and what a resumed run takes of them: see options.h. The file
 * may be anybody's: names of files to write, above all, do not come from there. */
#include <string.h>

#include "base/mem.h"
#include "cli/options/options.h"

static bool given(const struct options *o, const struct option_row *row) {
    return o->given[row - train_options.row];
}

/* The run may be made longer or shorter, and its length may be given the other way. */
static bool is_length(const struct option_row *row) {
    return strcmp(row->name, "epochs") == 0 || strcmp(row->name, "steps") == 0;
}

/* Which checkpoints are kept stays as it was, so that none is lost by resuming, unless something else is said; so does
 * how the run is watched. Another batch begins a leg (resize.h); nodes change with the ranks. */
static bool may_change(const struct options *o, const struct option_row *row) {
    return row->rule == RULE_KEPT || is_length(row) || strcmp(row->name, "keep") == 0 ||
           strcmp(row->name, "keep-every") == 0 || strcmp(row->name, "batch") == 0 ||
           (o->other_ranks && strcmp(row->name, "ranks-per-node") == 0);
}

/* What was not given is the checkpoint's; so is the algorithm where it is to be chosen. */
static bool take_over(struct options *o, const struct option_row *row, const char *text, struct err *e) {
    bool algo = strcmp(row->name, "algo") == 0;
    if (given(o, row)) return !algo || !options_auto(o) || option_set(row, o, text, e);
    bool other_length = is_length(row) && (options_given(o, "epochs") || options_given(o, "steps"));
    return other_length || option_set(row, o, text, e);
}

/* Does the text mean the same, written otherwise? */
static bool same_value(const struct options *o, const struct option_row *row, const char *text, const char *now) {
    struct options other = *o;
    struct err e = {0};
    char again[OPTION_TEXT_MAX];
    if (!option_set(row, &other, text, &e)) return false;
    option_value(row, &other, again);
    return strcmp(again, now) == 0;
}

/* What was given must be the checkpoint's; what of it the algorithm had no use for has been ignored. */
static bool compare(struct options *o, const struct option_row *row, const char *text, struct err *e) {
    char now[OPTION_TEXT_MAX];
    if (!given(o, row)) return take_over(o, row, text, e);
    option_value(row, o, now);
    if (strcmp(now, text) == 0 || may_change(o, row) || same_value(o, row, text, now)) return true;
    return err_set(e, "cannot resume: the checkpoint was made with --%s %s, not %s; leave --%s out, or start a new run",
                   row->name, text, now, row->name);
}

/* One that a checkpoint may bring, and for the first time. A name that was never one of ours is not shown as it is: it
 * may be anything. */
static const struct option_row *row_of(const char *name, size_t length, bool *seen, struct err *e) {
    const struct option_row *row = option_find(&train_options, name, length);
    bool *this_seen = row ? &seen[row - train_options.row] : NULL;
    if (!row && (length == 0 || length > 40 || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") < length))
        err_set(e, "its name is that of no option");
    else if (!row)
        err_set(e, "--%.*s is an option of another version", (int)length, name);
    else if (row->rule == RULE_LOCAL)
        err_set(e, "--%s is none that a checkpoint may bring", row->name);
    else if (*this_seen)
        err_set(e, "--%s for the second time", row->name);
    else
        *this_seen = true;
    return e->text[0] ? NULL : row;
}

typedef bool taker(struct options *o, const struct option_row *row, const char *text, struct err *e);

/* One line, [begin, end), "name=value": the row, and the value. */
static const struct option_row *read_row(const char *begin, const char *end, bool *seen, char value[OPTION_TEXT_MAX],
                                         struct err *e) {
    const char *equals = memchr(begin, '=', (size_t)(end - begin));
    if (!equals || end - equals > OPTION_TEXT_MAX) {
        err_set(e, "it is no option with its value");
        return NULL;
    }
    const struct option_row *row = row_of(begin, (size_t)(equals - begin), seen, e);
    memcpy(value, equals + 1, (size_t)(end - equals - 1));
    value[end - equals - 1] = '\0';
    if (row && row->type == OPTION_FLAG && strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
        err_set(e, "--%s is neither yes nor no", row->name);
    return e->text[0] ? NULL : row;
}

/* Each line of a checkpoint's options to `take`. */
static bool each_row(struct options *o, const char *text, taker *take, struct err *e) {
    bool seen[OPTION_ROWS_MAX] = {false};
    size_t line = 1;
    for (const char *end; *text; text = end + 1, line++) {
        char value[OPTION_TEXT_MAX];
        struct err why = {0};
        end = strchr(text, '\n');
        if (!end) err_set(&why, "it has no end");
        const struct option_row *row = end ? read_row(text, end, seen, value, &why) : NULL;
        if (!row) return err_set(e, "line %zu of the checkpoint's options: %.900s", line, why.text);
        if (!take(o, row, value, e)) return false;
    }
    return true;
}

/* Is the value what it would be if nobody had given it? */
static bool is_default(const struct options *o, const struct option_row *row) {
    struct options other = *o;
    char now[OPTION_TEXT_MAX], standard[OPTION_TEXT_MAX];
    option_default(row, &other);
    option_value(row, o, now);
    if (!option_has_value(row, &other)) return !option_has_value(row, o) || !now[0];
    option_value(row, &other, standard);
    return strcmp(now, standard) == 0;
}

/* What was given must have been there: the run was made without what its checkpoint has no value for. */
static bool compare_absent(const struct options *o, const char *text, struct err *e) {
    for (size_t i = 0; i < train_options.rows; i++) {
        const struct option_row *row = &train_options.row[i];
        char then[OPTION_TEXT_MAX], now[OPTION_TEXT_MAX];
        options_text_value(text, row->name, then);
        if (then[0] || !given(o, row) || row->rule != RULE_RUN || may_change(o, row) || is_default(o, row)) continue;
        option_value(row, o, now);
        return err_set(
            e, "cannot resume: the checkpoint was made without --%s, not with %s; leave it out, or start a new run",
            row->name, now);
    }
    return true;
}

bool options_resume(struct options *o, const char *text, struct err *e) {
    bool chosen = options_auto(o);
    if (!each_row(o, text, take_over, e)) return false;
    if (options_given(o, "algo")) options_drop_unused(o, chosen);
    return each_row(o, text, compare, e) && compare_absent(o, text, e);
}

static bool inherit_value(struct options *o, const struct option_row *row, const char *text, struct err *e) {
    return given(o, row) || option_set(row, o, text, e);
}

bool options_stored(const char *text, struct err *e) {
    struct options *o = mem_zalloc(1, sizeof *o, "options");
    options_default(o);
    bool good = each_row(o, text, inherit_value, e);
    mem_free(o);
    return good;
}

bool options_inherit(struct options *o, const char *text, struct err *e) {
    return each_row(o, text, inherit_value, e);
}

void options_text_value(const char *text, const char *name, char value[OPTION_TEXT_MAX]) {
    size_t length = strlen(name);
    value[0] = '\0';
    for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
        if (strncmp(text, name, length) != 0 || text[length] != '=') continue;
        snprintf(value, OPTION_TEXT_MAX, "%.*s", (int)strcspn(text + length + 1, "\n"), text + length + 1);
        return;
    }
}
