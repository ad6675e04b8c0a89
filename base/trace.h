/* trace.h: a record of when each phase began and ended, for `--trace FILE`. Hung into struct phases, it is written by
 * phase_enter; cli gathers and writes it. Memory is bounded: what comes after the last place is counted and dropped. */
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
/* A stretch that follows another one without a gap makes that one longer where both are of the same phase, or one of
 * them is no longer than 0.2 us: together they are of the longer one's phase. */
void trace_add(struct trace *t, enum phase phase, double begin, double end);

#endif
