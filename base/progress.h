/* progress.h: one line that is redrawn on a terminal, with a bar and the time that is left. */
#ifndef ST_BASE_PROGRESS_H
#define ST_BASE_PROGRESS_H

#include <stdbool.h>
#include <stdio.h>

struct progress {
    FILE *stream;
    double total, begin, drawn; /* units of work; when it began; when it was last drawn [s] */
    bool live;                  /* a line is on the screen */
};

/* `total` units of work are ahead (of a resumed run: those still to do). */
void progress_open(struct progress *p, FILE *stream, double total);

/* Redraws at most ten times a second: "[####....]  42%  ETA 1:05  note". */
void progress_show(struct progress *p, double done, const char *note);

/* Clears the line, so that something else can be printed; the next show draws it again. */
void progress_clear(struct progress *p);

#endif
