/* options.c: parsing, defaults, contradictions and the echo of options, all driven by option_table. */
#include "cli/options.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/place.h"
#include "base/table.h"
#include "comm/exchange_options.h"

static void *value_of(struct options *o, const struct option_row *row) {
    return (char *)o + row->offset;
}

static const void *const_value_of(const struct options *o, const struct option_row *row) {
    return (const char *)o + row->offset;
}

const struct option_row *options_row(const char *name, size_t length) {
    for (size_t i = 0; i < option_rows; i++)
        if (strlen(option_table[i].name) == length && strncmp(option_table[i].name, name, length) == 0)
            return &option_table[i];
    return NULL;
}

static size_t row_number(const struct option_row *row) {
    return (size_t)(row - option_table);
}

bool options_given(const struct options *o, const char *name) {
    return o->given[row_number(options_row(name, strlen(name)))];
}

static void set_default(struct options *o, const struct option_row *row) {
    struct err e = {0};
    if (row->standard && !options_set(o, row, row->standard, &e)) die("default of --%s: %s", row->name, e.text);
    if (row->standard) return;
    if (row->type == OPTION_INTEGER) *(int64_t *)value_of(o, row) = -1;
    if (row->type == OPTION_REAL) *(double *)value_of(o, row) = NAN;
    if (row->type == OPTION_TEXT || row->type == OPTION_CHOICE) *(char *)value_of(o, row) = '\0';
}

void options_default(struct options *o) {
    memset(o, 0, sizeof *o);
    for (size_t i = 0; i < option_rows; i++) set_default(o, &option_table[i]);
}

void options_reset(struct options *o, const char *name) {
    const struct option_row *row = options_row(name, strlen(name));
    set_default(o, row);
    o->given[row_number(row)] = false;
}

void options_ignore(struct options *o, const char *name) {
    o->ignored[row_number(options_row(name, strlen(name)))] = true;
}

void options_ignored(const struct options *o, char *text, size_t size) {
    size_t left = 0, named = 0;
    text[0] = '\0';
    for (size_t i = 0; i < option_rows; i++) left += o->ignored[i];
    for (size_t i = 0; i < option_rows; i++) {
        size_t used = strlen(text);
        if (!o->ignored[i]) continue;
        left--;
        snprintf(text + used, size - used, "%s--%s",
                 named++ == 0 ? ""
                 : left > 0   ? ", "
                              : " and ",
                 option_table[i].name);
    }
}

bool options_auto(const struct options *o) {
    return strcmp(o->algo, "auto") == 0;
}

/* "dense, topka, gtopk" */
static void list_choices(const struct option_row *row, char *text, size_t size) {
    text[0] = '\0';
    for (size_t i = 0; row->choice(i); i++) {
        size_t used = strlen(text);
        snprintf(text + used, size - used, "%s%s", i ? ", " : "", row->choice(i));
    }
}

#define HUGE_LIMIT 1e9

static bool set_number(const struct option_row *row, const char *text, double *value, struct err *e) {
    char *end;
    errno = 0;
    if (row->infinite && strcmp(text, row->infinite) == 0) {
        *value = INFINITY;
        return true;
    }
    *value = strtod(text, &end);
    while (isspace((unsigned char)*end)) end++;
    if (end == text || *end || isnan(*value)) return err_set(e, "--%s wants a number, not \"%s\"", row->name, text);
    if (*value >= row->min && *value <= row->max && !(row->above_min && *value == row->min)) return true;
    const char *bound = row->above_min ? "above" : "at least";
    if (row->max >= HUGE_LIMIT && *value < HUGE_LIMIT) /* no limit that anybody meets: only where it was met */
        return err_set(e, "--%s %.100s is out of range: it must be %s %g", row->name, text, bound, row->min);
    return err_set(e, "--%s %.100s is out of range: it must be %s %g and at most %.16g", row->name, text, bound,
                   row->min, row->max);
}

static bool set_integer(const struct option_row *row, const char *text, int64_t *value, struct err *e) {
    double number;
    if (!set_number(row, text, &number, e)) return false;
    if (number != floor(number)) return err_set(e, "--%s wants a whole number, not \"%s\"", row->name, text);
    *value = (int64_t)number;
    return true;
}

static bool set_text(const struct option_row *row, const char *text, char *value, struct err *e) {
    if (strlen(text) >= OPTION_TEXT_MAX)
        return err_set(e, "--%s: the text is longer than %d characters", row->name, OPTION_TEXT_MAX - 1);
    if (strpbrk(text, "\n\r")) return err_set(e, "--%s: the text contains a line break", row->name);
    if (!*text) return err_set(e, "--%s wants a value, not an empty text", row->name);
    strcpy(value, text);
    return true;
}

static bool set_choice(const struct option_row *row, const char *text, char *value, struct err *e) {
    for (size_t i = 0; row->choice(i); i++)
        if (strcmp(row->choice(i), text) == 0) return set_text(row, text, value, e);
    char names[OPTION_TEXT_MAX];
    list_choices(row, names, sizeof names);
    return err_set(e, "--%s has no \"%.100s\"; there are: %s", row->name, text, names);
}

bool options_set(struct options *o, const struct option_row *row, const char *text, struct err *e) {
    void *value = value_of(o, row);
    switch (row->type) {
    case OPTION_FLAG:
        *(bool *)value = strcmp(text, "yes") == 0;
        return true;
    case OPTION_INTEGER:
        return set_integer(row, text, value, e);
    case OPTION_REAL:
        return set_number(row, text, value, e);
    case OPTION_TEXT:
        return set_text(row, text, value, e);
    case OPTION_CHOICE:
        return set_choice(row, text, value, e);
    }
    return false;
}

/* Levenshtein distance, for "did you mean"; names are short. */
static size_t distance(const char *a, size_t la, const char *b) {
    size_t row[64], lb = strlen(b);
    if (la >= 63 || lb >= 63) return 99;
    for (size_t j = 0; j <= lb; j++) row[j] = j;
    for (size_t i = 1; i <= la; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= lb; j++) {
            size_t above = row[j], best = diagonal + (a[i - 1] != b[j - 1]);
            if (above + 1 < best) best = above + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            diagonal = above;
            row[j] = best;
        }
    }
    return row[lb];
}

static bool unknown_option(const char *name, size_t length, struct err *e) {
    const struct option_row *nearest = NULL;
    size_t best = 4;
    for (size_t i = 0; i < option_rows; i++) {
        size_t d = distance(name, length, option_table[i].name);
        if (d < best) {
            best = d;
            nearest = &option_table[i];
        }
    }
    if (nearest) return err_set(e, "there is no option --%.*s; did you mean --%s?", (int)length, name, nearest->name);
    return err_set(e, "there is no option --%.*s; sparsetrain --help lists them", (int)(length < 200 ? length : 200),
                   name);
}

bool options_parse(struct options *o, int argc, char **argv, int first, struct err *e) {
    for (int i = first; i < argc; i++) {
        if (strncmp(argv[i], "--", 2) != 0 || !argv[i][2])
            return err_set(e, "\"%.200s\" is not an option; options begin with -- (see sparsetrain --help)", argv[i]);
        const char *name = argv[i] + 2, *equals = strchr(name, '=');
        size_t length = equals ? (size_t)(equals - name) : strlen(name);
        const struct option_row *row = options_row(name, length);
        if (!row) return unknown_option(name, length, e);
        const char *text = equals ? equals + 1 : NULL;
        if (row->type == OPTION_FLAG) {
            if (text) return err_set(e, "--%s takes no value", row->name);
            text = "yes";
        } else if (!text) {
            if (i + 1 == argc) return err_set(e, "--%s wants a value: --%s %s", row->name, row->name, row->argument);
            text = argv[++i];
        }
        if (o->given[row_number(row)]) return err_set(e, "--%s is given twice; give it once", row->name);
        if (!options_set(o, row, text, e)) return false;
        o->given[row_number(row)] = true;
    }
    return true;
}

static bool is_infinite(const struct options *o, const struct option_row *row) {
    return row->infinite && isinf(*(const double *)const_value_of(o, row));
}

void options_value(const struct options *o, const struct option_row *row, char text[OPTION_TEXT_MAX]) {
    const void *value = const_value_of(o, row);
    int digits = 6;
    switch (row->type) {
    case OPTION_FLAG:
        strcpy(text, *(const bool *)value ? "yes" : "no");
        break;
    case OPTION_INTEGER:
        snprintf(text, OPTION_TEXT_MAX, "%lld", (long long)*(const int64_t *)value);
        break;
    case OPTION_REAL:
        do snprintf(text, OPTION_TEXT_MAX, "%.*g", digits, *(const double *)value);
        while (strtod(text, NULL) != *(const double *)value && ++digits <= 17);
        if (is_infinite(o, row)) strcpy(text, row->infinite);
        break;
    case OPTION_TEXT:
    case OPTION_CHOICE:
        strcpy(text, value);
        break;
    }
}

/* Integers and texts that were neither given nor filled in have no value to show. */
static bool has_value(const struct options *o, const struct option_row *row) {
    const void *value = const_value_of(o, row);
    if (row->type == OPTION_INTEGER) return *(const int64_t *)value >= 0;
    if (row->type == OPTION_REAL) return !isnan(*(const double *)value);
    return row->type == OPTION_FLAG || *(const char *)value;
}

char *options_text(const struct options *o, enum option_rule rule) {
    char *all = mem_printf("%s", "");
    for (size_t i = 0; i < option_rows; i++) {
        const struct option_row *row = &option_table[i];
        if (row->rule != rule || !has_value(o, row)) continue;
        char value[OPTION_TEXT_MAX];
        options_value(o, row, value);
        char *longer = mem_printf("%s%s=%s\n", all, row->name, value);
        mem_free(all);
        all = longer;
    }
    return all;
}

char *options_kept(const struct options *o) {
    char *run = options_text(o, RULE_RUN), *kept = options_text(o, RULE_KEPT), *both = mem_printf("%s%s", run, kept);
    mem_free(run);
    mem_free(kept);
    return both;
}

void options_json(const struct options *o, struct json *j) {
    json_object(j, "config");
    for (size_t i = 0; i < option_rows; i++) {
        const struct option_row *row = &option_table[i];
        const void *value = const_value_of(o, row);
        if (!has_value(o, row)) {
            json_null(j, row->name);
            continue;
        }
        switch (row->type) {
        case OPTION_FLAG:
            json_boolean(j, row->name, *(const bool *)value);
            break;
        case OPTION_INTEGER:
            json_integer(j, row->name, *(const int64_t *)value);
            break;
        case OPTION_REAL:
            if (is_infinite(o, row))
                json_string(j, row->name, row->infinite);
            else
                json_number(j, row->name, *(const double *)value);
            break;
        case OPTION_TEXT:
        case OPTION_CHOICE:
            json_string(j, row->name, value);
            break;
        }
    }
    json_end(j);
}

const struct exchange_ops *options_exchange(const struct options *o) {
    const struct exchange_ops *found;
    TABLE_FIND(exchanges, o->algo, found);
    return found;
}

const struct selector_ops *options_selector(const struct options *o) {
    const struct selector_ops *found;
    TABLE_FIND(selectors, o->select, found);
    return found;
}

void options_setup(const struct options *o, struct exchange_setup *setup) {
    struct err e = {0};
    TABLE_FIND(wires, o->wire, setup->wire);
    setup->gtopk_residual = strcmp(o->gtopk_residual, "paper") == 0 ? GTOPK_PAPER : GTOPK_CONSERVE;
    setup->oktopk = (struct oktopk_setup){.period = (int)o->tau_prime,
                                          .balance_period = (int)o->tau,
                                          .bucket = (int)o->oktopk_bucket,
                                          .thresholds = reuse_rule_named(o->oktopk_thresholds)};
    if (!oktopk_leave_out("--oktopk-off", o->oktopk_off, &setup->oktopk, &e)) die("%s", e.text);
    setup->bucket_bytes = (size_t)o->overlap_bytes;
    setup->wants_sent = o->local_update || o->momentum_masking || o->log_slices > 0 || options_record_selected(o);
}

enum precision options_precision(const struct options *o) {
    enum precision precision;
    if (!net_precision_parse(o->precision, &precision)) die("no precision %s", o->precision);
    return precision;
}

bool options_clip_local(const struct options *o) {
    return o->clip_norm > 0 && strcmp(o->clip_at, "local") == 0;
}

bool options_record_selected(const struct options *o) {
    return o->record[0] && strcmp(o->record_what, "selected") == 0;
}

bool options_drift(const struct options *o) {
    return o->local_update || options_exchange(o)->drifts;
}

const struct model_ops *options_model(const struct options *o) {
    const struct model_ops *found;
    TABLE_FIND(models, o->model, found);
    return found;
}

const struct dataset_ops *options_dataset(const char *data, const char **where) {
    const char *colon = strchr(data, ':');
    size_t length = colon ? (size_t)(colon - data) : strlen(data);
    for (size_t i = 0; datasets[i]; i++) {
        if (strlen(datasets[i]->name) != length || strncmp(datasets[i]->name, data, length) != 0) continue;
        *where = colon ? colon + 1 : datasets[i]->built_in ? "" : getenv("SPARSETRAIN_DATA");
        if (!*where) *where = place_data();
        return datasets[i];
    }
    return NULL;
}
