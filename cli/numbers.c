/* numbers.c: see numbers.h. */
#include "cli/numbers.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A number at *at, which moves behind it. NaN compares as out of range. */
static bool number(const struct number_rule *rule, const char **at, double *value) {
    char *end;
    errno = 0;
    *value = strtod(*at, &end);
    bool good = end != *at && !errno && *value >= rule->least && *value <= rule->most;
    *at = end;
    return good && (!rule->whole || *value == floor(*value));
}

struct range {
    char text[64];
};

static struct range range_of(const struct number_rule *rule) {
    struct range range;
    if (rule->least == NUMBER_ABOVE_0)
        snprintf(range.text, sizeof range.text, "above 0 and at most %.10g", rule->most);
    else
        snprintf(range.text, sizeof range.text, "from %.10g to %.10g", rule->least, rule->most);
    return range;
}

bool numbers_one(const struct number_rule *rule, const char *text, double *value, struct err *e) {
    const char *at = text;
    bool good = number(rule, &at, value);
    if (good && !*at) return true;
    if (good && *at == ',') return err_set(e, "%s: %s %.200s: one number is needed", rule->verb, rule->option, text);
    return err_set(e, "%s: %s %.200s: a %snumber %s is needed", rule->verb, rule->option, text,
                   rule->whole ? "whole " : "", range_of(rule).text);
}

bool numbers_list(const struct number_rule *rule, const char *text, double *value, size_t room, size_t *count,
                  struct err *e) {
    *count = 0;
    for (const char *at = text;; at++) {
        double x;
        if (!number(rule, &at, &x) || (*at && *at != ','))
            return err_set(e, "%s: %s %.200s: %snumbers %s are needed, with commas between them", rule->verb,
                           rule->option, text, rule->whole ? "whole " : "", range_of(rule).text);
        if (*count == room)
            return err_set(e, "%s: %s %.200s: at most %zu numbers", rule->verb, rule->option, text, room);
        value[(*count)++] = x;
        if (!*at) return true;
    }
}

bool numbers_sweep(const struct number_rule *rule, const char *text, double *value, size_t room, size_t *count,
                   struct err *e) {
    const struct number_rule factors = {rule->verb, rule->option, 1.01, 1e9, false};
    const char *at = text;
    double min, max, factor;
    if (!strchr(text, ':')) return numbers_list(rule, text, value, room, count, e);
    if (!number(rule, &at, &min) || *at++ != ':' || !number(rule, &at, &max) || *at++ != ':' ||
        !number(&factors, &at, &factor) || *at || max < min)
        return err_set(e, "%s: %s %.200s: MIN:MAX:FACTOR is needed, such as 1024:1048576:4", rule->verb, rule->option,
                       text);
    *count = 0;
    for (double x = min; x <= max * (1 + 1e-9); x *= factor) {
        if (*count == room)
            return err_set(e, "%s: %s %.200s: more than %zu numbers; a larger factor is needed", rule->verb,
                           rule->option, text, room);
        value[(*count)++] = fmin(floor(x + 0.5), max);
    }
    return true;
}
