/* watch.h: the watchdog of a job. Each rank has a thread that checks, while the rank waits for others, whether those
 * make progress. A rank that has shown no sign of life for `limit` seconds is named, with what it did last, and all
 * ranks end with status 1.
 *
 * What a rank knows of others it reads in a page that the ranks of a node share (struct watch_page): their beats
 * (base/beat.h), which their work leaves there, and the pulse of their own watchdogs, which says that a process runs,
 * if only to compute. Of ranks on other nodes nothing is known but that they have not come; no message is ever sent
 * for this, and no call of MPI is made.
 *
 * Time counts only while the watching process itself runs: if the machine sleeps or the whole job is stopped, the
 * counts stay as they were.
 *
 * watch_judge.c decides, without clock, threads or processes; watch.c has those. */
#ifndef ST_COMM_WATCH_H
#define ST_COMM_WATCH_H

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/beat.h"

enum watch_state {
    WATCH_ABSENT, /* no watchdog there (yet): nothing can be said of this rank's process */
    WATCH_THERE,
    WATCH_LEFT /* it has done all that others could wait for */
};

/* One rank of the node; a cache line or two of its own. */
struct watch_slot {
    alignas(128) struct beat beat;
    _Atomic uint64_t pulse; /* of its watchdog */
    _Atomic int state;
    int rank; /* in the job */
    int process;
    uint64_t born, space; /* when the process began, and in which name space its number holds; 0: unknown */
};

struct watch_page {
    int slots, ranks;    /* of this node; of the whole job */
    _Atomic int verdict; /* 1 + the slot of the rank that has spoken: all end */
    struct watch_slot slot[];
};
size_t watch_page_bytes(int slots);

/* -- what is decided ------------------------------------------------------------------------------------------- */
/* Seconds that each slot has shown no sign: of work, of being alive. */
struct watch_record {
    uint64_t done, pulse;
    double idle, silent;
};

enum watch_finding {
    WATCH_FINE,
    WATCH_CULPRITS,  /* ranks of this node: `culprit` of their slots is set */
    WATCH_ELSEWHERE, /* all here wait for somebody on another node */
    WATCH_DEADLOCK   /* all ranks there are wait */
};

struct watch_judge {
    double limit;
    int mine;                                                    /* slot */
    bool (*excused)(const struct watch_slot *slot, void *asker); /* a debugger holds it, say; NULL: nobody is */
    void *asker;
    struct watch_record *record; /* [slots] */
    bool *culprit;               /* [slots] */
};
/* dt more seconds have passed. */
enum watch_finding watch_look(struct watch_judge *j, const struct watch_page *page, double dt);

/* Activities other than steps and evaluations may be this many times longer without a sign: a checkpoint that goes to a
 * slow disk, a dataset that is read. */
enum { WATCH_PATIENCE = 10 };

/* The line that says what was found; how: what is known of the process of the first culprit, "" or ", it is stopped".
 */
void watch_say(const struct watch_judge *j, const struct watch_page *page, enum watch_finding finding, const char *how,
               char *text, size_t size);

/* -- the thread -------------------------------------------------------------------------------------------------- */
/* Before MPI starts: rank is what the launcher says. If MPI takes longer than limit [s] to start that is said, and this
 * process ends. limit 0, here and later: for ever. */
void watch_begin(double limit, int rank);
/* The job has started: from here on by this page, in which `mine` is this rank's slot. Its other ranks fill in theirs
 * before or soon after. */
void watch_join(struct watch_page *page, int mine);
void watch_set_limit(double limit);
/* What the line ends with: "" or "; ...", which stays where it is. */
void watch_advise(const char *advice);
/* Of this process; state last. */
void watch_fill(struct watch_slot *slot, int rank);
/* This rank has left MPI and no longer waits for others, nor they for it. The page may be released. */
void watch_end(void);

#endif
