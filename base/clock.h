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
 */
#ifndef ST_BASE_CLOCK_H
#define ST_BASE_CLOCK_H

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
    /* Called when a phase is left for another, before the clock is read: what it spends is charged to the phase left.
     * For simulations, in which local work takes no time of its own. NULL: nothing. */
    void (*spend)(void *spender, enum phase left);
    void *spender;
};

/* All zero, in PHASE_OTHER from now. */
void phases_reset(struct phases *t);
/* The same, but t->trace and t->spend are kept. */
void phases_restart(struct phases *t);

/* Charges the time since the last call to the current phase, makes `next` the current one and returns
 * the one left, so that a callee can restore its caller's phase. t may be NULL: nothing happens. */
enum phase phase_enter(struct phases *t, enum phase next);

#endif
