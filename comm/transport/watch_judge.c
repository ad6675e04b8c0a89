/* watch_judge.c: who keeps the others waiting? See watch.h.
 *
 * A rank that waits is no culprit, as long as its watchdog has a pulse: somebody else keeps it waiting. One without a
 * pulse is stopped or gone, whatever it was doing. One with a pulse that neither waits nor gets anything done is stuck,
 * or in something very long. If nobody on this node is any of these and all wait, it must be somebody on another. One
 * that waits for its turn says nothing of the others, and is as if it had left. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "comm/transport/watch.h"

static const double slowest_network = 4e6; /* [bytes/s] that a long message may count on */

size_t watch_page_bytes(int slots) {
    return sizeof(struct watch_page) + (size_t)slots * sizeof(struct watch_slot);
}

static bool waits(const struct watch_slot *s) {
    return atomic_load_explicit(&s->beat.waits, memory_order_relaxed) & 1;
}

static bool waits_for_turn(const struct watch_slot *s) {
    return waits(s) && s->beat.activity == ACTIVITY_TURN;
}

static void note(struct watch_record *r, const struct watch_slot *s, double dt) {
    uint64_t done = s->beat.count + s->beat.waits, pulse = s->pulse;
    r->idle = done == r->done ? r->idle + dt : 0;
    r->silent = pulse == r->pulse ? r->silent + dt : 0;
    r->done = done;
    r->pulse = pulse;
}

static bool is_short(const struct watch_slot *s) {
    int a = s->beat.activity;
    return a == ACTIVITY_STEP || a == ACTIVITY_MEASURE || a == ACTIVITY_EVALUATION;
}

static bool is_culprit(const struct watch_judge *j, const struct watch_slot *s, const struct watch_record *r) {
    if (s->state != WATCH_THERE) return false;
    bool silent = r->silent >= j->limit;
    bool stuck = !waits(s) && r->idle >= j->limit * (is_short(s) ? 1 : WATCH_PATIENCE);
    return (silent || stuck) && !(j->excused && j->excused(s, j->asker));
}

/* How long a rank may wait [s] until, with nobody on this node to blame, something is wrong. */
static double patience(const struct watch_judge *j, const struct watch_slot *s) {
    return j->limit * (is_short(s) ? 1 : WATCH_PATIENCE) + (double)s->beat.bytes / slowest_network;
}

/* Not one that has not been heard of lately: it may have been stopped while it waits, after a last pulse, and is given
 * the time to be found silent, so that it is named, where else all would be said to wait. Nor one that a debugger
 * holds. */
static bool has_waited(const struct watch_judge *j, const struct watch_slot *s, const struct watch_record *r) {
    bool heard_of = s->state != WATCH_THERE || r->silent < j->limit / 2;
    return waits(s) && heard_of && r->idle >= patience(j, s);
}

/* All nodes that wait for the same rank would report it at the same time: each waits some seconds for the nodes
 * before it [s]. */
static double turn(const struct watch_page *page) {
    enum { MOST = 10 };
    int first = page->slot[0].rank;
    return first < MOST ? first : MOST;
}

enum watch_finding watch_look(struct watch_judge *j, const struct watch_page *page, double dt) {
    bool found = false, all_wait = true;
    for (int i = 0; i < page->slots; i++) note(&j->record[i], &page->slot[i], dt);
    const struct watch_slot *mine = &page->slot[j->mine];
    if (!waits(mine) || waits_for_turn(mine) || j->record[j->mine].idle < j->limit) return WATCH_FINE;
    for (int i = 0; i < page->slots; i++) {
        const struct watch_slot *s = &page->slot[i];
        j->culprit[i] = i != j->mine && is_culprit(j, s, &j->record[i]);
        found |= j->culprit[i];
        all_wait &= s->state == WATCH_LEFT || waits_for_turn(s) || has_waited(j, s, &j->record[i]);
    }
    if (found) return WATCH_CULPRITS;
    if (!all_wait) return WATCH_FINE;
    if (page->slots == page->ranks) return WATCH_DEADLOCK;
    return j->record[j->mine].idle >= patience(j, mine) + turn(page) ? WATCH_ELSEWHERE : WATCH_FINE;
}

/* -- in words ------------------------------------------------------------------------------------------------------ */
static void add(char *text, size_t size, const char *more) {
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s", more);
}

/* Where a rank is, or another has not come to. */
static const char *place(const struct watch_slot *s, char *text, size_t size) {
    unsigned long long step = s->beat.step;
    const int phase = s->beat.phase, activity = s->beat.activity;
    switch (activity) {
    case ACTIVITY_STEP:
        snprintf(text, size, "step %llu, %s", step,
                 phase > PHASE_OTHER && phase < PHASE_COUNT ? phase_names[phase] : "between two phases");
        return text;
    case ACTIVITY_EVALUATION:
        snprintf(text, size, "the evaluation after step %llu", step);
        return text;
    case ACTIVITY_CHECKPOINT:
        snprintf(text, size, "the checkpoint of step %llu", step);
        return text;
    case ACTIVITY_MEASURE:
        return "the measurement";
    case ACTIVITY_TURN:
        return "its turn";
    case ACTIVITY_END:
        return "the end";
    default:
        return "the start";
    }
}

static const char *meeting(const struct watch_slot *s, char *text, size_t size) {
    if (s->beat.activity != ACTIVITY_STEP) return place(s, text, size);
    snprintf(text, size, "the exchange of step %llu", (unsigned long long)s->beat.step);
    return text;
}

static void say_culprits(const struct watch_judge *j, const struct watch_page *page, const char *how, char *text,
                         size_t size) {
    char to[80], at[80];
    int first = 0, more = 0, waiting = 0;
    while (first + 1 < page->slots && !j->culprit[first]) first++;
    for (int i = 0; i < page->slots; i++) {
        more += j->culprit[i] && i > first;
        waiting += !j->culprit[i] && waits(&page->slot[i]);
    }
    const struct watch_slot *s = &page->slot[first];
    const struct watch_record *r = &j->record[first];
    bool silent = r->silent >= j->limit;
    /* One that was stopped right after it was heard of: known not to run, though not silent for long enough. */
    const char *since = silent ? "nothing heard of it"
                        : *how ? "it has got nothing done"
                               : "it runs, but has got nothing done";
    char others[32] = "";
    if (more) snprintf(others, sizeof others, " (and %d more)", more);
    snprintf(text, size, "rank %d%s has not come to %s, where %d rank%s for it: %s for %.0f s%s; it was last in %s",
             s->rank, others, meeting(&page->slot[j->mine], to, sizeof to), waiting, waiting == 1 ? " waits" : "s wait",
             since, silent ? r->silent : r->idle, how, place(s, at, sizeof at));
}

void watch_say(const struct watch_judge *j, const struct watch_page *page, enum watch_finding finding, const char *how,
               char *text, size_t size) {
    const struct watch_slot *mine = &page->slot[j->mine];
    double waited = j->record[j->mine].idle;
    int peer = mine->beat.peer;
    char to[80], who[64] = "a rank of another node";
    if (finding == WATCH_CULPRITS) {
        say_culprits(j, page, how, text, size);
    } else if (finding == WATCH_ELSEWHERE) {
        if (peer >= 0) snprintf(who, sizeof who, "rank %d, or one that it waits for,", peer);
        snprintf(text, size, "%s has not come to %s: rank %d has waited for %.0f s, and nobody on its node is behind",
                 who, meeting(mine, to, sizeof to), mine->rank, waited);
    } else {
        snprintf(text, size, "all ranks wait for each other: rank %d in %s", mine->rank, place(mine, to, sizeof to));
        if (peer >= 0) snprintf(who, sizeof who, " for rank %d", peer);
        if (peer >= 0) add(text, size, who);
        snprintf(who, sizeof who, ", for %.0f s", waited);
        add(text, size, who);
    }
}
