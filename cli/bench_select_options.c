/* bench_select_options.c: the command line of `sparsetrain bench select`. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench_select.h"

const char select_usage[] =
    "usage: sparsetrain bench select [--select LIST|all] [--n LIST|MIN:MAX:FACTOR] [--density LIST] [--repeat N]\n"
    "                                [--period N] [--json]\n"
    "Steps of accumulate, select about k = density * n, take out what was selected, one thread, next to a plain\n"
    "acc += grad and a read scan of the same length. LIST: values with commas between them.\n"
    "  --select LIST    selectors (default all; `sparsetrain list` names them)\n"
    "  --n LIST         gradient lengths (default 1000000,14728266; VGG-16 has 14728266, BERT 133547324);\n"
    "                   MIN:MAX:FACTOR: MIN, MIN * FACTOR, ... up to MAX. 18 bytes of memory per entry and more\n"
    "  --density LIST   shares selected (default 0.001,0.02)\n"
    "  --repeat N       timed steps, each with all three passes in turn (default 40)\n"
    "  --period N       steps between exact thresholds of reuse (default 32)\n"
    "  --json           one JSON object per row instead of the table\n";

struct range {
    double least, most;
    bool whole;
};

static bool number(const char **at, struct range allowed, double *x) {
    char *end;
    errno = 0;
    *x = strtod(*at, &end);
    bool good = end != *at && !errno && *x >= allowed.least && *x <= allowed.most;
    *at = end;
    return good && (!allowed.whole || *x == floor(*x));
}

static bool bad_list(const char *option, const char *text, struct range allowed, struct err *e) {
    return err_set(e, "bench select: %s %s: %snumbers from %g to %.10g with commas between them are needed", option,
                   text, allowed.whole ? "whole " : "", allowed.least, allowed.most);
}

/* Numbers with commas between them. */
static bool parse_list(const char *option, const char *text, struct range allowed, double *list, size_t *count,
                       struct err *e) {
    *count = 0;
    for (const char *at = text;; at++) {
        double x;
        if (!number(&at, allowed, &x) || (*at && *at != ',')) return bad_list(option, text, allowed, e);
        if (*count == SELECT_LIST_MAX)
            return err_set(e, "bench select: %s %s: at most %d numbers", option, text, SELECT_LIST_MAX);
        list[(*count)++] = x;
        if (!*at) return true;
    }
}

/* MIN:MAX:FACTOR */
static bool parse_sweep(const char *option, const char *text, struct range allowed, double *list, size_t *count,
                        struct err *e) {
    const char *at = text;
    double least, most, factor;
    bool good = number(&at, allowed, &least) && *at++ == ':' && number(&at, allowed, &most) && *at++ == ':' &&
                number(&at, (struct range){1.001, 1e9, false}, &factor) && !*at && least <= most;
    if (!good)
        return err_set(e,
                       "bench select: %s %s: MIN:MAX:FACTOR is needed, whole numbers from %g to %.10g, MIN not above "
                       "MAX, the factor above 1",
                       option, text, allowed.least, allowed.most);
    *count = 0;
    for (double x = least; x <= most; x *= factor) {
        if (*count == SELECT_LIST_MAX)
            return err_set(e, "bench select: %s %s: more than %d lengths; a larger factor is needed", option, text,
                           SELECT_LIST_MAX);
        list[(*count)++] = floor(x);
    }
    return true;
}

static const struct selector_ops *selector_called(const char *name, size_t length) {
    for (size_t i = 0; selectors[i]; i++)
        if (strlen(selectors[i]->name) == length && memcmp(selectors[i]->name, name, length) == 0) return selectors[i];
    return NULL;
}

static bool parse_rows(const char *text, struct select_request *r, struct err *e) {
    r->row_count = 0;
    if (strcmp(text, "all") == 0) {
        while (selectors[r->row_count]) r->row[r->row_count] = selectors[r->row_count], r->row_count++;
        return true;
    }
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        const struct selector_ops *found = selector_called(at, length);
        if (!found)
            return err_set(e, "bench select: there is no selector \"%.*s\"; `sparsetrain list` shows those there are",
                           (int)(length < 100 ? length : 100), at);
        if (r->row_count == SELECT_LIST_MAX) return err_set(e, "bench select: --select: too many names");
        r->row[r->row_count++] = found;
        at += length;
        if (!*at) return true;
    }
}

static bool parse_one(const char *option, const char *text, double most, double *x, struct err *e) {
    const char *at = text;
    if (number(&at, (struct range){1, most, true}, x) && !*at) return true;
    return err_set(e, "bench select: %s %s: a whole number from 1 to %g is needed", option, text, most);
}

static bool parse_option(const char *option, const char *value, struct select_request *r, struct err *e) {
    const struct range lengths = {1, 4294967295.0, true}, shares = {1e-12, 1, false};
    double x = 0;
    if (strcmp(option, "--select") == 0) return parse_rows(value, r, e);
    if (strcmp(option, "--density") == 0) return parse_list(option, value, shares, r->density, &r->density_count, e);
    if (strcmp(option, "--n") == 0)
        return (strchr(value, ':') ? parse_sweep : parse_list)(option, value, lengths, r->n, &r->n_count, e);
    if (strcmp(option, "--repeat") == 0) {
        if (!parse_one(option, value, SELECT_REPEAT_MAX, &x, e)) return false;
        r->repeat = (size_t)x;
        return true;
    }
    if (!parse_one(option, value, 1e9, &x, e)) return false;
    r->period = (int)x;
    return true;
}

bool select_parse(int argc, char **argv, struct select_request *r, struct err *e) {
    const char *const options[] = {"--select", "--n", "--density", "--repeat", "--period"};
    *r = (struct select_request){
        .n = {1000000, 14728266}, .density = {0.001, 0.02}, .n_count = 2, .density_count = 2, .repeat = 40};
    parse_rows("all", r, e);
    for (int i = 1; i < argc; i++) {
        bool known = false;
        if (strcmp(argv[i], "--json") == 0) {
            r->json = true;
            continue;
        }
        for (size_t o = 0; o < sizeof options / sizeof options[0]; o++) known |= strcmp(argv[i], options[o]) == 0;
        if (!known) return err_set(e, "bench select: unknown option %.200s; --help shows them all", argv[i]);
        if (!argv[i + 1]) return err_set(e, "bench select: %s needs a value", argv[i]);
        if (!parse_option(argv[i], argv[i + 1], r, e)) return false;
        i++;
    }
    return true;
}
