/* clock.c: see clock.h. */
#include "base/clock.h"

#include <string.h>
#include <time.h>

const char *const phase_names[PHASE_COUNT] = {"other", "io",          "compute", "select",
                                              "pack",  "communicate", "merge",   "update"};

double clock_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void phases_reset(struct phases *t) {
    memset(t, 0, sizeof *t);
    t->current = PHASE_OTHER;
    t->since = clock_now();
}

enum phase phase_enter(struct phases *t, enum phase next) {
    if (!t) return PHASE_OTHER;
    double now = clock_now();
    enum phase left = t->current;
    t->seconds[left] += now - t->since;
    t->since = now;
    t->current = next;
    return left;
}
