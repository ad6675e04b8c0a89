/* numbers.h: numbers on the command lines of `bench`, `bench select`, `bench wire` and `predict`: one, a list with
 * commas between them, or a sweep.
 *
 *        const struct number_rule lengths = {"bench", "--n", 1, UINT32_MAX, true};
 *        if (!numbers_list(&lengths, text, r->n, N_MAX, &r->ns, e)) return false;
 *
 * Whoever breaks the rule gets an error that names verb, option, text and rule. */
#ifndef ST_CLI_NUMBERS_H
#define ST_CLI_NUMBERS_H

#include <stddef.h>

#include "base/error.h"

/* `least` of a number that only has to be above 0. */
#define NUMBER_ABOVE_0 1e-300

struct number_rule {
    const char *verb, *option;
    double least, most;
    bool whole;
};

bool numbers_one(const struct number_rule *rule, const char *text, double *value, struct err *e);

/* value: [room]. */
bool numbers_list(const struct number_rule *rule, const char *text, double *value, size_t room, size_t *count,
                  struct err *e);

/* A list, or MIN:MAX:FACTOR: MIN, MIN FACTOR, ... up to MAX, each to the nearest whole number. */
bool numbers_sweep(const struct number_rule *rule, const char *text, double *value, size_t room, size_t *count,
                   struct err *e);

#endif
