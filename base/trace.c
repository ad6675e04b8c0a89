/* trace.c: see trace.h. */
#include "base/trace.h"

#include "base/mem.h"

static const double SHORT = 2e-7; /* [s], as long as it takes to go from a call of the transport to the next */

void trace_open(struct trace *t, size_t cap) {
    *t = (struct trace){.cap = cap};
    t->event = mem_alloc(cap, sizeof *t->event, "the trace");
}

void trace_close(struct trace *t) {
    mem_free(t->event);
    *t = (struct trace){0};
}

void trace_add(struct trace *t, enum phase phase, double begin, double end) {
    struct trace_event *last = t->count > 0 ? &t->event[t->count - 1] : NULL;
    double had = last ? last->end - last->begin : 0, more = end - begin;
    if (last && last->end == begin && (last->phase == (int32_t)phase || had <= SHORT || more <= SHORT)) {
        if (more > had) last->phase = (int32_t)phase;
        last->end = end;
    } else if (t->count < t->cap) {
        t->event[t->count++] = (struct trace_event){begin, end, (int32_t)phase, 0};
    } else {
        t->dropped++;
    }
}
