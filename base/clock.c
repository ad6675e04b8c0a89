/* clock.c: see clock.h. */
#include "base/clock.h"

#include <time.h>

#include "base/beat.h"
#include "base/trace.h"

const char *const phase_names[PHASE_COUNT] = {"other", "io",          "compute", "select",
                                              "pack",  "communicate", "merge",   "update"};

double clock_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void phases_reset(struct phases *t) {
    *t = (struct phases){.current = PHASE_OTHER, .since = clock_now()};
}

void phases_restart(struct phases *t) {
    const struct phases kept = *t;
    phases_reset(t);
    t->trace = kept.trace;
    t->spend = kept.spend;
    t->spender = kept.spender;
}

enum phase phase_enter(struct phases *t, enum phase next) {
    if (!t) return PHASE_OTHER;
    enum phase left = t->current;
    if (t->spend && left != next) t->spend(t->spender, left, next);
    double now = clock_now();
    t->seconds[left] += now - t->since;
    if (t->trace) trace_add(t->trace, left, t->since, now);
    t->since = now;
    t->current = next;
    beat_phase((int)next);
    return left;
}
