/* option.c: see option.h. */
#include "base/option.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alike.h"
#include "base/json.h"
#include "base/table.h"

#define HUGE_LIMIT 1e9

static void *at(const struct option_row *row, void *base) {
    return (char *)base + row->offset;
}

static const void *const_at(const struct option_row *row, const void *base) {
    return (const char *)base + row->offset;
}

const struct option_row *option_find(const struct option_table *t, const char *name, size_t length) {
    for (size_t i = 0; i < t->rows; i++)
        if (strlen(t->row[i].name) == length && strncmp(t->row[i].name, name, length) == 0) return &t->row[i];
    return NULL;
}

const char *option_choice(const struct option_row *row, size_t i) {
    return row->choice ? row->choice(i) : row->names ? row->names[i] : NULL;
}

void option_choices(const struct option_row *row, char *text, size_t size) {
    text[0] = '\0';
    for (size_t i = 0; option_choice(row, i); i++) names_add(text, size, option_choice(row, i));
}

/* -- defaults ------------------------------------------------------------------------------------------------------ */
static void set_to_none(const struct option_row *row, void *base) {
    void *value = at(row, base);
    switch (row->type) {
    case OPTION_FLAG:
        *(bool *)value = false;
        break;
    case OPTION_INTEGER:
        *(int64_t *)value = -1;
        break;
    case OPTION_INT:
    case OPTION_CHOICE:
        *(int *)value = -1;
        break;
    case OPTION_SIZE:
        *(size_t *)value = 0;
        break;
    case OPTION_REAL:
        *(double *)value = NAN;
        break;
    case OPTION_TEXT:
        *(char *)value = '\0';
        break;
    case OPTION_WORD:
        *(const char **)value = NULL;
        break;
    case OPTION_SET:
        *(unsigned *)value = 0;
        break;
    case OPTION_NAMES:
        ((struct option_names *)value)->count = 0;
        break;
    case OPTION_NUMBERS:
        ((struct option_numbers *)value)->count = 0;
        break;
    case OPTION_OTHER:
        break;
    }
}

void option_default(const struct option_row *row, void *base) {
    struct err e = {0};
    if (!row->standard)
        set_to_none(row, base);
    else if (!option_set(row, base, row->standard, &e))
        die("default of --%s: %s", row->name, e.text);
}

void option_defaults(const struct option_table *t, void *base) {
    for (size_t i = 0; i < t->rows; i++) option_default(&t->row[i], base);
}

/* -- numbers ------------------------------------------------------------------------------------------------------- */
static bool in_range(const struct option_row *row, double x) {
    return x >= row->min && x <= row->max && !(row->above_min && x == row->min);
}

/* "at least 1", "above 0 and at most 1": a limit that nobody meets is named where it was met. */
static void range_text(const struct option_row *row, double x, char text[96]) {
    const char *bound = row->above_min ? "above" : "at least";
    if (row->max >= HUGE_LIMIT && x < HUGE_LIMIT)
        snprintf(text, 96, "%s %g", bound, row->min);
    else
        snprintf(text, 96, "%s %g and at most %.16g", bound, row->min, row->max);
}

static bool set_number(const struct option_row *row, const char *text, double *value, struct err *e) {
    char *end, range[96];
    if (row->infinite && strcmp(text, row->infinite) == 0) {
        *value = INFINITY;
        return true;
    }
    *value = strtod(text, &end);
    while (isspace((unsigned char)*end)) end++;
    if (end == text || *end || isnan(*value)) return err_set(e, "--%s wants a number, not \"%.200s\"", row->name, text);
    if (in_range(row, *value)) return true;
    range_text(row, *value, range);
    return err_set(e, "--%s %.100s is out of range: it must be %s", row->name, text, range);
}

static bool set_whole(const struct option_row *row, const char *text, double *value, struct err *e) {
    if (!set_number(row, text, value, e)) return false;
    return *value == floor(*value) || err_set(e, "--%s wants a whole number, not \"%.200s\"", row->name, text);
}

/* A number of a list at *text, which moves behind it. */
static bool take_number(const struct option_row *row, const char **text, double *x) {
    char *end;
    errno = 0;
    *x = strtod(*text, &end);
    bool good = end != *text && !errno && in_range(row, *x) && (!row->whole || *x == floor(*x));
    *text = end;
    return good;
}

static bool set_list(const struct option_row *row, const char *text, struct option_numbers *list, struct err *e) {
    char range[96];
    list->count = 0;
    for (const char *here = text;; here++) {
        double x;
        if (!take_number(row, &here, &x) || (*here && *here != ',')) {
            range_text(row, HUGE_LIMIT, range);
            return err_set(e, "--%s %.200s: %snumbers %s are needed, with commas between them", row->name, text,
                           row->whole ? "whole " : "", range);
        }
        if (list->count == OPTION_LIST_MAX)
            return err_set(e, "--%s %.200s: at most %d numbers", row->name, text, OPTION_LIST_MAX);
        list->x[list->count++] = x;
        if (!*here) return true;
    }
}

/* MIN:MAX:FACTOR: MIN, MIN FACTOR, ... up to MAX, each to the nearest whole number. */
static bool set_sweep(const struct option_row *row, const char *text, struct option_numbers *list, struct err *e) {
    const struct option_row factors = {.min = 1.01, .max = 1e9};
    const char *here = text;
    double min, max, factor;
    if (!take_number(row, &here, &min) || *here++ != ':' || !take_number(row, &here, &max) || *here++ != ':' ||
        !take_number(&factors, &here, &factor) || *here || max < min)
        return err_set(e, "--%s %.200s: MIN:MAX:FACTOR is needed, such as 1024:1048576:4", row->name, text);
    list->count = 0;
    for (double x = min; x <= max * (1 + 1e-9); x *= factor) {
        if (list->count == OPTION_LIST_MAX)
            return err_set(e, "--%s %.200s: more than %d numbers; a larger factor is needed", row->name, text,
                           OPTION_LIST_MAX);
        list->x[list->count++] = fmin(floor(x + 0.5), max);
    }
    return true;
}

static bool set_numbers(const struct option_row *row, const char *text, struct option_numbers *list, struct err *e) {
    return row->sweep && strchr(text, ':') ? set_sweep(row, text, list, e) : set_list(row, text, list, e);
}

/* -- texts and names ----------------------------------------------------------------------------------------------- */
static bool is_text(const struct option_row *row, const char *text, struct err *e) {
    if (strlen(text) >= OPTION_TEXT_MAX)
        return err_set(e, "--%s: the text is longer than %d characters", row->name, OPTION_TEXT_MAX - 1);
    if (strpbrk(text, "\n\r")) return err_set(e, "--%s: the text contains a line break", row->name);
    return *text || err_set(e, "--%s wants a value, not an empty text", row->name);
}

static bool no_such_name(const struct option_row *row, const char *text, size_t length, struct err *e) {
    char names[OPTION_TEXT_MAX];
    option_choices(row, names, sizeof names);
    if (row->type == OPTION_SET)
        return err_set(e, "--%s has no \"%.*s\"; it takes none, or some of %s with commas between them", row->name,
                       (int)(length < 100 ? length : 100), text, names);
    return err_set(e, "--%s has no \"%.*s\"; there are: %s", row->name, (int)(length < 100 ? length : 100), text,
                   names);
}

/* The number of the choice that so many characters name; false: there is none. */
static bool find_choice(const struct option_row *row, const char *text, size_t length, int *number, struct err *e) {
    for (size_t i = 0; option_choice(row, i); i++) {
        if (strlen(option_choice(row, i)) != length || strncmp(option_choice(row, i), text, length) != 0) continue;
        *number = (int)i;
        return true;
    }
    return no_such_name(row, text, length, e);
}

static bool set_text(const struct option_row *row, const char *text, char *value, struct err *e) {
    if (!is_text(row, text, e)) return false;
    strcpy(value, text);
    return true;
}

/* Some of the choices, with commas between them, or none. */
static bool set_some(const struct option_row *row, const char *text, unsigned *some, struct err *e) {
    *some = 0;
    if (strcmp(text, "none") == 0) return true;
    for (const char *here = text;; here++) {
        size_t length = strcspn(here, ",");
        int number = 0;
        if (!find_choice(row, here, length, &number, e)) return false;
        *some |= 1u << number;
        here += length;
        if (!*here) return true;
    }
}

static bool set_names(const struct option_row *row, const char *text, struct option_names *names, struct err *e) {
    names->count = 0;
    names->all = strcmp(text, "all") == 0;
    for (size_t i = 0; names->all && option_choice(row, i); i++)
        if (names->count < OPTION_LIST_MAX) names->at[names->count++] = (int)i;
    for (const char *here = text; !names->all; here++) {
        size_t length = strcspn(here, ",");
        if (names->count == OPTION_LIST_MAX)
            return err_set(e, "--%s takes at most %d names", row->name, OPTION_LIST_MAX);
        if (!find_choice(row, here, length, &names->at[names->count++], e)) return false;
        here += length;
        if (!*here) return true;
    }
    return true;
}

bool option_set(const struct option_row *row, void *base, const char *text, struct err *e) {
    void *value = at(row, base);
    double number;
    switch (row->type) {
    case OPTION_FLAG:
        *(bool *)value = strcmp(text, "yes") == 0;
        return true;
    case OPTION_INTEGER:
        if (!set_whole(row, text, &number, e)) return false;
        *(int64_t *)value = (int64_t)number;
        return true;
    case OPTION_INT:
        if (!set_whole(row, text, &number, e)) return false;
        *(int *)value = (int)number;
        return true;
    case OPTION_SIZE:
        if (!set_whole(row, text, &number, e)) return false;
        *(size_t *)value = (size_t)number;
        return true;
    case OPTION_REAL:
        return set_number(row, text, value, e);
    case OPTION_TEXT:
        return set_text(row, text, value, e);
    case OPTION_WORD:
        *(const char **)value = text;
        return *text || err_set(e, "--%s wants a value, not an empty text", row->name);
    case OPTION_CHOICE:
        return find_choice(row, text, strlen(text), value, e);
    case OPTION_SET:
        return set_some(row, text, value, e);
    case OPTION_NAMES:
        return set_names(row, text, value, e);
    case OPTION_NUMBERS:
        return set_numbers(row, text, value, e);
    case OPTION_OTHER:
        return row->set(value, text, e);
    }
    return false;
}

/* -- a command line ------------------------------------------------------------------------------------------------ */
/* "sparsetrain bench net --help" */
struct help {
    char text[80];
};
static struct help help_of(const struct option_table *t) {
    struct help help;
    snprintf(help.text, sizeof help.text, "sparsetrain %s%s--help", t->verb ? t->verb : "", t->verb ? " " : "");
    return help;
}

static bool unknown(const struct option_table *t, const char *name, size_t length, struct err *e) {
    struct alike meant = {.word = name, .length = length};
    for (size_t i = 0; i < t->rows; i++) alike_try(&meant, t->row[i].name);
    if (meant.nearest)
        return err_set(e, "there is no option --%.*s; did you mean --%s?", (int)length, name, meant.nearest);
    return err_set(e, "there is no option --%.*s; %s lists them", (int)(length < 200 ? length : 200), name,
                   help_of(t).text);
}

static bool no_operand(const struct option_table *t, const char *word, struct err *e) {
    return err_set(e, "\"%.200s\" is not an option; options begin with -- (see %s)", word, help_of(t).text);
}

/* A word without dashes, behind which the words so far may move up. */
static bool take_operand(const struct option_table *t, void *base, char **argv, int first, char *word, struct err *e) {
    void *to = (char *)base + t->operand_at;
    if (!t->operand || (word[0] == '-' && word[1])) return no_operand(t, word, e);
    if (t->operands) {
        struct option_words *words = to;
        words->at = argv + first;
        words->at[words->count++] = word;
        return true;
    }
    if (*(const char **)to) return err_set(e, "one %s at a time, not %.200s as well", t->operand, word);
    *(const char **)to = word;
    return true;
}

static bool has_operand(const struct option_table *t, const void *base) {
    const void *at = (const char *)base + t->operand_at;
    return t->operands ? ((const struct option_words *)at)->count > 0 : *(const char *const *)at != NULL;
}

static bool all_there(const struct option_table *t, const void *base, const bool *given, struct err *e) {
    if (t->wanted && !has_operand(t, base)) return err_set(e, "%s", t->wanted);
    for (size_t i = 0; i < t->rows; i++)
        if (t->row[i].wanted && !given[i]) return err_set(e, "%s", t->row[i].wanted);
    return true;
}

static bool parse(const struct option_table *t, void *base, bool *given, int argc, char **argv, int first,
                  struct err *e) {
    for (int i = first; i < argc; i++) {
        const char *name = argv[i] + 2, *equals = strchr(argv[i], '=');
        if (strncmp(argv[i], "--", 2) != 0 || !*name) {
            if (!take_operand(t, base, argv, first, argv[i], e)) return false;
            continue;
        }
        size_t length = equals ? (size_t)(equals - name) : strlen(name);
        const struct option_row *row = option_find(t, name, length);
        if (!row) return unknown(t, name, length, e);
        const char *text = equals ? equals + 1 : NULL;
        if (row->type == OPTION_FLAG) {
            if (text) return err_set(e, "--%s takes no value", row->name);
            text = "yes";
        } else if (!text) {
            if (i + 1 == argc) return err_set(e, "--%s wants a value: --%s %s", row->name, row->name, row->argument);
            text = argv[++i];
        }
        bool *seen = given + (row - t->row);
        if (*seen && !row->again) return err_set(e, "--%s is given twice; give it once", row->name);
        if (!option_set(row, base, text, e)) return false;
        *seen = true;
    }
    return all_there(t, base, given, e);
}

bool option_parse(const struct option_table *t, void *base, bool *given, int argc, char **argv, int first,
                  struct err *e) {
    bool seen[OPTION_ROWS_MAX] = {false};
    if (parse(t, base, given ? given : seen, argc, argv, first, e)) return true;
    if (!t->verb) return false;
    struct err of_option = *e;
    *e = (struct err){0};
    return err_with(e, err_status(&of_option), "%s: %.900s", t->verb, of_option.text);
}

bool option_given(const struct option_table *t, const bool *given, const char *name) {
    return given[option_find(t, name, strlen(name)) - t->row];
}

bool option_help_wanted(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return true;
    return false;
}

/* -- values as text ------------------------------------------------------------------------------------------------ */
static void some_text(const struct option_row *row, unsigned some, char text[OPTION_TEXT_MAX]) {
    strcpy(text, some ? "" : "none");
    for (size_t i = 0; some >> i; i++)
        if (some >> i & 1)
            snprintf(text + strlen(text), OPTION_TEXT_MAX - strlen(text), "%s%s", *text ? "," : "",
                     option_choice(row, i));
}

void option_value(const struct option_row *row, const void *base, char text[OPTION_TEXT_MAX]) {
    const void *value = const_at(row, base);
    switch (row->type) {
    case OPTION_FLAG:
        strcpy(text, *(const bool *)value ? "yes" : "no");
        break;
    case OPTION_INTEGER:
        snprintf(text, OPTION_TEXT_MAX, "%lld", (long long)*(const int64_t *)value);
        break;
    case OPTION_INT:
        snprintf(text, OPTION_TEXT_MAX, "%d", *(const int *)value);
        break;
    case OPTION_SIZE:
        snprintf(text, OPTION_TEXT_MAX, "%zu", *(const size_t *)value);
        break;
    case OPTION_REAL:
        json_number_text(*(const double *)value, text);
        if (row->infinite && isinf(*(const double *)value)) strcpy(text, row->infinite);
        break;
    case OPTION_TEXT:
        strcpy(text, value);
        break;
    case OPTION_CHOICE:
        snprintf(text, OPTION_TEXT_MAX, "%s", option_choice(row, (size_t) * (const int *)value));
        break;
    case OPTION_SET:
        some_text(row, *(const unsigned *)value, text);
        break;
    default:
        die("no text of --%s", row->name);
    }
}

bool option_has_value(const struct option_row *row, const void *base) {
    const void *value = const_at(row, base);
    switch (row->type) {
    case OPTION_INTEGER:
        return *(const int64_t *)value >= 0;
    case OPTION_INT:
    case OPTION_CHOICE:
        return *(const int *)value >= 0;
    case OPTION_REAL:
        return !isnan(*(const double *)value);
    case OPTION_TEXT:
        return *(const char *)value;
    default:
        return true;
    }
}

/* -- options of parts ---------------------------------------------------------------------------------------------- */
static size_t size_of(const struct option_row *row) {
    static const size_t size[] = {[OPTION_FLAG] = sizeof(bool),
                                  [OPTION_INTEGER] = sizeof(int64_t),
                                  [OPTION_INT] = sizeof(int),
                                  [OPTION_SIZE] = sizeof(size_t),
                                  [OPTION_REAL] = sizeof(double),
                                  [OPTION_TEXT] = OPTION_TEXT_MAX,
                                  [OPTION_WORD] = sizeof(const char *),
                                  [OPTION_CHOICE] = sizeof(int),
                                  [OPTION_SET] = sizeof(unsigned),
                                  [OPTION_NAMES] = sizeof(struct option_names),
                                  [OPTION_NUMBERS] = sizeof(struct option_numbers),
                                  [OPTION_OTHER] = 0};
    if (size[row->type] == 0) die("--%s: nobody knows how large its value is", row->name);
    return size[row->type];
}

static const struct option_row *named(const struct option_row *row, size_t rows, const char *name) {
    return option_find(&(struct option_table){.row = row, .rows = rows}, name, strlen(name));
}

bool option_declares(const struct option_part *part, const char *name) {
    return named(part->row, part->rows, name) != NULL;
}

size_t option_gather(struct option_row *to, size_t count, const struct option_part *part,
                     const struct option_row *place, size_t *packed) {
    for (size_t i = 0; i < part->rows; i++) {
        const struct option_row *row = &part->row[i];
        if (named(to, count, row->name)) continue;
        if (count == OPTION_ROWS_MAX) die("--%s is an option too many: OPTION_ROWS_MAX", row->name);
        to[count] = *row;
        to[count].offset = packed ? *packed : place->offset + row->offset;
        to[count].group = place->group;
        to[count++].rule = place->rule;
        if (packed) *packed += (size_of(row) + 7) / 8 * 8;
    }
    return count;
}

void option_take(const struct option_part *part, void *to, const struct option_values *from) {
    for (size_t i = 0; i < part->rows; i++) {
        const struct option_row *row = &part->row[i], *given = named(from->row, from->rows, row->name);
        if (given)
            memcpy(at(row, to), const_at(given, from->base), size_of(row));
        else
            option_default(row, to);
    }
}
