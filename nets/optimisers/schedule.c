/* schedule.c: see schedule.h. */
#include "nets/optimisers/schedule.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half_turn.h"
#include "nets/optimisers/power.h"

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
        value = value * epochs / 100; /* in this order 50% of 14 epochs are 7, and not a little more */
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

/* FACTOR at *at, behind a colon. */
static bool factor(const char *text, const char **at, double most, struct lr_schedule *s, struct err *e) {
    if (number(at, &s->factor) && s->factor > 0 && s->factor <= most) return true;
    if (most > 1) return err_set(e, "learning-rate schedule \"%s\": the factor must be a positive number", text);
    return err_set(e, "learning-rate schedule \"%s\": the factor must be above 0 and at most 1", text);
}

/* E,E,...[:FACTOR] */
static bool parse_step(const char *text, const char **at, struct lr_schedule *s, struct err *e) {
    s->factor = 0.1;
    for (;; ++*at) {
        if (!boundary(text, at, s->end, s, e)) return false;
        if (**at != ',') break;
    }
    if (**at != ':') return true;
    ++*at;
    return factor(text, at, 1e6, s, e);
}

/* E:FACTOR */
static bool parse_decay(const char *text, const char **at, struct lr_schedule *s, struct err *e) {
    if (!boundary(text, at, s->end, s, e)) return false;
    if (**at != ':') return err_set(e, "learning-rate schedule \"%s\": use decay:E:FACTOR, such as decay:6:0.5", text);
    ++*at;
    return factor(text, at, 1, s, e);
}

/* [:FLOOR] */
static bool parse_cosine(const char *text, const char **at, struct lr_schedule *s, struct err *e) {
    s->factor = 0;
    if (**at != ':') return true;
    ++*at;
    if (number(at, &s->factor) && s->factor >= 0 && s->factor <= 1) return true;
    return err_set(e, "learning-rate schedule \"%s\": the floor is a share of the rate, from 0 to 1", text);
}

/* What stands behind NAME or NAME: in the text is read by `rest`; NULL: nothing may. */
static const struct form {
    const char *name;
    enum lr_form form;
    bool (*rest)(const char *text, const char **at, struct lr_schedule *s, struct err *e);
} forms[] = {{"constant", LR_CONSTANT, NULL},     {"step:", LR_STEP, parse_step},
             {"decay:", LR_DECAY, parse_decay},   {"linear", LR_LINEAR, NULL},
             {"cosine", LR_COSINE, parse_cosine}, {"inverse-sqrt", LR_INVERSE_SQRT, NULL}};

bool lr_parse(const char *text, double epochs, struct lr_schedule *s, struct err *e) {
    s->factor = 1;
    s->boundaries = 0;
    s->end = epochs;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const char *at = text + strlen(forms[i].name);
        if (strncmp(text, forms[i].name, strlen(forms[i].name)) != 0) continue;
        s->form = forms[i].form;
        if (forms[i].rest && !forms[i].rest(text, &at, s, e)) return false;
        if (*at) return err_set(e, "learning-rate schedule \"%s\": \"%s\" is not understood", text, at);
        return true;
    }
    return err_set(e,
                   "learning-rate schedule \"%s\": use constant, step:E,E,...[:FACTOR], decay:E:FACTOR, linear, "
                   "cosine[:FLOOR] or inverse-sqrt",
                   text);
}

bool lr_complete(const struct lr_schedule *s, struct err *e) {
    if (s->form != LR_INVERSE_SQRT || s->warmup_steps > 0) return true;
    return err_set(e, "--lr-schedule inverse-sqrt falls from the end of a warm-up on, which is counted in steps: give "
                      "--lr-warmup-steps N, 1 at least");
}

/* Epochs from a boundary on; below 0 before it. The place of a step is one quotient, a boundary a decimal number or a
 * share of another quotient: each is rounded on its own, to 1e-16 of itself, and they may miss each other by as much.
 */
static double since(double boundary, double epoch) {
    return epoch * (1 + 1e-12) - boundary;
}

bool lr_reached(double boundary, double epoch) {
    return since(boundary, epoch) >= 0;
}

/* How far is step t, at this epoch, between the end of the warm-up, 0, and that of the run, 1? */
static double way(const struct lr_schedule *s, size_t t, double epoch) {
    if (t >= s->steps) return 1;
    if (s->to > 0) return fmin(fmax((epoch - s->from) / (s->to - s->from), 0), 1);
    return (double)(t - s->warmup_steps) / (double)(s->steps - s->warmup_steps);
}

/* What is left of that way; a quotient of its own, for 1 - way would be rounded once more. */
static double way_left(const struct lr_schedule *s, size_t t, double epoch) {
    if (t >= s->steps || s->to > 0) return 1 - way(s, t, epoch);
    return (double)(s->steps - t) / (double)(s->steps - s->warmup_steps);
}

/* constant: 1;  step: factor^passed;  decay: factor^(floor(epoch - E) + 1) from E on; the others, t from W on: linear:
 * 1 - epoch/end, or (S - t) / (S - W) behind a warm-up in steps;  cosine and inverse-sqrt: see schedule.h */
static double of_form(const struct lr_schedule *s, size_t t, double epoch) {
    double share = 1;
    switch (s->form) {
    case LR_CONSTANT:
        break;
    case LR_STEP:
        for (int i = 0; i < s->boundaries; i++)
            if (lr_reached(s->boundary[i], epoch)) share *= s->factor;
        break;
    case LR_DECAY:
        if (lr_reached(s->boundary[0], epoch))
            share = whole_power(s->factor, (uint64_t)since(s->boundary[0], epoch) + 1);
        break;
    case LR_LINEAR:
        if (s->warmup_steps > 0)
            share = way_left(s, t, epoch);
        else
            share = epoch < s->end ? 1 - epoch / s->end : 0;
        break;
    case LR_COSINE:
        share = s->factor + (1 - s->factor) * (1 + half_turn_cos(way(s, t, epoch))) / 2;
        break;
    case LR_INVERSE_SQRT:
        share = sqrt((double)(s->warmup_steps + 1) / (double)(t + 1));
        break;
    }
    return share;
}

/* In steps: base (t + 1) / (W + 1), and what falls with the epochs falls in the warm-up, too. In epochs:
 * base * of_form * (1/P + (1 - 1/P) epoch/warmup while epoch < warmup) */
double lr_at(const struct lr_schedule *s, size_t step, double epoch, int P) {
    const bool rises = step < s->warmup_steps;
    const bool falls_after = s->form == LR_LINEAR || s->form == LR_COSINE || s->form == LR_INVERSE_SQRT;
    double lr = rises && falls_after ? s->base : s->base * of_form(s, step, epoch);
    if (rises) return lr * (double)(step + 1) / (double)(s->warmup_steps + 1);
    if (epoch < s->warmup) lr *= 1.0 / P + (1.0 - 1.0 / P) * epoch / s->warmup;
    return lr;
}
