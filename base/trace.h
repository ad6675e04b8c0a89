/* trace.h: a record of when each phase began and ended, for `--trace FILE`. phase_enter fills it in where struct
 * phases points to one; cli gathers and writes it. Memory is bounded: what comes after the last place is counted and
 * dropped. */
#ifndef ST_BASE_TRACE_H
#define ST_BASE_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

struct trace_event {
    double begin, end; /* clock_now [s] */
    int32_t phase, zero;
};

struct trace {
    struct trace_event *event; /* [cap] */
    size_t count, cap, dropped;
};

void trace_open(struct trace *t, size_t cap);
void trace_close(struct trace *t);
/* To save places, a stretch that follows another without a gap is merged into it if both are of the same phase, or if
 * one of them is 0.2 us or shorter; the merged stretch has the phase of the longer one. */
void trace_add(struct trace *t, enum phase phase, double begin, double end);

#endif
