/* beat.h: signs of life that other processes of this machine can read: how much has been done, what is being done,
 * and whether this process waits for others. Long-running code calls beat() now and then; it costs a load and a
 * store. Like the rank in error.h this is state of the whole process, since it is needed where no handle can be
 * passed. Several threads may beat at the same time; a beat may then get lost, which does no harm. */
#ifndef ST_BASE_BEAT_H
#define ST_BASE_BEAT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* What a run is doing. */
enum activity {
    ACTIVITY_START, /* opening files, choosing an algorithm */
    ACTIVITY_STEP,
    ACTIVITY_MEASURE, /* of bench and p2p */
    ACTIVITY_TURN,    /* of p2p: while it waits for its turn, or for the end of the others', as long as that may take */
    ACTIVITY_EVALUATION,
    ACTIVITY_CHECKPOINT,
    ACTIVITY_END, /* of the run, or of the program */
    ACTIVITY_COUNT
};

enum { BEAT_EVERYBODY = -1 };

struct beat {
    _Atomic uint64_t count;      /* grows with all that gets done */
    _Atomic uint64_t waits;      /* how many times this process began and ended to wait for others: odd while it does */
    _Atomic uint64_t step;       /* from 1; of an activity between two steps: the one before */
    _Atomic uint64_t bytes;      /* of the message that is waited for, where it is known */
    _Atomic int peer;            /* the rank that is waited for; BEAT_EVERYBODY: all, or nobody knows */
    _Atomic int activity, phase; /* base/clock.h's */
};

extern struct beat *beat_mine; /* never NULL */

/* From here on the signs are written to b, which begins with the counts so far. NULL: back to memory of this process.
 */
void beat_move(struct beat *b);

#define BEAT_GET(field) atomic_load_explicit(&beat_mine->field, memory_order_relaxed)
#define BEAT_SET(field, value) atomic_store_explicit(&beat_mine->field, value, memory_order_relaxed)

static inline void beat(void) {
    BEAT_SET(count, BEAT_GET(count) + 1);
}

static inline void beat_phase(int phase) {
    BEAT_SET(phase, phase);
    beat();
}

static inline void beat_activity(enum activity activity, size_t step) {
    BEAT_SET(step, step);
    BEAT_SET(activity, activity);
    beat();
}

/* Called before and after anything that may wait for other ranks. */
static inline void beat_wait_begin(void) {
    BEAT_SET(waits, BEAT_GET(waits) + 1);
}

static inline void beat_wait_end(void) {
    BEAT_SET(waits, BEAT_GET(waits) + 1);
    BEAT_SET(peer, BEAT_EVERYBODY);
    BEAT_SET(bytes, 0);
}

/* Before beat_wait_begin: what the next wait is for, where that is known. */
static inline void beat_expect(int peer, size_t bytes) {
    BEAT_SET(peer, peer);
    BEAT_SET(bytes, bytes);
}

#endif
