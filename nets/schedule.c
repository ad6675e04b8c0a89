/* schedule.c: see schedule.h. */
#include "nets/schedule.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A number at *at, moved behind it; false when there is none or it is not finite. */
static bool number(const char **at, double *value) {
    char *end;
    if (strchr("+- \t\n", **at)) return false; /* strtod would take these, and the empty text */
    *value = strtod(*at, &end);
    if (end == *at || !isfinite(*value)) return false;
    *at = end;
    return true;
}

/* E or E% at *at: a boundary in epochs. */
static bool boundary(const char *text, const char **at, double epochs, struct lr_schedule *s, struct err *e) {
    double value;
    if (!number(at, &value))
        return err_set(e, "learning-rate schedule \"%s\": a number of epochs is expected at \"%s\"", text, *at);
    if (**at == '%') {
        if (value > 100)
            return err_set(e, "learning-rate schedule \"%s\": %g%% is beyond the end of the run", text, value);
        value *= epochs / 100;
        ++*at;
    }
    if (s->boundaries == SCHEDULE_STEPS_MAX)
        return err_set(e, "learning-rate schedule \"%s\": at most %d steps", text, SCHEDULE_STEPS_MAX);
    double last = s->boundaries ? s->boundary[s->boundaries - 1] : -1;
    if (value < last || (value == last && epochs > 0)) /* a run of no length has all its steps at 0 */
        return err_set(e, "learning-rate schedule \"%s\": the epochs must rise", text);
    s->boundary[s->boundaries++] = value;
    return true;
}

bool lr_parse(const char *text, double epochs, struct lr_schedule *s, struct err *e) {
    s->factor = 0.1;
    s->boundaries = 0;
    if (strcmp(text, "constant") == 0) return true;
    if (strncmp(text, "step:", 5) != 0)
        return err_set(e, "learning-rate schedule \"%s\": use constant or step:E,E,...[:FACTOR]", text);
    const char *at = text + 5;
    for (;; at++) {
        if (!boundary(text, &at, epochs, s, e)) return false;
        if (*at != ',') break;
    }
    if (*at == ':') {
        at++;
        if (!number(&at, &s->factor) || s->factor <= 0 || s->factor > 1e6)
            return err_set(e, "learning-rate schedule \"%s\": the factor must be a positive number", text);
    }
    if (*at) return err_set(e, "learning-rate schedule \"%s\": \"%s\" is not understood", text, at);
    return true;
}

/* base * factor^passed * (1/P + (1 - 1/P) epoch/warmup while epoch < warmup) */
double lr_at(const struct lr_schedule *s, double epoch, int P) {
    double lr = s->base;
    for (int i = 0; i < s->boundaries; i++)
        if (epoch >= s->boundary[i]) lr *= s->factor;
    if (epoch < s->warmup) lr *= 1.0 / P + (1.0 - 1.0 / P) * epoch / s->warmup;
    return lr;
}
