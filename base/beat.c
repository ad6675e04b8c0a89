/* beat.c: see beat.h. */
#include "base/beat.h"

static struct beat own = {.peer = BEAT_EVERYBODY};
struct beat *beat_mine = &own;

void beat_move(struct beat *b) {
    const struct beat *from = beat_mine;
    if (!b) b = &own;
    b->count = from->count;
    b->waits = from->waits;
    b->step = from->step;
    b->bytes = from->bytes;
    b->peer = from->peer;
    b->activity = from->activity;
    b->phase = from->phase;
    beat_mine = b;
}
