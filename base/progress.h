/* progress.h: one line that is redrawn on a terminal, as wide as that is now: a bar, what is done, the time that is
 * left, and what else there is to say, of which a narrow terminal shows the beginning. */
#ifndef ST_BASE_PROGRESS_H
#define ST_BASE_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct progress {
    FILE *stream;
    int terminal; /* whose window it is */
    double drawn; /* when it was last drawn [s] */
    bool live;    /* a line is on the screen */
};

/* terminal: a descriptor of the terminal that shows the stream. */
void progress_open(struct progress *p, FILE *stream, int terminal);

/* Redraws at most ten times a second: "[####....]  42%  1:05 left  note  note". part: of 1; left: seconds, NaN where
 * nobody knows; note: NULL behind the last one, the most important first. */
void progress_show(struct progress *p, double part, double left, const char *const *note);

/* Clears the line, so that something else can be printed; the next show draws it again. */
void progress_clear(struct progress *p);

/* That line for a terminal of so many columns, one of which stays free; text: [size], size above columns. */
void progress_line(char *text, size_t size, int columns, double part, double left, const char *const *note);

/* "50 s", "12 min", "3 h 20 min", "4 days". */
void progress_time(char *text, size_t size, double seconds);

#endif
