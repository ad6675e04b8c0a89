/* clock.h: time, and the cut of a training step into phases by one clock call per change of phase,
 * the same for all algorithms (published code counts selection into communication for some
 * algorithms and not for others).
 *
 *        struct phases t;
 *        phases_reset(&t);
 *        phase_enter(&t, PHASE_COMPUTE);    // everything up to here went to PHASE_OTHER
 *        ...
 *        phase_enter(&t, PHASE_SELECT);     // everything since the last call went to PHASE_COMPUTE
 *        ...
 *        phase_enter(&t, PHASE_OTHER);
 *
 * A function that does one kind of work for several callers charges the time itself and restores the caller's phase:
 *
 *        size_t read_message(struct phases *t, ...) {
 *            PHASE_SCOPE(t, PHASE_PACK);        // until the block is left
 *            ... */
#ifndef ST_BASE_CLOCK_H
#define ST_BASE_CLOCK_H

#include <stddef.h>

/* Seconds on a monotonic clock. */
double clock_now(void);

enum phase {
    PHASE_OTHER,       /* none of the others: logging, checkpoints, the loop itself */
    PHASE_IO,          /* waiting for the next batch */
    PHASE_COMPUTE,     /* forward and backward */
    PHASE_SELECT,      /* accumulate, select, zero what was delivered */
    PHASE_PACK,        /* entries to wire format and back */
    PHASE_COMMUNICATE, /* inside the transport, waiting included */
    PHASE_MERGE,       /* adding and cutting sparse vectors */
    PHASE_UPDATE,      /* scatter of u/P and the optimiser */
    PHASE_COUNT
};

/* Short names for logs, in the order of enum phase: "other", "io", ... */
extern const char *const phase_names[PHASE_COUNT];

struct trace; /* base/trace.h */

struct phases {
    struct trace *trace;         /* where each stretch of a phase is recorded too; NULL: nowhere */
    double seconds[PHASE_COUNT]; /* since phases_reset */
    double since;                /* when the current phase began */
    enum phase current;
    /* Called when one phase changes to another, before the clock is read, so that the time it takes is charged to the
     * old phase. For simulations, where local work takes no time by itself. NULL: not called. */
    void (*spend)(void *spender, enum phase left, enum phase next);
    void *spender;
};

/* All zero, in PHASE_OTHER from now. */
void phases_reset(struct phases *t);
/* The same, but t->trace and t->spend are kept. */
void phases_restart(struct phases *t);

/* Charges the time since the last call to the current phase, makes `next` the current one and returns
 * the one left, so that a callee can restore its caller's phase. t may be NULL: nothing happens. */
enum phase phase_enter(struct phases *t, enum phase next);

/* PHASE_SCOPE's: NULL where nothing is to be restored, since it is charged to that phase already, or to none. */
struct phase_scope {
    struct phases *t;
    enum phase caller;
};

static inline struct phase_scope phase_scope_begin(struct phases *t, enum phase phase) {
    if (!t || t->current == phase) return (struct phase_scope){NULL, phase};
    return (struct phase_scope){t, phase_enter(t, phase)};
}

static inline void phase_scope_end(const struct phase_scope *scope) {
    phase_enter(scope->t, scope->caller);
}

#define PHASE_SCOPE(t, phase) PHASE_SCOPE_AT(t, phase, __LINE__)
#define PHASE_SCOPE_AT(t, phase, line) PHASE_SCOPE_ON(t, phase, line)
#define PHASE_SCOPE_ON(t, phase, line)                                                                                 \
    const struct phase_scope phase_scope_##line __attribute__((cleanup(phase_scope_end), unused)) =                    \
        phase_scope_begin((t), (phase))

#endif
