/* progress.c: see progress.h. */
#include "base/progress.h"

#include <string.h>

#include "base/clock.h"

enum { BAR = 24 };

void progress_open(struct progress *p, FILE *stream, double total) {
    *p = (struct progress){.stream = stream, .total = total, .begin = clock_now(), .drawn = -1};
}

static void format_time(char *text, size_t size, double seconds) {
    long s = (long)(seconds + 0.5);
    if (s >= 3600)
        snprintf(text, size, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(text, size, "%ld:%02ld", s / 60, s % 60);
}

void progress_show(struct progress *p, double done, const char *note) {
    double now = clock_now();
    if (p->drawn >= 0 && now - p->drawn < 0.1) return;
    p->drawn = now;
    p->live = true;
    double part = p->total > 0 ? done / p->total : 1;
    if (part > 1) part = 1;
    char bar[BAR + 1], left[32] = "-:--";
    memset(bar, '.', BAR);
    memset(bar, '#', (size_t)(part * BAR));
    bar[BAR] = '\0';
    if (part > 0) format_time(left, sizeof left, (now - p->begin) * (1 - part) / part);
    fprintf(p->stream, "\r\033[K[%s] %3.0f%%  ETA %s  %s", bar, 100 * part, left, note);
    fflush(p->stream);
}

void progress_clear(struct progress *p) {
    if (!p->live) return;
    p->live = false;
    p->drawn = -1;
    fputs("\r\033[K", p->stream);
    fflush(p->stream);
}
