/* schedule_text.c: see schedule_text.h. */
#include "cli/options/schedule_text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "topk/selector.h"

static const char beyond[] = ", which this run does not reach";

static void add(char *text, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void add(char *text, size_t size, const char *format, ...) {
    size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, size - used, format, args);
    va_end(args);
}

static void add_density(char *text, size_t size, double density, size_t entries) {
    add(text, size, "%g (k = %zu)", density, density_to_k(density, entries));
}

/* Epochs are sums of steps. */
static size_t step_at(const struct course *c, double epoch) {
    return c->leg_step + (size_t)llround(fmax(epoch - c->leg, 0) / c->step);
}

/* Of a step that is to come; of one before the leg it is before that, too. */
static double epoch_at(const struct course *c, size_t step) {
    return c->leg + ((double)step - (double)c->leg_step) * c->step;
}

static double density_in(const struct density_schedule *d, const struct course *c, double epoch) {
    return density_at(d, step_at(c, epoch), (size_t)epoch);
}

void schedule_density(const struct density_schedule *d, size_t entries, bool later, const struct course *c, char *text,
                      size_t size) {
    const double settled = density_settled(d, fmax(epoch_at(c, d->warmup_steps), 0));
    const double almost = settled - c->step / 2; /* epochs are sums of steps */
    const double now = density_in(d, c, c->first), then = density_in(d, c, c->last);
    text[0] = '\0';
    if (c->first > almost) {
        add_density(text, size, d->target, entries);
        return;
    }
    add_density(text, size, now, entries);
    if (!later) add(text, size, " now");
    if (c->last < almost && then != now)
        add(text, size, ", %g in its last %s", then, d->warmup_steps > 0 ? "step" : "epoch");
    add(text, size, ", ");
    add_density(text, size, d->target, entries);
    add(text, size, " from epoch %.4g%s", settled, c->last < almost ? beyond : "");
}

/* "; times 0.1 at epochs 70 and 105" */
static void add_steps(const struct lr_schedule *s, const struct course *c, char *text, size_t size) {
    int from = 0, reached = 0, steps;
    while (from < s->boundaries && lr_reached(s->boundary[from], c->first)) from++;
    steps = s->boundaries - from;
    while (reached < steps && lr_reached(s->boundary[from + reached], c->last)) reached++;
    if (steps == 0) return;
    add(text, size, "; times %g at epoch%s ", s->factor, steps > 1 ? "s" : "");
    for (int i = 0; i < steps; i++)
        add(text, size, "%s%g", i == 0 ? "" : i + 1 < steps ? ", " : " and ", s->boundary[from + i]);
    if (reached == 0)
        add(text, size, "%s", beyond);
    else if (reached + 1 == steps)
        add(text, size, ", the last of which this run does not reach");
    else if (reached < steps)
        add(text, size, ", the last %d of which this run does not reach", steps - reached);
}

/* Is the run over before its warm-up is? Then what falls behind that never does. */
static bool only_rises(const struct lr_schedule *s) {
    return s->warmup_steps > 0 && s->warmup_steps >= s->steps;
}

static void add_form(const struct lr_schedule *s, const struct course *c, char *text, size_t size) {
    if (only_rises(s) && (s->form == LR_LINEAR || s->form == LR_COSINE)) return;
    switch (s->form) {
    case LR_CONSTANT:
        break;
    case LR_STEP:
        add_steps(s, c, text, size);
        break;
    case LR_DECAY:
        add(text, size, "; times %g at every epoch from %g on%s", s->factor, s->boundary[0],
            !lr_reached(s->boundary[0], c->last) ? beyond : "");
        break;
    case LR_LINEAR:
        add(text, size, "; down to 0 at epoch %g%s", s->end, c->end < s->end - 1e-9 ? beyond : "");
        break;
    case LR_COSINE:
        add(text, size, "; along a cosine down to %.4g at epoch %g%s", s->factor * s->base, s->end,
            c->end < s->end - 1e-9 ? beyond : "");
        break;
    case LR_INVERSE_SQRT:
        add(text, size, "; from step %zu on with the inverse square root of the step", s->warmup_steps);
        break;
    }
}

/* Which is counted in epochs or in steps; `now`: the rate in c->first. */
static void add_warmup(const struct lr_schedule *s, int P, const struct course *c, double now, char *text,
                       size_t size) {
    const size_t W = s->warmup_steps, first = step_at(c, c->first);
    const double whole = lr_at(s, first, c->first, 1); /* one rank has no ramp */
    const double top = only_rises(s) ? s->base : lr_at(s, W, fmax(epoch_at(c, W), 0), P);
    add(text, size, "%.4g", now);
    if (P > 1 && c->first < s->warmup)
        add(text, size, " now, rising to %.4g until epoch %g%s", whole, s->warmup, c->end < s->warmup ? beyond : "");
    if (first < W)
        add(text, size, " now, rising to %.4g until step %zu%s", top, W, step_at(c, c->end) < W ? beyond : "");
}

void schedule_rate(const struct lr_schedule *s, int P, const struct course *c, char *text, size_t size) {
    text[0] = '\0';
    add_warmup(s, P, c, lr_at(s, step_at(c, c->first), c->first, P), text, size);
    add_form(s, c, text, size);
}
